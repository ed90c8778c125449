//! Syslog over UDP: RFC 5424 and RFC 3164, carried as RFC 5426 has it. A datagram is a message; what follows
//! its priority is told as it is.

use core::ops::RangeInclusive;
use core::str;
use std::borrow::Cow;

use netsniff_packet::Timestamp;

use super::{Datagram, DatagramVerdict, Findings, Protocol, Session, SessionContext};
use crate::record::{Connection, LogType, Proto};

crate::record! {
    /// One row for each message of syslog.
    pub(super) struct SyslogMessage => "syslog" {
        /// Time of the message.
        ts: Timestamp => "ts", time, Seconds, Plain, Zeek;
        connection Zeek, Self::place;
        /// Transport protocol.
        proto: Proto => "proto", enum, None, Plain, Zeek;
        /// Part of the system that speaks. It is `?-` with a number where the RFC has no such part, and
        /// `UNSPECIFIED` where the message has no priority.
        facility: Cow<'static, str> => "facility", string, None, Plain, Zeek;
        /// How severe it is; `UNSPECIFIED` where the message has no priority.
        severity: &'static str => "severity", string, None, Plain, Zeek;
        /// What follows the priority, all of it.
        message: Box<[u8]> => "message", string, None, FreeText, Zeek;
    }
}

/// Syslog over UDP (RFC 5426).
#[derive(Debug)]
pub(super) struct Syslog;

const PORT: u16 = 514;

/// The highest priority (RFC 5424, section 6.2.1).
const MAX_PRIORITY: u64 = 191;

/// The most octets behind the priority by which a message is told from other datagrams.
const LOOKED_AT: usize = 64;

/// Zeek's words for the facilities (RFC 5424, table 1).
const FACILITIES: [&str; 24] = [
    "KERN", "USER", "MAIL", "DAEMON", "AUTH", "SYSLOG", "LPR", "NEWS", "UUCP", "CRON", "AUTHPRIV",
    "FTP", "NTP", "AUDIT", "ALERT", "CLOCK", "LOCAL0", "LOCAL1", "LOCAL2", "LOCAL3", "LOCAL4",
    "LOCAL5", "LOCAL6", "LOCAL7",
];

/// Zeek's words for the severities (RFC 5424, table 2).
const SEVERITIES: [&str; 8] =
    ["EMERG", "ALERT", "CRIT", "ERR", "WARNING", "NOTICE", "INFO", "DEBUG"];

/// What stands in place of both where a message has no priority.
const UNSPECIFIED: &str = "UNSPECIFIED";

impl Protocol for Syslog {
    fn name(&self) -> &'static str {
        "syslog"
    }

    fn analyzer(&self) -> &'static str {
        "SYSLOG"
    }

    fn logs(&self) -> &'static [&'static LogType] {
        &[SyslogMessage::LOG]
    }

    fn udp_ports(&self) -> &'static [u16] {
        &[PORT]
    }

    fn datagram_heads(&self) -> &'static [RangeInclusive<u8>] {
        &[b'<'..=b'<']
    }

    /// A priority is short and of a form of its own. Text follows it, be it cut.
    fn detect_datagram(&self, payload: &[u8]) -> bool {
        let is_text = |octet: &u8| !octet.is_ascii_control() || b"\0\t\n\r".contains(octet);
        Priority::read(payload).is_some_and(|(priority, text)| {
            priority.is_regular && !text.is_empty() && text.iter().take(LOOKED_AT).all(is_text)
        })
    }

    fn session(&self, _: &SessionContext<'_>) -> Box<dyn Session> {
        Box::new(SyslogSession { is_confirmed: false })
    }
}

/// The messages of a flow, each of which is told for itself.
#[derive(Debug)]
struct SyslogSession {
    is_confirmed: bool,
}

impl Session for SyslogSession {
    fn datagram(&mut self, datagram: &Datagram<'_>, found: &mut Findings) -> DatagramVerdict {
        let priority = Priority::read(datagram.payload);
        self.is_confirmed |= priority.is_some_and(|(priority, _)| priority.is_regular);
        // On its port any datagram is a message (RFC 3164, section 4.3.3), elsewhere the priority tells.
        let is_message = priority.is_some() || datagram.port == PORT;
        if is_message && !datagram.payload.is_empty() {
            found.row(SyslogMessage::of(datagram.time, priority, datagram.payload));
        }
        DatagramVerdict::Fits
    }

    fn end(&mut self, _: &mut Findings) {}

    fn is_confirmed(&self) -> bool {
        self.is_confirmed
    }

    fn heap_bytes(&self) -> usize {
        size_of::<Self>()
    }
}

/// What a message begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Priority {
    facility: u8,
    severity: u8,
    /// Whether it is written as the RFC wants it, and not above the highest.
    is_regular: bool,
}

impl Priority {
    /// The priority of a message (RFC 5424, section 6.2.1) with what follows it. As in Zeek it may
    /// be any number.
    fn read(payload: &[u8]) -> Option<(Self, &[u8])> {
        let rest = payload.strip_prefix(b"<")?;
        let len = rest.iter().take_while(|octet| octet.is_ascii_digit()).count();
        let (digits, rest) = rest.split_at_checked(len)?;
        let message = rest.strip_prefix(b">")?;
        let value: u64 = str::from_utf8(digits).ok()?.parse().ok()?;
        let is_regular = value <= MAX_PRIORITY && (len == 1 || digits.first() != Some(&b'0'));
        // Ten bits, of which three are the severity.
        let [facility, severity] = [value >> 3 & 0x7f, value & 7].map(|bits| bits as u8);
        Some((Self { facility, severity, is_regular }, message))
    }

    fn facility(self) -> Cow<'static, str> {
        let word = FACILITIES.get(usize::from(self.facility));
        word.map_or_else(|| format!("?-{}", self.facility).into(), |&word| word.into())
    }

    fn severity(self) -> &'static str {
        SEVERITIES[usize::from(self.severity & 7)]
    }
}

impl SyslogMessage {
    fn of(ts: Timestamp, priority: Option<(Priority, &[u8])>, payload: &[u8]) -> Self {
        let proto = Proto::Udp;
        match priority {
            Some((priority, text)) => Self {
                ts,
                proto,
                facility: priority.facility(),
                severity: priority.severity(),
                message: text.into(),
            },
            None => Self {
                ts,
                proto,
                facility: UNSPECIFIED.into(),
                severity: UNSPECIFIED,
                message: payload.into(),
            },
        }
    }

    /// Sets what the connection tells.
    fn place(&mut self, connection: &Connection) {
        self.proto = connection.proto;
    }
}

#[cfg(test)]
mod tests {
    use super::super::Role;
    use super::*;

    /// Facility, severity and text of a message.
    fn parsed(payload: &[u8]) -> (String, &'static str, Vec<u8>) {
        let row = SyslogMessage::of(Timestamp::EPOCH, Priority::read(payload), payload);
        (row.facility.into_owned(), row.severity, row.message.into_vec())
    }

    /// How many rows datagrams make at a port, and whether they are confirmed.
    fn session(port: u16, payloads: &[&[u8]]) -> (usize, bool) {
        let (mut session, mut found) = (SyslogSession { is_confirmed: false }, Findings::default());
        for payload in payloads {
            let (time, from) = (Timestamp::EPOCH, Role::Originator);
            session.datagram(&Datagram { time, from, port, payload }, &mut found);
        }
        session.end(&mut found);
        assert!(found.weirds.is_empty());
        (found.records.len(), session.is_confirmed())
    }

    #[test]
    fn a_priority_is_facility_and_severity() {
        for (payload, facility, severity, text) in [
            (&b"<0>a"[..], "KERN", "EMERG", &b"a"[..]),
            (b"<34>1 - - su - - - x\n", "AUTH", "CRIT", b"1 - - su - - - x\n"),
            (b"<165>Aug 24 05:34:00 h p: x", "LOCAL4", "NOTICE", b"Aug 24 05:34:00 h p: x"),
            (b"<191>", "LOCAL7", "DEBUG", b""),
            (b"<013><14>\xff", "USER", "NOTICE", b"<14>\xff"),
            (b"<192>x", "?-24", "EMERG", b"x"),
            (b"<1023>x", "?-127", "DEBUG", b"x"),
            (b"<1024>x", "KERN", "EMERG", b"x"),
        ] {
            assert_eq!(parsed(payload), (facility.to_owned(), severity, text.to_vec()));
        }
    }

    #[test]
    fn what_has_no_priority_is_the_message_as_a_whole() {
        let beyond = b"<18446744073709551616>x";
        for payload in [&b"x"[..], b"<", b"<>", b"<1", b"<1x>", b"< 1>", b"<-1>", b"1>x", beyond] {
            let unspecified = (UNSPECIFIED.to_owned(), UNSPECIFIED, payload.to_vec());
            assert_eq!(parsed(payload), unspecified, "{payload:?}");
            assert_eq!(session(PORT, &[payload]), (1, false));
            assert_eq!(session(1514, &[payload]), (0, false));
        }
        assert_eq!(session(PORT, &[b""]), (0, false));
        assert_eq!(session(PORT, &[b"x", b"<192>x", b"<13>x", b"x"]), (4, true));
        assert_eq!(session(1514, &[b"<13>x", b"x", b"<13>x"]), (2, true));
    }

    #[test]
    fn a_message_is_known_by_its_priority_and_text() {
        for message in [&b"<13>x"[..], b"<0>1 ", b"<191>Aug 24\n\0", "<9>\u{feff}ä".as_bytes()] {
            assert!(Syslog.detect_datagram(message), "{message:?}");
        }
        let late = [&b"<13>"[..], &[b'x'; LOOKED_AT], &[1]].concat();
        assert!(Syslog.detect_datagram(&late));
        for other in [&b""[..], b"<13>", b"<192>x", b"<013>x", b"<00>x", b"<13>\x01", b"<13 x"] {
            assert!(!Syslog.detect_datagram(other), "{other:?}");
        }
    }

    #[test]
    fn messages_cut_or_changed_anywhere_do_no_harm() {
        let message = b"<165>1 2003-10-11T22:14:15.003Z host app 1 ID47 [a b=\"c\"] text";
        for at in 0..message.len() {
            let mut payloads = vec![message[..at].to_vec()];
            payloads.extend((0..=255).map(|octet| {
                let mut changed = message.to_vec();
                changed[at] = octet;
                changed
            }));
            for payload in payloads {
                let (facility, severity, text) = parsed(&payload);
                assert!(payload.ends_with(&text), "{payload:?}");
                let is_known = FACILITIES.contains(&facility.as_str());
                assert_eq!(is_known, facility != UNSPECIFIED && !facility.starts_with("?-"));
                assert_eq!(facility == UNSPECIFIED, severity == UNSPECIFIED);
                assert_eq!(session(PORT, &[&payload]).0, usize::from(!payload.is_empty()));
            }
        }
    }
}
