//! Merges instances of captures into one traffic, in time order and a packet at a time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use netsniff_packet::Timestamp;

use super::capture::Capture;
use crate::Random;
use crate::rewrite::{AddressMap, Outer, rewrite_addresses};

/// IPv4 addresses of instances: 32.0.0.0/3, 2^29 of them.
const V4_PREFIX: u32 = 0x2000_0000;
const V4_SIZE: u32 = 1 << 29;

/// Instances of captures under way. Memory is the captures' and a few bytes for each instance, whatever the size of
/// the traffic.
#[derive(Clone, Debug)]
pub struct Mix<'c> {
    captures: &'c [Capture],
    instances: Vec<Instance>,
    /// The next packet of each instance: its time, and the instance's number to break ties.
    next: BinaryHeap<Reverse<(i64, u32)>>,
}

#[derive(Clone, Copy, Debug)]
struct Instance {
    capture: u32,
    frame: u32,
    start: i64,
    /// Numbers of its first addresses.
    first_v4: u32,
    first_v6: u64,
}

/// More addresses are needed than the mix has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyAddresses;

impl<'c> Mix<'c> {
    /// `counts[n]` instances of `captures[n]`, each starting at a seeded random microsecond such that it ends within
    /// `span` nanoseconds after `start` where it can.
    ///
    /// # Errors
    ///
    /// Where the instances have more than 2^29 IPv4 addresses together.
    pub fn new(
        captures: &'c [Capture],
        counts: &[u32],
        seed: u64,
        start: Timestamp,
        span: i64,
    ) -> Result<Self, TooManyAddresses> {
        let mut random = Random::new(seed);
        let mut mix = Self { captures, instances: Vec::new(), next: BinaryHeap::new() };
        let (mut first_v4, mut first_v6) = (0u32, 0u64);
        for (number, (capture, count)) in (0..).zip(captures.iter().zip(counts)) {
            let (v4, v6) = capture.address_counts();
            let places = span.saturating_sub(capture.duration()).max(0).unsigned_abs() / 1000;
            for _ in 0..*count {
                let start = start.nanos().saturating_add(random.below(places + 1) as i64 * 1000);
                let id = u32::try_from(mix.instances.len()).map_err(|_| TooManyAddresses)?;
                mix.instances.push(Instance {
                    capture: number,
                    frame: 0,
                    start,
                    first_v4,
                    first_v6,
                });
                mix.next.push(Reverse((start, id)));
                first_v4 = first_v4
                    .checked_add(v4)
                    .filter(|next| *next <= V4_SIZE)
                    .ok_or(TooManyAddresses)?;
                first_v6 += u64::from(v6);
            }
        }
        Ok(mix)
    }

    /// How many instances there are.
    #[must_use]
    pub fn instances(&self) -> usize {
        self.instances.len()
    }

    /// Writes the next frame to `frame`, in place of what it held. `None` after the last.
    pub fn next_frame(&mut self, frame: &mut Vec<u8>) -> Option<Made> {
        let Reverse((at, id)) = self.next.pop()?;
        let instance = self.instances.get_mut(id as usize)?;
        let capture = self.captures.get(instance.capture as usize)?;
        let (_, bytes) = capture.frame(instance.frame as usize)?;
        frame.clear();
        frame.extend_from_slice(bytes);
        let outer = rewrite_addresses(frame, &mut Own { instance: *instance, capture });
        instance.frame += 1;
        if let Some((after, _)) = capture.frame(instance.frame as usize) {
            self.next.push(Reverse((instance.start.saturating_add(after), id)));
        }
        Some(Made {
            timestamp: Timestamp::from_nanos(at),
            outer,
            capture: instance.capture as usize,
        })
    }
}

/// What is known of a frame of a mix besides its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Made {
    /// When it is seen.
    pub timestamp: Timestamp,
    /// Its outermost IP packet.
    pub outer: Option<Outer>,
    /// The number of its capture.
    pub capture: usize,
}

/// Gives an instance its own addresses.
struct Own<'c> {
    instance: Instance,
    capture: &'c Capture,
}

impl AddressMap for Own<'_> {
    fn map_v4(&mut self, address: [u8; 4]) -> [u8; 4] {
        let Some(number) = self.capture.addresses().number_v4(address) else { return address };
        // Multiplying by an odd number permutes the 2^29 addresses and scatters neighbours.
        let place = (self.instance.first_v4 + number).wrapping_mul(0x1e35_a7bd) & (V4_SIZE - 1);
        (V4_PREFIX | place).to_be_bytes()
    }

    fn map_v6(&mut self, address: [u8; 16]) -> [u8; 16] {
        let Some(number) = self.capture.addresses().number_v6(address) else { return address };
        let mut mapped = address;
        let place =
            (self.instance.first_v6 + u64::from(number)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        // Link-local addresses stay link-local (RFC 4291, 2.5.6); all others move to 2400::/16.
        if address[0] != 0xfe || address[1] & 0xc0 != 0x80 {
            mapped[..8].copy_from_slice(&[0x24, 0, 0, 0, 0, 0, 0, 0]);
        }
        mapped[8..].copy_from_slice(&place.to_be_bytes());
        mapped
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use netsniff_packet::{LinkType, Packet};

    use super::*;
    use crate::workload::capture::{MAX_GAP, Rejection, flow_of};
    use crate::workload::{Category, Small64, small64::FRAME_LEN};

    /// A capture of two flows, three packets each, a second apart.
    fn capture() -> Capture {
        open_capture().finish(i64::MAX).unwrap()
    }

    fn open_capture() -> Capture {
        let mut workload = Small64::new(1, 6, 2, Timestamp::EPOCH);
        let (mut frame, mut capture, mut at) =
            ([0; FRAME_LEN], Capture::new(Some(Category::Ftp)), 0);
        while workload.next_frame(&mut frame).is_some() {
            capture.push(&packet(&frame, at, LinkType::ETHERNET)).unwrap();
            at += 1_000_000_000;
        }
        capture
    }

    fn packet(data: &[u8], at: i64, link_type: LinkType) -> Packet<'_> {
        Packet {
            timestamp: Timestamp::from_nanos(at),
            data,
            wire_len: data.len() as u32,
            link_type,
            interface: 0,
        }
    }

    fn all(captures: &[Capture], seed: u64) -> Vec<(Made, Vec<u8>)> {
        let mut mix =
            Mix::new(captures, &[40, 3], seed, Timestamp::from_nanos(50), 9_000_000_000).unwrap();
        let (mut made, mut frame) = (Vec::new(), Vec::new());
        while let Some(next) = mix.next_frame(&mut frame) {
            made.push((next, frame.clone()));
        }
        made
    }

    #[test]
    fn instances_share_no_flow_and_time_goes_on() {
        let captures = [capture(), capture()];
        let made = all(&captures, 1);
        assert_eq!(made.len(), 43 * 6);
        assert!(made.windows(2).all(|pair| pair[0].0.timestamp <= pair[1].0.timestamp));
        assert!(
            made.iter().all(|(made, _)| (50..=9_000_000_050).contains(&made.timestamp.nanos()))
        );
        let mut flows = HashMap::new();
        for (made, _) in &made {
            *flows.entry(flow_of(&made.outer.unwrap())).or_insert(0) += 1;
        }
        assert_eq!(flows.len(), 43 * 2);
        assert!(flows.values().all(|packets| *packets == 3));
        let addresses: HashSet<_> =
            flows.keys().flat_map(|flow| [flow.source, flow.destination]).collect();
        assert_eq!(addresses.len(), 43 * 4);
    }

    #[test]
    fn the_seed_decides_the_bytes() {
        let captures = [capture(), capture()];
        assert_eq!(all(&captures, 1), all(&captures, 1));
        assert_ne!(all(&captures, 1), all(&captures, 2));
    }

    #[test]
    fn pauses_are_clipped_and_traits_counted() {
        let capture = capture();
        assert_eq!(capture.duration(), 5 * MAX_GAP);
        let traits = capture.traits();
        assert_eq!((traits.packets, traits.bytes, traits.flows, traits.empty), (6, 384, 2, 3));
        assert_eq!(traits.by_category[Category::Http as usize], 3 * 64, "TCP port 80");
        assert_eq!(traits.by_category[Category::Ftp as usize], 3 * 64, "the subject decides");
        let short = open_capture().finish(MAX_GAP).unwrap();
        assert!(short.duration() <= MAX_GAP && short.duration() > 0);
    }

    #[test]
    fn a_part_holds_one_category_alone() {
        let whole = capture();
        let http = whole.part(Category::Http).unwrap();
        assert_eq!((http.traits().packets, http.traits().flows), (3, 1));
        assert_eq!(http.traits().by_category[Category::Http as usize], 3 * 64);
        assert!(whole.part(Category::Dns).is_none(), "nothing of it");
        assert!(http.part(Category::Http).is_none(), "nothing else");
    }

    #[test]
    fn captures_of_no_use_are_refused() {
        let mut capture = Capture::new(None);
        let whole = packet(&[0x45; 40], 0, LinkType::ETHERNET);
        assert_eq!(capture.push(&Packet { wire_len: 41, ..whole }), Err(Rejection::Cut));
        let radio = LinkType::IEEE802_11;
        assert_eq!(
            capture.push(&Packet { link_type: radio, ..whole }),
            Err(Rejection::LinkType(radio))
        );
        assert_eq!(capture.push(&whole), Ok(()));
        assert_eq!(capture.finish(0).unwrap_err(), Rejection::NoIp);
    }

    #[test]
    fn other_link_types_become_ethernet() {
        let mut frame = [0; FRAME_LEN];
        Small64::new(1, 1, 1, Timestamp::EPOCH).next_frame(&mut frame).unwrap();
        let ip = &frame[14..];
        let sll2 = [&[8, 0][..], &[0; 18], ip].concat();
        let sll = [&[0; 14][..], &[8, 0], ip].concat();
        let null = [&[2, 0, 0, 0][..], ip].concat();
        for (data, link_type) in [
            (ip, LinkType::RAW),
            (&sll, LinkType::LINUX_SLL),
            (&sll2, LinkType::LINUX_SLL2),
            (&null, LinkType::NULL),
        ] {
            let mut capture = Capture::new(None);
            capture.push(&packet(data, 0, link_type)).unwrap();
            assert_eq!(capture.frame(0).unwrap().1[12..], frame[12..], "{link_type}");
        }
    }
}
