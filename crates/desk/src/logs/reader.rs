//! A file to its rows, one at a time, whatever is wrong with it.

use std::io;
use std::ops::Range;
use std::path::Path;

use serde_json::{Map, Value};

use super::lines::{Line, Lines};
use super::row::{Marks, Misread, Row, Values};
use super::text::unescaped;

/// What of a log could not be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Lines that are no rows: cut, too long, or with more or fewer values than there are columns.
    pub lines: u64,
    /// Values that are not of the type of their column.
    pub values: u64,
    /// Why no more could be read.
    pub stopped: Option<String>,
    /// Whether the log ends without the line that whoever wrote it ends it with.
    pub is_open: bool,
    /// Whether its form has no such line, so that nobody can tell.
    pub is_endless: bool,
}

/// Reads the rows of a log.
pub struct Reader {
    lines: Lines,
    line: Vec<u8>,
    header: Header,
    places: Vec<Range<usize>>,
    members: Map<String, Value>,
    misread: Misread,
    faults: Faults,
    rows: u64,
}

/// What header lines said so far.
#[derive(Debug)]
struct Header {
    names: Vec<String>,
    marks: Marks,
    /// Whether there was one, and no end of the log behind it.
    is_open: bool,
}

impl Reader {
    /// Opens a log.
    ///
    /// # Errors
    ///
    /// When the file cannot be opened, or its first bytes cannot be read.
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self::new(Lines::open(path)?))
    }

    fn new(lines: Lines) -> Self {
        let marks = Marks {
            separator: b"\t".to_vec(),
            in_sets: b",".to_vec(),
            unset: b"-".to_vec(),
            empty: b"(empty)".to_vec(),
        };
        Self {
            lines,
            line: Vec::new(),
            header: Header { names: Vec::new(), marks, is_open: false },
            places: Vec::new(),
            members: Map::new(),
            misread: Misread::default(),
            faults: Faults::default(),
            rows: 0,
        }
    }

    /// The next row; `None` where there is none, or nothing more can be read.
    pub fn next_row(&mut self) -> Option<Row<'_>> {
        self.next_row_that(|_| true)
    }

    /// The next row whose line may be one that is wanted. Other lines are neither read any further nor counted as rows.
    pub(crate) fn next_row_that(&mut self, may_be: impl Fn(&[u8]) -> bool) -> Option<Row<'_>> {
        loop {
            match self.lines.next(&mut self.line) {
                Ok(Line::End) => return None,
                Ok(Line::Whole) => {}
                Ok(Line::Cut | Line::TooLong) => {
                    self.faults.lines += 1;
                    continue;
                }
                Err(error) => {
                    self.faults.stopped = Some(error.to_string());
                    return None;
                }
            }
            match self.line.first() {
                None => {}
                Some(b'#') => self.header.take(&self.line),
                Some(_) if !may_be(&self.line) => {}
                Some(_) => match self.kind_of_row() {
                    Some(kind) => {
                        self.rows += 1;
                        self.misread.begin_row();
                        return Some(self.row(kind));
                    }
                    None => self.faults.lines += 1,
                },
            }
        }
    }

    /// Rows that were read.
    #[must_use]
    pub const fn rows(&self) -> u64 {
        self.rows
    }

    /// Bytes of the file that were read, as packed as they are.
    #[must_use]
    pub fn bytes_read(&self) -> u64 {
        self.lines.bytes_read()
    }

    /// What was wrong so far.
    #[must_use]
    pub fn faults(&self) -> Faults {
        let is_open = self.header.is_open;
        // Rows without a head of columns are JSON.
        let is_endless = self.header.names.is_empty();
        Faults { values: self.misread.count(), is_open, is_endless, ..self.faults.clone() }
    }

    /// Takes the line to pieces.
    fn kind_of_row(&mut self) -> Option<Kind> {
        if self.header.names.is_empty() {
            self.members = serde_json::from_slice(&self.line).ok()?;
            return Some(Kind::Members);
        }
        self.places.clear();
        let separator = &self.header.marks.separator;
        let mut begin = 0;
        while let Some(at) = find(self.line.get(begin..)?, separator) {
            self.places.push(begin..begin + at);
            begin += at + separator.len();
        }
        self.places.push(begin..self.line.len());
        (self.places.len() == self.header.names.len()).then_some(Kind::Columns)
    }

    fn row(&self, kind: Kind) -> Row<'_> {
        let Header { names, marks, .. } = &self.header;
        let values = match kind {
            Kind::Columns => {
                Values::Columns { names, line: &self.line, places: &self.places, marks }
            }
            Kind::Members => Values::Members(&self.members),
        };
        Row { values, misread: &self.misread }
    }
}

#[derive(Clone, Copy)]
enum Kind {
    Columns,
    Members,
}

fn find(line: &[u8], separator: &[u8]) -> Option<usize> {
    match separator {
        [one] => line.iter().position(|byte| byte == one),
        _ => line.windows(separator.len().max(1)).position(|window| window == separator),
    }
}

impl Header {
    fn take(&mut self, line: &[u8]) {
        // The separator is told before it is used.
        if let Some(rest) = line.strip_prefix(b"#separator ") {
            self.marks.separator = unescaped(rest).as_bytes().to_vec();
            if self.marks.separator.is_empty() {
                self.marks.separator = b"\t".to_vec();
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
                self.is_open = true;
            }
            b"#close" => self.is_open = false,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TSV: &[u8] =
        b"#separator \\x09\n#set_separator\t,\n#empty_field\t(empty)\n#unset_field\t-\n\
        #path\tx\n#fields\tts\tn\tname\tset\n#types\ttime\tcount\tstring\tset[string]\n\
        1.500000\t18446744073709551615\ta\\x09b\ta\\x2cb,(empty)\n\
        -\t-\t-\t-\n\
        too\tfew\n\
        2.0\tx\t\\x2d\t(empty)\n\
        3.0\t1";

    fn read(bytes: &'static [u8]) -> (Vec<String>, Faults) {
        let mut reader = Reader::new(Lines::of(bytes));
        let mut seen = Vec::new();
        while let Some(row) = reader.next_row() {
            let (ts, n) = (row.nanos("ts"), row.count("n"));
            // Whoever else asks gets the same, and nothing counts twice.
            assert_eq!(row.count("n"), n);
            let (name, set) = (row.text("name"), row.list("set"));
            seen.push(format!("{ts:?} {n:?} {name:?} {set:?} {:?}", row.text("none")));
        }
        assert_eq!(seen.len() as u64, reader.rows());
        (seen, reader.faults())
    }

    #[test]
    fn rows_have_what_is_set_and_faults_are_counted() {
        let (rows, faults) = read(TSV);
        let all = [
            "Some(1500000000) Some(18446744073709551615) Some(\"a\\tb\") Some([\"a,b\", \"\"]) None",
            "None None None None None",
            "Some(2000000000) None Some(\"-\") Some([]) None",
        ];
        assert_eq!(rows, all);
        assert_eq!(
            faults,
            Faults { lines: 2, values: 1, stopped: None, is_open: true, is_endless: false }
        );
    }

    #[test]
    fn rows_in_json_are_the_same() {
        let (rows, faults) = read(
            b"{\"ts\":1.5,\"n\":18446744073709551615,\"name\":\"a\\tb\",\"set\":[\"a,b\",\"\"]}\n\
              {\"ts\":null}\n[1]\n{\"ts\":2.0,\"n\":\"x\",\"name\":\"-\",\"set\":[]}\n{\"ts\":3.0,",
        );
        assert_eq!(rows, read(TSV).0);
        assert_eq!(
            faults,
            Faults { lines: 2, values: 1, stopped: None, is_open: false, is_endless: true }
        );
    }

    #[test]
    fn a_log_with_its_last_line_is_whole() {
        assert!(!read(b"#fields\tts\n1.0\n#close\tx\n").1.is_open);
    }
}
