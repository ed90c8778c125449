//! Whether a run does what it is to do, and why not.

use std::time::{Duration, Instant};

use netsniff_analysis::log::capture::CaptureVerdict;
use netsniff_delivery::Books;
use netsniff_output::{RowTally, WriterStatistics};
use netsniff_pipeline::books::{BooksLine, BooksScope};
use netsniff_pipeline::live::LinkState;
use serde::Serialize;

/// How long a thread may do nothing before it is said to hang. The thread of a ring comes round many times a second.
const HANGS: Duration = Duration::from_secs(5);

/// How far a run is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Phase {
    /// No ring captures yet.
    #[default]
    Starting,
    /// All rings capture.
    Capturing,
    /// Nothing more is captured; what is left is written.
    Ending,
}

/// What was seen of a run.
#[derive(Debug)]
pub(super) struct Health {
    phase: Phase,
    /// When the ruling thread looked last.
    looked: Instant,
    /// How often the thread of each ring came round, and since when that is so.
    rings: Vec<(u64, Instant)>,
    interfaces: Vec<Seen>,
    /// Rows that were refused: all, those since the books before, and the greatest reason of these.
    refused: u64,
    new_refused: Option<(u64, &'static str)>,
    before: [u64; 3],
    /// Rows that each receiver will not get: its name, all, and those since the books before.
    undelivered: Vec<(String, u64, u64)>,
}

/// An interface, by the last books.
#[derive(Debug)]
struct Seen {
    name: String,
    link: Option<LinkState>,
    /// Packets that were lost, and those of them since the books before.
    lost: u64,
    new_lost: u64,
    verdict: Option<CaptureVerdict>,
}

/// How it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Status {
    /// All is as it should be.
    Healthy,
    /// It works, and some of the traffic is missing.
    Degraded,
    /// It does not do what it is to do.
    Unhealthy,
}

/// A reason for that.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Reason {
    /// What it is, for programs.
    pub(super) name: &'static str,
    /// What it is about.
    pub(super) subject: String,
    /// What it is, for people.
    pub(super) said: String,
}

/// How it is, with the reasons.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Report {
    pub(super) status: Status,
    pub(super) phase: Phase,
    pub(super) ready: bool,
    pub(super) reasons: Vec<Reason>,
}

impl Health {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            phase: Phase::Starting,
            looked: now,
            rings: Vec::new(),
            interfaces: Vec::new(),
            refused: 0,
            new_refused: None,
            before: [0; 3],
            undelivered: Vec::new(),
        }
    }

    pub(super) const fn enter(&mut self, phase: Phase) {
        self.phase = phase;
    }

    /// Notes how often the thread of each ring came round.
    pub(super) fn look(&mut self, turns: &[u64], now: Instant) {
        self.looked = now;
        self.rings.resize(turns.len(), (u64::MAX, now));
        for ((before, since), turns) in self.rings.iter_mut().zip(turns) {
            if before != turns {
                (*before, *since) = (*turns, now);
            }
        }
    }

    /// Notes what the books say.
    pub(super) fn books(&mut self, entries: &[BooksLine]) {
        let seen = entries.iter().filter_map(|entry| {
            let BooksScope::Interface(name) = &entry.place else { return None };
            let known = [entry.ring_dropped(), entry.lost_interface];
            let lost = known.into_iter().flatten().sum::<u64>() + entry.refused();
            let before = self.interfaces.iter().find(|of| of.name == *name);
            let new_lost = lost.saturating_sub(before.map_or(0, |of| of.lost));
            let (name, link) = (name.clone(), entry.link);
            Some(Seen { name, link, lost, new_lost, verdict: entry.verdict() })
        });
        self.interfaces = seen.collect();
    }

    /// Notes where the rows of logs went.
    pub(super) fn rows(&mut self, rows: &WriterStatistics) {
        let why = ["could not be written", "came faster than they were written", "came too late"];
        let now =
            [&rows.refused_failed, &rows.refused_full, &rows.refused_end].map(RowTally::total);
        let new = |at: usize| now[at].saturating_sub(self.before[at]);
        let most = (0..3).max_by_key(|at| new(*at)).filter(|at| new(*at) > 0);
        self.new_refused = most.map(|most| ((0..3).map(new).sum(), why[most]));
        (self.before, self.refused) = (now, rows.refused.total());
    }

    /// Notes where the rows went that are to be delivered.
    pub(super) fn deliveries(&mut self, books: &[Books]) {
        let seen = books.iter().map(|of| {
            let before = self.undelivered.iter().find(|(name, ..)| *name == of.target);
            let all = of.refused();
            (of.target.clone(), all, all.saturating_sub(before.map_or(0, |(_, all, _)| *all)))
        });
        self.undelivered = seen.collect();
    }

    /// What keeps the run from doing what it is to do.
    fn failings(&self, now: Instant) -> Vec<Reason> {
        let mut found = Vec::new();
        let silent = |since: Instant| now.saturating_duration_since(since);
        let mut hangs = |subject: String, since: Instant| {
            let said = format!("has done nothing for {} s", silent(since).as_secs());
            found.push(Reason { name: "thread_hangs", subject, said });
        };
        if self.phase == Phase::Capturing {
            if silent(self.looked) > HANGS {
                hangs("the ruling thread".to_owned(), self.looked);
            }
            let hung = self.rings.iter().enumerate().filter(|(_, (_, at))| silent(*at) > HANGS);
            hung.for_each(|(ring, (_, at))| hangs(format!("ring {ring}"), *at));
        }
        for Seen { name, link, .. } in &self.interfaces {
            let (fault, said) = match link {
                Some(LinkState::Gone) => ("interface_gone", "the interface is gone"),
                Some(LinkState::Down) => ("interface_down", "the interface is down"),
                Some(LinkState::Up) | None => continue,
            };
            found.push(Reason { name: fault, subject: name.clone(), said: said.to_owned() });
        }
        if let Some((rows, why)) = self.new_refused {
            let said = format!(
                "{rows} rows of logs were refused since the books before, {} in all; most of them {why}",
                self.refused
            );
            found.push(Reason { name: "rows_refused", subject: "logs".to_owned(), said });
        }
        let undelivered = self.undelivered.iter().filter(|(.., new)| *new > 0);
        found.extend(undelivered.map(|(target, all, new)| Reason {
            name: "rows_undelivered",
            subject: target.clone(),
            said: format!("{new} rows were refused or lost since the books before, {all} in all"),
        }));
        found
    }

    /// What is missing from what it does.
    fn losses(&self) -> Vec<Reason> {
        let lossy = self.interfaces.iter().filter(|seen| seen.new_lost > 0);
        let reason = |seen: &Seen| Reason {
            name: "packets_lost",
            subject: seen.name.clone(),
            said: format!(
                "{} packets were lost since the books before, {} in all: {}",
                seen.new_lost,
                seen.lost,
                seen.verdict.map_or("unknown", CaptureVerdict::name)
            ),
        };
        lossy.map(reason).collect()
    }

    pub(super) fn report(&self, now: Instant) -> Report {
        let mut reasons = self.failings(now);
        let works = reasons.is_empty();
        reasons.extend(self.losses());
        let status = match (works, reasons.is_empty()) {
            (true, true) => Status::Healthy,
            (true, false) => Status::Degraded,
            (false, _) => Status::Unhealthy,
        };
        let is_hindered =
            reasons.iter().any(|of| ["thread_hangs", "interface_gone"].contains(&of.name));
        let ready = self.phase == Phase::Capturing && !is_hindered;
        Report { status, phase: self.phase, ready, reasons }
    }
}

#[cfg(test)]
mod tests {
    use netsniff_pipeline::books::testing::entry;

    use super::*;

    fn at(begin: Instant, seconds: u64) -> Instant {
        begin + Duration::from_secs(seconds)
    }

    fn capturing(begin: Instant) -> Health {
        let mut health = Health::new(begin);
        health.enter(Phase::Capturing);
        health.look(&[1, 1], begin);
        health.books(&[entry(Some(0), None, Some(0))]);
        health
    }

    /// Its status, whether it is ready, and the names and subjects of the reasons.
    fn told(health: &Health, now: Instant) -> (Status, bool, Vec<(&'static str, String)>) {
        let Report { status, ready, reasons, .. } = health.report(now);
        (status, ready, reasons.into_iter().map(|of| (of.name, of.subject)).collect())
    }

    #[test]
    fn it_is_ready_while_it_captures() {
        let begin = Instant::now();
        let mut health = Health::new(begin);
        assert_eq!(told(&health, begin), (Status::Healthy, false, vec![]));
        health.enter(Phase::Capturing);
        assert_eq!(told(&health, begin), (Status::Healthy, true, vec![]));
        health.enter(Phase::Ending);
        assert_eq!(told(&health, begin), (Status::Healthy, false, vec![]));
    }

    #[test]
    fn a_thread_that_hangs_is_named() {
        let begin = Instant::now();
        let mut health = capturing(begin);
        for second in 1..=6 {
            health.look(&[second, 2], at(begin, second));
        }
        let hung = vec![("thread_hangs", "ring 1".to_owned())];
        assert_eq!(told(&health, at(begin, 6)), (Status::Healthy, true, vec![]));
        health.look(&[7, 2], at(begin, 7));
        assert_eq!(told(&health, at(begin, 7)), (Status::Unhealthy, false, hung));
        health.look(&[8, 3], at(begin, 8));
        assert_eq!(told(&health, at(begin, 8)), (Status::Healthy, true, vec![]));
        let (status, _, reasons) = told(&health, at(begin, 20));
        assert_eq!((status, reasons.len()), (Status::Unhealthy, 3), "{reasons:?}");
    }

    #[test]
    fn an_interface_that_is_gone_is_named() {
        let begin = Instant::now();
        let mut health = capturing(begin);
        let with = |link| BooksLine { link: Some(link), ..entry(Some(0), None, Some(0)) };
        for (link, name, ready) in
            [(LinkState::Down, "interface_down", true), (LinkState::Gone, "interface_gone", false)]
        {
            health.books(&[with(link)]);
            let expected = (Status::Unhealthy, ready, vec![(name, "eth0".to_owned())]);
            assert_eq!(told(&health, begin), expected);
        }
    }

    #[test]
    fn a_loss_degrades_until_the_next_books() {
        let begin = Instant::now();
        let mut health = capturing(begin);
        health.books(&[entry(Some(2), None, Some(8))]);
        let report = health.report(begin);
        assert_eq!((report.status, report.ready), (Status::Degraded, true));
        let said = "10 packets were lost since the books before, 10 in all: bad";
        assert_eq!(report.reasons[0].said, said);
        health.books(&[entry(Some(2), None, Some(8))]);
        assert_eq!(told(&health, begin), (Status::Healthy, true, vec![]));
    }

    #[test]
    fn rows_that_are_refused_are_told_until_none_are() {
        let begin = Instant::now();
        let mut health = capturing(begin);
        let mut rows = WriterStatistics::default();
        rows.refused_failed.add_rows(0, 7);
        rows.refused_full.add_rows(1, 2);
        rows.refused.add_rows(0, 9);
        health.rows(&rows);
        let report = health.report(begin);
        assert_eq!(report.status, Status::Unhealthy);
        let said = "9 rows of logs were refused since the books before, 9 in all; most of them could not be written";
        assert_eq!(report.reasons[0].said, said);
        health.rows(&rows);
        assert_eq!(told(&health, begin), (Status::Healthy, true, vec![]));
    }

    #[test]
    fn rows_that_a_receiver_will_never_get_are_told_until_the_next_books() {
        let begin = Instant::now();
        let mut health = capturing(begin);
        let books = |refused_full, lost| Books {
            target: "http://a/".to_owned(),
            made: 100,
            refused_full,
            lost,
            ..Books::default()
        };
        health.deliveries(&[books(0, 0)]);
        assert_eq!(told(&health, begin).0, Status::Healthy);
        health.deliveries(&[books(3, 1)]);
        let reason = ("rows_undelivered", "http://a/".to_owned());
        assert_eq!(told(&health, begin), (Status::Unhealthy, true, vec![reason]));
        health.deliveries(&[books(3, 1)]);
        assert_eq!(told(&health, begin).0, Status::Healthy);
    }
}
