//! `netsniff analyze -i` on a veth pair of this machine: logs, books, signals and interfaces that go away.
//! Needs root; says so where it is missing.

mod live_bed;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use live_bed::{Bed, Log, Run, Sent};
use netsniff_testing::{Need, skip};

/// The log `capture` of a run, as rows by column.
fn books(directory: &Path) -> Log {
    Log::read(&directory.join("capture.log"))
}

#[test]
fn the_books_close_to_the_packet() {
    let Some(bed) = Bed::up("books") else { return };
    let run = Run::start(&bed, "books", &["--stats-interval", "200ms"]);
    bed.send(&Sent { count: 3000, size: 200, rate: 20_000 });
    let done = run.end();
    assert_eq!(done.code, 0, "{}", done.errors);
    let rows = books(&done.logs);
    let last = rows.of(&[("final", "T"), ("scope", "interface")]);
    assert_eq!(last.len(), 1);
    for (column, value) in [
        ("arrived", "3000"),
        ("lost_interface", "0"),
        ("filtered", "0"),
        ("ring_dropped", "0"),
        ("delivered", "3000"),
        ("analysed", "3000"),
        ("unexplained", "0"),
        ("in_flight", "0"),
        ("verdict", "good"),
        ("bytes", "588000"),
    ] {
        assert_eq!(rows.value(last[0], column), value, "{column}");
    }
    // Totals never fall, and come often.
    let all = rows.of(&[("scope", "interface")]);
    assert!(all.len() >= 3, "{} rows", all.len());
    let delivered: Vec<u64> =
        all.iter().map(|row| rows.value(*row, "delivered").parse().unwrap()).collect();
    assert!(delivered.is_sorted(), "{delivered:?}");
    let conn = Log::read(&done.logs.join("conn.log"));
    let packets: u64 =
        (0..conn.len()).map(|row| conn.value(row, "orig_pkts").parse::<u64>().unwrap()).sum();
    assert_eq!(packets, 3000);
    assert!(done.output.contains("unexplained                                            0"));
}

/// The consumer stalls while more comes than the ring holds: what is missing stands at the ring, to the
/// packet, and where it was.
#[test]
fn drops_at_the_ring_are_in_the_books_and_in_the_gaps() {
    let Some(bed) = Bed::up("stall") else { return };
    let run =
        Run::start(&bed, "stall", &["--ring", "128K", "--block", "16K", "--require-quality", "99"]);
    bed.send(&Sent { count: 200, size: 200, rate: 10_000 });
    run.pause();
    bed.send(&Sent { count: 5000, size: 200, rate: 100_000 });
    std::thread::sleep(Duration::from_millis(1500));
    run.resume();
    std::thread::sleep(Duration::from_millis(300));
    bed.send(&Sent { count: 200, size: 200, rate: 10_000 });
    let done = run.end();
    assert_eq!(done.code, 4, "{}", done.errors);
    let rows = books(&done.logs);
    let last = rows.of(&[("final", "T"), ("scope", "interface")])[0];
    let number = |column: &str| rows.value(last, column).parse::<u64>().unwrap();
    assert_eq!((number("arrived"), rows.value(last, "unexplained")), (5400, "0"));
    assert_eq!(number("delivered") + number("ring_dropped"), 5400);
    assert!(number("ring_dropped") > 3000);
    assert_eq!(rows.value(last, "verdict"), "bad");
    assert_eq!(
        rows.value(last, "wrong_stamps"),
        "0",
        "waiting in a full ring is no error of the clock"
    );
    let gaps = Log::read(&done.logs.join("gaps.log"));
    let told: u64 =
        (0..gaps.len()).map(|row| gaps.value(row, "packets").parse::<u64>().unwrap()).sum();
    assert_eq!(told, number("ring_dropped"), "each lost packet has its place");
    assert!(done.errors.contains("packets lost since the last count"), "{}", done.errors);
}

#[test]
fn a_filter_and_the_snapshot_length_work_live() {
    let Some(bed) = Bed::up("filter") else { return };
    let run = Run::start(&bed, "filter", &["--snaplen", "60", "host", "198.18.0.3"]);
    bed.send(&Sent { count: 2560, size: 512, rate: 50_000 });
    let done = run.end();
    assert_eq!(done.code, 0, "{}", done.errors);
    let conn = Log::read(&done.logs.join("conn.log"));
    assert_eq!(conn.len(), 4, "four flows have this address");
    for row in 0..conn.len() {
        assert_eq!(conn.value(row, "id.orig_h"), "198.18.0.3");
        assert_eq!(conn.value(row, "orig_pkts"), "10");
        assert_eq!(conn.value(row, "sampling"), "-");
    }
    let rows = books(&done.logs);
    let last = rows.of(&[("final", "T"), ("scope", "interface")])[0];
    assert_eq!(rows.value(last, "cut"), rows.value(last, "delivered"));
}

/// A filter of the kernel counts what it refuses, where the right to load such a one is there.
#[test]
fn what_a_filter_of_the_kernel_refuses_is_counted() {
    let Some(bed) = Bed::up("counting") else { return };
    let run = Run::start(&bed, "counting", &["-f", "host 198.18.0.3"]);
    bed.send(&Sent { count: 2560, size: 64, rate: 20_000 });
    let done = run.end();
    let rows = books(&done.logs);
    let last = rows.of(&[("final", "T"), ("scope", "interface")])[0];
    for (column, value) in
        [("arrived", "2560"), ("delivered", "40"), ("filtered", "2520"), ("unexplained", "0")]
    {
        assert_eq!(rows.value(last, column), value, "{column}");
    }
    assert!(done.errors.contains("instructions, counts what it refuses"), "{}", done.errors);
}

#[test]
fn rings_share_the_packets_and_no_flow_is_split() {
    let Some(bed) = Bed::up("fanout") else { return };
    let run = Run::start(&bed, "fanout", &["--workers", "3"]);
    bed.send(&Sent { count: 5120, size: 64, rate: 50_000 });
    let done = run.end();
    assert_eq!(done.code, 0, "{}", done.errors);
    let rows = books(&done.logs);
    let rings = rows.of(&[("final", "T"), ("scope", "ring")]);
    let delivered: Vec<u64> =
        rings.iter().map(|row| rows.value(*row, "delivered").parse().unwrap()).collect();
    assert_eq!((delivered.len(), delivered.iter().sum::<u64>()), (3, 5120));
    assert!(delivered.iter().all(|part| (500..4000).contains(part)), "{delivered:?}");
    let groups: Vec<_> = rings.iter().map(|row| rows.value(*row, "fanout_group")).collect();
    assert!(groups[0] != "-" && groups.iter().all(|group| *group == groups[0]), "{groups:?}");
    let last = rows.of(&[("final", "T"), ("scope", "interface")])[0];
    assert_eq!((rows.value(last, "arrived"), rows.value(last, "unexplained")), ("5120", "0"));
    let conn = Log::read(&done.logs.join("conn.log"));
    assert_eq!(conn.len(), 256, "a flow is on one ring only");
    for row in 0..conn.len() {
        assert_eq!(conn.value(row, "orig_pkts"), "20");
    }
}

#[test]
fn the_books_are_shown_to_prometheus() {
    let Some(bed) = Bed::up("metrics") else { return };
    let arguments = ["--metrics", "9100", "--stats-interval", "100ms"];
    let run = Run::start(&bed, "metrics", &arguments);
    bed.send(&Sent { count: 500, size: 64, rate: 20_000 });
    std::thread::sleep(Duration::from_millis(500));
    let page = bed.fetch("127.0.0.1:9100", "/metrics");
    for line in [
        "netsniff_capture_arrived_packets_total{scope=\"interface\",interface=\"rx0\"} 500",
        "netsniff_capture_delivered_packets_total{scope=\"ring\",interface=\"rx0\",ring=\"0\"} 500",
        "netsniff_capture_unexplained_packets{scope=\"interface\",interface=\"rx0\"} 0",
        "netsniff_capture_verdict{scope=\"interface\",interface=\"rx0\"} 0",
    ] {
        assert!(page.contains(line), "{line} in {page}");
    }
    assert_eq!(run.end().code, 0);
}

#[test]
fn a_busy_ring_where_the_kernel_receives_is_warned_about() {
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        skip(Need::Processors, "sharing a processor with the kernel needs two of them");
        return;
    }
    let Some(bed) = Bed::up("busy") else { return };
    bed.place("rps1");
    for (cpus, is_warned) in [("0", false), ("1", true)] {
        let run =
            Run::start(&bed, "busy", &["--wait", "busy", "--cpus", cpus, "--duration", "200ms"]);
        let done = run.wait();
        assert_eq!(done.errors.contains("(rps_cpus)"), is_warned, "{}", done.errors);
    }
    // What is set tells that it may be so, and traffic that it is.
    let run =
        Run::start(&bed, "busy", &["--wait", "busy", "--cpus", "1", "--stats-interval", "500ms"]);
    bed.send(&Sent { count: 20_000, size: 64, rate: 20_000 });
    let done = run.end();
    let said = "a ring waits busily on processor 1, where the kernel receives";
    assert_eq!(done.errors.matches(said).count(), 1, "once: {}", done.errors);
}

/// All packets belong to one pair of hosts.
#[test]
fn a_heavy_pair_of_hosts_is_warned_about() {
    let Some(bed) = Bed::up("heavy") else { return };
    let run = Run::start(&bed, "heavy", &["--workers", "3"]);
    bed.send_fast(20_000);
    let done = run.end();
    assert!(done.output.contains("a heavy pair loads it alone"), "{}", done.output);
}

/// Two processes that name one group see each flow once.
#[test]
fn processes_may_share_an_interface() {
    let Some(bed) = Bed::up("cluster") else { return };
    let one = Run::start(&bed, "cluster-1", &["--fanout-group", "77"]);
    let other = Run::start(&bed, "cluster-2", &["--fanout-group", "77"]);
    bed.send(&Sent { count: 2560, size: 64, rate: 50_000 });
    let (one, other) = (one.end(), other.end());
    // What the other one took is not known.
    for done in [&one, &other] {
        let rows = books(&done.logs);
        let last = rows.of(&[("final", "T"), ("scope", "interface")])[0];
        let told = ["arrived", "unexplained"].map(|column| rows.value(last, column));
        assert_eq!(told, ["2560", "-"]);
    }
    let flows = |done: &live_bed::Done| {
        let conn = Log::read(&done.logs.join("conn.log"));
        let key = |row| ["id.orig_h", "id.orig_p"].map(|name| conn.value(row, name).to_owned());
        (0..conn.len()).map(key).collect::<std::collections::BTreeSet<_>>()
    };
    let (one, other) = (flows(&one), flows(&other));
    assert!(one.len() > 40 && other.len() > 40, "{} and {}", one.len(), other.len());
    assert_eq!((one.len() + other.len(), one.intersection(&other).count()), (256, 0));
}

#[test]
fn a_sample_is_whole_pairs_of_addresses() {
    let Some(bed) = Bed::up("sample") else { return };
    let run = Run::start(&bed, "sample", &["--sample", "1/4", "--record", "RECORDING"]);
    bed.send(&Sent { count: 2560, size: 64, rate: 50_000 });
    let done = run.end();
    let conn = Log::read(&done.logs.join("conn.log"));
    assert!((24..=128).contains(&conn.len()) && conn.len().is_multiple_of(4), "{}", conn.len());
    for row in 0..conn.len() {
        assert_eq!(conn.value(row, "orig_pkts"), "10");
        assert_eq!(conn.value(row, "sampling"), "4");
    }
    let info = Command::new(env!("CARGO_BIN_EXE_netsniff"))
        .arg("info")
        .arg(done.file("RECORDING"))
        .output();
    let info = String::from_utf8(info.unwrap().stdout).unwrap();
    assert!(info.contains("--sample 1/4"), "{info}");
    let rows = books(&done.logs);
    assert_eq!(rows.value(0, "sampling"), "4");
}

#[test]
fn count_and_duration_end_a_run_exactly() {
    let Some(bed) = Bed::up("count") else { return };
    let run = Run::start(&bed, "count", &["--count", "700"]);
    bed.send(&Sent { count: 1000, size: 64, rate: 50_000 });
    let done = run.wait();
    assert_eq!(done.code, 0, "{}", done.errors);
    let rows = books(&done.logs);
    let last = rows.of(&[("final", "T"), ("scope", "interface")])[0];
    assert_eq!(rows.value(last, "analysed"), "700");
    let number = |column: &str| rows.value(last, column).parse::<u64>().unwrap();
    assert_eq!(number("delivered"), 700 + number("beyond_end"));

    let run = Run::start(&bed, "duration", &["--duration", "500ms"]);
    let done = run.wait();
    assert_eq!(done.code, 0, "{}", done.errors);
    assert!((500..2000).contains(&done.elapsed.as_millis()), "{:?}", done.elapsed);
}

#[test]
fn signals_roll_the_logs_and_end_the_run_in_time() {
    let Some(bed) = Bed::up("signals") else { return };
    let run = Run::start(&bed, "signals", &["--pidfile", "PIDFILE"]);
    let pid = fs::read_to_string(run.logs().join("../PIDFILE")).unwrap();
    assert_eq!(pid.trim(), run.pid().to_string());
    // Flows of UDP end a minute later, so the rows before and after the roll are those of the books.
    bed.send(&Sent { count: 100, size: 64, rate: 10_000 });
    run.signal("HUP");
    std::thread::sleep(Duration::from_millis(300));
    // Two at a time, as timeout(1) sends them.
    run.signal("INT");
    let done = run.end_now();
    assert_eq!(done.code, 0, "{}", done.errors);
    assert!(done.end_took < Duration::from_secs(1), "it took {:?} to end", done.end_took);
    assert!(!done.logs.join("../PIDFILE").exists());
    let conn = Log::read(&done.logs.join("conn.log"));
    assert_eq!(conn.len(), 100);
}

#[test]
fn an_interface_that_goes_down_vanishes_and_returns() {
    let Some(bed) = Bed::up("gone") else { return };
    let run = Run::start(&bed, "gone", &["--if-gone", "wait"]);
    bed.send(&Sent { count: 100, size: 64, rate: 10_000 });
    std::thread::sleep(Duration::from_millis(200));
    bed.ip(&["link", "set", "rx0", "down"]);
    std::thread::sleep(Duration::from_millis(300));
    bed.ip(&["link", "set", "rx0", "up"]);
    std::thread::sleep(Duration::from_millis(200));
    bed.send(&Sent { count: 50, size: 64, rate: 10_000 });
    std::thread::sleep(Duration::from_millis(200));
    bed.renew();
    std::thread::sleep(Duration::from_millis(500));
    bed.send(&Sent { count: 25, size: 64, rate: 10_000 });
    let done = run.end();
    assert_eq!(done.code, 0, "{}", done.errors);
    assert!(done.errors.contains("rx0 is back"), "{}", done.errors);
    let conn = Log::read(&done.logs.join("conn.log"));
    let packets: u64 =
        (0..conn.len()).map(|row| conn.value(row, "orig_pkts").parse::<u64>().unwrap()).sum();
    assert_eq!(packets, 175);

    let run = Run::start(&bed, "vanish", &[]);
    bed.ip(&["link", "del", "rx0"]);
    let done = run.wait();
    assert_eq!(done.code, 1, "a run that ends with its interface: {}", done.errors);
    assert_eq!(done.errors.matches("the interface rx0 is gone").count(), 1, "{}", done.errors);
    assert!(done.logs.join("capture.log").exists());
}

/// All rings leave the group with their interface, so that the one that comes back can have its number.
#[test]
fn rings_join_the_group_that_was_asked_for_again() {
    let Some(bed) = Bed::up("rejoin") else { return };
    let arguments = ["--workers", "2", "--fanout-group", "78", "--if-gone", "wait"];
    let run = Run::start(&bed, "rejoin", &arguments);
    bed.send(&Sent { count: 512, size: 64, rate: 20_000 });
    std::thread::sleep(Duration::from_millis(200));
    bed.renew();
    // A ring without packets looks at its interface once a second.
    std::thread::sleep(Duration::from_millis(1500));
    bed.send(&Sent { count: 1024, size: 64, rate: 20_000 });
    let done = run.end();
    assert_eq!(done.code, 0, "{}", done.errors);
    assert_eq!(done.errors.matches("rx0 is back").count(), 2, "{}", done.errors);
    let rows = books(&done.logs);
    let rings = rows.of(&[("final", "T"), ("scope", "ring")]);
    let delivered = rings.iter().map(|row| rows.value(*row, "delivered").parse::<u64>().unwrap());
    let delivered: Vec<_> = delivered.collect();
    assert_eq!(delivered.iter().sum::<u64>(), 1536, "shared out, and not doubled: {delivered:?}");
    assert!(delivered.iter().all(|part| *part > 300), "{delivered:?}");
}

#[test]
fn what_cannot_be_captured_is_said() {
    let run = |arguments: &[&str]| {
        let out = Command::new(env!("CARGO_BIN_EXE_netsniff")).args(arguments).output().unwrap();
        (out.status.code(), String::from_utf8_lossy(&out.stderr).into_owned())
    };
    let (code, said) = run(&["analyze", "-i", "nowhere0"]);
    assert_eq!((code, said.contains("there is no interface nowhere0")), (Some(1), true), "{said}");
    let (code, said) = run(&["analyze", "-i", "lo", "--backend", "help"]);
    assert_eq!((code, said.contains("af-packet")), (Some(2), true), "{said}");
    let (code, said) = run(&["analyze", "-i", "lo", "-r", "file"]);
    assert_eq!((code, said.contains("exclude each other")), (Some(2), true), "{said}");
    let (code, said) = run(&["analyze", "--snaplen", "96", "file"]);
    assert_eq!((code, said.contains("--interface")), (Some(2), true), "{said}");
}
