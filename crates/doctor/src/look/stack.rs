//! The kernel's stack, up to the taps.

use std::collections::BTreeMap;
use std::io::ErrorKind;

use netsniff_capture::host::{self, Qdisc, Softnet};

use super::Look;
use crate::arithmetic::Holds;
use crate::kernel::Kernel;
use crate::setting::Setting;
use crate::stage::{Loss, Stage, StageId};

const SOFTNET: &str = "/proc/net/softnet_stat";

/// What each processor has done with received packets; `None` where that cannot be read.
#[must_use]
pub fn softnet(kernel: &dyn Kernel) -> Option<Vec<Softnet>> {
    Some(host::softnet(&kernel.read(SOFTNET).ok()?))
}

/// Adds a counter of every processor and their sum, which alone counts as a loss or a sign.
fn counts(
    stage: &mut Stage,
    all: Option<&[Softnet]>,
    name: &str,
    of: fn(&Softnet) -> u64,
    loss: Loss,
) {
    let sum = all.map(|all| all.iter().map(of).sum());
    stage.count(name, SOFTNET, sum, loss);
    for one in all.unwrap_or_default() {
        stage.count(
            &format!("{name} on processor {}", one.processor),
            SOFTNET,
            Some(of(one)),
            Loss::None,
        );
    }
}

pub(super) fn napi(look: &Look<'_>) -> Stage {
    let mut stage = Stage::new(StageId::Napi);
    let all = softnet(look.kernel);
    counts(&mut stage, all.as_deref(), "processed", |of| of.processed, Loss::None);
    counts(&mut stage, all.as_deref(), "time_squeeze", |of| of.squeezed, Loss::Sign);
    for (name, rules) in [
        (
            "net.core.netdev_budget",
            "packets that a processor takes of all rings before others get a turn",
        ),
        ("net.core.netdev_budget_usecs", "microseconds likewise"),
        ("net.core.dev_weight", "packets that it takes of one backlog or driver in a turn"),
    ] {
        stage.knob(look.kernel, Setting::sysctl(name), rules);
    }
    for (file, rules) in [
        ("threaded", "whether a thread of its own takes frames, which the scheduler can move"),
        (
            "gro_flush_timeout",
            "nanoseconds that merged segments, and interrupts that were put off, wait",
        ),
        ("napi_defer_hard_irqs", "empty looks at the ring before interrupts are used again"),
    ] {
        stage.knob(look.kernel, Setting::of_interface(look.interface, file), rules);
    }
    stage
}

pub(super) fn backlog(look: &Look<'_>) -> Stage {
    let mut stage = Stage::new(StageId::Backlog);
    let all = softnet(look.kernel);
    counts(&mut stage, all.as_deref(), "dropped", |of| of.dropped, Loss::Packets);
    counts(&mut stage, all.as_deref(), "received_rps", |of| of.steered, Loss::None);
    stage
        .notes
        .push("Drops of the backlog are of all interfaces of the machine together.".to_owned());
    let megabits = look.megabits();
    let setting = Setting::sysctl("net.core.netdev_max_backlog");
    if let Some(knob) = stage.knob(
        look.kernel,
        setting,
        "packets that wait for a processor: steered by RPS, or from a virtual interface",
    ) {
        knob.holds = knob.number().map(|packets| Holds::packets(packets, megabits));
    }
    stage.knob(
        look.kernel,
        Setting::sysctl("net.core.rps_sock_flow_entries"),
        "flows that are steered to where they are read (RFS)",
    );
    for queue in look.queues("rx") {
        for (file, rules) in [
            ("rps_cpus", "processors that received packets are steered to (RPS), as a mask"),
            ("rps_flow_cnt", "flows of the queue that are steered to where they are read (RFS)"),
        ] {
            let setting =
                Setting::of_interface(look.interface, &format!("queues/rx-{queue}/{file}"));
            stage.knob(look.kernel, setting, rules);
        }
    }
    for queue in look.queues("tx") {
        let setting = Setting::of_interface(look.interface, &format!("queues/tx-{queue}/xps_cpus"));
        stage.knob(look.kernel, setting, "processors that send by this queue (XPS), as a mask");
    }
    stage
}

/// Queueing disciplines of the interface, each kind once, with what they dropped together.
fn disciplines(look: &Look<'_>, stage: &mut Stage) {
    let all = match look.kernel.qdiscs() {
        Ok(all) => all,
        // Who recorded did not ask.
        Err(why) if why.kind() == ErrorKind::NotFound => return,
        Err(why) => return stage.unread.push(format!("queueing disciplines: {why}")),
    };
    let own = all.into_iter().filter(|it| look.index() == Some(u64::from(it.interface)));
    let mut kinds: BTreeMap<String, Option<u64>> = BTreeMap::new();
    for Qdisc { kind, dropped, .. } in own {
        let sum = kinds.entry(kind).or_insert(Some(0));
        *sum = sum.zip(dropped).map(|(sum, dropped)| sum.saturating_add(dropped));
    }
    if kinds.is_empty() {
        return;
    }
    let names: Vec<_> = kinds.keys().map(String::as_str).collect();
    stage.notes.push(format!(
        "Queueing disciplines (tc): {}. They concern what this machine sends, but for ingress and clsact, which filter what comes.",
        names.join(", ")
    ));
    for (kind, dropped) in kinds {
        stage.count(&format!("dropped by {kind}"), "rtnetlink(7), TCA_STATS2", dropped, Loss::None);
    }
}

pub(super) fn taps(look: &Look<'_>) -> Stage {
    let mut stage = Stage::new(StageId::Taps);
    let length = look.file("tx_queue_len");
    if let Some(length) = look.kernel.number(&length) {
        stage.notes.push(format!("The queue for sending holds {length} packets."));
    }
    let source = look.file("statistics/tx_dropped");
    stage.count("tx_dropped", &source, look.kernel.number(&source), Loss::None);
    disciplines(look, &mut stage);
    stage.notes.push(
        "XDP comes first, then RPS, then taps as captures are, then filters of tc. Captures see what tc drops on its way in, and do \
         not see what XDP drops."
            .to_owned(),
    );
    stage
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Recorded;

    fn of(answers: serde_json::Value) -> Stage {
        let kernel = Recorded::new(serde_json::from_value(answers).unwrap());
        taps(&Look { kernel: &kernel, interface: "eth0" })
    }

    #[test]
    fn disciplines_of_the_interface_are_told() {
        let qdisc = |interface: u32, kind: &str, dropped: Option<u64>| serde_json::json!({"interface": interface, "kind": kind, "dropped": dropped});
        let all = [
            qdisc(7, "mq", None),
            qdisc(7, "fq_codel", Some(3)),
            qdisc(7, "fq_codel", Some(4)),
            qdisc(1, "noqueue", Some(0)),
        ];
        let stage = of(serde_json::json!({
            "read /sys/class/net/eth0/ifindex": [{"text": "7"}],
            "qdiscs": [{"qdiscs": all}],
        }));
        assert!(
            stage.notes[0].starts_with("Queueing disciplines (tc): fq_codel, mq. They"),
            "{stage:?}"
        );
        assert_eq!(stage.total("dropped by fq_codel"), Some(7));
        assert_eq!(stage.total("dropped by mq"), None);
        assert_eq!(stage.lost(), None, "nothing of it is received");
        assert!(!stage.counters.iter().any(|it| it.name.contains("noqueue")), "{stage:?}");
    }

    #[test]
    fn what_was_not_asked_is_no_fault_and_what_fails_is_told() {
        assert!(of(serde_json::json!({})).unread.is_empty());
        let refused = of(serde_json::json!({"qdiscs": [{"failed": 1}]}));
        assert!(refused.unread[0].starts_with("queueing disciplines: "), "{refused:?}");
    }
}
