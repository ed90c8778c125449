//! Packets before they are encrypted: RFC 4253 section 6, and those of SSH 1.

/// Bytes of a packet by its length field, beyond which it is none: OpenSSH's `PACKET_MAX_SIZE`.
const MAX_LEN: usize = 256 << 10;

/// `SSH_MSG_KEXINIT`, RFC 4253 section 12.
pub(super) const KEXINIT: u8 = 20;
/// `SSH_MSG_NEWKEYS`, RFC 4253 section 12.
pub(super) const NEWKEYS: u8 = 21;
/// `SSH_CMSG_SESSION_KEY` of SSH 1: what follows it is encrypted.
pub(super) const SESSION_KEY: u8 = 3;

/// A packet that was looked for.
pub(super) enum Packet<'a> {
    /// A message: its number, what it says, and the length of the packet around it.
    Message { number: u8, body: &'a [u8], len: usize },
    /// There must be so many bytes first.
    Needs(usize),
    /// The bytes are no packet.
    Malformed,
}

/// The first packet of SSH 2.
pub(super) fn second(data: &[u8]) -> Packet<'_> {
    let Some(len) = packet_len(data) else { return Packet::Needs(4) };
    // Length of padding and number of the message at least.
    if !(2..=MAX_LEN).contains(&len) {
        return Packet::Malformed;
    }
    let Some(packet) = data.get(4..4 + len) else { return Packet::Needs(4 + len) };
    let Some((&padding, payload)) = packet.split_first() else { return Packet::Malformed };
    let Some(end) = payload.len().checked_sub(padding.into()) else { return Packet::Malformed };
    match payload[..end].split_first() {
        Some((&number, body)) => Packet::Message { number, body, len: 4 + len },
        None => Packet::Malformed,
    }
}

/// The first packet of SSH 1: the padding stands before the message, the CRC behind it.
pub(super) fn first(data: &[u8]) -> Packet<'_> {
    let Some(len) = packet_len(data) else { return Packet::Needs(4) };
    // Number of the message and CRC at least.
    if !(5..=MAX_LEN).contains(&len) {
        return Packet::Malformed;
    }
    let all = 4 + (8 - len % 8) + len;
    let Some(packet) = data.get(all - len..all) else { return Packet::Needs(all) };
    match packet.split_first() {
        Some((&number, body)) => Packet::Message { number, body, len: all },
        None => Packet::Malformed,
    }
}

fn packet_len(data: &[u8]) -> Option<usize> {
    let len = u32::from_be_bytes(*data.first_chunk()?);
    Some(usize::try_from(len).unwrap_or(usize::MAX))
}

/// The length that a string says to have.
pub(super) fn string_len(text: &[u8]) -> Option<u32> {
    Some(u32::from_be_bytes(*text.first_chunk()?))
}

/// A string with its length before it (RFC 4251, section 5), taken off `rest`.
pub(super) fn string<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (len, behind) = rest.split_first_chunk()?;
    let len = usize::try_from(u32::from_be_bytes(*len)).ok()?;
    let (string, behind) = behind.split_at_checked(len)?;
    *rest = behind;
    Some(string)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_cut_by_their_lengths() {
        let bytes = [0, 0, 0, 6, 2, 21, b'a', b'b', 0, 0, 9];
        let Packet::Message { number, body, len } = second(&bytes) else { panic!() };
        assert_eq!((number, body, len), (21, &b"ab"[..], 10));
        assert!(matches!(second(&bytes[..9]), Packet::Needs(10)));
        assert!(matches!(second(&bytes[..3]), Packet::Needs(4)));
        assert!(matches!(second(&[0, 0, 0, 2, 2, 21]), Packet::Malformed));
        assert!(matches!(second(&[0, 5, 0, 0]), Packet::Malformed));
        // Three bytes of padding, number, CRC.
        let bytes = [0, 0, 0, 5, 7, 7, 7, 2, 1, 2, 3, 4, 9];
        let Packet::Message { number, body, len } = first(&bytes) else { panic!() };
        assert_eq!((number, body, len), (2, &[1, 2, 3, 4][..], 12));
        assert!(matches!(first(&bytes[..11]), Packet::Needs(12)));
        assert!(matches!(first(&[0, 0, 0, 4]), Packet::Malformed));
    }
}
