//! Verdicts about lost frames, held against scripted dialogues whose losses are known: before the tap, in the capture,
//! behind the tap, and several at once.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use crate::zeek::corpus::{Scratch, analyze};
use crate::zeek::log;
use netsniff_testing::log::Row;
use netsniff_testing::quality::Place;
use netsniff_testing::quality::play::{Fate, play};
use netsniff_testing::quality::recording::Recording;
use netsniff_testing::quality::score::Score;
use netsniff_testing::quality::trace::trace;
use netsniff_traffic::impair::Impairment;

/// A recording with the rows of its logs.
struct Judged {
    recording: Recording,
    conn: Vec<Row>,
    gaps: Vec<Row>,
}

impl Judged {
    fn new(count: u16, fate: &Fate, seed: u64) -> Self {
        let scratch = Scratch::new("quality");
        fs::create_dir_all(scratch.path()).unwrap();
        let capture = scratch.path().join("capture.pcap");
        let recording = play(count, fate, seed, &capture);
        analyze(&capture, scratch.path(), &[]);
        let rows = |name: &str| log::read(Path::new(&scratch.path().join(name))).unwrap();
        Self { recording, conn: rows("conn.log"), gaps: rows("gaps.log") }
    }

    fn score(&self) -> Score {
        Score::new(&self.recording, self.conn.clone(), self.gaps.clone())
    }
}

/// Losses of a rate at some places.
fn fate(rate: f64, places: &[Place]) -> Fate {
    let at = |place| if places.contains(&place) { rate } else { 0.0 };
    let capture = Impairment { loss: at(Place::Capture), ..Impairment::default() };
    Fate { before: at(Place::Before), behind: at(Place::Behind), capture, ..Fate::default() }
}

/// One place, two, and all three.
const CAUSES: [&[Place]; 7] = [
    &[Place::Before],
    &[Place::Capture],
    &[Place::Behind],
    &[Place::Before, Place::Capture],
    &[Place::Capture, Place::Behind],
    &[Place::Before, Place::Behind],
    &[Place::Before, Place::Capture, Place::Behind],
];

/// Where the seeds of the dialogues begin: no verdict must be right by luck.
const SEEDS: [u64; 4] = [0, 1_000, 4_000, 7_000];

/// The figures of all seeds together, whose recordings are made at once.
fn over_seeds(of_one: impl Fn(u64) -> Score + Sync) -> Score {
    let of_one = &of_one;
    let scores: Vec<_> = thread::scope(|scope| {
        let running = SEEDS.map(|seed| scope.spawn(move || of_one(seed)));
        running.into_iter().map(|one| one.join().unwrap()).collect()
    });
    let mut total = Score::default();
    scores.iter().for_each(|score| total.add(score));
    total
}

fn show(score: &Score) {
    for (name, value) in score.figures() {
        println!("{name}: {value}");
    }
    for wrong in score.wrong.iter().take(5) {
        println!("{}", wrong.text());
    }
}

#[test]
fn losses_are_found_and_told_apart() {
    let rates = [(0.001, 100), (0.01, 130), (0.05, 80)];
    let total = over_seeds(|seed| {
        let mut total = Score::default();
        for (number, (rate, count)) in (0..).zip(rates) {
            for (at, places) in (0..).zip(CAUSES) {
                let judged = Judged::new(count, &fate(rate, places), seed + number * 10 + at);
                total.add(&judged.score());
            }
        }
        println!("seeds from {seed} on: {:?}", total.shortfalls());
        total
    });
    show(&total);
    let seeds = SEEDS.len() as u64;
    // The shares mean something only where there was something to find.
    assert!(total.flows > 2000 * seeds && total.recall.of > 200 * seeds);
    assert!(total.causes.of > 450 * seeds && total.several_causes.of > 100 * seeds);
    assert!(total.no_cause_invented.of > 1000 * seeds && total.begin_missed.of > 0);
    assert_eq!(total.shortfalls(), [""; 0]);
    are_least(&total);
}

/// More than the promise: what the packets tell is told, but for one of a thousand, and nothing else is.
fn are_least(total: &Score) {
    assert_eq!(total.precision.right, total.precision.of);
    assert_eq!(total.begin_missed.right, total.begin_missed.of, "unknown is not clean");
    let least = [
        (total.recall, 0.999),
        (total.causes, 0.999),
        (total.several_causes, 0.998),
        (total.no_cause_invented, 0.9995),
    ];
    for (share, least) in least {
        assert!(share.right as f64 >= share.of as f64 * least, "{share:?} is less than {least}");
    }
}

#[test]
fn what_was_not_lost_is_clean() {
    let score = Judged::new(200, &Fate::default(), 1).score();
    assert_eq!((score.flows, score.precision.of, score.without_row), (200, 0, 0));
    assert_eq!((score.no_cause_invented.right, score.no_cause_invented.of), (200, 200));
}

/// What a path does beside losses: late frames before and behind the tap, and doubles.
const DISORDERS: [((f64, f64), f64); 4] =
    [((0.05, 0.0), 0.0), ((0.0, 0.05), 0.0), ((0.0, 0.0), 0.05), ((0.03, 0.03), 0.02)];

#[test]
fn a_path_that_reorders_or_doubles_loses_nothing() {
    let mut false_losses = 0;
    let seeds = SEEDS.into_iter().flat_map(|base| (base + 40..).zip(DISORDERS));
    for (seed, (reordering, duplication)) in seeds {
        for jitter in [Duration::from_micros(300), Duration::from_millis(3)] {
            let fate = Fate { reordering, duplication, jitter, ..Fate::default() };
            let judged = Judged::new(150, &fate, seed);
            let score = judged.score();
            let lost = judged.gaps.iter().filter(|row| row["cause"] != "unknown");
            let told: Vec<_> = lost.collect();
            println!("{reordering:?} {duplication} {jitter:?}: {} false losses", told.len());
            for row in &told {
                println!("{row:?}");
            }
            false_losses += told.len() + score.precision.of as usize;
        }
    }
    assert_eq!(false_losses, 0);
}

#[test]
fn losses_are_found_and_told_apart_on_a_path_that_reorders_and_doubles() {
    let total = over_seeds(|base| {
        let mut total = Score::default();
        for (seed, places) in (base + 60..).zip(CAUSES) {
            for (reordering, duplication) in DISORDERS {
                let jitter = Duration::from_millis(1);
                let fate = Fate { reordering, duplication, jitter, ..fate(0.01, places) };
                let judged = Judged::new(120, &fate, seed);
                let score = judged.score();
                println!(
                    "{seed} {places:?} {reordering:?} {duplication}: {:?}",
                    score.shortfalls()
                );
                for wrong in &score.wrong {
                    println!("{}{}", wrong.text(), trace(&judged.recording.0[&wrong.flow]));
                }
                total.add(&score);
            }
        }
        total
    });
    show(&total);
    let seeds = SEEDS.len() as u64;
    assert!(total.flows > 1000 * seeds && total.recall.of > 100 * seeds);
    assert!(total.causes.of > 200 * seeds);
    // Nothing is found that was not lost. What no packet tells from something else is counted apart, and is rare.
    are_least(&total);
    assert!(total.like_reordering.of * 20 < total.told[&Place::Before].of);
    assert!(total.like_late.of * 100 < total.recall.of);
    assert!(total.like_behind.right * 100 < total.told[&Place::Behind].of);
}

#[test]
fn a_capture_that_reorders_or_doubles_marks_nothing() {
    let reorders = Impairment {
        reordering: 0.05,
        max_delay: Duration::from_micros(100),
        ..Impairment::default()
    };
    // The second copy comes before the next frame, as a mirror makes it.
    let doubles = Impairment {
        duplication: 0.05,
        max_delay: Duration::from_micros(5),
        ..Impairment::default()
    };
    for capture in [reorders, doubles] {
        let score = Judged::new(200, &Fate { capture, ..Fate::default() }, 2).score();
        show(&score);
        assert_eq!(score.flows, 200);
        assert_eq!(score.precision.of, 0, "marked, though every frame was captured");
        assert_eq!(score.no_cause_invented.right, 200);
    }
}

/// The judge itself: wrong rows are seen to be wrong.
#[test]
fn wrong_verdicts_do_not_pass() {
    let mut judged = Judged::new(150, &fate(0.02, CAUSES[6]), 3);
    let right = judged.score();
    assert_eq!(right.without_row, 0);

    let conn = judged.conn.clone();
    let set = |row: &mut Row, quality: &str| *row.get_mut("quality").unwrap() = quality.to_owned();
    judged.conn.iter_mut().for_each(|row| set(row, "clean"));
    let blind = judged.score();
    assert_eq!((blind.recall.right, blind.recall.of), (0, right.recall.of));
    judged.conn.iter_mut().for_each(|row| set(row, "suspect"));
    let anxious = judged.score();
    assert_eq!(anxious.recall.right, anxious.recall.of);
    assert!(anxious.precision.right < anxious.precision.of);
    judged.conn.clone_from(&conn);
    judged.conn.pop();
    assert_eq!(judged.score().without_row, 1);
    judged.conn.clone_from(&conn);

    let gaps = std::mem::take(&mut judged.gaps);
    let silent = judged.score();
    assert_eq!((silent.causes.right, silent.causes.of), (0, right.causes.of));
    let swapped = [
        (Place::Before, Place::Behind),
        (Place::Behind, Place::Capture),
        (Place::Capture, Place::Before),
    ];
    judged.gaps = gaps;
    for row in &mut judged.gaps {
        let cause = row.get_mut("cause").unwrap();
        let other = swapped.iter().find(|(from, _)| from.name() == *cause);
        if let Some((_, to)) = other {
            to.name().clone_into(cause);
        }
    }
    let confused = judged.score();
    assert!(confused.causes.right < right.causes.right);
    assert!(Place::ALL.iter().all(|place| right.told[place].of > 20), "{:?}", right.told);
    for score in [blind, anxious, silent, confused] {
        assert!(!score.shortfalls().is_empty());
    }
}
