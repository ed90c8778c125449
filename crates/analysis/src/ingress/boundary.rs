//! The pairs of hosts that a piece of an input has packets of: what decides which of them may be analysed apart from what
//! comes before.

use core::time::Duration;

use hashbrown::{HashMap, HashSet};
use netsniff_packet::Timestamp;
use netsniff_packet::decode::Ip;
use netsniff_packet::wire::ipv4::protocol;

use crate::flow::silence_of;
use crate::key::{FlowKey, TCP};
use crate::limits::Limits;
use crate::unit::DecodedDatagram;

/// The pairs of hosts in a piece of an input, each with the times of its first and its last packet.
///
/// A pair is told by [`FlowKey::pair`]: should two have one hash, they count as one. Pairs that one packet has, at the levels
/// of a tunnel, are a *group*: what is told of one may depend on the others.
#[derive(Debug)]
pub struct Boundary {
    limits: Limits,
    places: HashMap<u64, u32>,
    spans: Vec<Span>,
    /// The pair of the last packet, whose place is looked up once for packets that follow each other.
    recent: Option<(u64, u32)>,
    /// The place of the first pair of the packet at hand.
    outermost: Option<u32>,
    /// So many pairs are noted.
    most: usize,
    has_more: bool,
}

/// What is known of a pair.
#[derive(Clone, Copy, Debug)]
struct Span {
    pair: u64,
    first: Timestamp,
    /// When it is likely forgotten.
    until: Timestamp,
    /// Another pair of its group, or itself: a step on the way to the one that stands for all.
    group: u32,
    /// How many pairs it stands for, with itself.
    stands_for: u32,
}

impl Boundary {
    /// No packet so far. More than `most` pairs are not noted.
    pub(crate) fn new(limits: Limits, most: usize) -> Self {
        Self {
            limits,
            places: HashMap::new(),
            spans: Vec::new(),
            recent: None,
            outermost: None,
            most,
            has_more: false,
        }
    }

    /// Notes the outermost header of a packet, if it has one, at engine time `now`.
    #[inline]
    pub(super) fn packet(&mut self, ip: Option<&Ip>, now: Timestamp) {
        self.outermost = ip.and_then(|ip| self.note(ip, now));
    }

    /// Notes a header of IP in the packet at hand.
    #[cold]
    pub(super) fn level(&mut self, ip: &Ip, now: Timestamp) {
        let Some(place) = self.note(ip, now) else { return };
        let outermost = *self.outermost.get_or_insert(place);
        self.join(self.leader(outermost), self.leader(place));
    }

    /// Makes one group of two, by the pairs that stand for them. The smaller one joins the larger one: so there are few
    /// steps to whoever stands for all, however a sender nests his packets.
    fn join(&mut self, one: u32, other: u32) {
        let size = |place: u32| self.spans.get(place as usize).map_or(0, |span| span.stands_for);
        if one == other {
            return;
        }
        let all = size(one) + size(other);
        let (large, small) = if size(one) < size(other) { (other, one) } else { (one, other) };
        if let Some(span) = self.spans.get_mut(small as usize) {
            span.group = large;
        }
        if let Some(span) = self.spans.get_mut(large as usize) {
            span.stands_for = all;
        }
    }

    /// Notes a packet of a pair. Returns the pair's place, if there is room for it.
    #[inline]
    fn note(&mut self, ip: &Ip, now: Timestamp) -> Option<u32> {
        let pair = FlowKey::pair(ip.source, ip.destination);
        let until = now + memory_of(ip.protocol, &self.limits);
        let place = match self.recent {
            Some((recent, place)) if recent == pair => place,
            _ => self.place_of(pair, now)?,
        };
        self.recent = Some((pair, place));
        let span = self.spans.get_mut(place as usize)?;
        span.until = span.until.max(until);
        Some(place)
    }

    fn place_of(&mut self, pair: u64, now: Timestamp) -> Option<u32> {
        if let Some(&place) = self.places.get(&pair) {
            return Some(place);
        }
        if self.spans.len() >= self.most {
            self.has_more = true;
            return None;
        }
        let place = u32::try_from(self.spans.len()).ok()?;
        self.places.insert(pair, place);
        self.spans.push(Span { pair, first: now, until: now, group: place, stands_for: 1 });
        Some(place)
    }

    /// The place of the pair that stands for the group of the one at `place`.
    fn leader(&self, mut place: u32) -> u32 {
        while let Some(span) = self.spans.get(place as usize)
            && span.group != place
        {
            place = span.group;
        }
        place
    }

    /// Whether all pairs were noted.
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        !self.has_more
    }

    /// Engine time of the first packet of a pair.
    #[must_use]
    pub fn first(&self, pair: u64) -> Option<Timestamp> {
        let place = self.places.get(&pair)?;
        self.spans.get(*place as usize).map(|span| span.first)
    }

    /// The pairs of which a packet comes before they are forgotten, with all of their groups.
    #[must_use]
    pub fn crossing(&self, remembered: &Remembered) -> Crossing {
        let goes_on =
            |span: &Span| remembered.until.get(&span.pair).is_some_and(|until| span.first < *until);
        let with_leaders =
            || (0..).zip(&self.spans).map(|(place, span)| (self.leader(place), span));
        let groups: HashSet<u32> =
            with_leaders().filter(|(_, span)| goes_on(span)).map(|(leader, _)| leader).collect();
        if groups.is_empty() {
            return Crossing::default();
        }
        let crossing = with_leaders().filter(|(leader, _)| groups.contains(leader));
        Crossing(crossing.map(|(_, span)| span.pair).collect())
    }
}

/// Until when pairs of hosts are remembered, if nothing more comes.
#[derive(Clone, Debug)]
pub struct Remembered {
    until: HashMap<u64, Timestamp>,
    /// So many pairs are noted.
    most: usize,
    has_more: bool,
}

impl Remembered {
    /// No pair so far. More than `most` are not noted.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self { until: HashMap::new(), most, has_more: false }
    }

    /// Whether all pairs were noted.
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        !self.has_more
    }

    /// Notes that a pair is remembered until then, or longer.
    pub fn note(&mut self, pair: u64, until: Timestamp) {
        if let Some(known) = self.until.get_mut(&pair) {
            *known = until.max(*known);
        } else if self.until.len() < self.most {
            self.until.insert(pair, until);
        } else {
            self.has_more = true;
        }
    }

    /// Forgets what is over where a part of the input begins, and adds its pairs.
    pub fn go_on_behind(&mut self, boundary: &Boundary) {
        let begin = boundary.spans.iter().map(|span| span.first).min();
        if let Some(begin) = begin {
            self.until.retain(|_, until| *until > begin);
        }
        boundary.spans.iter().for_each(|span| self.note(span.pair, span.until));
    }
}

/// The pairs of hosts of a part of the input that are analysed with what came before it.
#[derive(Clone, Debug, Default)]
pub struct Crossing(HashSet<u64>);

impl Crossing {
    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a pair is one of them.
    #[must_use]
    #[inline]
    pub fn has(&self, pair: u64) -> bool {
        self.0.contains(&pair)
    }

    /// Whether a datagram is of one of them.
    #[must_use]
    #[inline]
    pub fn takes(&self, unit: &DecodedDatagram) -> bool {
        unit.pair().is_some_and(|pair| self.has(pair))
    }
}

/// For how long a packet of this protocol is mostly remembered.
fn memory_of(protocol: u8, limits: &Limits) -> Duration {
    match protocol {
        TCP => limits.tcp_inactivity,
        protocol::IPV4 | protocol::IPV6 | protocol::GRE => limits.ip_tunnel_inactivity,
        protocol => silence_of(protocol, limits),
    }
}

#[cfg(test)]
mod tests {
    use netsniff_packet::Address;
    use netsniff_packet::decode::{Ip, IpVersion};

    use super::*;

    const HOST: fn(u8) -> Address = |last| Address::from_v4([192, 0, 2, last]);
    const AT: fn(i64) -> Timestamp = |seconds| Timestamp::from_secs_nanos(seconds, 0);

    fn ip(protocol: u8, one: u8, other: u8) -> Ip {
        Ip {
            source: HOST(one),
            destination: HOST(other),
            protocol,
            ttl: 64,
            traffic_class: 0,
            version: IpVersion::V4 { dont_fragment: false },
            identification: 0,
            flow_label: 0,
            total_len: 0,
            offset: 0,
            payload_offset: 0,
            payload_len: 0,
            payload_captured: 0,
            fragment: None,
        }
    }

    fn pair(one: u8, other: u8) -> u64 {
        FlowKey::pair(HOST(one), HOST(other))
    }

    /// The pairs of packets of UDP, each with its second, and with the pairs of its levels behind the first.
    fn boundary(most: usize, packets: &[(i64, &[(u8, u8)])]) -> Boundary {
        let mut boundary = Boundary::new(Limits::default(), most);
        for (second, levels) in packets {
            let (one, other) = levels[0];
            boundary.packet(Some(&ip(crate::key::UDP, one, other)), AT(*second));
            for &(one, other) in *levels {
                boundary.level(&ip(crate::key::UDP, one, other), AT(*second));
            }
        }
        boundary
    }

    #[test]
    fn a_pair_crosses_while_it_is_remembered() {
        let mut remembered = Remembered::new(99);
        remembered.go_on_behind(&boundary(9, &[(0, &[(1, 2)]), (10, &[(2, 1)]), (0, &[(3, 4)])]));
        let later = boundary(9, &[(61, &[(3, 4)]), (69, &[(1, 2)]), (69, &[(5, 6)])]);
        let crossing = later.crossing(&remembered);
        let all = [(1, 2), (3, 4), (5, 6)].map(|(one, other)| crossing.has(pair(one, other)));
        assert_eq!(all, [true, false, false]);
        assert_eq!(later.first(pair(2, 1)), Some(AT(69)));
        let latest = boundary(9, &[(70, &[(1, 2)])]);
        assert!(latest.crossing(&remembered).is_empty(), "its minute is over");
    }

    #[test]
    fn pairs_of_one_packet_cross_together() {
        let mut remembered = Remembered::new(99);
        remembered.note(pair(1, 2), AT(100));
        let inside = boundary(
            9,
            &[
                (10, &[(7, 8)]),
                (11, &[(3, 4), (1, 2)]),
                (12, &[(3, 4), (5, 6), (9, 10)]),
                (13, &[(9, 10), (11, 12)]),
            ],
        );
        let crossing = inside.crossing(&remembered);
        let all = [(1, 2), (3, 4), (5, 6), (9, 10), (11, 12), (7, 8)];
        let all = all.map(|(one, other)| crossing.has(pair(one, other)));
        assert_eq!(all, [true, true, true, true, true, false]);
    }

    /// A sender may nest his packets so that each makes a group with the one before.
    #[test]
    fn groups_have_few_steps_however_packets_are_nested() {
        let mut boundary = Boundary::new(Limits::default(), 1 << 12);
        let nested = |at: u16| {
            let [high, low] = at.to_be_bytes();
            Ip { destination: Address::from_v4([10, 0, high, low]), ..ip(protocol::IPV4, 1, 2) }
        };
        for at in 1..1 << 12 {
            boundary.packet(Some(&nested(at)), AT(0));
            boundary.level(&nested(at - 1), AT(0));
        }
        let steps = |mut place: u32| {
            let next = |place: u32| boundary.spans[place as usize].group;
            let mut steps = 0;
            while next(place) != place {
                (place, steps) = (next(place), steps + 1);
            }
            steps
        };
        let most = (0..1 << 12).map(steps).max();
        assert!(most <= Some(12), "{most:?}");
        let mut remembered = Remembered::new(99);
        remembered.note(FlowKey::pair(nested(7).source, nested(7).destination), AT(1));
        assert_eq!(boundary.crossing(&remembered).0.len(), 1 << 12);
    }

    #[test]
    fn no_more_pairs_are_remembered_than_there_is_room_for() {
        let mut remembered = Remembered::new(2);
        remembered.note(1, AT(1));
        remembered.go_on_behind(&boundary(9, &[(0, &[(1, 2)]), (5, &[(2, 1)])]));
        assert!(remembered.is_whole());
        remembered.go_on_behind(&boundary(9, &[(2, &[(3, 4)])]));
        assert!(remembered.is_whole(), "what is over makes room");
        remembered.go_on_behind(&boundary(9, &[(3, &[(5, 6)])]));
        assert!(!remembered.is_whole() && remembered.until.len() == 2);
    }

    #[test]
    fn more_pairs_than_are_noted_are_no_boundary() {
        let of = |most| boundary(most, &[(0, &[(1, 2)]), (1, &[(3, 4)])]).is_whole();
        assert_eq!([1, 2].map(of), [false, true]);
    }
}
