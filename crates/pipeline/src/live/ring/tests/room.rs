//! A ring while there is no room behind it.

use super::*;

/// Has no room so many times.
fn full(notes: &Notes, mut times: u32, patience: Backpressure) -> Hindered {
    let room = move || {
        times = times.checked_sub(1)?;
        Some(patience)
    };
    Hindered { notes: notes.clone(), before_group: Box::new(|| {}), room: Box::new(room) }
}

/// Plays two packets to one who has no room so many times. Returns how often the ring was asked for its fill,
/// and how long it took.
fn run_full(times: u32, patience: Backpressure, fills: &[u32], stops: bool) -> (u32, Duration) {
    let steps = [Step::Packets(&[1], None, 1), Step::Packets(&[2], None, 1)];
    let player = Player { fills: fills.iter().copied().collect(), ..Player::new(control(), steps) };
    if stops {
        let _ = player.control.shut();
    }
    let (seen, notes) = (player.seen.clone(), Notes::default());
    let consumer = full(&notes, times, patience);
    let work = work_of(player, consumer);
    let begin = Instant::now();
    assert_eq!(work.run().failure, None);
    let mut told = notes.notes();
    told.retain(|told| !matches!(told, Told::Occupied(_)));
    assert_eq!(told.first() == Some(&Told::Stopping), stops);
    told.retain(|told| *told != Told::Stopping);
    assert_eq!(told, [Told::Packet(1), Told::Packet(2), Told::Finish]);
    (seen.asked.load(Ordering::Relaxed), begin.elapsed())
}

const LONG: Backpressure = Backpressure { time: Duration::from_secs(60), percent: 40 };

#[test]
fn packets_stay_in_the_ring_while_there_is_no_room_behind_it() {
    let (asked, took) = run_full(5, LONG, &[1, 10, 20, 30, 39], false);
    assert_eq!(asked, 5);
    assert!(took >= 5 * NO_ROOM_PAUSE, "{took:?}");
}

#[test]
fn a_ring_that_fills_up_waits_no_longer() {
    // Twice for the first packet, once for the second and once before the end.
    assert_eq!(run_full(u32::MAX, LONG, &[39, 40], false).0, 4);
}

/// As there is nothing to keep, the interface is looked at.
#[test]
fn an_empty_ring_does_not_wait() {
    assert_eq!(run_full(u32::MAX, LONG, &[0], false).0, 3);
}

#[test]
fn patience_has_an_end() {
    let patience = Backpressure { time: Duration::from_millis(20), ..LONG };
    let (asked, took) = run_full(u32::MAX, patience, &[1], false);
    assert!(asked >= 1 && took >= patience.time, "{asked} times, {took:?}");
    let (_, took) = run_full(u32::MAX, LONG, &[1], true);
    assert!((NO_ROOM_AT_STOP..LONG.time / 2).contains(&took), "{took:?}");
}

/// Each time without room has its own patience.
#[test]
fn patience_begins_anew_once_there_was_room() {
    let mut since = None;
    let mut player = Player { fills: VecDeque::from([1]), ..Player::new(control(), []) };
    let patience = Backpressure { time: Duration::from_millis(5), ..LONG };
    let mut waits_for = |times| {
        let mut consumer = full(&Notes::default(), times, patience);
        waits(&mut player, &mut consumer, &mut since, false).unwrap()
    };
    let room = Waits::ForRoom { is_empty: false };
    assert_eq!(waits_for(1), room);
    std::thread::sleep(patience.time);
    assert_eq!(waits_for(1), Waits::ForPackets, "its time is over");
    assert_eq!(waits_for(0), Waits::ForPackets, "it has room");
    assert_eq!(waits_for(1), room);
}

/// One unit is being filled, and no look comes in time where that is the last one.
#[test]
fn a_ring_of_few_units_keeps_a_free_one() {
    let room = |is_empty| Waits::ForRoom { is_empty };
    for (used, capacity, expected) in [
        (1, 1, Waits::ForPackets),
        (1, 2, Waits::ForPackets),
        (0, 2, room(true)),
        (1, 3, room(false)),
        (3, 4, Waits::ForPackets),
    ] {
        let fills = VecDeque::from([used]);
        let mut player = Player { fills, capacity, ..Player::new(control(), []) };
        let patience = Backpressure { percent: 80, ..LONG };
        let mut consumer = full(&Notes::default(), 1, patience);
        let found = waits(&mut player, &mut consumer, &mut None, false).unwrap();
        assert_eq!(found, expected, "{used} of {capacity}");
    }
}

/// What comes to an empty ring is to stay there, so nobody waits for it, who would be lent it at once.
#[test]
fn packets_that_come_while_there_is_no_room_stay_in_the_ring() {
    let nothing = || Step::Nothing(Timestamp::EPOCH);
    let steps = [nothing(), nothing(), Step::Packets(&[1], None, 1)];
    let fills = VecDeque::from([0]);
    let player = Player { fills, ..Player::new(control(), steps) };
    let (seen, notes) = (player.seen.clone(), Notes::default());
    let consumer = full(&notes, 2, LONG);
    assert_eq!(work_of(player, consumer).run().failure, None);
    let patiences = seen.patiences.lock().unwrap().clone();
    assert_eq!(patiences, [Duration::ZERO, Duration::ZERO, PATIENCE, PATIENCE]);
    assert!(!notes.notes().iter().any(|told| matches!(told, Told::Idle(_))), "{:?}", notes.notes());
}
