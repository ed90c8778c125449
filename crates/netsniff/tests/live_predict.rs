//! `netsniff lab predict`: what is predicted, written down, run and scored. Runs need root; says so where it is missing.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use netsniff_lab::model::Model;
use netsniff_lab::model::fit::{Fit, Observation, Variant};
use netsniff_lab::model::ledger::LedgerEntry;
use netsniff_lab::model::stalls::Stalls;
use netsniff_lab::model::traffic::Traffic;
use netsniff_lab::model::wakes::Wakes;
use netsniff_lab::search::HighestRate;
use netsniff_lab::testbed::Layout;
use netsniff_lab::tools::Setting;
use netsniff_traffic::probe::frame;

mod lab_bed;

use lab_bed::{alone, is_able};
use netsniff_testing::{Need, skip};

const NETSNIFF: &str = env!("CARGO_BIN_EXE_netsniff");

/// Frames that cost nothing.
const FREE: Fit = Fit {
    slower: 1.0,
    cold: 0.0,
    kept: [0.0; 2],
    frame: [0.0; 2],
    wake: 0.0,
    share: 1.0,
    spread: 0.01,
};

/// A directory with a ledger that has a model: frames cost next to nothing but what the application takes.
struct Ledger(PathBuf);

impl Ledger {
    fn new(name: &str) -> Self {
        Self::of(name, |_| None)
    }

    /// Likewise of a capture's frames, which is made in the directory.
    fn of(name: &str, traffic: impl Fn(&Path) -> Option<Traffic>) -> Self {
        let name = format!("netsniff-predict-{}-{name}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir(&directory).unwrap();
        let model = Model {
            tool: "work".to_owned(),
            layout: Layout::default(),
            traffic: traffic(&directory),
            fit: FREE,
            variants: Vec::new(),
            gaps: vec![(128, 1500.0), (1024, 2000.0)],
            stalls: Stalls { watched: 1, lengths: Vec::new() },
            backlog: 1000,
            clock: netsniff_lab::model::simulate::Clock::default(),
            wakes: Wakes::default(),
            services: Vec::new(),
            observations: Vec::new(),
            left_out: 0,
            seconds: 30.0,
        };
        let ledger = Self(directory);
        ledger.write(model);
        ledger
    }

    fn write(&self, model: Model) {
        let entry = LedgerEntry::Model { at: 1, model: Box::new(model) };
        let line = serde_json::to_string(&entry).unwrap() + "\n";
        fs::write(self.0.join("ledger.jsonl"), line).unwrap();
    }

    /// Makes another model of its own.
    fn change(&self, change: impl FnOnce(&mut Model)) {
        let [LedgerEntry::Model { model, .. }] = &self.entries()[..] else { panic!("no model") };
        let mut model = Model::clone(model);
        change(&mut model);
        self.write(model);
    }

    fn run(&self, arguments: &[&str]) -> (Option<i32>, String, String) {
        let mut command = Command::new(NETSNIFF);
        command.args(["lab", "predict", "-o"]).arg(&self.0).args(arguments);
        let out = command.output().unwrap();
        let [output, errors] =
            [out.stdout, out.stderr].map(|text| String::from_utf8(text).unwrap());
        (out.status.code(), output, errors)
    }

    fn entries(&self) -> Vec<LedgerEntry> {
        let text = fs::read_to_string(self.0.join("ledger.jsonl")).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

impl Drop for Ledger {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The words that are printed of the first prediction, which was asked for.
fn row(output: &str) -> Vec<&str> {
    let row = output.lines().find_map(|line| line.strip_prefix("0 asked"));
    row.unwrap_or_else(|| panic!("{output}")).split_whitespace().collect()
}

/// A server of 40,000 packets a second: what is predicted needs no testbed.
const ASKED: [&str; 8] = ["--delay", "25us", "--ring", "4M", "--rate", "20k,60k", "--time", "2s"];

#[test]
fn what_is_asked_is_answered_and_written_down() {
    let ledger = Ledger::new("asked");
    let (code, output, errors) = ledger.run(&ASKED);
    assert_eq!(code, Some(0), "{errors}");
    let entries = ledger.entries();
    let losses = entries.iter().filter_map(|entry| match entry {
        LedgerEntry::Prediction { prediction, .. } => Some(prediction.total.value),
        _ => None,
    });
    let losses: Vec<_> = losses.collect();
    // Of 120,000 frames 80,000 are served, and one to three blocks of 1771 wait in the end, of those that are filled and the
    // one that is read.
    let lost = |blocks: f64| 1.0 - (80_000.0 + blocks * 1771.0) / 120_000.0;
    assert!(losses[0] == 0.0 && losses[1] > lost(3.0) && losses[1] < lost(1.0), "{losses:?}");
    assert_eq!(row(&output)[..6], ["512", "20,000", "32", "4,096", "25", "us"], "{output}");
    let page = fs::read_to_string(ledger.0.join("predict.html")).unwrap();
    assert!(page.contains("<h2>Every prediction</h2>") && page.ends_with("</html>\n"), "{page}");
    let csv = fs::read_to_string(ledger.0.join("predictions.csv")).unwrap();
    let lines: Vec<Vec<_>> = csv.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!((lines.len(), lines[0][18]), (3, "loss"), "{csv}");
    assert_eq!(lines[2][..6], ["1", "1", "asked", "512", "60000", "32"]);
    assert_eq!(lines[2][18].parse(), Ok(losses[1]), "{csv}");
    assert_eq!(lines[2][32..], [&["0", "0"][..], &[""; 11]].concat());
    // Asking again adds to it.
    assert_eq!(ledger.run(&["-q", "--rate", "30k", "--delay", "25us"]).0, Some(0));
    assert_eq!(ledger.entries()[..3], entries[..]);
    assert!(matches!(ledger.entries()[3], LedgerEntry::Prediction { number: 2, .. }));
}

/// Where the ring is full after some blocks, the first frame is lost when that was predicted. What holds the server up loses
/// earlier, and what holds the sender up later: one of the runs is not disturbed so much.
#[test]
fn the_first_loss_comes_within_the_interval() {
    let _alone = alone();
    let ledger = Ledger::new("first");
    let asked = ["--delay", "25us", "--ring", "4M", "--rate", "60k", "--time", "1s"];
    let (_, output, errors) = ledger.run(&[&asked[..], &["--score", "--repeat", "5"]].concat());
    if !is_able() {
        let what = "the_first_loss_comes_within_the_interval needs a testbed";
        skip(Need::Root, format_args!("{what}: {errors}"));
        return;
    }
    let entries = ledger.entries();
    let predicted = entries.iter().find_map(|entry| match entry {
        LedgerEntry::Prediction { prediction, .. } => prediction.first_loss_within,
        _ => None,
    });
    let [low, high] = predicted.unwrap();
    assert!(low < high && high - low < 0.1, "an interval that says something: {low} to {high}");
    let runs = entries.iter().filter_map(|entry| match entry {
        LedgerEntry::Run { trial, .. } if trial.is_valid() => trial.first_loss(),
        _ => None,
    });
    let runs: Vec<[f64; 2]> = runs.collect();
    if runs.is_empty() {
        skip(Need::Quiet, "this machine is too busy for a run that proves something");
        return;
    }
    let is_within = |[since, until]: &[f64; 2]| *since <= high && *until >= low;
    assert!(runs.iter().any(is_within), "{runs:?}, not {low} to {high}: {output}");
    assert!(output.contains("First losses") && output.contains("within"), "{output}");
}

#[test]
fn what_was_predicted_is_run_and_scored() {
    let _alone = alone();
    let ledger = Ledger::new("scored");
    assert_eq!(ledger.run(&ASKED).0, Some(0));
    let (code, output, errors) = ledger.run(&["--score", "--repeat", "1"]);
    if !is_able() {
        skip(
            Need::Root,
            format_args!("what_was_predicted_is_run_and_scored needs a testbed: {errors}"),
        );
        return;
    }
    let entries = ledger.entries();
    let runs: Vec<_> = entries
        .iter()
        .filter_map(|entry| match entry {
            LedgerEntry::Run { number, trial, .. } => Some((*number, trial)),
            _ => None,
        })
        .collect();
    assert!(runs.iter().any(|run| run.0 == 0) && runs.iter().any(|run| run.0 == 1), "{errors}");
    for (number, trial) in &runs {
        let expected = if *number == 0 { 0.0 } else { 1.0 - 85_241.0 / 120_000.0 };
        let lost = trial.counted.dropped.unwrap() as f64 / trial.sent as f64;
        // A sender that was held up sent less in the time.
        if trial.is_valid() {
            assert!((lost - expected).abs() < 0.03, "{lost}, not {expected}: {trial:?}");
        }
    }
    let is_valid = |number| runs.iter().any(|run| run.0 == number && run.1.is_valid());
    if !is_valid(0) || !is_valid(1) {
        skip(Need::Quiet, "this machine is too busy for a run that proves something");
        return;
    }
    assert_eq!(code, Some(0), "{errors}");
    assert!(output.contains("asked") && output.contains("half the spread"), "{output}");
    // The one that loses tells when it began to.
    let is_told = runs
        .iter()
        .any(|(number, trial)| *number == 1 && trial.is_valid() && trial.first_loss().is_some());
    assert_eq!(output.contains("First losses"), is_told, "{output}");
    let page = fs::read_to_string(ledger.0.join("predict.html")).unwrap();
    // Each of two points, and the legend, on a light and on a dark page.
    assert_eq!(page.matches("<circle").count(), 3 * 2, "{page}");
}

/// The longest burst is what the ring holds and what is served meanwhile, and trying finds it.
#[test]
fn the_longest_burst_is_found_by_trying() {
    let _alone = alone();
    let ledger = Ledger::new("bursts");
    let asked = ["--delay", "25us", "--ring", "4M", "--rate", "20k", "--time", "1s"];
    let tried = ["--score", "--repeat", "1", "--bursts", "1"];
    let (_, output, errors) = ledger.run(&[&asked[..], &tried].concat());
    if !is_able() {
        skip(
            Need::Root,
            format_args!("the_longest_burst_is_found_by_trying needs a testbed: {errors}"),
        );
        return;
    }
    let entries = ledger.entries();
    let found = entries.iter().find_map(|entry| match entry {
        LedgerEntry::Burst { number: 0, found, trials, .. } => Some((found, trials)),
        _ => None,
    });
    let Some((HighestRate::Rate(frames), trials)) = found else {
        skip(
            Need::Quiet,
            format_args!("this machine is too busy for a burst that proves something: {errors}"),
        );
        return;
    };
    // Three blocks of 1771 frames beside the one that is read, and what is served meanwhile.
    assert!((5000.0..7500.0).contains(frames), "{frames}: {errors}");
    assert!(trials.iter().any(|trial| trial.is_valid() && trial.is_lossless()), "{errors}");
    assert!(trials.iter().any(|trial| trial.is_valid() && !trial.is_lossless()), "{errors}");
    assert!(output.contains("Bursts without loss"), "{output}");
    let csv = fs::read_to_string(ledger.0.join("predictions.csv")).unwrap();
    let mut lines = csv.lines();
    let at = lines.next().unwrap().split(',').position(|name| name == "survived_found").unwrap();
    let told = lines.last().unwrap().split(',').nth(at).unwrap();
    assert_eq!(told.parse(), Ok(*frames), "{csv}");
}

/// Frames of two sizes: a burst of 24,000, 16 us apart, and one at the end of the pause of 417 ms after it.
fn capture(directory: &Path) -> PathBuf {
    let file = directory.join("bursts.pcap");
    // The header of a pcap file with times in nanoseconds, of Ethernet.
    let mut bytes = [0xa1b2_3c4d_u32, 2 | 4 << 16, 0, 0, 65535, 1].map(u32::to_le_bytes).concat();
    let mut put = |number: u32, at: u64| {
        let frame = frame(if number.is_multiple_of(2) { 300 } else { 900 }, number).unwrap();
        let length = frame.len() as u32;
        let head = [(at / 1_000_000_000) as u32, (at % 1_000_000_000) as u32, length, length];
        bytes.extend(head.map(u32::to_le_bytes).concat());
        bytes.extend(frame);
    };
    (0..24_000).for_each(|number| put(number, u64::from(number) * 16_000));
    put(0, 801_000_000);
    fs::write(&file, bytes).unwrap();
    file
}

/// A capture is predicted as it was recorded: a server that manages 40,000 frames a second loses a part of bursts that come
/// 29,963 a second on average, and nothing where they come evenly.
#[test]
fn a_capture_is_predicted_and_run() {
    let _alone = alone();
    let traffic = |directory: &Path| Some(Traffic::read(&capture(directory)).unwrap());
    let ledger = Ledger::of("capture", traffic);
    let file = ledger.0.join("bursts.pcap");
    let replay =
        ["--delay", "25us", "--ring", "4M", "--time", "2400ms", "--replay", file.to_str().unwrap()];
    let (code, output, errors) = ledger.run(&replay);
    assert_eq!(code, Some(0), "{errors}");
    let row = row(&output);
    assert_eq!(row[..2], ["599", "29,963"], "the mean size and rate of the file: {output}");
    let even = [&replay[..], &["--rate", "30k"]].concat();
    let (code, _, errors) = ledger.run(&even);
    assert_eq!(code, Some(0), "{errors}");
    let entries = ledger.entries();
    let losses = entries.iter().filter_map(|entry| match entry {
        LedgerEntry::Prediction { prediction, .. } => Some(prediction.total.value),
        _ => None,
    });
    let losses: Vec<_> = losses.collect();
    // Of 24,000 it serves 15,360 while they come, and the ring holds three blocks of 1525 beside the one that is read.
    assert!((losses[0] - 0.17).abs() < 0.064 && losses[1] == 0.0, "{losses:?}");
    let (code, _, errors) = ledger.run(&["--rate", "30k", "--delay", "25us"]);
    assert!(code == Some(2) && errors.contains("--replay says that questions are"), "{errors}");

    let (_, _, errors) = ledger.run(&["--score", "--repeat", "3"]);
    if !is_able() {
        skip(Need::Root, format_args!("a_capture_is_predicted_and_run needs a testbed: {errors}"));
        return;
    }
    for (number, expected) in losses.into_iter().enumerate() {
        let runs = ledger.entries().into_iter().filter_map(|entry| match entry {
            LedgerEntry::Run { number: of, trial, .. } if of as usize == number => Some(trial),
            _ => None,
        });
        let valid = runs.filter(|trial| trial.is_valid());
        let lost = valid.map(|it| it.counted.dropped.unwrap() as f64 / it.sent as f64);
        // What holds the server up makes it lose more, never less: the least is that of the least disturbed run.
        let Some(least) = lost.min_by(f64::total_cmp) else {
            skip(Need::Quiet, "this machine is too busy for a run that proves something");
            continue;
        };
        // A block of the ring has 1525 of these frames: more than one of them in a burst is no chance.
        assert!((least - expected).abs() < 0.064, "{least}, not {expected}: {errors}");
    }
    fs::write(&file, fs::read(&file).unwrap().split_at(40_000).0).unwrap();
    let (code, _, errors) = ledger.run(&replay);
    assert!(code == Some(1) && errors.contains("has changed since"), "{errors}");
}

/// Costs by how deep an analysis goes are told apart, from the question to the table.
#[test]
fn depths_are_asked_and_written_down() {
    let ledger = Ledger::new("depths");
    ledger.change(|model| {
        model.tool = "analyze".to_owned();
        model.variants = [("protocols", 30_000.0), ("tcp", 20_000.0)].map(variant).to_vec();
    });
    let asked = ["--tool", "analyze", "--rate", "60k", "--ring", "4M", "--time", "2s"];
    let asked = |depths: &str| ledger.run(&[&asked[..], &["--depth", depths]].concat());
    let (code, output, errors) = asked("protocols,tcp");
    assert_eq!(code, Some(0), "{errors}");
    assert_eq!(row(&output)[4..6], ["depth", "protocols"], "{output}");
    let csv = fs::read_to_string(ledger.0.join("predictions.csv")).unwrap();
    let lines: Vec<Vec<_>> = csv.lines().map(|line| line.split(',').collect()).collect();
    let column = |name: &str| lines[0].iter().position(|column| *column == name).unwrap();
    let (settings, lossless) = (column("settings"), column("lossless"));
    for (line, (depth, expected)) in
        lines[1..].iter().zip([("protocols", 1e9 / 30e3), ("tcp", 1e9 / 20e3)])
    {
        assert_eq!(line[settings], format!("depth={depth}"));
        let rate: f64 = line[lossless].parse().unwrap();
        assert!((rate / expected - 1.0).abs() < 0.1, "{rate}, not {expected}: {csv}");
    }
    // The page has what each costs.
    let page = fs::read_to_string(ledger.0.join("predict.html")).unwrap();
    assert!(page.contains("depth tcp") && page.contains("20,000"), "{page}");
    let (code, _, errors) = asked("packets");
    assert!(code == Some(2) && errors.contains("does not know depth=packets"), "{errors}");
}

fn variant((depth, kept): (&str, f64)) -> Variant {
    let settings = vec![Setting { name: "depth".to_owned(), value: depth.to_owned() }];
    Variant { settings, fit: Fit { kept: [kept, 0.0], ..FREE } }
}

/// What earlier versions have written down is still read, and still predicts.
#[test]
fn a_ledger_of_an_earlier_version_is_read() {
    let ledger = Ledger::new("old");
    let old =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/measurements/2026-11-23-predict.jsonl");
    fs::copy(old, ledger.0.join("ledger.jsonl")).unwrap();
    let before = ledger.entries().len();
    let (code, _, errors) = ledger.run(&["--rate", "30k", "--zip", "4", "--time", "1s"]);
    assert_eq!(code, Some(0), "{errors}");
    assert_eq!(ledger.entries().len(), before + 1);
}

#[test]
fn what_is_wrong_is_said() {
    let ledger = Ledger::new("wrong");
    for (arguments, words) in [
        (&[][..], "--rate asks"),
        (&["--rate", "1k", "--tool", "pigeon"], "losses of pigeon cannot be predicted"),
        (&["--rate", "1k", "--tool", "record", "--zip", "1"], "are of the tool work alone"),
        (&["--rate", "1k", "--depth", "tcp"], "--depth is of the tool analyze alone"),
        (&["--rate", "1k", "--depth", "deep"], "possible values: packets, flows, tcp, protocols"),
        (&["--rate", "1k", "--bursts", "1"], "--score"),
        (&["--rate", "1k", "--lossless", "1"], "--score"),
        (&["--plan", "3"], "--seed"),
        (&["--rate", "1k", "--seed", "3"], "--plan"),
        (&["--rate", "900M", "--delay", "1us"], "are more than the sender can send here"),
        (&["--rate", "100k", "--time", "1d"], "too many to simulate"),
        (&["--rate", "1k", "--size", "9"], "frames have 64 to 1518 bytes here, not 9"),
        (&["--rate", "1k", "--host", "queues=1,2"], "queues has one value here"),
        (&["--rate", "1k", "--keep-gaps"], "--keep-gaps is of --replay"),
        (&["--replay", "x", "--size", "512"], "cannot be used with"),
        (&["--plan", "3", "--seed", "1", "--size", "512"], "cannot be used with"),
    ] {
        let (code, _, errors) = ledger.run(arguments);
        assert_eq!(code, Some(2), "{errors}");
        assert!(errors.contains(words), "{errors}");
    }
    let (code, _, errors) = ledger.run(&["--rate", "1k", "--host", "queues=2"]);
    assert!(code == Some(1) && errors.contains("--calibrate makes a new one"), "{errors}");
    for other in [["--placement", "none"], ["--quota", "50"], ["--host", "processors=2"]] {
        let (code, _, errors) = ledger.run(&[&["--rate", "1k"], &other[..]].concat());
        assert!(code == Some(2) && errors.contains("of one whole processor"), "{errors}");
    }
    let path = ledger.0.join("ledger.jsonl");
    let text = fs::read_to_string(&path).unwrap() + "{\"is\":\"pigeon\"}\n";
    fs::write(&path, text).unwrap();
    let (code, _, errors) = ledger.run(&["--rate", "1k"]);
    assert!(code == Some(1) && errors.contains("line 2 of "), "{errors}");
}

#[test]
fn a_void_calibration_is_refused() {
    // Costs that make 15 % of the time of the one run, which had no time left; or nothing of what the application does.
    let missed = |model: &mut Model| {
        (model.fit.frame, model.fit.kept) = ([1000.0, 0.0], [1000.0, 0.0]);
        model.observations = vec![Observation {
            settings: Vec::new(),
            size: 512,
            raw: 0.0,
            least: 0.0,
            burst: 32,
            rate: 100e3,
            served: 50e3,
            time: 1.0,
        }];
    };
    let still = |model: &mut Model| {
        model.stalls = Stalls { watched: 1_000_000, lengths: vec![700_000] };
    };
    let free = |model: &mut Model| {
        missed(model);
        model.fit = Fit { slower: 0.1, ..FREE };
        model.observations[0].raw = 8000.0;
    };
    let refused = |change: &dyn Fn(&mut Model), words: &str| {
        let ledger = Ledger::new("void");
        ledger.change(change);
        let (code, _, errors) = ledger.run(&ASKED);
        assert!(code == Some(1) && errors.contains("the calibration is void: "), "{errors}");
        assert!(errors.contains(words) && errors.contains("calibrat"), "{errors}");
        assert_eq!(ledger.entries().len(), 1, "nothing was predicted");
    };

    refused(
        &missed,
        "the run of 512 bytes at 100,000 frames/s, 32 together is explained worst: its costs make 15 %",
    );

    refused(
        &free,
        "takes 800 ns in the run of 512 bytes at 100,000 frames/s, 32 together, but the application takes 8000 ns",
    );

    refused(&still, "stood still for 70 % of the time that it was watched");
}
