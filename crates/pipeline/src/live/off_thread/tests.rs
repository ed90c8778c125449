//! Tests of the hand-off to another thread.

use std::sync::mpsc::{Sender, TryRecvError};

use netsniff_analysis::Depth;

use super::super::books::HeldBehindHoles;
use super::super::testing::{Hindered, Notes, Told, at, packets};
use super::*;

/// Each group is noted once it may.
fn start() -> (OffThread<Hindered>, Notes, Sender<()>) {
    let (go, may) = channel();
    let notes = Notes::default();
    let before_group = Box::new(move || {
        let _ = may.recv();
    });
    let slow = Hindered { notes: notes.clone(), before_group, room: Box::new(|| None) };
    (OffThread::start(slow, None).unwrap(), notes, go)
}

fn give<C: Consumer + 'static>(apart: &mut OffThread<C>, micros: &[i64], loss: Option<Loss>) {
    let (data, packets) = packets(micros);
    apart.group(PacketSlice { data: &data, packets: &packets, loss: loss.as_ref() });
}

const fn loss(before: Option<Timestamp>, after: i64, packets: u64) -> Loss {
    Loss { before, after: at(after), packets, stage: Stage::System }
}

/// What was told but for the stop, which may come between any two packets.
fn of_traffic(notes: &Notes) -> Vec<Told> {
    notes.notes().into_iter().filter(|told| *told != Told::Stopping).collect()
}

fn report<C: Consumer + 'static>(apart: &OffThread<C>) -> RingReport {
    let mut report = RingReport { waiting: 100, ..RingReport::default() };
    apart.fill(&mut report);
    report
}

#[test]
fn everything_comes_in_order_with_what_was_told() {
    let (mut apart, notes, go) = start();
    give(&mut apart, &[1, 2], None);
    apart.occupied(Occupancy { used: 5, ..Occupancy::EMPTY }, at(2));
    give(&mut apart, &[9], Some(loss(Some(at(2)), 9, 4)));
    apart.idle(at(30));
    assert_eq!((report(&apart).waiting, report(&apart).analysed), (103, Some(0)));
    (0..2).for_each(|_| go.send(()).unwrap());
    apart.finish();
    let expected = [
        Told::Packet(1),
        Told::Packet(2),
        Told::Occupied(5),
        Told::Loss(loss(Some(at(2)), 9, 4)),
        Told::Packet(9),
        Told::Idle(at(30)),
        Told::Finish,
    ];
    assert_eq!(of_traffic(&notes), expected);
    let RingReport { waiting, analysed, refused, shed, shed_nanos, late, .. } = report(&apart);
    assert_eq!((waiting, analysed, refused), (100, Some(3), 0));
    assert_eq!((shed, shed_nanos, late), (11, 12, 13));
    assert_eq!(report(&apart).cut_headers.packets(), 2);
    let held = |most| Some(HeldBehindHoles { bytes: 17, most: Some(most) });
    assert_eq!((report(&apart).held, report(&apart).holes_given_up), (held(1_000 - 2), 19));
    apart.reported();
    assert_eq!(report(&apart).held, held(17), "the next peak begins with what waits");
    let RingReport { refused_rows, flows, now, .. } = report(&apart);
    assert_eq!((refused_rows, flows, now), (14, Some(15), Some(at(16))));
    let by_depth = report(&apart).by_depth.unwrap();
    assert_eq!(by_depth.of(Depth::Protocols), 20 + Depth::Protocols as u64);
    assert!(apart.into_consumer().is_some());
}

/// The queue is full: what is refused is counted, and is one loss before what follows, with all that the ring
/// itself had lost there.
#[test]
fn what_finds_no_room_is_a_loss_at_its_place() {
    let (mut apart, notes, go) = start();
    // One is being worked on, and as many wait as may; the thread takes the first when it likes.
    let mut given = 0;
    while report(&apart).refused == 0 {
        given += 1;
        give(&mut apart, &[given], None);
        assert!(given < 2 * QUEUE as i64);
        std::thread::sleep(Duration::from_millis(2));
    }
    let held = given - 1;
    assert!((QUEUE as i64..=QUEUE as i64 + 1).contains(&held), "{held}");
    give(&mut apart, &[201, 202, 203], Some(loss(None, 201, 50)));
    assert_eq!(report(&apart).refused, 4);
    assert_eq!(report(&apart).waiting, 100 + held as u64);
    for _ in 0..held {
        go.send(()).unwrap();
    }
    while notes.notes().len() < held as usize {
        std::thread::sleep(Duration::from_millis(2));
    }
    give(&mut apart, &[230, 231], Some(loss(None, 220, 6)));
    give(&mut apart, &[240], None);
    (0..2).for_each(|_| go.send(()).unwrap());
    apart.finish();
    let told = of_traffic(&notes);
    let hole = loss(Some(at(held)), 220, 4 + 50 + 6);
    let expected =
        [Told::Loss(hole), Told::Packet(230), Told::Packet(231), Told::Packet(240), Told::Finish];
    assert_eq!(told[held as usize..], expected, "one loss, and told once");
    assert_eq!((report(&apart).refused, report(&apart).analysed), (4, Some(held as u64 + 3)));
}

/// Packets stay in the ring before the queue is full, and once the ring is at its end the queue itself waits.
#[test]
fn who_hands_over_waits_for_the_queue() {
    let (mut apart, notes, go) = start();
    let mut given = 0;
    while apart.wait_for_room().is_none() {
        given += 1;
        give(&mut apart, &[given], None);
        assert!(given < QUEUE as i64, "it is full");
    }
    assert!(given >= NEARLY_FULL as i64, "{given}");
    assert_eq!(apart.wait_for_room(), Some(NO_ROOM));
    for _ in given..2 * QUEUE as i64 {
        go.send(()).unwrap();
    }
    while apart.wait_for_room().is_some() {
        std::thread::sleep(Duration::from_millis(2));
    }
    let let_go = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(50));
        drop(go);
    });
    apart.stopping();
    let last = given + 3 * QUEUE as i64;
    (given + 1..=last).for_each(|micros| give(&mut apart, &[micros % 256], None));
    apart.finish();
    let_go.join().unwrap();
    let told = notes.notes();
    assert_eq!((report(&apart).refused, report(&apart).analysed), (0, Some(last as u64)));
    assert_eq!(told.iter().filter(|told| **told == Told::Stopping).count(), 1);
}

/// A consumer that waits for a disk makes the queue wait, which makes the ring wait.
#[test]
fn the_queue_waits_for_a_consumer_without_room() {
    let (go, may) = channel();
    let notes = Notes::default();
    let patience = Backpressure { time: Duration::from_secs(60), percent: 40 };
    let room = Box::new(move || may.try_recv().err().map(|_: TryRecvError| patience));
    let full = Hindered { notes: notes.clone(), before_group: Box::new(|| {}), room };
    let mut apart = OffThread::start(full, None).unwrap();
    (1..=3).for_each(|micros| give(&mut apart, &[micros], None));
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(notes.notes(), []);
    // More than the consumer wants to make wait.
    (4..=40).for_each(|micros| give(&mut apart, &[micros], None));
    let wait = |count: usize| {
        while notes.notes().len() < count {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_millis(20));
        notes.notes().len()
    };
    assert_eq!(wait(14), 14, "40 % of the queue wait, and the next with the thread");
    (0..4).for_each(|_| go.send(()).unwrap());
    assert_eq!(wait(18), 18);
    apart.stopping();
    apart.finish();
    assert_eq!(notes.notes().len(), 40 + 2, "with the stop and the end");
    assert_eq!(report(&apart).refused, 0);
}

/// What is refused last is told, too, though no packet follows.
#[test]
fn a_hole_at_the_end_is_told() {
    let (mut apart, notes, go) = start();
    let mut given = 0;
    while report(&apart).refused < 2 {
        given += 1;
        give(&mut apart, &[given], None);
        std::thread::sleep(Duration::from_millis(2));
    }
    drop(go);
    apart.finish();
    let told = notes.notes();
    let hole = loss(Some(at(given - 2)), given - 1, 2);
    assert_eq!(told[told.len() - 2..], [Told::Loss(hole), Told::Finish]);
}
