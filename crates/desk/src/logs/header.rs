//! What the header lines of a log tell: its columns, and how it writes what it has no text for.

use super::text::unescaped;

/// How a file with columns writes what it has no text for, as its header says.
#[derive(Clone, Debug)]
pub(super) struct Marks {
    pub(super) separator: Vec<u8>,
    pub(super) in_sets: Vec<u8>,
    pub(super) unset: Vec<u8>,
    pub(super) empty: Vec<u8>,
}

/// What header lines said so far.
#[derive(Debug, Default)]
pub(super) struct Header {
    pub(super) names: Vec<String>,
    pub(super) marks: Marks,
    /// Whether the last line of the log came.
    is_ended: bool,
}

impl Default for Marks {
    fn default() -> Self {
        Self {
            separator: b"\t".to_vec(),
            in_sets: b",".to_vec(),
            unset: b"-".to_vec(),
            empty: b"(empty)".to_vec(),
        }
    }
}

/// Where the separator is in a line.
pub(super) fn find(line: &[u8], separator: &[u8]) -> Option<usize> {
    match separator {
        [one] => memchr::memchr(*one, line),
        _ => memchr::memmem::find(line, separator),
    }
}

impl Header {
    /// Takes a line that begins with `#`.
    pub(super) fn take(&mut self, line: &[u8]) {
        // The separator is told before it is used.
        if let Some(rest) = line.strip_prefix(b"#separator ") {
            self.marks.separator = unescaped(rest).as_bytes().to_vec();
            if self.marks.separator.is_empty() {
                self.marks.separator = Marks::default().separator;
            }
            return;
        }
        let separator = self.marks.separator.clone();
        let at = find(line, &separator).unwrap_or(line.len());
        let (name, rest) = line.split_at(at);
        let rest = rest.get(separator.len()..).unwrap_or_default();
        match name {
            b"#set_separator" => self.marks.in_sets = rest.to_vec(),
            b"#empty_field" => self.marks.empty = rest.to_vec(),
            b"#unset_field" => self.marks.unset = rest.to_vec(),
            b"#fields" => {
                let text = String::from_utf8_lossy(rest);
                let separator = String::from_utf8_lossy(&separator);
                self.names = text.split(separator.as_ref()).map(str::to_owned).collect();
                self.is_ended = false;
            }
            b"#close" => self.is_ended = true,
            _ => {}
        }
    }

    /// Whether there are columns, and no end of the log behind them.
    pub(super) const fn is_open(&self) -> bool {
        !self.names.is_empty() && !self.is_ended
    }

    /// Whether the last line of the log came.
    pub(super) const fn is_closed(&self) -> bool {
        !self.names.is_empty() && self.is_ended
    }
}
