//! `netsniff lab` between two machines, which are two namespaces here. Needs root and OpenSSH; says so where they are
//! missing.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use netsniff_lab::certificate::Statement;
use netsniff_lab::search::HighestRate;
use serde_json::Value;

mod lab_bed;
mod lab_certificate;
mod ssh_bed;

use lab_bed::alone;
use lab_certificate::{Files, MODEST};
use netsniff_testing::{Need, has_program, skip};
use ssh_bed::{Machines, NETSNIFF, WIRE, until};

/// Arguments of a lab whose other machine is as it should be.
const THERE: [&str; 8] = [
    "--sender",
    "ssh://far",
    "--sender-interface",
    WIRE[0],
    "--sender-program",
    NETSNIFF,
    "--interface",
    WIRE[1],
];

/// Runs a sweep into a directory, and gives its runs.
fn sweep(machines: &Machines, name: &str, arguments: &[&str]) -> Vec<Value> {
    let output = machines.directory.join(name);
    let mut command = machines.lab("sweep");
    command.args(THERE).args(["--repeat", "1", "-o"]).arg(&output).args(arguments);
    let out = command.output().unwrap();
    let errors = String::from_utf8_lossy(&out.stderr).into_owned();
    // The code tells of points that no run proves, which some are made to be.
    assert!(matches!(out.status.code(), Some(0 | 1)), "{errors}");
    let runs = fs::read_to_string(output.join("runs.jsonl")).unwrap();
    runs.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The sender's interface, the receiver's and the tools agree to the packet.
#[test]
fn two_machines_count_to_the_packet() {
    let _alone = alone();
    let Some(machines) = Machines::make("two_machines_count_to_the_packet") else { return };
    let sizes = ["--sizes", "128,512", "--rates", "5k", "--time", "1s"];
    let tools = ["--tools", "record,tcpdump", "--send", "flows=1,9"];
    let runs = sweep(&machines, "counted", &[&sizes[..], &tools].concat());
    assert!(runs.len() >= 4, "{runs:?}");
    for run in &runs {
        let trial = &run["trial"];
        let faults = trial["faults"].as_array().unwrap();
        // Other programs may hold the sender up.
        assert!(faults.iter().all(|fault| fault == "slips" || fault == "rate"), "{run}");
        assert!(trial["sent"].as_u64().unwrap() > 1000, "{run}");
        for counted in [&trial["arrived"], &trial["counted"]["captured"]] {
            assert_eq!(*counted, trial["sent"], "{run}");
        }
        assert_eq!(trial["counted"]["dropped"], 0, "{run}");
    }
    let head = fs::read(machines.directory.join("counted/sweep.json")).unwrap();
    let head: Value = serde_json::from_slice(&head).unwrap();
    assert_eq!(head["sender"]["netsniff"], env!("CARGO_PKG_VERSION"));
    assert_eq!(head["sender"]["kernel"], head["machine"]["kernel"]);
    assert_eq!(head["testbed"]["wire"]["sender"], "ssh://far");
    let page = fs::read_to_string(machines.directory.join("counted/sweep.html")).unwrap();
    assert!(page.contains("a wire from w0 of ssh://far to w1 of this machine"));
    assert!(page.contains("kernel of the sender"));
    until("all has ended there", || machines.running_there().is_empty());
    assert_eq!(machines.files_there(), 0);
    let again = [&sizes[..], &tools, &["--resume"]].concat();
    assert_eq!(sweep(&machines, "counted", &again), runs, "nothing is missing");
}

/// A search finds the rate of a sender that is no faster: where nothing is lost at that, it is a bound.
#[test]
fn a_search_finds_what_the_other_machine_can_send() {
    let _alone = alone();
    let test = "a_search_finds_what_the_other_machine_can_send";
    let Some(machines) = Machines::make(test) else { return };
    // As fast as possible is 4,000 frames a second there.
    let slow = machines.directory.join("slow");
    let script = format!(
        "#!/bin/sh\nfor word; do shift; case $word in --topspeed) set -- \"$@\" --rate 4000;; \
         *) set -- \"$@\" \"$word\";; esac; done\nexec {NETSNIFF} \"$@\"\n"
    );
    fs::write(&slow, script).unwrap();
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&slow, executable).unwrap();
    let mut there = THERE;
    let at = there.iter().position(|word| *word == "--sender-program").unwrap();
    there[at + 1] = slow.to_str().unwrap();
    let output = machines.directory.join("found");
    let mut command = machines.lab("lossless");
    command.args(there).args(["--tools", "count", "--set", "ring=4M", "--sizes", "1518", "-o"]);
    let out = command.arg(&output).output().unwrap();
    let [text, errors] = [out.stdout, out.stderr].map(|text| String::from_utf8(text).unwrap());
    if errors.contains("held up") && out.status.code() == Some(1) {
        skip(Need::Quiet, format_args!("{test}: this machine is too busy: {errors}"));
        return;
    }
    assert_eq!(out.status.code(), Some(0), "{errors}");
    let report: Value =
        serde_json::from_slice(&fs::read(output.join("lossless.json")).unwrap()).unwrap();
    let cell = &report["cells"][0];
    let rate = cell["found"]["rate"].as_f64().unwrap();
    // On a busy machine something is lost at times, and then the rate is a little lower.
    let is_found = ["at-least", "rate"].contains(&cell["found"]["is"].as_str().unwrap());
    assert!(is_found && (3000.0..4400.0).contains(&rate), "{cell}");
    assert!(text.contains("less than"), "{text}");
    let steps = cell["steps"].as_array().unwrap();
    let confirmed = steps.iter().filter(|step| step["purpose"] == "confirm");
    assert!(confirmed.count() >= 3, "{cell}");
    // Whatever was lost, frames are counted to the packet at both ends.
    for step in steps {
        assert_eq!(step["arrived"], step["sent"], "{step}");
    }
    assert!(cell["confirmed"].as_u64().unwrap() > 100_000, "{cell}");
    assert_eq!(report["sender"]["netsniff"], env!("CARGO_PKG_VERSION"));
    assert_eq!(report["machine"]["interfaces"][0]["interface"], WIRE[1]);
    until("all has ended there", || machines.running_there().is_empty());
    assert_eq!(machines.files_there(), 0);
}

/// A capture is copied to the machine that sends, and goes with the lab.
#[test]
fn captures_are_sent_by_the_other_machine() {
    let _alone = alone();
    let Some(machines) = Machines::make("captures_are_sent_by_the_other_machine") else { return };
    let capture = machines.directory.join("it's a capture.pcap");
    let file = capture.to_str().unwrap();
    let words = ["generate", "-w", file, "--size", "200,300", "--count", "50", "--rate", "1k"];
    assert!(Command::new(NETSNIFF).args(words).output().unwrap().status.success());
    let replay = ["--replay", file, "--tools", "count", "--rates", "2k,3k", "--time", "300ms"];
    let can_restrict = ["/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cgroup.controllers"];
    let quota = can_restrict.iter().any(|at| Path::new(at).exists());
    let quota = if quota { &["--quota", "80"][..] } else { &[] };
    let all = ["--host", "processors=all"];
    let runs = sweep(&machines, "replayed", &[&replay[..], quota, &all].concat());
    assert!(runs.len() >= 2, "{runs:?}");
    for run in &runs {
        assert_eq!(run["point"]["load"]["size"], 250);
        assert_eq!(run["point"]["host"][0]["value"], "all");
        let trial = &run["trial"];
        assert!(trial["sent"].as_u64().unwrap() > 300, "{run}");
        assert_eq!(trial["counted"]["captured"], trial["sent"], "{run}");
    }
    until("all has ended there", || machines.running_there().is_empty());
    assert_eq!(machines.files_there(), 0);
}

/// Frames of somebody else, from either end, make a run prove nothing.
#[test]
fn other_frames_on_the_wire_are_a_fault() {
    let _alone = alone();
    let Some(machines) = Machines::make("other_frames_on_the_wire_are_a_fault") else { return };
    let ends = [machines.sender(), machines.receiver()];
    for (at, expected) in [(0, &["generator", "wire"][..]), (1, &["wire"])] {
        let words = ["netns", "exec", &ends[at], NETSNIFF, "generate", "--interface", WIRE[at]];
        let mut other = Command::new("ip");
        other.args(words).args(["--size", "64", "--rate", "20", "--duration", "1m"]);
        let mut other = other.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let load = ["--tools", "count", "--sizes", "128", "--rates", "2k", "--time", "500ms"];
        let runs = sweep(&machines, &format!("disturbed-{at}"), &load);
        other.kill().unwrap();
        other.wait().unwrap();
        assert_eq!(runs.len(), 3, "none proves anything: {runs:?}");
        for run in &runs {
            let faults = run["trial"]["faults"].as_array().unwrap();
            let faults: Vec<_> = faults.iter().filter_map(Value::as_str).collect();
            assert!(expected.iter().all(|fault| faults.contains(fault)), "{at}: {run}");
            assert_eq!(faults.contains(&"generator"), at == 0, "{run}");
        }
    }
}

fn start(machines: &Machines, time: &str) -> Child {
    let mut command = machines.lab("sweep");
    command.args(THERE).args(["--tools", "record", "--rates", "2k", "--sizes", "128"]);
    command.args(["--repeat", "1", "--time", time]);
    command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
}

/// What is here of a lab: processes, and files of its testbed.
fn running_here(machines: &Machines, pid: u32) -> Vec<String> {
    let out = Command::new("ip").args(["netns", "pids", &machines.receiver()]).output().unwrap();
    let mut left: Vec<_> =
        String::from_utf8(out.stdout).unwrap().lines().map(str::to_owned).collect();
    let files = fs::read_dir("/dev/shm").unwrap().flatten();
    let names = files.map(|entry| entry.file_name().to_string_lossy().into_owned());
    left.extend(names.filter(|name| name.starts_with(&format!("nslab-{pid}-"))));
    left
}

/// However the lab ends, or its connection, nothing stays on either machine.
#[test]
fn nothing_stays_on_either_machine() {
    let _alone = alone();
    let Some(machines) = Machines::make("nothing_stays_on_either_machine") else { return };
    for (name, time) in [("-INT", "2s"), ("-KILL", "5m"), ("ssh", "5m")] {
        let lab = start(&machines, time);
        let pid = lab.id();
        let sends = |line: &String| {
            line.contains("netsniff --no-config generate") && !line.contains("sh -c")
        };
        until("it sends", || machines.running_there().iter().any(sends));
        assert!(machines.files_there() > 0 && !running_here(&machines, pid).is_empty());
        let signal = |name: &str, pid: &str| {
            let killed = Command::new("kill").args([name, pid]).status().unwrap();
            assert!(killed.success());
        };
        match name {
            "ssh" => {
                let here = running_here(&machines, pid);
                let is_ssh = |pid: &&String| {
                    let name = fs::read_to_string(format!("/proc/{pid}/comm"));
                    name.is_ok_and(|name| name == "ssh\n")
                };
                signal("-KILL", here.iter().find(is_ssh).unwrap());
            }
            name => signal(name, &pid.to_string()),
        }
        // Well before what is sent would have ended by itself.
        let out = lab.wait_with_output().unwrap();
        until(&format!("nothing stays after {name}"), || {
            machines.running_there().is_empty()
                && machines.files_there() == 0
                && running_here(&machines, pid).is_empty()
        });
        let errors = String::from_utf8_lossy(&out.stderr).into_owned();
        let expected = if name == "-KILL" { None } else { Some(1) };
        assert_eq!(out.status.code(), expected, "{name}: {errors}");
        assert_eq!(errors.contains("ssh://far: the connection ended"), name == "ssh", "{errors}");
    }
}

/// What is wrong with the other machine is said before anything is measured.
#[test]
fn a_machine_that_cannot_send_is_said() {
    let _alone = alone();
    let Some(machines) = Machines::make("a_machine_that_cannot_send_is_said") else { return };
    let old = machines.directory.join("old");
    fs::write(&old, "#!/bin/sh\necho netsniff 0.0.1\n").unwrap();
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&old, executable).unwrap();
    let old = old.to_str().unwrap();
    let here = env!("CARGO_PKG_VERSION");
    let versions = format!("is version 0.0.1, and this is version {here}");
    let closed = "ssh://10.77.0.1:1: cannot be reached by ssh: ssh: connect to host";
    for (option, value, words) in [
        ("--sender", "ssh://10.77.0.1:1", closed),
        (
            "--sender",
            "ssh://stranger@far",
            "cannot be reached by ssh: stranger@10.77.0.1: Permission",
        ),
        ("--sender-program", "/no/such", "there is no program /no/such on ssh://far: install"),
        ("--sender-program", old, &versions),
        ("--sender-program", "true", "true on ssh://far is not netsniff: it says"),
        ("--sender-interface", "moon0", "ssh://far has no interface moon0; it has lo, m0, w0"),
        ("--sender-interface", "it's", "ssh://far has no interface it's; it has"),
        ("--interface", "moon0", "moon0"),
    ] {
        let mut arguments = THERE;
        let at = arguments.iter().position(|word| *word == option).unwrap();
        arguments[at + 1] = value;
        let output = machines.directory.join("never");
        let mut command = machines.lab("lossless");
        command.args(arguments).args(["--tools", "count", "-o"]).arg(&output);
        let out = command.output().unwrap();
        let errors = String::from_utf8_lossy(&out.stderr).into_owned();
        assert_eq!(out.status.code(), Some(1), "{value}: {errors}");
        assert!(errors.contains(words), "{value}: {errors}");
        assert!(!output.exists(), "{value}: a directory was made for nothing");
    }
    until("all has ended there", || machines.running_there().is_empty());
    assert_eq!(machines.files_there(), 0);
}

/// What is certified of a real interface holds there, and no longer once it is set otherwise; the machine that sent is
/// reached where that is said, and not because a certificate names it.
#[test]
fn a_certificate_is_of_an_interface() {
    let _alone = alone();
    let test = "a_certificate_is_of_an_interface";
    let Some(machines) = Machines::make(test) else { return };
    let files = Files::make("wired");
    let certify = |words: &[&str]| {
        let out = machines.lab("certify").args(words).output().unwrap();
        let [text, errors] = [out.stdout, out.stderr].map(|text| String::from_utf8(text).unwrap());
        (out.status.code(), text, errors)
    };
    // What it would certify is not measured in such a time.
    let (key, made) = (files.at("key.pem"), files.at("made"));
    let words = ["--key", &key, "--sizes", "128", "--budget", "1s", "-o", &made];
    let (code, text, errors) = certify(&[&words[..], &THERE].concat());
    assert_eq!(code, Some(1), "{text}{errors}");
    assert!(text.contains("a wire from w0 of ssh://far to w1 of this machine"), "{text}");
    assert!(text.contains("interface    w1, driver veth"), "{text}");
    let certificate = fs::read_to_string(format!("{made}/certificate.json")).unwrap();
    let (statement, _) = Statement::verified(&certificate, None).unwrap();
    assert!(fs::read_to_string(format!("{made}/certificate.html")).unwrap().contains("the sender"));
    files.certify(&[(128, HighestRate::Rate(MODEST))], |it| *it = statement.configuration.clone());

    let (file, public) = (files.at("certificate.html"), files.at("key.pub.pem"));
    let given = ["--verify", &file, "--public", &public, "--check", "4s"];
    let verify = |more: &[&str]| certify(&[&given[..], more].concat());
    let (code, text, errors) = verify(&THERE);
    if text.contains("was not proved") {
        skip(Need::Quiet, format_args!("{test}: this machine is too busy: {text}"));
        return;
    }
    assert_eq!((code, text.contains("It holds.")), (Some(0), true), "{text}{errors}");
    let out = Command::new(NETSNIFF).args(["lab", "certify"]).args(given).output().unwrap();
    let text = String::from_utf8(out.stdout).unwrap();
    assert_eq!(out.status.code(), Some(1), "{text}");
    assert!(text.contains("--sender is none, certified is ssh://far"), "{text}");
    assert!(text.contains("another machine sent the frames"), "{text}");
    let (code, text, _) = verify(&[&THERE[..], &["--quota", "1", "--set", "ring=128K"]].concat());
    assert_eq!(code, Some(1));
    assert!(text.contains("--quota is 1 %, certified is none"), "{text}");

    if !has_program("ethtool", "{test}: offloads need ethtool") {
        return;
    }
    let before = statement.configuration.machine.interfaces[0].offloads.clone();
    let is_on = before.iter().find(|(name, _)| name == "gro").unwrap().1;
    let set = ["netns", "exec", &machines.receiver(), "ethtool", "-K", WIRE[1], "gro"];
    let set = Command::new("ip").args(set).arg(if is_on { "off" } else { "on" }).output().unwrap();
    assert!(set.status.success(), "{set:?}");
    let no_check = ["--verify", &file, "--public", &public, "--no-check"];
    let (code, text, _) = certify(&[&no_check[..], &THERE].concat());
    assert_eq!(code, Some(1));
    assert!(text.contains("It does not hold: what w1 offloads is"), "{text}");
    until("all has ended there", || machines.running_there().is_empty());
}

/// What is no matter of such a wire is wrong usage.
#[test]
fn what_no_wire_has_is_said() {
    let there = |more: &[&'static str]| -> Vec<&'static str> {
        [&["sweep", "--rates", "1k", "--tools", "count"], &THERE[..], more].concat()
    };
    let changed = "of a wire between machines it changes neither the interfaces nor the kernel";
    for (arguments, words) in [
        (there(&["--placement", "rps"]), "--placement is of a testbed that the lab makes"),
        (there(&["--host", "queues=2"]), changed),
        (there(&["--host", "loss-at=1%"]), changed),
        (there(&["--host", "net.core.rmem_max=1000"]), changed),
        (vec!["lossless", "--sender", "far"], "\"far\" is not ssh://[USER@]HOST[:PORT]"),
        (vec!["lossless", "--sender", "ssh://far", "-i", "w1"], "--sender-interface <IFACE>"),
        (vec!["lossless", "--interface", "w1"], "--sender <URL>"),
        (there(&["--ssh", " "]), "it has no words"),
        (vec!["lossless", "--sender-interface", "a/b"], "\"a/b\" is no name of an interface"),
        (
            vec!["predict", "-o", "x", "--sender", "ssh://far"],
            "only lab lossless, lab sweep and lab certify",
        ),
        (
            vec!["paper", "s3", "-o", "x", "--sender", "ssh://far"],
            "only lab lossless, lab sweep and lab certify",
        ),
        (
            vec!["certify", "--key", "x", "-o", "x", "--sender", "ssh://far"],
            "--sender-interface <IFACE>",
        ),
        (vec!["damage", "--sender", "ssh://far"], "only lab lossless, lab sweep and lab certify"),
    ] {
        let out = Command::new(NETSNIFF).arg("lab").args(&arguments).output().unwrap();
        let errors = String::from_utf8_lossy(&out.stderr).into_owned();
        assert_eq!(out.status.code(), Some(2), "{arguments:?}: {errors}");
        assert!(errors.contains(words), "{arguments:?}: {errors}");
    }
}
