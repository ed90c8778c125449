//! Frames as they lie in a stream, RFC 6455 section 5.2.

/// The header of a frame (RFC 6455, 5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FrameHeader {
    /// How long it is.
    pub(super) len: usize,
    /// Bytes of payload behind the header.
    pub(super) payload: u64,
    opcode: u8,
    mask: Option<[u8; 4]>,
    /// Whether an extension has compressed the message that begins (RFC 7692, section 6).
    pub(super) is_compressed: bool,
}

/// Opcodes, RFC 6455 section 11.8.
const CONTINUATION: u8 = 0;
const TEXT: u8 = 1;
const BINARY: u8 = 2;

impl FrameHeader {
    /// Reads a header; an error is how many bytes it needs, or `None` for what is none.
    pub(super) fn parse(data: &[u8]) -> Result<Self, Option<usize>> {
        let Some(&[first, second]) = data.first_chunk::<2>() else { return Err(Some(2)) };
        let (opcode, short) = (first & 0xf, second & 0x7f);
        if matches!(opcode, 3..=7 | 11..=15) {
            return Err(None);
        }
        let extended = match short {
            126 => 2,
            127 => 8,
            _ => 0,
        };
        let is_masked = second & 0x80 != 0;
        let len = 2 + extended + if is_masked { 4 } else { 0 };
        let Some(header) = data.get(..len) else { return Err(Some(len)) };
        let long = header.get(2..2 + extended).unwrap_or_default();
        let payload = match extended {
            0 => u64::from(short),
            _ => long.iter().fold(0, |payload, &byte| payload << 8 | u64::from(byte)),
        };
        let mask = header.last_chunk().copied().filter(|_| is_masked);
        Ok(Self { len, payload, opcode, mask, is_compressed: first & 0x40 != 0 })
    }

    /// Whether it belongs to the WebSocket itself.
    pub(super) const fn is_control(&self) -> bool {
        self.opcode & 8 != 0
    }
}

/// The frame that one side is at.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Frame {
    /// Bytes of its payload that are still to come.
    left: u64,
    mask: [u8; 4],
    /// Which octet of the mask is next.
    at: usize,
    is_control: bool,
    /// Whether the message that it is of has data: text, or anything.
    is_data: bool,
}

impl Frame {
    /// Begins the next one.
    pub(super) const fn begin(&mut self, header: &FrameHeader) {
        self.left = header.payload;
        self.mask = match header.mask {
            Some(mask) => mask,
            None => [0; 4],
        };
        self.at = 0;
        self.is_control = header.is_control();
        // Control frames stand also between the frames of a message (section 5.4).
        if !self.is_control && header.opcode != CONTINUATION {
            self.is_data = matches!(header.opcode, TEXT | BINARY);
        }
    }

    /// Whether bytes of it are still to come.
    pub(super) const fn is_open(&self) -> bool {
        self.left > 0
    }

    /// Whether it carries data.
    pub(super) const fn has_data(&self) -> bool {
        self.is_data && !self.is_control
    }

    /// Leaves out the rest of it, and tells how much that is.
    pub(super) const fn skip(&mut self) -> u64 {
        core::mem::replace(&mut self.left, 0)
    }

    /// Learns that bytes are missing, and tells how many of those are of this frame.
    pub(super) fn miss(&mut self, len: u64) -> u64 {
        let missing = len.min(self.left);
        self.advance(missing);
        missing
    }

    /// Adds what `data` has of the frame to `clear`, without its mask (section 5.3). Returns how much
    /// that is.
    pub(super) fn unmask(&mut self, data: &[u8], clear: &mut Vec<u8>) -> usize {
        let len = usize::try_from(self.left).unwrap_or(usize::MAX).min(data.len());
        let mask = self.mask.iter().cycle().skip(self.at);
        clear.extend(data.iter().take(len).zip(mask).map(|(byte, octet)| byte ^ octet));
        self.advance(len as u64);
        len
    }

    fn advance(&mut self, len: u64) {
        self.left -= len;
        self.at = (self.at + (len % 4) as usize) % 4;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(data: &[u8]) -> Result<(usize, u64), Option<usize>> {
        FrameHeader::parse(data).map(|header| (header.len, header.payload))
    }

    #[test]
    fn headers_have_three_lengths_and_a_mask() {
        assert_eq!(read(&[0x81, 5]), Ok((2, 5)));
        assert_eq!(read(&[0x81, 0x85, 1, 2, 3, 4]), Ok((6, 5)));
        assert_eq!(read(&[2, 126, 1, 0]), Ok((4, 256)));
        let long = [2, 127, 0, 0, 0, 1, 0, 0, 0, 0];
        assert_eq!(read(&long), Ok((10, 1 << 32)));
        assert_eq!(read(&long[..9]), Err(Some(10)));
        assert_eq!(read(&[0x81]), Err(Some(2)));
        assert_eq!(read(&[0x83, 0]), Err(None));
        assert_eq!(read(&[0x88, 126, 0, 0]), Ok((4, 0)), "control frames have all lengths");
    }

    #[test]
    fn masks_go_on_over_pieces_and_what_is_missing() {
        let clear = b"some data of a frame";
        let mask = [1, 2, 3, 4];
        let masked: Vec<u8> =
            clear.iter().zip(mask.iter().cycle()).map(|(byte, octet)| byte ^ octet).collect();
        let header = FrameHeader::parse(&[0x82, 0x80 | 20, 1, 2, 3, 4]).unwrap();
        for cut in 1..clear.len() {
            let (mut frame, mut got) = (Frame::default(), Vec::new());
            frame.begin(&header);
            for piece in masked.chunks(cut) {
                assert_eq!(frame.unmask(piece, &mut got), piece.len());
            }
            assert_eq!((got.as_slice(), frame.is_open()), (&clear[..], false), "{cut}");
            let (mut frame, mut got) = (Frame::default(), Vec::new());
            frame.begin(&header);
            assert_eq!(frame.miss(cut as u64), cut as u64);
            assert_eq!(frame.unmask(&[&masked[cut..], b"more"].concat(), &mut got), 20 - cut);
            assert_eq!(got, &clear[cut..], "{cut}");
            assert_eq!(frame.miss(7), 0, "what is missing is of the next one");
        }
    }

    #[test]
    fn what_continues_a_message_is_of_its_kind() {
        let mut frame = Frame::default();
        for (first, has_data) in [(0x02, true), (0x89, false), (0x00, true), (0x88, false)] {
            frame.begin(&FrameHeader::parse(&[first, 1]).unwrap());
            assert_eq!(frame.has_data(), has_data, "{first}");
        }
        assert!(FrameHeader::parse(&[0xc1, 0]).unwrap().is_compressed);
    }
}
