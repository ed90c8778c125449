//! How a row stands in a file of the spool: its length, a checksum, and what it consists of.

/// Bytes before what a record has: its length and its checksum.
const HEAD: usize = 8;

/// The most bytes of a record. A row of a log is far shorter; a length beyond it is no length.
pub(super) const MOST: usize = 16 << 20;

/// A row without who made it, which the file tells at its begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Record<'a> {
    pub(super) time: i64,
    pub(super) seq: u64,
    pub(super) log: &'a str,
    pub(super) json: &'a [u8],
}

/// What stands at a place of a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found<T> {
    /// Something whole, and how many bytes it takes.
    Whole(T, usize),
    /// Less than it begins with: the file ends in it.
    Cut,
    /// Something else.
    Damaged,
}

/// Appends some bytes with their length and checksum.
pub(super) fn frame(out: &mut Vec<u8>, append: impl FnOnce(&mut Vec<u8>)) {
    let begin = out.len();
    out.extend_from_slice(&[0; HEAD]);
    append(out);
    let content = out.get(begin + HEAD..).unwrap_or_default();
    let (length, sum) =
        (u32::try_from(content.len()).unwrap_or(u32::MAX), crc32fast::hash(content));
    let head = out.get_mut(begin..begin + HEAD).unwrap_or_default();
    for (to, from) in head.iter_mut().zip(length.to_le_bytes().into_iter().chain(sum.to_le_bytes()))
    {
        *to = from;
    }
}

/// The bytes of a frame at the begin of `bytes`.
pub(super) fn unframe(bytes: &[u8]) -> Found<&[u8]> {
    let Some((length, rest)) = bytes.split_first_chunk() else { return Found::Cut };
    let Some((sum, rest)) = rest.split_first_chunk() else { return Found::Cut };
    let length = u32::from_le_bytes(*length) as usize;
    if length > MOST {
        return Found::Damaged;
    }
    let Some(content) = rest.get(..length) else { return Found::Cut };
    if crc32fast::hash(content) != u32::from_le_bytes(*sum) {
        return Found::Damaged;
    }
    Found::Whole(content, HEAD + length)
}

impl<'a> Record<'a> {
    /// Appends the record.
    pub(super) fn append(&self, out: &mut Vec<u8>) {
        frame(out, |out| {
            out.extend_from_slice(&self.time.to_le_bytes());
            out.extend_from_slice(&self.seq.to_le_bytes());
            // Names of logs are short.
            out.push(self.log.len() as u8);
            out.extend_from_slice(self.log.as_bytes());
            out.extend_from_slice(self.json);
        });
    }

    /// The record at the begin of `bytes`.
    pub(super) fn read(bytes: &'a [u8]) -> Found<Self> {
        match unframe(bytes) {
            Found::Whole(content, size) => {
                Self::parse(content).map_or(Found::Damaged, |record| Found::Whole(record, size))
            }
            Found::Cut => Found::Cut,
            Found::Damaged => Found::Damaged,
        }
    }

    fn parse(content: &'a [u8]) -> Option<Self> {
        let (time, rest) = content.split_first_chunk()?;
        let (seq, rest) = rest.split_first_chunk()?;
        let (length, rest) = rest.split_first()?;
        let (log, json) = rest.split_at_checked(usize::from(*length))?;
        let log = core::str::from_utf8(log).ok()?;
        Some(Self { time: i64::from_le_bytes(*time), seq: u64::from_le_bytes(*seq), log, json })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_read_back_and_no_other_bytes_do() {
        let record = Record { time: -5, seq: 1 << 40, log: "conn", json: b"{\"a\":1}" };
        let mut bytes = Vec::new();
        record.append(&mut bytes);
        let size = bytes.len();
        Record { seq: 2, ..record }.append(&mut bytes);
        assert_eq!(Record::read(&bytes), Found::Whole(record, size));
        assert!(matches!(Record::read(&bytes[size..]), Found::Whole(Record { seq: 2, .. }, _)));
        for end in 0..size {
            assert_eq!(Record::read(&bytes[..end]), Found::Cut, "{end}");
        }
        for at in 0..size {
            for bit in 0..8 {
                let mut wrong = bytes[..size].to_vec();
                wrong[at] ^= 1 << bit;
                // A wrong length may reach beyond the end.
                assert!(!matches!(Record::read(&wrong), Found::Whole(..)), "byte {at} bit {bit}");
            }
        }
    }
}
