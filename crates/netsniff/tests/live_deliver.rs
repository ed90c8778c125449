//! Rows of a live run on their way to a receiver, and rows in the words of others. Needs root; says so where it is missing.

#[allow(dead_code, reason = "the tests of files use more of it")]
#[path = "testsuite/deliver/receiver.rs"]
mod receiver;

mod live_bed;

use std::collections::BTreeMap;
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use live_bed::{Bed, Run, Sent};
use receiver::{Act, Receiver};
use serde_json::Value;

/// The rows of the receiver by log, each with its number.
fn of_log(receiver: &Receiver, log: &str) -> Vec<String> {
    let mut logs = receiver.logs();
    let rows = logs.remove(log).unwrap_or_default();
    let numbers: Vec<_> = rows.keys().copied().collect();
    assert_eq!(numbers, (0..rows.len() as u64).collect::<Vec<_>>(), "{log} has gaps");
    rows.into_values().collect()
}

/// A receiver that is not there at first, and then refuses for a while, gets every row, and most of them during the run.
#[test]
fn a_receiver_gets_every_row_of_a_live_run() {
    let Some(bed) = Bed::up("deliver") else { return };
    let is_well = Instant::now() + Duration::from_millis(1_200);
    let receiver = bed.in_receiver(|| {
        Receiver::start(move |request| match request.number {
            _ if Instant::now() < is_well => Act::Refuse(503, "", "not yet"),
            7 => Act::TakeAndCut,
            _ => Act::Take,
        })
    });
    let url = format!("http://127.0.0.1:{}/rows?batch=50", receiver.port);
    let format = ["--format", "json", "--stats-interval", "100ms", "--series", "100ms"];
    let identity =
        ["--sensor", "s", "--run-id", "r", "--deliver", url.as_str(), "--spool", "RECORDING"];
    let run = Run::start(&bed, "deliver", &[&format[..], &identity[..]].concat());
    bed.send(&Sent { count: 4096, size: 200, rate: 3_000 });
    let end = Instant::now() + Duration::from_secs(10);
    while of_log(&receiver, "capture").len() < 10 {
        assert!(Instant::now() < end, "{:?}", receiver.taken().len());
        thread::sleep(Duration::from_millis(50));
    }
    let done = run.end();
    assert_eq!(done.code, 0, "{}", done.errors);

    let mut counts = BTreeMap::new();
    for entry in fs::read_dir(&done.logs).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "log") {
            let log = path.file_stem().unwrap().to_str().unwrap().to_owned();
            let text = fs::read_to_string(&path).unwrap();
            let written: Vec<_> = text.lines().map(str::to_owned).collect();
            assert_eq!(of_log(&receiver, &log), written, "{log}");
            counts.insert(log, written.len() as u64);
        }
    }
    assert!(counts["conn"] > 0 && counts["capture"] > 10 && counts["series"] > 10, "{counts:?}");
    // The last rows say how many there are.
    let ends = of_log(&receiver, "run_end");
    let ends = ends.iter().map(|row| serde_json::from_str::<Value>(row).unwrap());
    let told =
        ends.map(|row| (row["of"].as_str().unwrap().to_owned(), row["rows"].as_u64().unwrap()));
    assert_eq!(told.collect::<BTreeMap<_, _>>(), counts);
}

#[test]
fn rows_that_nobody_takes_stay_in_the_spool_of_a_live_run() {
    let Some(bed) = Bed::up("deliver-none") else { return };
    // Nobody listens there.
    let delivery =
        ["--deliver", "http://127.0.0.1:9/", "--spool", "RECORDING", "--deliver-wait", "200ms"];
    let run = Run::start(&bed, "deliver-none", &[&delivery[..], &["--format", "json"]].concat());
    bed.send(&Sent { count: 100, size: 200, rate: 3_000 });
    let done = run.end();
    assert_eq!(done.code, 5, "{}", done.errors);
    assert!(done.output.contains("left in the spool"), "{}", done.output);
    let spooled = fs::read_dir(done.file("RECORDING")).unwrap().count();
    assert!(
        spooled > 0 && fs::read_to_string(done.logs.join("conn.log")).unwrap().lines().count() > 0
    );
}

/// Every line is a document, and there are as many as rows in words of Zeek.
#[test]
fn live_rows_are_written_in_the_words_of_others() {
    for (format, is_whole) in [
        ("ecs", (|row: &Value| row["event"]["dataset"] == "zeek.connection") as fn(&Value) -> bool),
        ("eve", |row: &Value| row["event_type"] == "flow" && row["flow_id"].is_u64()),
    ] {
        let name = format!("words-{format}");
        let Some(bed) = Bed::up(&name) else { return };
        let run = Run::start(&bed, &name, &["--format", format, "--stats-interval", "200ms"]);
        bed.send(&Sent { count: 4096, size: 200, rate: 8_000 });
        let done = run.end();
        assert_eq!(done.code, 0, "{}", done.errors);
        let mut documents = BTreeMap::new();
        for entry in fs::read_dir(&done.logs).unwrap() {
            let path = entry.unwrap().path();
            let text = fs::read_to_string(&path).unwrap();
            let rows = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
            let log = path.file_name().unwrap().to_str().unwrap().to_owned();
            documents.insert(log, rows.collect::<Vec<_>>());
        }
        let conn = documents.iter().find(|(log, _)| log.starts_with("conn.")).unwrap();
        assert!(!conn.1.is_empty() && conn.1.iter().all(is_whole), "{conn:?}");
        assert!(documents.iter().any(|(log, rows)| log.starts_with("capture.") && rows.len() > 1));
    }
}
