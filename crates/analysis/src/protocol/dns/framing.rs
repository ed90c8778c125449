//! Messages in a stream, each with its length before it (RFC 1035, section 4.2.2), also behind what is missing.

use super::LENGTH_LEN;
use crate::protocol::Progress;

/// Nobody knows where in the stream the next message begins.
const ASTRAY: u64 = u64::MAX;

/// How one side's stream is cut into messages.
#[derive(Clone, Copy, Debug)]
pub(super) struct Framing {
    /// Bytes that still come of a message of which others are missing; [`ASTRAY`] where that is not known.
    of_lost: u64,
}

impl Framing {
    /// At the begin of a message.
    pub(super) const fn new() -> Self {
        Self { of_lost: 0 }
    }

    /// The first message in `data` without its length, or what to do until it is there.
    pub(super) fn message<'a>(&mut self, data: &'a [u8]) -> Result<&'a [u8], Progress> {
        let of_lost = self.of_lost;
        if of_lost > 0 {
            if of_lost != ASTRAY {
                self.of_lost = 0;
            }
            return Err(Progress::Skip(of_lost));
        }
        let Some((prefix, rest)) = data.split_first_chunk::<LENGTH_LEN>() else {
            return Err(Progress::Need(LENGTH_LEN));
        };
        let len = usize::from(u16::from_be_bytes(*prefix));
        rest.get(..len).ok_or(Progress::Need(LENGTH_LEN + len))
    }

    /// Passes missing bytes, before which `unread` came. They may lie within a message whose length is known.
    pub(super) fn gap(&mut self, unread: &[u8], len: u64) {
        let due = match unread.first_chunk::<LENGTH_LEN>() {
            _ if self.of_lost > 0 => self.of_lost,
            Some(prefix) => {
                let whole = LENGTH_LEN as u64 + u64::from(u16::from_be_bytes(*prefix));
                whole.saturating_sub(unread.len() as u64)
            }
            None => 0,
        };
        self.of_lost =
            if self.of_lost == ASTRAY { ASTRAY } else { due.checked_sub(len).unwrap_or(ASTRAY) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_of_known_length_ends_behind_what_is_missing_of_it() {
        let mut framing = Framing::new();
        assert_eq!(framing.message(&[0, 2, 7, 8, 0]), Ok(&[7, 8][..]));
        assert_eq!(framing.message(&[0, 5, 1]), Err(Progress::Need(7)));
        framing.gap(&[0, 5, 1], 2);
        framing.gap(&[], 1);
        assert_eq!(framing.message(&[9, 0, 1, 6]), Err(Progress::Skip(1)));
        assert_eq!(framing.message(&[0, 1, 6]), Ok(&[6][..]));
        framing.gap(&[0, 5, 1], 4);
        assert_eq!(framing.message(&[0, 1, 6]), Ok(&[6][..]), "all that was missing");
    }

    #[test]
    fn behind_the_end_of_a_message_nothing_is_known() {
        for (unread, len) in [(&[0, 5, 1][..], 5), (&[0], 1), (&[], 1)] {
            let mut framing = Framing::new();
            framing.gap(unread, len);
            for _ in 0..2 {
                assert_eq!(framing.message(&[0, 1, 6]), Err(Progress::Skip(ASTRAY)));
                framing.gap(&[], 1);
            }
        }
    }
}
