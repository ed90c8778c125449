//! The octets of a message (RFC 8415, sections 8 and 9), out of what relays put around it, and its
//! options (section 21).

use core::net::Ipv6Addr;

use netsniff_packet::{Address, Timestamp};

use super::exchange::KINDS;
use crate::protocol::Role;
use crate::record::{Fact, Interval};

/// Relays that may pass a message on (HOP_COUNT_LIMIT, section 7.6).
const MAX_RELAYS: u8 = 8;

/// Octets of a DUID: a type and 128 more (section 11.1).
const MAX_DUID: usize = 130;

/// Addresses and as many prefixes of a message that are followed: hosts have few, and a datagram has
/// room for thousands.
const MAX_LEASES: usize = 64;

/// Octets of what a server says that are kept.
const MAX_TEXT: usize = 255;

/// Octets and labels of a domain name (RFC 1035, section 2.3.4).
const MAX_NAME: usize = 255;

/// Options that are followed, by their codes.
mod code {
    pub(super) const CLIENT_ID: u16 = 1;
    pub(super) const SERVER_ID: u16 = 2;
    pub(super) const IA_NA: u16 = 3;
    pub(super) const IA_TA: u16 = 4;
    pub(super) const IA_ADDRESS: u16 = 5;
    pub(super) const RELAY_MESSAGE: u16 = 9;
    pub(super) const STATUS: u16 = 13;
    pub(super) const IA_PD: u16 = 25;
    pub(super) const IA_PREFIX: u16 = 26;
    /// Client FQDN option (RFC 4704).
    pub(super) const CLIENT_FQDN: u16 = 39;
}

/// What relays make of a message.
const RELAY_FORWARD: u8 = 12;
const RELAY_REPLY: u8 = 13;

/// What is followed of a message.
#[derive(Clone, Debug)]
pub(super) struct Dhcpv6Message {
    /// When it was seen.
    pub(super) time: Timestamp,
    /// Who sent it, in its flow.
    pub(super) from: Role,
    /// `msg-type` (RFC 8415, 8).
    pub(super) kind: u8,
    /// Transaction identifier, which the answers repeat.
    pub(super) xid: u32,
    /// How many relays passed it on.
    pub(super) relays: u64,
    /// The client by the word of the relay next to it.
    pub(super) peer: Option<Address>,
    pub(super) client: Option<Box<[u8]>>,
    pub(super) server: Option<Box<[u8]>>,
    pub(super) fqdn: Option<Box<[u8]>>,
    pub(super) addresses: Vec<Lease<Address>>,
    pub(super) prefixes: Vec<Lease<String>>,
    pub(super) status: Option<Status>,
}

impl Fact for Dhcpv6Message {
    fn heap_bytes(&self) -> usize {
        let texts = [&self.client, &self.server, &self.fqdn].into_iter().flatten();
        let prefixes = self.prefixes.iter().map(|lease| lease.what.capacity()).sum::<usize>();
        self.addresses.capacity() * size_of::<Lease<Address>>()
            + self.prefixes.capacity() * size_of::<Lease<String>>()
            + prefixes
            + texts.map(|text| text.len()).sum::<usize>()
            + self.status.as_ref().map_or(0, |status| status.text.len())
    }
}

/// An address or a prefix, and for how long.
#[derive(Clone, Debug)]
pub(super) struct Lease<T> {
    pub(super) what: T,
    pub(super) preferred: Interval,
    pub(super) valid: Interval,
}

/// How a server answered.
#[derive(Clone, Debug)]
pub(super) struct Status {
    pub(super) code: u16,
    pub(super) text: Box<[u8]>,
}

/// A message without what relays put around it.
#[derive(Clone, Copy)]
struct Inner<'a> {
    kind: u8,
    xid: u32,
    options: &'a [u8],
    relays: u64,
    peer: Option<Address>,
}

/// Takes off what relays put around a message; `None` where that is cut off, or where there is more
/// than relays may put.
fn inner(mut payload: &[u8]) -> Option<Inner<'_>> {
    let (mut relays, mut peer) = (0, None);
    loop {
        let (&kind, rest) = payload.split_first()?;
        if !(1..=KINDS.len()).contains(&kind.into()) {
            return None;
        }
        if kind != RELAY_FORWARD && kind != RELAY_REPLY {
            let (xid, options) = rest.split_first_chunk::<3>()?;
            let [a, b, c] = *xid;
            let xid = u32::from_be_bytes([0, a, b, c]);
            return Some(Inner { kind, xid, options, relays: relays.into(), peer });
        }
        if relays == MAX_RELAYS {
            return None;
        }
        relays += 1;
        // A count of hops, the address of the link and that of the peer come before the options.
        let (fields, options) = rest.split_first_chunk::<33>()?;
        peer = Some(Address::from_v6(*fields.last_chunk::<16>()?));
        let mut passed_on = None;
        for option in Options(options) {
            let (code, value) = option?;
            if code == code::RELAY_MESSAGE {
                passed_on = Some(value);
            }
        }
        payload = passed_on?;
    }
}

/// The options of a message or of an option, by code and value; the last one is `None` where it is
/// cut off.
struct Options<'a>(&'a [u8]);

impl<'a> Iterator for Options<'a> {
    type Item = Option<(u16, &'a [u8])>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let rest = core::mem::take(&mut self.0);
        let split = rest.split_first_chunk::<4>().and_then(|(head, rest)| {
            let [a, b, c, d] = *head;
            let (value, rest) = rest.split_at_checked(u16::from_be_bytes([c, d]).into())?;
            self.0 = rest;
            Some((u16::from_be_bytes([a, b]), value))
        });
        Some(split)
    }
}

impl Dhcpv6Message {
    /// What is followed of a message that `from` sent at `time`.
    pub(super) fn read(time: Timestamp, from: Role, payload: &[u8]) -> Option<Self> {
        let Inner { kind, xid, options, relays, peer } = inner(payload)?;
        let mut message = Self {
            time,
            from,
            kind,
            xid,
            relays,
            peer,
            client: None,
            server: None,
            fqdn: None,
            addresses: Vec::new(),
            prefixes: Vec::new(),
            status: None,
        };
        for option in Options(options) {
            let (code, value) = option?;
            message.option(code, value);
        }
        Some(message)
    }

    fn option(&mut self, code: u16, value: &[u8]) {
        let duid = || value.get(..MAX_DUID).unwrap_or(value).into();
        match code {
            code::CLIENT_ID => self.client = Some(duid()),
            code::SERVER_ID => self.server = Some(duid()),
            // Identifier and two times come before the options of these, or the identifier alone.
            code::IA_NA | code::IA_PD => self.association(value.get(12..)),
            code::IA_TA => self.association(value.get(4..)),
            code::STATUS => self.status(value),
            code::CLIENT_FQDN => self.fqdn = value.get(1..).and_then(name),
            _ => {}
        }
    }

    /// The addresses and prefixes of an identity association.
    fn association(&mut self, options: Option<&[u8]>) {
        // What is cut off in an option leaves the message itself whole.
        for (code, value) in Options(options.unwrap_or_default()).map_while(|option| option) {
            match code {
                code::IA_ADDRESS if self.addresses.len() < MAX_LEASES => {
                    self.addresses.extend(address(value));
                }
                code::IA_PREFIX if self.prefixes.len() < MAX_LEASES => {
                    self.prefixes.extend(prefix(value));
                }
                code::STATUS => self.status(value),
                _ => {}
            }
        }
    }

    fn status(&mut self, value: &[u8]) {
        if let Some((code, text)) = value.split_first_chunk() {
            let text = text.get(..MAX_TEXT).unwrap_or(text).into();
            self.status = Some(Status { code: u16::from_be_bytes(*code), text });
        }
    }
}

/// An IA Address option, section 21.6.
fn address(value: &[u8]) -> Option<Lease<Address>> {
    let (address, rest) = value.split_first_chunk()?;
    let (preferred, rest) = rest.split_first_chunk()?;
    let valid = rest.first_chunk()?;
    let what = Address::from_v6(*address);
    Some(Lease { what, preferred: seconds(*preferred), valid: seconds(*valid) })
}

/// An IA Prefix option, section 21.22.
fn prefix(value: &[u8]) -> Option<Lease<String>> {
    let (preferred, rest) = value.split_first_chunk()?;
    let (valid, rest) = rest.split_first_chunk()?;
    let (len, rest) = rest.split_first()?;
    let what = format!("{}/{len}", Ipv6Addr::from(*rest.first_chunk::<16>()?));
    Some(Lease { what, preferred: seconds(*preferred), valid: seconds(*valid) })
}

fn seconds(octets: [u8; 4]) -> Interval {
    Interval::from_nanos(i64::from(u32::from_be_bytes(octets)) * 1_000_000_000)
}

/// A domain name (RFC 8415, section 10) as text, with a dot at its end if it ends.
fn name(mut octets: &[u8]) -> Option<Box<[u8]>> {
    let mut text = Vec::new();
    while let Some((&len, rest)) = octets.split_first() {
        if len == 0 {
            break;
        }
        let (label, rest) = rest.split_at_checked(len.into())?;
        if len > 63 || text.len() + label.len() > MAX_NAME {
            return None;
        }
        text.extend_from_slice(label);
        if !rest.is_empty() {
            // A name may be partial (RFC 4704, section 4.2): then nothing follows its last label.
            text.push(b'.');
        }
        octets = rest;
    }
    Some(text.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn option(code: u16, value: &[u8]) -> Vec<u8> {
        [&code.to_be_bytes()[..], &(value.len() as u16).to_be_bytes(), value].concat()
    }

    fn message(kind: u8, options: &[u8]) -> Vec<u8> {
        [&[kind, 1, 2, 3], options].concat()
    }

    fn relayed(peer: u8, inner: &[u8]) -> Vec<u8> {
        let mut fields = [0; 34];
        (fields[0], fields[33]) = (RELAY_FORWARD, peer);
        [&fields[..], &option(18, b"eth1"), &option(code::RELAY_MESSAGE, inner)].concat()
    }

    fn read(payload: &[u8]) -> Option<Dhcpv6Message> {
        Dhcpv6Message::read(Timestamp::EPOCH, Role::Originator, payload)
    }

    #[test]
    fn options_are_read() {
        let mut lease = vec![0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7];
        lease.extend_from_slice(&[0, 0, 0, 60, 0, 0, 0, 90]);
        let prefix = [&[0, 0, 0, 60, 0, 0, 0, 90, 56][..], &lease[..16]].concat();
        let status = option(code::STATUS, b"\0\x02no");
        let payload = message(
            7,
            &[
                option(code::CLIENT_ID, &[0, 3, 0, 1, 2, 0, 94, 0, 83, 17]),
                option(code::SERVER_ID, &[0, 2, 9]),
                option(code::IA_NA, &[&[0; 12][..], &option(code::IA_ADDRESS, &lease)].concat()),
                option(
                    code::IA_PD,
                    &[&[0; 12][..], &option(code::IA_PREFIX, &prefix), &status].concat(),
                ),
                option(code::CLIENT_FQDN, b"\x01\x04desk\x01a\x00"),
            ]
            .concat(),
        );
        let message = read(&payload).unwrap();
        assert_eq!((message.kind, message.xid, message.relays), (7, 0x01_0203, 0));
        assert_eq!(message.client.as_deref(), Some(&[0, 3, 0, 1, 2, 0, 94, 0, 83, 17][..]));
        assert_eq!(message.server.as_deref(), Some(&[0, 2, 9][..]));
        assert_eq!(message.fqdn.as_deref(), Some(&b"desk.a."[..]));
        let address = &message.addresses[0];
        assert_eq!(address.what.to_string(), "2001:db8::7");
        assert_eq!(address.preferred.nanos(), 60_000_000_000);
        assert_eq!(address.valid.nanos(), 90_000_000_000);
        assert_eq!(message.prefixes[0].what, "2001:db8::7/56");
        assert_eq!(
            message.status.map(|status| (status.code, status.text)),
            Some((2, b"no"[..].into()))
        );
        for len in 0..payload.len() {
            // Between two options a message may end.
            let ends = read(&payload[..len]).is_some();
            assert_eq!(ends, [4, 18, 25, 69].contains(&len) || len == 122, "{len} octets");
        }
    }

    #[test]
    fn relays_are_taken_off_up_to_a_bound() {
        let mut payload = message(1, &[]);
        for relay in 1..=MAX_RELAYS {
            payload = relayed(relay, &payload);
            let message = read(&payload).unwrap();
            assert_eq!((message.kind, message.relays), (1, relay.into()));
            assert_eq!(
                message.peer.map(|peer| peer.to_string()).as_deref(),
                Some("::1"),
                "next to the client"
            );
        }
        assert!(read(&relayed(9, &payload)).is_none());
        let empty = &relayed(1, &[])[..34];
        assert!(read(empty).is_none(), "a relay that passes nothing on");
    }

    #[test]
    fn what_no_registry_has_is_no_message() {
        assert!(read(&message(0, &[])).is_none());
        assert!(read(&message(38, &[])).is_none());
        assert!(read(&message(37, &[])).is_some());
    }

    #[test]
    fn names_may_be_partial_and_are_bounded() {
        let text =
            |octets: &[u8]| name(octets).map(|name| String::from_utf8_lossy(&name).into_owned());
        assert_eq!(text(b"\x04desk").as_deref(), Some("desk"));
        assert_eq!(text(b"\x04desk\0").as_deref(), Some("desk."));
        assert_eq!(text(b"\x05desk"), None);
        assert_eq!(text(&[1; 1000]), None);
    }
}
