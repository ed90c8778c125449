//! `netsniff lab offline` as a user runs it, without root, on small files.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

const STAGES: [&str; 7] = ["start", "read", "decode", "flows", "tcp", "protocols", "rows"];

/// A directory of its own, removed at the end.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir();
        let path = path.join(format!("netsniff-lab-offline-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    /// Sessions of hosts, as a file.
    fn sessions(&self) -> PathBuf {
        let path = self.0.join("sessions.pcapng");
        let made = Command::new(env!("CARGO_BIN_EXE_netsniff"))
            .args(["generate", "hosts", "-q", "--sessions", "20", "--seed", "7", "-w"])
            .arg(&path)
            .status()
            .unwrap();
        assert!(made.success());
        path
    }

    /// Runs the command: exit code, output and errors.
    fn offline(&self, file: &Path, options: &[&str]) -> (i32, String, String) {
        run(Command::new(env!("CARGO_BIN_EXE_netsniff"))
            .args(["lab", "offline"])
            .arg(file)
            .args(["--files", self.0.to_str().unwrap()])
            .args(options))
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn run(command: &mut Command) -> (i32, String, String) {
    let output = command.stdin(Stdio::null()).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

#[test]
fn a_file_is_measured_by_stage_and_by_option() {
    let directory = Directory::new("stages");
    let file = directory.sessions();
    let report = directory.0.join("report");
    let (code, output, errors) = directory.offline(
        &file,
        &[
            "--rounds=2",
            "--workers=1,2",
            "--with=prefix-preserving=-a",
            "--with=full=-a -m nullip",
            "--peers=none",
            "--json",
            "-o",
            report.to_str().unwrap(),
        ],
    );
    assert_eq!(code, 0, "{errors}");
    let said: Value = serde_json::from_str(&output).unwrap();
    let of_file = &said["files"][0];
    let packets = number(&of_file["capture"]["packets"]);
    assert!(packets > 500.0, "{packets}");
    let runs = of_file["runs"].as_array().unwrap();
    assert_eq!(
        runs.len(),
        3 * (STAGES.len() + 3),
        "three rounds, of which the first one does not count"
    );
    for run in runs {
        let expected = if run["subject"] == "start" { 0.0 } else { packets };
        assert_eq!((&run["failure"], number(&run["packets"])), (&Value::Null, expected), "{run}");
        assert!(number(&run["user_ns"]) + number(&run["system_ns"]) > 0.0, "{run}");
    }
    let stages = of_file["stages"].as_array().unwrap();
    let names: Vec<_> = stages.iter().map(|stage| stage["stage"].as_str().unwrap()).collect();
    assert_eq!(names, STAGES);
    // What the stages cost is what all of it takes: the mean of the two rounds that count.
    let sum: f64 = stages.iter().map(|stage| number(&stage["ns"]["value"])).sum();
    let whole = runs.iter().filter(|run| run["subject"] == "rows" && run["round"] != 0);
    let all: f64 = whole.map(|run| number(&run["wall_ns"])).sum();
    assert!((sum - all / 2.0 / packets).abs() < 1e-3, "{sum} {all}");
    let changes = of_file["changes"].as_array().unwrap();
    let names: Vec<_> = changes.iter().map(|change| change["subject"].as_str().unwrap()).collect();
    assert_eq!(names, ["rows, 2 workers", "prefix-preserving", "full"]);
    assert!(changes.iter().all(|change| change["times"]["interval"].is_array()), "{changes:?}");
    assert!(said["machine"]["kernel"].is_string() && said["command"].is_array(), "{said}");
    // The report has the same, and nothing else stays.
    let read = |name: &str| fs::read_to_string(report.join(name)).unwrap();
    assert_eq!(read("offline.json"), output);
    assert_eq!(read("offline.csv").lines().count(), 1 + runs.len());
    let page = read("offline.html");
    assert!(page.contains("Costs of stages, sessions.pcapng") && page.contains("<svg"), "no plot");
    let mut names = directory.names();
    names.sort_unstable();
    assert_eq!(names, ["report", "sessions.pcapng"]);
}

#[test]
fn other_programs_are_measured_or_named() {
    let directory = Directory::new("peers");
    let file = directory.sessions();
    // A program in the path that fails, one that says what it read, and nothing else.
    let bin = directory.0.join("bin");
    fs::create_dir(&bin).unwrap();
    let script = |name: &str, text: &str| {
        use std::os::unix::fs::PermissionsExt as _;
        let path = bin.join(name);
        fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    };
    script("softflowd", "echo 'softflowd version 9.9'; echo 'Packets processed: 12'");
    script("argus", "echo 'no licence' >&2; exit 7");
    let mut command = Command::new(env!("CARGO_BIN_EXE_netsniff"));
    let command = command.args(["lab", "offline", "--rounds=1", "--files"]).arg(&directory.0);
    let (code, output, errors) = run(command.arg(&file).env("PATH", &bin));
    assert_eq!(code, 1, "one failed: {output}{errors}");
    for absent in ["tcpdump", "tshark", "nfpcapd", "suricata", "zeek"] {
        assert!(output.contains(&format!("\n  {absent}: not installed\n")), "{absent}: {output}");
        assert!(errors.contains(&format!("left out: {absent}: not installed")), "{errors}");
    }
    let line = |name: &str| {
        let line = output.lines().find(|line| line.starts_with(name));
        line.unwrap_or_else(|| panic!("no line of {name} in {output}")).to_owned()
    };
    assert!(line("argus").ends_with("it failed (exit status: 7): no licence"), "{output}");
    assert!(line("softflowd").ends_with(" 12"), "{output}");
    assert!(line("netsniff, all, + rows").split_whitespace().count() > 8, "{output}");
}

#[test]
fn what_makes_no_sense_is_refused_before_anything_is_measured() {
    let directory = Directory::new("refused");
    let file = directory.sessions();
    for (options, words) in [
        (&["--with=x"][..], "expected NAME=OPTIONS"),
        (&["--with=x=--no-such-option"], "--with x: "),
        (&["--with=x=-o elsewhere"], "--with x: "),
        (&["--with=a=-a", "--with=a=-g"], "a is the name of two things"),
        (&["--with=rows=-a"], "rows is the name of two things"),
        (&["--peers=nmap"], "there is no nmap; there are tcpdump, "),
        (&["--workers=0"], "--workers"),
        (&["--rounds=0"], "--rounds"),
    ] {
        let (code, _, errors) = directory.offline(&file, options);
        assert_eq!(code, 2, "{options:?}: {errors}");
        assert!(errors.contains(words), "{options:?}: {errors}");
    }
    let text = directory.0.join("text");
    fs::write(&text, "no capture").unwrap();
    let (code, output, errors) = directory.offline(&text, &[]);
    assert_eq!((code, output.as_str()), (1, ""));
    assert!(errors.contains("is no capture file, of pcap or pcapng"), "{errors}");
}

#[test]
fn a_file_that_was_cut_is_measured_as_far_as_it_goes() {
    let directory = Directory::new("cut");
    let file = directory.sessions();
    let whole = fs::read(&file).unwrap();
    fs::write(&file, &whole[..whole.len() - 5]).unwrap();
    let (code, output, errors) =
        directory.offline(&file, &["--rounds=1", "--peers=none", "--quiet"]);
    assert_eq!(code, 0, "{output}{errors}");
    assert!(output.contains("The file is damaged"), "{output}");
}
