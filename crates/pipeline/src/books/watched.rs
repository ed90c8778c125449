//! An interface whose packets are captured, and what came to it since the start.

use anyhow::Context as _;
use netsniff_capture::Interface;
use netsniff_capture::host::{Backlog, Interfaces, Passed};
use netsniff_capture::interface::{LinkCounters, LinkReader};
use netsniff_capture::options::Direction;

use super::sightings::{Arrived, Sighting, Sightings};
use crate::live::{Moment, Return};

/// What is known of an interface.
#[derive(Debug)]
pub(super) struct Watched {
    name: String,
    /// Its name now, by which the host tells of it.
    called: String,
    /// The sides that its packets are captured from.
    direction: Direction,
    reader: LinkReader,
    sightings: Sightings,
    /// What it had counted when the rings were started.
    start: Arrived,
    /// What it had counted when it was removed, once it was; `None` in it where nobody told.
    end: Option<Option<Arrived>>,
    /// What came to interfaces of its name that went away and came back; `None` where nobody told.
    before: Option<Arrived>,
    /// Packets that it had no room for: when the rings were started, when it was asked last, and of those before it.
    lost: [u64; 3],
    /// How often it has come back.
    returns: u64,
}

impl Watched {
    /// Begins to watch an interface.
    ///
    /// # Errors
    ///
    /// Where it cannot be asked, and where it is gone.
    pub(super) fn begin(interface: &Interface, direction: Direction) -> anyhow::Result<Self> {
        let mut reader = LinkReader::listening(interface.index)?;
        let name = interface.name.clone();
        let counters = reader.counters()?.with_context(|| format!("{name} is gone"))?;
        let lost = lost(&counters);
        Ok(Self {
            called: name.clone(),
            name,
            lost: [lost, lost, 0],
            direction,
            reader,
            sightings: Sightings::default(),
            start: Arrived::default(),
            end: None,
            before: Some(Arrived::default()),
            returns: 0,
        })
    }

    /// Its name when the run began.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Notes what the host told at a moment, and what waited behind that between interfaces and rings. Asks the
    /// kernel itself where the host did not tell.
    pub(super) fn look(&mut self, told: Option<(Moment, &Interfaces)>, backlog: Option<Backlog>) {
        if self.end.is_some() {
            return;
        }
        let last = self.reader.last_counters();
        if let Some((moment, passed)) = told.and_then(|(at, of)| Some((at, of.of(&self.called)?))) {
            let came = self.came(passed);
            return self.sightings.note(Sighting { moment, came, backlog });
        }
        let (moment, counters) = Moment::of(|| self.reader.counters());
        match counters {
            Ok(Some(counters)) => {
                let came = self.came(passed(&counters));
                self.sightings.note(Sighting { moment, came, backlog: None });
                if let Ok(Some(called)) = self.reader.name() {
                    self.called = called;
                }
            }
            Ok(None) => {
                let last = self.reader.last_counters().or(last);
                self.end = Some(self.at_end(last));
            }
            // It is asked again soon.
            Err(_) => {}
        }
    }

    fn at_end(&self, last: Option<LinkCounters>) -> Option<Arrived> {
        self.sightings.at_end(self.came(passed(&last?)))
    }

    /// Asks how many packets it had no room for. Whoever changes interfaces meanwhile is waited for.
    pub(super) fn ask_for_losses(&mut self) {
        if let Ok(Some(counters)) = self.reader.counters() {
            self.lost[1] = lost(&counters);
        }
    }

    /// Packets that it had no room for since the rings were started.
    pub(super) const fn lost(&self) -> u64 {
        let [start, last, before] = self.lost;
        before.saturating_add(last.saturating_sub(start))
    }

    /// The rings were started at this moment.
    pub(super) fn started(&mut self, moment: Moment) {
        self.start = self.sightings.around(moment).unwrap_or_default();
    }

    /// Goes on with an interface that came back, as its rings tell.
    pub(super) fn follow(&mut self, returned: impl Iterator<Item = Return> + Clone) {
        let Some(times) = returned.clone().map(|of| of.times).max() else { return };
        if times > self.returns {
            let last = self.reader.last_counters();
            let last = self.at_end(last);
            let end = self.end.take().unwrap_or(last);
            // One that came and went in between was not seen.
            let was_seen = times == self.returns + 1;
            let ended = end.filter(|_| was_seen).map(|end| end.since(self.start));
            self.before = self.before.zip(ended).map(|(before, ended)| before.with(ended));
            self.returns = times;
            self.called.clone_from(&self.name);
            self.lost = [0, 0, self.lost()];
            self.sightings = Sightings::default();
            let index = returned.clone().find(|of| of.times == times).map(|of| of.index);
            match index.map(LinkReader::listening) {
                Some(Ok(reader)) => self.reader = reader,
                _ => self.end = Some(None),
            }
        }
        let own = returned.filter(|of| of.times == times);
        let starts = own.map(|of| Arrived {
            least: self.came(passed(&of.before)),
            likely: self.came(passed(&of.at)),
            most: self.came(passed(&of.after)),
        });
        let both = |one: Arrived, other: Arrived| Arrived {
            least: one.least.min(other.least),
            likely: one.likely.max(other.likely),
            most: one.most.max(other.most),
        };
        self.start = starts.reduce(both).unwrap_or_default();
    }

    /// What came to it from the start of the rings to the moment at which their counters were read, when they had
    /// taken so many packets; `None` where nobody knows. Some drivers have forgotten what they counted as their interface
    /// is removed: a count below what the rings took is none then.
    pub(super) fn arrived(&self, moment: Option<Moment>, taken: u64) -> Option<Arrived> {
        let now = match (self.end, moment) {
            (Some(end), _) => end?,
            (None, Some(moment)) => self.sightings.around(moment)?,
            // No ring has told anything.
            (None, None) => self.start,
        };
        let was_removed = self.end.is_some() || self.returns > 0;
        let arrived = self.before?.with(now.since(self.start));
        (!was_removed || arrived.most >= taken).then_some(arrived)
    }

    /// How many readings are kept.
    #[cfg(test)]
    pub(super) fn readings(&self) -> usize {
        self.sightings.len()
    }

    /// By how much longer than they had to be its readings around a moment lie apart; 0 where it is gone.
    pub(super) fn excess(&self, moment: Moment) -> u64 {
        if self.end.is_some() { 0 } else { self.sightings.excess(moment) }
    }

    /// Lets go what was read long before a time.
    pub(super) fn forget_before(&mut self, time: u64) {
        self.sightings.forget_before(time);
    }

    /// Packets that came to it in the direction.
    fn came(&self, passed: Passed) -> u64 {
        came(&self.name, passed, self.direction)
    }
}

/// Packets that came to an interface of this name, in a direction, and were handed over.
fn came(name: &str, passed: Passed, direction: Direction) -> u64 {
    let Passed { rx_packets: received, tx_packets: sent } = passed;
    match direction {
        Direction::In => received,
        Direction::Out => sent,
        // What the loopback interface sends it receives, and is captured once.
        Direction::Both if name == "lo" => received,
        Direction::Both => received.saturating_add(sent),
    }
}

const fn passed(counters: &LinkCounters) -> Passed {
    Passed { rx_packets: counters.rx_packets, tx_packets: counters.tx_packets }
}

/// Packets that the hardware had no room for, which it has not counted as received.
fn lost(counters: &LinkCounters) -> u64 {
    counters.rx_missed.saturating_add(counters.rx_fifo).saturating_add(counters.rx_over)
}

#[cfg(test)]
mod tests {
    use super::*;

    const EARLIER: LinkCounters = LinkCounters {
        rx_packets: 1000,
        rx_bytes: 1,
        tx_packets: 5000,
        tx_bytes: 2,
        rx_errors: 3,
        rx_dropped: 4,
        tx_dropped: 5,
        rx_missed: 10,
        rx_fifo: 20,
        rx_over: 30,
        rx_nohandler: 6,
    };

    #[test]
    fn what_arrives_is_counted_by_direction() {
        let came = |name, direction| came(name, passed(&EARLIER), direction);
        assert_eq!([Direction::In, Direction::Out].map(|of| came("eth0", of)), [1000, 5000]);
        assert_eq!((came("eth0", Direction::Both), came("lo", Direction::Both)), (6000, 1000));
    }

    #[test]
    fn all_that_the_hardware_loses_is_lost_and_nothing_else() {
        let now = LinkCounters { rx_missed: 11, rx_fifo: 22, rx_over: 34, ..EARLIER };
        assert_eq!(lost(&now) - lost(&EARLIER), 1 + 2 + 4);
        let other = LinkCounters { rx_errors: 90, rx_dropped: 90, rx_nohandler: 90, ..EARLIER };
        assert_eq!(lost(&EARLIER), lost(&other), "they are not known to have been wanted");
    }

    fn lo() -> Watched {
        Watched::begin(&Interface::find("lo").unwrap(), Direction::Both).unwrap()
    }

    fn returned(times: u64, before: u64, after: u64) -> Return {
        let at = |rx_packets| LinkCounters { rx_packets, ..LinkCounters::default() };
        let index = Interface::find("lo").unwrap().index;
        Return { times, index, before: at(before), at: at(before + 1), after: at(after) }
    }

    #[test]
    fn an_interface_that_came_back_goes_on() {
        let mut watched = lo();
        watched.start = Arrived { least: 5, likely: 6, most: 8 };
        watched.end = Some(Some(Arrived { least: 100, likely: 106, most: 106 }));
        assert_eq!(watched.arrived(None, 99).unwrap().likely, 100);
        // Two rings, of which one is started later.
        watched.follow([returned(1, 10, 14)].into_iter());
        watched.follow([returned(1, 10, 14), returned(1, 20, 24)].into_iter());
        assert_eq!(watched.start, Arrived { least: 10, likely: 21, most: 24 });
        assert_eq!(watched.end, None);
        let before = Arrived { least: 92, likely: 100, most: 101 };
        assert_eq!(watched.before, Some(before));
    }

    #[test]
    fn a_last_count_below_what_the_rings_took_is_none() {
        let mut watched = lo();
        let count = Arrived { least: 0, likely: 7, most: 7 };
        watched.end = Some(Some(count));
        assert_eq!(watched.arrived(None, 7), Some(count));
        assert_eq!(watched.arrived(None, 8), None);
    }

    #[test]
    fn what_came_to_an_interface_that_nobody_saw_is_not_known() {
        let mut watched = lo();
        watched.end = Some(None);
        assert_eq!(watched.arrived(None, 0), None);
        watched.follow([returned(1, 0, 0)].into_iter());
        watched.look(None, None);
        assert_eq!(watched.arrived(Some(Moment { begin: 0, end: 0 }), 0), None);
        let mut watched = lo();
        watched.end = Some(Some(Arrived::default()));
        watched.follow([returned(2, 0, 0)].into_iter());
        assert_eq!(watched.before, None, "one came and went in between");
    }
}
