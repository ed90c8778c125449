//! Parts that are full, fail or panic where they are analysed by themselves.

use std::io::{self, Cursor, Read};
use std::net::{IpAddr, Ipv4Addr};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;

use netsniff_analysis::engine::decoding::Intake;
use netsniff_analysis::{Limits, Options, SortKey};
use netsniff_output::{Format, RowSink};
use netsniff_packet::{Batch, LinkType, Packet, Progress, Source, Timestamp};
use netsniff_pcapfile::{Head, MergeError, Merged, PcapWriter, Reader};
use netsniff_traffic::dialogue::{Dialogue, Setup, Side};
use netsniff_traffic::frame::{Host, udp_frame};

use super::{
    AttendParts, Jobs, OpenPart, PartIntake, PartReading, PartSource, PartsOutcome, run_parts,
};
use crate::files::run::{Attend, Settings, run};

/// Bytes to read at once, so that a file is many batches.
const READ: usize = 4096;
const FILES: usize = 4;

/// Seconds from the begin of one file to that of the next.
const DAY: i64 = 86_400;

/// Which hosts a file has.
#[derive(Clone, Copy, PartialEq)]
enum Hosts {
    /// Those of all files.
    Same,
    /// Of each two packets one is between hosts of this file alone.
    Mixed,
    /// And every third one is in a tunnel that all files have, between hosts of this file.
    Tunnelled,
    /// All of this file alone, but for a connection on which somebody types once in each.
    Typed,
}

/// The frame of a datagram, and the same in a tunnel.
fn frame(from: &Host, to: &Host, is_tunnelled: bool) -> Vec<u8> {
    let mut frame = udp_frame(from, to, 0, b"hello").unwrap();
    // A length that is too small, which is odd, and no checksum.
    let header = 14 + 20;
    frame[header + 5] -= 1;
    frame[header + 6..header + 8].fill(0);
    if !is_tunnelled {
        return frame;
    }
    // VXLAN: RFC 7348, section 5.
    let inside = [&[8, 0, 0, 0, 0, 0, 7, 0][..], &frame].concat();
    let end = |low, port| Host::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, low)), port);
    udp_frame(&end(201, 40_000), &end(202, 4789), 0, &inside).unwrap()
}

/// What somebody types on one connection, in all files together.
fn typed(spacing: i64) -> Vec<(Timestamp, Vec<u8>)> {
    let end = |last, port| Host::new([192, 0, 2, last].into(), port);
    let start = Timestamp::from_secs_nanos(spacing + 1, 0);
    let (client, server) = (end(1, 40_000), end(2, 22));
    let mut dialogue = Dialogue::new(Setup { client, server, start, ..Setup::default() });
    dialogue.connect();
    for number in 1..=FILES as i64 {
        dialogue.pause_until(Timestamp::from_secs_nanos(number * spacing + 5, 0));
        dialogue.say(Side::Client, b"SSH-2.0-a\r\n").say(Side::Server, b"SSH-2.0-b\r\n");
    }
    let seen = dialogue.finish().seen;
    seen.into_iter().map(|seen| (seen.timestamp, seen.frame)).collect()
}

/// A capture of the same flows, each of one datagram, two each 20 ms, from a second on. All have a wrong length.
fn capture(number: i64, spacing: i64, hosts: Hosts) -> Vec<u8> {
    let begin = number * spacing;
    let mut writer = PcapWriter::new(Vec::new(), LinkType::ETHERNET, 0).unwrap();
    let mut frames = Vec::new();
    for at in 0..2000_u16 {
        let is_tunnelled = hosts == Hosts::Tunnelled && at % 3 == 0;
        let is_own = match hosts {
            Hosts::Same => false,
            Hosts::Mixed => at % 2 == 0,
            Hosts::Tunnelled => at % 2 == 0 || is_tunnelled,
            Hosts::Typed => true,
        };
        let net = if is_own { number as u8 } else { 0 };
        let host = |low, port| Host::new(IpAddr::V4(Ipv4Addr::new(10, 0, net, low)), port);
        // Those in the tunnel are other hosts than those that are not.
        let to = if is_tunnelled { 199 } else { 200 };
        // Of the hosts of all files, some begin other flows in each.
        let port = 30_000 + at + if at % 4 == 1 { 2000 * number as u16 } else { 0 };
        let from = host(1 + (at % 99) as u8, port);
        let frame = frame(&from, &host(to, 5000), is_tunnelled);
        frames.push((Timestamp::from_secs_nanos(begin, i64::from(at / 2) * 20_000_000), frame));
    }
    if hosts == Hosts::Typed {
        let [from, to] = [begin, begin + spacing].map(|it| Timestamp::from_secs_nanos(it, 0));
        frames.extend(typed(spacing).into_iter().filter(|(at, _)| (from..to).contains(at)));
        frames.sort_by_key(|(at, _)| *at);
    }
    for (timestamp, frame) in frames {
        let wire_len = frame.len() as u32;
        let link_type = LinkType::ETHERNET;
        let packet = Packet { timestamp, data: &frame, wire_len, link_type, interface: 0 };
        writer.write_packet(&packet).unwrap();
    }
    writer.finish().unwrap()
}

/// How a file is read by itself.
#[derive(Clone, Copy, PartialEq)]
enum How {
    Well,
    Fails,
    Panics,
}

type Input = Box<dyn Read + Send>;

/// The files, and which were opened to be analysed by themselves.
struct Files {
    how: How,
    spacing: i64,
    hosts: Hosts,
    opened: Mutex<Vec<usize>>,
}

struct Broken;

impl Read for Broken {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(io::Error::other("a broken disk"))
    }
}

struct Asked(How);

impl Intake for Asked {
    fn wants(&mut self, _: &Packet<'_>) -> bool {
        assert!(self.0 != How::Panics, "it panics");
        true
    }
}

impl PartIntake for Asked {
    fn is_full(&self) -> bool {
        false
    }
}

impl OpenPart for Files {
    type Source = Reader<Input>;
    type Intake = Asked;

    fn open(&self, part: usize, reading: PartReading) -> Option<(Reader<Input>, Asked)> {
        let mut bytes = capture(part as i64 + 1, self.spacing, self.hosts);
        let input: Input = if self.how == How::Fails {
            bytes.truncate(bytes.len() / 2);
            Box::new(Cursor::new(bytes).chain(Broken))
        } else {
            Box::new(Cursor::new(bytes))
        };
        if reading == PartReading::Analysis {
            self.opened.lock().unwrap().push(part);
        }
        Some((Reader::with_read_size(input, READ).unwrap(), Asked(self.how)))
    }
}

/// All files in order. At each border it waits until the next one is analysed by itself.
struct InOrder<'a>(Merged<Input>, Option<&'a Files>);

impl<'a> InOrder<'a> {
    fn new(files: Option<&'a Files>, spacing: i64, hosts: Hosts) -> Self {
        let input = |number| -> Input { Box::new(Cursor::new(capture(number, spacing, hosts))) };
        let readers =
            (1..=FILES as i64).map(|number| Reader::with_read_size(input(number), READ).unwrap());
        let mut merged = Merged::new(readers.collect());
        if files.is_some() {
            merged.stop_between();
        }
        Self(merged, files)
    }
}

impl Source for InOrder<'_> {
    type Error = MergeError;

    fn read_batch(&mut self, batch: &mut Batch) -> Result<Progress, MergeError> {
        self.0.read_batch(batch)
    }
}

impl PartSource<Files> for InOrder<'_> {
    fn heads(&self) -> Vec<Head> {
        self.0.heads()
    }

    fn next_alone(&self) -> Option<Head> {
        let head = self.0.next_alone()?;
        while let Some(files) = self.1.filter(|_| head.input > 0)
            && !files.opened.lock().unwrap().contains(&head.input)
            && files.how == How::Well
        {
            std::thread::yield_now();
        }
        Some(head)
    }

    fn go_on_with(&mut self, part: usize, source: Reader<Input>, span: (Timestamp, Timestamp)) {
        self.0.go_on_with(part, source, span);
    }
}

/// Counts packets that are taken in order, and parts that are taken over.
#[derive(Default)]
struct Counts {
    packets: usize,
    parts: Vec<usize>,
}

impl Intake for Counts {
    fn wants(&mut self, _: &Packet<'_>) -> bool {
        self.packets += 1;
        true
    }
}

impl<S> Attend<S> for Counts {}

impl AttendParts<InOrder<'_>, Files> for Counts {
    fn take_over(&mut self, _: &InOrder<'_>, part: usize, _: Asked) -> anyhow::Result<()> {
        self.parts.push(part);
        Ok(())
    }
}

#[derive(Default, PartialEq)]
struct Rows(Vec<(usize, Vec<u8>)>);

impl RowSink for Rows {
    type Error = anyhow::Error;

    fn row(&mut self, log: usize, _: &SortKey, bytes: &[u8]) -> anyhow::Result<()> {
        self.0.push((log, bytes.to_vec()));
        Ok(())
    }
}

fn settings() -> Settings {
    Settings {
        limits: Limits::default(),
        options: Options::default(),
        workers: 1,
        style: Some(Format::Tsv.into()),
        logs: netsniff_output::LogSet::ALL,
        seed: 1,
        prompt: false,
    }
}

/// The rows of all files in order, and how many of them are connections.
fn in_order(spacing: i64, hosts: Hosts) -> (Rows, usize) {
    let mut rows = Rows::default();
    run(&mut InOrder::new(None, spacing, hosts), &settings(), &mut (), &mut rows).unwrap();
    let conn = netsniff_output::LogSet::named("conn").unwrap();
    let flows = rows.0.iter().filter(|(log, _)| conn.contains(*log)).count();
    (rows, flows)
}

fn by_themselves(
    how: How,
    waiting_bytes: usize,
    spacing: i64,
    hosts: Hosts,
) -> anyhow::Result<(Rows, Counts, PartsOutcome)> {
    let files = Files { how, spacing, hosts, opened: Mutex::default() };
    let (mut counts, mut rows) = (Counts::default(), Rows::default());
    let mut source = InOrder::new(Some(&files), spacing, hosts);
    let jobs = Jobs { threads: 2, waiting_bytes };
    let settings = settings();
    let (_, parts) = run_parts(&mut source, &files, (&settings, jobs), &mut counts, &mut rows)?;
    assert!(
        source.0.readers().all(|reader| reader.packets() >= 2000),
        "all are read to their ends"
    );
    Ok((rows, counts, parts))
}

#[test]
fn a_part_is_taken_over_whole_or_where_too_much_waits() {
    let (expected, flows) = in_order(DAY, Hosts::Same);
    assert_eq!(flows, 2000 * FILES);
    for waiting_bytes in [0, usize::MAX] {
        let (rows, counts, parts) =
            by_themselves(How::Well, waiting_bytes, DAY, Hosts::Same).unwrap();
        assert!(rows == expected, "{waiting_bytes}");
        assert_eq!(counts.parts, [1, 2, 3], "{waiting_bytes}");
        assert_eq!((parts.parts, parts.apart, parts.read_again_bytes), (FILES, FILES - 1, 0));
        // The rest of a part that was full is read in order.
        assert_eq!(counts.packets > 2000, waiting_bytes == 0, "{}", counts.packets);
        assert!(counts.packets < 2000 * FILES, "{}", counts.packets);
    }
}

/// Flows of UDP last a minute: here each goes on in every file.
#[test]
fn a_part_in_which_flows_go_on_is_read_in_order() {
    let (expected, flows) = in_order(30, Hosts::Same);
    assert_eq!(flows, 1500 + 500 * FILES);
    for waiting_bytes in [0, usize::MAX] {
        let (rows, counts, parts) =
            by_themselves(How::Well, waiting_bytes, 30, Hosts::Same).unwrap();
        assert!(rows == expected);
        assert_eq!((counts.packets, parts.apart), (2000 * FILES, 0));
    }
}

/// Every other flow goes on in every file, and the others are of hosts of one file alone.
#[test]
fn pairs_that_do_not_go_on_are_analysed_by_themselves() {
    let (expected, flows) = in_order(30, Hosts::Mixed);
    assert_eq!(flows, 500 + 1500 * FILES);
    let (rows, counts, parts) = by_themselves(How::Well, usize::MAX, 30, Hosts::Mixed).unwrap();
    assert!(rows == expected);
    assert_eq!((counts.packets, parts.apart), (2000 * FILES, 0));
    assert_eq!((parts.by_pairs, parts.read_again_bytes), (FILES - 1, 0));
}

/// The pause is longer than what is planned for, so that the connection is found at the border.
#[test]
fn a_pair_that_is_remembered_longer_than_planned_is_found() {
    let (expected, flows) = in_order(600, Hosts::Typed);
    assert_eq!(flows, 1 + 2000 * FILES);
    let (rows, _, parts) = by_themselves(How::Well, usize::MAX, 600, Hosts::Typed).unwrap();
    assert!(rows == expected);
    assert!(parts.by_pairs < FILES - 1 && parts.read_again_bytes > 0, "{parts:?}");
}

/// What is in a tunnel has the name of the tunnel, which goes on although the hosts in it are new.
#[test]
fn pairs_in_a_tunnel_that_goes_on_are_analysed_in_order() {
    let (expected, _) = in_order(30, Hosts::Tunnelled);
    let (rows, counts, parts) = by_themselves(How::Well, usize::MAX, 30, Hosts::Tunnelled).unwrap();
    assert!(rows == expected);
    assert_eq!((counts.packets, parts.apart), (2000 * FILES, 0));
    assert_eq!((parts.by_pairs, parts.read_again_bytes), (FILES - 1, 0));
}

#[test]
fn a_part_that_fails_by_itself_is_read_in_order() {
    let (rows, counts, parts) = by_themselves(How::Fails, usize::MAX, DAY, Hosts::Same).unwrap();
    assert!(rows == in_order(DAY, Hosts::Same).0);
    assert_eq!((counts.packets, parts.apart), (2000 * FILES, 0));
}

#[test]
fn a_panic_ends_all() {
    let work = || by_themselves(How::Panics, usize::MAX, DAY, Hosts::Same).map(|_| ());
    if let Ok(outcome) = catch_unwind(AssertUnwindSafe(work)) {
        assert_eq!(outcome.unwrap_err().to_string(), "a worker panicked");
    }
}
