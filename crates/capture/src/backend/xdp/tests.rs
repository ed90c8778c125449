//! Programs in the kernel: what the verifier says, and filters against the interpreter of classic BPF.

use core::num::NonZeroU32;

use netsniff_packet::filter::classic::{Instruction as Classic, Metadata, Options, Target};
use netsniff_packet::{Filter, LinkType};

use super::*;
use crate::backend::shared_tally::{SharedTally, make};
use crate::ebpf::assembler::{Assembler, Register};
use crate::ebpf::copy::{Copying, copy, record};
use crate::ebpf::filter::{self, CONTEXT, Exits, Hook, KEPT, LAST_OFFSET};
use crate::ebpf::redirect::redirect;
use crate::ebpf::tally::Counter;
use crate::sys::bpf::SocketMap;
use crate::sys::record_ring::{Record, RecordRing};
use netsniff_testing::filter::frames;
use netsniff_testing::{Need, skip};

const EXPRESSIONS: &str = include_str!("../../../../packet/tests/filter/expressions.txt");

/// The kernel's test takes no packet shorter than an Ethernet header.
const SHORTEST: usize = 14;

/// Whether this process may load programs; says so where it may not.
fn may_load(test: &str) -> bool {
    match SocketMap::create(1) {
        Ok(_) => true,
        Err(error) => {
            skip(Need::Root, format_args!("{test} needs the right to make BPF maps: {error}"));
            false
        }
    }
}

/// A filter alone, whose result is the program's.
fn alone(
    program: &classic::Program,
    hook: Hook,
) -> std::result::Result<Vec<Instruction>, ebpf::Error> {
    let mut assembler = Assembler::default();
    let [accept, reject] = [(); 2].map(|()| assembler.label());
    assembler.set(CONTEXT, Register::R1);
    filter::append(&mut assembler, program, hook, Exits { accept, reject })?;
    assembler.here(accept);
    assembler.set(Register::R0, KEPT);
    assembler.exit();
    assembler.here(reject);
    assembler.set(Register::R0, 0);
    assembler.exit();
    assembler.finish()
}

/// Runs a filter in the kernel, before the stack and before a socket, and in the interpreter.
fn compare(program: &classic::Program, packets: &[Vec<u8>], name: &str) -> usize {
    let [xdp, socket] = [(Hook::Xdp, ProgramKind::Xdp), (Hook::Socket, ProgramKind::SocketFilter)]
        .map(|(hook, kind)| {
            Program::load(kind, &alone(program, hook).unwrap())
                .unwrap_or_else(|refusal| panic!("{name}: {}", refusal.log))
        });
    let mut accepted = 0;
    for packet in packets {
        // The kernel lends the packet to the loopback interface.
        let length = packet.len() as u32;
        let metadata = Metadata { length, interface_index: 1, ..Metadata::default() };
        let expected = program.run(packet, &metadata);
        if packet.len() >= SHORTEST {
            assert_eq!(xdp.run(packet).unwrap(), expected, "{name} in XDP: {packet:02x?}");
        }
        // A socket's program begins behind the link-layer header in this test.
        let behind = [&[0; SHORTEST][..], packet].concat();
        if behind.len() <= LONGEST_OF_SOCKET && !packet.is_empty() {
            assert_eq!(socket.run(&behind).unwrap(), expected, "{name} at a socket: {packet:02x?}");
        }
        accepted += usize::from(expected > 0);
    }
    accepted
}

/// What the kernel's test takes for a socket, at least: a page less what it needs around a packet.
const LONGEST_OF_SOCKET: usize = 3000;

fn packets_of(link_type: LinkType) -> Vec<Vec<u8>> {
    let all = frames::all().into_iter().find(|all| all.0 == link_type).unwrap();
    all.1.into_iter().map(|frame| frame.data).collect()
}

fn expressions() -> impl Iterator<Item = &'static str> {
    EXPRESSIONS.lines().filter(|line| !line.is_empty() && !line.starts_with('#'))
}

#[test]
fn filters_decide_as_the_interpreter_does() {
    if !may_load("filters in XDP") {
        return;
    }
    let (mut programs, mut accepted) = (0, 0);
    for link_type in [LinkType::ETHERNET, LinkType::RAW] {
        let packets = packets_of(link_type);
        for (number, text) in expressions().enumerate() {
            let filter = Filter::parse(text).unwrap();
            let sampled = (Target::Kernel, NonZeroU32::new(3));
            let others = [(Target::File, None), sampled].into_iter().filter(|_| number % 8 == 0);
            for (target, sample) in [(Target::Kernel, None)].into_iter().chain(others) {
                let snaplen = NonZeroU32::new(262_144).unwrap();
                let options = Options { target, snaplen, sample };
                if let Ok(program) = filter.compile(link_type, &options) {
                    accepted += compare(&program, &packets, text);
                    programs += 1;
                }
            }
        }
    }
    println!("{programs} programs, {accepted} packets accepted");
    assert!(programs > 900 && accepted > 50_000, "{programs} programs, {accepted} packets");
}

/// The generator `xorshift64*` of Vigna, 2016.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32) % bound
    }

    /// An instruction of any kind that an XDP program can answer, at a place with so many behind it.
    fn instruction(&mut self, behind: u64) -> Classic {
        const KINDS: [u16; 14] =
            [0x20, 0x28, 0x30, 0x40, 0x48, 0x50, 0x80, 0xb1, 0x00, 0x01, 0x07, 0x87, 0x02, 0x60];
        let mut skip = || self.below(behind.min(5)) as u8;
        let (jt, jf) = (skip(), skip());
        let number = match self.below(4) {
            0 => self.below(u64::from(u32::MAX)) as u32,
            1 => 0xffff_fff0 + self.below(16) as u32,
            _ => self.below(40) as u32,
        };
        let source = if self.below(2) == 0 { 0 } else { 0x08 };
        match self.below(5) {
            0 => Classic { code: 0x05 | source | (0x10 << self.below(3)), jt, jf, k: number },
            1 | 2 => {
                let code = 0x04 | source | (0x10 * self.below(11)) as u16;
                let k = if matches!(code & 0xf0, 0x60 | 0x70) { number % 32 } else { number };
                Classic { code, jt: 0, jf: 0, k: k.max(1) }
            }
            _ => {
                let code = KINDS[self.below(KINDS.len() as u64) as usize];
                let k = match code {
                    // Offsets that mean something else, or that only the interpreter can load from.
                    0x20 | 0x28 | 0x30 | 0xb1 => number % LAST_OFFSET,
                    0x02 | 0x60 => 3,
                    _ => number,
                };
                Classic { code, jt: 0, jf: 0, k }
            }
        }
    }

    fn program(&mut self) -> Vec<Classic> {
        let len = 4 + self.below(30);
        // The scratch word is written first, so that every program may read it.
        let mut program = vec![Classic { code: 0x02, jt: 0, jf: 0, k: 3 }];
        program.extend((0..len).map(|at| self.instruction(len - at)));
        program.push(Classic { code: 0x16, jt: 0, jf: 0, k: 0 });
        program
    }
}

#[test]
fn programs_by_chance_return_what_the_interpreter_does() {
    if !may_load("programs by chance in XDP") {
        return;
    }
    let packets: Vec<_> = packets_of(LinkType::ETHERNET).into_iter().step_by(17).collect();
    let (mut random, mut accepted) = (Random(0x9e37_79b9_7f4a_7c15), 0);
    let mut programs = 0;
    while programs < 2000 {
        let instructions = random.program();
        let Ok(program) = classic::Program::new(instructions.clone()) else { continue };
        // The interpreter knows a second name for the link-layer header, which no filter uses.
        accepted += compare(&program, &packets, &format!("{instructions:?}"));
        programs += 1;
    }
    println!("{accepted} packets accepted");
    assert!(accepted > 2000, "{accepted}");
}

/// A packet longer than a page: the kernel's test puts what does not fit into fragments.
#[test]
fn bytes_in_fragments_are_loaded() {
    if !may_load("fragments in XDP") {
        return;
    }
    let packet: Vec<u8> = (0..9000_u32).map(|at| (at * at / 7) as u8).collect();
    let ret = Classic { code: 0x16, jt: 0, jf: 0, k: 0 };
    for at in [0, 3000, 3500, 3519, 3520, 4095, 8000, 8996, 8998, 8999, 9000] {
        for code in [0x20, 0x28, 0x30] {
            let absolute = classic::Program::new([Classic { code, jt: 0, jf: 0, k: at }, ret]);
            compare(&absolute.unwrap(), core::slice::from_ref(&packet), &format!("{code} {at}"));
            let x = Classic { code: 0x01, jt: 0, jf: 0, k: at / 2 };
            let load = Classic { code: code + 0x20, jt: 0, jf: 0, k: at - at / 2 };
            let indirect = classic::Program::new([x, load, ret]).unwrap();
            compare(&indirect, core::slice::from_ref(&packet), &format!("{code} X + {at}"));
        }
    }
}

#[test]
fn a_long_filter_is_taken() {
    if !may_load("a long filter in XDP") {
        return;
    }
    let hosts: Vec<_> = (0..1000).map(|n| format!("host 10.{}.{}.9", n / 250, n % 250)).collect();
    let filter = Filter::parse(&hosts.join(" or ")).unwrap();
    let snaplen = NonZeroU32::new(96).unwrap();
    let options = Options { target: Target::Kernel, snaplen, sample: None };
    let program = filter.compile(LinkType::ETHERNET, &options).unwrap();
    assert!(program.instructions().len() > 4000);
    compare(&program, &packets_of(LinkType::ETHERNET), "a thousand hosts");
}

#[test]
fn what_xdp_is_not_told_is_refused_by_name() {
    let ask = |k: u32| {
        let load = Classic { code: 0x30, jt: 0, jf: 0, k: 0xffff_f000 + k };
        let program = classic::Program::new([load, Classic { code: 0x16, jt: 0, jf: 0, k: 0 }]);
        alone(&program.unwrap(), Hook::Xdp)
    };
    assert_eq!(ask(4), Err(ebpf::Error::Unknown("the direction")));
    assert_eq!(ask(0), Err(ebpf::Error::Unknown("the protocol")));
    assert!(ask(48).is_ok() && ask(8).is_ok());
}

#[test]
fn the_verifier_takes_the_whole_programs() {
    if !may_load("whole XDP programs") {
        return;
    }
    let sockets = SocketMap::create(64).unwrap();
    let shared = SharedTally::make().unwrap();
    let snaplen = NonZeroU32::new(128).unwrap();
    let options = Options { target: Target::Kernel, snaplen, sample: None };
    let filter = Filter::parse("tcp port 80 or vlan 7 and len > 100").unwrap();
    let filter = filter.compile(LinkType::ETHERNET, &options).unwrap();
    for wanted in [None, Some(&filter)] {
        let program = load(redirect(sockets.number(), shared.tally(), wanted)).unwrap();
        // Without a socket, and with the gate closed or open, everything passes.
        for is_open in [false, true] {
            shared.set_open(is_open);
            assert_eq!(program.run(&[0; 60]).unwrap(), 2);
        }
        shared.set_open(false);
    }
    assert_eq!((shared.count(Counter::Filtered), shared.count(Counter::Taken)), (1, 0));
}

/// The ring has room for one record of the longest packets: what does not fit is counted, and told at the next.
#[test]
fn copies_have_their_bytes_and_the_drops_before_them() {
    if !may_load("the copying program") {
        return;
    }
    let mut ring = RecordRing::create(1 << 17).unwrap();
    let shared = SharedTally::make().unwrap();
    let filter = Filter::parse("ether[0] = 7").unwrap();
    let snaplen = NonZeroU32::new(262_144).unwrap();
    let options = Options { target: Target::Kernel, snaplen, sample: None };
    let filter = filter.compile(LinkType::ETHERNET, &options).unwrap();
    let (number, tally) = (ring.number(), shared.tally());
    let copying = Copying { ring: number, tally, wanted: Some(&filter), snaplen: 1, wakes: true };
    let program = load(copy(&copying)).unwrap();
    shared.set_open(true);
    let packet = |len: usize| (7..).take(len).map(|at: u32| at as u8).collect::<Vec<_>>();
    // Of each class one that just fits, and one that just does not.
    let lens = [14, 64, 65, 96, 97, 128, 129, 256, 257, 1024, 1025, 1536, 1537, 9000, 40_000];
    for len in lens {
        assert_eq!(program.run(&packet(len)).unwrap(), 2, "it is passed on");
        assert_eq!(program.run(&[0; 60]).unwrap(), 2);
    }
    let begin = u64::from_ne_bytes;
    for len in lens {
        let Some(Record::Finished(record)) = ring.peek() else { panic!("{len} is there") };
        assert_eq!(&record[record::HEADER..][..len], packet(len));
        assert_eq!(begin(*record[record::DROPS..].first_chunk().unwrap()), 0);
        ring.advance();
    }
    ring.release();
    let count = |counter| shared.count(counter) as usize;
    assert_eq!((count(Counter::Taken), count(Counter::Filtered)), (lens.len(), lens.len()));
    for _ in 0..3 {
        program.run(&packet(60_000)).unwrap();
    }
    assert_eq!((count(Counter::Taken), shared.dropped()), (lens.len() + 1, 2));
    ring.advance();
    ring.release();
    program.run(&packet(100)).unwrap();
    let Some(Record::Finished(record)) = ring.peek() else { panic!("it is there") };
    assert_eq!(begin(*record[record::DROPS..].first_chunk().unwrap()), 2);
}

#[test]
fn what_the_verifier_says_is_told() {
    if may_load("the verifier's reason") {
        let mut assembler = Assembler::default();
        assembler.set(Register::R0, Register::R5);
        assembler.exit();
        let error = load(assembler.finish()).unwrap_err().to_string();
        assert!(error.contains("load the XDP program (R5 !read_ok)"), "{error}");
    }
}

#[test]
fn missing_rights_are_named() {
    let error = make::<()>(Err(io::Error::from_raw_os_error(libc::EPERM))).unwrap_err();
    let told = error.to_string();
    assert!(told.contains("setcap cap_net_raw,cap_net_admin,cap_bpf+ep"), "{told}");
}
