//! Programs that go by the pair of addresses: which ring gets a packet, and which packets are a sample.
//!
//! Both look at the unordered pair of the outermost IPv4 or IPv6 addresses, behind VLAN tags, MPLS labels
//! and PPPoE, and at no ports: so both directions of a connection, all fragments of a datagram, and a
//! control connection with its data connections go the same way. ARP goes by the addresses it asks
//! and tells, everything else on Ethernet by its pair of MAC addresses. On raw IP, what is not IP counts as
//! one pair.

use core::num::NonZeroU32;

use super::assembler::{Assembler, Label};
use super::opcode as op;
use super::{Error, Program};
use crate::LinkType;
use crate::wire::ethernet::ethertype;
use crate::wire::pppoe::ppp_protocol;

/// VLAN tags that are looked behind. More than two are hardly seen.
const MAX_TAGS: usize = 4;
/// MPLS labels that are looked behind. Stacks of three or four are usual, and deeper ones rare.
const MAX_LABELS: usize = 8;

/// `PACKET_OUTGOING` of packet(7).
const OUTGOING: u32 = 4;
/// Length of an Ethernet header.
const ETHERNET: u32 = 14;
/// Protocol 0x0800 with addresses of 6 and 4 bytes, as ARP writes it.
const ARP_OF_IPV4: u32 = 0x0800_0604;

/// Makes the hash of the steering another one than that of the sample, so that a sample spreads
/// over all rings.
const STEERING_SEED: u32 = 0x243f_6a88;
const SAMPLE_SEED: u32 = 0x85a3_08d3;

/// Scratch words: the addresses as numbers, the words of IPv6 addresses, and what must be kept while a
/// header is passed.
const FIRST_ADDRESS: u32 = 0;
const SECOND_ADDRESS: u32 = 1;
const WORDS: u32 = 2;
const KEPT: u32 = 10;

/// The program of `PACKET_FANOUT_CBPF` that gives each packet a number by its pair of addresses. The
/// kernel takes it modulo the number of sockets.
///
/// The kernel runs it before it knows for which socket: on packets that were received, offsets begin
/// behind the link-layer header, on those that are sent, at it ([`Metadata::start`]). A packet too
/// short for its headers has the number 0.
///
/// [`Metadata::start`]: super::Metadata::start
///
/// # Errors
///
/// For link types other than Ethernet and raw IP.
pub fn steering(link_type: LinkType) -> Result<Program, Error> {
    let mut assembler = Assembler::default();
    hash(&mut assembler, Start::new(link_type, true)?, STEERING_SEED);
    assembler.plain(op::RET_A, 0);
    Ok(Program::new(assembler.finish())?)
}

/// Goes on if the pair of addresses is one of the sample, to `reject` otherwise. A packet too short for
/// its headers is in no sample.
pub(super) fn sample(
    assembler: &mut Assembler,
    link_type: LinkType,
    one_in: NonZeroU32,
    reject: Label,
) -> Result<(), Error> {
    hash(assembler, Start::new(link_type, false)?, SAMPLE_SEED);
    assembler.plain(op::MOD, one_in.get());
    let accept = assembler.label();
    assembler.branch(op::JEQ, 0, accept, reject);
    assembler.here(accept);
    Ok(())
}

/// What lies at offset 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Start {
    /// An Ethernet header.
    Ethernet,
    /// An Ethernet header in packets that are sent, what follows it in others.
    EthernetPassed,
    /// An IP header.
    Ip,
}

impl Start {
    const fn new(link_type: LinkType, is_fanout: bool) -> Result<Self, Error> {
        match link_type {
            LinkType::ETHERNET if is_fanout => Ok(Self::EthernetPassed),
            LinkType::ETHERNET => Ok(Self::Ethernet),
            LinkType::RAW | LinkType::IPV4 | LinkType::IPV6 => Ok(Self::Ip),
            _ => Err(Error::NoAddresses(link_type)),
        }
    }
}

/// `A =` a number made of the seed and the pair of addresses.
fn hash(assembler: &mut Assembler, start: Start, seed: u32) {
    let mut walk = Walk::new(assembler);
    match start {
        Start::Ethernet => walk.ethernet(),
        Start::EthernetPassed => walk.ethernet_passed(),
        Start::Ip => {
            walk.plain(op::LDX_IMM, 0);
            walk.ip();
        }
    }
    walk.ends(start);
    walk.mix(seed);
}

/// Goes through the headers. `X` is the offset of the header that is looked at.
struct Walk<'a> {
    assembler: &'a mut Assembler,
    ipv4: Label,
    ipv6: Label,
    /// There are no addresses.
    other: Label,
    /// The addresses are in scratch memory.
    found: Label,
}

impl<'a> Walk<'a> {
    fn new(assembler: &'a mut Assembler) -> Self {
        let [ipv4, ipv6, other, found] = [(); 4].map(|()| assembler.label());
        Self { assembler, ipv4, ipv6, other, found }
    }

    fn plain(&mut self, code: u16, k: u32) {
        self.assembler.plain(code, k);
    }

    /// `A =` `size` bytes at an offset from `X`.
    fn load(&mut self, offset: u32, size: u8) {
        self.plain(op::sized(op::LD_IND_W, size), offset);
    }

    fn pass(&mut self, len: u32) {
        self.plain(op::TXA, 0);
        self.plain(op::ADD, len);
        self.plain(op::TAX, 0);
    }

    /// Goes to the first label whose value `A` is, or on.
    fn choose(&mut self, choices: &[(u32, Label)]) {
        for (value, label) in choices {
            let next = self.assembler.label();
            self.assembler.branch(op::JEQ, *value, *label, next);
            self.assembler.here(next);
        }
    }

    fn ethernet(&mut self) {
        self.plain(op::LDX_IMM, ETHERNET);
        self.plain(op::sized(op::LD_ABS_W, 2), ETHERNET - 2);
        self.ether_type();
    }

    fn ethernet_passed(&mut self) {
        let [sent, received, both] = [(); 3].map(|()| self.assembler.label());
        self.plain(op::sized(op::LD_ABS_W, 1), op::ancillary::PACKET_TYPE);
        self.assembler.branch(op::JEQ, OUTGOING, sent, received);
        self.assembler.here(sent);
        self.plain(op::LDX_IMM, ETHERNET);
        self.plain(op::sized(op::LD_ABS_W, 2), ETHERNET - 2);
        self.assembler.goto(both);
        self.assembler.here(received);
        self.plain(op::LDX_IMM, 0);
        self.plain(op::sized(op::LD_ABS_W, 2), op::ancillary::PROTOCOL);
        self.assembler.here(both);
        self.ether_type();
    }

    /// `A` is the EtherType of what is at `X`.
    fn ether_type(&mut self) {
        let [ip, arp, mpls, pppoe] = [(); 4].map(|()| self.assembler.label());
        for level in 0..=MAX_TAGS {
            self.choose(&[
                (ethertype::IPV4.into(), ip),
                (ethertype::IPV6.into(), ip),
                (ethertype::ARP.into(), arp),
                (ethertype::RARP.into(), arp),
                (ethertype::MPLS.into(), mpls),
                (ethertype::MPLS_MULTICAST.into(), mpls),
                (ethertype::PPPOE_SESSION.into(), pppoe),
            ]);
            if level < MAX_TAGS {
                let tag = self.assembler.label();
                let tags = [ethertype::VLAN, ethertype::SERVICE_VLAN, ethertype::QINQ];
                self.choose(&tags.map(|kind| (kind.into(), tag)));
                self.assembler.goto(self.other);
                self.assembler.here(tag);
                self.load(2, 2);
                self.plain(op::ST, KEPT);
                self.pass(4);
                self.plain(op::LD_MEM, KEPT);
            }
        }
        self.assembler.goto(self.other);
        self.assembler.here(arp);
        self.arp();
        self.assembler.here(pppoe);
        self.pppoe(ip, mpls);
        self.assembler.here(mpls);
        self.mpls(ip);
        self.assembler.here(ip);
        self.ip();
    }

    /// ARP, RFC 826.
    fn arp(&mut self) {
        let of_ipv4 = self.assembler.label();
        self.load(2, 4);
        self.assembler.branch(op::JEQ, ARP_OF_IPV4, of_ipv4, self.other);
        self.assembler.here(of_ipv4);
        self.pair(14, 24);
    }

    /// A PPPoE session packet, RFC 2516.
    fn pppoe(&mut self, ip: Label, mpls: Label) {
        self.load(6, 2);
        self.plain(op::ST, KEPT);
        self.pass(8);
        self.plain(op::LD_MEM, KEPT);
        self.choose(&[
            (ppp_protocol::IPV4.into(), ip),
            (ppp_protocol::IPV6.into(), ip),
            (ppp_protocol::MPLS.into(), mpls),
        ]);
        self.assembler.goto(self.other);
    }

    /// A stack of MPLS labels, RFC 3032.
    fn mpls(&mut self, ip: Label) {
        for _ in 0..MAX_LABELS {
            let next = self.assembler.label();
            self.load(2, 1);
            self.plain(op::ST, KEPT);
            self.pass(4);
            self.plain(op::LD_MEM, KEPT);
            self.assembler.branch(op::JSET, 1, ip, next);
            self.assembler.here(next);
        }
        self.assembler.goto(self.other);
    }

    /// An IP header of either version. Behind labels, only it tells what follows.
    fn ip(&mut self) {
        self.load(0, 1);
        self.plain(op::AND, 0xf0);
        self.choose(&[(0x40, self.ipv4), (0x60, self.ipv6)]);
        self.assembler.goto(self.other);
    }

    /// Ends with two addresses of 4 bytes.
    fn pair(&mut self, first: u32, second: u32) {
        self.load(first, 4);
        self.plain(op::ST, FIRST_ADDRESS);
        self.load(second, 4);
        self.plain(op::ST, SECOND_ADDRESS);
        self.assembler.goto(self.found);
    }

    /// Where the walk ends: everything is numbers in scratch memory then.
    fn ends(&mut self, start: Start) {
        self.assembler.here(self.ipv6);
        for word in 0..8 {
            self.load(8 + 4 * word, 4);
            self.plain(op::ST, WORDS + word);
        }
        self.fold(WORDS, FIRST_ADDRESS);
        self.fold(WORDS + 4, SECOND_ADDRESS);
        self.assembler.goto(self.found);
        self.assembler.here(self.other);
        self.link_addresses(start);
        self.assembler.goto(self.found);
        self.assembler.here(self.ipv4);
        self.pair(12, 16);
        self.assembler.here(self.found);
    }

    /// Makes one number of four words.
    fn fold(&mut self, first: u32, to: u32) {
        self.plain(op::LD_MEM, first);
        for word in first + 1..first + 4 {
            // Factors alone would leave the upper bits of all words in the upper bits.
            self.scramble(&[(0, 0x9e37_79b1), (15, 0x85eb_ca77)]);
            self.plain(op::LDX_MEM, word);
            self.plain(op::ADD | op::WITH_X, 0);
        }
        self.plain(op::ST, to);
    }

    fn link_addresses(&mut self, start: Start) {
        let header = match start {
            Start::Ethernet => 0,
            Start::EthernetPassed => op::LINK,
            Start::Ip => {
                self.plain(op::LD_IMM, 0);
                self.plain(op::ST, FIRST_ADDRESS);
                self.plain(op::ST, SECOND_ADDRESS);
                return;
            }
        };
        for (at, to) in [(0, FIRST_ADDRESS), (6, SECOND_ADDRESS)] {
            self.plain(op::sized(op::LD_ABS_W, 2), header + at);
            self.plain(op::MUL, 0x9e37_79b1);
            self.plain(op::TAX, 0);
            self.plain(op::sized(op::LD_ABS_W, 4), header + at + 2);
            self.plain(op::ADD | op::WITH_X, 0);
            self.plain(op::ST, to);
        }
    }

    /// `A =` a number in which every bit of both addresses counts, whichever of them is the first.
    fn mix(&mut self, seed: u32) {
        for address in [FIRST_ADDRESS, SECOND_ADDRESS] {
            self.plain(op::LD_MEM, address);
            self.scramble(&[(0, 0x9e37_79b1), (15, 0x85eb_ca77), (13, 1)]);
            if address == FIRST_ADDRESS {
                self.plain(op::ST, FIRST_ADDRESS);
            }
        }
        // A sum does not tell which address was the first.
        self.plain(op::LDX_MEM, FIRST_ADDRESS);
        self.plain(op::ADD | op::WITH_X, 0);
        self.plain(op::XOR, seed);
        self.scramble(&[(16, 0x85eb_ca6b), (13, 0xc2b2_ae35), (16, 1)]);
    }

    /// Folds the upper bits of `A` into the lower ones, then multiplies, for each step.
    fn scramble(&mut self, steps: &[(u32, u32)]) {
        for &(shift, factor) in steps {
            if shift > 0 {
                self.plain(op::TAX, 0);
                self.plain(op::RSH, shift);
                self.plain(op::XOR | op::WITH_X, 0);
            }
            if factor > 1 {
                self.plain(op::MUL, factor);
            }
        }
    }
}
