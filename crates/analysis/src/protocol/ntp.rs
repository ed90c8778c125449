//! NTP, RFC 5905, with its control messages (RFC 9327) and those of mode 7, which ntpd has for
//! itself.

use core::net::Ipv4Addr;

use netsniff_packet::Timestamp;

use super::{Datagram, DatagramVerdict, Findings, Protocol, Role, Session, SessionContext};
use crate::record::{Interval, LogType};

crate::record! {
    /// One row for each message of the Network Time Protocol. Messages that control or query a
    /// server (modes 6 and 7) show in `service` of `conn` only.
    pub(super) struct NtpMessage => "ntp" {
        /// Time of the message.
        ts: Timestamp => "ts", time, Seconds, Plain, Zeek;
        connection Zeek;
        /// Version of the protocol.
        version: u8 => "version", count, None, Plain, Zeek;
        /// Who speaks: 1 and 2 peers, 3 a client, 4 a server, 5 a server that broadcasts; 0 is
        /// reserved, and such a message tells nothing more.
        mode: u8 => "mode", count, None, Plain, Zeek;
        /// Distance from a reference clock; 0 is not synchronised, 1 has the clock itself.
        stratum: Option<u8> => "stratum", count, None, Plain, Zeek;
        /// The longest time between two messages of the sender; unset beyond 2^33 seconds.
        poll: Option<Interval> => "poll", interval, Seconds, Plain, Zeek;
        /// Precision of the sender's clock; unset beyond 2^33 seconds.
        precision: Option<Interval> => "precision", interval, Seconds, Plain, Zeek;
        /// Round-trip time to the reference clock.
        root_delay: Option<Interval> => "root_delay", interval, Seconds, Plain, Zeek;
        /// How far the reference clock may be off.
        root_disp: Option<Interval> => "root_disp", interval, Seconds, Plain, Zeek;
        /// The reference: of stratum 0 a code for why, of stratum 1 the kind of clock, else the
        /// address of the server, for IPv6 the first four bytes of its MD5 hash.
        ref_id: Option<Box<[u8]>> => "ref_id", string, None, Address, Zeek;
        /// When the sender's clock was last set; 0 seconds where it never was.
        ref_time: Option<Timestamp> => "ref_time", time, Seconds, Plain, Zeek;
        /// When the message that this one answers left, by the clock of who asked.
        org_time: Option<Timestamp> => "org_time", time, Seconds, Plain, Zeek;
        /// When that message arrived, by the clock of who answers.
        rec_time: Option<Timestamp> => "rec_time", time, Seconds, Plain, Zeek;
        /// When this message left, by the sender's clock.
        xmt_time: Option<Timestamp> => "xmt_time", time, Seconds, Plain, Zeek;
        /// Number of extension fields.
        num_exts: u64 => "num_exts", count, None, Plain, Zeek;
    }
}

/// NTP over UDP (RFC 5905).
#[derive(Debug)]
pub(super) struct Ntp;

/// Length of the header of modes 1 to 5, RFC 5905 section 7.3.
const HEADER_LEN: usize = 48;

/// What may stand behind the header and is no extension field: a key and a digest of at most 160 bits
/// (RFC 5905, section 7.5, as RFC 7822 words it).
const LONGEST_MAC: usize = 24;

/// The shortest extension field (the same section).
const SHORTEST_EXTENSION: usize = 16;

/// Seconds from the era of NTP, 1900, to that of Unix.
const UNIX_EPOCH: i64 = 2_208_988_800;

/// The mode of a client's messages.
const CLIENT: u8 = 3;
/// The mode of a server's messages.
const SERVER: u8 = 4;

impl Protocol for Ntp {
    fn name(&self) -> &'static str {
        "ntp"
    }

    fn analyzer(&self) -> &'static str {
        "NTP"
    }

    fn logs(&self) -> &'static [&'static LogType] {
        &[NtpMessage::LOG]
    }

    fn udp_ports(&self) -> &'static [u16] {
        &[123]
    }

    /// Peers, broadcasts and control messages do not tell.
    fn sender(&self, _port: u16, payload: &[u8]) -> Option<Role> {
        match payload.first().filter(|_| is_whole(payload))? & 7 {
            CLIENT => Some(Role::Originator),
            SERVER => Some(Role::Responder),
            _ => None,
        }
    }

    fn is_datagram_alone(&self) -> bool {
        true
    }

    fn is_known_by_port(&self) -> bool {
        true
    }

    fn session(&self, _: &SessionContext<'_>) -> Box<dyn Session> {
        Box::new(NtpSession { is_confirmed: false, has_told: false })
    }
}

/// The messages between two hosts, each of which is told for itself.
#[derive(Debug)]
struct NtpSession {
    is_confirmed: bool,
    /// Whether a message that is none was told.
    has_told: bool,
}

impl Session for NtpSession {
    fn datagram(&mut self, datagram: &Datagram<'_>, found: &mut Findings) -> DatagramVerdict {
        let Some(&first) = datagram.payload.first() else { return DatagramVerdict::Fits };
        if !is_whole(datagram.payload) {
            if !core::mem::replace(&mut self.has_told, true) {
                found.weirds.add("NTP_malformed_message");
            }
            return DatagramVerdict::Contradicts;
        }
        self.is_confirmed = true;
        let [version, mode] = [first >> 3 & 7, first & 7];
        if mode <= 5 {
            let mut message = NtpMessage::of(datagram.time, version, mode);
            if mode != 0 {
                message.clock(datagram.payload);
            }
            found.row(message);
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

/// Whether a datagram has all that its mode wants.
fn is_whole(payload: &[u8]) -> bool {
    match payload {
        [] => false,
        // The reserved mode has no form.
        [first, ..] if first & 7 == 0 => true,
        [first, ..] if first & 7 <= 5 => {
            payload.get(HEADER_LEN..).is_some_and(|rest| extensions(rest).is_some())
        }
        // RFC 9327, section 2: the count of octets that follow is the last field.
        [first, .., _] if first & 7 == 6 => payload.first_chunk::<12>().is_some_and(|header| {
            let count = usize::from(u16::from_be_bytes([header[10], header[11]]));
            payload.len() >= 12 + count
        }),
        // As in Zeek: the number of items counts for the octets that there are at least, and a
        // message with the A bit ends in a key and a digest.
        [_, second, _, _, high, low, ..] => {
            let items = usize::from(u16::from_be_bytes([high & 0xf, *low]));
            let mac = if second & 0x80 == 0 { 0 } else { 20 };
            payload.len() >= 6 + items + mac
        }
        _ => false,
    }
}

/// The number of extension fields that `rest`, what follows the header, begins with; `None`
/// where the length of one is wrong.
fn extensions(mut rest: &[u8]) -> Option<u64> {
    let mut count = 0;
    while rest.len() > LONGEST_MAC {
        let len = usize::from(u16::from_be_bytes([rest[2], rest[3]]));
        if len < SHORTEST_EXTENSION {
            return None;
        }
        rest = rest.get(len..)?;
        count += 1;
    }
    Some(count)
}

impl NtpMessage {
    /// A message of which nothing is told but its version and mode.
    const fn of(ts: Timestamp, version: u8, mode: u8) -> Self {
        Self {
            ts,
            version,
            mode,
            stratum: None,
            poll: None,
            precision: None,
            root_delay: None,
            root_disp: None,
            ref_id: None,
            ref_time: None,
            org_time: None,
            rec_time: None,
            xmt_time: None,
            num_exts: 0,
        }
    }

    /// Takes what modes 1 to 5 tell of the sender's clock.
    fn clock(&mut self, payload: &[u8]) {
        let Some(header) = payload.first_chunk::<HEADER_LEN>() else { return };
        let [_, stratum, poll, precision, ..] = *header;
        let word = |at: usize| u32::from_be_bytes([0, 1, 2, 3].map(|i| header[at + i]));
        let code = word(12).to_be_bytes();
        let [reference, origin, receive, transmit] =
            [16, 24, 32, 40].map(|at| Some(timestamp(word(at), word(at + 4))));
        self.stratum = Some(stratum);
        self.poll = power_of_two(poll.cast_signed());
        self.precision = power_of_two(precision.cast_signed());
        self.root_delay = Some(short(word(4)));
        self.root_disp = Some(short(word(8)));
        self.ref_id = Some(match stratum {
            0 | 1 => code.into(),
            _ => Ipv4Addr::from(code).to_string().into_bytes().into_boxed_slice(),
        });
        self.ref_time = reference;
        self.org_time = origin;
        self.rec_time = receive;
        self.xmt_time = transmit;
        self.num_exts = payload.get(HEADER_LEN..).and_then(extensions).unwrap_or(0);
    }
}

/// A span of 2^`exponent` seconds; `None` where nanoseconds cannot hold it.
fn power_of_two(exponent: i8) -> Option<Interval> {
    const SECOND: i64 = 1_000_000_000;
    let bits = u32::from(exponent.unsigned_abs());
    let nanos = if exponent < 0 {
        // Beyond 2^-31 it is less than half a nanosecond.
        if bits < 32 { (SECOND + (1 << (bits - 1))) >> bits } else { 0 }
    } else {
        1_i64.checked_shl(bits)?.checked_mul(SECOND)?
    };
    Some(Interval::from_nanos(nanos))
}

/// NTP's short format, 16 bits of seconds and 16 of their fractions, in whole microseconds: of two
/// that are as near the even one, as `printf` rounds in Zeek's logs.
fn short(word: u32) -> Interval {
    let scaled = u64::from(word) * 15_625;
    let (micros, rest) = (scaled >> 10, scaled & 1023);
    let up = rest > 512 || rest == 512 && micros & 1 == 1;
    Interval::from_nanos((micros + u64::from(up)).cast_signed() * 1000)
}

/// NTP's timestamp format of the era that began in 1900, in whole microseconds. As in Zeek a double
/// holds the seconds since 1970, which is about a quarter of a microsecond fine.
fn timestamp(seconds: u32, fraction: u32) -> Timestamp {
    if (seconds, fraction) == (0, 0) {
        return Timestamp::EPOCH;
    }
    let since_1970 =
        (i64::from(seconds) - UNIX_EPOCH) as f64 + f64::from(fraction) / 2_f64.powi(32);
    let whole = since_1970.floor();
    let micros = ((since_1970 - whole) * 1e6).round_ties_even();
    Timestamp::from_nanos(whole as i64 * 1_000_000_000 + micros as i64 * 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A header of this mode, whose other octets are zero.
    fn header(mode: u8) -> Vec<u8> {
        let mut message = vec![0; HEADER_LEN];
        message[0] = 4 << 3 | mode;
        message
    }

    /// The row of a message.
    fn parsed(payload: &[u8]) -> NtpMessage {
        let mut message = NtpMessage::of(Timestamp::EPOCH, 4, CLIENT);
        message.clock(payload);
        message
    }

    fn with_extensions(lengths: &[u16], mac: usize) -> Vec<u8> {
        let mut message = header(CLIENT);
        for &len in lengths {
            let at = message.len();
            message.resize(at + usize::from(len).max(4), 0);
            message[at + 2..at + 4].copy_from_slice(&len.to_be_bytes());
        }
        message.resize(message.len() + mac, 0);
        message
    }

    #[test]
    fn clients_and_servers_tell_who_asks_and_others_do_not() {
        let senders: Vec<_> = (0..8).map(|mode| Ntp.sender(123, &header(mode))).collect();
        let (client, server) = (Some(Role::Originator), Some(Role::Responder));
        assert_eq!(senders, [None, None, None, client, server, None, None, None]);
        assert_eq!(Ntp.sender(123, &[]), None);
        assert_eq!(Ntp.sender(123, &header(SERVER)[..HEADER_LEN - 1]), None);
    }

    #[test]
    fn an_octet_too_few_is_no_message() {
        for mode in 1..=5 {
            let message = header(mode);
            assert!(is_whole(&message));
            assert!(!is_whole(&message[..HEADER_LEN - 1]));
        }
        let mut control = vec![0x16, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, b'a', b'b', b'c'];
        assert!(is_whole(&control));
        control.pop();
        assert!(!is_whole(&control));
        let mut monlist = vec![0x17, 0x80, 3, 42, 0, 2, 0, 0];
        monlist.resize(28, 0);
        assert!(is_whole(&monlist));
        assert!(!is_whole(&monlist[..27]));
    }

    #[test]
    fn extension_fields_are_counted_and_a_mac_is_none() {
        let count = |message: &[u8]| parsed(message).num_exts;
        assert_eq!(count(&with_extensions(&[], 24)), 0);
        assert_eq!(count(&with_extensions(&[28], 0)), 1);
        assert_eq!(count(&with_extensions(&[16, 36], 20)), 2);
        assert!(!is_whole(&with_extensions(&[12], 24)), "shorter than any field");
        let mut cut = with_extensions(&[64], 0);
        cut.pop();
        assert!(!is_whole(&cut), "longer than the message");
    }

    #[test]
    fn spans_and_times_are_those_of_rfc_5905() {
        let nanos = |exponent| power_of_two(exponent).map(Interval::nanos);
        assert_eq!(nanos(6), Some(64_000_000_000));
        assert_eq!(nanos(33), Some(8_589_934_592_000_000_000));
        assert_eq!(nanos(34), None);
        assert_eq!(nanos(127), None);
        assert_eq!(nanos(-18), Some(3_815));
        assert_eq!(nanos(-128), Some(0));
        assert_eq!(short(0x0001_8000).nanos(), 1_500_000_000);
        assert_eq!(short(u32::MAX).nanos(), 65_535_999_985_000);
        // Of 7812.5 microseconds the even neighbour, and of 23437.5.
        assert_eq!(short(512).nanos(), 7_812_000);
        assert_eq!(short(1536).nanos(), 23_438_000);
        assert_eq!(timestamp(0, 0), Timestamp::EPOCH);
        assert_eq!(timestamp(2_208_988_800, 1 << 31).nanos(), 500_000_000);
        assert_eq!(timestamp(2_208_988_799, 1 << 31).nanos(), -500_000_000);
        assert_eq!(timestamp(0, 1).nanos(), -2_208_988_800_000_000_000);
    }

    #[test]
    fn the_reference_is_a_code_or_an_address() {
        let reference = |stratum| {
            let mut message = header(SERVER);
            message[1] = stratum;
            message[12..16].copy_from_slice(b"GPS\0");
            parsed(&message).ref_id.unwrap()
        };
        assert_eq!(*reference(0), *b"GPS\0");
        assert_eq!(*reference(1), *b"GPS\0");
        assert_eq!(*reference(2), *b"71.80.83.0");
    }
}
