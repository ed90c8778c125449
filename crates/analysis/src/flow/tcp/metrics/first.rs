//! The first segment of a connection, kept in few bytes until there is more to tell.

use netsniff_packet::Timestamp;
use netsniff_packet::decode::{Tcp, TcpFlags, TcpOptions};

use crate::flow::tcp::observed::Observed;
use crate::flow::tcp::segment::Segment;

/// The first segment, which has no payload, and how often it came again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct First {
    sequence: u32,
    acknowledgement: u32,
    /// The flags in the low 9 bits, which options there are in the others.
    flags_and_options: u16,
    window: u16,
    identification: u16,
    mss: u16,
    repeats: u16,
    duplicates: u16,
    ttl: u8,
    traffic_class: u8,
    window_scale: u8,
    from: From,
}

/// Who sent it. All but two values are free for whatever this is a part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum From {
    Originator,
    Responder,
}

const FLAGS: u16 = 0x01ff;
const SIGNED: u16 = 0x0800;
const MSS: u16 = 0x1000;
const WINDOW_SCALE: u16 = 0x2000;
const SACK_PERMITTED: u16 = 0x4000;
const TIMESTAMPS: u16 = 0x8000;
/// The scale of a segment whose options the capture cut; a header cannot say so much and be plain.
const CUT: u8 = u8::MAX;

impl First {
    /// A segment that is the first.
    #[must_use]
    pub(in crate::flow::tcp) fn of(seen: &Observed<'_>) -> Self {
        let options = &seen.segment.tcp.options;
        let mut flags_and_options = seen.segment.tcp.flags.0 & FLAGS;
        for (is_set, bit) in [
            (options.mss.is_some(), MSS),
            (options.window_scale.is_some(), WINDOW_SCALE),
            (options.sack_permitted, SACK_PERMITTED),
            (options.timestamps.is_some(), TIMESTAMPS),
            (options.signed, SIGNED),
        ] {
            if is_set {
                flags_and_options |= bit;
            }
        }
        Self {
            sequence: seen.segment.tcp.sequence,
            acknowledgement: seen.segment.tcp.acknowledgement,
            flags_and_options,
            window: seen.segment.tcp.window,
            identification: seen.segment.identification,
            mss: options.mss.unwrap_or(0),
            repeats: 0,
            duplicates: 0,
            ttl: seen.segment.ttl,
            traffic_class: seen.segment.traffic_class,
            window_scale: options.window_scale.unwrap_or(if options.cut { CUT } else { 0 }),
            from: if seen.from == 0 { From::Originator } else { From::Responder },
        }
    }

    /// The SYN of an originator of which its number and the shift of its window are known.
    #[must_use]
    pub(in crate::flow::tcp) const fn syn(sequence: u32, window_scale: u8) -> Self {
        Self {
            sequence,
            acknowledgement: 0,
            flags_and_options: TcpFlags::SYN.0 | WINDOW_SCALE,
            window: 0,
            identification: 0,
            mss: 0,
            repeats: 0,
            duplicates: 0,
            ttl: 0,
            traffic_class: 0,
            window_scale,
            from: From::Originator,
        }
    }

    /// Takes a segment without payload, if it repeats the first and that is a SYN.
    #[inline]
    pub(super) const fn repeat(&mut self, seen: &Observed<'_>) -> bool {
        let is_repeated = seen.from == self.from() && self.is_repeated_by(seen.segment.tcp);
        if is_repeated {
            self.count(seen.segment.identification);
        }
        is_repeated
    }

    /// Takes a segment from the originator, if it repeats this plain SYN in all that may change a
    /// connection.
    #[inline]
    pub fn repeat_plain(&mut self, segment: &Segment<'_>) -> bool {
        let tcp = segment.tcp;
        let is_plain = segment.is_originator()
            && tcp.payload_len == 0
            && tcp.window != 0
            && tcp.options.window_scale == self.window_scale()
            // RFC 7323, 2.3; whatever exceeds it is told each time.
            && self.window_scale <= 14
            && self.is_repeated_by(tcp);
        if is_plain {
            self.count(segment.identification);
        }
        is_plain
    }

    /// Whether a segment is a SYN with the same numbers and flags.
    #[must_use]
    #[inline]
    pub const fn is_repeated_by(&self, tcp: &Tcp) -> bool {
        tcp.flags.any(TcpFlags::SYN)
            && tcp.flags.0 & FLAGS == self.flags_and_options & FLAGS
            && tcp.sequence == self.sequence
            && tcp.acknowledgement == self.acknowledgement
    }

    /// Counts a repetition. With the same identification it is the same packet once more.
    #[inline]
    const fn count(&mut self, identification: u16) {
        if identification != 0 && identification == self.identification {
            self.duplicates = self.duplicates.saturating_add(1);
        } else {
            self.repeats = self.repeats.saturating_add(1);
            self.identification = identification;
        }
    }

    /// Whether this is the originator's SYN, without other flags than those of ECN (RFC 3168).
    #[must_use]
    pub fn is_plain_syn(&self) -> bool {
        let flags = TcpFlags(self.flags_and_options & FLAGS);
        let ecn = TcpFlags::ECE.with(TcpFlags::CWR);
        self.from == From::Originator && flags.0 & !ecn.0 == TcpFlags::SYN.0
    }

    /// Whether a segment with these flags and this sequence number begins another connection than
    /// this plain SYN does. A SYN with an acknowledgement does not, since the originator was heard,
    /// nor does one of the other side, which crosses it. `from` is the index of its sender.
    #[must_use]
    pub const fn is_reused_by(&self, tcp: &Tcp, from: usize) -> bool {
        tcp.flags.any(TcpFlags::SYN)
            && !tcp.flags.any(TcpFlags::ACK.with(TcpFlags::FIN).with(TcpFlags::RST))
            && tcp.sequence != self.sequence
            && from == self.sender()
    }

    /// How often it came again.
    #[must_use]
    pub const fn repeats(&self) -> u16 {
        self.repeats
    }

    /// How often the capture has the very same packet once more.
    #[must_use]
    pub const fn duplicates(&self) -> u16 {
        self.duplicates
    }

    /// Whether a segment has its sequence number.
    #[must_use]
    pub const fn has_number(&self, tcp: &Tcp) -> bool {
        tcp.sequence == self.sequence
    }

    /// Whether another one differs in nothing but its identification, and how often it came.
    #[must_use]
    pub(in crate::flow::tcp) fn is_like(&self, other: &Self) -> bool {
        let Self { identification, repeats, duplicates, .. } = *other;
        Self { identification, repeats, duplicates, ..*self } == *other
    }

    /// Whether another one has its sequence number.
    #[must_use]
    pub const fn is_same(&self, other: &Self) -> bool {
        self.sequence == other.sequence
    }

    /// The sequence number behind it, which is the one that acknowledges it.
    #[must_use]
    pub const fn next_number(&self) -> u32 {
        self.sequence.wrapping_add(1)
    }

    /// Index of who sent it: 0 is the originator.
    #[must_use]
    pub const fn sender(&self) -> usize {
        self.from()
    }

    pub(in crate::flow::tcp) const fn flip(&mut self) {
        self.from = match self.from {
            From::Originator => From::Responder,
            From::Responder => From::Originator,
        };
    }

    const fn from(&self) -> usize {
        self.from as usize
    }

    const fn has(&self, option: u16) -> bool {
        self.flags_and_options & option != 0
    }

    const fn window_scale(&self) -> Option<u8> {
        if self.has(WINDOW_SCALE) { Some(self.window_scale) } else { None }
    }

    /// The segment as it was seen at `begun`, to be taken again.
    #[must_use]
    pub fn replay(&self, begun: Timestamp) -> Replay {
        Replay {
            first: *self,
            begun,
            ip_bytes: 0,
            tcp: Tcp {
                source_port: 0,
                destination_port: 0,
                sequence: self.sequence,
                acknowledgement: self.acknowledgement,
                flags: TcpFlags(self.flags_and_options & FLAGS),
                window: self.window,
                urgent_pointer: 0,
                payload_offset: 0,
                payload_len: 0,
                payload_captured: 0,
                options: TcpOptions {
                    mss: self.has(MSS).then_some(self.mss),
                    window_scale: self.window_scale(),
                    sack_permitted: self.has(SACK_PERMITTED),
                    signed: self.has(SIGNED),
                    timestamps: self.has(TIMESTAMPS).then_some((0, 0)),
                    cut: !self.has(WINDOW_SCALE) && self.window_scale == CUT,
                    ..TcpOptions::default()
                },
            },
        }
    }
}

/// A first segment made whole again.
#[derive(Clone, Debug)]
pub struct Replay {
    first: First,
    begun: Timestamp,
    ip_bytes: u32,
    tcp: Tcp,
}

impl Replay {
    /// The segment with data that was seen whole, in a packet of so many bytes; with this value of its time stamp,
    /// where it has one, and this identification.
    #[must_use]
    pub(in crate::flow::tcp) fn with_data(
        self,
        len: u32,
        ip_bytes: u32,
        stamp: u32,
        identification: u16,
    ) -> Self {
        let Self { first, begun, mut tcp, .. } = self;
        (tcp.payload_len, tcp.payload_captured) = (len, len);
        tcp.options.timestamps = tcp.options.timestamps.map(|(_, echo)| (stamp, echo));
        Self { first: First { identification, ..first }, begun, ip_bytes, tcp }
    }

    /// The segment as it is taken again.
    #[must_use]
    pub const fn segment(&self) -> Segment<'_> {
        Segment {
            time: self.begun,
            from: self.first.from(),
            tcp: &self.tcp,
            ttl: self.first.ttl,
            traffic_class: self.first.traffic_class,
            identification: self.first.identification,
            ip_bytes: self.ip_bytes,
            is_damaged: false,
        }
    }
}

#[cfg(test)]
pub(in crate::flow::tcp) mod tests {
    use super::*;
    use crate::depth::Depth;
    use crate::flow::history::{History, Letters};
    use crate::flow::tcp::TcpConnection;
    use crate::flow::tcp::connection::SegmentContext;
    use crate::limits::Limits;
    use crate::weird::Weirds;

    pub(in crate::flow::tcp) const BEGUN: Timestamp = Timestamp::from_nanos(5_000_000_000);

    fn tcp(flags: TcpFlags, window: u16, options: TcpOptions) -> Tcp {
        Tcp {
            source_port: 1,
            destination_port: 2,
            sequence: 1000,
            acknowledgement: 7,
            flags,
            window,
            urgent_pointer: 0,
            payload_offset: 40,
            payload_len: 0,
            payload_captured: 0,
            options,
        }
    }

    pub(in crate::flow::tcp) fn segment(
        time: Timestamp,
        tcp: &Tcp,
        identification: u16,
    ) -> Segment<'_> {
        Segment {
            time,
            from: 0,
            tcp,
            ttl: 61,
            traffic_class: 2,
            identification,
            ip_bytes: 40,
            is_damaged: false,
        }
    }

    /// What a connection and the rest of its flow are after a segment.
    fn take(connection: &mut TcpConnection, segment: &Segment<'_>) -> (String, Timestamp, bool) {
        let (mut kinds, mut letters, mut last) = (1, Letters::default(), BEGUN);
        let mut weirds = Weirds::default();
        let mut context = SegmentContext {
            now: segment.time,
            history: History { seen: &mut kinds, letters: &mut letters, grown: 0 },
            last_time: &mut last,
            weirds: &mut weirds,
            limits: &Limits::default(),
            rtt_interval: None,
            rtt: &mut None,
        };
        connection.segment(segment, &mut context);
        let rest = format!("{} {:?}", letters.as_str(), weirds.drain().collect::<Vec<_>>());
        (rest, last, connection.is_hastened())
    }

    fn syns() -> Vec<Tcp> {
        let ecn = TcpFlags::SYN.with(TcpFlags::ECE).with(TcpFlags::CWR);
        let mut all = Vec::new();
        for flags in [TcpFlags::SYN, ecn, TcpFlags::SYN.with(TcpFlags::URG)] {
            for window in [0, 64_240] {
                for (mss, window_scale, timestamps) in [
                    (None, None, None),
                    (Some(1460), Some(7), Some((9, 0))),
                    (Some(0), Some(200), None),
                ] {
                    let sack_permitted = mss.is_some();
                    let options = TcpOptions {
                        mss,
                        window_scale,
                        sack_permitted,
                        timestamps,
                        ..TcpOptions::default()
                    };
                    all.push(tcp(flags, window, options));
                }
            }
        }
        all
    }

    #[test]
    fn an_opening_is_all_that_a_connection_with_one_syn_is() {
        let limits = Limits::default();
        let (mut folded, mut repeated) = (0, 0);
        for syn in syns() {
            let mut straight = TcpConnection::default();
            take(&mut straight, &segment(BEGUN, &syn, 4));
            let Some(mut first) = straight.as_opening() else { continue };
            folded += 1;
            for (number, again) in (1_u16..).zip(syns()) {
                let time = BEGUN.offset(i64::from(number) * 1_000_000);
                let again = segment(time, &again, 4 + number / 3);
                if !first.repeat_plain(&again) {
                    continue;
                }
                repeated += 1;
                // Nothing but the time of the last packet and the count of repetitions changes.
                assert_eq!(take(&mut straight, &again).1, time);
                assert!(!straight.is_hastened());
                assert_eq!(take(&mut straight.clone(), &again).0, " []");
            }
            let mut reopened =
                TcpConnection::reopened(&first, [BEGUN; 2], Depth::Protocols, &limits);
            // What a segment says of itself, not of the connection.
            reopened.hastened = straight.hastened;
            assert_eq!(format!("{reopened:?}"), format!("{straight:?}"));
            let end = BEGUN + limits.tcp_attempt;
            assert_eq!(straight.deadline(BEGUN, BEGUN.offset(77), &limits), end);
        }
        assert_eq!((folded, repeated), (12, 8), "plain SYNs, and repetitions with a window");
    }

    #[test]
    fn an_opening_knows_when_its_ports_are_used_again() {
        let syn = tcp(TcpFlags::SYN, 100, TcpOptions::default());
        let mut straight = TcpConnection::default();
        take(&mut straight, &segment(BEGUN, &syn, 4));
        let mut first = straight.as_opening().unwrap();
        for other in [
            Tcp { sequence: 1001, ..syn },
            Tcp { acknowledgement: 8, ..syn },
            Tcp { payload_len: 1, ..syn },
        ] {
            assert!(!first.repeat_plain(&segment(BEGUN, &other, 4)), "{other:?}");
        }
        assert!(!first.repeat_plain(&Segment { from: 1, ..segment(BEGUN, &syn, 4) }));
        for flags in 0..0x200 {
            for sequence in [999, 1000, 1001] {
                let next = Tcp { sequence, flags: TcpFlags(flags), ..syn };
                for from in [0, 1] {
                    let is_reused = straight.is_reused_by(&next, from, true);
                    assert_eq!(first.is_reused_by(&next, from), is_reused, "{from} {next:?}");
                }
            }
        }
    }
}
