//! The kernel's stack, up to the taps.

use super::Look;
use crate::arithmetic::Holds;
use crate::setting::Setting;
use crate::stage::{Loss, Stage, StageId};

const SOFTNET: &str = "/proc/net/softnet_stat";

/// What a processor has done with received packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Softnet {
    /// Its number.
    pub processor: u64,
    /// Packets that it received.
    pub processed: u64,
    /// Packets for which its backlog had no room.
    pub dropped: u64,
    /// How often it had to stop although more was there.
    pub squeezed: u64,
    /// How often another processor asked it to receive (RPS).
    pub steered: u64,
}

/// Reads `/proc/net/softnet_stat`; `None` where it cannot be read.
#[must_use]
pub fn softnet(kernel: &dyn crate::kernel::Kernel) -> Option<Vec<Softnet>> {
    let text = kernel.read(SOFTNET).ok()?;
    let line = |(at, line): (usize, &str)| {
        let columns: Vec<_> =
            line.split_whitespace().map(|word| u64::from_str_radix(word, 16).ok()).collect();
        let column = |at: usize| columns.get(at).copied().flatten();
        Some(Softnet {
            // Linux before 5.10 does not tell the number.
            processor: column(12).unwrap_or(at as u64),
            processed: column(0)?,
            dropped: column(1)?,
            squeezed: column(2)?,
            steered: column(9).unwrap_or_default(),
        })
    };
    text.lines().enumerate().map(line).collect()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Recorded;

    #[test]
    fn processors_are_told_apart() {
        let rest = "0 0 0 0 0 0";
        let text = format!("10 2 3 {rest} 4 0 0 1\nff 0 1 {rest} 0 0 0 5");
        let all = softnet(&Recorded::of_files([(SOFTNET, text.as_str())])).unwrap();
        let first = Softnet { processor: 1, processed: 16, dropped: 2, squeezed: 3, steered: 4 };
        assert_eq!((all[0], all[1].processor, all[1].processed), (first, 5, 255));
        assert_eq!(softnet(&Recorded::of_files([(SOFTNET, "x y z")])), None);
        assert_eq!(softnet(&Recorded::default()), None);
    }
}
