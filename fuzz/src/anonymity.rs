//! Anonymisation of packets whose addresses are known: none of them is left.
//!
//! An input says which headers stand around a datagram, and where the capture cut it. Each hardware
//! address is made of one of a few words, which no other field has. Needs nothing of libFuzzer: an
//! ordinary test replays findings with it.

use std::sync::{Arc, LazyLock};

use netsniff_packet::anonymize::frame::{PacketAnonymizer, PayloadMode};
use netsniff_packet::anonymize::{Keep, Key, Method};
use netsniff_packet::decode::{self, Layer};
use netsniff_packet::{Anonymizer, LinkType};

/// Words that addresses are made of: three bytes each, none of which begins the address of a group. A
/// spoiled length moves fields by any number of bytes, and what stands where a packet is sent to stays
/// if it is a group; so no odd byte stands before an address, either.
const WORDS: [[u8; 3]; 4] =
    [[0xd8, 0x9a, 0xe6], [0xdc, 0xb6, 0xec], [0xe4, 0xa6, 0xf2], [0xf0, 0xbc, 0xda]];

/// Headers around a datagram at most; every one takes a byte of the input.
const MOST: usize = 24;

/// Builds a packet from an input, anonymises it in each mode, and looks for addresses.
///
/// # Panics
///
/// Where an address is left; of a packet that was not spoiled, where half of one is.
pub fn check(input: &[u8]) {
    let mut maker = Maker { input, at: 0, host: 0, in_udp: false, is_spoiled: false };
    let (link_type, data, wire_len) = maker.packet();
    let taken_for = decode::packet(link_type, &data, wire_len).layers;
    if maker.is_spoiled && taken_for.contains(Layer::Mpls) {
        // Labels may be any bytes, and stay: where a spoiled byte makes labels of an address, it is none.
        return;
    }
    // What a spoiled byte makes a tag or a short header of is no longer an address.
    let words = if maker.is_spoiled { 2 } else { 1 };
    for payload in [PayloadMode::Keep, PayloadMode::Cut, PayloadMode::Hash] {
        if payload == PayloadMode::Keep && maker.in_udp {
            // What no tunnel is taken for is payload, and stays as such.
            continue;
        }
        let found = left(&ANONYMIZERS[0], payload, link_type, &data, wire_len, words);
        let Some(found) = found.first() else { continue };
        // A pseudonym may have such bytes, but not the same ones with another key.
        let others = left(&ANONYMIZERS[1], payload, link_type, &data, wire_len, words);
        assert!(!others.contains(found), "{link_type}, {payload:?}: at {found} of {data:02x?}");
    }
}

static ANONYMIZERS: LazyLock<[Arc<Anonymizer>; 2]> = LazyLock::new(|| {
    [7, 8].map(|byte| {
        let key = Key::new([byte; Key::LEN]);
        Arc::new(Anonymizer::new(Method::CryptoPan, &key, &Keep::default()))
    })
});

/// Anonymises a packet. Returns where so many words of addresses are left behind one another.
fn left(
    anonymizer: &Arc<Anonymizer>,
    payload: PayloadMode,
    link_type: LinkType,
    data: &[u8],
    wire_len: u32,
    words: usize,
) -> Vec<usize> {
    let mut changed = data.to_vec();
    let mut anonymizer = PacketAnonymizer::new(Arc::clone(anonymizer), payload);
    let left = anonymizer.packet(link_type, &mut changed, wire_len);
    changed.truncate(left.len);
    let windows = changed.windows(3 * words).enumerate();
    let is_address = |window: &[u8]| window.as_chunks::<3>().0.iter().all(|it| WORDS.contains(it));
    windows.filter(|(_, window)| is_address(window)).map(|(at, _)| at).collect()
}

struct Maker<'a> {
    input: &'a [u8],
    at: usize,
    host: usize,
    /// Whether a frame stands in UDP.
    in_udp: bool,
    is_spoiled: bool,
}

impl Maker<'_> {
    /// The next byte of the input; zeros past its end.
    fn next(&mut self) -> u8 {
        self.at += 1;
        self.input.get(self.at - 1).copied().unwrap_or_default()
    }

    /// The address of another host.
    fn mac(&mut self) -> [u8; 6] {
        self.host += 1;
        let [a, b, c] = WORDS[self.host % WORDS.len()];
        let [d, e, f] = WORDS[(self.host + 1) % WORDS.len()];
        [a, b, c, d, e, f]
    }

    fn packet(&mut self) -> (LinkType, Vec<u8>, u32) {
        let kind = self.next();
        let (link_type, mut data) = self.first(kind);
        // What follows the datagram: padding, and a check sequence that looks like an address.
        let trailer = self.next() % 3;
        (0..trailer).for_each(|_| data.extend(self.mac()));
        // One of the bytes before IP may be spoiled: it decides what the rest is taken for.
        let (place, value) = (usize::from(self.next()), self.next());
        let ip = data.windows(2).position(|window| window == [0x45, 0]);
        // What stands where radiotap or 802.11 say that their own fields are is taken for those.
        let first = match link_type {
            LinkType::IEEE802_11_RADIOTAP | LinkType::IEEE802_11 => {
                data.windows(3).position(|window| window == [0xaa, 0xaa, 3])
            }
            _ => None,
        };
        let first = first.unwrap_or(0);
        if (first..ip.unwrap_or(data.len())).contains(&place)
            && let Some(byte) = data.get_mut(place)
            && !WORDS.as_flattened().contains(byte)
            && !WORDS.as_flattened().contains(&value)
        {
            self.is_spoiled = *byte != value;
            *byte = value;
        }
        let wire_len = data.len() as u32;
        let cut = usize::from(self.next());
        data.truncate(data.len().saturating_sub(cut));
        (link_type, data, wire_len)
    }

    fn first(&mut self, kind: u8) -> (LinkType, Vec<u8>) {
        match kind % 10 {
            0 => (LinkType::ETHERNET, self.ethernet(0)),
            1 => (LinkType::IEEE802_11, self.wlan(false)),
            2 => (LinkType::IEEE802_11_RADIOTAP, self.radiotap()),
            3 => {
                let mac = self.mac();
                let (kind, rest) = self.above(0);
                let head = [&[0, 0, 0, 1, 0, 6][..], &mac, &[0, 0], &kind.to_be_bytes()].concat();
                (LinkType::LINUX_SLL, [head, rest].concat())
            }
            4 => {
                let mac = self.mac();
                let (kind, rest) = self.above(0);
                let head =
                    [&kind.to_be_bytes()[..], &[0, 0, 0, 0, 0, 2, 0, 1, 0, 6], &mac, &[0; 2]];
                (LinkType::LINUX_SLL2, [head.concat(), rest].concat())
            }
            5 => {
                let mac = self.mac();
                let head = [&[2, 0, 0, 0, 16, 0, 8, 0, 0, 6, 0, 0][..], &mac, &[0, 0, 4, 0, 9, 0]];
                (LinkType::NFLOG, [head.concat(), self.ip(0)].concat())
            }
            6 => (LinkType::NULL, [vec![2, 0, 0, 0], self.ip(0)].concat()),
            7 => (LinkType::PPP, [vec![0xff, 3, 0, 0x21], self.ip(0)].concat()),
            8 => (LinkType::RAW, self.ip(0)),
            // Whatever is not decoded is told nothing of.
            _ => (LinkType(1_000 + u16::from(self.next())), self.ethernet(0)),
        }
    }

    fn ethernet(&mut self, depth: usize) -> Vec<u8> {
        let (destination, source) = (self.mac(), self.mac());
        let (kind, rest) = self.above(depth);
        [&destination[..], &source, &kind.to_be_bytes(), &rest].concat()
    }

    /// An EtherType, and what it announces.
    fn above(&mut self, depth: usize) -> (u16, Vec<u8>) {
        if depth >= MOST {
            return (0x0800, self.ip(depth));
        }
        let choice = self.next() % 16;
        match choice {
            0..=2 => (0x0800, self.ip(depth)),
            3 => (0x8100, self.tagged(depth, &[0, 7])),
            4 => (0x88a8, self.tagged(depth, &[0, 8])),
            5 => (0x8926, self.tagged(depth, &[0, 0, 0, 1])),
            6 => (0x893f, self.tagged(depth, &[0, 0, 0, 1, 0, 0])),
            7 => (0x892f, self.tagged(depth, &[0, 9, 0, 1])),
            8 => (0x8909, self.tagged(depth, &[1, 1, 0, 1, 0, 9])),
            9 => {
                let head = [&[0x20, 0, 0, 0, 0, 2][..], &self.mac(), &[0, 1]].concat();
                (0x88e5, self.tagged(depth, &head))
            }
            10 => (0x88e7, [vec![0, 0, 0, 8], self.ethernet(depth + 1)].concat()),
            11 => {
                let context = [&self.mac()[..], &self.mac(), &[0; 4]].concat();
                let head = [&[0x0f, 0xc6, 2, 3, 0, 0, 1, 254][..], &context].concat();
                (0x894f, [head, self.ethernet(depth + 1)].concat())
            }
            12 => (0x8847, [vec![0, 1, 0x01, 64, 0, 0, 0, 0], self.ethernet(depth + 1)].concat()),
            13 => (0x0806, self.arp()),
            14 => (0x888e, self.mac().to_vec()),
            _ => {
                let length = self.snapped(depth + 1);
                (length.len() as u16 & 0x03ff, length)
            }
        }
    }

    fn tagged(&mut self, depth: usize, tag: &[u8]) -> Vec<u8> {
        let (kind, rest) = self.above(depth + 1);
        [tag, &kind.to_be_bytes(), &rest].concat()
    }

    fn snapped(&mut self, depth: usize) -> Vec<u8> {
        let (kind, rest) = self.above(depth);
        [&[0xaa, 0xaa, 3, 0, 0, 0][..], &kind.to_be_bytes(), &rest].concat()
    }

    fn arp(&mut self) -> Vec<u8> {
        let (sender, target) = (self.mac(), self.mac());
        let head = [0, 1, 8, 0, 6, 4, 0, 2];
        [&head[..], &sender, &[192, 0, 2, 1], &target, &[192, 0, 2, 2]].concat()
    }

    /// IEEE 802.11: type, flags and an aggregate as the input says.
    fn wlan(&mut self, is_padded: bool) -> Vec<u8> {
        let (control, flags) = (self.next() & 0xfc, self.next());
        let mut bytes = vec![control, flags, 0, 0];
        (0..3).for_each(|_| bytes.extend(self.mac()));
        bytes.extend([0, 0]);
        let is_data = control & 0x0c == 0x08;
        if is_data && flags & 3 == 3 {
            bytes.extend(self.mac());
        }
        let is_aggregate = is_data && control & 0x80 != 0 && self.next() & 1 != 0;
        if is_data && control & 0x80 != 0 {
            bytes.extend([if is_aggregate { 0x80 } else { 0 }, 0]);
            bytes.extend(vec![0; if flags & 0x80 == 0 { 0 } else { 4 }]);
        }
        if is_padded && is_data {
            bytes.resize(bytes.len().next_multiple_of(4), 0);
        }
        let inner = self.snapped(0);
        if is_aggregate {
            bytes.extend(self.mac());
            bytes.extend(self.mac());
            bytes.extend((inner.len() as u16).to_be_bytes());
        }
        bytes.extend(inner);
        bytes
    }

    fn radiotap(&mut self) -> Vec<u8> {
        let words = 1 + usize::from(self.next() % 3);
        let is_vendor = self.next() & 1 != 0;
        let padding = self.next() & 0x20;
        let is_padded = padding != 0;
        // A stamp of 8 bytes, at a multiple of 8 from the begin of the header, and flags.
        let mut fields = vec![0; (4 + 4 * words).next_multiple_of(8) - (4 + 4 * words)];
        fields.extend([1, 2, 3, 4, 5, 6, 7, 8, padding]);
        if is_vendor {
            fields.extend(self.mac());
        }
        let mut bytes = vec![0, 0, (4 + 4 * words + fields.len()) as u8, 0];
        for number in 1..=words {
            let more = if number < words { 1 << 31 } else { 0 };
            let vendor = if is_vendor { 1 << 30 } else { 0 };
            let present = if number == 1 { 3 } else { 0 };
            bytes.extend(u32::to_le_bytes(present | more | vendor));
        }
        bytes.extend(fields);
        bytes.extend(self.wlan(is_padded));
        bytes
    }

    /// IPv4 with UDP, in which a frame may be, or a part of one.
    fn ip(&mut self, depth: usize) -> Vec<u8> {
        let port: u16 = match self.next() % 8 {
            _ if depth >= MOST => 9,
            0 => 4789,
            1 => 8472,
            2 => 6081,
            3 => 4754,
            4 => 6635,
            _ => 9,
        };
        let (head, inner): (&[u8], _) = match port {
            4789 | 8472 => (&[8, 0, 0, 0, 0, 0, 9, 0], self.ethernet(depth + 4)),
            6081 => (&[0, 0, 0x65, 0x58, 0, 0, 9, 0], self.ethernet(depth + 4)),
            4754 => (&[0, 0, 0x65, 0x58], self.ethernet(depth + 4)),
            6635 => (&[0, 1, 0x01, 64], self.ethernet(depth + 4)),
            _ => (&[1, 2, 3], Vec::new()),
        };
        self.in_udp |= !inner.is_empty();
        let payload = [head, &inner].concat();
        let udp_len = (8 + payload.len()) as u16;
        let mut bytes = vec![0x45, 0];
        bytes.extend((20 + udp_len).to_be_bytes());
        bytes.extend([0, 1, 0, 0, 64, 17, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2, 3, 232]);
        bytes.extend(port.to_be_bytes());
        bytes.extend(udp_len.to_be_bytes());
        bytes.extend([0, 0]);
        bytes.extend(payload);
        bytes
    }
}
