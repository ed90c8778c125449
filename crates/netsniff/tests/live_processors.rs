//! Captures of the lab on several processors: where they run, and what is told of the order of packets and of threads. Needs
//! root; says so where it is missing.

use std::fs;
use std::path::Path;
use std::thread;

use netsniff_lab::packet_order::PacketOrder;
use netsniff_lab::testbed::{Layout, Testbed};
use netsniff_lab::tools::{Setting, Tool};
use netsniff_lab::trial;

mod lab_bed;

use lab_bed::{alone, load, make, valid};
use netsniff_testing::{Need, skip};

const NETSNIFF: &str = env!("CARGO_BIN_EXE_netsniff");

fn setting(name: &str, value: &str) -> Setting {
    Setting { name: name.into(), value: value.into() }
}

/// What the kernel tells of processes whose names begin so.
fn threads_of(name: &str) -> Vec<String> {
    let threads = fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| {
        let comm = fs::read_to_string(entry.path().join("comm")).ok()?;
        let status = fs::read_to_string(entry.path().join("status")).ok()?;
        comm.starts_with(name).then_some(status)
    });
    threads.collect()
}

/// Where several processors capture the kernel receives on all of them, the sender's as the last one.
#[test]
fn a_bed_captures_on_the_processors_that_it_is_told() {
    let _alone = alone();
    let test = "a_bed_captures_on_the_processors_that_it_is_told";
    // The sender's comes last.
    let second = if thread::available_parallelism().unwrap().get() > 2 { 2 } else { 0 };
    for (processors, placement) in [("1", "rps"), ("2", "rps"), ("2", "thread")] {
        let values = [("processors", processors), ("placement", placement), ("queues", "2")];
        let values = values.map(|(name, value)| setting(name, value));
        let Ok(layout) = Layout::default().with(&values) else {
            skip(Need::Processors, format_args!("{test} needs two processors"));
            return;
        };
        let Some(bed) = make(test, &layout) else { return };
        let read = |path: &str| {
            let words = ["cat", path].map(str::to_owned);
            let out = bed.capture(&words).output().unwrap();
            String::from_utf8(out.stdout).unwrap().trim().to_owned()
        };
        let list = |list: &str| format!("Cpus_allowed_list:\t{list}\n");
        let status = read("/proc/self/status");
        let allowed = match (processors, second) {
            ("1", _) => "1",
            (_, 2) => "1-2",
            _ => "0-1",
        };
        assert!(status.contains(&list(allowed)), "{status}");
        let mask = match (processors, placement) {
            (_, "thread") => 0,
            ("1", _) => 2,
            _ => 2 | 1 << second,
        };
        for queue in ["rx-0", "rx-1"] {
            let seen = read(&format!("/sys/class/net/rx0/queues/{queue}/rps_cpus"));
            assert!(seen.ends_with(&format!("{mask:x}")), "{seen} of {values:?}");
        }
        let threads = threads_of("napi/rx0-");
        let of = |on: i32| threads.iter().filter(|it| it.contains(&list(&on.to_string()))).count();
        let expected = if placement == "thread" { [1, 1] } else { [0, 0] };
        assert_eq!([of(1), of(second)], expected, "{threads:?}");
    }
    let many = Layout::default().with(&[setting("processors", "4096")]).unwrap_err();
    assert!(many.contains("no number of processors from 1 to"), "{many}");
    let layout = Layout { processors: 4096, ..Layout::default() };
    let refused = Testbed::make(&["true".to_owned()], &layout).unwrap_err().to_string();
    assert!(refused.contains("\"4096\" is no number of processors"), "{refused}");
}

/// Rings tell how packets were shared and in what order they came, and so does the file that another tool wrote.
#[test]
fn order_and_threads_are_counted() {
    let _alone = alone();
    let test = "order_and_threads_are_counted";
    let layout = Layout::default().with(&[setting("processors", "all")]).unwrap();
    let Some(bed) = make(test, &layout) else { return };
    let record = Tool::all().into_iter().find(|tool| tool.name == "record").unwrap();
    let record = record.with(&[setting("workers", "2")]).unwrap();
    for (flows, is_shared) in [("1", false), ("256", true)] {
        let load = load(128).with(&[setting("flows", flows)]);
        let Some(trial) = valid(&bed, &record, &load) else {
            skip(Need::Quiet, format_args!("{test}: this machine is too busy"));
            return;
        };
        let threads = trial.counted.threads.clone().unwrap();
        assert_eq!((threads.len(), Some(threads.iter().sum())), (2, trial.counted.captured));
        assert_eq!(threads.iter().all(|packets| *packets > 0), is_shared, "{threads:?}");
        assert_eq!(trial.counted.largest_share().unwrap() < 1.0, is_shared);
        let (order, captured) = (trial.counted.order.unwrap(), trial.counted.captured.unwrap());
        assert!(order.inversions < captured && trial.counted.late.is_some(), "{trial:?}");
    }

    // 20 and 30 stand behind 50.
    let script = std::env::temp_dir().join(format!("netsniff-order-{}", std::process::id()));
    let word = |word: u32| -> String {
        word.to_le_bytes().iter().map(|byte| format!("\\x{byte:02x}")).collect()
    };
    let head = [0xa1b2_c3d4, 0x0004_0002, 0, 0, 65_535, 1].map(word).concat();
    let packets = [10, 50, 20, 30, 60].map(|micros| [0, micros, 0, 60].map(word).concat());
    let text = format!("printf '{head}{}' >\"$2\"\nexec sleep 60\n", packets.concat());
    fs::write(&script, text).unwrap();
    let mine = Tool::of_command(&format!("mine=bash {} IFACE FILE", script.display())).unwrap();
    let trial = trial::run(&bed, Path::new(NETSNIFF), &mine, &load(128)).unwrap();
    fs::remove_file(script).unwrap();
    let counted = trial.counted;
    assert_eq!(counted.captured, Some(5));
    assert_eq!(counted.order, Some(PacketOrder { inversions: 2, deepest_ns: 30_000 }));
    assert_eq!((counted.threads, counted.late), (None, None), "it does not tell");
}
