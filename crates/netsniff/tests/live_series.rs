//! The log `series` of `netsniff analyze -i` on a veth pair of this machine. Needs root; says so where it is missing.

mod live_bed;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::Duration;

use live_bed::{Bed, Last, Log, Run, Sent};

/// The sum of a column over the rows with these values.
fn sum(log: &Log, values: &[(&str, &str)], column: &str) -> u64 {
    log.of(values).into_iter().map(|row| log.value(row, column).parse::<u64>().unwrap()).sum()
}

/// The packets of the total of all intervals in a log that is being written.
fn told_packets(log: &Path) -> u64 {
    let text = fs::read_to_string(log).unwrap();
    let fields = text.lines().find_map(|line| line.strip_prefix("#fields\t")).unwrap();
    let at = |name: &str| fields.split('\t').position(|field| field == name).unwrap();
    let rows = text.lines().filter(|line| !line.starts_with('#'));
    let cells = rows.map(|line| line.split('\t').collect::<Vec<_>>());
    let totals = cells.filter(|cells| cells[at("kind")] == "total");
    totals.map(|cells| cells[at("packets")].parse::<u64>().unwrap()).sum()
}

#[test]
fn every_interval_is_told_once_soon_after_its_end() {
    for (name, workers) in [("series-one", "1"), ("series-three", "3")] {
        let Some(bed) = Bed::up(name) else { return };
        let run = Run::start(&bed, name, &["--series", "200ms", "--workers", workers]);
        bed.send(&Sent { count: 4096, size: 200, rate: 3_000 });
        // Intervals wait as long as they last, and rows for a flush.
        std::thread::sleep(Duration::from_millis(1_500));
        let during = told_packets(&run.logs().join("series.log"));
        let done = run.end();
        assert_eq!(done.code, 0, "{}", done.errors);
        assert_eq!(during, 4096, "told before the end");
        let series = Log::read(&done.logs.join("series.log"));
        let books = Last::read(&done.logs, "interface");
        assert_eq!(books.number("delivered"), 4096);
        for kind in ["total", "interface"] {
            assert_eq!(sum(&series, &[("kind", kind)], "packets"), 4096, "{kind}");
            assert_eq!(sum(&series, &[("kind", kind)], "bytes"), books.number("bytes"), "{kind}");
        }
        assert_eq!(sum(&series, &[("interface", "rx0")], "packets"), 4096);
        assert_eq!(sum(&series, &[("kind", "host")], "sent_packets"), 4096);
        let conn = Log::read(&done.logs.join("conn.log"));
        assert_eq!(sum(&series, &[("kind", "total")], "new_flows"), conn.len() as u64);
        let totals = series.of(&[("kind", "total")]);
        let begins: BTreeSet<_> = totals.iter().map(|row| series.value(*row, "ts")).collect();
        assert!(begins.len() == totals.len() && totals.len() >= 6, "{} intervals", totals.len());
        for row in totals {
            let verdict = [series.value(row, "dropped"), series.value(row, "verdict")];
            assert_eq!((verdict, series.value(row, "late")), (["0", "good"], "F"));
        }
    }
}

/// What the ring drops stands in the intervals in which it was dropped, and these can't be believed.
#[test]
fn drops_stand_in_their_intervals() {
    let Some(bed) = Bed::up("series-stall") else { return };
    let options = ["--ring", "128K", "--block", "16K", "--series", "100ms"];
    let run = Run::start(&bed, "series-stall", &options);
    bed.send(&Sent { count: 200, size: 200, rate: 1_000 });
    run.pause();
    bed.send(&Sent { count: 5000, size: 200, rate: 100_000 });
    std::thread::sleep(Duration::from_millis(1_500));
    run.resume();
    std::thread::sleep(Duration::from_millis(300));
    bed.send(&Sent { count: 200, size: 200, rate: 1_000 });
    let done = run.end();
    let books = Last::read(&done.logs, "interface");
    let series = Log::read(&done.logs.join("series.log"));
    assert!(books.number("ring_dropped") > 3000);
    let total = [("kind", "total")];
    assert_eq!(sum(&series, &total, "dropped"), books.number("ring_dropped"));
    assert_eq!(sum(&series, &total, "packets"), books.number("delivered"));
    let verdict = |verdict: &str| series.of(&[("kind", "total"), ("verdict", verdict)]);
    let told = |&row: &usize| {
        ["ts", "packets", "dropped", "late", "verdict"].map(|column| series.value(row, column))
    };
    let rows: Vec<_> = series.of(&total).iter().map(told).collect();
    assert!(!verdict("bad").is_empty() && !verdict("good").is_empty(), "{rows:?}");
    for row in verdict("bad") {
        assert_ne!(series.value(row, "dropped"), "0", "{rows:?}");
    }
}
