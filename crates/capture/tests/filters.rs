//! Programs that the filter's compiler makes, in the kernel. Needs root; says so where it is missing.

#[allow(dead_code, reason = "other tests send stamped frames")]
mod bed;

use core::num::NonZeroU32;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use bed::{Bed, without_bpf};
use netsniff_capture::Interface;
use netsniff_capture::backend::{BACKENDS, Received, Receiver};
use netsniff_capture::options::{Fanout, Options as Ring};
use netsniff_packet::filter::classic::{Metadata, Options, Target, steering};
use netsniff_packet::{Filter, LinkType, Packet, Timestamp};
use netsniff_testing::filter::frames;

const EXPRESSIONS: &str = include_str!("../../packet/tests/filter/expressions.txt");
const PATIENCE: Duration = Duration::from_millis(50);

/// No ring takes longer to empty, whatever a backend does.
const LIMIT: Duration = Duration::from_secs(20);

/// A ring that is made fast.
fn small() -> Ring {
    Ring { ring_bytes: 1 << 20, block_bytes: 1 << 16, ..Ring::default() }
}

fn ethernet() -> Vec<Vec<u8>> {
    let all = frames::all().into_iter().find(|all| all.0 == LinkType::ETHERNET).unwrap().1;
    let whole = all.into_iter().filter(|frame| frame.data.len() == frame.wire_len as usize);
    whole.map(|frame| frame.data).collect()
}

/// Stops a ring and takes all frames in it.
fn drain(receiver: &mut dyn Receiver) -> Vec<Vec<u8>> {
    receiver.stop().unwrap();
    let (begin, mut frames) = (Instant::now(), Vec::new());
    loop {
        match receiver.receive(PATIENCE).unwrap() {
            Received::Packets(lent) => {
                let packets = lent.packets.iter();
                frames.extend(packets.map(|packet| lent.data[packet.range()].to_vec()));
            }
            Received::End => return frames,
            _ => assert!(begin.elapsed() < LIMIT, "it never ends"),
        }
    }
}

fn matches(filter: &Filter, data: &[u8]) -> bool {
    let wire_len = data.len() as u32;
    let link_type = LinkType::ETHERNET;
    filter.matches(&Packet { timestamp: Timestamp::EPOCH, data, wire_len, link_type, interface: 0 })
}

/// Each seventh expression, and all that have to do with tags and lengths.
fn expressions() -> impl Iterator<Item = &'static str> {
    let all = EXPRESSIONS.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    all.enumerate()
        .filter(|(number, text)| number % 7 == 0 || text.contains("vlan") || text.contains("len"))
        .map(|(_, text)| text)
}

#[test]
fn the_kernel_decides_as_the_filter_does() {
    let Some(bed) = Bed::up("filters") else { return };
    let (sent, mut programs, mut taken) = (ethernet(), 0, 0);
    for text in expressions() {
        let filter = Filter::parse(text).unwrap();
        let snaplen = NonZeroU32::new(65_535).unwrap();
        let options = Options { target: Target::Kernel, snaplen, sample: None };
        let Ok(program) = filter.compile(LinkType::ETHERNET, &options) else {
            continue;
        };
        let ring = Ring { filter: program.instructions().to_vec(), ..small() };
        let got = bed.receiving(|| {
            // Classic filters and those that count take turns.
            let open = || BACKENDS[0].open(&Interface::find("rx0").unwrap(), &ring).unwrap();
            let mut receiver = if programs % 2 == 0 { without_bpf(open) } else { open() };
            receiver.start().unwrap();
            bed.send_frames(sent.clone());
            drain(receiver.as_mut())
        });
        // What the namespaces say of themselves was not sent here.
        let got: Vec<_> = got.into_iter().filter(|frame| sent.contains(frame)).collect();
        let wanted: Vec<_> = sent.iter().filter(|frame| matches(&filter, frame)).cloned().collect();
        let differs = (0..got.len().max(wanted.len())).find(|at| got.get(*at) != wanted.get(*at));
        assert_eq!(differs.map(|at| (got.get(at), wanted.get(at))), None, "{text}");
        (programs, taken) = (programs + 1, taken + got.len());
    }
    assert!(programs > 90 && taken > 5000, "{programs} programs, {taken} frames");
}

#[test]
fn the_kernel_steers_by_the_number_of_the_pair() {
    const RINGS: usize = 3;
    let Some(bed) = Bed::up("steer") else { return };
    let program = steering(LinkType::ETHERNET).unwrap();
    let fanout = Fanout { group: Some(77), program: program.instructions().to_vec() };
    let ring = Ring { fanout: Some(fanout), ..small() };
    let sent = ethernet();
    let got: Vec<_> = bed.receiving(|| {
        let interface = Interface::find("rx0").unwrap();
        let open = || BACKENDS[0].open(&interface, &ring).unwrap();
        let mut receivers: Vec<_> = (0..RINGS).map(|_| open()).collect();
        for receiver in &mut receivers {
            receiver.start().unwrap();
        }
        bed.send_frames(sent.clone());
        receivers.iter_mut().map(|receiver| drain(receiver.as_mut())).collect()
    });
    // Which ring has which number is the kernel's choice.
    let mut rings: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    let mut arrived = 0;
    for (ring, frames) in got.iter().enumerate() {
        for frame in frames.iter().filter(|frame| sent.contains(frame)) {
            let length = frame.len() as u32;
            let metadata = Metadata { length, packet_type: 4, ..Metadata::default() };
            let number = program.run(frame, &metadata) as usize % RINGS;
            rings.entry(number).or_default().insert(ring);
            arrived += 1;
        }
    }
    assert_eq!(arrived, sent.len());
    assert_eq!(rings.len(), RINGS);
    assert!(rings.values().all(|rings| rings.len() == 1), "{rings:?}");
    assert_eq!(rings.values().flatten().collect::<BTreeSet<_>>().len(), RINGS);
}
