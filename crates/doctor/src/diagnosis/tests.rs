//! Findings and advice from what was watched.

use std::collections::BTreeMap;

use super::*;
use crate::kernel::Recorded;
use crate::look::Look;
use crate::look::{Capture, Thread};
use crate::setting::Setting;
use crate::stage::{Knob, Loss};
use crate::watch::{Busy, Elephant, Packets, replay};

fn watched(stages: Vec<Stage>) -> Watched {
    Watched {
        nanos: 1_000_000_000,
        ticks: Vec::new(),
        stages,
        busy: vec![
            Busy { processor: 0, mean: 0.1, peak: 0.2, ..Busy::default() },
            Busy { processor: 1, mean: 1.0, softirq: 0.6, peak: 1.0, ..Busy::default() },
        ],
        siblings: BTreeMap::new(),
        peak_rate: Some(500_000),
        rate: Some(100_000),
        captures: Vec::new(),
        packets: None,
    }
}

fn counted(id: StageId, name: &str, loss: Loss, during: u64) -> Stage {
    let mut stage = Stage::new(id);
    stage.count(name, "file", Some(100 + during), loss);
    stage.counters[0].during = Some(during);
    stage
}

fn with(mut stage: Stage, setting: Setting, value: &str, most: Option<&str>) -> Stage {
    stage.knobs.push(Knob {
        setting,
        rules: "",
        value: Some(value.to_owned()),
        most: most.map(str::to_owned),
        is_fixed: false,
        holds: None,
        advice: None,
    });
    stage
}

fn advised(diagnosis: &Diagnosis) -> Vec<String> {
    let knobs = diagnosis.watched.stages.iter().flat_map(|stage| &stage.knobs);
    knobs.filter_map(|knob| Some(knob.advice.as_ref()?.value.clone())).collect()
}

#[test]
fn the_stage_that_loses_most_comes_first() {
    let backlog = with(
        counted(StageId::Backlog, "dropped", Loss::Packets, 7),
        Setting::sysctl("net.core.netdev_max_backlog"),
        "1000",
        None,
    );
    let ring = with(
        counted(StageId::Wire, "rx_missed_errors", Loss::Packets, 9),
        Setting::Ring { interface: "eth0".into() },
        "256",
        Some("8192"),
    );
    let napi = counted(StageId::Napi, "time_squeeze", Loss::Sign, 3);
    let diagnosis = Diagnosis::of("eth0", Some(1000), watched(vec![ring, napi, backlog]));
    assert_eq!(diagnosis.worst(), Some(StageId::Wire));
    let levels: Vec<_> = diagnosis.findings.iter().map(|it| (it.stage, it.level)).collect();
    assert_eq!(
        levels[..3],
        [
            (StageId::Wire, Level::Losing),
            (StageId::Backlog, Level::Losing),
            (StageId::Napi, Level::Near),
        ]
    );
    // 40 ms at the rate of the peak.
    assert_eq!(advised(&diagnosis), ["20000"]);
}

#[test]
fn rings_grow_where_the_interface_loses_and_not_beyond_the_cache() {
    let wire = counted(StageId::Wire, "rx_missed_errors", Loss::Packets, 9);
    let ring = |now, most| {
        with(
            Stage::new(StageId::NicRing),
            Setting::Ring { interface: "eth0".into() },
            now,
            Some(most),
        )
    };
    let of = |wire: &Stage, ring| {
        advised(&Diagnosis::of("eth0", Some(1000), watched(vec![wire.clone(), ring])))
    };
    assert_eq!(of(&wire, ring("256", "8192")), ["4096"]);
    assert_eq!(of(&wire, ring("256", "512")), ["512"]);
    assert!(of(&wire, ring("4096", "8192")).is_empty());
    let calm = counted(StageId::Wire, "rx_missed_errors", Loss::Packets, 0);
    assert!(of(&calm, ring("256", "8192")).is_empty());
}

#[test]
fn packets_are_steered_only_where_that_helps() {
    let rps = || {
        with(
            Stage::new(StageId::Backlog),
            Setting::of_interface("eth0", "queues/rx-0/rps_cpus"),
            "0",
            None,
        )
    };
    let elephant = |share| {
        let elephant = Some(Elephant { flow: "a -> b".to_owned(), share });
        Packets { seen: 50_000, elephant, ..Packets::default() }
    };
    let of = |packets| {
        let watched = Watched { packets, ..watched(vec![rps()]) };
        Diagnosis::of("eth0", None, watched)
    };
    assert_eq!(advised(&of(Some(elephant(0.1)))), ["1"]);
    assert_eq!(advised(&of(None)), ["1"]);
    let one = of(Some(elephant(0.95)));
    assert!(advised(&one).is_empty());
    assert!(
        one.findings.iter().any(|it| it.stage == StageId::Queues && it.text.contains("95 %")),
        "{:?}",
        one.findings
    );
}

#[test]
fn a_capture_that_shares_a_processor_with_receiving_is_named() {
    let thread = Thread {
        tid: 12,
        name: "ring".to_owned(),
        allowed: "1".to_owned(),
        processor: Some(1),
        ran_ns: Some(0),
        waited_ns: Some(300_000_000),
        waited_during_ns: Some(300_000_000),
        class: "other, nice 0".to_owned(),
    };
    let capture = Capture {
        pid: 11,
        name: "netsniff".to_owned(),
        threads: vec![thread],
        throttled: Some(9),
        throttled_during: Some(4),
        sockets: Vec::new(),
    };
    let threaded =
        with(Stage::new(StageId::Napi), Setting::of_interface("eth0", "threaded"), "0", None);
    let watched = Watched { captures: vec![capture], ..watched(vec![threaded]) };
    let diagnosis = Diagnosis::of("eth0", None, watched);
    let said: Vec<_> = diagnosis
        .findings
        .iter()
        .filter(|it| it.stage == StageId::Process)
        .map(|it| it.text.as_str())
        .collect();
    assert_eq!(said.len(), 3, "{said:?}");
    assert!(said.iter().any(|it| it.contains("kept off the processors 4 times")), "{said:?}");
    assert!(said.iter().any(|it| it.contains("waited for a processor in 30 %")), "{said:?}");
    assert!(
        said.iter().any(|it| it.contains("processor 1 alone, where receiving takes 60 %")),
        "{said:?}"
    );
    assert_eq!(advised(&diagnosis), ["1"]);
    assert_eq!(diagnosis.worst(), None);
}

#[test]
fn what_is_calm_has_no_findings() {
    let mut calm = watched(vec![
        counted(StageId::Wire, "rx_dropped", Loss::Maybe, 0),
        counted(StageId::Napi, "time_squeeze", Loss::Sign, 0),
    ]);
    calm.busy.truncate(1);
    let diagnosis = Diagnosis::of("eth0", None, calm);
    assert!(
        diagnosis.findings.is_empty() && diagnosis.worst().is_none(),
        "{:?}",
        diagnosis.findings
    );
    let page = crate::text::page(&diagnosis, false);
    assert!(
        page.contains("No counter that can be read grew") && !page.contains("Not all"),
        "{page}"
    );
}

#[test]
fn a_stage_that_cannot_be_read_is_named_where_nothing_is_found() {
    let mut missing = Stage::new(StageId::Wire);
    missing.count("rx_missed_errors", "file", None, Loss::Packets);
    let mut calm = watched(vec![missing]);
    calm.busy.truncate(1);
    let diagnosis = Diagnosis::of("eth0", None, calm);
    assert!(diagnosis.findings.is_empty());
    let said = diagnosis.silence();
    assert!(said.ends_with("Not all can be read of: wire and interface."), "{said}");
}

/// A socket that was opened while it was watched has lost all of it since.
#[test]
fn what_has_no_count_at_the_begin_may_lose_now() {
    let mut socket = Stage::new(StageId::Socket);
    socket.count("dropped by socket 7", "sock_diag", Some(5000), Loss::Packets);
    let diagnosis = Diagnosis::of("eth0", None, watched(vec![socket]));
    let found = diagnosis.findings.iter().find(|it| it.stage == StageId::Socket).unwrap();
    assert_eq!((found.level, found.lost), (Level::Near, None));
    assert!(found.text.contains("5000 packets were lost") && found.text.contains("unavailable"));
}

#[test]
fn a_backlog_grows_again_only_where_it_loses_again() {
    let backlog = |during, now: &str| {
        let stage = counted(StageId::Backlog, "dropped", Loss::Packets, during);
        let stage = with(stage, Setting::sysctl("net.core.netdev_max_backlog"), now, None);
        let watched = Watched { peak_rate: Some(1000), ..watched(vec![stage]) };
        advised(&Diagnosis::of("eth0", None, watched))
    };
    assert_eq!(
        (backlog(7, "1000"), backlog(7, "4000")),
        (vec!["4000".into()], vec!["16000".into()])
    );
    assert_eq!((backlog(0, "1000"), backlog(0, "4000")), (vec!["4000".into()], vec![]));
}

#[test]
fn segments_are_left_apart_only_where_somebody_captures_and_has_time() {
    let gro = || {
        let feature = Setting::Feature { interface: "eth0".into(), name: "rx-gro".into() };
        with(Stage::new(StageId::Offloads), feature, "on", None)
    };
    let capture = Capture {
        pid: 1,
        name: "tcpdump".to_owned(),
        threads: vec![],
        throttled: None,
        throttled_during: None,
        sockets: vec![],
    };
    for (captures, processors, expected) in
        [(vec![], 1, vec![]), (vec![capture.clone()], 1, vec!["off"]), (vec![capture], 2, vec![])]
    {
        let mut watched = Watched { captures, ..watched(vec![gro()]) };
        watched.busy.truncate(processors);
        assert_eq!(advised(&Diagnosis::of("eth0", None, watched)), expected);
    }
}

#[test]
fn masks_are_the_kernels() {
    assert_eq!(advice::mask(&[0]), "1");
    assert_eq!(advice::mask(&[1, 0, 33]), "2,00000003");
    assert_eq!(advice::mask(&[31]), "80000000");
    assert_eq!(advice::mask(&[]), "0");
}

/// Answers of a machine in which only `/proc/stat` and `/proc/diskstats` change while it is watched.
fn changing(stat: [&str; 2], disks: [&str; 2]) -> Watched {
    let list = |first: u32| {
        format!("read /sys/devices/system/cpu/cpu{first}/topology/thread_siblings_list")
    };
    let [before, after] = stat;
    let mut answers = serde_json::json!({
        "read /proc/stat": [{"text": before}, {"text": before}, {"text": after}],
        "read /proc/diskstats": [{"text": disks[0]}, {"text": disks[1]}],
        "target /sys/block/vda/device": [{"text": "../virtio1"}],
    });
    for first in [0, 1] {
        answers[list(first)] = serde_json::json!([{"text": "0-1"}]);
    }
    let kernel = Recorded::new(serde_json::from_value(answers).unwrap());
    replay(&Look { kernel: &kernel, interface: "eth0" }, &[1_000_000_000], None)
}

fn said(watched: Watched, stage: StageId) -> Vec<String> {
    let findings = Diagnosis::of("eth0", None, watched).findings;
    findings.into_iter().filter(|it| it.stage == stage).map(|it| it.text).collect()
}

#[test]
fn a_full_thread_of_the_same_core_is_named() {
    let idle = "cpu0 0 0 0 0 0 0 0 0\ncpu1 0 0 0 0 0 0 0 0";
    let of = |after: &str| said(changing([idle, after], [""; 2]), StageId::Processors);
    // Processor 1 receives, and processor 0 works for others.
    let full = of("cpu0 100 0 0 0 0 0 0 0\ncpu1 0 0 0 80 0 0 20 0");
    let is_named = |text: &String| {
        text.contains("0 is a thread of the same core as 1, where packets are received")
    };
    assert_eq!(full.iter().filter(|it| is_named(it)).count(), 1, "{full:?}");
    assert!(!full.iter().any(|it| it.contains("1 is a thread of the same core")), "{full:?}");
    assert!(of("cpu0 50 0 0 50 0 0 0 0\ncpu1 0 0 0 80 0 0 20 0").is_empty(), "it has time");
    let calm = of("cpu0 100 0 0 0 0 0 0 0\ncpu1 0 0 0 99 0 0 1 0");
    assert!(!calm.iter().any(|it| it.contains("same core")), "{calm:?}");
}

#[test]
fn a_disk_without_rest_is_named() {
    let line =
        |sectors: u64, millis: u64| format!("254 0 vda 0 0 0 0 9 0 {sectors} 9 0 {millis} 9");
    let of = |millis: u64| {
        let disks = [line(1000, 50), line(1000 + 20_000, 50 + millis)];
        said(changing([""; 2], [&disks[0], &disks[1]]), StageId::Disk)
    };
    let busy = of(980);
    assert!(
        busy[0].contains("vda had something to do in 98 % of the time, and took 10.2 MB"),
        "{busy:?}"
    );
    assert!(of(500).is_empty());
}
