//! What the order of packets, their stamps and the snap length do to the logs, and what the summary says of it.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use netsniff_packet::{LinkType, Packet, Timestamp};
use netsniff_pcapfile::{Interface, PcapngWriter, Resolution, Section};
use netsniff_traffic::Random;
use netsniff_traffic::dialogue::{Dialogue, Setup, Side};
use netsniff_traffic::frame::Host;
use serde_json::Value;

use crate::zeek::corpus::Scratch;

type Frames = Vec<(Timestamp, Vec<u8>)>;

/// Connections on networks that lose and reorder, with the same options as real ones, in the order of time.
fn dialogues(number: u8) -> Frames {
    let mut frames = Frames::new();
    for seed in 0..number {
        let host =
            |net: u8, port| Host::new(format!("10.{net}.0.{}", 1 + seed).parse().unwrap(), port);
        let setup = Setup {
            client: host(1, 40_000 + u16::from(seed)),
            server: host(2, 80),
            start: Timestamp::from_nanos(1_700_000_000_000_000_000 + 7_000_001 * i64::from(seed)),
            delay: (Duration::from_micros(900), Duration::from_millis(8)),
            loss: (0.01, 0.01),
            seed: u64::from(seed),
            timestamps: true,
            sack: true,
            ..Setup::default()
        };
        let mut dialogue = Dialogue::new(setup);
        dialogue.connect();
        for _ in 0..4 {
            dialogue.say(Side::Client, &[b'q'; 300]).say(Side::Server, &[b'a'; 30_000]);
        }
        dialogue.close(Side::Client).close(Side::Server);
        frames.extend(dialogue.finish().seen.into_iter().map(|seen| (seen.timestamp, seen.frame)));
    }
    frames.sort_by_key(|frame| frame.0);
    frames
}

/// Writes a capture that kept so many bytes of each packet.
fn write(path: &Path, frames: &Frames, snaplen: usize) {
    let file = BufWriter::new(File::create(path).unwrap());
    let mut writer = PcapngWriter::new(file, &Section::default()).unwrap();
    let interface =
        Interface { resolution: Resolution::NANOSECONDS, ..Interface::new(LinkType::ETHERNET, 0) };
    writer.add_interface(&interface).unwrap();
    for (timestamp, frame) in frames {
        let (timestamp, wire_len) = (*timestamp, frame.len() as u32);
        let data = &frame[..snaplen.min(frame.len())];
        let link_type = LinkType::ETHERNET;
        writer
            .write_packet(&Packet { timestamp, data, wire_len, link_type, interface: 0 })
            .unwrap();
    }
    std::io::Write::flush(&mut writer.finish().unwrap()).unwrap();
}

/// The logs of a run, and what its summary says must be known.
struct Run {
    logs: BTreeMap<String, Vec<u8>>,
    notes: Vec<String>,
}

impl Run {
    fn of(scratch: &Scratch, captures: &[&PathBuf], arguments: &[&str]) -> Self {
        let output = scratch.path().join("logs");
        fs::remove_dir_all(&output).ok();
        let mut command = Command::new(env!("CARGO_BIN_EXE_netsniff"));
        command.arg("analyze").args(captures).arg("-o").arg(&output).arg("--json").args(arguments);
        let out = command.output().unwrap();
        assert_eq!(out.status.code(), Some(0), "{}", String::from_utf8_lossy(&out.stderr));
        let summary: Value = serde_json::from_slice(&out.stdout).unwrap();
        let notes = summary["notes"].as_array().unwrap();
        let notes = notes.iter().map(|note| note.as_str().unwrap().to_owned()).collect();
        let read = |entry: std::io::Result<fs::DirEntry>| {
            let path = entry.unwrap().path();
            (
                path.file_name().unwrap().to_str().unwrap().to_owned(),
                rows(&fs::read(&path).unwrap()),
            )
        };
        Self { logs: fs::read_dir(&output).unwrap().map(read).collect(), notes }
    }

    /// The note that has these words; none where there is no such note.
    fn note(&self, words: &str) -> Option<&str> {
        self.notes.iter().map(String::as_str).find(|note| note.contains(words))
    }

    /// The sum of a column of the log `tcp`.
    fn sum(&self, column: &str) -> u64 {
        let text = String::from_utf8_lossy(&self.logs["tcp.log"]);
        let names = text.lines().find_map(|line| line.strip_prefix("#fields\t")).unwrap();
        let at = names.split('\t').position(|name| name == column).unwrap();
        let rows = text.lines().filter(|line| !line.starts_with('#'));
        rows.map(|row| row.split('\t').nth(at).unwrap().parse::<u64>().unwrap()).sum()
    }
}

/// A log without the lines that tell when it was written.
fn rows(log: &[u8]) -> Vec<u8> {
    let lines = log.split_inclusive(|&byte| byte == b'\n');
    lines
        .filter(|line| !line.starts_with(b"#open") && !line.starts_with(b"#close"))
        .collect::<Vec<_>>()
        .concat()
}

#[test]
fn a_window_restores_what_disorder_spoils() {
    let scratch = Scratch::new("disorder");
    fs::create_dir_all(scratch.path()).unwrap();
    let [ordered, shuffled] =
        ["ordered.pcapng", "shuffled.pcapng"].map(|name| scratch.path().join(name));
    let frames = dialogues(20);
    write(&ordered, &frames, usize::MAX);
    // Each packet stands up to 4 ms late.
    let mut random = Random::new(3);
    let mut late: Vec<_> = frames
        .into_iter()
        .map(|frame| (frame.0.offset(random.below(4_000_000) as i64), frame))
        .collect();
    late.sort_by_key(|(place, _)| *place);
    let frames: Frames = late.into_iter().map(|(_, frame)| frame).collect();
    write(&shuffled, &frames, usize::MAX);

    let truth = Run::of(&scratch, &[&ordered], &[]);
    let spoiled = Run::of(&scratch, &[&shuffled], &["--reorder", "0"]);
    let restored = Run::of(&scratch, &[&shuffled], &["--reorder", "5ms"]);
    let partly = Run::of(&scratch, &[&shuffled], &["--reorder", "1ms"]);
    assert!(truth.logs == restored.logs, "every row of every log is that of the ordered capture");
    assert!(truth.sum("orig_rtt_samples") + truth.sum("resp_rtt_samples") > 100);
    assert_ne!(truth.logs["tcp.log"], spoiled.logs["tcp.log"]);
    let out_of_order = |run: &Run| run.sum("orig_out_of_order") + run.sum("resp_out_of_order");
    assert!(out_of_order(&spoiled) > out_of_order(&truth) + 100, "{}", out_of_order(&spoiled));
    assert!(truth.note("earlier than one read before").is_none());
    assert!(
        restored.note("earlier than one read before").is_none()
            && restored.note("--reorder").is_none()
    );

    // A packet is late where one before it has a later stamp: without a window that is known of the file.
    let mut latest = Timestamp::MIN;
    let is_late = |(time, _): &&(Timestamp, Vec<u8>)| {
        latest = latest.max(*time);
        *time < latest
    };
    let late = frames.iter().filter(is_late).count();
    let told = spoiled.note("earlier than one read before").unwrap();
    let number =
        |note: &str| note.split(": ").last().unwrap().split([',', ' ']).next().unwrap().to_owned();
    let shown = netsniff_console::number::count(late as u64);
    assert!(told.contains(&format!("before: {shown}, by at most")), "{told}, and there are {late}");
    let told = partly.note("too late for the window of 1.00 ms of --reorder").unwrap();
    assert!(number(told) != "0", "{told}");
}

#[test]
fn equal_stamps_keep_their_order_and_are_told_with_what_explains_them() {
    let scratch = Scratch::new("stamps");
    fs::create_dir_all(scratch.path()).unwrap();
    let path = |name: &str| scratch.path().join(name);
    let frames = dialogues(5);
    let words = "packets with the stamp of the packet before";
    let [once, again, coarse] = ["once.pcapng", "again.pcapng", "coarse.pcapng"].map(path);
    write(&once, &frames, usize::MAX);
    write(&again, &frames, usize::MAX);
    let single = Run::of(&scratch, &[&once], &[]);
    assert_eq!(single.note(words), None);

    // The same trace twice: each packet and its copy.
    let merged = Run::of(&scratch, &[&once, &again], &[]);
    let told = merged.note(words).unwrap();
    let equal = frames.windows(2).filter(|pair| pair[0].0 == pair[1].0).count() + frames.len();
    assert!(
        told.contains(&format!("before: {} (", netsniff_console::number::count(equal as u64))),
        "{told}, not {equal}"
    );
    assert!(told.contains("may be in the input twice"), "{told}");
    assert!(!told.contains("clock"), "{told}");

    // A clock that ticks every 10 ms.
    let tick = |time: Timestamp| Timestamp::from_nanos(time.nanos() / 10_000_000 * 10_000_000);
    let ticked: Frames = frames.iter().map(|(time, frame)| (tick(*time), frame.clone())).collect();
    write(&coarse, &ticked, usize::MAX);
    let run = Run::of(&scratch, &[&coarse], &[]);
    let told = run.note(words).unwrap();
    assert!(
        told.contains("multiples of 10.0 ms, and this resolution of the clock explains it"),
        "{told}"
    );
    // In their order, nothing is out of order.
    assert_eq!(run.note("earlier than one read before"), None);
    let sizes = |run: &Run| run.sum("orig_unique_bytes") + run.sum("resp_unique_bytes");
    assert_eq!(sizes(&run), sizes(&single));
    let reordered = Run::of(&scratch, &[&coarse], &["--reorder", "50ms"]);
    assert!(reordered.logs == run.logs, "a window leaves packets of one stamp in their order");
}

#[test]
fn headers_that_the_snap_length_cuts_are_counted_by_layer_with_what_is_enough() {
    let scratch = Scratch::new("snaplen");
    fs::create_dir_all(scratch.path()).unwrap();
    let capture = scratch.path().join("cut.pcapng");
    let frames = dialogues(3);
    // Ethernet, IPv4 without options, and what the header of TCP says.
    let headers = |frame: &[u8]| 34 + usize::from(frame[46] >> 4) * 4;
    let longest = frames.iter().map(|(_, frame)| headers(frame)).max().unwrap();
    let words = "the snap length of the capture cut headers of";
    let note = |snaplen: usize| {
        write(&capture, &frames, snaplen);
        let run = Run::of(&scratch, &[&capture], &[]);
        run.note(words).map(str::to_owned)
    };
    let shown = |number: usize| netsniff_console::number::count(number as u64);
    for (snaplen, layer, enough) in
        [(10, "eth", 14), (30, "ip", 34), (50, "tcp", 54), (60, "tcp", longest)]
    {
        let cut = frames.iter().filter(|(_, frame)| snaplen < headers(frame)).count();
        let expected =
            format!(": {layer} {}; {enough} bytes would have kept these headers", shown(cut));
        let told = note(snaplen).unwrap();
        assert!(told.ends_with(&expected), "{snaplen}: {told}, not {expected}");
    }
    assert_eq!(note(longest), None, "what is behind the headers is no header");
    assert_eq!(note(usize::MAX), None);
}
