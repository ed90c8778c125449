//! Captures of the lab on several processors. Needs root; says so where it is missing.

use std::fs;
use std::thread;

use netsniff_lab::bed::{Bed, Layout};
use netsniff_lab::tools::Setting;

mod lab_bed;

use lab_bed::{alone, make};

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
            eprintln!("SKIPPED: {test} needs two processors");
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
    let refused = Bed::make(&["true".to_owned()], &layout).unwrap_err().to_string();
    assert!(refused.contains("\"4096\" is no number of processors"), "{refused}");
}
