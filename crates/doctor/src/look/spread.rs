//! How packets are spread over queues and processors.

use netsniff_capture::ethtool::{self, HashFields};

use super::Look;
use crate::setting::Setting;
use crate::stage::{Loss, Stage, StageId};

pub(super) fn queues(look: &Look<'_>) -> Stage {
    let mut stage = Stage::new(StageId::Queues);
    let setting = Setting::queues(look.kernel, look.interface);
    let channels = ethtool::channels(look.kernel, look.interface).ok();
    if let Some(knob) =
        stage.knob(look.kernel, setting, "queues that receive, each with a processor of its own")
    {
        knob.most = channels.map(|channels| channels.receiving_max().to_string());
    } else {
        let count = look.queues("rx").len();
        stage.notes.push(format!(
            "It receives with {count} queues, whose number the driver does not let change."
        ));
    }
    let hash = ethtool::receive_hash(look.kernel, look.interface).ok();
    let hash = hash.filter(|hash| !hash.queues.is_empty());
    let is_spread = hash.is_some();
    if let Some(hash) = hash {
        let used: std::collections::BTreeSet<_> = hash.queues.iter().collect();
        stage.notes.push(format!("The hash spreads packets over {} queues.", used.len()));
        if hash.is_symmetric() == Some(false) {
            stage.notes.push(
                "The key of the hash is not symmetric: both directions of a connection may come to two queues. Netsniff steers by \
                 pairs of addresses by itself; for others: ethtool -X IFACE hkey 6d:5a:6d:5a:…"
                    .to_owned(),
            );
        }
    }
    for (kind, name) in [(HashFields::TCP_IPV4, "TCP"), (HashFields::UDP_IPV4, "UDP")] {
        let fields = ethtool::hash_fields(look.kernel, look.interface, kind);
        if let Some(fields) = fields.ok().filter(|fields| is_spread && fields.has_addresses) {
            let of = if fields.has_ports { "addresses and ports" } else { "addresses alone" };
            stage.notes.push(format!("{name} over IPv4 is spread by {of}."));
        }
    }
    stage
}

/// Numbers of the interrupts of an interface, with what they have counted on each processor, and their names.
fn interrupts_of(look: &Look<'_>) -> Vec<(u32, Vec<u64>, String)> {
    let text = look.kernel.read("/proc/interrupts").unwrap_or_default();
    // Drivers of real interfaces tell theirs; others are told apart by names.
    let own = look.kernel.list(&look.file("device/msi_irqs")).unwrap_or_default();
    let virtio = look.kernel.target(&look.file("device")).ok();
    let virtio = virtio.and_then(|to| Some(to.rsplit('/').next()?.to_owned()));
    let mut found = Vec::new();
    for line in text.lines().skip(1) {
        let Some((number, rest)) = line.split_once(':') else { continue };
        let Ok(number) = number.trim().parse::<u32>() else { continue };
        let words: Vec<&str> = rest.split_whitespace().collect();
        let counts: Vec<u64> = words.iter().map_while(|word| word.parse().ok()).collect();
        let name = words.last().copied().unwrap_or_default();
        let is_named = name.split(['-', '@', ':']).any(|word| word == look.interface)
            || virtio.as_ref().is_some_and(|device| name.starts_with(&format!("{device}-input")));
        if is_named || own.contains(&number.to_string()) {
            found.push((number, counts, name.to_owned()));
        }
    }
    found
}

pub(super) fn interrupts(look: &Look<'_>) -> Stage {
    let mut stage = Stage::new(StageId::Interrupts);
    let found = interrupts_of(look);
    if found.is_empty() {
        stage.notes.push("No interrupt is of this interface: a virtual one has none.".to_owned());
    }
    for (number, counts, name) in found {
        for (processor, count) in counts.iter().enumerate() {
            let of = format!("interrupt {number} ({name}) on processor {processor}");
            stage.count(&of, "/proc/interrupts", Some(*count), Loss::None);
        }
        stage.knob(
            look.kernel,
            Setting::Irq { number },
            "the processors that an interrupt may come to",
        );
    }
    // Where its socket is while it runs.
    if look.kernel.list("/run/irqbalance").is_ok_and(|files| !files.is_empty()) {
        stage.notes.push(
            "irqbalance runs: it moves interrupts away from where they are set to.".to_owned(),
        );
    }
    stage
}
