//! SYNs with data that nobody has answered yet.

use netsniff_packet::Timestamp;

use super::metrics::first::{First, Replay};
use super::observed::Observed;
use super::segment::Segment;
use crate::prefetch::prefetch;

/// Data of one SYN that is kept. A segment of Ethernet has at most 1460 bytes, and clients send no more than one in
/// their SYN (RFC 7413).
const MAX_DATA: usize = 1460;

/// SYNs that are kept. In the seconds before an attempt has failed, hosts repeat theirs two or three times (RFC 6298, 2.1 and 5).
const MAX_KEPT: usize = 8;

/// A SYN with data, and its repetitions, as they came. Nobody reads the data before there is an answer or the flow
/// ends: as a host buffers it until the connection stands (RFC 9293, 3.5). Most flows of a flood never have an
/// answer, so that they take neither streams nor sessions nor metrics while they last.
#[derive(Debug)]
pub struct HeldSyn {
    first: First,
    ip_bytes: u32,
    /// The data, which all of them have.
    data: Box<[u8]>,
    arrivals: [Arrival; MAX_KEPT],
    /// How many of them came.
    len: u8,
}

/// What differs from one copy to the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Arrival {
    time: Timestamp,
    /// The value of its time stamp (RFC 7323), where the copies have one.
    stamp: u32,
    identification: u16,
}

impl Arrival {
    fn of(segment: &Segment<'_>) -> Self {
        let stamp = segment.tcp.options.timestamps.map_or(0, |(value, _)| value);
        Self { time: segment.time, stamp, identification: segment.identification }
    }
}

impl HeldSyn {
    /// What a first segment with this data is, if it is a SYN of the originator without peculiarities: what is odd
    /// about it is [`Self::WEIRD`] alone.
    #[must_use]
    pub fn of(segment: &Segment<'_>, data: &[u8]) -> Option<Self> {
        if !is_holdable(segment, data) {
            return None;
        }
        let first = First::of(&Observed::new(segment, segment.from, 0, None));
        let mut arrivals = [Arrival::default(); MAX_KEPT];
        arrivals[0] = Arrival::of(segment);
        let ip_bytes = segment.ip_bytes;
        let is_plain = first.is_plain_syn();
        is_plain.then(|| Self { first, ip_bytes, data: data.into(), arrivals, len: 1 })
    }

    /// Oddity of a SYN with data.
    pub const WEIRD: &'static str = "SYN_with_data";

    /// Further oddity of a repetition.
    pub const WEIRD_OF_COPY: &'static str = "data_before_established";

    /// Takes a segment that repeats the SYN in all but time, time stamp and identification, as long as
    /// there is room.
    #[must_use]
    pub fn repeat(&mut self, segment: &Segment<'_>, data: &[u8]) -> bool {
        let Some(free) = self.arrivals.get_mut(usize::from(self.len)) else { return false };
        let is_repeated = is_holdable(segment, data)
            && segment.ip_bytes == self.ip_bytes
            && *data == *self.data
            && self.first.is_like(&First::of(&Observed::new(segment, segment.from, 0, None)));
        if is_repeated {
            *free = Arrival::of(segment);
            self.len += 1;
        }
        is_repeated
    }

    /// How often it was repeated.
    #[must_use]
    pub const fn copies(&self) -> usize {
        self.len as usize - 1
    }

    /// The SYN itself.
    #[must_use]
    pub const fn first(&self) -> &First {
        &self.first
    }

    /// The data of the SYN.
    #[must_use]
    pub const fn data(&self) -> &[u8] {
        &self.data
    }

    /// All segments as they came.
    pub fn replays(&self) -> impl Iterator<Item = Replay> {
        self.arrivals.iter().take(self.len.into()).map(|arrival| {
            let Arrival { time, stamp, identification } = *arrival;
            let len = self.data.len() as u32;
            self.first.replay(time).with_data(len, self.ip_bytes, stamp, identification)
        })
    }

    /// Asks for what a repetition needs.
    #[inline]
    pub fn prefetch(&self) {
        prefetch(&self.first);
        prefetch(&self.arrivals[3]);
        prefetch(&self.len);
    }

    /// Asks for the data, which a repetition is compared with.
    #[inline]
    pub fn prefetch_data(&self) {
        self.data.iter().take(1).for_each(prefetch);
    }

    /// Bytes that it takes, itself included.
    #[must_use]
    pub const fn heap_bytes(&self) -> usize {
        size_of::<Self>() + self.data.len()
    }
}

/// Whether a segment of the originator, and its data, can be made again from what is kept.
fn is_holdable(segment: &Segment<'_>, data: &[u8]) -> bool {
    let tcp = segment.tcp;
    let options = &tcp.options;
    let has_known_options = !options.cut
        && !options.malformed
        && options.sack_count == 0
        && options.timestamps.is_none_or(|(_, echo)| echo == 0)
        // RFC 7323, 2.3; whatever exceeds it is told each time.
        && options.window_scale.is_none_or(|scale| scale <= 14);
    let has_all_data = !data.is_empty() && data.len() == tcp.payload_len as usize;
    segment.is_originator()
        && has_all_data
        && data.len() <= MAX_DATA
        && tcp.window != 0
        && !segment.is_damaged
        && has_known_options
}

#[cfg(test)]
mod tests {
    use netsniff_packet::decode::{Tcp, TcpFlags, TcpOptions};

    use super::*;
    use crate::flow::history::{History, Letters};
    use crate::flow::tcp::TcpConnection;
    use crate::flow::tcp::connection::SegmentContext;
    use crate::flow::tcp::metrics::first::tests::{BEGUN, segment};
    use crate::limits::Limits;
    use crate::weird::Weirds;

    const DATA: &[u8] = b"GET / HTTP/1.0\r\n\r\n";

    fn syn(flags: TcpFlags, options: TcpOptions) -> Tcp {
        Tcp {
            source_port: 0,
            destination_port: 0,
            sequence: 1000,
            acknowledgement: 7,
            flags,
            window: 64_240,
            urgent_pointer: 0,
            payload_offset: 0,
            payload_len: DATA.len() as u32,
            payload_captured: DATA.len() as u32,
            options,
        }
    }

    fn syns() -> Vec<Tcp> {
        let ecn = TcpFlags::SYN.with(TcpFlags::ECE).with(TcpFlags::CWR);
        let plain = TcpOptions::default();
        let full = TcpOptions {
            mss: Some(1460),
            window_scale: Some(7),
            sack_permitted: true,
            timestamps: Some((9, 0)),
            ..plain
        };
        let signed = TcpOptions { signed: true, window_scale: Some(14), ..plain };
        [TcpFlags::SYN, ecn]
            .into_iter()
            .flat_map(|flags| [plain, full, signed].map(|options| syn(flags, options)))
            .collect()
    }

    /// What a connection says of a segment that it takes: the oddities, and whether its deadline comes forward.
    fn take(tcp: &mut TcpConnection, segment: &Segment<'_>) -> (Vec<&'static str>, bool) {
        let mut weirds = Weirds::default();
        let mut context = SegmentContext {
            now: segment.time,
            history: History { seen: &mut 0, letters: &mut Letters::default(), grown: 0 },
            last_time: &mut BEGUN.clone(),
            weirds: &mut weirds,
            limits: &Limits::default(),
            rtt_interval: None,
            rtt: &mut None,
        };
        tcp.segment(segment, &mut context);
        (weirds.drain().map(|oddity| oddity.name).collect(), tcp.is_hastened())
    }

    #[test]
    fn segments_are_released_as_they_came() {
        for syn in syns() {
            let came: Vec<(Timestamp, Tcp, u16)> = (0..MAX_KEPT)
                .map(|copy| {
                    let mut tcp = syn;
                    tcp.options.timestamps =
                        syn.options.timestamps.map(|_| (9 + copy as u32 * 1_000, 0));
                    (BEGUN.offset(copy as i64 * 1_000_000_000), tcp, [4, 5, 5, 0][copy % 4])
                })
                .collect();
            let mut segments =
                came.iter().map(|(time, tcp, identification)| segment(*time, tcp, *identification));
            let mut held = HeldSyn::of(&segments.next().unwrap(), DATA).unwrap();
            assert!(segments.all(|segment| held.repeat(&segment, DATA)));
            assert_eq!(held.copies(), MAX_KEPT - 1);
            let released: Vec<Replay> = held.replays().collect();
            assert_eq!(released.len(), came.len());
            for (replay, (time, tcp, identification)) in released.iter().zip(&came) {
                let (replay, came) = (replay.segment(), segment(*time, tcp, *identification));
                assert_eq!(format!("{replay:?}"), format!("{came:?}"));
            }
        }
    }

    #[test]
    fn what_is_odd_about_them_is_known_before_they_are_released() {
        for syn in syns() {
            let mut straight = TcpConnection::default();
            let first = take(&mut straight, &segment(BEGUN, &syn, 4));
            assert_eq!(first.0, [HeldSyn::WEIRD]);
            for copy in 1..MAX_KEPT as i64 {
                let again = segment(BEGUN.offset(copy * 1_000_000_000), &syn, 4 + copy as u16);
                let said = take(&mut straight, &again);
                assert_eq!(said, (vec![HeldSyn::WEIRD, HeldSyn::WEIRD_OF_COPY], false));
            }
        }
    }

    #[test]
    fn what_differs_is_not_held() {
        let plain = syn(TcpFlags::SYN, TcpOptions::default());
        let held = HeldSyn::of(&segment(BEGUN, &plain, 4), DATA).unwrap();
        let with = |options| Tcp { options, ..plain };
        let none = TcpOptions::default();
        let others = [
            Tcp { sequence: 1001, ..plain },
            Tcp { acknowledgement: 8, ..plain },
            Tcp { window: 64_241, ..plain },
            Tcp { window: 0, ..plain },
            Tcp { flags: TcpFlags::SYN.with(TcpFlags::ECE), ..plain },
            Tcp { payload_len: plain.payload_len + 1, ..plain },
            with(TcpOptions { mss: Some(1460), ..none }),
            with(TcpOptions { window_scale: Some(2), ..none }),
            with(TcpOptions { timestamps: Some((9, 0)), ..none }),
            with(TcpOptions { timestamps: Some((9, 1)), ..none }),
            with(TcpOptions { sack_permitted: true, ..none }),
            with(TcpOptions { sack_count: 1, ..none }),
            with(TcpOptions { signed: true, ..none }),
            with(TcpOptions { malformed: true, ..none }),
            with(TcpOptions { cut: true, ..none }),
        ];
        let mut held = held;
        for other in &others {
            assert!(!held.repeat(&segment(BEGUN, other, 4), DATA), "{other:?}");
        }
        let whole = segment(BEGUN, &plain, 4);
        assert!(!held.repeat(&whole, b"GET / HTTP/1.1\r\n\r\n"));
        assert!(!held.repeat(&whole, DATA.get(1..).unwrap()));
        assert!(!held.repeat(&Segment { from: 1, ..segment(BEGUN, &plain, 4) }, DATA));
        assert!(!held.repeat(&Segment { ttl: 62, ..segment(BEGUN, &plain, 4) }, DATA));
        assert!(!held.repeat(&Segment { ip_bytes: 59, ..segment(BEGUN, &plain, 4) }, DATA));
        assert!(!held.repeat(&Segment { is_damaged: true, ..segment(BEGUN, &plain, 4) }, DATA));
        for _ in 1..MAX_KEPT {
            assert!(held.repeat(&whole, DATA));
        }
        assert!(!held.repeat(&whole, DATA), "there is a bound");
        for flags in [TcpFlags::SYN.with(TcpFlags::URG), TcpFlags::SYN.with(TcpFlags::FIN)] {
            assert!(HeldSyn::of(&segment(BEGUN, &Tcp { flags, ..plain }, 4), DATA).is_none());
        }
    }
}
