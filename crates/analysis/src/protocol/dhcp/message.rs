//! The octets of a message (RFC 2131, section 2) and its options (RFC 2132).

use std::borrow::Cow;

use netsniff_packet::{Address, Timestamp};

use crate::protocol::Role;
use crate::record::{Fact, Interval};

/// Length of the fields before the options.
const HEADER_LEN: usize = 236;

/// What options begin with (RFC 2131, section 3).
const COOKIE: [u8; 4] = [99, 130, 83, 99];

/// Options that are followed, by their codes.
mod code {
    pub(super) const PAD: u8 = 0;
    pub(super) const HOST_NAME: u8 = 12;
    pub(super) const DOMAIN_NAME: u8 = 15;
    pub(super) const REQUESTED_ADDRESS: u8 = 50;
    pub(super) const LEASE_TIME: u8 = 51;
    pub(super) const OVERLOAD: u8 = 52;
    pub(super) const MESSAGE_TYPE: u8 = 53;
    pub(super) const MESSAGE: u8 = 56;
    pub(super) const CLIENT_IDENTIFIER: u8 = 61;
    pub(super) const CLIENT_FQDN: u8 = 81;
    pub(super) const END: u8 = 255;
}

/// What a datagram is.
#[derive(Debug)]
pub(super) enum DhcpDatagram<'a> {
    /// A message of BOOTP or DHCP.
    Message {
        /// Its fields and options.
        options: Options<'a>,
        /// Whether it tells its type, without which it is one of BOOTP.
        is_typed: bool,
    },
    /// Nothing that has options of DHCP: a message of BOOTP, or of something else.
    NoCookie,
    /// A field, an option or their end is cut off.
    Malformed,
}

/// The fields and options of a message that are followed. Several options with one code are parts of
/// one value (RFC 3396, section 5); of those with the type the first one counts.
#[derive(Debug)]
pub(super) struct Options<'a> {
    header: &'a [u8; HEADER_LEN],
    kind: u8,
    overload: u8,
    host_name: Value<'a>,
    domain: Value<'a>,
    requested: Value<'a>,
    lease: Value<'a>,
    text: Value<'a>,
    identifier: Value<'a>,
    fqdn: Value<'a>,
}

/// The value of an option, in one part or joined of several.
type Value<'a> = Option<Cow<'a, [u8]>>;

/// The fields that may have options in place of names, and the bit of option 52 that says so (RFC
/// 2132, section 9.3), in the order in which their options follow those behind the cookie.
const OVERLOADED: [(u8, core::ops::Range<usize>); 2] = [(1, 108..236), (2, 44..108)];

pub(super) fn read(payload: &[u8]) -> DhcpDatagram<'_> {
    let Some((header, rest)) = payload.split_first_chunk::<HEADER_LEN>() else {
        return DhcpDatagram::Malformed;
    };
    let Some((cookie, rest)) = rest.split_first_chunk() else { return DhcpDatagram::Malformed };
    if *cookie != COOKIE {
        return DhcpDatagram::NoCookie;
    }
    match options(header, rest) {
        Some(options) => {
            let is_typed = options.kind != 0;
            DhcpDatagram::Message { options, is_typed }
        }
        None => DhcpDatagram::Malformed,
    }
}

/// Reads the options; `None` where those behind the cookie do not come to their end.
fn options<'a>(header: &'a [u8; HEADER_LEN], rest: &'a [u8]) -> Option<Options<'a>> {
    let mut options = Options {
        header,
        kind: 0,
        overload: 0,
        host_name: None,
        domain: None,
        requested: None,
        lease: None,
        text: None,
        identifier: None,
        fqdn: None,
    };
    options.walk(rest)?;
    for (bit, field) in OVERLOADED {
        if options.overload & bit != 0 {
            // Names are as long as their fields, so that a missing end cuts nothing off.
            let _ = options.walk(&header[field]);
        }
    }
    Some(options)
}

impl<'a> Options<'a> {
    /// Takes options up to their end; `None` where there is none.
    fn walk(&mut self, mut rest: &'a [u8]) -> Option<()> {
        loop {
            let (&code, behind) = rest.split_first()?;
            if code == code::END {
                return Some(());
            }
            if code == code::PAD {
                rest = behind;
                continue;
            }
            let (&len, behind) = behind.split_first()?;
            let (value, behind) = behind.split_at_checked(len.into())?;
            rest = behind;
            self.take(code, value);
        }
    }

    fn take(&mut self, code: u8, part: &'a [u8]) {
        let value = match code {
            code::HOST_NAME => &mut self.host_name,
            code::DOMAIN_NAME => &mut self.domain,
            code::REQUESTED_ADDRESS => &mut self.requested,
            code::LEASE_TIME => &mut self.lease,
            code::MESSAGE => &mut self.text,
            code::CLIENT_IDENTIFIER => &mut self.identifier,
            code::CLIENT_FQDN => &mut self.fqdn,
            code::OVERLOAD => {
                self.overload |= part.first().copied().unwrap_or(0);
                return;
            }
            code::MESSAGE_TYPE if self.kind == 0 => {
                self.kind = part.first().copied().unwrap_or(0);
                return;
            }
            _ => return,
        };
        match value {
            Some(value) => value.to_mut().extend_from_slice(part),
            None => *value = Some(Cow::Borrowed(part)),
        }
    }
}

/// What is followed of a message.
#[derive(Clone, Debug)]
pub(super) struct DhcpMessage {
    /// When it was seen.
    pub(super) time: Timestamp,
    /// Who sent it, in its flow.
    pub(super) from: Role,
    /// Transaction identifier, which the answers repeat.
    pub(super) xid: u32,
    /// Its type; 0 where it has none.
    pub(super) kind: u8,
    /// Whether it is a server's: a reply of BOOTP.
    pub(super) is_reply: bool,
    /// Whether a relay passed it on.
    pub(super) is_relayed: bool,
    /// The client's hardware address, from the field and from the client identifier.
    pub(super) hardware: Option<String>,
    pub(super) identifier: Option<String>,
    /// The address that the server gives ("yours").
    pub(super) assigned: Option<Address>,
    pub(super) requested: Option<Address>,
    pub(super) lease: Option<Interval>,
    pub(super) host_name: Option<Box<[u8]>>,
    pub(super) fqdn: Option<Box<[u8]>>,
    pub(super) domain: Option<Box<[u8]>>,
    /// What it says in words.
    pub(super) text: Option<Box<[u8]>>,
}

impl Fact for DhcpMessage {
    fn heap_bytes(&self) -> usize {
        let strings = [&self.hardware, &self.identifier].into_iter().flatten();
        let texts = [&self.host_name, &self.fqdn, &self.domain, &self.text].into_iter().flatten();
        strings.map(String::capacity).sum::<usize>() + texts.map(|text| text.len()).sum::<usize>()
    }
}

impl DhcpMessage {
    /// What is followed of a message that `from` sent at `time`.
    pub(super) fn new(time: Timestamp, from: Role, options: &Options<'_>) -> Self {
        let header = options.header;
        let word = |at: usize| [0, 1, 2, 3].map(|i| header[at + i]);
        let address = |octets: [u8; 4]| (octets != [0; 4]).then(|| Address::from_v4(octets));
        let four = |value: &Value<'_>| value.as_ref().and_then(|it| it.first_chunk().copied());
        let text = |value: &Value<'_>| value.as_ref().map(|it| Box::from(&**it));
        Self {
            time,
            from,
            xid: u32::from_be_bytes(word(4)),
            kind: options.kind,
            is_reply: header[0] == 2,
            is_relayed: word(24) != [0; 4],
            hardware: hardware(&header[28..44]),
            // RFC 2132, section 9.14: the type of hardware comes first, and 1 is Ethernet.
            identifier: match options.identifier.as_deref() {
                Some([1, octets @ ..]) => Some(hardware(octets).unwrap_or_default()),
                _ => None,
            },
            assigned: address(word(16)),
            requested: four(&options.requested).map(Address::from_v4),
            lease: four(&options.lease).map(|octets| {
                Interval::from_nanos(i64::from(u32::from_be_bytes(octets)) * 1_000_000_000)
            }),
            host_name: text(&options.host_name),
            // RFC 4702, section 2: three octets come before the name.
            fqdn: options.fqdn.as_ref().and_then(|value| value.get(3..)).map(Into::into),
            domain: options.domain.as_ref().map(|value| without_nuls(value).into()),
            text: text(&options.text),
        }
    }
}

/// Octets without the NULs that they end with.
fn without_nuls(octets: &[u8]) -> &[u8] {
    let len = octets.iter().rposition(|&octet| octet != 0).map_or(0, |last| last + 1);
    octets.get(..len).unwrap_or_default()
}

/// A hardware address of six octets, or of eight if the last two of these are not zero; `None` where
/// there are not as many.
fn hardware(octets: &[u8]) -> Option<String> {
    let octets = match octets {
        [_, _, _, _, _, _] => octets,
        [first @ .., 0, 0] if first.len() == 6 => first,
        [_, _, _, _, _, _, 0, 0, ..] => octets.get(..6)?,
        _ => octets.get(..8)?,
    };
    Some(colons(octets))
}

/// Octets in hexadecimal digits with colons between.
pub(in crate::protocol) fn colons(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect::<Vec<_>>().join(":")
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A message with these options behind the cookie.
    pub(crate) fn message(reply: bool, options: &[u8]) -> Vec<u8> {
        let mut message = vec![0; HEADER_LEN];
        message[..8].copy_from_slice(&[1 + u8::from(reply), 1, 6, 0, 0, 0, 7, 0xc0]);
        message[28..34].copy_from_slice(&[0x90, 0xb1, 0x1c, 0x99, 0x49, 0x29]);
        message.extend_from_slice(&COOKIE);
        message.extend_from_slice(options);
        message
    }

    fn parsed(payload: &[u8]) -> Option<DhcpMessage> {
        match read(payload) {
            DhcpDatagram::Message { options, .. } => {
                Some(DhcpMessage::new(Timestamp::EPOCH, Role::Originator, &options))
            }
            _ => None,
        }
    }

    #[test]
    fn options_are_read() {
        let options = [
            &[53, 1, 3, 0, 0, 12, 4][..],
            b"desk",
            &[50, 4, 192, 0, 2, 7, 51, 4, 0, 0, 14, 16, 15, 5],
            b"a.b\0\0",
            &[81, 7, 0, 255, 255],
            b"d.e.",
            &[61, 7, 1, 2, 0, 94, 0, 83, 17, 56, 2],
            b"no",
            &[255],
        ]
        .concat();
        let message = parsed(&message(true, &options)).unwrap();
        assert_eq!((message.xid, message.kind, message.is_reply), (0x7c0, 3, true));
        assert_eq!(message.hardware.as_deref(), Some("90:b1:1c:99:49:29"));
        assert_eq!(message.identifier.as_deref(), Some("02:00:5e:00:53:11"));
        assert_eq!(message.host_name.as_deref(), Some(&b"desk"[..]));
        assert_eq!(message.requested, Some(Address::from_v4([192, 0, 2, 7])));
        assert_eq!(message.lease.map(Interval::nanos), Some(3_600_000_000_000));
        assert_eq!(message.domain.as_deref(), Some(&b"a.b"[..]));
        assert_eq!(message.fqdn.as_deref(), Some(&b"d.e."[..]));
        assert_eq!(message.text.as_deref(), Some(&b"no"[..]));
        assert_eq!(message.assigned, None);
    }

    #[test]
    fn options_that_do_not_end_are_no_message() {
        let whole = message(false, &[53, 1, 1, 12, 2, b'a', b'b', 255]);
        assert!(parsed(&whole).is_some());
        for len in 0..whole.len() {
            assert!(parsed(&whole[..len]).is_none(), "{len} octets");
        }
        let mut other = whole;
        other[HEADER_LEN] ^= 1;
        assert!(matches!(read(&other), DhcpDatagram::NoCookie));
    }

    #[test]
    fn the_first_type_counts_and_parts_of_other_options_are_joined() {
        // RFC 3396, section 5: neighbours or not.
        let options =
            [53, 1, 1, 53, 1, 5, 12, 1, b'a', 12, 1, b'b', 15, 1, b'x', 12, 2, b'c', b'd', 255];
        let message = parsed(&message(false, &options)).unwrap();
        assert_eq!((message.kind, message.host_name.as_deref()), (1, Some(&b"abcd"[..])));
        assert_eq!(message.domain.as_deref(), Some(&b"x"[..]));
    }

    /// A message with options in the fields `file` and `sname`, which only option 52 makes options.
    fn overloaded(options: &[u8], file: &[u8], sname: &[u8]) -> DhcpMessage {
        let mut message = message(true, options);
        message[108..][..file.len()].copy_from_slice(file);
        message[44..][..sname.len()].copy_from_slice(sname);
        parsed(&message).unwrap()
    }

    #[test]
    fn options_stand_in_other_fields_where_one_says_so() {
        let file =
            [&[0, 0, 56, 4][..], b"file", &[50, 4, 192, 0, 2, 7, 12, 2], b"ho", &[255]].concat();
        let sname = [&[56, 5][..], b"sname", &[51, 4, 0, 0, 14, 16, 12, 2], b"st", &[255]].concat();
        for (overload, text, host, requested, lease) in [
            (0, "text", None, false, false),
            (1, "textfile", Some("ho"), true, false),
            (2, "textsname", Some("st"), false, true),
            (3, "textfilesname", Some("host"), true, true),
        ] {
            for place in 0..3 {
                let mut options = vec![&[53, 1, 2][..], &[56, 4, b't', b'e', b'x', b't']];
                let which = [52, 1, overload];
                options.insert(place, &which);
                options.push(&[255]);
                let told = overloaded(&options.concat(), &file, &sname);
                let string = |text: &Option<Box<[u8]>>| {
                    text.as_deref().map(|it| String::from_utf8_lossy(it).into_owned())
                };
                assert_eq!(string(&told.text).as_deref(), Some(text), "{overload} at {place}");
                assert_eq!(string(&told.host_name).as_deref(), host);
                assert_eq!((told.requested.is_some(), told.lease.is_some()), (requested, lease));
            }
        }
        // The type, too, and a value that begins behind the cookie.
        let told =
            overloaded(&[52, 1, 1, 12, 2, b'a', b'b', 255], &[12, 1, b'c', 53, 1, 5, 255], &[]);
        assert_eq!((told.kind, told.host_name.as_deref()), (5, Some(&b"abc"[..])));
        // A field without an end ends with its last octet.
        let told =
            overloaded(&[53, 1, 2, 52, 1, 2, 255], &[], &[&[15, 62][..], &[b'x'; 62]].concat());
        assert_eq!(told.domain.as_deref(), Some(&[b'x'; 62][..]));
    }

    #[test]
    fn options_of_a_wrong_length_are_unset() {
        let options = [53, 1, 1, 50, 3, 1, 2, 3, 51, 0, 61, 3, 1, 2, 3, 81, 2, 0, 0, 255];
        let message = parsed(&message(false, &options)).unwrap();
        assert_eq!((message.requested, message.lease, message.fqdn), (None, None, None));
        assert_eq!(message.identifier.as_deref(), Some(""), "as in Zeek");
    }

    #[test]
    fn hardware_addresses_have_six_octets_or_eight() {
        let text = |octets: &[u8]| hardware(octets).unwrap_or_default();
        assert_eq!(text(&[1, 2, 3, 4, 5, 6]), "01:02:03:04:05:06");
        assert_eq!(text(&[1, 2, 3, 4, 5, 6, 0, 0]), "01:02:03:04:05:06");
        assert_eq!(text(&[1, 2, 3, 4, 5, 6, 7, 8]), "01:02:03:04:05:06:07:08");
        assert_eq!(text(&[1, 2, 3, 4, 5, 6, 0, 0, 9]), "01:02:03:04:05:06");
        assert_eq!(text(&[1, 2, 3, 4, 5, 6, 7]), "");
        assert_eq!(text(&[]), "");
    }
}
