//! The loss rates of `tcp`, held against scripted dialogues whose losses are known.

use std::collections::BTreeMap;
use std::fs;

use netsniff_testing::log::Row;
use netsniff_testing::quality::Place;
use netsniff_testing::quality::play::{Fate, play};
use netsniff_testing::quality::recording::{Event, Recording};
use netsniff_testing::quality::segment::{End, Flow, Kind};
use netsniff_testing::quality::trace::trace;
use netsniff_traffic::impair::Impairment;

use crate::zeek::corpus::{Scratch, analyze};
use crate::zeek::log;

/// Where the seeds of the dialogues begin: no rate must be right by luck.
const SEEDS: [u64; 4] = [0, 1_000, 4_000, 7_000];

/// What became of the payload of one side: bytes that it sent, and of these lost ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Payload {
    sent: u64,
    before: u64,
    behind: u64,
}

impl Payload {
    const fn lost(&self) -> u64 {
        self.before + self.behind
    }

    fn rate(&self) -> f64 {
        self.lost() as f64 / self.sent as f64
    }
}

/// What really happened to what `from` sent.
fn truth(events: &[Event], from: usize) -> Payload {
    let (mut truth, mut doubled) = (Payload::default(), 0);
    for Event { segment, lost, is_doubled } in payload(events, from) {
        let bytes = u64::from(segment.payload);
        *(if *is_doubled { &mut doubled } else { &mut truth.sent }) += bytes;
        if lost.contains(&Place::Before) {
            truth.before += bytes;
        } else if lost.contains(&Place::Behind) {
            truth.behind += bytes;
        }
    }
    // Of each two that the network made one was sent.
    truth.sent += doubled / 2;
    truth
}

/// What `from` sent, without resets, in the order of the tap.
fn payload(events: &[Event], from: usize) -> impl Iterator<Item = &Event> {
    let of_side = move |event: &&Event| event.segment.from == from;
    events.iter().filter(of_side).filter(|event| event.segment.kind() != Kind::Reset)
}

/// Bytes lost before the tap that left a hole there: something behind them passed before they came (again). While
/// it is open, a second loss of the same bytes changes nothing.
fn holes_at_the_tap(events: &[Event], from: usize) -> u64 {
    struct Hole {
        begin: u32,
        bytes: u32,
        is_shown: bool,
    }
    let ahead = |one: u32, other: u32| one.wrapping_sub(other).cast_signed();
    let (mut holes, mut shown) = (Vec::<Hole>::new(), 0);
    for Event { segment, lost, .. } in payload(events, from) {
        let lies_in = |begin: u32| {
            let offset = ahead(begin, segment.sequence);
            offset >= 0 && offset.cast_unsigned() < segment.payload
        };
        if lost.contains(&Place::Before) {
            if segment.payload > 0 && !holes.iter().any(|hole| lies_in(hole.begin)) {
                let (begin, bytes) = (segment.sequence, segment.payload);
                holes.push(Hole { begin, bytes, is_shown: false });
            }
            continue;
        }
        holes.retain(|hole| {
            let is_filled = lies_in(hole.begin);
            shown += if is_filled && hole.is_shown { u64::from(hole.bytes) } else { 0 };
            !is_filled
        });
        for hole in &mut holes {
            hole.is_shown |= ahead(segment.sequence, hole.begin) > 0;
        }
    }
    shown + holes.iter().filter(|hole| hole.is_shown).map(|hole| u64::from(hole.bytes)).sum::<u64>()
}

/// Sides of connections whose loss is known, and what the log tells of it.
#[derive(Clone, Debug, Default)]
struct Judged {
    /// Sides that sent payload.
    sides: usize,
    /// Those among them of which something was lost.
    with_losses: usize,
    /// Sides with a rate, and those of which something was lost.
    told: usize,
    told_with_losses: usize,
    /// Rates that are right to the last byte, but for losses before the tap that left no hole there.
    exact: usize,
    /// Rates that tell of more than was lost.
    above: usize,
    /// The sums of all with a rate: true, and told.
    truth: Payload,
    sum: Payload,
}

impl Judged {
    fn add(&mut self, recording: &Recording, tcp: &[Row], conn: &[Row]) {
        let quality: BTreeMap<_, _> =
            conn.iter().map(|row| (&row["uid"], &row["quality"])).collect();
        for row in tcp {
            let ends = ["orig", "resp"].map(|side| -> End {
                let cell = |part: &str| &row[&format!("id.{side}_{part}")];
                (cell("h").parse().unwrap(), cell("p").parse().unwrap())
            });
            let flow: Flow = if ends[0] < ends[1] { ends } else { [ends[1], ends[0]] };
            let events = &recording.0[&flow];
            for (side, end) in ["orig", "resp"].into_iter().zip(ends) {
                let from = usize::from(flow[0] != end);
                let cell = |column: &str| row[&format!("{side}_{column}")].as_str();
                let columns = ["lost_before", "lost_behind", "loss_rate"].map(cell);
                let truth = truth(events, from);
                self.sides += usize::from(truth.sent > 0);
                self.with_losses += usize::from(truth.lost() > 0);
                if columns.contains(&"-") {
                    assert_eq!(columns, ["-"; 3], "all three are told or none");
                    continue;
                }
                assert_eq!(quality[&row["uid"]], "clean");
                let visible = Payload { before: holes_at_the_tap(events, from), ..truth };
                self.judge(truth, visible, columns, || trace(events));
            }
        }
    }

    fn judge(
        &mut self,
        truth: Payload,
        visible: Payload,
        columns: [&str; 3],
        trace: impl Fn() -> String,
    ) {
        let [before, behind] = [0, 1].map(|at| columns[at].parse().unwrap());
        // What left no trace is not told as sent, either.
        let sent = truth.sent - truth.before;
        let told = Payload { sent: sent + before, before, behind };
        let rate: f64 = columns[2].parse().unwrap();
        assert!((rate - told.rate()).abs() <= 1e-6, "{rate} is not that of {told:?} ({truth:?})");
        let is_exact = told == Payload { sent: sent + visible.before, ..visible };
        self.told += 1;
        self.told_with_losses += usize::from(truth.lost() > 0);
        self.exact += usize::from(is_exact);
        self.above += usize::from(told.lost() > truth.lost());
        if !is_exact {
            println!("told {told:?}, to be seen {visible:?}, was {truth:?}\n{}", trace());
        }
        for (sum, of) in [(&mut self.truth, truth), (&mut self.sum, told)] {
            sum.sent += of.sent;
            sum.before += of.before;
            sum.behind += of.behind;
        }
    }
}

fn judged(count: u16, fate: &Fate) -> Judged {
    let mut judged = Judged::default();
    for seed in SEEDS {
        let scratch = Scratch::new("loss-rates");
        fs::create_dir_all(scratch.path()).unwrap();
        let capture = scratch.path().join("capture.pcap");
        let recording = play(count, fate, seed, &capture);
        analyze(&capture, scratch.path(), &[]);
        let rows = |name: &str| log::read(&scratch.path().join(name)).unwrap();
        judged.add(&recording, &rows("tcp.log"), &rows("conn.log"));
    }
    println!("{fate:?}: {judged:?}");
    judged
}

#[test]
fn rates_are_those_of_the_losses_that_were_planted() {
    for (before, behind) in [(0.002, 0.0), (0.02, 0.0), (0.0, 0.002), (0.0, 0.02), (0.01, 0.01)] {
        let judged = judged(150, &Fate { before, behind, ..Fate::default() });
        // Most that can be told is told, also of sides that lost something.
        assert!(judged.told * 100 > judged.sides * 75, "{judged:?}");
        assert!(judged.told_with_losses * 100 > judged.with_losses * 40, "{judged:?}");
        assert!(judged.told_with_losses > 20, "{judged:?}");
        assert_eq!((judged.above, judged.exact), (0, judged.told), "{judged:?}");
        // These dialogues are short, and the end of what is said is seen to be lost by nobody before the tap.
        let (told, truth) = (judged.sum.rate(), judged.truth.rate());
        assert!(told <= truth && told >= truth * 0.9, "{told} is not {truth}");
    }
}

#[test]
fn what_was_not_lost_has_the_rate_0() {
    let judged = judged(100, &Fate::default());
    assert!(judged.told == judged.exact && judged.sum.lost() == 0, "{judged:?}");
    assert!(judged.told * 100 > judged.sides * 90, "{judged:?}");
}

#[test]
fn what_the_capture_lost_is_no_loss_of_the_network() {
    let capture = Impairment { loss: 0.02, ..Impairment::default() };
    let judged = judged(150, &Fate { capture, ..Fate::default() });
    assert_eq!(judged.sum.lost(), 0, "{judged:?}");
    assert!(judged.told > 100, "{judged:?}");
}

#[test]
fn what_the_network_doubles_was_sent_once() {
    let jitter = core::time::Duration::from_micros(300);
    for before in [0.0, 0.02] {
        let judged = judged(150, &Fate { before, duplication: 0.05, jitter, ..Fate::default() });
        assert!(judged.told * 100 > judged.sides * 75, "{judged:?}");
        assert_eq!(judged.above, 0, "{judged:?}");
        // Where frames are doubled, a loss before the tap once in a while looks like one that was late.
        assert!(judged.exact + 2 >= judged.told, "{judged:?}");
        assert_eq!(judged.sum.lost() > 0, before > 0.0, "{judged:?}");
    }
}
