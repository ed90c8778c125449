//! `small64` and `flood`: the smallest frames over very many flows, by arithmetic alone.

use netsniff_packet::{Address, Timestamp, checksum};

use crate::random::{Shuffle, mix};

/// Bytes of each frame, without the frame check sequence.
pub const FRAME_LEN: usize = 64;

/// Frames of 64 bytes in which every flow has the same number of packets, all in random order. Flows with an even
/// number are UDP, the others repeat one TCP SYN.
#[derive(Clone, Debug)]
pub struct Small64 {
    seed: u64,
    flows: u64,
    order: Shuffle,
    packets: u64,
    made: u64,
    start: Timestamp,
    gap: i64,
    has_data: bool,
}

/// Nanoseconds from packet to packet: 5 million a second, so that all packets of a flow lie within
/// the time that any analyser waits for an answer to a SYN, and each flow is one record.
const GAP: i64 = 200;

/// The same for a flood, whose flows last five times as long.
const FLOOD_GAP: i64 = 1_000;

/// What stands in each SYN of a flood.
const FLOOD_DATA: &[u8; 6] = b"GET /\n";

impl Small64 {
    /// `packets` frames over `flows` flows (at most 2^24, so that each has an address of its own), from `start`.
    #[must_use]
    pub const fn new(seed: u64, packets: u64, flows: u64, start: Timestamp) -> Self {
        let flows = if flows == 0 { 1 } else { flows };
        let flows = if flows > 1 << 24 { 1 << 24 } else { flows };
        let order = Shuffle::new(seed, packets);
        Self { seed, flows, order, packets, made: 0, start, gap: GAP, has_data: false }
    }

    /// The same with data in each SYN, as floods have it that are to cost their target more, and with flows that
    /// last for longer.
    #[must_use]
    pub const fn flood(seed: u64, packets: u64, flows: u64, start: Timestamp) -> Self {
        Self { gap: FLOOD_GAP, has_data: true, ..Self::new(seed, packets, flows, start) }
    }

    /// Writes the next frame; `None` after the last.
    pub fn next_frame(&mut self, frame: &mut [u8; FRAME_LEN]) -> Option<Timestamp> {
        if self.made >= self.packets {
            return None;
        }
        let place = self.order.at(self.made);
        let timestamp = self.start.offset((self.made as i64).saturating_mul(self.gap));
        self.made += 1;
        fill(frame, self.seed, place % self.flows, place / self.flows, self.has_data);
        Some(timestamp)
    }
}

/// The frame of a flow; `turn` numbers its packets, and `has_data` tells whether its SYN has data.
fn fill(frame: &mut [u8; FRAME_LEN], seed: u64, flow: u64, turn: u64, has_data: bool) {
    let noise = mix(seed ^ mix(flow));
    let udp = flow.is_multiple_of(2);
    *frame = [0; FRAME_LEN];
    frame[..14].copy_from_slice(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0]);
    let ip_len: u16 = if udp || has_data { 50 } else { 48 };
    let [.., a, b, c] = (flow as u32).to_be_bytes();
    let [d, e, ..] = noise.to_be_bytes();
    let protocol = if udp { 17 } else { 6 };
    let [length_high, length_low] = ip_len.to_be_bytes();
    let [id_high, id_low] = (turn as u16).to_be_bytes();
    frame[14..34].copy_from_slice(&[
        0x45,
        0,
        length_high,
        length_low,
        id_high,
        id_low,
        0x40,
        0,
        64,
        protocol,
        0,
        0,
        10,
        a,
        b,
        c,
        198,
        18,
        d,
        e,
    ]);
    let header = checksum::compute(&frame[14..34]);
    frame[24..26].copy_from_slice(&header.to_be_bytes());

    let source_port = 1024 + (noise % 60_000) as u16;
    frame[34..36].copy_from_slice(&source_port.to_be_bytes());
    let end = 14 + usize::from(ip_len);
    let checksum_at = if udp {
        frame[36..38].copy_from_slice(&5001u16.to_be_bytes());
        frame[38..40].copy_from_slice(&30u16.to_be_bytes());
        frame[42..50].copy_from_slice(&turn.to_be_bytes());
        40
    } else {
        frame[36..38].copy_from_slice(&80u16.to_be_bytes());
        frame[38..42].copy_from_slice(&((noise >> 16) as u32).to_be_bytes());
        if has_data {
            // Data offset 6, SYN, window 64240; MSS 1460.
            frame[46..50].copy_from_slice(&[0x60, 0x02, 0xfa, 0xf0]);
            frame[54..58].copy_from_slice(&[2, 4, 5, 180]);
            frame[58..64].copy_from_slice(FLOOD_DATA);
        } else {
            // Data offset 7, SYN, window 64240; MSS 1460, one NOP, window scale 7.
            frame[46..50].copy_from_slice(&[0x70, 0x02, 0xfa, 0xf0]);
            frame[54..62].copy_from_slice(&[2, 4, 5, 180, 1, 3, 3, 7]);
        }
        50
    };
    let [source, destination] = [[10, a, b, c], [198, 18, d, e]].map(Address::from_v4);
    let value =
        checksum::compute_with_pseudo_header(source, destination, protocol, &frame[34..end]);
    frame[checksum_at..checksum_at + 2].copy_from_slice(&value.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::rewrite::{AddressMap, rewrite_addresses};

    struct Keep;

    impl AddressMap for Keep {
        fn map_v4(&mut self, address: [u8; 4]) -> [u8; 4] {
            address
        }

        fn map_v6(&mut self, address: [u8; 16]) -> [u8; 16] {
            address
        }
    }

    #[test]
    fn every_flow_has_its_share_and_checksums_are_right() {
        for make in [Small64::new, Small64::flood] {
            check_flows(make(3, 5000, 500, Timestamp::from_nanos(7)));
        }
    }

    fn check_flows(mut workload: Small64) {
        let mut frame = [0; FRAME_LEN];
        let (mut flows, mut last, mut udp) = (BTreeMap::new(), Timestamp::MIN, 0);
        while let Some(timestamp) = workload.next_frame(&mut frame) {
            assert!(timestamp > last);
            last = timestamp;
            let mut checked = frame;
            let outer = rewrite_addresses(&mut checked, &mut Keep).unwrap();
            assert_eq!(checked, frame, "recomputed checksums differ");
            udp += u32::from(outer.protocol == 17);
            *flows
                .entry((outer.source, outer.destination, outer.protocol, outer.ports))
                .or_insert(0) += 1;
        }
        assert_eq!((flows.len(), udp), (500, 2500));
        assert!(flows.values().all(|count| *count == 10));
    }

    #[test]
    fn the_seed_decides_the_bytes() {
        let frames = |seed| {
            let mut workload = Small64::new(seed, 100, 10, Timestamp::EPOCH);
            let mut frame = [0; FRAME_LEN];
            let mut all = Vec::new();
            while workload.next_frame(&mut frame).is_some() {
                all.push(frame);
            }
            all
        };
        assert_eq!(frames(1), frames(1));
        assert_ne!(frames(1), frames(2));
    }
}
