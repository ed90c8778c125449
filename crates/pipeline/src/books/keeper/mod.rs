//! Reads all counters around one moment and makes the books of them.

use std::time::Duration;

use netsniff_capture::backend::RingFacts;
use netsniff_capture::counters::Counted;
use netsniff_capture::host::{HostCounters, HostReader};
use netsniff_capture::options::Direction;
use netsniff_packet::Timestamp;

use super::entry::{BooksLine, BooksScope};
use super::sightings::{Arrived, BLIND_LAG};
use super::watched::Watched;
use crate::live::{Control, LAG, Moment, RingReport};

/// How long the rings have to answer. One that is stalled tells nothing, and what it told before stands.
const ANSWER: Duration = Duration::from_millis(200);

/// How often the interfaces are read while a ring does not answer.
const PAUSE: Duration = Duration::from_micros(500);

/// How far apart readings of the interfaces lie while nothing else is done: few enough are kept.
const GRAIN: Duration = Duration::from_micros(50);

/// How often what the kernel has counted is read, at most.
const TRIES: usize = 4;

/// How long before a reading of the rings the interfaces are read.
pub const LEAD: Duration = Duration::from_micros(2500);

/// A ring of a run.
#[derive(Clone, Debug)]
pub struct RingPlace {
    /// Which of the interfaces it belongs to.
    pub interface: usize,
    /// Interface, backend and options of the ring.
    pub facts: RingFacts,
    /// Whether other processes may take packets of its fan-out group.
    pub is_shared: bool,
}

/// Keeps the books of one run.
#[derive(Debug)]
pub struct BooksKeeper {
    interfaces: Vec<Watched>,
    rings: Vec<RingPlace>,
    sampling: u64,
    host: Option<HostReader>,
    host_start: HostCounters,
    /// When nothing more was let into the rings. The interfaces are not read any more then.
    shut: Option<Moment>,
    /// When the rows before were made.
    since: Timestamp,
}

impl BooksKeeper {
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
            let own = rings.iter().find(|ring| ring.interface == number);
            let direction = own.map_or_else(Direction::default, |ring| ring.facts.direction);
            Watched::begin(interface, direction)
        });
        let interfaces = interfaces.collect::<anyhow::Result<_>>()?;
        let host_start = host.as_mut().and_then(|host| host.counters().ok()).unwrap_or_default();
        Ok(Self { interfaces, rings, sampling, host, host_start, shut: None, since: now })
    }

    /// Starts the rings, and finds out what had arrived by then.
    ///
    /// # Errors
    ///
    /// What starting them fails at.
    pub fn start<T>(&mut self, start: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<T> {
        // Where nobody tells what waits, what had come long before is all that is sure to have passed.
        self.look_for(if self.host.is_some() { LEAD } else { LEAD + BLIND_LAG });
        let (moment, started) = Moment::of(start);
        let started = started?;
        self.look_for(LAG);
        self.interfaces.iter_mut().for_each(|watched| watched.started(moment));
        Ok(started)
    }

    /// Reads the counters of the interfaces, and follows those that came back. To be called now and then.
    pub fn attend(&mut self, control: &Control) {
        self.follow(&control.last_reports());
        self.look();
    }

    /// Makes the books of the reports of this number, which the rings were asked for at `due`. It is to be called
    /// [`LEAD`] before, waits for the rings a short time, and reads the interfaces meanwhile. What the kernel has
    /// counted is read of all rings at one moment behind that, whatever their threads do.
    pub fn read(&mut self, control: &Control, number: u64, due: u64) -> Vec<BooksLine> {
        let give_up = due.saturating_add(nanos(ANSWER));
        let reports = loop {
            self.look();
            let (reports, are_new) = control.reports(number);
            if are_new || netsniff_capture::monotonic() >= give_up {
                break reports;
            }
            std::thread::sleep(PAUSE);
        };
        let (moment, counted) = self.count(control, &reports);
        let reports = reports.into_iter().zip(counted).map(|(report, counted)| match counted {
            Some(counted) => report.at(moment, counted),
            None => report,
        });
        self.entries(&reports.collect::<Vec<_>>())
    }

    /// Reads at one moment what the kernel has counted of all rings, and what had arrived by then. Where this thread
    /// waited for a processor meanwhile, so that much more may have arrived, it is done again.
    fn count(
        &mut self,
        control: &Control,
        reports: &[RingReport],
    ) -> (Moment, Vec<Option<Counted>>) {
        let mut best: Option<(u64, Moment, Vec<Option<Counted>>)> = None;
        for _ in 0..TRIES {
            let (moment, counted) = Moment::of(|| control.counted(reports));
            self.look_for(LAG);
            let excess = self.interfaces.iter().map(|of| of.excess(moment)).max().unwrap_or(0);
            if best.as_ref().is_none_or(|(least, ..)| excess < *least) {
                best = Some((excess, moment, counted));
            }
            if excess <= nanos(LAG) || self.shut.is_some() {
                break;
            }
        }
        best.map_or_else(|| Moment::of(Vec::new), |(_, moment, counted)| (moment, counted))
    }

    /// Lets nothing more into the rings, and finds out what had arrived by then.
    pub fn shut(&mut self, control: &Control) {
        self.look_for(LEAD);
        let shut = control.shut();
        self.look_for(LAG);
        self.shut = Some(shut);
    }

    /// The books of rings that have ended.
    pub fn close(&mut self, reports: &[RingReport]) -> Vec<BooksLine> {
        // Rings that ended by themselves were read at their end.
        self.look_for(LAG);
        self.entries(reports)
    }

    /// When the rows before were made; `now` is when those are that follow.
    pub fn turn(&mut self, now: Timestamp) -> Timestamp {
        core::mem::replace(&mut self.since, now)
    }

    /// Reads the interfaces, and what waits between them and the rings.
    fn look(&mut self) {
        if self.shut.is_some() {
            return;
        }
        let (moment, told) = Moment::of(|| self.host.as_mut().and_then(|of| of.interfaces().ok()));
        let backlog = self.host.as_mut().and_then(|host| host.backlog().ok()).flatten();
        for watched in &mut self.interfaces {
            watched.look(told.as_ref().map(|told| (moment, told)), backlog);
        }
    }

    /// Reads the interfaces again and again, from now until so much later. Whoever sleeps comes back later than he
    /// wanted, so that more has arrived.
    fn look_for(&mut self, time: Duration) {
        let end = netsniff_capture::monotonic().saturating_add(nanos(time));
        loop {
            let begin = netsniff_capture::monotonic();
            self.look();
            if begin >= end || self.shut.is_some() {
                return;
            }
            let next = end.min(begin.saturating_add(nanos(GRAIN)));
            while netsniff_capture::monotonic() < next {
                std::hint::spin_loop();
            }
        }
    }

    /// Goes on with interfaces that came back.
    fn follow(&mut self, reports: &[RingReport]) {
        for (number, watched) in self.interfaces.iter_mut().enumerate() {
            let own = self.rings.iter().zip(reports).filter(|(ring, _)| ring.interface == number);
            watched.follow(own.filter_map(|(_, report)| report.returned));
        }
    }

    /// When the counters of a report were read. What was shut before that counts nothing more.
    fn moment(&self, report: &RingReport) -> Option<Moment> {
        match (self.shut, report.read) {
            (Some(shut), Some(read)) if read.end < shut.begin => Some(read),
            (shut, read) => shut.or(read),
        }
    }

    /// One entry for each interface, one for each ring, and one for the host.
    fn entries(&mut self, reports: &[RingReport]) -> Vec<BooksLine> {
        self.follow(reports);
        self.interfaces.iter_mut().for_each(Watched::ask_for_losses);
        let mut entries = Vec::new();
        for (number, watched) in self.interfaces.iter().enumerate() {
            let own = self.rings.iter().zip(reports);
            let own: Vec<_> = own.filter(|(ring, _)| ring.interface == number).collect();
            let moments = own.iter().filter_map(|(_, report)| self.moment(report));
            let report = sum(own.iter().map(|(_, report)| *report));
            let taken = report.as_ref().map_or(0, |report| report.counters.delivered);
            let arrived = watched.arrived(moments.reduce(Moment::with), taken);
            entries.push(BooksLine {
                place: BooksScope::Interface(watched.name().to_owned()),
                link: own.first().map(|(_, report)| report.link),
                // What the interface had no room for had come, too, and is in no other counter.
                arrived: arrived.map(|arrived| arrived.likely.saturating_add(watched.lost())),
                lost_interface: arrived.map(|_| watched.lost()),
                filtered: filtered(report.as_ref()),
                bound: arrived.map(Arrived::bound),
                report,
                facts: own.first().map(|(ring, _)| ring.facts.clone()),
                is_shared: own.iter().any(|(ring, _)| ring.is_shared),
                ..self.blank(BooksScope::Host)
            });
            for (at, (ring, report)) in own.iter().enumerate() {
                entries.push(BooksLine {
                    link: Some(report.link),
                    filtered: filtered(Some(report)),
                    report: Some((*report).clone()),
                    facts: Some(ring.facts.clone()),
                    ..self.blank(BooksScope::Ring(watched.name().to_owned(), at))
                });
            }
        }
        let moments = reports.iter().filter_map(|report| self.moment(report));
        let oldest = moments.map(|moment| moment.begin).min();
        for watched in &mut self.interfaces {
            watched.forget_before(oldest.unwrap_or_default());
        }
        self.host(&mut entries);
        entries
    }

    fn host(&mut self, entries: &mut Vec<BooksLine>) {
        let Some(now) = self.host.as_mut().and_then(|host| host.counters().ok()) else { return };
        entries.push(self.host_entry(now));
    }

    /// What the host has counted since the start.
    fn host_entry(&self, now: HostCounters) -> BooksLine {
        let start = self.host_start;
        BooksLine {
            lost_backlog: Some(now.backlog_dropped.saturating_sub(start.backlog_dropped)),
            time_squeezes: Some(now.time_squeezes.saturating_sub(start.time_squeezes)),
            ..self.blank(BooksScope::Host)
        }
    }

    fn blank(&self, place: BooksScope) -> BooksLine {
        BooksLine {
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
            refused_rows: None,
            report: None,
            facts: None,
            is_shared: false,
            sampling: self.sampling,
        }
    }
}

/// Packets that the kernel's filter refused, as the rings tell.
fn filtered(report: Option<&RingReport>) -> Option<u64> {
    report.and_then(|report| report.counters.filtered)
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
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
mod tests;
