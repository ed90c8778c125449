//! The kernel's stack, up to the taps.

use netsniff_capture::host::{self, Softnet};

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

pub(super) fn taps(look: &Look<'_>) -> Stage {
    let mut stage = Stage::new(StageId::Taps);
    let length = look.file("tx_queue_len");
    if let Some(length) = look.kernel.number(&length) {
        stage.notes.push(format!("The queue for sending holds {length} packets."));
    }
    let source = look.file("statistics/tx_dropped");
    stage.count("tx_dropped", &source, look.kernel.number(&source), Loss::None);
    stage.notes.push(
        "XDP comes first, then RPS, then taps as captures are, then filters of tc. Captures see what tc drops on its way in, and do \
         not see what XDP drops."
            .to_owned(),
    );
    stage
}
