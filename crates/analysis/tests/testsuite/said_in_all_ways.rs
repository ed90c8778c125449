//! Conversations of two hosts in virtual time, of which everything is known: what they said, what
//! the network lost and what the capture lost. The records must say the same.

use std::time::Duration;

use crate::support::{Row, Rows, analyse, packet};
use netsniff_analysis::{Engine, Limits, Options};
use netsniff_packet::{Batch, Packet};
use netsniff_traffic::Random;
use netsniff_traffic::dialogue::{Dialogue, Seen, Setup, Side};
use netsniff_traffic::impair::{Impairment, impair};

/// How a dialogue ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Closed(Side),
    Reset(Side),
    Open,
}

/// A dialogue with the truth about it.
struct Talk {
    frames: Vec<Seen>,
    /// Bytes that client and server said.
    said: [u64; 2],
    end: End,
    /// Segments that the network lost.
    lost: usize,
}

/// A dialogue that depends on nothing but the seed.
fn talk(seed: u64, loss: f64) -> Talk {
    let mut random = Random::new(seed);
    let setup = Setup {
        delay: (millis(&mut random), millis(&mut random)),
        loss: (random.below(2) as f64 * loss, random.below(2) as f64 * loss),
        seed,
        mss: [536, 1220, 1460][random.below(3) as usize],
        window_scale: [None, Some(0), Some(7)][random.below(3) as usize],
        sack: random.chance(0.5),
        timestamps: random.chance(0.5),
        window: 65_535,
        initial_sequence: (sequence(&mut random), sequence(&mut random)),
        ..Setup::default()
    };
    let mut dialogue = Dialogue::new(setup);
    dialogue.connect();
    let mut said = [0; 2];
    for _ in 0..random.below(6) {
        let side = if random.chance(0.5) { Side::Client } else { Side::Server };
        let len = 1 + random.below(30_000);
        dialogue.say(side, &vec![seed as u8; len as usize]);
        said[side as usize] += len;
    }
    let side = if random.chance(0.5) { Side::Client } else { Side::Server };
    let mut end = match random.below(4) {
        0 => End::Open,
        1 => {
            dialogue.reset(side);
            End::Reset(side)
        }
        _ => {
            dialogue.close(side).close(side.other());
            End::Closed(side)
        }
    };
    let story = dialogue.finish();
    assert!(!story.given_up, "seed {seed}: an end gave up");
    if !story.seen.iter().any(|seen| is_reset(&seen.frame)) && matches!(end, End::Reset(_)) {
        // A reset is not repeated, and this one was lost before the tap.
        end = End::Open;
    }
    Talk { frames: story.seen, said, end, lost: story.lost.len() }
}

fn millis(random: &mut Random) -> Duration {
    Duration::from_micros(100 + random.below(40_000))
}

/// An initial sequence number; every other one lets the stream run over the end of the numbers.
fn sequence(random: &mut Random) -> u32 {
    let number = random.below(1 << 32) as u32;
    if random.chance(0.5) { number | 0xffff_f000 } else { number }
}

fn packets(frames: &[Seen]) -> impl Iterator<Item = Packet<'_>> {
    frames.iter().map(|seen| packet(seen.timestamp, &seen.frame))
}

/// The one row of a capture with one connection.
fn conn<'a>(packets: impl IntoIterator<Item = Packet<'a>>, seed: u64) -> Row {
    let rows = analyse(packets, Limits::default());
    let rows = rows.log("conn");
    assert_eq!(rows.len(), 1, "seed {seed}");
    rows[0].clone()
}

fn count(row: &Row, column: &str) -> u64 {
    // A connection without a duration has no sizes, as in Zeek.
    if row[column] == "-" { 0 } else { row[column].parse().unwrap() }
}

/// Payload of a frame that a dialogue made.
fn payload_len(frame: &[u8]) -> u64 {
    let total = usize::from(u16::from_be_bytes([frame[16], frame[17]]));
    (total - 20 - usize::from(frame[46] >> 4) * 4) as u64
}

/// Whether a frame has SYN, FIN or RST.
fn is_control(frame: &[u8]) -> bool {
    frame[47] & 0b111 != 0
}

fn is_reset(frame: &[u8]) -> bool {
    frame[47] & 0b100 != 0
}

fn check_sizes(row: &Row, talk: &Talk, seed: u64) {
    let sizes = [count(row, "orig_bytes"), count(row, "resp_bytes")];
    assert_eq!(sizes, talk.said, "seed {seed}: {row:?}");
}

fn check_state(row: &Row, talk: &Talk, seed: u64) {
    let expected = match talk.end {
        End::Open => "S1",
        End::Reset(Side::Client) => "RSTO",
        End::Reset(Side::Server) => "RSTR",
        End::Closed(_) => "SF",
    };
    assert_eq!(row["conn_state"], expected, "seed {seed}: {row:?}");
}

#[test]
fn the_record_tells_what_was_said_whatever_the_network_lost() {
    let (mut lost, mut repeated) = (0, 0);
    for seed in 0..500 {
        let talk = talk(seed, 0.03);
        let row = conn(packets(&talk.frames), seed);
        check_sizes(&row, &talk, seed);
        check_state(&row, &talk, seed);
        // All that was acknowledged passed the tap.
        assert_eq!(row["missed_bytes"], "0", "seed {seed}: {row:?}");
        let sent = |side| talk.frames.iter().filter(|seen| seen.from == side).count() as u64;
        assert_eq!(count(&row, "orig_pkts"), sent(Side::Client), "seed {seed}");
        assert_eq!(count(&row, "resp_pkts"), sent(Side::Server), "seed {seed}");
        assert!(!row["history"].contains(['g', 'G']), "seed {seed}: {row:?}");
        lost += talk.lost;
        repeated += usize::from(row["history"].contains(['t', 'T']));
    }
    assert!(lost > 500 && repeated > 50, "lost {lost}, repeated {repeated}");
}

#[test]
fn missed_bytes_are_those_that_the_capture_lost() {
    let mut lost_in_all = 0;
    for seed in 0..500 {
        let talk = talk(seed, 0.0);
        if talk.end == End::Open {
            // Whether the last bytes are missed depends on whether their acknowledgement is seen.
            continue;
        }
        let mut random = Random::new(seed ^ 0xabcd);
        let (mut lost, mut kept) = (0, Vec::new());
        for seen in &talk.frames {
            let len = payload_len(&seen.frame);
            if len > 0 && !is_control(&seen.frame) && random.chance(0.1) {
                lost += len;
            } else {
                kept.push(packet(seen.timestamp, &seen.frame));
            }
        }
        let row = conn(kept, seed);
        assert_eq!(count(&row, "missed_bytes"), lost, "seed {seed}: {row:?}");
        assert_eq!(row["history"].contains(['g', 'G']), lost > 0, "seed {seed}: {row:?}");
        assert_eq!(row["quality"] == "clean", lost == 0, "seed {seed}: {row:?}");
        check_sizes(&row, &talk, seed);
        check_state(&row, &talk, seed);
        lost_in_all += lost;
    }
    assert!(lost_in_all > 100_000, "{lost_in_all}");
}

#[test]
fn lost_acknowledgements_change_no_bytes() {
    let mut lost = 0;
    for seed in 0..200 {
        let talk = talk(seed, 0.0);
        let mut random = Random::new(seed);
        let mut left = talk.frames.len();
        let kept = talk.frames.iter().filter(|seen| {
            left -= 1;
            // The handshake's and the last ones stay: they tell the states.
            let is_middle = left > 4 && talk.frames.len() - left > 3;
            let is_plain = payload_len(&seen.frame) == 0 && !is_control(&seen.frame);
            let lose = is_middle && is_plain && random.chance(0.3);
            lost += usize::from(lose);
            !lose
        });
        let row = conn(kept.map(|seen| packet(seen.timestamp, &seen.frame)), seed);
        check_sizes(&row, &talk, seed);
        check_state(&row, &talk, seed);
        assert_eq!(row["missed_bytes"], "0", "seed {seed}: {row:?}");
    }
    assert!(lost > 500, "{lost}");
}

#[test]
fn doubled_packets_count_twice_and_nothing_else_changes() {
    let doubling = Impairment {
        duplication: 0.2,
        max_delay: Duration::from_nanos(500),
        ..Impairment::default()
    };
    let mut doubled = 0;
    for seed in 0..200 {
        let talk = talk(seed, 0.02);
        let times: Vec<_> = talk.frames.iter().map(|seen| seen.timestamp).collect();
        let outcome = impair(&times, &doubling, seed);
        let captured = outcome.captured.iter();
        let packets = captured.map(|c| packet(c.timestamp, &talk.frames[c.index].frame));
        let row = conn(packets, seed);
        check_sizes(&row, &talk, seed);
        check_state(&row, &talk, seed);
        assert_eq!(row["missed_bytes"], "0", "seed {seed}: {row:?}");
        let counted = count(&row, "orig_pkts") + count(&row, "resp_pkts");
        assert_eq!(counted, outcome.captured.len() as u64, "seed {seed}");
        doubled += outcome.doubled.len();
    }
    assert!(doubled > 1000, "{doubled}");
}

#[test]
fn batches_and_single_packets_give_the_same_records_even_of_a_bad_capture() {
    let bad = Impairment {
        loss: 0.05,
        duplication: 0.05,
        reordering: 0.2,
        max_delay: Duration::from_millis(30),
    };
    for seed in 0..200 {
        let talk = talk(seed, 0.05);
        let times: Vec<_> = talk.frames.iter().map(|seen| seen.timestamp).collect();
        let captured = impair(&times, &bad, seed).captured;
        let frame = |index: usize| talk.frames[index].frame.as_slice();
        let list: Vec<_> = captured.iter().map(|c| packet(c.timestamp, frame(c.index))).collect();

        let singly = analyse(list.iter().copied(), Limits::default());
        let mut together = Rows::default();
        let mut engine = Engine::new(Limits::default(), Options::default(), seed);
        let mut random = Random::new(seed);
        let mut rest = list.as_slice();
        while !rest.is_empty() {
            let (now, later) = rest.split_at(1 + random.below(rest.len() as u64) as usize);
            let mut batch = Batch::default();
            assert!(now.iter().all(|packet| batch.push(packet)));
            engine.batch(&batch, &mut together);
            rest = later;
        }
        engine.finish(&mut together);
        together.sort();
        assert_eq!(singly.logs, together.logs, "seed {seed}");
        assert!(!singly.log("conn").is_empty() || list.is_empty());
    }
}

#[test]
fn a_window_that_closes_is_told_with_the_side_that_closed_it() {
    for (side, letter) in [(Side::Client, 'W'), (Side::Server, 'w')] {
        let mut dialogue = Dialogue::new(Setup::default());
        dialogue.connect().say(side.other(), b"more than you can take");
        dialogue.window(side, 0).pause(Duration::from_millis(300)).window(side, 65_535);
        dialogue.close(side).close(side.other());
        let story = dialogue.finish();
        let row = conn(packets(&story.seen), 0);
        let letters: Vec<_> = row["history"].chars().filter(|c| "Ww".contains(*c)).collect();
        assert_eq!(letters, [letter], "{row:?}");
        assert_eq!(row["conn_state"], "SF");
    }
}
