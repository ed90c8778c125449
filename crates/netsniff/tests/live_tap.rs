//! Losses that are planted before, at and behind a tap: the kernel, the generator and the tool count the same. Needs
//! root; says so where it is missing.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use netsniff_lab::load::Load;
use netsniff_lab::testbed::{Layout, Testbed};
use netsniff_lab::tools::{Setting, Tool};
use netsniff_lab::trial::{self, Trial};

mod lab_bed;

use lab_bed::{alone, assert_swept, make};

const NETSNIFF: &str = env!("CARGO_BIN_EXE_netsniff");
fn setting(name: &str, value: &str) -> Setting {
    Setting { name: name.to_owned(), value: value.to_owned() }
}

/// A tap is not asked for: where it alone cannot be made, the tests fail.
fn can(test: &str) -> bool {
    make(test, &Layout::default()).is_some()
}

/// IPv4 packets that were for the namespace itself, and came to its stack.
fn received(bed: &Testbed) -> u64 {
    let words = ["netns", "exec", &bed.receiver(), "cat", "/proc/net/snmp"];
    let out = Command::new("ip").args(words).output().unwrap();
    let text = String::from_utf8(out.stdout).unwrap();
    let mut lines = text.lines().filter(|line| line.starts_with("Ip: "));
    let (names, values) = (lines.next().unwrap(), lines.next().unwrap());
    let at = names.split(' ').position(|name| name == "InReceives").unwrap();
    values.split(' ').nth(at).unwrap().parse().unwrap()
}

/// Runs until one counts to the packet, and what the receiver got in it. How even frames came does not matter.
fn valid(bed: &Testbed, tool: &Tool) -> (Trial, u64) {
    // As many frames as are asked for, however often a busy machine holds the sender up.
    let time = Duration::from_secs(15);
    let load = Load { size: 128, rate: Some(20_000.0), time, ..Load::default() };
    // The address of rx0: the receiver takes them, too.
    let options = [setting("count", "24000"), setting("dst-mac", "02:00:00:00:00:0b")];
    let load = load.with(&options);
    for _ in 0..10 {
        let before = received(bed);
        let trial = trial::run(bed, Path::new(NETSNIFF), tool, &load).unwrap();
        if trial.is_true_at_reached() {
            return (trial, received(bed) - before);
        }
        eprintln!("repeated: {trial:?}");
    }
    panic!("no run of ten proves anything");
}

/// Of 24,000 frames a hundredth is lost at each place, and at all of them: nobody miscounts one.
#[test]
fn the_kernel_the_generator_and_the_tool_agree() {
    let _alone = alone();
    if !can("the_kernel_the_generator_and_the_tool_agree") {
        return;
    }
    let record = Tool::all().into_iter().find(|tool| tool.name == "record").unwrap();
    let warden = [NETSNIFF, "lab", "warden"].map(str::to_owned);
    for settings in [
        &[("loss-before", 1.0)][..],
        &[("loss-at", 1.0)],
        &[("loss-behind", 1.0)],
        &[("loss-before", 1.0), ("loss-at", 2.0), ("loss-behind", 5.0)],
    ] {
        let host: Vec<_> =
            settings.iter().map(|(name, value)| setting(name, &format!("{value}%"))).collect();
        let bed = Testbed::make(&warden, &Layout::default().with(&host).unwrap()).unwrap();
        assert_eq!(bed.interface(), "mon0");
        let (trial, received) = valid(&bed, &record);
        let planted = trial.planted.unwrap();
        assert_eq!(trial.sent, 24_000, "{trial:?}");
        let share = |name| settings.iter().find(|(other, _)| *other == name).map_or(0.0, |it| it.1);
        for (name, lost, of) in [
            ("loss-before", planted.before, trial.arrived),
            ("loss-at", planted.at, trial.arrived - planted.before),
            ("loss-behind", planted.behind, planted.copied),
        ] {
            let (share, of) = (share(name) / 100.0, of as f64);
            // Five standard deviations of a binomial: one in two million by chance.
            let allowed = 5.0 * (of * share * (1.0 - share)).sqrt();
            assert!((lost as f64 - of * share).abs() <= allowed, "{name}: {trial:?}");
        }
        // The generator's count, the tap's, the interface's and the tool's.
        assert_eq!(trial.arrived, trial.sent);
        assert_eq!(planted.before + planted.at + planted.copied, trial.sent, "{trial:?}");
        assert_eq!(planted.behind + planted.monitored, planted.copied, "{trial:?}");
        assert_eq!(trial.counted.captured, Some(planted.monitored), "{trial:?}");
        assert_eq!(trial.counted.captured, Some(trial.sent - planted.lost()), "{trial:?}");
        assert!(trial.is_lossless() && trial.loss() == Some(0.0), "{trial:?}");
        // What is lost at or behind the tap the receiver has got all the same.
        assert_eq!(received, trial.sent - planted.before, "{trial:?}");
    }
}

/// What is planted stands in the table, in the files, and in the page.
#[test]
fn reports_tell_what_was_planted() {
    let _alone = alone();
    if !can("reports_tell_what_was_planted") {
        return;
    }
    let directory = std::env::temp_dir().join(format!("netsniff-tap-{}", std::process::id()));
    let _ = fs::remove_dir_all(&directory);
    let out = Command::new(NETSNIFF)
        .args(["lab", "sweep", "--tools", "count", "--sizes", "128", "--rates", "10k"])
        .args(["--time", "500ms", "--repeat", "1", "--host", "loss-before=0,100%", "-o"])
        .arg(&directory)
        .output()
        .unwrap();
    let [output, errors] = [out.stdout, out.stderr].map(|it| String::from_utf8(it).unwrap());
    assert_swept(out.status.code(), &errors);
    assert!(output.contains("planted %") && output.contains("loss-before 100%"), "{output}");
    assert!(errors.contains("; planted: 0 before, 0 at, 0 behind the tap"), "{errors}");
    let runs = fs::read_to_string(directory.join("runs.jsonl")).unwrap();
    let runs = runs.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let (mut some, mut none) = (0, 0);
    for run in runs {
        let trial = &run["trial"];
        let is_all = run["point"]["host"][0]["value"] == "100%";
        let lost = if is_all { &trial["sent"] } else { &serde_json::json!(0) };
        assert_eq!(&trial["planted"]["before"], lost, "{trial}");
        assert_eq!((&trial["planted"]["at"], &trial["planted"]["behind"]), (&0.into(), &0.into()));
        *if is_all { &mut some } else { &mut none } += 1;
    }
    assert!(some > 0 && none > 0);
    let csv = fs::read_to_string(directory.join("sweep.csv")).unwrap();
    assert!(csv.contains(",planted_before,planted_at,planted_behind,monitored,"), "{csv}");
    let html = fs::read_to_string(directory.join("sweep.html")).unwrap();
    assert!(html.contains("planted %"));
    fs::remove_dir_all(directory).unwrap();
    let left = fs::read_dir("/run/netns").into_iter().flatten().flatten();
    let ours = format!("nslab-{}-", std::process::id());
    assert!(left.map(|it| it.file_name()).all(|it| !it.to_string_lossy().starts_with(&ours)));
}
