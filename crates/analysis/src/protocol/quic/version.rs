//! Versions of QUIC whose Initial packets can be read: RFC 9000, RFC 9369 and drafts of both.

use std::borrow::Cow;

/// What stands for the version where a server tells those that it speaks, RFC 8999 section 6.
pub(super) const NEGOTIATION: u32 = 0;
/// Version 1, RFC 9000.
pub(super) const V1: u32 = 1;
/// Version 2, RFC 9369.
pub(super) const V2: u32 = 0x6b33_43cf;
/// Version 2 in drafts of it.
const V2_DRAFT: u32 = 0x709a_50c4;

/// What differs between versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Version {
    pub(super) number: u32,
    /// The salt of the secret of Initial packets, RFC 9001 section 5.2.
    pub(super) salt: [u8; 20],
}

/// What a packet with a long header is, RFC 9000 section 17.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PacketType {
    /// The first ones of a connection.
    Initial,
    /// Data before the handshake is done.
    ZeroRtt,
    /// The rest of the handshake.
    Handshake,
    /// The server wants the client to show that it gets what is sent to it.
    Retry,
}

const SALT_V1: [u8; 20] = [
    0x38, 0x76, 0x2c, 0xf7, 0xf5, 0x59, 0x34, 0xb3, 0x4d, 0x17, 0x9a, 0xe6, 0xa4, 0xc8, 0x0c, 0xad,
    0xcc, 0xbb, 0x7f, 0x0a,
];
const SALT_V2: [u8; 20] = [
    0x0d, 0xed, 0xe3, 0xde, 0xf7, 0x00, 0xa6, 0xdb, 0x81, 0x93, 0x81, 0xbe, 0x6e, 0x26, 0x9d, 0xcb,
    0xf9, 0xbd, 0x2e, 0xd9,
];
const SALT_V2_DRAFT: [u8; 20] = [
    0xa7, 0x07, 0xc2, 0x03, 0xa5, 0x9b, 0x47, 0x18, 0x4a, 0x1d, 0x62, 0xca, 0x57, 0x04, 0x06, 0xea,
    0x7a, 0xe3, 0xe5, 0xd3,
];
const SALT_DRAFT_29: [u8; 20] = [
    0xaf, 0xbf, 0xec, 0x28, 0x99, 0x93, 0xd2, 0x4c, 0x9e, 0x97, 0x86, 0xf1, 0x9c, 0x61, 0x11, 0xe0,
    0x43, 0x90, 0xa8, 0x99,
];
const SALT_DRAFT_23: [u8; 20] = [
    0xc3, 0xee, 0xf7, 0x12, 0xc7, 0x2e, 0xbb, 0x5a, 0x11, 0xa7, 0xd2, 0x43, 0x2b, 0xb4, 0x63, 0x65,
    0xbe, 0xf9, 0xf5, 0x02,
];
const SALT_DRAFT_22: [u8; 20] = [
    0x7f, 0xbc, 0xdb, 0x0e, 0x7c, 0x66, 0xbb, 0xe9, 0x19, 0x3a, 0x96, 0xcd, 0x21, 0x51, 0x9e, 0xbd,
    0x7a, 0x02, 0x64, 0x4a,
];

impl Version {
    /// The version with this number, if it can be read.
    pub(super) fn of(number: u32) -> Option<Self> {
        let salt = match number {
            V2 => SALT_V2,
            V2_DRAFT => SALT_V2_DRAFT,
            V1 | 0xff00_0021..=0xff00_0022 => SALT_V1,
            0xff00_001d..=0xff00_0020 => SALT_DRAFT_29,
            // Facebook's are of the 22nd and the 27th draft.
            0xff00_0017..=0xff00_001c | 0xface_b002 | 0xface_b00e | 0xface_b011..=0xface_b013 => {
                SALT_DRAFT_23
            }
            0xff00_0016 | 0xface_b001 => SALT_DRAFT_22,
            _ => return None,
        };
        Some(Self { number, salt })
    }

    const fn is_second(self) -> bool {
        matches!(self.number, V2 | V2_DRAFT)
    }

    /// The beginning of the labels for keys: RFC 9001 section 5.1 and RFC 9369 section 3.3.2.
    pub(super) const fn label(self) -> &'static str {
        if self.is_second() { "quicv2 " } else { "quic " }
    }

    /// What a packet is by the two bits behind the fixed one. Version 2 numbers them otherwise, so
    /// that nobody relies on them (RFC 9369, 3.2).
    pub(super) const fn packet_type(self, first: u8) -> PacketType {
        let number = first >> 4 & 3;
        let number = if self.is_second() { number.wrapping_sub(1) & 3 } else { number };
        match number {
            0 => PacketType::Initial,
            1 => PacketType::ZeroRtt,
            2 => PacketType::Handshake,
            _ => PacketType::Retry,
        }
    }
}

/// Whether a version is one of those that only force the server to tell its own (RFC 9000, 15).
pub(super) const fn is_reserved(number: u32) -> bool {
    number & 0x0f0f_0f0f == 0x0a0a_0a0a
}

/// A version's name, as Zeek's `QUIC::version_strings` has it.
pub(super) fn name(number: u32) -> Cow<'static, str> {
    match number {
        V1 => Cow::Borrowed("1"),
        V2 => Cow::Borrowed("quicv2"),
        // Zeek has no name for it.
        V2_DRAFT => Cow::Borrowed("quicv2-draft"),
        0xff00_0016..=0xff00_0022 => Cow::Owned(format!("draft-{}", number & 0xff)),
        0xface_b001 | 0xface_b002 | 0xface_b00e | 0xface_b011..=0xface_b013 => {
            Cow::Owned(format!("mvfst ({number:x})"))
        }
        _ => Cow::Owned(format!("unknown-{number:x}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_known_by_number_and_name() {
        let names = [V1, V2, V2_DRAFT, 0xff00_001d, 0xface_b002, 0x5130_3530].map(name);
        assert_eq!(
            names,
            ["1", "quicv2", "quicv2-draft", "draft-29", "mvfst (faceb002)", "unknown-51303530"]
        );
        assert_eq!([0, 0x5130_3530, 0xff00_0023].map(Version::of), [None; 3]);
        assert!(is_reserved(0x1a2a_3a4a) && !is_reserved(V1));
    }

    #[test]
    fn version_2_numbers_packets_otherwise() {
        use PacketType::{Handshake, Initial, Retry, ZeroRtt};
        let firsts = [0xc0, 0xd0, 0xe0, 0xf0];
        let types = |number| firsts.map(|first| Version::of(number).unwrap().packet_type(first));
        assert_eq!(types(V1), [Initial, ZeroRtt, Handshake, Retry]);
        assert_eq!(types(V2), [Retry, Initial, ZeroRtt, Handshake]);
        assert_eq!(types(V2_DRAFT), types(V2));
    }
}
