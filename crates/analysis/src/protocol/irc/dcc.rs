//! Files that clients offer each other over connections of their own: "Direct Client-to-Client",
//! which no RFC describes.

use core::net::{IpAddr, Ipv4Addr};

use netsniff_packet::Address;

use crate::protocol::syntax::line::{first_word, number};

/// A file that is offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Offer<'a> {
    pub(super) name: &'a [u8],
    /// Where it can be had.
    pub(super) address: Address,
    pub(super) port: u16,
    /// Its size, where that is told.
    pub(super) size: Option<u64>,
}

/// What a message to someone says of DCC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dcc<'a> {
    /// No request of DCC.
    Nothing,
    /// A file is offered.
    Send(Offer<'a>),
    /// Something else, as a chat.
    Other,
    /// What cannot be read.
    Malformed,
}

impl<'a> Dcc<'a> {
    /// Reads the text of PRIVMSG.
    pub(super) fn read(text: &'a [u8]) -> Self {
        let text = text.strip_prefix(b"\x01").unwrap_or(text);
        let text = text.strip_suffix(b"\x01").unwrap_or(text);
        let Some(text) = text.strip_prefix(b"DCC ") else { return Self::Nothing };
        let (kind, rest) = first_word(text);
        if !kind.eq_ignore_ascii_case(b"SEND") {
            return Self::Other;
        }
        offer(rest).map_or(Self::Malformed, Self::Send)
    }
}

/// Name, address, port, and perhaps the size. Clients put names with spaces into quotation marks.
fn offer(text: &[u8]) -> Option<Offer<'_>> {
    let (name, rest) = match text.strip_prefix(b"\"") {
        Some(quoted) => {
            let end = quoted.iter().position(|&byte| byte == b'"')?;
            (&quoted[..end], &quoted[end + 1..])
        }
        None => first_word(text),
    };
    let (address, rest) = first_word(rest);
    let (port, rest) = first_word(rest);
    let (size, _) = first_word(rest);
    let port = number(port).and_then(|port| u16::try_from(port).ok())?;
    // IPv4 addresses are one number.
    let address = match number(address).and_then(|bits| u32::try_from(bits).ok()) {
        Some(bits) => IpAddr::V4(Ipv4Addr::from_bits(bits)),
        None => core::str::from_utf8(address).ok()?.parse().ok()?,
    };
    (!name.is_empty()).then(|| Offer { name, address: address.into(), port, size: number(size) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offers_are_read() {
        let offer = Offer {
            name: b"a.zip",
            address: Address::from_v4([192, 0, 2, 7]),
            port: 1026,
            size: Some(41_709),
        };
        assert_eq!(Dcc::read(b"\x01DCC SEND a.zip 3221225991 1026 41709\x01"), Dcc::Send(offer));
        assert_eq!(Dcc::read(b"\x01DCC SEND a.zip 192.0.2.7 1026 41709 T\x01"), Dcc::Send(offer));
        let named = Offer { name: b"a b.zip", size: None, ..offer };
        assert_eq!(Dcc::read(b"\x01DCC SEND \"a b.zip\" 3221225991 1026\x01"), Dcc::Send(named));
        assert_eq!(Dcc::read(b"\x01DCC CHAT chat 3221225991 1026\x01"), Dcc::Other);
        assert_eq!(Dcc::read(b"hello"), Dcc::Nothing);
        for text in ["SEND a", "SEND a 1 99999", "SEND a x 9", "SEND \"a 1 9", "SEND \"\" 1 9"] {
            assert_eq!(Dcc::read(format!("DCC {text}").as_bytes()), Dcc::Malformed, "{text}");
        }
    }
}
