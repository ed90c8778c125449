//! `netsniff doctor tune` on a wire that is there: changes of the machine are tried, and taken back however it ends. Needs root
//! and OpenSSH; says so where they are missing. Alone in its binary, since it changes a setting of the whole host for a moment.

mod lab_bed;
mod live_bed;
mod ssh_bed;

use std::fs;
use std::io::Read as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use lab_bed::alone;
use live_bed::Setting;
use netsniff_testing::{Need, skip};
use serde_json::Value;
use ssh_bed::{Machines, NETSNIFF, WIRE};

const BACKLOG: &str = "net.core.netdev_max_backlog";

/// What the doctor advises instead of a short backlog at these rates, as its name is in a list of candidates.
const ADVISED: &str = "4000";
const CANDIDATE: &str = "sysctl -w net.core.netdev_max_backlog='4000'";

/// How long it may take until a change is tried: runs are repeated on a busy machine.
const PATIENCE: Duration = Duration::from_secs(180);

/// By when the tuner surely has read again what it set, which it would take for a refusal of the kernel if it were another
/// value by then. A run takes several times as long.
const SETTLED: Duration = Duration::from_millis(200);

/// Two machines; this one receives on another processor than it is sent from, and its backlog has room for one packet.
struct Short {
    machines: Machines,
    planted: Setting,
}

impl Short {
    fn make(test: &str) -> Option<Self> {
        if thread::available_parallelism().map_or(1, usize::from) < 2 {
            skip(Need::Processors, format_args!("{test} needs two processors"));
            return None;
        }
        let machines = Machines::make(test)?;
        let mask = format!("echo 2 > /sys/class/net/{}/queues/rx-0/rps_cpus", WIRE[1]);
        let inside = ["netns", "exec", &machines.receiver(), "sh", "-c", &mask];
        assert!(Command::new("ip").args(inside).status().unwrap().success());
        let Some(planted) = Setting::set(BACKLOG, "0") else {
            skip(Need::Kernel, format_args!("{test}: {BACKLOG} cannot be set here"));
            return None;
        };
        Some(Self { machines, planted })
    }

    fn state(&self) -> PathBuf {
        self.machines.directory.join("state")
    }

    /// What a tuner writes that was begun.
    fn told(&self) -> PathBuf {
        self.machines.directory.join("told")
    }

    /// The journal of what is only tried.
    fn journal(&self) -> PathBuf {
        self.state().join("tried/doctor.journal")
    }

    fn tune(&self, arguments: &[&str]) -> Command {
        let mut command = tune(&self.machines, &["--goal", "30k", "--only", CANDIDATE]);
        command.arg("--state").arg(self.state()).args(arguments);
        command
    }

    /// A tuner whose change is in force: its journal has it, and the kernel, too. It is held there, since it takes a change back
    /// within half a second.
    fn begun(&self) -> Tuner {
        let mut tune = self.tune(&["--pairs", "50"]);
        let told = fs::File::create(self.told()).unwrap();
        let mut tuner = Tuner(tune.stdout(told).stderr(Stdio::piped()).spawn().unwrap());
        let end = Instant::now() + PATIENCE;
        loop {
            assert!(Instant::now() < end, "the change is not tried");
            assert!(tuner.0.try_wait().unwrap().is_none(), "it has ended");
            if self.is_tried() {
                thread::sleep(SETTLED);
                tuner.hold();
                if self.is_tried() {
                    return tuner;
                }
                tuner.go_on();
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    fn is_tried(&self) -> bool {
        self.planted.now() == ADVISED && self.journal().exists()
    }

    fn assert_restored(&self) {
        assert_eq!(self.planted.now(), "0");
        assert!(!self.journal().exists());
    }
}

/// A tuner at the receiver, whose runs take half a second.
fn tune(machines: &Machines, arguments: &[&str]) -> Command {
    let mut command = machines.doctor();
    command.args(["tune", "--ssh", &machines.ssh()]);
    command.args(["--sender", "ssh://far", "--sender-interface", WIRE[0]]);
    command.args(["--sender-program", NETSNIFF, "--interface", WIRE[1]]);
    command.args(["--quiet", "--time", "500ms"]).args(arguments);
    command
}

/// It does not outlive this value.
struct Tuner(Child);

impl Tuner {
    /// Stops all of its threads, and returns when they are.
    fn hold(&self) {
        let pid = self.0.id();
        lab_bed::signal("-STOP", pid);
        let is_stopped = |task: &PathBuf| {
            let stat = fs::read_to_string(task.join("stat")).unwrap_or_default();
            // The state follows the name, which may have brackets of its own (proc_pid_stat(5)).
            stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with(['T', 'Z', 'X']))
        };
        let end = Instant::now() + Duration::from_secs(10);
        loop {
            let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
            if tasks.flatten().all(|task| is_stopped(&task.path())) {
                return;
            }
            assert!(Instant::now() < end, "it does not stop");
            thread::sleep(Duration::from_millis(1));
        }
    }

    fn go_on(&self) {
        lab_bed::signal("-CONT", self.0.id());
    }
}

impl Drop for Tuner {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn what_the_doctor_advises_is_measured_on_a_wire_and_taken_back() {
    let _alone = alone();
    let Some(short) = Short::make("d-wire") else { return };
    let output = short.machines.directory.join("tuned");
    let out = short.tune(&["--pairs", "3", "-o", output.to_str().unwrap()]).output().unwrap();
    let errors = String::from_utf8_lossy(&out.stderr);
    assert!(matches!(out.status.code(), Some(0 | 1)), "{errors}");
    let json = fs::read_to_string(output.join("tune.json"));
    let report: Value =
        serde_json::from_str(&json.unwrap_or_else(|why| panic!("{why}: {errors}"))).unwrap();
    short.assert_restored();
    let outcome = &report["outcomes"][0];
    assert_eq!(outcome["candidate"]["name"], CANDIDATE, "{report}");
    assert_eq!(outcome["candidate"]["what"]["machine"]["before"], "0", "{report}");
    if outcome["verdict"]["untried"].as_str().is_some_and(|why| why.contains("sender")) {
        skip(Need::Quiet, format_args!("d-wire: {outcome}"));
        return;
    }
    assert_eq!(outcome["verdict"], "kept", "{report}");
}

#[test]
fn a_tuner_that_is_asked_to_end_takes_its_change_back() {
    let _alone = alone();
    let Some(short) = Short::make("d-wire-term") else { return };
    let mut tune = short.begun();
    lab_bed::signal("-TERM", tune.0.id());
    tune.go_on();
    tune.0.wait().unwrap();
    short.assert_restored();
}

#[test]
fn a_tuner_that_is_killed_leaves_the_way_back() {
    let _alone = alone();
    let Some(short) = Short::make("d-wire-kill") else { return };
    let mut tune = short.begun();
    tune.0.kill().unwrap();
    tune.0.wait().unwrap();
    assert_eq!(short.planted.now(), ADVISED, "nobody could take it back");
    let state = short.state();
    let revert = ["--revert", "--state", state.to_str().unwrap()];
    let out = short.machines.doctor().args(revert).output().unwrap();
    let said = String::from_utf8_lossy(&out.stdout);
    assert!(out.status.success(), "{said}{}", String::from_utf8_lossy(&out.stderr));
    assert!(said.contains(&format!("taken back: sysctl -w {BACKLOG}='0'")), "{said}");
    short.assert_restored();
}

/// What somebody else sets while a change is tried is not the tuner's to take back: it ends, since all that follows would be
/// measured with that.
#[test]
fn a_tuner_ends_where_a_change_stays() {
    let _alone = alone();
    let Some(short) = Short::make("d-wire-stays") else { return };
    let mut tuner = short.begun();
    fs::write("/proc/sys/net/core/netdev_max_backlog", "77").unwrap();
    tuner.go_on();
    let mut said = String::new();
    tuner.0.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    said += &fs::read_to_string(short.told()).unwrap();
    assert_eq!(tuner.0.wait().unwrap().code(), Some(1), "{said}");
    assert!(said.contains(&format!("{BACKLOG} could not be taken back")), "{said}");
    assert_eq!(short.planted.now(), "77", "it is somebody else's");
    // The way back is still there.
    let state = short.state();
    let revert = ["--revert", "--force", "--state", state.to_str().unwrap()];
    let out = short.machines.doctor().args(revert).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    short.assert_restored();
}

/// Merged segments falsify a capture and lose nothing: the tuner measures that, and says that loss does not judge it.
#[test]
fn advice_about_content_is_not_judged_by_loss() {
    let _alone = alone();
    let Some(machines) = Machines::make("d-wire-content") else { return };
    let merge = ["netns", "exec", &machines.receiver(), "ethtool", "-K", WIRE[1], "gro", "on"];
    if !Command::new("ip").args(merge).output().is_ok_and(|out| out.status.success()) {
        skip(Need::Program("ethtool"), "segments are not merged here");
        return;
    }
    let output = machines.directory.join("tuned");
    let candidate = format!("ethtool -K {} rx-gro off", WIRE[1]);
    let state = machines.directory.join("state");
    let mut command = tune(&machines, &["--goal", "2k", "--pairs", "2", "--only", &candidate]);
    let out = command.arg("-o").arg(&output).arg("--state").arg(&state).output().unwrap();
    let (said, errors) =
        (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    assert!(matches!(out.status.code(), Some(0 | 1)), "{errors}");
    if said.contains("sender was") {
        skip(Need::Quiet, format_args!("d-wire-content: {said}"));
        return;
    }
    assert!(said.contains(&format!("{candidate}: lost")), "{said}{errors}");
    assert!(
        said.contains("no effect beyond noise: taken back; it rules what is captured"),
        "{said}"
    );
    let page = fs::read_to_string(output.join("tune.html")).unwrap();
    let effect = "without it the stack merges segments behind the driver";
    assert!(page.contains("What loss does not judge") && page.contains(effect));
    let features = ["netns", "exec", &machines.receiver(), "ethtool", "-k", WIRE[1]];
    let features = Command::new("ip").args(features).output().unwrap();
    let features = String::from_utf8_lossy(&features.stdout);
    assert!(features.contains("generic-receive-offload: on"), "{features}");
}
