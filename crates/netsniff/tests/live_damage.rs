//! `netsniff lab damage`: flows that a loss damages, expected and counted. Losing packets really needs root; says so where
//! it is missing.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use netsniff_lab::testbed::Layout;
use serde_json::Value;

mod lab_bed;

use lab_bed::make;

const NETSNIFF: &str = env!("CARGO_BIN_EXE_netsniff");

fn netsniff(arguments: &[&str]) -> (Option<i32>, String, String) {
    let out = Command::new(NETSNIFF).args(arguments).output().unwrap();
    let [output, errors] = [out.stdout, out.stderr].map(|it| String::from_utf8(it).unwrap());
    (out.status.code(), output, errors)
}

/// A directory with sessions of hosts in `hosts.pcapng`, which goes with this value.
struct Traffic(PathBuf);

impl Traffic {
    fn new(name: &str) -> Self {
        let name = format!("netsniff-damage-{}-{name}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir(&directory).unwrap();
        let traffic = Self(directory);
        let hosts = ["generate", "hosts", "--n", "10", "--sessions", "200", "--seed", "3", "-w"];
        let capture = traffic.path("hosts.pcapng");
        let (code, _, errors) = netsniff(&[&hosts[..], &[&capture, "-q"]].concat());
        assert_eq!(code, Some(0), "{errors}");
        traffic
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }

    /// What `damage.json` says, and what is printed.
    fn damage(&self, name: &str, more: &[&str]) -> (Value, String) {
        let [capture, directory] = [self.path("hosts.pcapng"), self.path(name)];
        let words = ["lab", "damage", "--replay", &capture, "-o", &directory];
        let (code, output, errors) = netsniff(&[&words[..], more].concat());
        assert_eq!(code, Some(0), "{errors}");
        assert!(Path::new(&directory).join("damage.html").is_file());
        let json = fs::read(Path::new(&directory).join("damage.json")).unwrap();
        (serde_json::from_slice(&json).unwrap(), output)
    }
}

impl Drop for Traffic {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// What was counted in the rounds of a loss.
fn rounds(loss: &Value, of: &str) -> Vec<f64> {
    loss["rounds"].as_array().unwrap().iter().map(|round| number(&round[of])).collect()
}

/// The flows are those of the analysis, chance agrees with arithmetic, and a seed has its chance.
#[test]
fn flows_are_counted_as_they_are_analysed() {
    let traffic = Traffic::new("memory");
    let logs = traffic.path("logs");
    let analyzed = netsniff(&[
        "analyze",
        &traffic.path("hosts.pcapng"),
        "-o",
        &logs,
        "--format",
        "json",
        "-q",
    ]);
    assert_eq!(analyzed.0, Some(0), "{}", analyzed.2);
    let conn = fs::read_to_string(Path::new(&logs).join("conn.log")).unwrap();
    let mut lengths: Vec<u64> = conn
        .lines()
        .map(|line| {
            let row: Value = serde_json::from_str(line).unwrap();
            row["orig_pkts"].as_u64().unwrap_or(0) + row["resp_pkts"].as_u64().unwrap_or(0)
        })
        .collect();
    lengths.sort_unstable();
    let more = ["--simulate", "--seed", "7", "--loss", "0.1%,1%,5%", "--tolerate", "1%"];
    let (report, output) = traffic.damage("one", &more);
    assert_eq!(report["flows"], lengths.len());
    assert_eq!(report["packets"], lengths.iter().sum::<u64>());
    let longest = [lengths[0], lengths[lengths.len() / 2], lengths[lengths.len() - 1]];
    assert_eq!(report["lengths"], serde_json::json!(longest));
    assert!(output.contains("for 1 % damaged flows"), "{output}");
    let losses = report["losses"].as_array().unwrap();
    for (loss, share) in losses.iter().zip([0.001, 0.01, 0.05]) {
        let terms = lengths.iter().map(|packets| 1.0 - (1.0_f64 - share).powf(*packets as f64));
        let expected: f64 = terms.sum();
        assert!((number(&loss["expected"]["flows"]) / expected - 1.0).abs() < 1e-9, "{loss}");
        // Of a seed it is always the same; four standard deviations are one in 16,000 seeds.
        assert!(number(&loss["sigmas"]).abs() < 4.0, "{loss}");
        assert_eq!(rounds(loss, "flows").len(), 100);
    }
    rounds_are_lines(&report, &traffic.path("one"));
    assert_eq!(traffic.damage("again", &more).0["losses"], report["losses"]);
    // What is told to be tolerable damages just that share.
    let percent = number(&report["tolerable"][0]["loss"]) * 100.0;
    let (report, _) = traffic.damage("back", &["--simulate", "--loss", &percent.to_string()]);
    let flows = number(&report["losses"][0]["expected"]["flows"]);
    assert!((flows / lengths.len() as f64 / 0.01 - 1.0).abs() < 1e-9, "{flows}");
    assert!(report["testbed"].is_null() && report["counted"] == "memory");
}

/// What is in `damage.json` is in `damage.csv`.
fn rounds_are_lines(report: &Value, directory: &str) {
    let text = fs::read_to_string(Path::new(directory).join("damage.csv")).unwrap();
    let mut lines = text.lines();
    let names = "loss,round,packets,without_flow,lost,flows,damaged,expected,deviation";
    assert_eq!(lines.next(), Some(names));
    for loss in report["losses"].as_array().unwrap() {
        for (number, round) in (1..).zip(loss["rounds"].as_array().unwrap()) {
            let fields: Vec<f64> =
                lines.next().unwrap().split(',').map(|field| field.parse().unwrap()).collect();
            let expected = [
                number_of(loss, "loss"),
                f64::from(number),
                number_of(report, "packets"),
                number_of(report, "without_flow"),
                number_of(round, "lost"),
                number_of(report, "flows"),
                number_of(round, "flows"),
                number_of(&loss["expected"], "flows"),
                number_of(&loss["expected"], "deviation"),
            ];
            assert_eq!(fields, expected, "{round}");
        }
    }
    assert_eq!(lines.next(), None);
}

fn number_of(value: &Value, name: &str) -> f64 {
    number(&value[name])
}

/// One pair of ports that is silent for hours between is two flows, as in `conn`.
#[test]
fn flows_that_time_out_are_two() {
    let traffic = Traffic::new("again");
    let both = traffic.path("both.pcap");
    let mut bytes = Vec::new();
    for start in ["1700000000", "1700090000"] {
        let part = traffic.path("part.pcap");
        let frames = ["generate", "--flows", "1", "--rate", "10", "--count", "7", "-q"];
        let (code, _, errors) = netsniff(&[&frames[..], &["--start", start, "-w", &part]].concat());
        assert_eq!(code, Some(0), "{errors}");
        let part = fs::read(part).unwrap();
        // The header of a pcap has 24 bytes.
        bytes.extend_from_slice(if bytes.is_empty() { &part } else { &part[24..] });
    }
    fs::write(&both, bytes).unwrap();
    let (code, output, errors) =
        netsniff(&["lab", "damage", "--replay", &both, "--tolerate", "1%"]);
    assert_eq!(code, Some(0), "{errors}");
    assert!(output.starts_with("2 flows of 14 packets: 7.0 on average, 7 to 7"), "{output}");
}

/// Packets that a tap has really lost damage as many flows as are expected.
#[test]
fn lost_packets_damage_the_flows_that_are_expected() {
    let name = "lost_packets_damage_the_flows_that_are_expected";
    if make(name, &Layout::default()).is_none() {
        return;
    }
    let traffic = Traffic::new("tap");
    let (report, _) = traffic.damage("tap", &["--loss", "0.2%,2%", "--repeat", "2"]);
    let packets = number(&report["packets"]) + number(&report["without_flow"]);
    assert_eq!(report["counted"], "tap");
    for (loss, share) in report["losses"].as_array().unwrap().iter().zip([0.002, 0.02]) {
        let lost = rounds(loss, "lost");
        assert_eq!(lost.len(), 2, "{loss}");
        // Five standard deviations: one in two million by chance.
        let allowed = 5.0 * (packets * share * (1.0 - share)).sqrt();
        assert!(lost.iter().all(|lost| (lost - packets * share).abs() < allowed), "{loss}");
        assert!(number(&loss["sigmas"]).abs() < 5.0, "{loss}");
        for (flows, lost) in rounds(loss, "flows").iter().zip(&lost) {
            assert!(flows <= lost && *flows > 0.0, "{loss}");
        }
    }
    let left = fs::read_dir("/run/netns").into_iter().flatten().flatten();
    let names: Vec<_> = left.map(|it| it.file_name().to_string_lossy().into_owned()).collect();
    let ours = format!("nslab-{}-", std::process::id());
    assert!(names.iter().all(|name| !name.starts_with(&ours)), "{names:?}");
}

#[test]
fn without_a_capture_it_calculates() {
    let flows = ["lab", "damage", "--flows", "1000", "--packets", "20"];
    let (code, output, errors) = netsniff(&[&flows[..], &["--tolerate", "1%,100%"]].concat());
    assert_eq!(code, Some(0), "{errors}");
    // 1 - 0.99^(1/20).
    assert!(output.contains("for 1 % damaged flows (10.0) 0.050239 % of"), "{output}");
    assert!(output.contains("for 100 % damaged flows (1000.0) 100 % of"), "{output}");
    assert!(!output.contains("expected"), "{output}");
    let (_, output, _) = netsniff(&[&flows[..], &["--loss", "1%"]].concat());
    // 1000 (1 - 0.99^20), and nothing is counted.
    assert!(output.contains("182.1") && output.contains(" - "), "{output}");
}

#[test]
fn what_cannot_be_is_said() {
    let traffic = Traffic::new("wrong");
    let cut = traffic.path("cut.pcap");
    let capture = traffic.path("hosts.pcapng");
    let text = traffic.path("text");
    fs::write(&text, "no capture").unwrap();
    // A pcap of one packet of 60 bytes, of which 14 were captured.
    let words = [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, 1, 0, 0, 14, 60];
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    fs::write(&cut, [&bytes[..], &[2; 14]].concat()).unwrap();
    for (arguments, code, said) in [
        (&["--simulate"][..], 2, "--replay <FILE>"),
        (&["--replay", "no/such"], 1, "cannot open no/such"),
        (&["--replay", &text], 1, "is no capture"),
        (&["--replay", &cut, "--simulate"], 1, "the capture has no flow"),
        (&["--replay", &capture, "--packets", "2"], 2, "cannot be used with"),
        (&["--replay", &capture, "--loss", "101%"], 2, "a percentage from 0 to 100"),
        (&["--flows", "1G", "--packets", "9", "--simulate"], 2, "is more than 4,000,000"),
    ] {
        let (status, _, errors) = netsniff(&[&["lab", "damage"], arguments].concat());
        assert_eq!(status, Some(code), "{arguments:?}: {errors}");
        assert!(errors.contains(said), "{arguments:?}: {errors}");
    }
}
