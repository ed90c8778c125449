//! The first message of a side out of CRYPTO frames, RFC 9000 section 19.6, which may come in any
//! order.

use core::ops::Range;

use crate::protocol::tls::reader::Reader;

/// Octets of the longest message, as Zeek has it: those of the longest record (RFC 8446, 5.2).
const MAX_LEN: usize = (1 << 14) + 256;

/// Pieces with holes between them. A hello comes in a few packets.
const MAX_PIECES: usize = 64;

/// What was seen of a side's first message.
#[derive(Debug, Default)]
pub(super) struct FirstMessage {
    octets: Vec<u8>,
    /// The parts of `octets` that were seen, in order, without overlaps.
    seen: Vec<Range<usize>>,
    is_whole: bool,
}

/// More than a hello ever needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooMuch;

impl FirstMessage {
    /// Whether the message was told.
    pub(super) const fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// Takes a piece. Returns type and body of the message, once, when it is whole.
    pub(super) fn push(
        &mut self,
        offset: u64,
        data: &[u8],
    ) -> Result<Option<(u8, Vec<u8>)>, TooMuch> {
        if self.is_whole || data.is_empty() {
            return Ok(None);
        }
        let begin = usize::try_from(offset).map_err(|_| TooMuch)?;
        let end = begin.checked_add(data.len()).filter(|end| *end <= MAX_LEN).ok_or(TooMuch)?;
        if self.octets.len() < end {
            self.octets.resize(end, 0);
        }
        // What was seen first stands.
        for hole in self.holes(begin..end) {
            let piece = hole.start - begin..hole.end - begin;
            if let (Some(to), Some(from)) = (self.octets.get_mut(hole), data.get(piece)) {
                to.copy_from_slice(from);
            }
        }
        self.note(begin..end)?;
        Ok(self.whole())
    }

    /// The parts of a range that were not seen.
    fn holes(&self, range: Range<usize>) -> Vec<Range<usize>> {
        let (mut holes, mut at) = (Vec::new(), range.start);
        for seen in &self.seen {
            if seen.start >= range.end {
                break;
            }
            if seen.start > at {
                holes.push(at..seen.start);
            }
            at = at.max(seen.end);
        }
        if at < range.end {
            holes.push(at..range.end);
        }
        holes
    }

    /// Notes that a range was seen.
    fn note(&mut self, range: Range<usize>) -> Result<(), TooMuch> {
        let mut merged = range;
        self.seen.retain(|seen| {
            let touches = seen.start <= merged.end && seen.end >= merged.start;
            if touches {
                merged = merged.start.min(seen.start)..merged.end.max(seen.end);
            }
            !touches
        });
        let at = self.seen.partition_point(|seen| seen.start < merged.start);
        self.seen.insert(at, merged);
        if self.seen.len() > MAX_PIECES { Err(TooMuch) } else { Ok(()) }
    }

    fn whole(&mut self) -> Option<(u8, Vec<u8>)> {
        let end = self.seen.first().filter(|seen| seen.start == 0)?.end;
        let mut reader = Reader::new(self.octets.get(..end)?);
        let kind = reader.u8()?;
        let body = reader.vector24()?.to_vec();
        *self = Self { is_whole: true, ..Self::default() };
        Some((kind, body))
    }

    /// Bytes that it holds outside itself.
    pub(super) fn heap_bytes(&self) -> usize {
        self.octets.capacity() + self.seen.capacity() * size_of::<Range<usize>>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message() -> Vec<u8> {
        [vec![1, 0, 0, 60], (1..=60).collect()].concat()
    }

    #[test]
    fn pieces_come_in_any_order() {
        let message = message();
        for cut in 0..=message.len() {
            for order in [[0, 1], [1, 0]] {
                let pieces = [(0, &message[..cut]), (cut, &message[cut..])];
                let mut first = FirstMessage::default();
                let mut push = |at: usize| first.push(pieces[at].0 as u64, pieces[at].1).unwrap();
                let told: Vec<_> = order.iter().filter_map(|at| push(*at)).collect();
                assert_eq!(told, [(1, message[4..].to_vec())], "{cut}");
                assert!(first.is_whole() && first.heap_bytes() == 0);
            }
        }
    }

    #[test]
    fn what_was_seen_first_stands() {
        let message = message();
        let mut first = FirstMessage::default();
        assert_eq!(first.push(10, &message[10..20]), Ok(None));
        assert_eq!(first.push(30, &message[30..]), Ok(None));
        let mut other = message.clone();
        other[10..20].fill(0xff);
        other[30..].fill(0xff);
        assert_eq!(first.push(0, &other), Ok(Some((1, message[4..].to_vec()))));
        assert_eq!(first.push(0, &message), Ok(None));
    }

    #[test]
    fn a_message_without_body_and_what_follows_it() {
        let mut first = FirstMessage::default();
        assert_eq!(first.push(0, &[2, 0, 0, 0, 9, 9]), Ok(Some((2, vec![]))));
    }

    #[test]
    fn bounds_hold() {
        let mut first = FirstMessage::default();
        assert_eq!(first.push(MAX_LEN as u64, &[1]), Err(TooMuch));
        assert_eq!(first.push(u64::MAX, &[1]), Err(TooMuch));
        let mut pieces = 0;
        while first.push(pieces * 2 + 4, &[1]).is_ok() {
            pieces += 1;
        }
        assert_eq!(pieces, MAX_PIECES as u64);
        assert!(first.heap_bytes() < 10_000);
    }
}
