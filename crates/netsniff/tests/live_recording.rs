//! `netsniff record`, and `analyze --record`, on a veth pair of this machine. Needs root; says so where it is
//! missing.

mod live_bed;

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use live_bed::{Bed, Log, Run, Sent};
use netsniff_packet::{Batch, Progress, Source as _, Timestamp};
use netsniff_testing::{Need, skip};
use netsniff_traffic::ledger::{Arrivals, Ledger};
use netsniff_traffic::probe;
use netsniff_traffic::stamp::Stamp;

/// Someone who reads a pipe must not wait for the end.
#[test]
fn a_pipe_gets_what_was_recorded_within_a_second() {
    let Some(bed) = Bed::up("pipe") else { return };
    let mut recorder = Command::new("ip")
        .args(["netns", "exec", &bed.receiver(), env!("CARGO_BIN_EXE_netsniff")])
        .args(["record", "-i", "rx0", "-w", "-", "--duration", "20s"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(recorder.stderr.take().unwrap()).lines().map_while(Result::ok);
    assert!(said.any(|line| line.contains("capturing;")), "it does not capture");
    bed.send(&Sent { count: 5, size: 300, rate: 1000 });
    let (all, is_there) = channel();
    let pipe = recorder.stdout.take().unwrap();
    thread::spawn(move || {
        let mut reader = netsniff_pcapfile::Reader::new(pipe).unwrap();
        let (mut batch, mut seen) = (Batch::default(), 0);
        while seen < 5 && reader.read_batch(&mut batch).unwrap() != Progress::End {
            seen += batch.iter().count();
        }
        let _ = all.send(seen);
    });
    // A second, and as much again for a machine that is busy.
    let seen = is_there.recv_timeout(Duration::from_secs(2));
    recorder.kill().unwrap();
    recorder.wait().unwrap();
    assert_eq!(seen, Ok(5), "packets wait in a buffer");
}

/// What a capture file holds of the frames that were sent, and the drops that it tells of.
fn arrivals(path: &Path, sent: u64) -> (Arrivals, u64) {
    let mut reader = netsniff_pcapfile::Reader::new(fs::File::open(path).unwrap()).unwrap();
    let (mut ledger, mut lost) = (Ledger::default(), 0);
    let mut batch = Batch::default();
    loop {
        let progress = reader.read_batch(&mut batch).unwrap();
        for packet in batch.iter() {
            ledger.note(Stamp::parse(&packet.data[probe::STAMP_AT..]).unwrap().sequence);
        }
        lost += batch.losses.iter().map(|(_, loss)| loss.packets).sum::<u64>();
        if progress == Progress::End {
            break;
        }
    }
    assert_eq!(reader.damage_count(), 0, "{:?}", reader.damage());
    (ledger.close(sent).unwrap(), lost)
}

fn netsniff(arguments: &[&str]) -> String {
    let out = Command::new(env!("CARGO_BIN_EXE_netsniff")).args(arguments).output().unwrap();
    assert!(out.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8_lossy(&out.stdout).into_owned()
}

#[test]
fn every_packet_is_in_the_file_with_what_the_kernel_counted() {
    let Some(bed) = Bed::up("record") else { return };
    let run = Run::record(&bed, "record", "out.pcapng", &[]);
    bed.send(&Sent { count: 3000, size: 300, rate: 30_000 });
    let done = run.end();
    assert_eq!(done.code, 0, "{}", done.errors);
    let (arrivals, _) = arrivals(&done.file("out.pcapng"), 3000);
    assert_eq!((arrivals.received, arrivals.lost, arrivals.duplicates), (3000, 0, 0));
    let info = netsniff(&["info", done.file("out.pcapng").to_str().unwrap()]);
    for word in ["rx0", "received 3,000", "by the system 0"] {
        assert!(info.contains(word), "{word} in {info}");
    }
    assert!(done.errors.contains("recorded") && done.errors.contains("good"), "{}", done.errors);

    let run = Run::record(&bed, "json", "out.pcap", &["--json"]);
    bed.send(&Sent { count: 300, size: 300, rate: 30_000 });
    let done = run.end();
    let json: serde_json::Value = serde_json::from_str(&done.output).unwrap();
    assert_eq!(json["recording"]["recorded"]["packets"], 300, "{json}");
    assert_eq!(
        (&json["capture"][0]["name"], &json["capture"][0]["arrived"]),
        (&"rx0".into(), &300.into())
    );
}

/// Whoever gave up its rights writes them beside the files.
#[test]
fn a_rolling_recording_has_indexes() {
    let Some(bed) = Bed::up("recindex") else { return };
    let run = Run::record(&bed, "recindex", "out.pcapng", &["--index", "-b", "packets:4000"]);
    bed.send(&Sent { count: 10_000, size: 600, rate: 30_000 });
    let done = run.end();
    assert_eq!(done.code, 0, "{}", done.errors);
    assert!(done.errors.contains("indexes of 3 files"), "{}", done.errors);
    let names = || fs::read_dir(done.directory()).unwrap().map(|entry| entry.unwrap().path());
    let has_suffix = |suffix: &'static str| {
        move |path: &std::path::PathBuf| path.extension().is_some_and(|it| it == suffix)
    };
    let size = |suffix| names().filter(has_suffix(suffix)).map(|it| it.metadata().unwrap().len());
    assert_eq!((size("nsi").count(), size("pcapng").count(), names().count()), (3, 3, 6));
    let (of_indexes, of_captures) = (size("nsi").sum::<u64>(), size("pcapng").sum::<u64>());
    assert!(of_indexes * 100 < of_captures, "{of_indexes} of {of_captures} bytes");
    // By the name of the recording, which is that of none of its files.
    let (input, output) = (done.file("out.pcapng"), done.file("one.pcap"));
    let words = ["extract", "--json", input.to_str().unwrap(), "-w", output.to_str().unwrap()];
    let report = netsniff(&[&words[..], &["--where", "orig_pkts > 0"]].concat());
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    assert_eq!(report["packets_written"], 10_000, "{report}");
}

/// The kernel has the memory, but the process may not map so much.
#[test]
fn a_ring_that_cannot_be_mapped_is_made_smaller() {
    let Some(bed) = Bed::up("recmap") else { return };
    let file = std::env::temp_dir().join(format!("netsniff-live-{}-map", std::process::id()));
    for backend in ["af-packet", "af-packet-v2"] {
        let limited = "ulimit -v 700000 && exec \"$@\"";
        let out = Command::new("ip")
            .args(["netns", "exec", &bed.receiver(), "bash", "-c", limited, "bash"])
            .arg(env!("CARGO_BIN_EXE_netsniff"))
            .args(["record", "-i", "rx0", "--ring", "1G", "--duration", "200ms", "--no-drop"])
            .args(["--backend", backend, "-w"])
            .arg(&file)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&out.stderr);
        let _ = fs::remove_file(&file);
        assert!(out.status.success(), "{backend}: {said}");
        let refused = said.lines().filter(|line| line.contains("was refused:")).collect::<Vec<_>>();
        assert!(refused.iter().any(|line| line.contains("a ring of 1.07 GB")), "{backend}: {said}");
        assert!(refused.iter().all(|line| line.ends_with("(ulimit -v)")), "{said}");
        assert!(said.contains(" granted of 1.07 GB wanted"), "{backend}: {said}");
    }
}

#[test]
fn drops_are_told_in_the_file() {
    let Some(bed) = Bed::up("recdrop") else { return };
    let run = Run::record(&bed, "recdrop", "out.pcapng", &["--ring", "128K", "--block", "16K"]);
    bed.send(&Sent { count: 200, size: 200, rate: 10_000 });
    run.pause();
    bed.send(&Sent { count: 4000, size: 200, rate: 100_000 });
    run.resume();
    thread::sleep(Duration::from_millis(300));
    bed.send(&Sent { count: 100, size: 200, rate: 10_000 });
    let done = run.end();
    assert_eq!(done.code, 0, "{}", done.errors);
    // Each of the bursts is numbered from 0.
    let (arrivals, told) = arrivals(&done.file("out.pcapng"), 4000);
    let lost = 4300 - arrivals.received;
    assert!(lost > 2000, "{lost}");
    assert_eq!(told, lost, "each lost packet is told before the one that follows");
    let info = netsniff(&["info", "--json", done.file("out.pcapng").to_str().unwrap()]);
    let info: serde_json::Value = serde_json::from_str(&info).unwrap();
    let text = info.to_string();
    let told = format!("\"dropped_by_os\":{lost}");
    assert!(text.contains(&told), "{told} in {text}");
}

#[test]
fn recordings_rotate_and_pack() {
    let Some(bed) = Bed::up("rotate") else { return };
    let rules = ["-b", "packets:1000", "--compress", "zstd"];
    let run = Run::record(&bed, "rotate", "out.pcapng.zst", &rules);
    bed.send(&Sent { count: 2500, size: 300, rate: 30_000 });
    let done = run.end();
    assert_eq!(done.code, 0, "{}", done.errors);
    let mut files: Vec<_> =
        fs::read_dir(done.directory()).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|suffix| suffix == "zst"));
    files.sort();
    assert_eq!(files.len(), 3, "{files:?}");
    let words: Vec<_> =
        ["info", "--json"].into_iter().chain(files.iter().map(|f| f.to_str().unwrap())).collect();
    assert!(netsniff(&words).contains("500"));
}

/// What a capture file of two interfaces holds of the frames that were sent to each, in the order of time.
fn arrivals_in_order(path: &Path, sent: u64) -> [Arrivals; 2] {
    let mut reader = netsniff_pcapfile::Reader::new(fs::File::open(path).unwrap()).unwrap();
    let mut ledgers = [Ledger::default(), Ledger::default()];
    let (mut batch, mut last) = (Batch::default(), Timestamp::MIN);
    loop {
        let progress = reader.read_batch(&mut batch).unwrap();
        for packet in batch.iter() {
            assert!(packet.timestamp >= last, "{:?} behind {last:?}", packet.timestamp);
            last = packet.timestamp;
            let stamp = Stamp::parse(&packet.data[probe::STAMP_AT..]).unwrap();
            ledgers[packet.interface as usize].note(stamp.sequence);
        }
        if progress == Progress::End {
            return ledgers.map(|ledger| ledger.close(sent).unwrap());
        }
    }
}

/// Four rings of two interfaces: one file, in which nothing is missing and nothing is behind what came later.
#[test]
fn several_rings_are_recorded_in_the_order_of_time() {
    const SENT: u64 = 10_000;
    let Some(bed) = Bed::up("recmerge") else { return };
    bed.add_pair(1);
    for command in ["record", "analyze"] {
        let run = match command {
            "record" => {
                Run::record(&bed, "recmerge", "RECORDING", &["-i", "rx1", "--workers", "2"])
            }
            _ => {
                let arguments = ["-i", "rx1", "--workers", "2", "--record", "RECORDING"];
                Run::start(&bed, "recmerge", &arguments)
            }
        };
        thread::scope(|scope| {
            for interface in ["tx0", "tx1"] {
                let sent = Sent { count: SENT, size: 200, rate: 20_000 };
                let bed = &bed;
                scope.spawn(move || bed.send_on(interface, &sent));
            }
        });
        let done = run.end();
        assert_eq!(done.code, 0, "{}", done.errors);
        let file = done.file("RECORDING");
        for arrivals in arrivals_in_order(&file, SENT) {
            let Arrivals { received, duplicates, .. } = arrivals;
            assert_eq!((received, arrivals.lost, duplicates), (SENT, 0, 0), "{command}");
        }
        let said = if command == "record" { &done.errors } else { &done.output };
        assert!(!said.contains("out of order"), "{said}");
        match Command::new("reordercap").arg("-n").arg(&file).arg(done.file("sorted")).output() {
            Ok(out) => {
                let said = String::from_utf8_lossy(&out.stdout);
                assert!(said.contains("20000 frames, 0 out of order"), "{said}");
            }
            Err(error) => skip(
                Need::Program("reordercap"),
                format_args!("the opinion of reordercap: {error}"),
            ),
        }
        if command == "analyze" {
            let books = Log::read(&done.logs.join("capture.log"));
            for row in books.of(&[("final", "T"), ("scope", "interface")]) {
                for (column, value) in
                    [("arrived", "10000"), ("analysed", "10000"), ("unexplained", "0")]
                {
                    assert_eq!(books.value(row, column), value, "{column}");
                }
            }
        }
    }
}

/// The logs of a live run are those of its recording, byte for byte.
#[test]
fn live_equals_file() {
    let Some(bed) = Bed::up("equal") else { return };
    let run = Run::start(&bed, "equal", &["--record", "RECORDING"]);
    bed.send(&Sent { count: 5000, size: 200, rate: 50_000 });
    let done = run.end();
    assert_eq!(done.code, 0, "{}", done.errors);
    let recording = done.file("RECORDING");
    let again = done.file("again");
    netsniff(&[
        "analyze",
        recording.to_str().unwrap(),
        "-o",
        again.to_str().unwrap(),
        "--workers",
        "1",
    ]);
    let rows = |path: &Path| -> Vec<String> {
        let text = fs::read_to_string(path).unwrap();
        text.lines()
            .filter(|line| !line.starts_with("#close") && !line.starts_with("#open"))
            .map(str::to_owned)
            .collect()
    };
    let (live, file) = (rows(&done.logs.join("conn.log")), rows(&again.join("conn.log")));
    assert_eq!(live.len(), 256 + 7, "rows and header lines");
    assert_eq!(live, file);
    let names = |directory: &Path| -> BTreeSet<String> {
        let entries = fs::read_dir(directory).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    };
    let mut expected = names(&again);
    expected.insert("capture.log".to_owned());
    assert_eq!(names(&done.logs), expected);
    let books = Log::read(&done.logs.join("capture.log"));
    let last = books.of(&[("final", "T"), ("scope", "interface")])[0];
    assert_eq!((books.value(last, "recorded"), books.value(last, "analysed")), ("5000", "5000"));
}

/// The ring fills up: new flows get less depth, and everything is analysed all the same.
#[test]
fn depth_is_shed_before_packets_are_lost() {
    let Some(bed) = Bed::up("shed") else { return };
    for (no_shed, name) in [(false, "shed-on"), (true, "shed-off")] {
        let mut arguments = vec!["--ring", "1M", "--block", "16K"];
        if no_shed {
            arguments.push("--no-shed");
        }
        let run = Run::start(&bed, name, &arguments);
        run.pause();
        // Four fifths of the ring, while nobody reads it.
        bed.send(&Sent { count: 2560, size: 200, rate: 50_000 });
        run.resume();
        let done = run.end();
        assert_eq!(done.code, 0, "{}", done.errors);
        let rows = Log::read(&done.logs.join("capture.log"));
        let last = rows.of(&[("final", "T"), ("scope", "interface")])[0];
        let number = |column: &str| rows.value(last, column).parse::<u64>().unwrap();
        assert_eq!((number("ring_dropped"), number("analysed")), (0, 2560));
        let parts = ["at_protocols", "at_tcp", "at_flows", "at_packets"].map(number);
        assert_eq!(parts.iter().sum::<u64>(), 2560, "{parts:?}");
        assert_eq!(parts[0] == 2560, no_shed, "{parts:?}");
        assert_eq!(number("shed") > 0, !no_shed);
    }
}
