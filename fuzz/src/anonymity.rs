//! Anonymisation of packets whose addresses are known: none of them is left.
//!
//! An input says which headers stand around a datagram, and where the capture cut it. Each hardware
//! address is made of one of a few words, which no other field has. Needs nothing of libFuzzer: an
//! ordinary test replays findings with it.

use std::sync::{Arc, LazyLock};

use netsniff_packet::anonymize::frame::{PacketAnonymizer, PayloadMode};
use netsniff_packet::anonymize::{Keep, Key, Method};
use netsniff_packet::{Anonymizer, LinkType};

/// Words that addresses are made of: three bytes each, with a first byte that makes a host's address.
const WORDS: [[u8; 3]; 4] =
    [[0xd8, 0x9b, 0xe7], [0xdc, 0xb7, 0xed], [0xe4, 0xa7, 0xf3], [0xf0, 0xbd, 0xdb]];

/// Headers around a datagram at most; every one takes a byte of the input.
const MOST: usize = 24;

/// Builds a packet from an input, anonymises it in each mode, and looks for addresses.
///
/// # Panics
///
/// Where an address, or half of one, is left.
pub fn check(input: &[u8]) {
    static ANONYMIZER: LazyLock<Arc<Anonymizer>> = LazyLock::new(|| {
        let key = Key::new([7; Key::LEN]);
        Arc::new(Anonymizer::new(Method::CryptoPan, &key, &Keep::default()))
    });
    let mut maker = Maker { input, at: 0, host: 0, in_udp: false };
    let (link_type, data, wire_len) = maker.packet();
    for payload in [PayloadMode::Keep, PayloadMode::Cut, PayloadMode::Hash] {
        if payload == PayloadMode::Keep && maker.in_udp {
            // What no tunnel is taken for is payload, and stays as such.
            continue;
        }
        let mut changed = data.clone();
        let mut anonymizer = PacketAnonymizer::new(Arc::clone(&ANONYMIZER), payload);
        let left = anonymizer.packet(link_type, &mut changed, wire_len);
        let told = &changed[..left.len];
        let found = told.windows(3).position(|window| WORDS.iter().any(|word| word == window));
        assert!(
            found.is_none(),
            "{link_type}, {payload:?}: {found:?} of {told:02x?}, which was {data:02x?}"
        );
    }
}

struct Maker<'a> {
    input: &'a [u8],
    at: usize,
    host: usize,
    /// Whether a frame stands in UDP.
    in_udp: bool,
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
        if place < ip.unwrap_or(data.len())
            && let Some(byte) = data.get_mut(place)
            && !WORDS.as_flattened().contains(byte)
            && !WORDS.as_flattened().contains(&value)
        {
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
            1 => (LinkType::IEEE802_11, self.wlan()),
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
                let head = [&[0x20, 0, 0, 0, 0, 1][..], &self.mac(), &[0, 1]].concat();
                (0x88e5, self.tagged(depth, &head))
            }
            10 => (0x88e7, [vec![0, 0, 0, 9], self.ethernet(depth + 1)].concat()),
            11 => {
                let context = [&self.mac()[..], &self.mac(), &[0; 4]].concat();
                let head = [&[0x0f, 0xc6, 2, 3, 0, 0, 1, 255][..], &context].concat();
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
        let head = [0, 1, 8, 0, 6, 4, 0, 1];
        [&head[..], &sender, &[192, 0, 2, 1], &target, &[192, 0, 2, 2]].concat()
    }

    /// IEEE 802.11: type, flags and an aggregate as the input says.
    fn wlan(&mut self) -> Vec<u8> {
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
        // A stamp of 8 bytes, at a multiple of 8 from the begin of the header, and flags.
        let mut fields = vec![0; (4 + 4 * words).next_multiple_of(8) - (4 + 4 * words)];
        fields.extend([1, 2, 3, 4, 5, 6, 7, 8, 0]);
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
        bytes.extend(self.wlan());
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
