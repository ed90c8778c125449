//! Messages of flow exporters in any order, with time that passes and connections that end.
//!
//! The input is steps: a byte that says what happens, two for a length, and so many bytes. Beyond not panicking, the
//! books must add up after each step, what is held must stay below its bounds, and a stream must tell the same however it
//! is cut.
#![no_main]

use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use netsniff_ipfix::framing::{Framer, Unframed};
use netsniff_ipfix::{Collector, Exporter, Flow, Limits, StreamBooks, StreamKey, Transport};
use netsniff_packet::{Address, Timestamp};

const BEGIN: Timestamp = Timestamp::from_secs_nanos(1_700_000_000, 0);
/// A set that waits takes more memory than this beside its bytes.
const WAITING_AT_LEAST: u64 = 32;

/// So narrow that short inputs reach them.
fn limits() -> Limits {
    Limits {
        streams: 6,
        templates: 4,
        fields: 32,
        all_fields: 64,
        waiting_bytes: 1024,
        all_waiting_bytes: 2048,
        samplers: 3,
        gaps: 3,
        ..Limits::default()
    }
}

fn exporter(number: u8, transport: Transport) -> Exporter {
    Exporter { address: Address::from_v4([192, 0, 2, number % 3]), port: 4739, transport }
}

struct Bed {
    collector: Collector,
    now: Timestamp,
    flows: Vec<Flow>,
}

impl Bed {
    fn new() -> Self {
        Self { collector: Collector::new(limits()), now: BEGIN, flows: Vec::new() }
    }

    fn message(&mut self, from: Exporter, message: &[u8]) {
        let Self { collector, now, flows } = self;
        let _ = collector.message(from, *now, message, |_, flow| flows.push(flow));
        self.check();
    }

    fn books(&self) -> Vec<(StreamKey, StreamBooks)> {
        self.collector.books().map(|(key, books)| (*key, books)).collect()
    }

    fn check(&self) {
        let limits = limits();
        let books = self.books();
        assert!(books.len() <= limits.streams);
        for (_, it) in &books {
            assert_eq!(it.records, it.flows + it.options + it.others);
            assert_eq!(it.sets, it.decoded_sets + it.waiting_sets + it.undecoded_sets);
            assert!(it.templates <= limits.templates as u64);
            assert!(it.waiting_sets <= limits.waiting_bytes as u64 / WAITING_AT_LEAST);
        }
        let waiting: u64 = books.iter().map(|(_, it)| it.waiting_sets).sum();
        assert!(waiting <= limits.all_waiting_bytes as u64 / WAITING_AT_LEAST);
        assert!(self.flows.iter().all(|flow| flow.start().is_some()));
        // Books that ended are not there to add up.
        if self.collector.left() == 0 {
            let read: u64 = books.iter().map(|(_, it)| it.messages + it.duplicates).sum();
            let refused: u64 = self.collector.refused().map(|(_, count)| count).sum();
            assert_eq!(read + refused, self.collector.messages());
            let flows: u64 = books.iter().map(|(_, it)| it.flows).sum();
            assert_eq!(flows, self.flows.len() as u64);
        }
    }
}

/// A stream in pieces of this length: what it tells, and whether it was one of IPFIX.
fn stream(bytes: &[u8], piece: usize) -> (Bed, Result<(), Unframed>) {
    let (mut bed, mut framer, mut read) = (Bed::new(), Framer::default(), Ok(()));
    for part in bytes.chunks(piece.max(1)) {
        let from = exporter(0, Transport::Tcp);
        read = read.and(framer.push(part, |message| bed.message(from, message)));
        if read.is_err() {
            break;
        }
    }
    bed.collector.disconnected(&exporter(0, Transport::Tcp));
    bed.check();
    (bed, read)
}

fn headed(version: u16, second: u16, body: &[u8]) -> Vec<u8> {
    // Sequence and domain are those of the body, so that they may be any.
    let sent = 1_700_000_000_u32.to_be_bytes();
    let uptime: &[u8] = if version == 10 { &[] } else { &[0, 1, 0, 0] };
    let head = [&version.to_be_bytes(), &second.to_be_bytes()[..], uptime, &sent].concat();
    [head, body.to_vec()].concat()
}

fn step(bed: &mut Bed, what: u8, bytes: &[u8]) {
    let from = exporter(what >> 3, Transport::Udp);
    match what % 8 {
        0 => bed.message(from, bytes),
        1 => bed.message(from, &headed(10, bytes.len() as u16 + 8, bytes)),
        2 => bed.message(from, &headed(9, 1, bytes)),
        3 => {
            // Nanoseconds, sequence, engine and sampling come before the records.
            let records = bytes.len().saturating_sub(12) / 48;
            bed.message(from, &headed(5, records as u16, bytes));
        }
        4 => {
            let minutes = u64::from(bytes.first().copied().unwrap_or(30));
            bed.now = bed.now + Duration::from_secs(60 * minutes);
            bed.collector.expire(bed.now);
            bed.check();
        }
        5 => {
            bed.collector.disconnected(&from);
            bed.check();
        }
        _ => {
            let (whole, is_whole) = stream(bytes, usize::MAX);
            let (cut, is_cut) = stream(bytes, usize::from(what >> 3));
            assert_eq!(is_whole, is_cut);
            assert_eq!(whole.flows, cut.flows);
            assert_eq!(whole.books(), cut.books());
        }
    }
}

fuzz_target!(|data: &[u8]| {
    let mut bed = Bed::new();
    let mut rest = data;
    while let [what, low, high, behind @ ..] = rest {
        let len = usize::from(u16::from_le_bytes([*low, *high]) & 0xfff).min(behind.len());
        let (bytes, next) = behind.split_at(len);
        step(&mut bed, *what, bytes);
        rest = next;
    }
});
