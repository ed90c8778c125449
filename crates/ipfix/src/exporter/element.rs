//! THE list of elements that are told, from which templates, records and their documentation come.

use netsniff_packet::{Address, Timestamp};

use super::connection::Connection;
use crate::element::REVERSE;

/// Who gave an element its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Number {
    /// IANA's registry.
    Iana(u16),
    /// The same registry, of the opposite direction (RFC 5103).
    Reverse(u16),
    /// netsniff, below the enterprise number that the user sets.
    Own(u16),
}

/// An abstract data type (RFC 7011, 6.1), and how it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// unsigned8.
    Unsigned8,
    /// unsigned16.
    Unsigned16,
    /// unsigned32.
    Unsigned32,
    /// unsigned64.
    Unsigned64,
    /// ipv4Address.
    Ipv4,
    /// ipv6Address.
    Ipv6,
    /// dateTimeMilliseconds.
    Milliseconds,
    /// dateTimeNanoseconds.
    Nanoseconds,
    /// string, of any length.
    Text,
}

impl Type {
    /// Its name in RFC 7012.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unsigned8 => "unsigned8",
            Self::Unsigned16 => "unsigned16",
            Self::Unsigned32 => "unsigned32",
            Self::Unsigned64 => "unsigned64",
            Self::Ipv4 => "ipv4Address",
            Self::Ipv6 => "ipv6Address",
            Self::Milliseconds => "dateTimeMilliseconds",
            Self::Nanoseconds => "dateTimeNanoseconds",
            Self::Text => "string",
        }
    }

    /// Its bytes, as a template tells them.
    pub(super) const fn length(self) -> u16 {
        match self {
            Self::Unsigned8 => 1,
            Self::Unsigned16 => 2,
            Self::Unsigned32 | Self::Ipv4 => 4,
            Self::Unsigned64 | Self::Milliseconds | Self::Nanoseconds => 8,
            Self::Ipv6 => 16,
            Self::Text => crate::template::VARIABLE,
        }
    }
}

/// A value on its way.
#[derive(Clone, Copy, Debug)]
pub(super) enum Value<'a> {
    Number(u64),
    Address(Address),
    Time(Timestamp),
    Text(&'a str),
}

/// Elements that a record has or has not. Which of them it has is its template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Addresses of IPv6.
    Ipv6,
    /// Type and code of ICMP, in place of ports.
    Icmp,
    /// Times in nanoseconds.
    Nanoseconds,
    /// The time of the last packet.
    End,
    /// Payload bytes of the originator.
    OrigBytes,
    /// Payload bytes of the responder.
    RespBytes,
    /// TCP flags.
    Flags,
    /// The reason of the end.
    Ended,
    /// A VLAN.
    Vlan,
    /// An inner VLAN.
    InnerVlan,
    /// Missing bytes.
    Missed,
    /// Bytes that the capture lost.
    CaptureMissed,
    /// Bytes that the network lost.
    NetworkMissed,
    /// Wrong checksums.
    BadChecksums,
    /// A share of connections.
    Sampling,
}

impl Group {
    /// All groups, in the order of their weights.
    pub const ALL: [(Self, &'static str); 15] = [
        (Self::Ipv6, "an address is of IPv6; the other one may be IPv4-mapped"),
        (Self::Icmp, "the protocol is ICMP or ICMPv6: type and code in place of ports"),
        (Self::Nanoseconds, "`time=ns`: times in nanoseconds in place of milliseconds"),
        (Self::End, "`duration` is set, or there was one packet alone"),
        (Self::OrigBytes, "`orig_bytes` is set"),
        (Self::RespBytes, "`resp_bytes` is set"),
        (Self::Flags, "TCP, and `history` is set"),
        (Self::Ended, "TCP, and a FIN of both sides or a RST ended it, as `conn_state` tells"),
        (Self::Vlan, "`vlan` is set"),
        (Self::InnerVlan, "`inner_vlan` is set"),
        (Self::Missed, "`missed_bytes` is set"),
        (Self::CaptureMissed, "`capture_missed_bytes` is set"),
        (Self::NetworkMissed, "`network_missed_bytes` is set"),
        (Self::BadChecksums, "`bad_checksums` is set"),
        (Self::Sampling, "`sampling` is set"),
    ];

    /// What it adds to the number of a template.
    #[must_use]
    pub const fn weight(self) -> u16 {
        1 << self as u16
    }

    const fn holds(self, told: &Connection<'_>, is_nanoseconds: bool) -> bool {
        match self {
            Self::Ipv6 => !(told.originator.is_v4() && told.responder.is_v4()),
            Self::Icmp => told.icmp.is_some(),
            Self::Nanoseconds => is_nanoseconds,
            Self::End => told.end.is_some(),
            Self::OrigBytes => told.sent[0].payload_octets.is_some(),
            Self::RespBytes => told.sent[1].payload_octets.is_some(),
            Self::Flags => told.tcp_flags.is_some(),
            Self::Ended => told.is_ended,
            Self::Vlan => told.vlan.is_some(),
            Self::InnerVlan => told.inner_vlan.is_some(),
            Self::Missed => told.missed.is_some(),
            Self::CaptureMissed => told.capture_missed.is_some(),
            Self::NetworkMissed => told.network_missed.is_some(),
            Self::BadChecksums => told.bad_checksums.is_some(),
            Self::Sampling => told.sampling.is_some(),
        }
    }
}

/// The groups of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Groups(pub(super) u16);

impl Groups {
    pub(super) fn of(told: &Connection<'_>, is_nanoseconds: bool) -> Self {
        let held = Group::ALL.iter().filter(|(group, _)| group.holds(told, is_nanoseconds));
        Self(held.map(|(group, _)| group.weight()).sum())
    }

    const fn has(self, group: Group) -> bool {
        self.0 & group.weight() != 0
    }

    /// The elements of such a record.
    pub(super) fn elements(self) -> impl Iterator<Item = &'static Element> {
        let has = move |group: &Group| self.has(*group);
        ELEMENTS
            .iter()
            .filter(move |element| element.with.iter().all(has) && !element.without.iter().any(has))
    }
}

/// An element of records of connections.
#[derive(Debug)]
pub struct Element {
    /// Its name, in IANA's registry or of our own.
    pub name: &'static str,
    /// Its number.
    pub number: Number,
    /// Its type.
    pub kind: Type,
    /// The columns of `conn`, or members of the row's name, that it comes from.
    pub columns: &'static [&'static str],
    /// What is to be known besides.
    pub note: &'static str,
    /// Records have it with all of these groups.
    pub with: &'static [Group],
    /// Records have it without any of these groups.
    pub without: &'static [Group],
    /// Its value; `None` only in records that do not have it.
    pub(super) value: for<'a> fn(&Connection<'a>) -> Option<Value<'a>>,
}

macro_rules! elements {
    ($(
        $name:ident, $origin:ident $number:literal, $kind:ident, [$($column:literal)*],
        $note:literal, [$($with:ident)*], [$($without:ident)*], $value:expr;
    )+) => {
        /// Every element of records of connections, in the order in which records have them.
        pub const ELEMENTS: &[Element] = &[$(Element {
            name: stringify!($name),
            number: Number::$origin($number),
            kind: Type::$kind,
            columns: &[$($column),*],
            note: $note,
            with: &[$(Group::$with),*],
            without: &[$(Group::$without),*],
            value: $value,
        },)+];
    };
}

// What every collector knows stands first, so that whoever reads no further has it.
elements! {
    flowStartMilliseconds, Iana 152, Milliseconds, ["ts"], "of both directions together",
        [], [Nanoseconds], |of| Some(Value::Time(of.start));
    flowEndMilliseconds, Iana 153, Milliseconds, ["ts" "duration"], "of both directions together",
        [End], [Nanoseconds], |of| of.end.map(Value::Time);
    flowStartNanoseconds, Iana 156, Nanoseconds, ["ts"], "of both directions together",
        [Nanoseconds], [], |of| Some(Value::Time(of.start));
    flowEndNanoseconds, Iana 157, Nanoseconds, ["ts" "duration"], "of both directions together",
        [Nanoseconds End], [], |of| of.end.map(Value::Time);
    sourceIPv4Address, Iana 8, Ipv4, ["id.orig_h"], "",
        [], [Ipv6], |of| Some(Value::Address(of.originator));
    destinationIPv4Address, Iana 12, Ipv4, ["id.resp_h"], "",
        [], [Ipv6], |of| Some(Value::Address(of.responder));
    sourceIPv6Address, Iana 27, Ipv6, ["id.orig_h"], "",
        [Ipv6], [], |of| Some(Value::Address(of.originator));
    destinationIPv6Address, Iana 28, Ipv6, ["id.resp_h"], "",
        [Ipv6], [], |of| Some(Value::Address(of.responder));
    sourceTransportPort, Iana 7, Unsigned16, ["id.orig_p"], "0 for protocols without ports",
        [], [Icmp], |of| Some(Value::Number(of.ports[0].into()));
    destinationTransportPort, Iana 11, Unsigned16, ["id.resp_p"], "0 for protocols without ports",
        [], [Icmp], |of| Some(Value::Number(of.ports[1].into()));
    icmpTypeCodeIPv4, Iana 32, Unsigned16, ["id.orig_p" "id.resp_p"],
        "type and code; where `id.resp_p` has the type of the answer, the code is written as 0",
        [Icmp], [Ipv6], icmp;
    icmpTypeCodeIPv6, Iana 139, Unsigned16, ["id.orig_p" "id.resp_p"],
        "type and code; where `id.resp_p` has the type of the answer, the code is written as 0",
        [Icmp Ipv6], [], icmp;
    protocolIdentifier, Iana 4, Unsigned8, ["ip_proto"], "",
        [], [], |of| Some(Value::Number(of.protocol.into()));
    packetDeltaCount, Iana 2, Unsigned64, ["orig_pkts"], "",
        [], [], |of| Some(Value::Number(of.sent[0].packets));
    octetDeltaCount, Iana 1, Unsigned64, ["orig_ip_bytes"], "",
        [], [], |of| Some(Value::Number(of.sent[0].octets));
    packetDeltaCount, Reverse 2, Unsigned64, ["resp_pkts"], "",
        [], [], |of| Some(Value::Number(of.sent[1].packets));
    octetDeltaCount, Reverse 1, Unsigned64, ["resp_ip_bytes"], "",
        [], [], |of| Some(Value::Number(of.sent[1].octets));
    tcpControlBits, Reverse 6, Unsigned16, ["history"],
        "SYN, ACK, FIN and RST as small letters tell them: `s`, `h`, `a`, `f`, `r` and `i`. No column has the other bits, which are 0",
        [Flags], [], |of| of.tcp_flags.map(|[_, flags]| Value::Number(flags.into()));
    tcpControlBits, Iana 6, Unsigned16, ["history"],
        "the same of large letters; it stands behind the reverse one, since nfdump 1.7.1 has one place for both",
        [Flags], [], |of| of.tcp_flags.map(|[flags, _]| Value::Number(flags.into()));
    biflowDirection, Iana 239, Unsigned8, [], "1: the source is the originator",
        [], [], |_| Some(Value::Number(1));
    flowEndReason, Iana 136, Unsigned8, ["conn_state"],
        "3 (its end was seen), where it was; `conn` does not tell the reasons of others",
        [Ended], [], |_| Some(Value::Number(3));
    vlanId, Iana 58, Unsigned16, ["vlan"], "",
        [Vlan], [], |of| of.vlan.map(|id| Value::Number(id.into()));
    dot1qCustomerVlanId, Iana 245, Unsigned16, ["inner_vlan"], "",
        [InnerVlan], [], |of| of.inner_vlan.map(|id| Value::Number(id.into()));
    transportOctetDeltaCount, Iana 401, Unsigned64, ["orig_bytes"], "",
        [OrigBytes], [], |of| of.sent[0].payload_octets.map(Value::Number);
    transportOctetDeltaCount, Reverse 401, Unsigned64, ["resp_bytes"], "",
        [RespBytes], [], |of| of.sent[1].payload_octets.map(Value::Number);
    applicationName, Iana 96, Text, ["service"], "empty where it is unset",
        [], [], |of| Some(Value::Text(of.service));
    sensor, Own 1, Text, ["sensor"], "",
        [], [], |of| Some(Value::Text(of.sensor));
    run, Own 2, Text, ["run"], "",
        [], [], |of| Some(Value::Text(of.run));
    seq, Own 3, Unsigned64, ["seq"], "without gaps in a run",
        [], [], |of| Some(Value::Number(of.seq));
    uid, Own 4, Text, ["uid"], "",
        [], [], |of| Some(Value::Text(of.uid));
    quality, Own 5, Text, ["quality"], "`clean`, `touched`, `suspect` or `unknown`",
        [], [], |of| Some(Value::Text(of.quality));
    depth, Own 6, Text, ["depth"], "",
        [], [], |of| Some(Value::Text(of.depth));
    state, Own 7, Text, ["conn_state"], "empty where it is unset",
        [], [], |of| Some(Value::Text(of.state));
    history, Own 8, Text, ["history"], "empty where it is unset",
        [], [], |of| Some(Value::Text(of.history));
    missedBytes, Own 9, Unsigned64, ["missed_bytes"], "",
        [Missed], [], |of| of.missed.map(Value::Number);
    captureMissedBytes, Own 10, Unsigned64, ["capture_missed_bytes"], "",
        [CaptureMissed], [], |of| of.capture_missed.map(Value::Number);
    networkMissedBytes, Own 11, Unsigned64, ["network_missed_bytes"], "",
        [NetworkMissed], [], |of| of.network_missed.map(Value::Number);
    badChecksums, Own 12, Unsigned64, ["bad_checksums"], "",
        [BadChecksums], [], |of| of.bad_checksums.map(Value::Number);
    sampling, Own 13, Unsigned64, ["sampling"], "",
        [Sampling], [], |of| of.sampling.map(Value::Number);
}

fn icmp<'a>(of: &Connection<'a>) -> Option<Value<'a>> {
    of.icmp.map(|(kind, code)| Value::Number(u64::from(kind) << 8 | u64::from(code)))
}

/// An element of the record that ends a run.
#[derive(Debug)]
pub struct EndElement {
    /// Its name.
    pub name: &'static str,
    /// Its number.
    pub number: Number,
    /// Its type.
    pub kind: Type,
    /// Whether it tells what the others are of (RFC 7011, 3.4.2.1).
    pub is_scope: bool,
    /// What it tells.
    pub doc: &'static str,
}

const fn end(
    name: &'static str,
    number: Number,
    kind: Type,
    is_scope: bool,
    doc: &'static str,
) -> EndElement {
    EndElement { name, number, kind, is_scope, doc }
}

/// Every element of the record that ends a run; those that are scopes stand first.
pub const END: &[EndElement] = &[
    end("observationDomainId", Number::Iana(149), Type::Unsigned32, true, "that of the message"),
    end("sensor", Number::Own(1), Type::Text, true, "who watched"),
    end("run", Number::Own(2), Type::Text, true, "the analysis"),
    end(
        "exportedOctetTotalCount",
        Number::Iana(40),
        Type::Unsigned64,
        false,
        "bytes of messages that this process sent to this collector, without those of this message",
    ),
    end(
        "exportedMessageTotalCount",
        Number::Iana(41),
        Type::Unsigned64,
        false,
        "messages that it sent, without this one",
    ),
    end(
        "exportedFlowRecordTotalCount",
        Number::Iana(42),
        Type::Unsigned64,
        false,
        "records of connections that it sent before this record, with those sent again",
    ),
    end(
        "rows",
        Number::Own(14),
        Type::Unsigned64,
        false,
        "rows that the log `conn` of this run has",
    ),
];

impl Number {
    /// The number with the bit that says whether an enterprise follows, and that enterprise.
    pub(super) const fn written(self, own: u32) -> (u16, Option<u32>) {
        const ENTERPRISE: u16 = 0x8000;
        match self {
            Self::Iana(id) => (id, None),
            Self::Reverse(id) => (id | ENTERPRISE, Some(REVERSE)),
            Self::Own(id) => (id | ENTERPRISE, Some(own)),
        }
    }
}
