//! What flows show in each interval: counted by flow, and named when the flow ends or the interval is told.

use std::borrow::Cow;
use std::collections::BTreeMap;

use netsniff_packet::{Address, Timestamp};

use super::clock::{IntervalEnd, Intervals};
use super::connections::ConnectionFigures;
use super::figures::{FlowFigures, FlowInterval, LostBytes};
use super::packets::end_key;
use super::sketch::Sketch;
use super::{Failure, SeriesOptions};
use crate::depth::Depth;
use crate::key::Side;
use crate::limits::Limits;
use crate::record::{Connection, Fact, Observer, SortKey};

/// No cell.
const NONE: u32 = u32::MAX;

/// Bytes of a cell, with what finds it.
const CELL_BYTES: usize = size_of::<Cell>() + 2 * size_of::<u32>();

/// Counts what the flows of one worker show.
#[derive(Debug)]
pub(crate) struct FlowSeries {
    intervals: Intervals,
    depth: Depth,
    is_of_ring: bool,
    /// Intervals before this one were told.
    told: i64,
    /// The first cell of each flow, by the place of the flow.
    heads: Vec<u32>,
    cells: Vec<Cell>,
    free: Vec<u32>,
    /// The last cell of each interval that has any.
    chains: BTreeMap<i64, u32>,
    /// Bytes of the sketches in cells.
    sketch_bytes: usize,
    /// What was named, by interval.
    named: BTreeMap<i64, FlowInterval>,
    /// Room for hosts and services that have none yet, in all intervals together.
    hosts: usize,
    services: usize,
    /// Connections of an interval that have rows.
    connections: usize,
    limits: Limits,
}

/// What a flow showed in an interval.
#[derive(Debug)]
struct Cell {
    interval: i64,
    /// Where the flow is.
    place: u32,
    /// The next cell of the flow.
    next: u32,
    /// The cells of the interval that were made before and after it.
    older: u32,
    newer: u32,
    is_new: bool,
    sides: [SideFigures; 2],
}

/// What one side of a flow showed in an interval.
#[derive(Debug, Default)]
struct SideFigures {
    packets: u64,
    ip_bytes: u64,
    retransmitted: i64,
    /// Round trips from the tap to this side and back.
    rtt: Option<Box<Sketch>>,
}

impl SideFigures {
    fn sketch_bytes(&self) -> usize {
        self.rtt.as_ref().map_or(0, |rtt| size_of::<Sketch>() + rtt.heap_bytes())
    }
}

/// What a datagram did to its flow, as far as it is counted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Step {
    pub(crate) packets: u64,
    pub(crate) ip_bytes: u64,
    /// Segments among them that were sent again; less than none where one was taken for that before.
    pub(crate) retransmitted: i64,
    /// Round trips to the sender that it ended, and their sum in nanoseconds.
    pub(crate) samples: u64,
    pub(crate) nanos: u64,
}

/// What names the figures of a flow.
#[derive(Clone, Debug)]
pub(crate) struct FlowNames {
    /// What its content showed so far.
    pub(crate) service: Option<Cow<'static, str>>,
    /// Its hosts, by [`Side`].
    pub(crate) hosts: [Address; 2],
    pub(crate) originator: Side,
    /// The connection as rows tell it.
    pub(crate) connection: Connection,
}

/// What a worker tells of its flows in some intervals.
#[derive(Debug)]
pub(super) struct FlowShare {
    pub(super) intervals: Intervals,
    pub(super) depth: Depth,
    /// The last interval, and how many flows are open when it is told; `None` where it was told before.
    pub(super) open_flows: Option<(i64, u64)>,
    pub(super) figures: Vec<(i64, FlowInterval)>,
    /// Connections of an interval that have rows.
    pub(super) connections: usize,
}

/// What is told of a flow apart from its packets.
#[derive(Clone, Copy, Debug)]
pub(crate) enum LateFigure {
    /// Payload that was lost of what a host sent, where the log `gaps` has it.
    Lost(Address, LostBytes),
    /// Something that failed.
    Failed(Failure),
}

/// What a worker tells of a flow apart from its packets. It goes alone, since it may belong to any interval.
#[derive(Debug)]
pub(crate) struct LateShare {
    pub(super) intervals: Intervals,
    pub(super) depth: Depth,
    pub(super) number: i64,
    pub(super) service: Option<Box<str>>,
    /// The hosts that it is told of.
    pub(super) hosts: [Option<Address>; 2],
    what: LateFigure,
}

impl LateShare {
    /// It as figures, which are added to others.
    pub(super) fn figures(&self) -> FlowFigures {
        let mut figures = FlowFigures::default();
        match self.what {
            LateFigure::Lost(_, lost) => figures.lost = lost,
            LateFigure::Failed(failure) => figures.failures[failure as usize] = 1,
        }
        figures
    }
}

impl Fact for LateShare {
    fn heap_bytes(&self) -> usize {
        self.service.as_ref().map_or(0, |service| service.len())
    }
}

impl Fact for FlowShare {
    fn heap_bytes(&self) -> usize {
        let figures = self.figures.iter().map(|(_, figures)| figures.heap_bytes()).sum::<usize>();
        figures + self.figures.capacity() * size_of::<(i64, FlowInterval)>()
    }
}

impl FlowSeries {
    /// Nothing counted yet of flows that are analysed so deep at most.
    pub(crate) fn new(options: &SeriesOptions, depth: Depth, limits: Limits) -> Self {
        Self {
            intervals: Intervals::new(options.interval),
            depth,
            is_of_ring: options.is_of_ring,
            told: i64::MIN,
            heads: Vec::new(),
            cells: Vec::new(),
            free: Vec::new(),
            chains: BTreeMap::new(),
            sketch_bytes: 0,
            named: BTreeMap::new(),
            hosts: limits.series_hosts,
            services: limits.series_services,
            connections: options.connections,
            limits,
        }
    }

    /// Notes that a flow begins at `place` with a packet that was seen at `time`.
    pub(crate) fn begin(&mut self, place: u32, time: Timestamp) {
        let cell = self.cell(place, self.intervals.number(time));
        self.cells[cell as usize].is_new = true;
    }

    /// Counts a datagram that `side` of the flow at `place` sent at `time`.
    pub(crate) fn count(&mut self, place: u32, time: Timestamp, side: Side, step: &Step) {
        let cell = self.cell(place, self.intervals.number(time)) as usize;
        let side = &mut self.cells[cell].sides[side as usize];
        side.packets += step.packets;
        side.ip_bytes += step.ip_bytes;
        side.retransmitted += step.retransmitted;
        let Some(mean) = step.nanos.checked_div(step.samples) else { return };
        let before = side.sketch_bytes();
        // Several at once are those of segments that were held.
        side.rtt.get_or_insert_default().add(mean, step.samples);
        self.sketch_bytes += side.sketch_bytes() - before;
    }

    /// Bytes that open flows take, which their end gives back.
    pub(crate) const fn heap_bytes(&self) -> usize {
        (self.cells.len() - self.free.len()) * CELL_BYTES + self.sketch_bytes
    }

    /// The cell of the flow at `place` in an interval.
    #[inline]
    fn cell(&mut self, place: u32, interval: i64) -> u32 {
        let mut at = self.heads.get(place as usize).copied().unwrap_or(NONE);
        while let Some(cell) = self.cells.get(at as usize) {
            if cell.interval == interval {
                return at;
            }
            at = cell.next;
        }
        self.add_cell(place, interval)
    }

    fn add_cell(&mut self, place: u32, interval: i64) -> u32 {
        if self.heads.len() <= place as usize {
            self.heads.resize(place as usize + 1, NONE);
        }
        let at = self.free.pop().unwrap_or(self.cells.len() as u32);
        let next = core::mem::replace(&mut self.heads[place as usize], at);
        let older = self.chains.insert(interval, at).unwrap_or(NONE);
        if let Some(older) = self.cells.get_mut(older as usize) {
            older.newer = at;
        }
        let (is_new, sides) = (false, Default::default());
        let cell = Cell { interval, place, next, older, newer: NONE, is_new, sides };
        match self.cells.get_mut(at as usize) {
            Some(free) => *free = cell,
            None => self.cells.push(cell),
        }
        at
    }

    /// Takes a cell out of those of its interval.
    fn unchain(&mut self, at: u32) {
        let Some(&Cell { interval, older, newer, .. }) = self.cells.get(at as usize) else {
            return;
        };
        if let Some(cell) = self.cells.get_mut(older as usize) {
            cell.newer = newer;
        }
        if let Some(cell) = self.cells.get_mut(newer as usize) {
            cell.older = older;
        } else if older == NONE {
            self.chains.remove(&interval);
        } else {
            self.chains.insert(interval, older);
        }
    }

    /// Names what the flow at `place` showed, which ends.
    pub(crate) fn end(&mut self, place: u32, names: &FlowNames) {
        let Some(head) = self.heads.get_mut(place as usize) else { return };
        let mut at = core::mem::replace(head, NONE);
        while let Some(cell) = self.cells.get(at as usize) {
            let next = cell.next;
            self.name(at, names);
            at = next;
        }
    }

    /// Adds what is in a cell to the figures by name, and frees it.
    fn name(&mut self, at: u32, names: &FlowNames) {
        self.unchain(at);
        let Some(cell) = self.cells.get_mut(at as usize) else { return };
        let sides = core::mem::take(&mut cell.sides);
        self.sketch_bytes -= sides.iter().map(SideFigures::sketch_bytes).sum::<usize>();
        let (interval, is_new) = (cell.interval, cell.is_new);
        self.free.push(at);
        // Whether the flow had packets there that were told before, nobody knows any more.
        let is_active = interval >= self.told;
        let figures = self.named.entry(interval).or_default();
        let counted =
            FlowFigures { new: is_new.into(), active: is_active.into(), ..Default::default() };
        let [originator, responder] = match names.originator {
            Side::Low => [&sides[0], &sides[1]],
            Side::High => [&sides[1], &sides[0]],
        };
        let mut all = FlowFigures {
            orig: [originator.packets, originator.ip_bytes],
            resp: [responder.packets, responder.ip_bytes],
            retransmitted: originator.retransmitted + responder.retransmitted,
            ..counted.clone()
        };
        responder.rtt.iter().for_each(|rtt| all.rtt += rtt);
        figures.total += &all;
        *figures.services.of(service_key(names), &mut self.services) += &all;
        for (host, side) in names.hosts.into_iter().zip(&sides) {
            let sum = figures.hosts.of(host, &mut self.hosts);
            *sum += &counted;
            sum.retransmitted += side.retransmitted;
            side.rtt.iter().for_each(|rtt| sum.rtt += rtt);
        }
        if self.connections > 0 {
            let (connection, service) = (names.connection, service_key(names));
            let one = ConnectionFigures { connection, service, figures: all };
            figures.connections.add(one, self.connections);
        }
    }

    /// What else is known of a flow with these names, at a time that may be long over.
    pub(crate) fn late(&self, names: &FlowNames, time: Timestamp, what: LateFigure) -> LateShare {
        let service = service_key(names);
        let hosts = match what {
            LateFigure::Lost(sender, _) => [Some(sender), None],
            LateFigure::Failed(_) => names.hosts.map(Some),
        };
        let Self { intervals, depth, .. } = *self;
        LateShare { intervals, depth, number: intervals.number(time), service, hosts, what }
    }

    /// Tells what belongs before the end of some intervals, at which `flows` are open; `names` has those of the flow at a
    /// place.
    pub(crate) fn tell<O: Observer>(
        &mut self,
        end: &IntervalEnd,
        flows: u64,
        names: impl Fn(u32) -> Option<FlowNames>,
        observer: &mut O,
    ) {
        let IntervalEnd { key, open } = *end;
        while let Some((&interval, &at)) = self.chains.first_key_value()
            && interval < open
        {
            let place = self.cells[at as usize].place;
            let Some(names) = names(place) else { break };
            self.unlink(place, at);
            self.name(at, &names);
        }
        let open_flows = (open > self.told && !self.is_of_ring).then_some((open - 1, flows));
        self.hand_over(open, key, open_flows, observer);
        self.told = open;
    }

    /// Takes a cell out of the list of its flow.
    fn unlink(&mut self, place: u32, at: u32) {
        let next = self.cells[at as usize].next;
        let head = &mut self.heads[place as usize];
        if *head == at {
            *head = next;
            return;
        }
        let mut before = *head;
        while let Some(cell) = self.cells.get_mut(before as usize) {
            if cell.next == at {
                cell.next = next;
                return;
            }
            before = cell.next;
        }
    }

    fn hand_over<O: Observer>(
        &mut self,
        open: i64,
        key: SortKey,
        open_flows: Option<(i64, u64)>,
        observer: &mut O,
    ) {
        let later = self.named.split_off(&open);
        let figures: Vec<_> = core::mem::replace(&mut self.named, later).into_iter().collect();
        if figures.is_empty() && open_flows.is_none() {
            return;
        }
        if self.named.is_empty() {
            (self.hosts, self.services) = (self.limits.series_hosts, self.limits.series_services);
        } else {
            for (_, figures) in &figures {
                self.hosts += figures.hosts.named.len();
                self.services += figures.services.named.len();
            }
        }
        let Self { intervals, depth, connections, .. } = *self;
        let share = FlowShare { intervals, depth, open_flows, figures, connections };
        observer.fact(&key, &Connection::NONE, Box::new(share));
    }

    /// Tells what is left at the end of the input, at engine time `now`, once all flows have ended.
    pub(crate) fn finish<O: Observer>(&mut self, now: Timestamp, observer: &mut O) {
        self.hand_over(i64::MAX, end_key(now), None, observer);
    }
}

fn service_key(names: &FlowNames) -> Option<Box<str>> {
    names.service.as_deref().map(Box::from)
}
