//! Captures of the lab on several processors: where they run, and what is told of the order of packets and of threads. Needs
//! root; says so where it is missing.

use std::fs;
use std::path::{Path, PathBuf};
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
    let threads = threads_named(name).into_iter();
    threads.filter_map(|thread| fs::read_to_string(thread.join("status")).ok()).collect()
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

/// The knobs of a bed are settings of its interface: queues, RPS and threaded NAPI, which the kernel tells again.
#[test]
fn a_bed_receives_as_it_is_told() {
    let _alone = alone();
    let test = "a_bed_receives_as_it_is_told";
    let all = thread::available_parallelism().unwrap().get();
    let last = if all > 2 { all - 1 } else { 0 };
    for (placement, receivers, queues) in
        [("rps", "1", 1), ("rps", "all", 2), ("thread", "all", all), ("napi", "", 3)]
    {
        let number = queues.to_string();
        let mut values = vec![setting("placement", placement), setting("queues", &number)];
        values.extend((!receivers.is_empty()).then(|| setting("receivers", receivers)));
        let layout = Layout::default().with(&values).unwrap();
        let Some(bed) = make(test, &layout) else { return };
        let read = |line: &str| {
            let words = ["sh", "-c", line].map(str::to_owned);
            let out = bed.capture(&words).output().unwrap();
            String::from_utf8(out.stdout).unwrap().trim().to_owned()
        };
        let there = read("ls -d /sys/class/net/rx0/queues/rx-* | wc -l");
        assert_eq!(there, number, "{values:?}");
        let bits = |mask: &str| -> u32 {
            mask.chars().filter_map(|digit| digit.to_digit(16)).map(u32::count_ones).sum()
        };
        let steered = bits(&read("cat /sys/class/net/rx0/queues/rx-0/rps_cpus"));
        let expected = match (placement, receivers) {
            ("rps", "all") => u32::try_from(all).unwrap(),
            ("rps", _) => 1,
            _ => 0,
        };
        assert_eq!(steered, expected, "{values:?}");
        let is_threaded = u32::from(placement == "thread");
        assert_eq!(read("cat /sys/class/net/rx0/threaded"), is_threaded.to_string(), "{values:?}");
        if placement == "thread" {
            // One for each queue, each on a processor of its own.
            let on = |processor: usize| {
                let allowed = format!("Cpus_allowed_list:\t{processor}\n");
                threads_of("napi/rx0-").iter().filter(|it| it.contains(&allowed)).count()
            };
            assert_eq!([on(1), on(last)], [1, 1], "{values:?}");
        }
        // It captures where it did.
        let status = read("cat /proc/self/status");
        assert!(status.contains("Cpus_allowed_list:\t1\n"), "{status}");
    }
    let idle = Layout::default().with(&[setting("placement", "none"), setting("receivers", "2")]);
    let record = Tool::all().into_iter().find(|tool| tool.name == "record").unwrap();
    let why = idle.unwrap().suits(&record).unwrap_err();
    assert!(why.contains("with none the sender's processor receives"), "{why}");
}

/// Flows are spread over the queues of a bed, and one flow is not: each queue has a thread, and the kernel tells how long that ran.
#[test]
fn queues_share_flows_and_not_one_flow() {
    let _alone = alone();
    let test = "queues_share_flows_and_not_one_flow";
    let values = [setting("placement", "thread"), setting("queues", "2")];
    let layout = Layout::default().with(&values).unwrap();
    let Some(bed) = make(test, &layout) else { return };
    let threads = threads_named("napi/rx0-");
    assert_eq!(threads.len(), 2);
    let ran = || -> Vec<u64> { threads.iter().map(|thread| turns(thread)).collect() };
    let count = Tool::all().into_iter().find(|tool| tool.name == "count").unwrap();
    for (flows, busy) in [("1", 1), ("256", 2)] {
        let load = load(128).with(&[setting("flows", flows)]);
        let before = ran();
        let trial = trial::run(&bed, Path::new(NETSNIFF), &count, &load).unwrap();
        assert!(trial.counted.captured.is_some_and(|captured| captured > 500), "{trial:?}");
        let shares = ran().into_iter().zip(before).map(|(now, before)| now - before);
        let shares: Vec<_> = shares.collect();
        let all: u64 = shares.iter().sum();
        let busy_ones = shares.iter().filter(|share| **share * 20 > all).count();
        assert_eq!(busy_ones, busy, "{flows} flows: {shares:?}");
    }
}

/// The directories in /proc of threads whose names begin so.
fn threads_named(name: &str) -> Vec<PathBuf> {
    let threads = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    let is_named = |path: &PathBuf| {
        fs::read_to_string(path.join("comm")).is_ok_and(|comm| comm.starts_with(name))
    };
    threads.filter(is_named).collect()
}

/// How often a thread got a processor.
fn turns(thread: &Path) -> u64 {
    let told = fs::read_to_string(thread.join("schedstat")).unwrap();
    told.split_whitespace().nth(2).unwrap().parse().unwrap()
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
