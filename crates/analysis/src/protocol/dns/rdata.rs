//! What a resource record says, in the words of Zeek's column `answers`.

use std::io::Write as _;
use std::net::IpAddr;

use netsniff_packet::Address;

use super::message::{DnsMessage, Resource};

/// What was read of a resource record.
#[derive(Clone, Debug)]
pub(super) struct RdataReading {
    /// What it says; empty where it says nothing, `None` where it is of a kind that is not told.
    pub(super) text: Option<Vec<u8>>,
    /// The address that it tells.
    pub(super) address: Option<Address>,
    /// Whether it is sound, so that what follows can be read.
    pub(super) is_sound: bool,
}

impl RdataReading {
    const fn sound(text: Vec<u8>) -> Self {
        Self { text: Some(text), address: None, is_sound: true }
    }

    /// Of a kind that Zeek's log does not tell.
    const SILENT: Self = Self { text: None, address: None, is_sound: true };

    /// Too short for its kind.
    const CUT: Self = Self { text: None, address: None, is_sound: false };

    /// A sound text, if there is one.
    fn whole(text: Option<Vec<u8>>) -> Self {
        text.map_or(Self::CUT, Self::sound)
    }
}

/// Reads a record's RDATA and goes on behind it.
pub(super) fn read(message: &mut DnsMessage<'_>, record: &Resource) -> RdataReading {
    let data = message.part(record.data.clone());
    message.seek(record.data.start);
    let told = match record.kind {
        1 => address(message, data.as_array().map(|&bytes| Address::from_v4(bytes))),
        28 | 38 => address(message, data.as_array().map(|&bytes| Address::from_v6(bytes))),
        2 | 5 | 12 => RdataReading::whole(name(message, record, 0)),
        15 => RdataReading::whole(name(message, record, 2)),
        33 if message.is_netbios() => RdataReading::SILENT,
        33 => RdataReading::whole(name(message, record, 6)),
        6 => start_of_authority(message, record),
        16 => character_strings("TXT", message, data),
        99 => character_strings("SPF", message, data),
        35 => RdataReading::whole(naptr(message, data, record)),
        46 => RdataReading::whole(rrsig(message, data, record)),
        47 => RdataReading::whole(nsec(message, record)),
        _ => fixed(message, data, record.kind),
    };
    message.seek(record.data.end);
    told
}

/// A record of which only some octets at the begin are told.
fn fixed(message: &mut DnsMessage<'_>, data: &[u8], kind: u16) -> RdataReading {
    let enough = |len: usize, text: String| {
        if data.len() < len { RdataReading::CUT } else { RdataReading::sound(text.into_bytes()) }
    };
    let octet = |at: usize| data.get(at).copied().unwrap_or_default();
    match kind {
        29 => enough(16, format!("LOC:  {} {} {}", octet(1), octet(2), octet(3))),
        43 => enough(4, format!("DS {} {}", octet(2), octet(3))),
        44 => enough(2, format!("SSHFP: {}", Hex(data.get(2..).unwrap_or_default()))),
        48 => enough(4, format!("DNSKEY {}", octet(3))),
        50 => enough(6, "NSEC3".to_owned()),
        51 => enough(5, "NSEC3PARAM".to_owned()),
        65534 => enough(5, "BIND9 signing signal".to_owned()),
        // WKS, HINFO, NBS, OPT, SVCB, HTTPS, TKEY, TSIG and CAA.
        11 | 13 | 32 | 41 | 64 | 65 | 249 | 250 | 257 => RdataReading::SILENT,
        kind => {
            message.weird("DNS_RR_unknown_type");
            RdataReading::sound(format!("<unknown type={kind}>").into_bytes())
        }
    }
}

/// Octets as hexadecimal digits.
struct Hex<'a>(&'a [u8]);

impl core::fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.0.iter().try_for_each(|octet| write!(f, "{octet:02x}"))
    }
}

fn address(message: &mut DnsMessage<'_>, address: Option<Address>) -> RdataReading {
    if address.is_none() {
        message.weird("DNS_RR_bad_length");
    }
    let text = address.map(|address| match address.to_ip() {
        IpAddr::V4(address) => dotted(address.octets()),
        IpAddr::V6(address) => address.to_string().into_bytes(),
    });
    RdataReading { address, ..RdataReading::whole(text) }
}

/// An address of IPv4 as text: most answers are one.
fn dotted(octets: [u8; 4]) -> Vec<u8> {
    let (mut text, mut len) = (*b"255.255.255.255.", 0);
    for octet in octets {
        let digits = [octet / 100, octet / 10 % 10, octet % 10].map(|digit| b'0' + digit);
        let leading = usize::from(octet < 100) + usize::from(octet < 10);
        for &digit in &digits[leading..] {
            text[len] = digit;
            len += 1;
        }
        text[len] = b'.';
        len += 1;
    }
    text[..len - 1].to_vec()
}

/// A name behind `offset` octets, at which the record should end.
fn name(message: &mut DnsMessage<'_>, record: &Resource, offset: usize) -> Option<Vec<u8>> {
    message.seek(record.data.start + offset);
    let name = message.name()?;
    check_end(message, record);
    Some(name.as_bytes().to_vec())
}

fn check_end(message: &mut DnsMessage<'_>, record: &Resource) {
    if message.position() != record.data.end {
        message.weird("DNS_RR_length_mismatch");
    }
}

/// The primary server of a zone, RFC 1035 section 3.3.13.
fn start_of_authority(message: &mut DnsMessage<'_>, record: &Resource) -> RdataReading {
    let (Some(server), Some(_mailbox)) = (message.name(), message.name()) else {
        return RdataReading::CUT;
    };
    if message.remaining() < 20 {
        return RdataReading::CUT;
    }
    message.seek(message.position() + 20);
    check_end(message, record);
    RdataReading::sound(server.as_bytes().to_vec())
}

/// The strings of a TXT or SPF record, each with its length, RFC 1035 section 3.3.14.
fn character_strings(kind: &str, message: &mut DnsMessage<'_>, mut data: &[u8]) -> RdataReading {
    let mut text = Vec::new();
    while let Some((string, rest)) = character_string(data) {
        if !text.is_empty() {
            text.push(b' ');
        }
        // Writing to a `Vec` cannot fail.
        let _ = write!(text, "{kind} {} ", string.len());
        text.extend_from_slice(string);
        data = rest;
    }
    if !data.is_empty() {
        message.weird("DNS_TXT_char_str_past_rdlen");
    }
    RdataReading { is_sound: data.is_empty(), ..RdataReading::sound(text) }
}

/// A length with as many octets, RFC 1035 section 3.3, and what follows.
fn character_string(data: &[u8]) -> Option<(&[u8], &[u8])> {
    let (&len, rest) = data.split_first()?;
    rest.split_at_checked(usize::from(len))
}

/// Order, preference, flags, service, expression and replacement, RFC 3403 section 4.1.
fn naptr(message: &mut DnsMessage<'_>, data: &[u8], record: &Resource) -> Option<Vec<u8>> {
    let (numbers, rest) = data.split_first_chunk::<4>()?;
    let (flags, rest) = character_string(rest)?;
    let (service, rest) = character_string(rest)?;
    let (expression, rest) = character_string(rest)?;
    let replacement = name(message, record, data.len() - rest.len())?;
    let number = |at: usize| u16::from_be_bytes([numbers[at], numbers[at + 1]]);
    let mut text = format!("NAPTR {} {} ", number(0), number(2)).into_bytes();
    text.extend_from_slice(&[flags, b" ", service, b" ", expression].concat());
    if !expression.is_empty() && !replacement.is_empty() {
        text.push(b' ');
    }
    text.extend_from_slice(&replacement);
    Some(text)
}

/// Which type is signed and by whom, RFC 4034 section 3.1.
fn rrsig(message: &mut DnsMessage<'_>, data: &[u8], record: &Resource) -> Option<Vec<u8>> {
    let fixed: &[u8; 18] = data.first_chunk()?;
    message.seek(record.data.start + fixed.len());
    let signer = message.name()?;
    let kind = u16::from_be_bytes([fixed[0], fixed[1]]);
    let signer = if signer.as_bytes().is_empty() { b"<Root>" } else { signer.as_bytes() };
    Some([format!("RRSIG {kind} ").as_bytes(), signer].concat())
}

/// The names between which there is none, RFC 4034 section 4.1.
fn nsec(message: &mut DnsMessage<'_>, record: &Resource) -> Option<Vec<u8>> {
    let next = message.name()?;
    Some([b"NSEC ", record.name.as_bytes(), b" ", next.as_bytes()].concat())
}
