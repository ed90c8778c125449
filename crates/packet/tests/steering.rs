//! The programs that go by pairs of addresses: what belongs together stays together, and the rest spreads.

use core::num::NonZeroU32;
use std::collections::HashSet;

use netsniff_packet::filter::classic::{
    Error, Metadata, Options, Program, Target, VlanTag, steering,
};
use netsniff_packet::{Filter, LinkType};

const MACS: [[u8; 6]; 2] = [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]];

/// Two addresses of one IP version, source and destination.
#[derive(Clone, Copy, Debug)]
enum Pair {
    V4(u32, u32),
    V6(u128, u128),
}

impl Pair {
    fn reversed(self) -> Self {
        match self {
            Self::V4(source, destination) => Self::V4(destination, source),
            Self::V6(source, destination) => Self::V6(destination, source),
        }
    }

    const fn ether_type(self) -> u16 {
        match self {
            Self::V4(..) => 0x0800,
            Self::V6(..) => 0x86dd,
        }
    }

    /// A packet with a payload that begins with the ports.
    fn packet(self, fragment: u16, ports: [u8; 4]) -> Vec<u8> {
        match self {
            Self::V4(source, destination) => {
                let mut packet = vec![0x45, 0, 0, 40, 0, 1, 0, 0, 64, 17, 0, 0];
                packet[6..8].copy_from_slice(&fragment.to_be_bytes());
                packet.extend(source.to_be_bytes());
                packet.extend(destination.to_be_bytes());
                packet.extend(ports);
                packet.resize(40, 7);
                packet
            }
            Self::V6(source, destination) => {
                let mut packet = vec![0x60, 0, 0, 0, 0, 20, 17, 64];
                packet.extend(source.to_be_bytes());
                packet.extend(destination.to_be_bytes());
                packet.extend(ports);
                packet.resize(60, 7);
                packet
            }
        }
    }
}

/// Headers of Ethernet: addresses, then each header with its type before it.
fn frame(macs: [[u8; 6]; 2], headers: &[&[u8]]) -> Vec<u8> {
    [&macs.concat()[..], &headers.concat()].concat()
}

fn plain(ether_type: u16, payload: &[u8]) -> Vec<u8> {
    frame(MACS, &[&ether_type.to_be_bytes(), payload])
}

fn label(is_last: bool) -> [u8; 4] {
    (77_u32 << 12 | u32::from(is_last) << 8 | 64).to_be_bytes()
}

/// The packet behind everything that is looked behind.
fn encapsulated(pair: Pair, packet: &[u8]) -> Vec<Vec<u8>> {
    let ether_type = pair.ether_type().to_be_bytes();
    let ppp = if pair.ether_type() == 0x0800 { [0, 0x21] } else { [0, 0x57] };
    let session: &[u8] = &[0x88, 0x64, 0x11, 0, 0, 1, 0, 42];
    let tag: &[u8] = &[0x81, 0, 0, 100];
    let mut frames = vec![
        frame(MACS, &[&ether_type, packet]),
        frame(MACS, &[tag, &ether_type, packet]),
        frame(MACS, &[&[0x88, 0xa8, 0x30, 9], tag, &ether_type, packet]),
        frame(MACS, &[&[0x91, 0, 0x30, 9], tag, &ether_type, packet]),
        frame(MACS, &[tag, tag, tag, tag, &ether_type, packet]),
        frame(MACS, &[session, &ppp, packet]),
        frame(MACS, &[tag, session, &ppp, packet]),
        frame(MACS, &[session, &[0x02, 0x81], &label(true), packet]),
        frame(MACS, &[&[0x88, 0x48], &label(true), packet]),
        frame(MACS, &[tag, &[0x88, 0x47], &label(false), &label(true), packet]),
    ];
    let mut labels = vec![label(false); 7];
    labels.push(label(true));
    frames.push(frame(MACS, &[&[0x88, 0x47], &labels.concat(), packet]));
    frames
}

/// The number of a frame: as this host sends it, as it is received, and as it is received with its
/// tag beside.
fn numbers(program: &Program, frame: &[u8]) -> Vec<u32> {
    let length = frame.len() as u32;
    let ether_type = |frame: &[u8]| u16::from_be_bytes([frame[12], frame[13]]);
    let sent = Metadata { length, packet_type: 4, ..Metadata::default() };
    let mut numbers = vec![program.run(frame, &sent)];
    let protocol = match ether_type(frame) {
        // A length: IEEE 802.2, as the kernel says it.
        0..0x600 => 4,
        protocol => protocol,
    };
    let received = Metadata { length, start: 14, protocol, ..Metadata::default() };
    numbers.push(program.run(frame, &received));
    if [0x8100, 0x88a8].contains(&protocol) {
        let tag = VlanTag { tpid: protocol, tci: u16::from_be_bytes([frame[14], frame[15]]) };
        let stripped = [&frame[..12], &frame[16..]].concat();
        let protocol = ether_type(&stripped);
        let beside = Metadata { protocol, length: length - 4, vlan: Some(tag), ..received };
        numbers.push(program.run(&stripped, &beside));
        numbers.push(program.run(&stripped, &Metadata { packet_type: 4, start: 0, ..beside }));
    }
    numbers
}

/// The one number that all frames have.
fn number<'a>(program: &Program, frames: impl IntoIterator<Item = &'a Vec<u8>>) -> u32 {
    let mut all = None;
    for frame in frames {
        for number in numbers(program, frame) {
            assert_eq!(*all.get_or_insert(number), number, "{frame:02x?}");
        }
    }
    all.unwrap()
}

fn of_pair(program: &Program, pair: Pair) -> u32 {
    let frame = plain(pair.ether_type(), &pair.packet(0, [0; 4]));
    program.run(&frame, &Metadata { packet_type: 4, ..Metadata::default() })
}

const PAIRS: [Pair; 4] = [
    Pair::V4(0x0a00_0001, 0xc000_0201),
    Pair::V4(0x0a00_0001, 0x0a00_0001),
    Pair::V6(0x2001_0db8 << 96 | 1, 0x2001_0db8 << 96 | 2),
    Pair::V6(0xfe80 << 112 | 1, 0xff02 << 112 | 0xfb),
];

#[test]
fn a_pair_has_one_number_in_both_directions_and_behind_everything() {
    let program = steering(LinkType::ETHERNET).unwrap();
    let mut all = HashSet::new();
    for pair in PAIRS {
        let mut frames = Vec::new();
        for pair in [pair, pair.reversed()] {
            for (fragment, ports) in
                [(0, [0, 21, 4, 1]), (0x2000, [4, 1, 0, 21]), (0x2005, [9; 4]), (0x4000, [0; 4])]
            {
                frames.extend(encapsulated(pair, &pair.packet(fragment, ports)));
            }
        }
        all.insert(number(&program, &frames));
    }
    assert_eq!(all.len(), PAIRS.len());
}

#[test]
fn raw_ip_has_the_numbers_of_ethernet() {
    let [ethernet, raw] = [LinkType::ETHERNET, LinkType::RAW].map(|kind| steering(kind).unwrap());
    for pair in PAIRS {
        let packet = pair.packet(0, [1, 2, 3, 4]);
        for packet_type in [0, 4] {
            let metadata = Metadata { packet_type, ..Metadata::default() };
            assert_eq!(raw.run(&packet, &metadata), of_pair(&ethernet, pair));
        }
    }
    assert_eq!(steering(LinkType::NULL), Err(Error::NoAddresses(LinkType::NULL)));
}

#[test]
fn arp_goes_with_the_traffic_it_is_for() {
    let program = steering(LinkType::ETHERNET).unwrap();
    let addresses = [[10, 0, 0, 1], [192, 0, 2, 1]];
    let arp = |sender: usize| {
        let head = [0, 1, 8, 0, 6, 4, 0, 1];
        let packet =
            [&head[..], &MACS[sender], &addresses[sender], &[0; 6], &addresses[1 - sender]];
        frame([[0xff; 6], MACS[sender]], &[&[8, 6], &packet.concat()])
    };
    let pair = of_pair(&program, Pair::V4(0x0a00_0001, 0xc000_0201));
    assert_eq!(number(&program, &[arp(0), arp(1)]), pair);
}

#[test]
fn what_has_no_addresses_goes_by_its_macs() {
    let program = steering(LinkType::ETHERNET).unwrap();
    let packet = Pair::V4(1, 2).packet(0, [0; 4]);
    let tag: &[u8] = &[0x81, 0, 0, 100];
    let mut labels = vec![label(false); 9];
    labels.push(label(true));
    let mut all = HashSet::new();
    for number_of_pair in 0..100_u8 {
        let macs = [[2, 0, 0, 0, 0, 1], [2, 0, number_of_pair, 0, 0, 2]];
        let [there, back] = [macs, [macs[1], macs[0]]].map(|macs| {
            let payload = &[7; 46][..];
            vec![
                frame(macs, &[&[0x88, 0xcc], payload]),
                frame(macs, &[&[0, 38], payload]),
                // An ARP packet of other addresses.
                frame(macs, &[&[8, 6, 0, 6, 8, 0, 6, 16], payload]),
                // Neither version of IP; a pseudo-wire; too many tags; too many labels.
                frame(macs, &[&[8, 0], payload]),
                frame(macs, &[&[0x88, 0x47], &label(true), &[0, 0, 0, 0], payload]),
                frame(macs, &[tag, tag, tag, tag, tag, tag, &[8, 0], &packet]),
                frame(macs, &[&[0x88, 0x47], &labels.concat(), &packet]),
                frame(macs, &[&[0x88, 0x64, 0x11, 0, 0, 1, 0, 42, 0xc0, 0x21], payload]),
            ]
        });
        all.insert(number(&program, there.iter().chain(&back)));
    }
    assert_eq!(all.len(), 100);
}

#[test]
fn a_cut_packet_has_a_number() {
    let program = steering(LinkType::ETHERNET).unwrap();
    let pair = PAIRS[2];
    for frame in encapsulated(pair, &pair.packet(0, [0; 4])) {
        let addresses_end = frame.len() - 20;
        let whole = of_pair(&program, pair);
        for length in 14..frame.len() {
            let metadata = Metadata { packet_type: 4, ..Metadata::default() };
            let expected = if length < addresses_end { 0 } else { whole };
            assert_eq!(program.run(&frame[..length], &metadata), expected, "{length}");
        }
    }
}

/// Pairs as networks have them.
fn families() -> Vec<(&'static str, Vec<Pair>)> {
    let network = 0x0a01_0000_u32;
    let prefix = 0x2001_0db8_u128 << 96;
    let square =
        |count: u32| (0..count).flat_map(move |one| (0..count).map(move |other| (one, other)));
    let bits = |width: u32| {
        (0..width)
            .flat_map(move |one| (0..width).map(move |other| (1_u128 << one, 1_u128 << other)))
    };
    vec![
        ("a server", (0..16_384).map(|host| Pair::V4(network + host, 0xc000_0201)).collect()),
        (
            "two networks",
            square(128).map(|(one, other)| Pair::V4(network + one, 0x0a02_0000 + other)).collect(),
        ),
        (
            "strided",
            square(128)
                .map(|(one, other)| Pair::V4(network + (one << 8), 0x0a02_0001 + (other << 16)))
                .collect(),
        ),
        (
            "single bits",
            bits(128).map(|(one, other)| Pair::V6(prefix ^ one, (prefix << 1) ^ other)).collect(),
        ),
        (
            "IPv6 hosts",
            square(128)
                .map(|(one, other)| {
                    Pair::V6(prefix | u128::from(one), prefix | 1 << 64 | u128::from(other))
                })
                .collect(),
        ),
    ]
}

/// How far the counts are from even: a sum that is seldom above three times the number of counts.
fn unevenness(counts: &[usize]) -> f64 {
    let expected = counts.iter().sum::<usize>() as f64 / counts.len() as f64;
    counts.iter().map(|count| (*count as f64 - expected).powi(2) / expected).sum()
}

#[test]
fn pairs_spread_over_the_rings() {
    let program = steering(LinkType::ETHERNET).unwrap();
    for (name, pairs) in families() {
        let numbers: Vec<_> = pairs.iter().map(|pair| of_pair(&program, *pair)).collect();
        for rings in 2..=8 {
            let mut counts = vec![0; rings];
            for number in &numbers {
                counts[*number as usize % rings] += 1;
            }
            assert!(unevenness(&counts) < 4.0 * rings as f64, "{name}: {counts:?}");
        }
        let different: HashSet<_> = numbers.iter().collect();
        assert!(different.len() + 20 > pairs.len(), "{name}: {}", different.len());
    }
}

#[test]
fn every_bit_of_an_address_changes_half_of_the_number() {
    let program = steering(LinkType::ETHERNET).unwrap();
    for bit in 0..128 {
        let mut changed = 0;
        for round in 0..64_u128 {
            let (one, other) =
                (round.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835), round);
            let pair = of_pair(&program, Pair::V6(one, other));
            changed += (pair ^ of_pair(&program, Pair::V6(one ^ 1 << bit, other))).count_ones();
            if bit < 32 {
                let (one, other) = (one as u32, other as u32);
                let pair = of_pair(&program, Pair::V4(one, other));
                changed += (pair ^ of_pair(&program, Pair::V4(one, other ^ 1 << bit))).count_ones();
            }
        }
        let bits = if bit < 32 { 64 * 64 } else { 64 * 32 };
        assert!(
            (bits * 45 / 100..bits * 55 / 100).contains(&changed),
            "{bit}: {changed} of {bits}"
        );
    }
}

fn sampled(text: &str, one_in: u32, target: Target) -> Program {
    let [snaplen, one_in] = [96, one_in].map(|number| NonZeroU32::new(number).unwrap());
    let options = Options { target, snaplen, sample: Some(one_in) };
    Filter::parse(text).unwrap().compile(LinkType::ETHERNET, &options).unwrap()
}

#[test]
fn a_sample_is_of_whole_pairs_and_of_its_size() {
    for one_in in [1, 2, 3, 4, 10, 64] {
        let program = sampled("", one_in, Target::Kernel);
        for (name, pairs) in families() {
            let passed = pairs.iter().filter(|pair| of_pair(&program, **pair) != 0).count();
            let others = pairs.len() - passed;
            assert!(one_in > 1 || others == 0);
            if one_in > 1 {
                let expected = pairs.len() as f64 / f64::from(one_in);
                assert!(
                    (passed as f64 - expected).abs() < 5.0 * expected.sqrt(),
                    "{name}: {passed}"
                );
            }
        }
        for pair in (0..50).map(|host| Pair::V4(0x0a00_0001, 0xc000_0200 + host)) {
            let passes = of_pair(&program, pair);
            assert!([0, 96].contains(&passes));
            for pair in [pair, pair.reversed()] {
                for frame in encapsulated(pair, &pair.packet(0x2005, [3; 4])) {
                    assert_eq!(program.run(&frame, &Metadata::default()), passes, "{frame:02x?}");
                }
            }
        }
    }
}

#[test]
fn a_sample_is_taken_of_what_the_filter_lets_through() {
    let pairs = (0..400).map(|host| Pair::V4(0x0a00_0001, 0xc000_0200 + host));
    for target in [Target::File, Target::Kernel] {
        let all = sampled("", 4, target);
        let some = sampled("port 53 and vlan 100", 4, target);
        let mut passed = 0;
        for pair in pairs.clone() {
            for (ports, tagged) in
                [([0, 53, 9, 9], true), ([0, 54, 9, 9], true), ([0, 53, 9, 9], false)]
            {
                let packet = pair.packet(0, ports);
                let tag: &[u8] = if tagged { &[0x81, 0, 0, 100] } else { &[] };
                let frame = frame(MACS, &[tag, &[8, 0], &packet]);
                assert_eq!(all.run(&frame, &Metadata::default()), of_pair(&all, pair));
                // The ports are behind the tag, where `port` does not look before `vlan`.
                assert_eq!(some.run(&frame, &Metadata::default()), 0);
            }
            let vlan_first = sampled("vlan 100 and port 53", 4, target);
            let frame = frame(MACS, &[&[0x81, 0, 0, 100, 8, 0], &pair.packet(0, [0, 53, 9, 9])]);
            let kept = vlan_first.run(&frame, &Metadata::default());
            assert_eq!(kept, of_pair(&all, pair));
            passed += usize::from(kept != 0);
        }
        assert!((60..140).contains(&passed), "{passed}");
    }
}

#[test]
fn a_sample_spreads_over_all_rings() {
    let program = steering(LinkType::ETHERNET).unwrap();
    for one_in in [2, 4, 8] {
        let sample = sampled("", one_in, Target::Kernel);
        for (name, pairs) in families() {
            let numbers = pairs
                .iter()
                .filter(|pair| of_pair(&sample, **pair) != 0)
                .map(|pair| of_pair(&program, *pair));
            let mut counts = [0; 8];
            for number in numbers {
                counts[number as usize % 8] += 1;
            }
            assert!(unevenness(&counts) < 32.0, "{one_in} {name}: {counts:?}");
        }
    }
}

#[test]
fn a_sample_needs_addresses() {
    let one_in = NonZeroU32::new(2);
    let options = Options { target: Target::Kernel, snaplen: NonZeroU32::MAX, sample: one_in };
    let filter = Filter::parse("ip").unwrap();
    assert!(filter.compile(LinkType::RAW, &options).is_ok());
    let error = filter.compile(LinkType::LINUX_SLL, &options).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the addresses in packets of link type LINUX_SLL cannot be found"
    );
}
