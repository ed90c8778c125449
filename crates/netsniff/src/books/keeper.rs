//! Reads all counters at one moment and makes the books of them.

use std::time::Duration;

use anyhow::Context as _;
use netsniff_capture::backend::RingFacts;
use netsniff_capture::host::{HostCounters, HostReader};
use netsniff_capture::interface::{LinkCounters, LinkReader};
use netsniff_capture::options::Direction;
use netsniff_packet::Timestamp;

use super::entry::{Entry, Place};
use crate::pipeline::live::{Control, RingReport};

/// How long the rings have to answer. One that is stalled tells nothing, and what it told before stands.
const ANSWER: Duration = Duration::from_millis(200);

/// A ring of a run.
#[derive(Clone, Debug)]
pub struct RingPlace {
    /// Which of the interfaces it belongs to.
    pub interface: usize,
    /// What it is.
    pub facts: RingFacts,
}

/// An interface whose packets are captured.
#[derive(Debug)]
struct Watched {
    name: String,
    /// The sides that its packets are captured from.
    direction: Direction,
    reader: LinkReader,
    /// What it had counted when the rings were started.
    start: LinkCounters,
    last: LinkCounters,
}

/// Keeps the books of one run.
#[derive(Debug)]
pub struct Keeper {
    interfaces: Vec<Watched>,
    rings: Vec<RingPlace>,
    sampling: u64,
    host: Option<HostReader>,
    host_start: HostCounters,
    /// When the rows before were made.
    since: Timestamp,
}

impl Keeper {
    /// Begins the books of rings that are about to be started; `host` tells what all interfaces share.
    ///
    /// # Errors
    ///
    /// Where an interface cannot be asked.
    pub fn begin(
        interfaces: &[netsniff_capture::Interface],
        rings: Vec<RingPlace>,
        sampling: u64,
        mut host: Option<HostReader>,
        now: Timestamp,
    ) -> anyhow::Result<Self> {
        let interfaces = interfaces.iter().enumerate().map(|(number, interface)| {
            let mut reader = LinkReader::new(interface.index)?;
            let start = reader.counters()?;
            let start = start.with_context(|| format!("{} is gone", interface.name))?;
            let last = LinkCounters::default();
            let own = rings.iter().find(|ring| ring.interface == number);
            let direction = own.map_or_else(Direction::default, |ring| ring.facts.direction);
            Ok(Watched { name: interface.name.clone(), direction, reader, start, last })
        });
        let interfaces = interfaces.collect::<anyhow::Result<_>>()?;
        let host_start = host.as_mut().and_then(|host| host.counters().ok()).unwrap_or_default();
        Ok(Self { interfaces, rings, sampling, host, host_start, since: now })
    }

    /// Asks all rings, waits for them a short time, and makes the books.
    pub fn read(&mut self, control: &Control) -> Vec<Entry> {
        let before = self.arrivals();
        let number = control.ask();
        let begin = netsniff_capture::monotonic();
        let mut answered = control.reports(number);
        while !answered.1 && Duration::from_nanos(netsniff_capture::monotonic() - begin) < ANSWER {
            std::thread::sleep(Duration::from_millis(1));
            answered = control.reports(number);
        }
        self.entries(&answered.0, &before)
    }

    /// The books of rings that have ended.
    pub fn close(&mut self, reports: &[RingReport]) -> Vec<Entry> {
        let before = self.arrivals();
        self.entries(reports, &before)
    }

    /// When the rows before were made; `now` is when those are that follow.
    pub fn turn(&mut self, now: Timestamp) -> Timestamp {
        core::mem::replace(&mut self.since, now)
    }

    /// Packets that came to each interface since the start, by its own counters.
    fn arrivals(&mut self) -> Vec<Option<u64>> {
        self.interfaces.iter_mut().map(Watched::arrived).collect()
    }

    /// One entry for each interface, one for each ring, and one for the host. `before` is what had arrived
    /// before the rings were asked.
    fn entries(&mut self, reports: &[RingReport], before: &[Option<u64>]) -> Vec<Entry> {
        let after = self.arrivals();
        let mut entries = Vec::new();
        for (number, watched) in self.interfaces.iter().enumerate() {
            let own = self.rings.iter().zip(reports);
            let own: Vec<_> = own.filter(|(ring, _)| ring.interface == number).collect();
            let arrived = after.get(number).copied().flatten();
            let earlier = before.get(number).copied().flatten();
            let report = sum(own.iter().map(|(_, report)| *report));
            entries.push(Entry {
                place: Place::Interface(watched.name.clone()),
                link: own.first().map(|(_, report)| report.link),
                arrived,
                lost_interface: arrived.map(|_| watched.lost()),
                filtered: filtered(report.as_ref()),
                bound: arrived.zip(earlier).map(|(after, before)| after.saturating_sub(before)),
                report,
                facts: own.first().map(|(ring, _)| ring.facts.clone()),
                ..self.blank(Place::Host)
            });
            for (at, (ring, report)) in own.iter().enumerate() {
                entries.push(Entry {
                    link: Some(report.link),
                    filtered: filtered(Some(report)),
                    report: Some((*report).clone()),
                    facts: Some(ring.facts.clone()),
                    ..self.blank(Place::Ring(watched.name.clone(), at))
                });
            }
        }
        self.host(&mut entries);
        entries
    }

    fn host(&mut self, entries: &mut Vec<Entry>) {
        let Some(now) = self.host.as_mut().and_then(|host| host.counters().ok()) else { return };
        entries.push(self.host_entry(now));
    }

    /// What the host has counted since the start.
    fn host_entry(&self, now: HostCounters) -> Entry {
        let start = self.host_start;
        Entry {
            lost_backlog: Some(now.backlog_dropped.saturating_sub(start.backlog_dropped)),
            time_squeezes: Some(now.time_squeezes.saturating_sub(start.time_squeezes)),
            ..self.blank(Place::Host)
        }
    }

    fn blank(&self, place: Place) -> Entry {
        Entry {
            place,
            link: None,
            arrived: None,
            lost_interface: None,
            lost_backlog: None,
            time_squeezes: None,
            filtered: None,
            bound: None,
            recorded: None,
            unrecorded: None,
            report: None,
            facts: None,
            sampling: self.sampling,
        }
    }
}

impl Watched {
    /// Packets that came to the interface since the start; `None` once it is gone.
    fn arrived(&mut self) -> Option<u64> {
        self.last = self.reader.counters().ok()??;
        Some(arrived(&self.name, &self.start, &self.last, self.direction))
    }

    /// Packets that the hardware had no room for since the start.
    fn lost(&self) -> u64 {
        lost(&self.start, &self.last)
    }
}

/// Packets that came to an interface between two readings, in a direction: those that it has counted, and
/// those that it had no room for.
fn arrived(name: &str, start: &LinkCounters, now: &LinkCounters, direction: Direction) -> u64 {
    let received = now.rx_packets.saturating_sub(start.rx_packets);
    let sent = now.tx_packets.saturating_sub(start.tx_packets);
    let counted = match direction {
        Direction::In => received,
        Direction::Out => sent,
        // What the loopback interface sends it receives, and is captured once.
        Direction::Both if name == "lo" => received,
        Direction::Both => received.saturating_add(sent),
    };
    counted.saturating_add(lost(start, now))
}

/// Packets that the hardware had no room for between two readings, which it has not counted as received.
fn lost(start: &LinkCounters, now: &LinkCounters) -> u64 {
    let lost = |of: &LinkCounters| of.rx_missed + of.rx_fifo + of.rx_over;
    lost(now).saturating_sub(lost(start))
}

/// Packets that the kernel's filter refused, as the rings tell.
fn filtered(report: Option<&RingReport>) -> Option<u64> {
    report.and_then(|report| report.counters.filtered)
}

/// The sum over several rings; `None` without any.
fn sum<'a>(mut reports: impl Iterator<Item = &'a RingReport>) -> Option<RingReport> {
    let first = reports.next()?.clone();
    Some(reports.fold(first, |mut sum, report| {
        sum.add(report);
        sum
    }))
}

#[cfg(test)]
#[path = "keeper/tests.rs"]
mod tests;
