//! Books that tests begin with.

use netsniff_analysis::depth::PacketsByDepth;
use netsniff_analysis::ingress::cut_headers::CutHeaders;
use netsniff_capture::backend::{RingFacts, RingUnit, StampSource};
use netsniff_capture::counters::{Occupancy, RingCounters, WaitCounters};
use netsniff_capture::options::Direction;
use netsniff_packet::decode::TunnelPorts;
use netsniff_packet::{LinkType, Packet, Timestamp};

use super::{BooksLine, BooksScope};
use crate::live::onset::Onset;
use crate::live::{HeldBehindHoles, LinkState, RingReport};

/// An interface to which 100 packets came, of which each of these got so many.
#[must_use]
pub fn entry(lost: Option<u64>, filtered: Option<u64>, dropped: Option<u64>) -> BooksLine {
    let known = [lost, filtered, dropped].iter().flatten().sum::<u64>();
    let delivered = 100 - known;
    let counters =
        RingCounters { delivered, accepted: Some(delivered), dropped, ..RingCounters::default() };
    BooksLine {
        place: BooksScope::Interface("eth0".to_owned()),
        link: Some(LinkState::Up),
        arrived: Some(100),
        lost_interface: lost,
        lost_backlog: None,
        time_squeezes: None,
        filtered,
        bound: Some(0),
        recorded: None,
        unrecorded: None,
        refused_rows: None,
        report: Some(RingReport { counters, analysed: Some(delivered), ..RingReport::default() }),
        facts: None,
        is_shared: false,
        sampling: 1,
    }
}

/// So many packets whose headers are cut, of which 30 bytes were kept, and as many whose headers are whole.
#[must_use]
pub fn cut_headers(packets: u64) -> CutHeaders {
    let mut cut = CutHeaders::default();
    // The header of Ethernet says IPv4, or something unknown.
    for (number, kind) in (0..packets).flat_map(|number| [(number, 8), (number, 99)]) {
        let mut frame = [0; 30];
        (frame[12], frame[14]) = (kind, 0x45);
        let timestamp = Timestamp::from_nanos(number as i64);
        let (data, link_type) = (&frame[..], LinkType::ETHERNET);
        let packet = Packet { timestamp, data, wire_len: 100, link_type, interface: 0 };
        cut.look(&packet, &TunnelPorts::default());
    }
    cut
}

/// Facts of a ring that is not there.
#[must_use]
pub fn facts() -> RingFacts {
    RingFacts {
        backend: "test",
        interface: "none".to_owned(),
        interface_index: 1,
        unit: RingUnit::Block,
        unit_bytes: 1,
        units: 1,
        memory: None,
        snaplen: 96,
        filter_len: 0,
        counts_filtered: true,
        direction: Direction::Both,
        fanout_group: None,
        stamps: StampSource::Kernel,
        busy_poll: None,
        xdp: None,
    }
}

/// A report whose counters are all different, beginning with `from`.
#[must_use]
pub fn report(from: u64) -> RingReport {
    let mut next = from;
    let mut number = || {
        next += 1;
        next
    };
    let mut by_depth = Vec::new();
    by_depth.resize_with(4, &mut number);
    RingReport {
        counters: RingCounters {
            delivered: number(),
            delivered_bytes: number(),
            accepted: Some(number() + 1000),
            dropped: Some(number()),
            filtered: Some(number()),
            freezes: Some(number()),
            malformed: number(),
            cut: number(),
            retagged: number(),
            partial_checksums: number(),
            super_frames: number(),
            inversions: number(),
            deepest_inversion: number(),
            wrong_stamps: number(),
            waiting: WaitCounters {
                groups: number(),
                empty: number(),
                polls: number(),
                wakeups: number(),
                naps: number(),
            },
            occupancy: Occupancy {
                used: number() as u32,
                high_water: number() as u32,
                capacity: number() as u32,
            },
        },
        read: None,
        returned: None,
        onset: Onset {
            first_packet: Some(Timestamp::from_nanos(number() as i64)),
            hole: Some((None, Timestamp::from_nanos(number() as i64 + 50))),
        },
        analysed: Some(number()),
        by_depth: Some(PacketsByDepth::from_fn(|depth| by_depth[depth as usize])),
        shed: number(),
        shed_nanos: number(),
        filtered: number(),
        beyond_end: number(),
        refused: number(),
        waiting: number(),
        late: number(),
        cut_headers: cut_headers(number()),
        held: Some(HeldBehindHoles { bytes: number(), most: Some(number()) }),
        holes_given_up: number(),
        refused_rows: number(),
        link: LinkState::Down,
        downs: number(),
        flows: Some(number()),
        flow_split: Some(number()),
        now: Some(Timestamp::from_nanos(number() as i64)),
    }
}
