//! The law of bounds: where there is no room to tell losses apart, a number is unset or right, never another one, and no
//! verdict is better than with room for everything.

use std::time::Duration;

use netsniff_analysis::Limits;
use netsniff_testing::print_uncaptured;
use netsniff_traffic::Random;
use netsniff_traffic::dialogue::{Dialogue, Leg, Seen, Setup, Side};

use crate::support::{self, Row, analyse};

/// Numbers that tell who lost what, with their log.
const NUMBERS: [(&str, &str); 6] = [
    ("conn", "capture_missed_bytes"),
    ("conn", "network_missed_bytes"),
    ("tcp", "orig_lost_before"),
    ("tcp", "orig_lost_behind"),
    ("tcp", "resp_lost_before"),
    ("tcp", "resp_lost_behind"),
];

/// A conversation over a bad network, which depends on nothing but the seed.
fn story(seed: u64) -> Vec<Seen> {
    let mut random = Random::new(seed);
    let mut one_of = |shares: [f64; 3]| shares[random.below(3) as usize];
    let setup = Setup {
        delay: (Duration::from_millis(1), Duration::from_millis(20)),
        loss: (one_of([0.0, 0.02, 0.1]), one_of([0.0, 0.02, 0.1])),
        reordering: one_of([0.0, 0.0, 0.1]),
        reordering_behind: one_of([0.0, 0.0, 0.1]),
        duplication: one_of([0.0, 0.0, 0.1]),
        seed,
        mss: 100,
        sack: random.chance(0.6),
        timestamps: random.chance(0.5),
        ..Setup::default()
    };
    let mut dialogue = Dialogue::new(setup);
    dialogue.connect();
    for _ in 0..1 + random.below(3) {
        let side = if random.chance(0.5) { Side::Client } else { Side::Server };
        dialogue.say(side, &vec![b'x'; 1 + random.below(20_000) as usize]);
    }
    dialogue.close(Side::Server).close(Side::Client);
    dialogue.finish().seen
}

/// The rows of `conn` and `tcp`.
fn judged(seen: &[&Seen], limits: Limits) -> (Row, Row) {
    let packets = seen.iter().map(|seen| support::packet(seen.timestamp, &seen.frame));
    let rows = analyse(packets, limits);
    let one = |log: &str| rows.log(log)[0].clone();
    (one("conn"), one("tcp"))
}

/// Room for everything.
fn roomy() -> Limits {
    Limits { open_gaps: 100_000, listed_gaps: 100_000, ..Limits::default() }
}

/// Whether a bounded verdict promises no more than one with room for everything.
fn is_no_better(bounded: &str, whole: &str) -> bool {
    bounded == whole || bounded == "suspect"
}

#[test]
fn a_bound_makes_numbers_unset_and_never_wrong() {
    let (mut compared, mut unset, mut met) = (0, 0, 0);
    let mut complaints = Vec::new();
    for seed in 0..400 {
        let story = story(seed);
        let mut random = Random::new(seed ^ 0x0b0d);
        let share = [0.0, 0.0, 0.01, 0.05][(seed % 4) as usize];
        let kept: Vec<&Seen> = story.iter().filter(|_| !random.chance(share)).collect();
        let whole = judged(&kept, roomy());
        for (open_gaps, listed_gaps) in [(1, 0), (2, 2), (4, 1), (8, 0), (16, 16)] {
            let bounded = judged(&kept, Limits { open_gaps, listed_gaps, ..Limits::default() });
            let how = format!("seed {seed}, {open_gaps} open, {listed_gaps} listed");
            let [before, now] = [&whole.0["quality"], &bounded.0["quality"]];
            if !is_no_better(now, before) {
                complaints.push(format!("{how}: {before} -> {now}"));
            }
            for (log, column) in NUMBERS {
                let of = |rows: &(Row, Row)| {
                    let row = if log == "conn" { &rows.0 } else { &rows.1 };
                    row[column].clone()
                };
                let (before, now) = (of(&whole), of(&bounded));
                if before == "-" {
                    continue;
                }
                compared += 1;
                unset += u32::from(now == "-");
                if now != "-" && now != before {
                    complaints.push(format!("{how}: {column} {before} -> {now}"));
                }
            }
            met += u32::from(bounded != whole);
        }
    }
    print_uncaptured(&format!(
        "{compared} numbers, of which a bound unset {unset}; {met} of 2000 runs differ by a bound"
    ));
    assert!(complaints.is_empty(), "{} complaints:\n{}", complaints.len(), complaints.join("\n"));
    assert!(unset > 1_000 && compared > unset + 2_000, "{unset} of {compared} are unset");
}

/// More losses than there is room for, one after the other: the sums have them all.
#[test]
fn losses_beyond_the_list_keep_their_bytes() {
    for (leg, sack) in [(Leg::Near, true), (Leg::Near, false), (Leg::Far, true), (Leg::Far, false)]
    {
        let setup =
            Setup { mss: 10, in_flight: 10_000, timestamps: false, sack, ..Setup::default() };
        let mut dialogue = Dialogue::new(setup);
        dialogue.connect();
        // Every second of 1,200 segments: none lies beside another one.
        for index in 0..600 {
            dialogue.lose(Side::Server, leg, 3 + 2 * index, 1);
        }
        dialogue.say(Side::Server, &[b'x'; 13_000]);
        dialogue.close(Side::Server).close(Side::Client);
        let seen = dialogue.finish().seen;
        let all: Vec<&Seen> = seen.iter().collect();
        let whole = judged(&all, roomy());
        let (conn, tcp) = judged(&all, Limits::default());
        let how = format!("{leg:?}, SACK {sack}");
        assert_eq!(whole.0["quality"], "clean", "{how}");
        for (row, roomy, column) in
            [(&conn, &whole.0, "network_missed_bytes"), (&tcp, &whole.1, "resp_lost_before")]
        {
            assert!(row[column] == roomy[column] || row[column] == "-", "{how}: {row:?}");
        }
        if sack && leg == Leg::Near {
            assert_eq!(whole.0["network_missed_bytes"], "6000", "{how}");
        }
    }
}
