//! Programs of classic BPF against the filters that they were made of, and against libpcap's programs.
#![allow(
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "an oracle is a program, and only the crate itself is without I/O"
)]

mod random;

use core::num::NonZeroU32;
use std::collections::BTreeMap;
use std::process::Command;

use netsniff_packet::filter::classic::{
    Error, Instruction, Metadata, Options, Program, Rejection, Target, VlanTag,
};
use netsniff_packet::{Filter, LinkType, Packet, Timestamp};
use netsniff_testing::filter::capture::Frame;
use netsniff_testing::filter::frames;
use netsniff_testing::{Need, has_program, skip};
use random::Random;

const EXPRESSIONS: &str = include_str!("filter/expressions.txt");
const SNAPLEN: NonZeroU32 = NonZeroU32::new(262_144).unwrap();

fn expressions() -> impl Iterator<Item = &'static str> {
    EXPRESSIONS.lines().filter(|line| !line.is_empty() && !line.starts_with('#'))
}

fn compile(filter: &Filter, link_type: LinkType, target: Target) -> Result<Program, Error> {
    filter.compile(link_type, &Options { target, snaplen: SNAPLEN, sample: None })
}

/// What [`Filter::matches`] says of a frame.
fn matches(filter: &Filter, link_type: LinkType, frame: &Frame) -> bool {
    filter.matches(&Packet {
        timestamp: Timestamp::EPOCH,
        data: &frame.data,
        wire_len: frame.wire_len,
        link_type,
        interface: 0,
    })
}

/// Runs a program for files.
fn run(program: &Program, frame: &Frame) -> bool {
    accepts(program, &frame.data, &Metadata { length: frame.wire_len, ..Metadata::default() })
}

fn accepts(program: &Program, bytes: &[u8], metadata: &Metadata) -> bool {
    match program.run(bytes, metadata) {
        0 => false,
        kept => {
            assert_eq!(kept, SNAPLEN.get());
            true
        }
    }
}

/// The frame as a packet socket has it: without its tag, if it has one, or without its cooked header.
fn in_the_kernel(link_type: LinkType, frame: &Frame) -> Option<(Vec<u8>, Metadata)> {
    let word = |at: usize| frame.data.get(at..)?.first_chunk().copied().map(u16::from_be_bytes);
    let mut metadata = Metadata { length: frame.wire_len, ..Metadata::default() };
    let mut bytes = frame.data.clone();
    match link_type {
        LinkType::ETHERNET => {
            let tpid = word(12).filter(|tpid| [0x8100, 0x88a8].contains(tpid))?;
            metadata.vlan = Some(VlanTag { tpid, tci: word(14)? });
            metadata.length = frame.wire_len.checked_sub(4)?;
            bytes.drain(12..16);
        }
        LinkType::LINUX_SLL => {
            metadata.packet_type = u8::try_from(word(0)?).ok()?;
            metadata.hardware_type = word(2)?;
            metadata.protocol = word(14)?;
            metadata.length = frame.wire_len.checked_sub(16)?;
            bytes.drain(..16);
        }
        LinkType::LINUX_SLL2 => {
            metadata.protocol = word(0)?;
            metadata.interface_index = u32::from(word(4)?) << 16 | u32::from(word(6)?);
            metadata.hardware_type = word(8)?;
            metadata.packet_type = *bytes.get(10)?;
            metadata.length = frame.wire_len.checked_sub(20)?;
            bytes.drain(..20);
        }
        _ => {}
    }
    Some((bytes, metadata))
}

#[derive(Default)]
struct Tally {
    programs: usize,
    refused: usize,
    accepted: usize,
    rejected: usize,
}

impl Tally {
    /// Compares what a program says of the frames with what the filter says.
    fn compare(&mut self, text: &str, link_type: LinkType, target: Target, frames: &[Frame]) {
        let filter = Filter::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        let program = match compile(&filter, link_type, target) {
            Ok(program) => program,
            Err(Error::Filter(error)) => {
                assert_eq!(filter.check(link_type), Err(error));
                return;
            }
            Err(Error::HeaderByte { .. } | Error::Scratch | Error::Program(_)) => {
                self.refused += 1;
                return;
            }
            Err(error) => panic!("{text}: {error}"),
        };
        self.programs += 1;
        for (number, frame) in frames.iter().enumerate() {
            let ours = matches(&filter, link_type, frame);
            let agrees = match target {
                Target::File => run(&program, frame) == ours,
                Target::Kernel => in_the_kernel(link_type, frame)
                    .is_none_or(|(bytes, metadata)| accepts(&program, &bytes, &metadata) == ours),
            };
            assert!(agrees, "{link_type} {target:?}: {text}: {number}: {ours} {frame:02x?}");
            // A tag that nobody took out.
            if target == Target::Kernel && link_type == LinkType::ETHERNET {
                assert_eq!(run(&program, frame), ours, "{text}: {number} in band: {frame:02x?}");
            }
            *(if ours { &mut self.accepted } else { &mut self.rejected }) += 1;
        }
    }
}

#[test]
fn programs_for_files_decide_as_the_filter() {
    let mut tally = Tally::default();
    for (link_type, frames) in frames::all() {
        for text in expressions() {
            tally.compare(text, link_type, Target::File, &frames);
        }
    }
    assert_eq!(tally.refused, 0);
    assert!(tally.programs > 4000, "{}", tally.programs);
    assert!(tally.accepted > 100_000 && tally.rejected > 100_000);
}

#[test]
fn programs_for_the_kernel_decide_as_the_filter_on_whole_frames() {
    for (link_type, frames) in frames::all() {
        let mut tally = Tally::default();
        for text in expressions() {
            tally.compare(text, link_type, Target::Kernel, &frames);
        }
        // Only cooked headers have bytes that the kernel does not have.
        let is_cooked = [LinkType::LINUX_SLL, LinkType::LINUX_SLL2].contains(&link_type);
        assert_eq!(tally.refused > 0, is_cooked, "{link_type}: {}", tally.refused);
        assert!(tally.refused < tally.programs / 10, "{link_type}: {}", tally.refused);
    }
}

#[test]
fn filters_by_chance_decide_alike_in_all_forms() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let all: BTreeMap<LinkType, Vec<Frame>> = frames::all().into_iter().collect();
    let mut tally = Tally::default();
    for _ in 0..4000 {
        let text = random.filter(4);
        if Filter::parse(&text).is_err() {
            continue;
        }
        for link_type in [LinkType::ETHERNET, LinkType::RAW, LinkType::LINUX_SLL] {
            let frames: Vec<_> = (0..60).map(|_| random.frame(&all[&link_type])).collect();
            for target in [Target::File, Target::Kernel] {
                tally.compare(&text, link_type, target, &frames);
            }
        }
    }
    assert!(tally.programs > 5000, "{}", tally.programs);
    assert!(tally.accepted > 10_000 && tally.rejected > 10_000);
}

#[test]
fn a_tag_that_was_taken_out_counts_wherever_it_is_asked_for() {
    let tagged = [&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0xa8, 0x30, 100][..], &[8, 0, 0x45]];
    let mut frame = Frame::whole(tagged.concat());
    frame.data.resize(70, 9);
    frame.wire_len = 70;
    let frames = [frame];
    let mut texts = Vec::new();
    for size in [1, 2, 4] {
        for offset in 6..20 {
            let bytes = &frames[0].data[offset..offset + size];
            let value = bytes.iter().fold(0_u32, |value, byte| value << 8 | u32::from(*byte));
            texts.push(format!("ether[{offset}:{size}] = {value}"));
            texts.push(format!("ether[len - {}:{size}] = {value}", 70 - offset));
            texts.push(format!("ether[{offset}:{size}] & 0x0f = {}", value & 15));
        }
    }
    texts.extend(["len = 70", "vlan 100 and ip", "ether proto 0x88a8", "not ip"].map(String::from));
    for text in texts {
        let mut tally = Tally::default();
        tally.compare(&text, LinkType::ETHERNET, Target::Kernel, &frames);
        assert_eq!(tally.accepted, 1, "{text}");
    }
}

/// The negative offsets of the kernel have meanings of their own; in a filter they are outside.
#[test]
fn offsets_of_the_kernel_cannot_be_reached_by_a_filter() {
    let zeros = Frame::whole(vec![0; 64]);
    for text in [
        "ether[0xfffff000] >= 0",
        "ether[0xfffff004:1] = 0",
        "ether[len - 4160] >= 0",
        "ether[0xffe00000] = 0",
        "ether[len - 65 + 0xffe00000 - 0xffffffff] = 0",
        "not ether[0xfffff02c:2] = 1",
        "ip[0] = 0 or ether[ether[0] - 1048576:4] = 0",
    ] {
        let filter = Filter::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        for target in [Target::File, Target::Kernel] {
            let program = compile(&filter, LinkType::ETHERNET, target).unwrap();
            assert!(!run(&program, &zeros), "{text}");
            assert!(!matches(&filter, LinkType::ETHERNET, &zeros), "{text}");
        }
    }
}

#[test]
fn the_kernel_keeps_as_much_as_was_asked_for() {
    let snaplen = NonZeroU32::new(96).unwrap();
    let options = Options { target: Target::Kernel, snaplen, sample: None };
    let program = Filter::parse("").unwrap().compile(LinkType::ETHERNET, &options).unwrap();
    assert_eq!(program.instructions(), [Instruction { code: 6, jt: 0, jf: 0, k: 96 }]);
    let program = Filter::parse("ip").unwrap().compile(LinkType::ETHERNET, &options).unwrap();
    let mut frame = [0; 64];
    frame[12] = 8;
    assert_eq!(program.run(&frame, &Metadata::default()), 96);
    frame[13] = 6;
    assert_eq!(program.run(&frame, &Metadata::default()), 0);
}

#[test]
fn long_filters_jump_far_until_the_kernel_would_refuse_them() {
    let list = |hosts: usize| {
        let hosts: Vec<_> = (0..hosts).map(|n| format!("10.0.{}.{}", n >> 8, n & 255)).collect();
        format!("not (host {}) or arp", hosts.join(" or "))
    };
    let link_type = LinkType::ETHERNET;
    let frames: Vec<_> = frames::all().into_iter().find(|all| all.0 == link_type).unwrap().1;
    let mut tally = Tally::default();
    for hosts in [30, 60, 64, 65, 70, 127, 130, 200, 1000] {
        for target in [Target::File, Target::Kernel] {
            tally.compare(&list(hosts), link_type, target, &frames);
        }
    }
    assert_eq!((tally.programs, tally.refused), (18, 0));
    let filter = Filter::parse(&list(2000)).unwrap();
    let error = compile(&filter, link_type, Target::Kernel).unwrap_err();
    let Error::Program(Rejection::TooLong { instructions }) = error else { panic!("{error}") };
    assert!(instructions > 4096);
}

/// Most operations of classic BPF.
const CODES: &[u16] = &[
    0x00, 0x20, 0x28, 0x30, 0x40, 0x48, 0x50, 0x60, 0x80, 0x01, 0x61, 0xb1, 0x02, 0x03, 0x05, 0x15,
    0x1d, 0x25, 0x35, 0x45, 0x04, 0x0c, 0x1c, 0x2c, 0x34, 0x3c, 0x54, 0x64, 0x6c, 0x7c, 0x84, 0x94,
    0x9c, 0xac, 0x06, 0x16, 0x07, 0x87,
];

/// Whatever is taken as a program ends without a panic, and nothing else is run.
#[test]
fn instructions_by_chance_are_refused_or_run() {
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    let frame: Vec<_> = (0..64).map(|_| random.below(256) as u8).collect();
    let metadata = Metadata { length: 64, ..Metadata::default() };
    let (mut taken, mut kept) = (0, 0);
    for _ in 0..50_000 {
        let mut instructions: Vec<_> = (0..random.below(8))
            .map(|_| {
                let bits = random.below(33);
                Instruction {
                    code: CODES
                        .get(random.below(CODES.len() + 2))
                        .map_or(bits as u16, |code| *code),
                    jt: random.below(4) as u8,
                    jf: random.below(4) as u8,
                    k: random.below(1 << bits) as u32,
                }
            })
            .collect();
        instructions.push(Instruction { code: 0x16, jt: 0, jf: 0, k: 0 });
        if let Ok(program) = Program::new(instructions) {
            taken += 1;
            kept += usize::from(program.run(&frame, &metadata) != 0);
        }
    }
    assert!(taken > 5000 && kept > 500, "{taken} {kept}");
}

/// A program as `tcpdump -ddd` prints it: the number of instructions, then each in decimal numbers.
fn program(text: &str) -> Option<Program> {
    let instructions: Vec<_> = text
        .lines()
        .skip(1)
        .map(|line| {
            let mut fields = line.split(' ').map(|field| field.parse::<u32>().unwrap());
            let mut next = || fields.next().unwrap();
            let (code, jt, jf, k) = (next(), next(), next(), next());
            Instruction { code: code as u16, jt: jt as u8, jf: jf as u8, k }
        })
        .collect();
    Program::new(instructions).ok()
}

fn compiled_by_libpcap(arguments: &[&str], text: &str) -> Option<Program> {
    let output = Command::new("tcpdump")
        .args(arguments)
        .args(["-ddd", "--", text])
        .output()
        .unwrap_or_else(|error| panic!("tcpdump: {error}"));
    output.status.success().then(|| program(&String::from_utf8_lossy(&output.stdout)))?
}

/// What libpcap's programs decide otherwise in the kernel than in a file, because sums of offsets
/// wrap there and only five bits of a shift count. Ours do not.
const UNLIKE_THE_KERNEL: &[&str] =
    &["tcp[-20] = 0x45", "1 << ip[8] = 0", "0xff000000 >> ip[8] = 0"];

#[test]
fn programs_of_libpcap_decide_as_ours() {
    if !has_program("tcpdump", "no programs are compared with libpcap's") {
        return;
    }
    let link_type = LinkType::ETHERNET;
    let frames: Vec<_> = frames::all().into_iter().find(|all| all.0 == link_type).unwrap().1;
    let whole: Vec<_> =
        frames.iter().filter(|frame| frame.data.len() == frame.wire_len as usize).collect();
    let (mut compared, mut longer, mut ours_in_all, mut theirs_in_all) = (0, Vec::new(), 0, 0);
    for text in expressions().filter(|text| !UNLIKE_THE_KERNEL.contains(text)) {
        let filter = Filter::parse(text).unwrap();
        let Ok(ours) = compile(&filter, link_type, Target::File) else {
            continue;
        };
        let Some(theirs) = compiled_by_libpcap(&["-y", "EN10MB"], text) else {
            continue;
        };
        compared += 1;
        for frame in &whole {
            assert_eq!(run(&ours, frame), run(&theirs, frame), "{text}: {frame:02x?}");
        }
        let [ours, theirs] = [&ours, &theirs].map(|program| program.instructions().len());
        (ours_in_all, theirs_in_all) = (ours_in_all + ours, theirs_in_all + theirs);
        if ours > theirs {
            longer.push(format!("{ours} for {theirs}: {text}"));
        }
    }
    eprintln!("{compared} programs, {ours_in_all} instructions for {theirs_in_all} of libpcap");
    eprintln!("{} are longer:\n{}", longer.len(), longer.join("\n"));
    assert!(compared > 400, "{compared}");
    // Our programs are those of a filter that is written out; they need not be longer for that.
    assert!(ours_in_all * 100 < theirs_in_all * 105);
}

/// On a live interface libpcap looks for tags where the kernel put them.
#[test]
fn programs_of_libpcap_find_tags_where_ours_do() {
    const LIVE: &[&str] = &["-i", "lo"];
    if !has_program("tcpdump", "tags are not compared") {
        return;
    }
    if compiled_by_libpcap(LIVE, "vlan").is_none() {
        skip(Need::Root, "tcpdump may open no interface, so tags are not compared");
        return;
    }
    let link_type = LinkType::ETHERNET;
    let frames: Vec<_> = frames::all().into_iter().find(|all| all.0 == link_type).unwrap().1;
    let mut compared = 0;
    for text in expressions().filter(|text| text.starts_with("vlan")) {
        let filter = Filter::parse(text).unwrap();
        // There, offsets in the link layer do not count the tag, and neither does a second `or`.
        if text.contains("ether") || text.contains(" or ") {
            continue;
        }
        let Some(theirs) = compiled_by_libpcap(LIVE, text) else {
            continue;
        };
        let ours = compile(&filter, link_type, Target::Kernel).unwrap();
        for frame in frames.iter().filter(|frame| frame.data.len() == frame.wire_len as usize) {
            assert_eq!(run(&ours, frame), run(&theirs, frame), "{text} in band: {frame:02x?}");
            if let Some((bytes, metadata)) = in_the_kernel(link_type, frame) {
                let [ours, theirs] =
                    [&ours, &theirs].map(|program| program.run(&bytes, &metadata) != 0);
                assert_eq!(ours, theirs, "{text}: {frame:02x?}");
                compared += 1;
            }
        }
    }
    assert!(compared > 500, "{compared}");
}
