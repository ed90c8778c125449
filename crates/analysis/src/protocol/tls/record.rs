//! The record layer: that of SSL 3 and TLS (RFC 8446, section 5.1), and of SSL 2.

use super::names::{SSL2, SSL3, TLS12};
use crate::protocol::session::Role;

/// Type, version and length.
pub(super) const HEADER_LEN: usize = 5;

/// Octets of the longest record, RFC 5246 section 6.2.3.
pub(super) const MAX_LEN: usize = (1 << 14) + 2048;

/// `change_cipher_spec`.
pub(in crate::protocol) const CHANGE_CIPHER_SPEC: u8 = 20;
/// `alert`.
pub(in crate::protocol) const ALERT: u8 = 21;
/// `handshake`.
pub(in crate::protocol) const HANDSHAKE: u8 = 22;
/// `application_data`.
pub(in crate::protocol) const APPLICATION_DATA: u8 = 23;
/// `heartbeat`, RFC 6520.
pub(in crate::protocol) const HEARTBEAT: u8 = 24;

/// The header of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// What kind of record it is.
    pub(super) kind: Kind,
    /// Octets of the record, the header included.
    pub(super) len: usize,
}

/// What a record holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A record of SSL 3 or TLS with its type.
    Tls(u8),
    /// A message of SSL 2 with its type. Its body begins behind the type, in the header.
    Ssl2(u8),
}

/// What the records of a conversation have shown of themselves, as Zeek checks it: a version that is
/// none shows that the place in the stream was lost, or that this is something else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Layer {
    /// No record of TLS was seen.
    #[default]
    Open,
    /// Records are those of SSL 3 and TLS.
    Tls,
    /// Both go on in SSL 2.
    Ssl2,
}

impl Layer {
    /// The header at the begin of `data`; `None` where it is none.
    pub(super) fn header(&mut self, data: [u8; HEADER_LEN], from: Role) -> Option<Header> {
        let [first, second, third, _, _] = data;
        match *self {
            Self::Ssl2 => return ssl2(data),
            Self::Open if first & 0x80 != 0 => {
                let is_hello = match from {
                    Role::Originator => {
                        third == 1 && is_version(u16::from_be_bytes([data[3], data[4]]), SSL2)
                    }
                    Role::Responder => third == 4 && data[4] < 2,
                };
                if is_hello && from == Role::Responder {
                    *self = Self::Ssl2;
                }
                return if is_hello { ssl2(data) } else { None };
            }
            Self::Open | Self::Tls => {}
        }
        if !is_version(u16::from_be_bytes([second, third]), SSL3) {
            return None;
        }
        if *self == Self::Open && !(20..=30).contains(&first) {
            return None;
        }
        *self = Self::Tls;
        let len = usize::from(u16::from_be_bytes([data[3], data[4]]));
        Some(Header { kind: Kind::Tls(first), len: len + HEADER_LEN })
    }
}

impl Header {
    /// Whether no record is that long.
    pub(super) const fn is_too_long(&self) -> bool {
        self.len > MAX_LEN + HEADER_LEN
    }
}

/// The header of a message in SSL 2, without padding: length and type. As in Zeek, it counts five
/// octets, of which the last two are the begin of the body.
fn ssl2(data: [u8; HEADER_LEN]) -> Option<Header> {
    let [first, second, kind, _, _] = data;
    let len = usize::from(u16::from_be_bytes([first & 0x7f, second])) + 2;
    (len >= HEADER_LEN).then_some(Header { kind: Kind::Ssl2(kind), len })
}

/// Whether it is SSL 3, TLS 1.0 to 1.2, or the version `other`.
fn is_version(version: u16, other: u16) -> bool {
    (SSL3..=TLS12).contains(&version) || version == other
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_of_tls_have_type_version_and_length() {
        let mut layer = Layer::default();
        let header = layer.header([22, 3, 1, 1, 0], Role::Originator);
        assert_eq!(header, Some(Header { kind: Kind::Tls(22), len: 261 }));
        assert_eq!(layer.header([99, 3, 3, 0, 1], Role::Responder).unwrap().kind, Kind::Tls(99));
        assert_eq!(layer.header([22, 3, 4, 0, 1], Role::Originator), None);
        assert_eq!(layer.header([0x80, 46, 1, 3, 0], Role::Originator), None);
    }

    #[test]
    fn what_is_no_record_is_none() {
        for data in [*b"GET /", [22, 2, 0, 0, 1], [31, 3, 1, 0, 1], [0x16, 3, 4, 0, 1]] {
            assert_eq!(Layer::default().header(data, Role::Originator), None, "{data:?}");
        }
    }

    #[test]
    fn a_hello_of_ssl2_may_begin_tls() {
        let mut layer = Layer::default();
        let header = layer.header([0x80, 46, 1, 3, 1], Role::Originator).unwrap();
        assert_eq!(header, Header { kind: Kind::Ssl2(1), len: 48 });
        assert_eq!(layer, Layer::Open);
        assert_eq!(layer.header([0x80, 46, 4, 0, 1], Role::Responder).unwrap().kind, Kind::Ssl2(4));
        assert_eq!(layer, Layer::Ssl2);
        assert_eq!(Layer::default().header([0x80, 46, 1, 9, 9], Role::Originator), None);
        assert_eq!(Layer::default().header([0x80, 1, 1, 3, 0], Role::Originator), None);
    }
}
