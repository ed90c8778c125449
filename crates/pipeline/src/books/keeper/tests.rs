//! Tests of what the books are made of.

use std::net::UdpSocket;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use netsniff_analysis::Depth;
use netsniff_capture::Interface;
use netsniff_capture::backend::Gate;
use netsniff_capture::counters::RingCounters;

use super::super::testing::{facts, report};
use super::*;
use crate::live::books::tests::{Counts, counted};
use crate::live::{Earlier, LinkState};

/// The report of a ring whose filter does not count.
fn untold(mut report: RingReport) -> RingReport {
    report.counters.filtered = None;
    report
}

/// The books of the loopback interface of this machine, which is watched twice.
fn keeper(places: &[usize]) -> BooksKeeper {
    let lo = Interface::find("lo").unwrap();
    let place = |&interface| RingPlace { interface, facts: facts(), is_shared: false };
    let places = places.iter().map(place).collect();
    let begin = Timestamp::from_nanos(5);
    BooksKeeper::begin(&[lo.clone(), lo], places, 1, None, begin).unwrap()
}

/// Whoever counts what passes the loopback interface is to be alone there.
fn alone() -> MutexGuard<'static, ()> {
    static LOOPBACK: Mutex<()> = Mutex::new(());
    LOOPBACK.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sends datagrams to itself.
fn send(number: u64) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let to = socket.local_addr().unwrap();
    (0..number).for_each(|_| assert_eq!(socket.send_to(b"x", to).unwrap(), 1));
}

#[test]
fn rings_belong_to_their_interfaces_and_their_sums_to_nobody_else() {
    let mut keeper = keeper(&[0, 1, 0]);
    let reports = [report(100), untold(report(1000)), report(10_000)];
    let entries = keeper.entries(&reports);
    let places: Vec<_> = entries.iter().map(|entry| entry.place.clone()).collect();
    let (lo, ring) =
        (|| BooksScope::Interface("lo".to_owned()), |n| BooksScope::Ring("lo".to_owned(), n));
    assert_eq!(places, [lo(), ring(0), ring(1), lo(), ring(0)]);
    let delivered: Vec<_> = entries.iter().map(|entry| entry.delivered().unwrap()).collect();
    let of = reports.each_ref().map(|report| report.counters.delivered);
    assert_eq!(delivered, [of[0] + of[2], of[0], of[2], of[1], of[1]]);
    let filtered: Vec<_> = entries.iter().map(|entry| entry.filtered).collect();
    let link = |entry: &BooksLine| entry.link == Some(LinkState::Down);
    assert!(entries.iter().all(link), "as the rings tell");
    let of = reports.map(|report| report.counters.filtered);
    let both = of[0].zip(of[2]).map(|(one, other)| one + other);
    assert_eq!(filtered, [both, of[0], of[2], None, None]);
}

/// One ring with a filter of the kernel is enough for nobody to know.
#[test]
fn what_one_ring_does_not_tell_the_interface_does_not_tell() {
    let mut keeper = keeper(&[0, 0]);
    let entries = keeper.entries(&[report(100), untold(report(200))]);
    assert_eq!((entries[0].filtered, entries[0].unexplained()), (None, None));
    assert_eq!((entries[1].filtered, entries[2].filtered), (report(100).counters.filtered, None));
}

#[test]
fn what_arrives_around_the_reading_is_the_bound() {
    let _alone = alone();
    let mut keeper = keeper(&[0]);
    keeper.start(|| Ok(())).unwrap();
    keeper.look_for(LEAD);
    let (moment, ()) = Moment::of(|| send(50));
    keeper.look_for(2 * LAG);
    let entries = keeper.entries(&[RingReport { read: Some(moment), ..report(100) }]);
    let of_lo = &entries[0];
    assert!(of_lo.bound.unwrap() >= 50, "{:?}", of_lo.bound);
    assert!(of_lo.arrived.unwrap() >= 50);
    // Each datagram arrives once, though it is sent and received. Others may send, too.
    assert!(of_lo.bound.unwrap() < 50_000, "{:?}", of_lo.bound);
}

/// Packets that the ring counts nowhere are more than the bound.
#[test]
fn a_counter_that_is_swallowed_shows() {
    let _alone = alone();
    let mut keeper = keeper(&[0]);
    keeper.host = HostReader::open().ok();
    keeper.start(|| Ok(())).unwrap();
    send(500);
    keeper.look_for(LEAD);
    let (moment, ()) = Moment::of(|| ());
    keeper.look_for(2 * LAG);
    let counters = RingCounters {
        accepted: Some(0),
        dropped: Some(0),
        filtered: Some(0),
        ..RingCounters::default()
    };
    let entries = keeper.entries(&[RingReport { read: Some(moment), counters, ..report(0) }]);
    let (off, bound) = (entries[0].unexplained().unwrap(), entries[0].bound.unwrap());
    assert!(off >= 500 && off.unsigned_abs() > bound, "{off} and {bound}");
}

/// What came since a ring told something last is no matter of the bound: the kernel tells at once how much of it got in.
#[test]
fn a_stalled_ring_leaves_the_bound_alone() {
    let _alone = alone();
    const SENT: u64 = 20_000;
    let mut keeper = keeper(&[0]);
    keeper.host = HostReader::open().ok();
    let control = Control::new(1);
    let got_in = counted(SENT, 0, Some(0));
    let ring = Arc::new(Counts(got_in));
    control.put_gate(0, Gate::new(&ring), Earlier::NONE);
    let (moment, ()) = keeper.start(|| Ok(Moment::of(|| ()))).unwrap();
    let mut told = RingReport { read: Some(moment), ..report(0) };
    told.counters.set_counted(counted(0, 0, Some(0)));
    told.counters.delivered = 0;
    control.report(0, 0, told);
    send(SENT);
    let due = netsniff_capture::monotonic();
    let entries = keeper.read(&control, control.ask(due), due);
    for entry in &entries[..2] {
        assert_eq!((entry.delivered(), entry.in_ring()), (Some(0), Some(SENT)), "{entry:?}");
    }
    // Others may send, too.
    let (arrived, bound) = (entries[0].arrived.unwrap(), entries[0].bound.unwrap());
    assert!(arrived >= SENT && bound < SENT, "{arrived} and {bound}");
}

/// Only so many readings are kept, and those around the moment are to be among them.
#[test]
fn readings_around_a_moment_are_few() {
    let mut keeper = keeper(&[0]);
    keeper.host = HostReader::open().ok();
    let time = LEAD + TRIES as u32 * LAG;
    keeper.look_for(time);
    let most = time.as_nanos() / GRAIN.as_nanos() + 2;
    assert!((keeper.interfaces[0].readings() as u128) < most);
}

#[test]
fn what_was_shut_counts_nothing_more() {
    let mut keeper = keeper(&[0]);
    let moment = |begin, end| Some(Moment { begin, end });
    let read = |begin, end| RingReport { read: moment(begin, end), ..report(100) };
    assert_eq!(keeper.moment(&read(5, 6)), moment(5, 6));
    keeper.shut = moment(10, 11);
    assert_eq!(keeper.moment(&read(20, 21)), moment(10, 11));
    assert_eq!(keeper.moment(&read(5, 6)), moment(5, 6), "it had failed before");
}

#[test]
fn every_counter_of_several_rings_is_in_the_sum_once() {
    let (one, other) = (report(100), report(1000));
    let sum = sum([&one, &other].into_iter()).unwrap();
    let both = |of: fn(&RingReport) -> u64| (of(&sum), of(&one) + of(&other));
    for (name, (found, expected)) in [
        ("delivered", both(|of| of.counters.delivered)),
        ("delivered_bytes", both(|of| of.counters.delivered_bytes)),
        ("accepted", both(|of| of.counters.accepted.unwrap())),
        ("dropped", both(|of| of.counters.dropped.unwrap())),
        ("filtered by the kernel", both(|of| of.counters.filtered.unwrap())),
        ("cut", both(|of| of.counters.cut)),
        ("super_frames", both(|of| of.counters.super_frames)),
        ("analysed", both(|of| of.analysed.unwrap())),
        ("at_protocols", both(|of| of.by_depth.unwrap().of(Depth::Protocols))),
        ("at_packets", both(|of| of.by_depth.unwrap().of(Depth::Packets))),
        ("shed", both(|of| of.shed)),
        ("shed_nanos", both(|of| of.shed_nanos)),
        ("filtered", both(|of| of.filtered)),
        ("beyond_end", both(|of| of.beyond_end)),
        ("refused", both(|of| of.refused)),
        ("waiting", both(|of| of.waiting)),
        ("late", both(|of| of.late)),
        ("cut_headers", both(|of| of.cut_headers.packets())),
        ("held", both(|of| of.held.unwrap().bytes)),
        ("holes_given_up", both(|of| of.holes_given_up)),
        ("refused_rows", both(|of| of.refused_rows)),
        ("flows", both(|of| of.flows.unwrap())),
        ("flow_split", both(|of| of.flow_split.unwrap())),
    ] {
        assert_eq!(found, expected, "{name}");
    }
    assert_eq!(
        (sum.downs, sum.now),
        (one.downs, other.now),
        "rings of one link, and the latest time"
    );
    assert_eq!(sum.held.unwrap().most, None, "their peaks need not be at one time");
    let silent = RingReport { held: None, ..report(5) };
    assert_eq!(super::sum([&one, &silent].into_iter()).unwrap().held, None);
    let untold = RingReport { analysed: None, flows: None, by_depth: None, ..report(5) };
    let sum = super::sum([&one, &untold].into_iter()).unwrap();
    assert_eq!((sum.analysed, sum.flows, sum.by_depth), (None, None, None));
}

#[test]
fn the_host_counts_since_the_start() {
    let mut keeper = keeper(&[]);
    keeper.host_start = HostCounters { backlog_dropped: 100, time_squeezes: 7 };
    let now = HostCounters { backlog_dropped: 103, time_squeezes: 12 };
    let entry = keeper.host_entry(now);
    assert_eq!((entry.lost_backlog, entry.time_squeezes), (Some(3), Some(5)));
    assert_eq!(entry.place, BooksScope::Host);
}

#[test]
fn rings_are_waited_for_but_not_one_that_is_stalled() {
    let mut keeper = keeper(&[0]);
    let control = Control::new(1);
    let delivered = |entries: Vec<BooksLine>| entries[1].delivered();
    let ask = |keeper: &mut BooksKeeper| {
        let due = netsniff_capture::monotonic();
        keeper.read(&control, control.ask(due), due)
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while control.wanted().0 == 0 {
                std::thread::sleep(Duration::from_millis(1));
            }
            std::thread::sleep(Duration::from_millis(30));
            control.report(0, 1, report(100));
        });
        let answered = ask(&mut keeper);
        assert_eq!(answered[1].held(), report(100).held);
        assert_eq!(delivered(answered), Some(report(100).counters.delivered));
    });
    let begin = netsniff_capture::monotonic();
    let stalled = ask(&mut keeper);
    let took = Duration::from_nanos(netsniff_capture::monotonic() - begin);
    assert_eq!(stalled[1].held(), None, "nobody knows what waits now");
    assert_eq!(delivered(stalled), Some(report(100).counters.delivered), "what it told before");
    assert!((ANSWER..10 * ANSWER).contains(&took), "{took:?}");
}

#[test]
fn intervals_follow_one_another() {
    let mut keeper = keeper(&[]);
    let turns = [10, 25].map(|nanos| keeper.turn(Timestamp::from_nanos(nanos)).nanos());
    assert_eq!(turns, [5, 10]);
}
