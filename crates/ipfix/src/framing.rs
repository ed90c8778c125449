//! Messages of IPFIX out of a byte stream, such as a TCP connection (RFC 7011, 10.4).

/// Bytes before the length of a message ends.
const LENGTH_END: usize = 4;
const HEADER: usize = 16;

/// The stream does not say where its messages begin: nothing more can be read of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unframed;

/// What has come of a stream and is not a whole message yet: 65,535 bytes at most.
#[derive(Debug, Default)]
pub struct Framer(Vec<u8>);

impl Framer {
    /// Takes the next bytes of the stream, however they are cut, and hands over each message that is whole.
    ///
    /// # Errors
    ///
    /// Where the bytes are none of IPFIX. The stream is to be ended then.
    pub fn push(&mut self, mut bytes: &[u8], mut take: impl FnMut(&[u8])) -> Result<(), Unframed> {
        while !bytes.is_empty() {
            let wanted = self.wanted()?;
            let (part, rest) = bytes.split_at(bytes.len().min(wanted - self.0.len()));
            self.0.extend_from_slice(part);
            bytes = rest;
            if self.0.len() >= HEADER && self.0.len() == self.wanted()? {
                take(&self.0);
                self.0.clear();
            }
        }
        Ok(())
    }

    /// Whether the stream may end here.
    #[must_use]
    pub fn is_between_messages(&self) -> bool {
        self.0.is_empty()
    }

    /// How many bytes the message has, or those that tell it.
    fn wanted(&self) -> Result<usize, Unframed> {
        let Some([version_high, version_low, high, low]) = self.0.first_chunk::<LENGTH_END>()
        else {
            return Ok(LENGTH_END);
        };
        let len = usize::from(u16::from_be_bytes([*high, *low]));
        if [*version_high, *version_low] != [0, 10] || len < HEADER {
            return Err(Unframed);
        }
        Ok(len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(len: u16, fill: u8) -> Vec<u8> {
        let mut bytes = vec![fill; len.into()];
        bytes[..4].copy_from_slice(&[0, 10, len.to_be_bytes()[0], len.to_be_bytes()[1]]);
        bytes
    }

    #[test]
    fn messages_are_the_same_however_a_stream_is_cut() {
        let messages = [message(16, 1), message(300, 2), message(17, 3)];
        let stream = messages.concat();
        for piece in 1..=stream.len() {
            let (mut framer, mut found) = (Framer::default(), Vec::new());
            for part in stream.chunks(piece) {
                framer.push(part, |message| found.push(message.to_vec())).unwrap();
            }
            assert_eq!(found, messages, "in pieces of {piece}");
            assert!(framer.is_between_messages());
        }
    }

    #[test]
    fn what_is_no_message_ends_the_stream() {
        for bytes in [[0, 9, 0, 20], [0, 10, 0, 15], [22, 3, 1, 2]] {
            assert_eq!(Framer::default().push(&[&bytes[..], &[0]].concat(), |_| ()), Err(Unframed));
        }
    }
}
