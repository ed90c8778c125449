//! The doctor on recorded answers of a real driver: virtio_net 1.0.0 of Linux 6.18, recorded with
//! `netsniff doctor -i eth0 --no-packets --save`.

use std::process::{Command, Output};

use netsniff_testing::{Need, skip};
use serde_json::Value;

const NETSNIFF: &str = env!("CARGO_BIN_EXE_netsniff");

fn doctor(arguments: &[&str]) -> Output {
    Command::new(NETSNIFF).arg("doctor").args(arguments).output().unwrap()
}

fn recorded() -> String {
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/doctor/virtio-net.json").to_owned()
}

fn stage(report: &Value, id: &str) -> Value {
    let stages = report["stages"].as_array().unwrap();
    stages.iter().find(|stage| stage["id"] == id).unwrap_or_else(|| panic!("{id}")).clone()
}

#[test]
fn a_recorded_driver_is_diagnosed_without_it() {
    let out = doctor(&["--json", "--from", &recorded()]);
    assert_eq!(out.status.code(), Some(0), "{}", String::from_utf8_lossy(&out.stderr));
    let report: Value = serde_json::from_slice(&out.stdout).unwrap();
    let ring = &stage(&report, "nic-ring")["knobs"][0];
    assert_eq!((&ring["value"], &ring["most"]), (&Value::from("256"), &Value::from("256")));
    assert_eq!(
        stage(&report, "coalescing")["knobs"][0]["value"],
        "adaptive-rx off rx-usecs 0 rx-frames 1"
    );
    assert_eq!(stage(&report, "queues")["knobs"][0]["value"], "1");
    // What ethtool -S had: counters of the driver, beside the kernel's.
    let wire = stage(&report, "wire");
    let counters = wire["counters"].as_array().unwrap();
    assert!(
        counters.iter().any(|it| it["name"] == "rx_drops" && it["source"] == "ethtool -S"),
        "{counters:?}"
    );
    // ethtool -k: rx-gro on, and rx-gro-hw on and not to be changed.
    let offloads = stage(&report, "offloads");
    let of = |name: &str| {
        let knobs = offloads["knobs"].as_array().unwrap().iter();
        knobs.clone().find(|it| it["setting"]["name"] == name).unwrap().clone()
    };
    // Nobody captures there, so that nothing is falsified.
    assert_eq!((&of("rx-gro")["value"], &of("rx-gro")["advice"]), (&"on".into(), &Value::Null));
    assert_eq!(
        (&of("rx-gro-hw")["is_fixed"], &of("rx-gro-hw")["advice"]),
        (&true.into(), &Value::Null)
    );
    // /proc/interrupts: virtio2-input.0 is of this interface, and no other one is.
    let interrupts = stage(&report, "interrupts");
    assert_eq!(interrupts["knobs"].as_array().unwrap().len(), 1, "{interrupts}");
    assert!(interrupts["counters"][0]["name"].as_str().unwrap().contains("virtio2-input.0"));
}

#[test]
fn what_was_saved_tells_nothing_of_whoever_saved_it() {
    let path = std::env::temp_dir().join(format!("netsniff-saved-{}.json", std::process::id()));
    let saved = ["-i", "lo", "--time", "100ms", "--no-packets", "--save", path.to_str().unwrap()];
    let out = doctor(&saved);
    assert_eq!(out.status.code(), Some(0), "{}", String::from_utf8_lossy(&out.stderr));
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert!(text.contains("/sys/class/net/lo/statistics/rx_packets"), "{text}");
    for word in ["/proc/self", "/home", "/tmp", "/root", "environ", "cmdline"] {
        assert!(!text.contains(word), "{word}");
    }
}

#[test]
fn a_page_has_all_stages_in_order() {
    let out = doctor(&["--all", "--from", &recorded()]);
    let page = String::from_utf8(out.stdout).unwrap();
    let at = |name: &str| page.find(name).unwrap_or_else(|| panic!("{name} is not in {page}"));
    let names = [
        "WIRE AND INTERFACE\n",
        "RING OF THE INTERFACE\n",
        "NAPI\n",
        "BACKLOG AND STEERING\n",
        "PROCESSORS\n",
    ];
    assert!(names.map(at).is_sorted());
    let buffers = String::from_utf8(doctor(&["--buffers"]).stdout).unwrap();
    assert!(
        buffers
            .contains("bufsize  524288, maxbufsize  1048576:  524288 bytes, full after  41.94 ms"),
        "{buffers}"
    );
}

/// A directory with a journal of one change: the backlog, from 1 to what it is.
struct State(std::path::PathBuf, String);

impl State {
    fn new(name: &str) -> Option<Self> {
        let Ok(now) = std::fs::read_to_string("/proc/sys/net/core/netdev_max_backlog") else {
            skip(Need::Kernel, "no backlog of the kernel can be read here");
            return None;
        };
        let path =
            std::env::temp_dir().join(format!("netsniff-state-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        let (setting, now) =
            ("{\"kind\":\"sysctl\",\"name\":\"net.core.netdev_max_backlog\"}", now.trim());
        let line = format!("{{\"setting\":{setting},\"before\":\"1\",\"after\":\"{now}\"}}\n");
        std::fs::write(path.join("doctor.journal"), line).unwrap();
        Some(Self(path, now.to_owned()))
    }

    /// What a run without a change prints.
    fn dry(&self, arguments: &[&str]) -> String {
        let state = ["--dry-run", "--state", self.0.to_str().unwrap()];
        let out = doctor(&[arguments, &state].concat());
        let errors = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(0), "{arguments:?}: {errors}");
        let names = std::fs::read_dir(&self.0).unwrap();
        let names: Vec<_> = names.map(|it| it.unwrap().file_name()).collect();
        assert_eq!(names, ["doctor.journal"], "a dry run makes nothing");
        String::from_utf8(out.stdout).unwrap()
    }
}

impl Drop for State {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_dry_run_tells_all_that_would_be_done() {
    let Some(state) = State::new("dry") else { return };
    let kept = format!(
        "would write /etc/sysctl.d/90-netsniff-doctor.conf:\n# Written by netsniff doctor --persist. `netsniff doctor --revert` \
         removes it.\nnet.core.netdev_max_backlog = {}\n",
        state.1
    );
    assert!(state.dry(&["--persist"]).contains(&kept), "{}", state.dry(&["--persist"]));
    // The wire has no setting, so nothing is advised of it.
    let apply = ["-i", "lo", "--time", "100ms", "--no-packets", "--apply", "--only", "wire"];
    let said = state.dry(&[&apply[..], &["--persist"]].concat());
    assert!(said.contains("nothing is advised") && said.contains(&kept), "{said}");
    assert!(!state.dry(&apply).contains("would write"));
    assert_eq!(
        state.dry(&["--revert"]),
        "would change: sysctl -w net.core.netdev_max_backlog='1'\n"
    );
}

#[test]
fn wrong_usage_is_told() {
    for (arguments, words) in [
        (&["-i", "nowhere0"][..], "there is no interface nowhere0"),
        (&["--from", "/nonexistent.json"], "/nonexistent.json"),
        (&["--dry-run"], "--dry-run says what"),
        (&["--only", "backlog"], "--apply"),
        (&["--apply", "--only", "moon"], "moon"),
        (&["tune", "--goal", "fast"], "neither a rate"),
        (&["tune", "--only", "moon=1"], "there is nothing to try"),
        (&["tune", "--tool", "moon"], "there is no tool moon"),
    ] {
        let out = doctor(arguments);
        let errors = String::from_utf8_lossy(&out.stderr);
        assert!(matches!(out.status.code(), Some(1 | 2)), "{arguments:?}: {errors}");
        assert!(errors.contains(words), "{arguments:?}: {errors}");
    }
    // A file that is something else.
    let own = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    let errors = String::from_utf8_lossy(&doctor(&["--from", own]).stderr).into_owned();
    assert!(errors.contains("no file of netsniff doctor --save"), "{errors}");
}
