//! Two records of one connection, one for each direction, put together.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::Duration;

use netsniff_analysis::flow::roles::is_likely_server;
use netsniff_analysis::key::{Endpoint, FlowKey, Side};
use netsniff_analysis::log::exported::DirectionKnown;
use netsniff_ipfix::{Direction, Flow, Sent, StreamKey};
use netsniff_packet::Timestamp;

/// Records that wait for their opposite, of all exporters: some 300 bytes each.
const MOST: usize = 1 << 17;
/// Records of one connection that wait, each of which is looked at when another one comes. Exporters tell parts of a connection further
/// apart than a record waits, unless somebody forges them.
const MOST_OF_ONE: usize = 64;

/// A record with the connection that it tells of.
#[derive(Clone, Debug)]
pub(super) struct Half {
    pub(super) stream: StreamKey,
    pub(super) flow: Flow,
    key: FlowKey,
    /// The side that the source is.
    side: Side,
    pub(super) arrived: Timestamp,
}

impl Half {
    pub(super) fn new(stream: StreamKey, flow: Flow, arrived: Timestamp) -> Self {
        let end = |address, port| Endpoint { address, port };
        let (key, side) = match flow.icmp {
            Some((kind, code)) => {
                FlowKey::icmp(flow.source, flow.destination, flow.protocol, kind, code)
            }
            None => FlowKey::new(
                end(flow.source, flow.source_port),
                end(flow.destination, flow.destination_port),
                flow.protocol,
                false,
            ),
        };
        Self { stream, flow, key, side, arrived }
    }

    /// Whether the two tell of one connection: in opposite directions, at the same time, or one soon after the other.
    fn is_opposite(&self, other: &Self, window: Duration) -> bool {
        if self.side == other.side {
            return false;
        }
        let reaches = |first: &Flow, second: &Flow| {
            let (start, end) = (second.start(), first.end().or_else(|| first.start()));
            start.zip(end).is_some_and(|(start, end)| start <= end + window)
        };
        reaches(&self.flow, &other.flow) && reaches(&other.flow, &self.flow)
    }
}

/// All that is known of a connection.
#[derive(Clone, Debug)]
pub(super) struct Known {
    /// The record that came first.
    pub(super) first: Half,
    /// The one of the other direction.
    pub(super) second: Option<Half>,
}

/// A connection from its originator.
#[derive(Clone, Debug)]
pub(super) struct Oriented {
    pub(super) key: FlowKey,
    pub(super) originator: Endpoint,
    pub(super) responder: Endpoint,
    pub(super) orig: Option<Sent>,
    pub(super) resp: Option<Sent>,
    pub(super) direction: DirectionKnown,
    /// Whether the source of the first record is the originator.
    pub(super) is_forward: bool,
}

impl Known {
    /// Finds out who began it.
    pub(super) fn oriented(&self) -> Oriented {
        let Self { first, second } = self;
        let back = first.flow.reverse.or_else(|| second.as_ref().map(|it| it.flow.forward));
        let (is_forward, direction) = self.direction();
        let (source, destination) = first.key.ends_from(first.side);
        let forward = Some(first.flow.forward);
        let (originator, responder, orig, resp) = if is_forward {
            (source, destination, forward, back)
        } else {
            (destination, source, back, forward)
        };
        Oriented { key: first.key, originator, responder, orig, resp, direction, is_forward }
    }

    fn direction(&self) -> (bool, DirectionKnown) {
        let flow = &self.first.flow;
        match flow.direction {
            Some(Direction::Initiator) => return (true, DirectionKnown::Told),
            Some(Direction::ReverseInitiator) => return (false, DirectionKnown::Told),
            // A record of both directions may be told from either side: exporters write them by the order of addresses.
            None => {}
        }
        let back =
            flow.reverse.as_ref().or_else(|| self.second.as_ref().map(|it| &it.flow.forward));
        let starts = back.and_then(|sent| sent.start).zip(flow.forward.start);
        match starts {
            Some((back, forth)) if back != forth => {
                return (forth < back, DirectionKnown::Earlier);
            }
            _ => {}
        }
        if flow.icmp.is_some() {
            return (true, DirectionKnown::Source);
        }
        let (from, to) = (flow.source_port, flow.destination_port);
        let [from_server, to_server] = [from, to].map(|port| is_likely_server(flow.protocol, port));
        match (from_server, to_server) {
            (true, false) => (false, DirectionKnown::Ports),
            (false, true) => (true, DirectionKnown::Ports),
            _ if from < 1024 && to >= 1024 => (false, DirectionKnown::Ports),
            _ if to < 1024 && from >= 1024 => (true, DirectionKnown::Ports),
            _ => (true, DirectionKnown::Source),
        }
    }
}

/// When something left: at its deadline, or with a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Left {
    Deadline(Timestamp),
    Now,
}

/// Records that wait for their opposite.
#[derive(Debug)]
pub(super) struct Pairing {
    window: Duration,
    most: usize,
    waiting: HashMap<(StreamKey, FlowKey), VecDeque<(u64, Half)>>,
    /// Whose time comes when, by the number of the record.
    deadlines: BTreeMap<(Timestamp, u64), (StreamKey, FlowKey)>,
    next: u64,
}

impl Pairing {
    /// Nothing waits. A record waits for `window`.
    pub(super) fn new(window: Duration) -> Self {
        let (waiting, deadlines) = (HashMap::new(), BTreeMap::new());
        Self { window, most: MOST, waiting, deadlines, next: 0 }
    }

    /// How many wait.
    pub(super) fn len(&self) -> usize {
        self.deadlines.len()
    }

    /// Takes a record, and hands over what is known now: with its opposite, or what made room for it.
    pub(super) fn add(&mut self, half: Half, mut take: impl FnMut(Known)) {
        if self.window.is_zero() || half.flow.reverse.is_some() {
            take(Known { first: half, second: None });
            return;
        }
        let place = (half.stream, half.key);
        if let Some(first) = self.opposite(&place, &half) {
            take(Known { first, second: Some(half) });
            return;
        }
        if self.deadlines.len() >= self.most
            && let Some(first) = self.take_first(Timestamp::MAX)
        {
            take(Known { first: first.1, second: None });
        }
        let of_one = self.waiting.get(&place);
        if let Some(of_one) = of_one.filter(|waiting| waiting.len() >= MOST_OF_ONE)
            && let Some(&(oldest, _)) = of_one.front()
            && let Some(first) = self.remove(&place, oldest)
        {
            take(Known { first, second: None });
        }
        let number = self.next;
        self.next += 1;
        self.deadlines.insert((half.arrived + self.window, number), place);
        self.waiting.entry(place).or_default().push_back((number, half));
    }

    fn opposite(&mut self, place: &(StreamKey, FlowKey), half: &Half) -> Option<Half> {
        let waiting = self.waiting.get(place)?;
        let at = waiting.iter().position(|(_, other)| other.is_opposite(half, self.window))?;
        let number = waiting.get(at)?.0;
        self.remove(place, number)
    }

    fn remove(&mut self, place: &(StreamKey, FlowKey), number: u64) -> Option<Half> {
        let waiting = self.waiting.get_mut(place)?;
        let at = waiting.iter().position(|(of, _)| *of == number)?;
        let (_, half) = waiting.remove(at)?;
        if waiting.is_empty() {
            self.waiting.remove(place);
        }
        self.deadlines.remove(&(half.arrived + self.window, number));
        Some(half)
    }

    fn take_first(&mut self, until: Timestamp) -> Option<(Timestamp, Half)> {
        let (&(deadline, number), place) = self.deadlines.first_key_value()?;
        let place = *place;
        (deadline <= until).then(|| self.remove(&place, number)).flatten().map(|it| (deadline, it))
    }

    /// Hands over what has waited long enough at `now`, in the order of deadlines.
    pub(super) fn expire(&mut self, now: Timestamp, mut take: impl FnMut(Left, Known)) {
        while let Some((deadline, first)) = self.take_first(now) {
            take(Left::Deadline(deadline), Known { first, second: None });
        }
    }

    /// Hands over all that waits.
    pub(super) fn finish(&mut self, mut take: impl FnMut(Left, Known)) {
        while let Some((_, first)) = self.take_first(Timestamp::MAX) {
            take(Left::Now, Known { first, second: None });
        }
    }
}

#[cfg(test)]
mod tests {
    use netsniff_ipfix::sampling::Sampling;
    use netsniff_ipfix::{Exporter, Protocol, Transport};
    use netsniff_packet::Address;

    use super::*;

    const WINDOW: Duration = Duration::from_secs(10);

    /// A record of one of two directions, from `start` on for a second.
    fn half(is_back: bool, start: i64) -> Half {
        let hosts = [1, 2].map(|last| Address::from_v4([192, 0, 2, last]));
        let [source, destination] = if is_back { [hosts[1], hosts[0]] } else { hosts };
        let [source_port, destination_port] = if is_back { [53, 4000] } else { [4000, 53] };
        let at = |seconds| Some(Timestamp::from_secs_nanos(seconds, 0));
        let flow = Flow {
            source,
            destination,
            source_port,
            destination_port,
            protocol: 17,
            icmp: None,
            forward: Sent { start: at(start), end: at(start + 1), ..Sent::default() },
            reverse: None,
            direction: None,
            end_reason: None,
            sampling: Sampling::Untold,
            vlan: None,
            ingress: None,
            egress: None,
            template: None,
            is_touched: false,
        };
        let exporter = Exporter { address: hosts[0], port: 2055, transport: Transport::Udp };
        let stream = StreamKey { exporter, domain: 0, protocol: Protocol::Ipfix };
        Half::new(stream, flow, Timestamp::from_secs_nanos(0, 0))
    }

    #[test]
    fn forged_records_of_one_connection_are_not_all_looked_at() {
        let mut pairing = Pairing::new(WINDOW);
        let mut known = Vec::new();
        // Each an hour after the other, so that no record of the other direction fits all.
        let many = MOST_OF_ONE as i64 + 10;
        (0..many).for_each(|hour| pairing.add(half(false, hour * 3600), |it| known.push(it)));
        assert_eq!((pairing.len(), known.len()), (MOST_OF_ONE, 10));
        assert!(known.iter().zip(0..).all(|(it, hour)| it.second.is_none()
            && it.first.flow.start() == Some(Timestamp::from_secs_nanos(hour * 3600, 0))));
        // The latest still finds its opposite.
        pairing.add(half(true, (many - 1) * 3600 + 5), |it| known.push(it));
        assert!(known.last().unwrap().second.is_some());
        assert_eq!(pairing.len(), MOST_OF_ONE - 1);
    }
}
