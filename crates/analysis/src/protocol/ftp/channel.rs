//! Where data connections go: PORT and PASV (RFC 959), EPRT and EPSV (RFC 2428).

use core::net::IpAddr;

use netsniff_packet::Address;

use crate::protocol::syntax::line::number;

/// Where a data connection will go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Channel {
    /// Whether the client begins it.
    pub(super) is_passive: bool,
    /// The address; `None` for that of the server.
    pub(super) address: Option<Address>,
    pub(super) port: u16,
}

impl Channel {
    /// What the argument of PORT or EPRT says.
    pub(super) fn active(command: &[u8], arg: &[u8]) -> Option<Self> {
        let (address, port) = match command {
            b"PORT" => host_port(arg.trim_ascii())?,
            _ => {
                let (address, port) = extended(arg.trim_ascii())?;
                (address?, port)
            }
        };
        Some(Self { is_passive: false, address: Some(address), port })
    }

    /// What the reply to PASV (227) or EPSV (229) says. Servers write all sorts of words before it.
    pub(super) fn passive(code: u16, text: &[u8]) -> Option<Self> {
        let (address, port) = if code == 227 {
            let begin = text.iter().position(u8::is_ascii_digit)?;
            let rest = &text[begin..];
            let is_of_it = |byte: &u8| byte.is_ascii_digit() || *byte == b',';
            let end = rest.iter().position(|byte| !is_of_it(byte)).unwrap_or(rest.len());
            let (address, port) = host_port(&rest[..end])?;
            (Some(address), port)
        } else {
            let begin = text.iter().position(|&byte| byte == b'(')?;
            let end = text.iter().rposition(|&byte| byte == b')')?;
            extended(text.get(begin + 1..end)?)?
        };
        Some(Self { is_passive: true, address, port })
    }
}

/// Six numbers: four of the address and two of the port.
fn host_port(text: &[u8]) -> Option<(Address, u16)> {
    let mut numbers = text.split(|&byte| byte == b',');
    let mut octet = || u8::try_from(number(numbers.next()?)?).ok();
    let address = [octet()?, octet()?, octet()?, octet()?];
    let port = u16::from_be_bytes([octet()?, octet()?]);
    (octet().is_none() && port != 0).then(|| (Address::from_v4(address), port))
}

/// Protocol, address and port between delimiters; the first two may be empty.
fn extended(text: &[u8]) -> Option<(Option<Address>, u16)> {
    let (delimiter, rest) = text.split_first()?;
    let mut fields = rest.split(|byte| byte == delimiter);
    let (_, address, port) = (fields.next()?, fields.next()?, fields.next()?);
    let port = number(port).and_then(|port| u16::try_from(port).ok()).filter(|&port| port != 0)?;
    if address.is_empty() {
        return Some((None, port));
    }
    let address: IpAddr = core::str::from_utf8(address).ok()?.parse().ok()?;
    Some((Some(address.into()), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn v4(last: u8) -> Address {
        Address::from_v4([192, 0, 2, last])
    }

    #[test]
    fn the_client_says_where_it_listens() {
        let channel = Channel { is_passive: false, address: Some(v4(7)), port: 33_582 };
        assert_eq!(Channel::active(b"PORT", b"192,0,2,7,131,46"), Some(channel));
        assert_eq!(Channel::active(b"EPRT", b"|1|192.0.2.7|33582|"), Some(channel));
        let v6: IpAddr = "2001:db8::7".parse().unwrap();
        let channel = Channel { address: Some(v6.into()), ..channel };
        assert_eq!(Channel::active(b"EPRT", b"!2!2001:db8::7!33582!"), Some(channel));
        for arg in
            [&b"192,0,2,7,131"[..], b"192,0,2,7,131,46,1", b"192,0,2,256,1,1", b"1,1,1,1,0,0"]
        {
            assert_eq!(Channel::active(b"PORT", arg), None);
        }
        for arg in
            [&b""[..], b"|", b"|||99|", b"|1|192.0.2.7|0|", b"|1|192.0.2.7|65536|", b"|1|x|9|"]
        {
            assert_eq!(Channel::active(b"EPRT", arg), None);
        }
    }

    #[test]
    fn the_server_says_where_it_listens() {
        let channel = Channel { is_passive: true, address: Some(v4(9)), port: 56_666 };
        for text in ["Entering Passive Mode (192,0,2,9,221,90)", "=192,0,2,9,221,90."] {
            assert_eq!(Channel::passive(227, text.as_bytes()), Some(channel));
        }
        let channel = Channel { address: None, port: 57_086, ..channel };
        assert_eq!(
            Channel::passive(229, b"Entering Extended Passive Mode (|||57086|)"),
            Some(channel)
        );
        assert_eq!(Channel::passive(229, b"Entering Extended Passive Mode"), None);
        assert_eq!(Channel::passive(229, b")|||57086|("), None);
        assert_eq!(Channel::passive(227, b"no"), None);
    }
}
