//! Handshake messages out of their fragments, RFC 6347 section 4.2.3.

use crate::protocol::tls::handshake::MAX_MESSAGE;
use crate::protocol::tls::reader::Reader;

/// Fragments with holes between them. A message that fills datagrams has a few.
const MAX_PIECES: usize = 64;

/// A fragment of a message, or all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fragment<'a> {
    /// `msg_type`.
    pub(super) kind: u8,
    /// Octets of the message's body.
    len: usize,
    /// Number of the message.
    number: u16,
    /// Where in the body it lies.
    offset: usize,
    data: &'a [u8],
}

impl<'a> Fragment<'a> {
    /// The next fragment of a record; `None` where it is cut or reaches beyond its message.
    pub(super) fn next(reader: &mut Reader<'a>) -> Option<Self> {
        let kind = reader.u8()?;
        let len = usize::try_from(reader.u24()?).ok()?;
        let number = reader.u16()?;
        let offset = usize::try_from(reader.u24()?).ok()?;
        let data = reader.vector24()?;
        let is_within = offset.checked_add(data.len())? <= len;
        is_within.then_some(Self { kind, len, number, offset, data })
    }

    /// The body, where this is all of it.
    pub(super) fn whole(&self) -> Option<&'a [u8]> {
        (self.data.len() == self.len).then_some(self.data)
    }
}

/// The message of one side that comes in fragments. As in Zeek, another message takes its place.
/// It holds no more than what came.
#[derive(Debug, Default)]
pub(super) struct FragmentedMessage {
    number: u16,
    len: usize,
    /// Where pieces lie, in order.
    pieces: Vec<(usize, Box<[u8]>)>,
}

impl FragmentedMessage {
    /// Takes a fragment. Returns the body once it is whole; `Err` for a message that is too long, or
    /// cut into too many pieces.
    pub(super) fn push(&mut self, fragment: &Fragment<'_>) -> Result<Option<Vec<u8>>, TooMuch> {
        if fragment.len > MAX_MESSAGE {
            return Err(TooMuch);
        }
        if (self.number, self.len) != (fragment.number, fragment.len) {
            *self = Self { number: fragment.number, len: fragment.len, pieces: Vec::new() };
        }
        let place = (fragment.offset, fragment.data.len());
        let at = self.pieces.partition_point(|(offset, data)| (*offset, data.len()) < place);
        if self.pieces.get(at).is_some_and(|(offset, data)| (*offset, data.len()) == place) {
            return Ok(None);
        }
        if self.pieces.len() >= MAX_PIECES {
            return Err(TooMuch);
        }
        self.pieces.insert(at, (fragment.offset, fragment.data.into()));
        Ok(self.whole())
    }

    /// The body, if the pieces leave no hole.
    fn whole(&mut self) -> Option<Vec<u8>> {
        let mut end = 0;
        for (offset, data) in &self.pieces {
            if *offset > end {
                return None;
            }
            end = end.max(offset.saturating_add(data.len()));
        }
        if end < self.len {
            return None;
        }
        let mut body = vec![0; self.len];
        for (offset, data) in core::mem::take(&mut self.pieces) {
            body.get_mut(offset..)?.get_mut(..data.len())?.copy_from_slice(&data);
        }
        Some(body)
    }

    /// Bytes that it holds outside itself.
    pub(super) fn heap_bytes(&self) -> usize {
        self.pieces.capacity() * size_of::<(usize, Box<[u8]>)>()
            + self.pieces.iter().map(|(_, data)| data.len()).sum::<usize>()
    }
}

/// More than a message ever needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooMuch;

#[cfg(test)]
mod tests {
    use super::*;

    fn fragment(number: u16, offset: usize, data: &[u8]) -> Fragment<'_> {
        Fragment { kind: 11, len: 10, number, offset, data }
    }

    #[test]
    fn a_fragment_is_read() {
        let bytes = [11, 0, 0, 10, 0, 3, 0, 0, 4, 0, 0, 2, 7, 8, 9];
        let mut reader = Reader::new(&bytes);
        assert_eq!(Fragment::next(&mut reader), Some(fragment(3, 4, &[7, 8])));
        assert_eq!(reader.rest(), [9]);
        let beyond = [11, 0, 0, 10, 0, 3, 0, 0, 9, 0, 0, 2, 7, 8];
        assert_eq!(Fragment::next(&mut Reader::new(&beyond)), None);
        assert_eq!(Fragment::next(&mut Reader::new(&bytes[..13])), None);
    }

    #[test]
    fn fragments_come_in_any_order_and_may_overlap() {
        let body: Vec<u8> = (0..10).collect();
        for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
            let pieces = [
                fragment(3, 0, &body[..4]),
                fragment(3, 3, &body[3..8]),
                fragment(3, 8, &body[8..]),
            ];
            let mut message = FragmentedMessage::default();
            let told: Vec<_> =
                order.iter().filter_map(|at| message.push(&pieces[*at]).unwrap()).collect();
            assert_eq!(told, core::slice::from_ref(&body));
            assert_eq!(message.push(&pieces[0]), Ok(None));
        }
    }

    #[test]
    fn another_message_takes_the_place() {
        let mut message = FragmentedMessage::default();
        assert_eq!(message.push(&fragment(3, 0, &[1; 5])), Ok(None));
        assert_eq!(message.push(&fragment(4, 5, &[1; 5])), Ok(None));
        assert_eq!(message.push(&fragment(3, 5, &[1; 5])), Ok(None));
    }

    #[test]
    fn bounds_hold() {
        let mut message = FragmentedMessage::default();
        let huge = Fragment { len: MAX_MESSAGE + 1, ..fragment(1, 0, &[1]) };
        assert_eq!(message.push(&huge), Err(TooMuch));
        let long = |offset| Fragment { len: 1000, ..fragment(1, offset, &[1]) };
        let pieces = (0..).map(|at| message.push(&long(at * 2 + 1))).position(|it| it.is_err());
        assert_eq!(pieces, Some(MAX_PIECES));
        assert!(message.heap_bytes() < 10_000);
    }
}
