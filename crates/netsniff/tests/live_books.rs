//! The books close: packets are lost, cut or refused on purpose at each stage, by the kernel and not by mocks,
//! and the right column tells of exactly those. Needs root; says so where it is missing.
//!
//! More of these are in `live_analysis` (a stalled consumer, a filter of the kernel, a count) and in
//! `live_recording` (drops in the file, shedding) and `live_backlog`.

mod live_bed;

use std::time::Duration;

use live_bed::commands::{Captures, replay};
use live_bed::{Bed, Last, Log, Run, Sent};
use netsniff_packet::LinkType;
use netsniff_traffic::dialogue::{Dialogue, Setup, Side};

const FEW: Sent = Sent { count: 1000, size: 200, rate: 50_000 };

#[test]
fn packets_that_the_snaplen_cuts_are_counted() {
    let Some(bed) = Bed::up("b-cut") else { return };
    let run = Run::start(&bed, "b-cut", &["--snaplen", "100"]);
    bed.send(&FEW);
    bed.send(&Sent { count: 300, size: 80, rate: 50_000 });
    let done = run.end();
    let last = Last::read(&done.logs, "interface");
    last.closes();
    assert_eq!((last.number("arrived"), last.number("cut")), (1300, 1000));
}

#[test]
fn headers_that_the_snaplen_cuts_are_said_once_and_counted() {
    let Some(bed) = Bed::up("b-headers") else { return };
    let said = "rx0: --snaplen 30 cuts headers";
    let run = Run::start(&bed, "b-headers", &["--snaplen", "30", "--stats-interval", "200ms"]);
    for _ in 0..3 {
        bed.send(&FEW);
        std::thread::sleep(Duration::from_millis(300));
    }
    let done = run.end();
    let last = Last::read(&done.logs, "interface");
    last.closes();
    assert_eq!((last.number("cut"), last.number("cut_headers")), (3000, 3000));
    assert_eq!(done.errors.matches(said).count(), 1, "{}", done.errors);
    assert!(done.errors.contains("These headers need --snaplen 34"), "{}", done.errors);

    let run = Run::record(&bed, "b-headers", "out.pcapng", &["--snaplen", "30", "--json"]);
    bed.send(&FEW);
    let done = run.end();
    assert_eq!(done.errors.matches(said).count(), 1, "{}", done.errors);
    let json: serde_json::Value = serde_json::from_str(&done.output).unwrap();
    let cut = &json["capture"][0]["cut_headers"];
    let looked_at = cut["looked_at"].as_u64().unwrap();
    assert!((1..=1000).contains(&looked_at), "{json}");
    assert_eq!((&cut["packets"], &cut["enough"]), (&looked_at.into(), &34.into()));

    let run = Run::record(&bed, "b-headers", "out.pcapng", &["--snaplen", "100", "--json"]);
    bed.send(&FEW);
    let done = run.end();
    assert!(!done.errors.contains("cuts headers"), "{}", done.errors);
    let json: serde_json::Value = serde_json::from_str(&done.output).unwrap();
    assert_eq!(json["capture"][0]["cut_headers"]["packets"], 0, "{json}");
}

/// A segment comes half a second late: what came behind it waits, in the rows of that time.
#[test]
fn what_waits_behind_a_hole_is_in_the_books() {
    let Some(bed) = Bed::up("b-hole") else { return };
    let mut dialogue = Dialogue::new(Setup::default());
    dialogue.connect().say(Side::Client, b"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n");
    let head = b"HTTP/1.1 200 OK\r\nContent-Length: 9000\r\n\r\n";
    dialogue.say(Side::Server, &[&head[..], &[b'x'; 9000]].concat());
    let frames: Vec<_> = dialogue.finish().seen.into_iter().map(|it| it.frame).collect();
    let missing = frames.iter().position(|frame| frame.len() > 1_000).unwrap() + 1;
    // Nobody acknowledges what is missing.
    let before = frames.iter().enumerate().filter(|(at, frame)| {
        *at < missing || (missing + 1..missing + 4).contains(at) && frame.len() > 1_000
    });
    let captures = Captures::new("hole");
    let write = |name: &str, frames: &mut dyn Iterator<Item = &Vec<u8>>| {
        let packets = frames
            .enumerate()
            .map(|(number, frame)| (number as i64 * 1_000_000, frame.clone(), frame.len()));
        captures.write(name, LinkType::ETHERNET, &packets.collect::<Vec<_>>())
    };
    let first = write("first.pcap", &mut before.map(|(_, frame)| frame));
    let late = write("late.pcap", &mut frames[missing..=missing].iter());
    let run = Run::start(&bed, "b-hole", &["--stats-interval", "100ms"]);
    for file in [&first, &late] {
        std::thread::sleep(Duration::from_millis(500));
        let sent = replay(&bed, &[file.as_path()], &["-q"]);
        assert_eq!(sent.code, Some(0), "{}", sent.errors);
    }
    std::thread::sleep(Duration::from_millis(300));
    let done = run.end();
    let log = Log::read(&done.logs.join("capture.log"));
    let rows = log.of(&[("scope", "interface")]);
    let number = |row: &usize, column: &str| log.value(*row, column).parse::<u64>().unwrap();
    let told: Vec<_> =
        rows.iter().map(|row| ["held_bytes", "held_bytes_max"].map(|of| number(row, of))).collect();
    let waits_at = |at: &usize| told[*at][0] > 0;
    let begin = (0..told.len()).find(waits_at).expect("nothing ever waits");
    let end = (0..told.len()).rfind(waits_at).expect("it began");
    assert!(begin > 0 && end - begin >= 2 && end + 2 < told.len(), "{told:?}");
    let waits = told[end][0];
    assert!(waits > 1_000, "{told:?}");
    assert!(told[begin + 1..=end].iter().all(|held| *held == [waits; 2]), "{told:?}");
    assert_eq!(told[end + 1], [0, waits], "it waited when the row before was made: {told:?}");
    let rest = told[..begin].iter().chain(&told[end + 2..]);
    assert!(rest.clone().count() > 1 && rest.clone().all(|held| *held == [0; 2]), "{told:?}");
    assert!(rows.iter().all(|row| log.value(*row, "holes_given_up") == "0"));
}

/// The kernel cannot run a filter of thousands of hosts, so that we do, and count.
#[test]
fn packets_that_a_filter_in_user_space_refuses_are_counted() {
    let Some(bed) = Bed::up("b-user") else { return };
    let hosts: Vec<_> = (0..2500).map(|n| format!("192.0.{}.{}", n / 250, n % 250)).collect();
    let filter = format!("host 198.18.0.3 or host {}", hosts.join(" or host "));
    let run = Run::start(&bed, "b-user", &["-f", &filter]);
    bed.send(&Sent { count: 2560, size: 64, rate: 50_000 });
    let done = run.end();
    assert!(done.errors.contains("filter in user space, since"), "{}", done.errors);
    let last = Last::read(&done.logs, "interface");
    last.closes();
    assert_eq!((last.number("filtered_late"), last.number("analysed")), (2520, 40));
    let told = |line: &str| line.contains("refused by the filter ") && line.ends_with(" 2,520");
    assert!(done.output.lines().any(told), "{}", done.output);
}

#[test]
fn packets_of_an_interface_that_was_down_never_arrived() {
    let Some(bed) = Bed::up("b-down") else { return };
    let run = Run::start(&bed, "b-down", &[]);
    bed.send(&FEW);
    std::thread::sleep(Duration::from_millis(300));
    bed.ip(&["link", "set", "rx0", "down"]);
    std::thread::sleep(Duration::from_millis(400));
    bed.ip(&["link", "set", "rx0", "up"]);
    std::thread::sleep(Duration::from_millis(200));
    bed.send(&FEW);
    let done = run.end();
    assert_eq!(done.code, 0, "{}", done.errors);
    let last = Last::read(&done.logs, "interface");
    last.closes();
    assert_eq!((last.number("arrived"), last.number("downs")), (2000, 1));
}

/// 28,000 packets, 40 MB, where 32 MiB and what a pipe takes may wait for a recorder.
fn send_more_than_waits(bed: &Bed) {
    for _ in 0..4 {
        bed.send(&Sent { count: 7000, size: 1500, rate: 100_000 });
    }
}

/// Nobody reads the recording: what its queue does not hold is refused, and the capture goes on.
#[test]
fn packets_that_the_recorder_refuses_are_counted() {
    let Some(bed) = Bed::up("b-slow") else { return };
    let run = Run::start_with_fifo(&bed, "b-slow", &["--record", "RECORDING"]);
    send_more_than_waits(&bed);
    let done = run.end();
    let last = Last::read(&done.logs, "interface");
    last.closes();
    assert_eq!((last.number("arrived"), last.number("analysed")), (28_000, 28_000));
    assert!(last.number("unrecorded") > 1000, "{}", last.text("unrecorded"));
    assert!(last.number("recorded") + last.number("unrecorded") <= 28_000);
    assert_eq!(reported_lost(&done.errors), last.number("unrecorded"), "{}", done.errors);
}

/// Nobody reads the recording for a while: what its queue does not hold stays in the ring, and nothing is refused.
#[test]
fn packets_wait_in_the_ring_for_the_recorder() {
    let Some(bed) = Bed::up("b-late") else { return };
    let run = Run::start_with_fifo(&bed, "b-late", &["--record", "RECORDING"]);
    send_more_than_waits(&bed);
    let mut pipe = std::fs::File::open(run.logs().with_file_name("RECORDING")).unwrap();
    let reader = std::thread::spawn(move || std::io::copy(&mut pipe, &mut std::io::sink()));
    let done = run.end();
    let last = Last::read(&done.logs, "interface");
    last.closes();
    assert_eq!((last.number("arrived"), last.number("analysed")), (28_000, 28_000));
    assert_eq!((last.number("recorded"), last.number("unrecorded")), (28_000, 0));
    assert_eq!(last.number("shed"), 0, "an analysis that waits does not shed");
    drop(done);
    assert!(reader.join().unwrap().unwrap() > 28_000 * 1500);
}

/// The analysis has a thread of its own: nothing changes in the books or the logs.
#[test]
fn an_analysis_apart_tells_the_same() {
    let Some(bed) = Bed::up("b-apart") else { return };
    let run = Run::start(&bed, "b-apart", &["--apart", "--record", "RECORDING"]);
    bed.send(&Sent { count: 5120, size: 200, rate: 50_000 });
    let done = run.end();
    assert_eq!(done.code, 0, "{}", done.errors);
    let last = Last::read(&done.logs, "interface");
    last.closes();
    assert_eq!((last.number("analysed"), last.number("recorded")), (5120, 5120));
    let conn = Log::read(&done.logs.join("conn.log"));
    assert_eq!(conn.len(), 256);
    assert!((0..256).all(|row| conn.value(row, "orig_pkts") == "20"));
}

/// Nobody reads the logs: rows are refused and counted, and every packet is analysed all the same.
#[test]
fn packets_are_analysed_though_nobody_reads_the_logs() {
    let Some(bed) = Bed::up("b-stall") else { return };
    let small = ["--workers", "24", "--ring", "128K", "--block", "16K"];
    let often = [&["--stats-interval", "20ms"][..], &small].concat();
    let run = Run::start_without_reader(&bed, "b-stall", &often);
    bed.send(&FEW);
    // Rows of the books alone are more than a megabyte, which is what may wait of them.
    std::thread::sleep(Duration::from_secs(4));
    run.signal("INT");
    let done = run.wait();
    let said = done.errors.matches("not written as fast as they are made").count();
    assert_eq!(said, 1, "at once, and once: {}", done.errors);
    assert!(done.errors.contains("rows of logs are missing"), "{}", done.errors);
}

/// Frames with a VLAN tag in them come whole, and are counted.
#[test]
fn tagged_packets_are_whole() {
    let Some(bed) = Bed::up("b-vlan") else { return };
    let run = Run::start(&bed, "b-vlan", &[]);
    bed.send_tagged(500);
    let done = run.end();
    let last = Last::read(&done.logs, "interface");
    last.closes();
    assert_eq!((last.number("retagged"), last.number("arrived")), (500, 500));
    let conn = Log::read(&done.logs.join("conn.log"));
    assert!(conn.len() > 0 && (0..conn.len()).all(|row| conn.value(row, "orig_pkts") != "0"));
}

/// Several rings, all of them full for a while.
#[test]
fn drops_at_several_rings_add_up() {
    let Some(bed) = Bed::up("b-rings") else { return };
    let small = ["--workers", "2", "--ring", "128K", "--block", "16K"];
    let arguments = [&["--stats-interval", "200ms"][..], &small].concat();
    let run = Run::start(&bed, "b-rings", &arguments);
    run.pause();
    bed.send(&Sent { count: 6000, size: 200, rate: 100_000 });
    run.resume();
    std::thread::sleep(Duration::from_millis(300));
    bed.send(&FEW);
    let done = run.end();
    let last = Last::read(&done.logs, "interface");
    last.closes();
    assert_eq!(last.number("arrived"), 7000);
    assert!(last.number("ring_dropped") > 3000);
    let log = Log::read(&done.logs.join("capture.log"));
    let rings = log.of(&[("final", "T"), ("scope", "ring")]);
    let dropped = rings.iter().map(|row| log.value(*row, "ring_dropped").parse::<u64>().unwrap());
    assert_eq!(dropped.sum::<u64>(), last.number("ring_dropped"));
    let gaps = Log::read(&done.logs.join("gaps.log"));
    let told = (0..gaps.len()).map(|row| gaps.value(row, "packets").parse::<u64>().unwrap());
    assert_eq!(told.sum::<u64>(), last.number("ring_dropped"));
    assert_eq!(reported_lost(&done.errors), last.number("ring_dropped"), "{}", done.errors);
}

/// Packets that a run said it had lost since the count before, all times together.
fn reported_lost(errors: &str) -> u64 {
    let said =
        errors.lines().filter_map(|line| line.split_once(" packets lost since the last count"));
    said.map(|(before, _)| before.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap()).sum()
}

/// Two interfaces, one of which receives what it sends.
#[test]
fn each_interface_has_its_own_books() {
    let Some(bed) = Bed::up("b-two") else { return };
    let run = Run::start(&bed, "b-two", &["-i", "lo"]);
    bed.send(&FEW);
    bed.send_to_itself(70);
    let done = run.end();
    assert_eq!(done.code, 0, "{}", done.errors);
    let log = Log::read(&done.logs.join("capture.log"));
    for (interface, packets) in [("rx0", "1000"), ("lo", "70")] {
        for scope in ["interface", "ring"] {
            let rows = log.of(&[("final", "T"), ("scope", scope), ("interface", interface)]);
            assert_eq!(rows.len(), 1, "{scope} {interface}");
            assert_eq!(log.value(rows[0], "delivered"), packets, "{scope} {interface}");
            assert_eq!(log.value(rows[0], "analysed"), packets, "{scope} {interface}");
        }
        let row = log.of(&[("final", "T"), ("scope", "interface"), ("interface", interface)])[0];
        assert_eq!(log.value(row, "arrived"), packets, "{interface}");
        assert_eq!(log.value(row, "unexplained"), "0", "{interface}");
    }
}
