//! IP fragments to datagrams, RFC 791 and RFC 8200, bounded in number, bytes and time.
//!
//! Fragments are joined as Zeek joins them: of bytes that come twice the first count, and what
//! disagrees is reported by Zeek's names. Only IPv6 datagrams with overlaps are given up, as
//! RFC 5722 wants it of every receiver.

use std::collections::{BTreeMap, HashMap, VecDeque};

use netsniff_packet::checksum::ChecksumVerdict;
use netsniff_packet::decode::{Ip, IpVersion};
use netsniff_packet::{Address, Timestamp};

use crate::limits::Limits;
use crate::weird::Weirds;

/// A datagram that is whole again.
#[derive(Debug)]
pub struct Reassembled {
    /// The header of the fragment with offset 0, as it would stand without a fragment header.
    pub ip: Ip,
    /// The payload of all fragments.
    pub payload: Vec<u8>,
    /// What the checksums of their IP headers say: bad where one is, else that of the last.
    pub header_checksum: ChecksumVerdict,
    /// How many fragments it came in.
    pub fragments: u64,
    /// The numbers of the packets that brought them, in order.
    pub packets: Vec<u64>,
}

/// When a fragment came, and in what.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'a> {
    /// Engine time.
    pub now: Timestamp,
    /// The numbers of its packets: several where it is itself in a datagram that came in fragments.
    pub packets: &'a [u64],
}

/// Datagrams, and the fragments that belong to them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Number of datagrams.
    pub datagrams: u64,
    /// Number of their fragments.
    pub fragments: u64,
}

/// What became of the fragments. Each one is in exactly one of the counts, or pending.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FragmentStatistics {
    /// Number of fragments seen.
    pub fragments: u64,
    /// Fragments of which the capture kept too little.
    pub cut: u64,
    /// Datagrams whose fragments all came.
    pub joined: Count,
    /// Datagrams whose rest did not come in time.
    pub timed_out: Count,
    /// Datagrams given up because a bound was reached.
    pub evicted: Count,
    /// Datagrams that no receiver accepts: IPv6 with overlaps, too long, too many fragments.
    pub discarded: Count,
    /// The most bytes held at once.
    pub peak_bytes: usize,
}

/// The datagrams that are not whole yet.
#[derive(Debug)]
pub struct Fragments {
    limits: Limits,
    /// The map's hashes are keyed at random, so that senders cannot aim at one bucket; nothing
    /// depends on its order.
    datagrams: HashMap<Key, Datagram>,
    /// Deadlines in order, since all datagrams have the same time. Entries of datagrams that are
    /// whole or given up stay until they come to the front.
    deadlines: VecDeque<(Timestamp, Key, u64)>,
    bytes: usize,
    begun: u64,
    statistics: FragmentStatistics,
}

/// What the fragments of one datagram have in common. IPv6 fragments of one datagram may name
/// different next headers, of which the first fragment's counts (RFC 8200, 4.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Key {
    source: Address,
    destination: Address,
    identification: u32,
    protocol: Option<u8>,
}

#[derive(Debug)]
struct Datagram {
    number: u64,
    /// Header length and protocol of the fragment that came first.
    shape: (u32, u8),
    /// The header of the fragment with offset 0.
    first: Option<Ip>,
    /// Length of the payload, once the last fragment has told it.
    size: Option<u32>,
    fragments: u64,
    /// The numbers of the packets that brought them; of more than pieces may be only the first, so that repetitions cost nothing.
    packets: Vec<u64>,
    /// Disjoint pieces by their offset.
    pieces: BTreeMap<u32, Box<[u8]>>,
    piece_bytes: usize,
    header_checksum: ChecksumVerdict,
    is_discarded: bool,
}

/// Below this length, a fragment that is not the last one is suspicious (Zeek).
const MIN_FRAGMENT_LEN: u32 = 64;
/// Above this end, a fragment is suspicious (Zeek).
const MAX_FRAGMENT_END: u32 = 64_000;
/// The greatest length that either IP header can tell.
const MAX_LEN: u32 = 65_535;
/// Length of IPv6's fixed header, which its length field leaves out.
const IPV6_HEADER_LEN: u32 = 40;
/// Length of IPv6's fragment header.
const FRAGMENT_HEADER_LEN: u32 = 8;
/// What a piece takes beside its bytes: its place in the map and the allocation.
const PIECE_COST: usize = 64;
/// What a datagram takes beside its pieces: its places in map and queue.
const DATAGRAM_COST: usize = size_of::<Datagram>() + 3 * size_of::<Key>() + 32;

impl Fragments {
    /// A reassembly that has seen no fragment.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            datagrams: HashMap::new(),
            deadlines: VecDeque::new(),
            bytes: 0,
            begun: 0,
            statistics: FragmentStatistics::default(),
        }
    }

    /// What became of the fragments so far.
    #[must_use]
    pub const fn statistics(&self) -> &FragmentStatistics {
        &self.statistics
    }

    /// Datagrams that wait for their rest.
    #[must_use]
    pub fn pending(&self) -> Count {
        let waiting = self.datagrams.values().filter(|datagram| !datagram.is_discarded);
        waiting.fold(Count::default(), |sum, datagram| Count {
            datagrams: sum.datagrams + 1,
            fragments: sum.fragments + datagram.fragments,
        })
    }

    /// When [`Self::expire`] has something to do.
    #[must_use]
    pub fn deadline(&self) -> Option<Timestamp> {
        self.deadlines.front().map(|(deadline, _, _)| *deadline)
    }

    /// Whether no datagram waits for its rest, and none is remembered.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.datagrams.is_empty()
    }

    /// Notes a fragment that the capture cut, and which can therefore not be joined.
    pub const fn note_cut(&mut self) {
        self.statistics.fragments += 1;
        self.statistics.cut += 1;
    }

    /// Takes a fragment, and returns the datagram that it completes.
    ///
    /// `payload` is the whole payload of `ip`. What is strange about it goes to `weirds`. A
    /// header that is no fragment's is ignored.
    pub fn add(
        &mut self,
        arrival: Arrival<'_>,
        ip: &Ip,
        header_checksum: ChecksumVerdict,
        payload: &[u8],
        weirds: &mut Weirds,
    ) -> Option<Reassembled> {
        let Arrival { now, packets } = arrival;
        let fragment = ip.fragment?;
        self.statistics.fragments += 1;
        let key = Key::of(ip);
        if !self.make_room(&key, cost_of(payload, packets) + DATAGRAM_COST) {
            self.statistics.evicted.fragments += 1;
            return None;
        }
        let limits = self.limits;
        let datagram = match self.datagrams.entry(key) {
            std::collections::hash_map::Entry::Occupied(entry) => entry.into_mut(),
            std::collections::hash_map::Entry::Vacant(entry) => {
                self.begun += 1;
                self.bytes += DATAGRAM_COST;
                self.deadlines.push_back((now + limits.fragment_timeout, key, self.begun));
                entry.insert(Datagram::new(self.begun, ip))
            }
        };
        if datagram.is_discarded {
            self.statistics.discarded.fragments += 1;
            return None;
        }
        datagram.fragments += 1;
        if datagram.header_checksum != ChecksumVerdict::Bad {
            datagram.header_checksum = header_checksum;
        }
        let held = datagram.bytes();
        if datagram.packets.len() < limits.fragments_per_datagram {
            datagram.packets.extend_from_slice(packets);
        }
        datagram.check(ip, weirds);
        let end = fragment.offset.saturating_add(payload.len() as u32);
        let is_acceptable = is_acceptable_end(ip, end)
            && datagram.fits(limits.fragments_per_datagram, weirds)
            && datagram.insert(ip, fragment.offset, payload, weirds);
        if !is_acceptable {
            self.bytes -= held;
            self.statistics.discarded.datagrams += 1;
            self.statistics.discarded.fragments += datagram.fragments;
            datagram.discard();
            return None;
        }
        self.bytes = self.bytes - held + datagram.bytes();
        self.statistics.peak_bytes = self.statistics.peak_bytes.max(self.bytes);
        let whole = datagram.join(weirds)?;
        self.statistics.joined.datagrams += 1;
        self.statistics.joined.fragments += datagram.fragments;
        self.remove(&key);
        Some(whole)
    }

    /// Gives up the datagrams whose time is over at `now`.
    pub fn expire(&mut self, now: Timestamp) {
        while let Some(&(deadline, key, number)) = self.deadlines.front() {
            if deadline > now {
                return;
            }
            self.deadlines.pop_front();
            if let Some(count) = self.give_up(&key, number) {
                self.statistics.timed_out.datagrams += count.datagrams;
                self.statistics.timed_out.fragments += count.fragments;
            }
        }
    }

    /// Gives up the oldest datagrams until one more fragment that takes `cost` bytes fits in.
    fn make_room(&mut self, key: &Key, cost: usize) -> bool {
        if self.limits.fragmented_datagrams == 0 || cost > self.limits.fragment_bytes {
            return false;
        }
        while self.bytes.saturating_add(cost) > self.limits.fragment_bytes
            || (self.datagrams.len() >= self.limits.fragmented_datagrams
                && !self.datagrams.contains_key(key))
        {
            let Some((_, oldest, number)) = self.deadlines.pop_front() else { return false };
            if let Some(count) = self.give_up(&oldest, number) {
                self.statistics.evicted.datagrams += count.datagrams;
                self.statistics.evicted.fragments += count.fragments;
            }
        }
        true
    }

    /// Forgets a datagram, unless another one has its key by now. One that was discarded counts
    /// no second time.
    fn give_up(&mut self, key: &Key, number: u64) -> Option<Count> {
        self.datagrams.get(key).filter(|datagram| datagram.number == number)?;
        let datagram = self.remove(key)?;
        let count = Count { datagrams: 1, fragments: datagram.fragments };
        (!datagram.is_discarded).then_some(count)
    }

    fn remove(&mut self, key: &Key) -> Option<Datagram> {
        let datagram = self.datagrams.remove(key)?;
        self.bytes -= DATAGRAM_COST + datagram.bytes();
        if self.deadlines.len() > 2 * self.datagrams.len() + 64 {
            let datagrams = &self.datagrams;
            self.deadlines.retain(|(_, key, number)| {
                datagrams.get(key).is_some_and(|datagram| datagram.number == *number)
            });
        }
        Some(datagram)
    }
}

/// The most bytes that a fragment takes.
const fn cost_of(payload: &[u8], packets: &[u64]) -> usize {
    payload.len() + PIECE_COST + size_of_val(packets)
}

impl Key {
    fn of(ip: &Ip) -> Self {
        Self {
            source: ip.source,
            destination: ip.destination,
            identification: ip.identification,
            protocol: ip.is_v4().then_some(ip.protocol),
        }
    }
}

/// Length of the header that stays when the fragment header is gone.
fn kept_header_len(ip: &Ip) -> u32 {
    let len = ip.payload_offset.saturating_sub(ip.offset);
    if ip.is_v4() { len } else { len.saturating_sub(FRAGMENT_HEADER_LEN) }
}

/// Whether a datagram that reaches to `end` can be told by its header.
fn is_acceptable_end(ip: &Ip, end: u32) -> bool {
    let header_len = kept_header_len(ip);
    let counted = if ip.is_v4() { header_len } else { header_len.saturating_sub(IPV6_HEADER_LEN) };
    counted.saturating_add(end) <= MAX_LEN
}

impl Datagram {
    fn new(number: u64, ip: &Ip) -> Self {
        Self {
            number,
            shape: (kept_header_len(ip), ip.protocol),
            first: None,
            size: None,
            fragments: 0,
            packets: Vec::new(),
            pieces: BTreeMap::new(),
            piece_bytes: 0,
            header_checksum: ChecksumVerdict::Unknown,
            is_discarded: false,
        }
    }

    fn bytes(&self) -> usize {
        self.piece_bytes + self.pieces.len() * PIECE_COST + self.packets.len() * size_of::<u64>()
    }

    /// Keeps only the memory that the rest is to be discarded, too.
    fn discard(&mut self) {
        self.is_discarded = true;
        self.pieces = BTreeMap::new();
        self.packets = Vec::new();
        self.piece_bytes = 0;
    }

    /// Reports what is strange about a fragment's header, and learns the size from the last one.
    fn check(&mut self, ip: &Ip, weirds: &mut Weirds) {
        let Some(fragment) = ip.fragment else { return };
        if (kept_header_len(ip), ip.protocol) != self.shape {
            weirds.add("fragment_protocol_inconsistency");
        }
        if ip.version == (IpVersion::V4 { dont_fragment: true }) {
            // Path MTU discovery for UDP does this.
            weirds.add("fragment_with_DF");
        }
        let end = fragment.offset.saturating_add(ip.payload_len);
        let is_inconsistent = if fragment.more {
            if ip.total_len < MIN_FRAGMENT_LEN {
                weirds.add("excessively_small_fragment");
            }
            self.size.is_some_and(|size| end > size)
        } else {
            self.size.is_some_and(|size| end != size)
        };
        if is_inconsistent {
            weirds.add("fragment_size_inconsistency");
        }
        if !fragment.more || is_inconsistent {
            self.size = self.size.max(Some(end));
        }
        if end > MAX_FRAGMENT_END {
            weirds.add("excessively_large_fragment");
        }
    }

    fn fits(&self, limit: usize, weirds: &mut Weirds) -> bool {
        let fits = self.pieces.len() < limit;
        if !fits {
            weirds.add("excessively_many_fragments");
        }
        fits
    }

    /// Keeps those bytes that are new. `false` where the receiver would not accept the overlap.
    fn insert(&mut self, ip: &Ip, offset: u32, payload: &[u8], weirds: &mut Weirds) -> bool {
        if offset == 0 && self.first.is_none() && !payload.is_empty() {
            let payload_offset = ip.offset.saturating_add(kept_header_len(ip));
            self.first = Some(Ip { payload_offset, ..*ip });
        }
        let end = offset.saturating_add(payload.len() as u32);
        let bytes = |from: u32, to: u32| {
            payload.get((from - offset) as usize..(to - offset) as usize).unwrap_or_default()
        };
        let (mut overlaps, mut is_equal, mut gaps) = (false, true, Vec::new());
        let mut at = offset;
        // The piece before the offset may reach beyond it.
        let from = self.pieces.range(..=offset).next_back().map_or(offset, |(&start, _)| start);
        for (&start, piece) in self.pieces.range(from..end) {
            let stop = start + piece.len() as u32;
            let (low, high) = (start.max(at), stop.min(end));
            if low >= high {
                continue;
            }
            overlaps = true;
            let held = piece.get((low - start) as usize..(high - start) as usize);
            is_equal &= held.is_some_and(|held| held == bytes(low, high));
            if at < low {
                gaps.push((at, low));
            }
            at = high;
        }
        if at < end {
            gaps.push((at, end));
        }
        if overlaps {
            weirds.add(if is_equal { "fragment_overlap" } else { "fragment_inconsistency" });
            let is_repetition = gaps.is_empty() && is_equal;
            if !ip.is_v4() && !is_repetition {
                return false;
            }
        }
        for (from, to) in gaps {
            self.piece_bytes += (to - from) as usize;
            self.pieces.insert(from, bytes(from, to).into());
        }
        true
    }

    /// The datagram, if nothing is missing up to its size, or up to a hole beyond its size.
    fn join(&mut self, weirds: &mut Weirds) -> Option<Reassembled> {
        let size = self.size?;
        if self.piece_bytes < size as usize {
            return None;
        }
        let mut end = 0;
        for (&start, piece) in &self.pieces {
            if start != end {
                break;
            }
            end += piece.len() as u32;
        }
        if end < size {
            return None;
        }
        if end > size || self.pieces.len() > 1 && self.piece_bytes > end as usize {
            weirds.add("fragment_size_inconsistency");
        }
        let ip = self.first?;
        let mut payload = Vec::with_capacity(end as usize);
        for piece in self.pieces.range(..end).map(|(_, piece)| piece) {
            payload.extend_from_slice(piece);
        }
        Some(Reassembled {
            ip,
            payload,
            header_checksum: self.header_checksum,
            fragments: self.fragments,
            packets: self.packets.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::time::Duration;
    use netsniff_packet::decode::Fragment;

    const V4_HEADER: u32 = 20;

    fn address(is_v4: bool, last: u8) -> Address {
        let mut bytes = [0x20; 16];
        bytes[15] = last;
        if is_v4 { Address::from_v4([192, 0, 2, last]) } else { Address::from_v6(bytes) }
    }

    /// A fragment's header, with `len` bytes of payload.
    fn header(is_v4: bool, identification: u32, offset: u32, len: u32, more: bool) -> Ip {
        let payload_offset = if is_v4 { V4_HEADER } else { IPV6_HEADER_LEN + FRAGMENT_HEADER_LEN };
        Ip {
            source: address(is_v4, 1),
            destination: address(is_v4, 2),
            protocol: 17,
            ttl: 64,
            traffic_class: 0,
            version: if is_v4 { IpVersion::V4 { dont_fragment: false } } else { IpVersion::V6 },
            identification,
            flow_label: 0,
            total_len: payload_offset + len,
            offset: 0,
            payload_offset,
            payload_len: len,
            payload_captured: len,
            fragment: Some(Fragment { offset, more }),
        }
    }

    struct Bench {
        fragments: Fragments,
        weirds: Vec<&'static str>,
    }

    impl Bench {
        fn new(limits: Limits) -> Self {
            Self { fragments: Fragments::new(limits), weirds: Vec::new() }
        }

        fn add(&mut self, ip: &Ip, payload: &[u8]) -> Option<Reassembled> {
            let mut weirds = Weirds::default();
            let whole = self.fragments.add(
                Arrival { now: Timestamp::EPOCH, packets: &[1] },
                ip,
                ChecksumVerdict::Good,
                payload,
                &mut weirds,
            );
            self.weirds.extend(weirds.drain().map(|oddity| oddity.name));
            self.check_books();
            whole
        }

        fn check_books(&self) {
            let FragmentStatistics {
                fragments, cut, joined, timed_out, evicted, discarded, ..
            } = *self.fragments.statistics();
            let sum = joined.fragments + timed_out.fragments + evicted.fragments;
            let sum = sum + discarded.fragments + self.fragments.pending().fragments + cut;
            assert_eq!(fragments, sum, "every fragment is in one count");
            let held = self.fragments.datagrams.values();
            let held: usize = held.map(|datagram| DATAGRAM_COST + datagram.bytes()).sum();
            assert_eq!(self.fragments.bytes, held);
            assert!(held <= self.fragments.limits.fragment_bytes);
        }
    }

    /// A small generator (xorshift64*), seeded, so that failures come again.
    struct Random(u64);

    impl Random {
        fn below(&mut self, bound: u64) -> u64 {
            self.0 ^= self.0 >> 12;
            self.0 ^= self.0 << 25;
            self.0 ^= self.0 >> 27;
            (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % bound
        }

        /// Of up to so many bits, small ones as often as great ones.
        fn magnitude(&mut self, bits: u64) -> u64 {
            let bits = 1 + self.below(bits);
            self.below(1 << bits)
        }
    }

    #[test]
    fn any_cut_and_order_gives_the_datagram_back() {
        let mut random = Random(1);
        for round in 0..2_000 {
            let is_v4 = round % 2 == 0;
            let len = 16 + random.below(4_000) as u32;
            let payload: Vec<u8> = (0..len).map(|_| random.below(256) as u8).collect();
            let mut cuts: Vec<u32> = (1..len / 8)
                .filter(|_| random.below(20) == 0)
                .map(|word| word * 8)
                .chain([0, 8, len])
                .collect();
            cuts.sort_unstable();
            cuts.dedup();
            let mut pieces: Vec<(u32, u32)> =
                cuts.windows(2).map(|pair| (pair[0], pair[1])).collect();
            // Some come twice, all in any order.
            for _ in 0..random.below(4) {
                let repeated = pieces[random.below(pieces.len() as u64) as usize];
                pieces.push(repeated);
            }
            for last in (1..pieces.len()).rev() {
                pieces.swap(last, random.below(last as u64 + 1) as usize);
            }
            let mut bench = Bench::new(Limits::default());
            let mut whole = Vec::new();
            for (from, to) in pieces {
                let ip = header(is_v4, 7, from, to - from, to < len);
                whole.extend(bench.add(&ip, &payload[from as usize..to as usize]));
            }
            assert!(!whole.is_empty(), "round {round}");
            for whole in whole {
                assert_eq!(whole.payload, payload);
                let decoded = netsniff_packet::decode::reassembled(&whole.ip, &whole.payload);
                let total = if is_v4 { V4_HEADER } else { IPV6_HEADER_LEN } + len;
                assert_eq!(decoded.ip.unwrap().total_len, total);
            }
        }
    }

    #[test]
    fn of_overlaps_the_first_bytes_count_for_ipv4() {
        let mut bench = Bench::new(Limits::default());
        assert!(bench.add(&header(true, 1, 8, 16, true), &[1; 16]).is_none());
        assert!(bench.add(&header(true, 1, 0, 16, true), &[2; 16]).is_none());
        let whole = bench.add(&header(true, 1, 16, 16, false), &[1; 16]).unwrap();
        assert_eq!(whole.payload, [[2; 8], [1; 8], [1; 8], [1; 8]].concat());
        assert_eq!(
            bench.weirds,
            [
                "excessively_small_fragment",
                "excessively_small_fragment",
                "fragment_inconsistency",
                "fragment_overlap"
            ]
        );
    }

    #[test]
    fn overlaps_are_the_end_of_an_ipv6_datagram() {
        let mut bench = Bench::new(Limits::default());
        assert!(bench.add(&header(false, 1, 0, 64, true), &[1; 64]).is_none());
        assert!(bench.add(&header(false, 1, 0, 64, true), &[1; 64]).is_none(), "a repetition");
        assert_eq!(bench.fragments.statistics().discarded, Count::default());
        assert!(bench.add(&header(false, 1, 56, 64, true), &[1; 64]).is_none());
        assert!(bench.add(&header(false, 1, 64, 64, false), &[1; 64]).is_none(), "too late");
        let discarded = bench.fragments.statistics().discarded;
        assert_eq!(discarded, Count { datagrams: 1, fragments: 4 });
        assert_eq!(bench.weirds, ["fragment_overlap", "fragment_overlap"]);
    }

    #[test]
    fn what_no_header_can_tell_is_discarded() {
        let mut bench = Bench::new(Limits::default());
        let most = 65_535 - V4_HEADER;
        let (offset, len) = (65_504, most - 65_504);
        assert!(bench.add(&header(true, 1, offset, len, false), &[0; 11]).is_none());
        assert_eq!(bench.fragments.pending().datagrams, 1);
        assert!(bench.add(&header(true, 2, offset, len + 1, false), &[0; 12]).is_none());
        assert_eq!(bench.fragments.statistics().discarded.datagrams, 1);
        assert_eq!(bench.weirds, ["excessively_large_fragment"; 2]);
    }

    #[test]
    fn sizes_that_disagree_are_named_as_zeek_names_them() {
        let mut bench = Bench::new(Limits::default());
        assert!(bench.add(&header(true, 1, 0, 18, true), &[1; 18]).is_none());
        assert!(bench.add(&header(true, 1, 48, 116, false), &[2; 116]).is_none());
        let whole = bench.add(&header(true, 1, 0, 304, true), &[3; 304]).unwrap();
        assert_eq!(whole.payload.len(), 304);
        assert_eq!(whole.payload[17..19], [1, 3]);
        assert_eq!(
            bench.weirds,
            ["excessively_small_fragment", "fragment_size_inconsistency", "fragment_inconsistency"]
        );
    }

    #[test]
    fn protocols_tell_ipv4_datagrams_apart_but_not_ipv6_ones() {
        for (is_v4, expected) in [(true, 2), (false, 1)] {
            let mut bench = Bench::new(Limits::default());
            let first = header(is_v4, 1, 0, 64, true);
            assert!(bench.add(&first, &[0; 64]).is_none());
            let other = Ip { protocol: 6, ..header(is_v4, 1, 128, 64, true) };
            assert!(bench.add(&other, &[0; 64]).is_none());
            assert_eq!(bench.fragments.pending().datagrams, expected);
            let is_reported = bench.weirds.contains(&"fragment_protocol_inconsistency");
            assert_eq!(is_reported, !is_v4);
        }
    }

    #[test]
    fn the_rest_is_waited_for_until_the_exact_deadline() {
        let limits = Limits { fragment_timeout: Duration::from_secs(60), ..Limits::default() };
        let mut bench = Bench::new(limits);
        bench.add(&header(true, 1, 0, 64, true), &[0; 64]);
        let deadline = Timestamp::EPOCH + Duration::from_secs(60);
        assert_eq!(bench.fragments.deadline(), Some(deadline));
        bench.fragments.expire(deadline.offset(-1));
        assert_eq!(bench.fragments.pending().datagrams, 1);
        bench.fragments.expire(deadline);
        assert_eq!(bench.fragments.pending().datagrams, 0);
        let timed_out = bench.fragments.statistics().timed_out;
        assert_eq!(timed_out, Count { datagrams: 1, fragments: 1 });
        bench.check_books();
    }

    #[test]
    fn a_flood_of_first_fragments_stays_within_the_bounds() {
        let limits =
            Limits { fragment_bytes: 100_000, fragmented_datagrams: 50, ..Limits::default() };
        let mut bench = Bench::new(limits);
        let mut random = Random(2);
        for identification in 0..20_000 {
            let len = 8 * (1 + random.below(180)) as u32;
            let ip = header(identification % 3 > 0, identification, 0, len, true);
            bench.add(&ip, &vec![0; len as usize]);
            assert!(bench.fragments.datagrams.len() <= 50);
            assert!(bench.fragments.deadlines.len() <= 2 * 50 + 65);
        }
        assert!(bench.fragments.statistics().evicted.datagrams > 19_000);
        assert!(bench.fragments.statistics().peak_bytes > 50_000);
    }

    #[test]
    fn a_datagram_of_too_many_fragments_is_discarded() {
        let limits = Limits { fragments_per_datagram: 10, ..Limits::default() };
        let mut bench = Bench::new(limits);
        for number in 0..12 {
            bench.add(&header(true, 1, 1_000 + 16 * number, 8, true), &[0; 8]);
        }
        let discarded = bench.fragments.statistics().discarded;
        assert_eq!(discarded, Count { datagrams: 1, fragments: 12 });
        assert!(bench.weirds.contains(&"excessively_many_fragments"));
    }

    #[test]
    fn garbage_keeps_the_books_closed() {
        let mut random = Random(3);
        for _ in 0..200 {
            let limits = Limits {
                fragment_bytes: random.below(200_000) as usize,
                fragmented_datagrams: random.below(20) as usize,
                fragments_per_datagram: random.below(30) as usize,
                ..Limits::default()
            };
            let mut bench = Bench::new(limits);
            for _ in 0..200 {
                let offset = 8 * random.magnitude(13) as u32;
                let len = random.magnitude(16) as u32;
                let (is_v4, more) = (random.below(2) == 0, random.below(2) == 0);
                let mut ip = header(is_v4, random.below(4) as u32, offset, len, more);
                ip.payload_offset = ip.payload_offset.wrapping_sub(random.below(60) as u32);
                let payload = vec![random.below(2) as u8; len as usize];
                if let Some(whole) = bench.add(&ip, &payload) {
                    assert!(whole.payload.len() <= MAX_LEN as usize);
                }
            }
        }
    }
}
