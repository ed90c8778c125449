//! Handshake messages out of the fragments that records carry, RFC 8446 section 5.1.

use super::reader::Reader;

/// Octets of the longest message that is kept. OpenSSL takes 100 KiB of certificates from its peer.
pub(in crate::protocol) const MAX_MESSAGE: usize = 128 << 10;

/// Type and length of a message.
pub(super) const HEADER_LEN: usize = 4;

/// A handshake message (RFC 8446, 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::protocol) struct HandshakeMessage<'a> {
    /// `msg_type`.
    pub(in crate::protocol) kind: u8,
    /// What follows the header; `None` for a message that is too long to be kept.
    pub(in crate::protocol) body: Option<&'a [u8]>,
}

/// Messages of one side: what was seen of one whose rest is to come.
#[derive(Debug, Default)]
pub(super) struct Assembler {
    begun: Vec<u8>,
    /// Octets to come of a message that is not kept.
    skip: usize,
}

impl Assembler {
    /// Takes a fragment, and hands each message that it completes to `take`, which tells whether to
    /// go on.
    pub(super) fn push(
        &mut self,
        mut fragment: &[u8],
        mut take: impl FnMut(HandshakeMessage<'_>) -> bool,
    ) {
        while !fragment.is_empty() {
            let skipped = self.skip.min(fragment.len());
            self.skip -= skipped;
            fragment = fragment.get(skipped..).unwrap_or_default();
            if self.begun.is_empty() {
                let Some((message, rest)) = whole(fragment) else {
                    let is_kept = length(fragment).is_none_or(|len| len <= MAX_MESSAGE);
                    let kept = if is_kept { fragment.len() } else { HEADER_LEN };
                    let (head, rest) = fragment.split_at(kept);
                    self.begun.extend_from_slice(head);
                    fragment = rest;
                    if !self.drop_too_long(&mut take) {
                        return;
                    }
                    continue;
                };
                fragment = rest;
                if !take(message) {
                    return;
                }
                continue;
            }
            let wanted = match length(&self.begun) {
                Some(len) => len.saturating_add(HEADER_LEN),
                None => HEADER_LEN,
            };
            let missing = wanted.saturating_sub(self.begun.len()).min(fragment.len());
            let (head, rest) = fragment.split_at(missing);
            self.begun.extend_from_slice(head);
            fragment = rest;
            if !self.drop_too_long(&mut take) {
                return;
            }
            if let Some((message, _)) = whole(&self.begun) {
                let goes_on = take(message);
                self.begun = Vec::new();
                if !goes_on {
                    return;
                }
            }
        }
    }

    /// Skips a message that is too long, of which the header is there. Returns whether to go on.
    fn drop_too_long(&mut self, take: &mut impl FnMut(HandshakeMessage<'_>) -> bool) -> bool {
        let (Some(len), Some(&kind)) = (length(&self.begun), self.begun.first()) else {
            return true;
        };
        if len <= MAX_MESSAGE {
            return true;
        }
        self.skip = len.saturating_add(HEADER_LEN).saturating_sub(self.begun.len());
        self.begun = Vec::new();
        take(HandshakeMessage { kind, body: None })
    }

    /// Bytes that it holds outside itself.
    pub(super) fn heap_bytes(&self) -> usize {
        self.begun.capacity()
    }
}

/// The length of a message's body, once its header is there.
fn length(message: &[u8]) -> Option<usize> {
    let mut reader = Reader::new(message);
    reader.u8()?;
    usize::try_from(reader.u24()?).ok()
}

/// The message at the begin of `bytes`, if it is whole, and what follows.
fn whole(bytes: &[u8]) -> Option<(HandshakeMessage<'_>, &[u8])> {
    let mut reader = Reader::new(bytes);
    let kind = reader.u8()?;
    let body = reader.vector24()?;
    (body.len() <= MAX_MESSAGE)
        .then_some((HandshakeMessage { kind, body: Some(body) }, reader.rest()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: u8, len: usize) -> Vec<u8> {
        let length = u32::try_from(len).unwrap().to_be_bytes();
        [&[kind][..], &length[1..], &vec![kind; len]].concat()
    }

    /// Kinds and lengths of the messages in fragments.
    fn messages(fragments: &[&[u8]]) -> Vec<(u8, Option<usize>)> {
        let mut assembler = Assembler::default();
        let mut found = Vec::new();
        for fragment in fragments {
            assembler.push(fragment, |message| {
                assert!(message.body.is_none_or(|body| body.iter().all(|o| *o == message.kind)));
                found.push((message.kind, message.body.map(<[u8]>::len)));
                true
            });
        }
        found
    }

    #[test]
    fn messages_are_the_same_however_they_are_cut() {
        let all = [message(1, 5), message(2, 0), message(11, 9)].concat();
        let expected = [(1, Some(5)), (2, Some(0)), (11, Some(9))];
        assert_eq!(messages(&[&all]), expected);
        for cut in 0..=all.len() {
            let (head, tail) = all.split_at(cut);
            assert_eq!(messages(&[head, tail]), expected, "{cut}");
        }
        let octets: Vec<&[u8]> = all.chunks(1).collect();
        assert_eq!(messages(&octets), expected);
    }

    #[test]
    fn a_message_that_is_too_long_is_told_once_and_skipped() {
        let all = [message(11, MAX_MESSAGE + 1), message(14, 0)].concat();
        let expected = [(11, None), (14, Some(0))];
        assert_eq!(messages(&[&all]), expected);
        let pieces: Vec<&[u8]> = all.chunks(1000).collect();
        assert_eq!(messages(&pieces), expected);
        assert_eq!(messages(&[&all[..3], &all[3..]]), expected);
        let mut assembler = Assembler::default();
        for piece in pieces {
            assembler.push(piece, |_| true);
            assert!(assembler.heap_bytes() <= 2000);
        }
    }

    #[test]
    fn nothing_is_read_behind_a_message_that_ends_it() {
        let all = [message(1, 1), message(2, 1)].concat();
        let mut kinds = Vec::new();
        Assembler::default().push(&all, |message| {
            kinds.push(message.kind);
            false
        });
        assert_eq!(kinds, [1]);
    }
}
