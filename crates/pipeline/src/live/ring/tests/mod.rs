//! Tests of the loop of a ring, with a receiver that plays what it is told.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use netsniff_capture::backend::{Gate, Intake, Lent, RingFacts};
use netsniff_capture::counters::{Counted, RingCounters};
use netsniff_capture::interface::LinkCounters;
use netsniff_packet::{Loss, PacketRecord, Stage};
use netsniff_testing::{Need, skip};

use super::super::testing::{Hindered, Notes, Told, at, packets};
use super::*;
use crate::books::testing::facts;

mod room;

/// What a receiver does next.
enum Step {
    /// Packets with these stamps in microseconds, some lost before them, from a ring that is used so far.
    Packets(&'static [i64], Option<Loss>, u32),
    Nothing(Timestamp),
    Down,
    Gone,
    Fail,
    /// Asks for a report.
    Ask,
    /// Notes what was reported.
    Look,
}

/// Plays steps, then ends.
struct Player {
    steps: VecDeque<Step>,
    counters: RingCounters,
    last: Option<Loss>,
    control: &'static Control,
    seen: Seen,
    /// How full the ring is whenever somebody asks, the last value from then on.
    fills: VecDeque<u32>,
    /// How much fits it, in the same unit.
    capacity: u32,
    lent: (Vec<u8>, Vec<PacketRecord>),
    facts: RingFacts,
}

/// What can be seen of a receiver from outside.
#[derive(Clone, Default)]
struct Seen {
    shut: Arc<Shutter>,
    /// How often somebody asked what the interface has counted.
    sights: Arc<AtomicU32>,
    starts: Arc<AtomicU32>,
    stops: Arc<AtomicU32>,
    /// How often somebody asked how full it is.
    asked: Arc<AtomicU32>,
    reports: Arc<Mutex<Vec<RingReport>>>,
    /// How long somebody wanted to wait for packets, each time.
    patiences: Arc<Mutex<Vec<Duration>>>,
}

impl Player {
    fn new(control: &'static Control, steps: impl IntoIterator<Item = Step>) -> Self {
        Self {
            steps: steps.into_iter().collect(),
            counters: RingCounters::default(),
            last: None,
            control,
            seen: Seen::default(),
            fills: VecDeque::from([0]),
            capacity: 100,
            lent: packets(&[]),
            facts: facts(),
        }
    }
}

impl Receiver for Player {
    fn start(&mut self) -> netsniff_capture::Result<()> {
        self.seen.starts.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn receive(&mut self, patience: Duration) -> netsniff_capture::Result<Received<'_>> {
        self.seen.patiences.lock().unwrap().push(patience);
        loop {
            match self.steps.pop_front() {
                Some(Step::Ask) => {
                    self.control.ask(0);
                    return Ok(Received::Packets(Lent {
                        data: &mut [],
                        packets: &[],
                        goes_on: false,
                        loss: None,
                        occupancy: Occupancy::EMPTY,
                    }));
                }
                Some(Step::Look) => {
                    self.seen.reports.lock().unwrap().extend(self.control.last_reports());
                }
                Some(Step::Packets(micros, loss, used)) => {
                    self.lent = packets(micros);
                    self.counters.delivered += micros.len() as u64;
                    let occupancy = Occupancy { used, ..Occupancy::EMPTY };
                    let (data, packets) = &mut self.lent;
                    return Ok(Received::Packets(Lent {
                        data,
                        packets,
                        goes_on: false,
                        loss,
                        occupancy,
                    }));
                }
                Some(Step::Nothing(settled)) => return Ok(Received::Nothing(settled)),
                Some(Step::Down) => return Ok(Received::Down),
                Some(Step::Gone) => return Ok(Received::Gone),
                Some(Step::Fail) => {
                    let reason = io::Error::other("broken");
                    return Err(netsniff_capture::Error::Call {
                        what: "receive".to_owned(),
                        reason,
                    });
                }
                None => return Ok(Received::End),
            }
        }
    }

    fn stop(&mut self) -> netsniff_capture::Result<()> {
        self.seen.stops.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn counters(&mut self) -> netsniff_capture::Result<RingCounters> {
        Ok(self.counters.clone())
    }

    fn occupancy(&mut self) -> netsniff_capture::Result<Occupancy> {
        self.seen.asked.fetch_add(1, Ordering::Relaxed);
        let used =
            if self.fills.len() > 1 { self.fills.pop_front() } else { self.fills.front().copied() };
        Ok(Occupancy { used: used.unwrap_or_default(), high_water: 0, capacity: self.capacity })
    }

    fn last_loss(&mut self) -> Option<Loss> {
        self.last.take()
    }

    fn facts(&self) -> &RingFacts {
        &self.facts
    }

    fn gate(&self) -> Gate {
        Gate::new(&self.seen.shut)
    }

    fn interface_counters(&mut self) -> netsniff_capture::Result<Option<LinkCounters>> {
        self.seen.sights.fetch_add(1, Ordering::Relaxed);
        Ok(Some(LinkCounters::default()))
    }
}

/// A gate that counts how often it was shut.
#[derive(Debug, Default)]
struct Shutter(AtomicU32);

impl Intake for Shutter {
    fn shut(&self) -> netsniff_capture::Result<()> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn counted(&self) -> netsniff_capture::Result<Counted> {
        Ok(Counted::default())
    }
}

/// For one ring, as long as the test runs.
fn control() -> &'static Control {
    Box::leak(Box::new(Control::new(1)))
}

const fn loss(packets: u64) -> Loss {
    Loss { before: None, after: Timestamp::EPOCH, packets, stage: Stage::System }
}

fn work(player: Player, notes: &Notes, reopen: Option<Reopen>) -> RingWork<'static, Notes> {
    RingWork { reopen, ..work_of(player, notes.clone()) }
}

fn work_of<C: Consumer>(player: Player, consumer: C) -> RingWork<'static, C> {
    RingWork {
        number: 0,
        cpu: None,
        control: player.control,
        receiver: Box::new(player),
        consumer,
        wanted: None,
        window: Duration::from_micros(200),
        count: None,
        reopen: None,
    }
}

fn run(player: Player) -> (Vec<Told>, RingOutcome<Notes>) {
    let notes = Notes::default();
    let outcome = work(player, &notes, None).run();
    (notes.notes(), outcome)
}

#[test]
fn losses_stand_between_packets_and_the_last_one_behind_all() {
    let steps = [
        Step::Packets(&[1, 2], None, 1),
        Step::Packets(&[], None, 1),
        Step::Packets(&[1000, 1001], Some(loss(3)), 7),
    ];
    let (told, outcome) = run(Player { last: Some(loss(5)), ..Player::new(control(), steps) });
    let expected = [
        Told::Occupied(1),
        Told::Occupied(7),
        Told::Packet(1),
        Told::Packet(2),
        Told::Loss(loss(3)),
        Told::Packet(1000),
        Told::Packet(1001),
        Told::Loss(loss(5)),
        Told::Finish,
    ];
    assert_eq!((told.as_slice(), outcome.failure), (&expected[..], None));
    assert_eq!((outcome.report.counters.delivered, outcome.report.waiting), (4, 0));
}

#[test]
fn where_nothing_comes_time_goes_on_and_the_ring_is_calm() {
    let player = Player::new(
        control(),
        [
            Step::Packets(&[1, 2], None, 9),
            Step::Ask,
            Step::Packets(&[], None, 9),
            Step::Look,
            Step::Nothing(at(50_000)),
            Step::Ask,
            Step::Packets(&[], None, 9),
            Step::Look,
        ],
    );
    let seen = player.seen.clone();
    let (told, _) = run(player);
    let expected = [
        Told::Occupied(9),
        Told::Packet(1),
        Told::Packet(2),
        Told::Occupied(0),
        Told::Idle(at(50_000)),
        Told::Finish,
    ];
    assert_eq!(told, expected);
    let reports = seen.reports.lock().unwrap();
    let waiting: Vec<_> = reports.iter().map(|report| (report.waiting, report.analysed)).collect();
    assert_eq!(waiting, [(2, Some(0)), (0, Some(2))]);
}

#[test]
fn a_link_goes_down_once_however_often_it_is_looked_at() {
    let steps = [
        Step::Packets(&[1], None, 1),
        Step::Down,
        Step::Down,
        Step::Packets(&[2], None, 1),
        Step::Down,
    ];
    let (told, outcome) = run(Player::new(control(), steps));
    assert_eq!((outcome.report.downs, outcome.report.link), (2, LinkState::Down));
    let idle = told.iter().filter(|told| matches!(told, Told::Idle(_))).count();
    assert_eq!(idle, 3, "flows go on to end: {told:?}");
    let first = told.iter().position(|told| matches!(told, Told::Idle(_)));
    assert!(told.iter().position(|told| *told == Told::Packet(1)) < first, "{told:?}");
}

#[test]
fn a_run_ends_with_its_interface_unless_it_is_to_wait() {
    let player = Player::new(control(), [Step::Packets(&[1], None, 1), Step::Gone]);
    let control = player.control;
    let (told, outcome) = run(player);
    let why = Some("the interface none is gone".to_owned());
    assert_eq!((outcome.failure, outcome.report.link), (why, LinkState::Gone));
    assert!(control.ends(), "the other rings end, too");
    assert_eq!(told.last(), Some(&Told::Finish));
}

#[test]
fn an_interface_that_returns_goes_on_with_the_books() {
    let control = control();
    let counted = |delivered, dropped| RingCounters {
        delivered,
        dropped: Some(dropped),
        ..RingCounters::default()
    };
    let first = Player {
        counters: counted(100, 7),
        last: Some(loss(7)),
        ..Player::new(control, [Step::Packets(&[1, 2], None, 1), Step::Gone, Step::Gone])
    };
    let second = Player {
        counters: counted(0, 2),
        ..Player::new(control, [Step::Packets(&[3], None, 1), Step::Down, Step::Gone])
    };
    let third = Player { counters: counted(0, 1), ..Player::new(control, []) };
    let seen = second.seen.clone();
    // There is none at first.
    let mut next = VecDeque::from([None, Some(second), Some(third)]);
    let reopen = move || next.pop_front()?.map(|player| Box::new(player) as Box<dyn Receiver>);
    let notes = Notes::default();
    let outcome = work(first, &notes, Some(Box::new(reopen))).run();
    assert_eq!(outcome.failure, None);
    assert_eq!(seen.starts.load(Ordering::Relaxed), 1);
    let RingReport { counters, downs, analysed, .. } = outcome.report;
    assert_eq!((counters.delivered, counters.dropped), (100 + 2 + 1, Some(7 + 2 + 1)));
    assert_eq!((downs, analysed, control.ends()), (1, Some(3), false));
    let told: Vec<_> =
        notes.notes().into_iter().filter(|told| !matches!(told, Told::Idle(_))).collect();
    let place = |wanted: &Told| told.iter().position(|told| told == wanted).unwrap();
    assert!(place(&Told::Packet(2)) < place(&Told::Loss(loss(7))), "{told:?}");
    assert!(place(&Told::Loss(loss(7))) < place(&Told::Packet(3)), "{told:?}");
}

#[test]
fn a_ring_that_fails_ends_the_run_and_says_why() {
    let player = Player::new(control(), [Step::Packets(&[1], None, 1), Step::Fail]);
    let control = player.control;
    let (told, outcome) = run(player);
    assert_eq!(outcome.failure.as_deref(), Some("cannot receive: broken"));
    assert!(control.ends());
    assert_eq!(told, [Told::Occupied(1), Told::Packet(1), Told::Finish], "what came is not lost");
}

#[test]
fn what_the_ring_holds_at_the_stop_still_comes() {
    let player =
        Player::new(control(), [Step::Packets(&[1], None, 1), Step::Packets(&[2], None, 1)]);
    let _ = player.control.shut();
    let seen = player.seen.clone();
    let (told, outcome) = run(player);
    assert_eq!(seen.stops.load(Ordering::Relaxed), 1);
    assert_eq!((outcome.report.analysed, told.last()), (Some(2), Some(&Told::Finish)));
}

#[test]
fn a_filter_and_a_count_are_in_the_report() {
    let player = Player::new(control(), [Step::Packets(&[1, 2, 3, 4, 5], None, 1)]);
    let notes = Notes::default();
    let work = RingWork {
        wanted: Some(Box::new(|packet| packet.data[0] != 2)),
        count: Some(3),
        ..work(player, &notes, None)
    };
    let report = work.run().report;
    assert_eq!((report.filtered, report.beyond_end, report.analysed), (1, 1, Some(3)));
}

#[test]
fn a_ring_runs_where_it_is_told() {
    /// Notes where it runs.
    struct Place(Arc<Mutex<Vec<usize>>>);
    impl Consumer for Place {
        fn group(&mut self, _: PacketSlice<'_>) {}
        fn idle(&mut self, _: Timestamp) {}
        fn finish(&mut self) {
            let set = rustix::thread::sched_getaffinity(None).unwrap();
            self.0.lock().unwrap().extend((0..1024).filter(|cpu| set.is_set(*cpu)));
        }
        fn fill(&self, _: &mut RingReport) {}
    }
    let before = rustix::thread::sched_getaffinity(None).unwrap();
    if before.count() < 2 {
        skip(Need::Processors, "with one processor every thread runs there");
        return;
    }
    let last = (0..1024).rfind(|cpu| before.is_set(*cpu)).unwrap();
    let places = Arc::<Mutex<Vec<usize>>>::default();
    let consumer = Place(Arc::clone(&places));
    std::thread::scope(|scope| {
        let work = RingWork { cpu: Some(last), ..work_of(Player::new(control(), []), consumer) };
        scope.spawn(move || drop(work.run()));
    });
    assert_eq!(*places.lock().unwrap(), [last]);
}
