//! The wire, and the interface.

use netsniff_capture::ethtool;

use super::Look;
use crate::arithmetic::Holds;
use crate::setting::Setting;
use crate::stage::{Loss, Stage, StageId};

/// Counters of the kernel for every interface, in `statistics/` of sysfs: which of them are packets that were lost
/// (Documentation/networking/statistics.rst).
const COUNTERS: [(&str, Loss); 9] = [
    ("rx_packets", Loss::None),
    ("rx_bytes", Loss::None),
    // No room in the ring of the interface. Drivers differ in whether they count this in `rx_dropped`, too.
    ("rx_missed_errors", Loss::Packets),
    ("rx_fifo_errors", Loss::Maybe),
    ("rx_over_errors", Loss::Maybe),
    ("rx_crc_errors", Loss::Maybe),
    ("rx_errors", Loss::Maybe),
    // Also packets of protocols that nobody handles, which taps were given.
    ("rx_dropped", Loss::Maybe),
    ("rx_nohandler", Loss::None),
];

/// Words in names of drivers' counters for frames that did not get in.
const WORDS: [&str; 8] =
    ["drop", "miss", "no_buf", "nobuf", "fifo", "out_of_buffer", "no_desc", "discard"];

/// What has these words in it although nothing that was received is lost.
const NOT: [&str; 4] = ["tx", "xdp_drops", "link_down", "fdir"];

/// Of an interface that takes every frame (`IFF_PROMISC`, netdevice(7)).
const PROMISCUOUS: u32 = 0x100;

pub(super) fn wire(look: &Look<'_>) -> Stage {
    let mut stage = Stage::new(StageId::Wire);
    for (name, loss) in COUNTERS {
        let source = look.file(&format!("statistics/{name}"));
        stage.count(name, &source, look.kernel.number(&source), loss);
    }
    for (name, count) in ethtool::statistics(look.kernel, look.interface).unwrap_or_default() {
        let is_loss = WORDS.iter().any(|word| name.contains(word))
            && !NOT.iter().any(|not| name.starts_with(not) || name.contains(&format!("_{not}")));
        // The kernel's own counters sum some of them up.
        let loss = if is_loss { Loss::Maybe } else { Loss::None };
        let is_kernel = stage.total(&name).is_some();
        if !is_kernel && (is_loss || name.contains("pause")) {
            stage.count(&name, "ethtool -S", Some(count), loss);
        }
    }
    match look.megabits() {
        Some(megabits) => stage.notes.push(format!("The link has {megabits} Mb/s.")),
        None => stage.notes.push(
            "The interface does not tell the speed of its link, so nothing is said in milliseconds.".to_owned(),
        ),
    }
    if let Ok(flags) = look.kernel.read(&look.file("flags"))
        && u32::from_str_radix(flags.trim_start_matches("0x"), 16)
            .is_ok_and(|flags| flags & PROMISCUOUS == 0)
    {
        stage.notes.push(
            "It is not promiscuous: frames for other machines are neither counted nor looked at. Watch it while a capture runs."
                .to_owned(),
        );
    }
    if look.kernel.read(&look.file("carrier")).is_ok_and(|carrier| carrier == "0") {
        stage.notes.push("Nobody is at the other end of the wire.".to_owned());
    }
    stage
}

pub(super) fn ring(look: &Look<'_>) -> Stage {
    let mut stage = Stage::new(StageId::NicRing);
    let setting = Setting::Ring { interface: look.interface.to_owned() };
    match ethtool::rings(look.kernel, look.interface) {
        Ok(rings) => {
            let holds = Holds::packets(rings.rx.into(), look.megabits());
            if let Some(knob) = stage.knob(look.kernel, setting, "frames that wait in the ring for the driver") {
                (knob.most, knob.holds) = (Some(rings.rx_max.to_string()), Some(holds));
            }
        }
        Err(error) if error.raw_os_error() == Some(ENODEV) => {}
        Err(_) => stage.notes.push(
            "The driver has no ring whose size can be told: that of a virtual interface is fixed (256 frames in veth).".to_owned(),
        ),
    }
    stage
}

/// `ENODEV` of errno(3).
const ENODEV: i32 = 19;

pub(super) fn coalescing(look: &Look<'_>) -> Stage {
    let mut stage = Stage::new(StageId::Coalescing);
    let setting = Setting::Coalescing { interface: look.interface.to_owned() };
    if stage.knob(look.kernel, setting, "how long frames wait for an interrupt").is_none() {
        stage.notes.push("The driver does not tell when interrupts come.".to_owned());
    }
    stage
}

/// Features that change what a capture sees: their names, and how.
const FALSIFYING: [(&str, &str); 4] = [
    ("rx-lro", "the interface merges segments, and what was on the wire cannot be told any more"),
    (
        "rx-gro-hw",
        "the interface merges segments into super-frames, as they never were on the wire",
    ),
    ("rx-gro", "the stack merges segments behind the driver, so that taps see super-frames"),
    ("rx-vlan-hw-parse", "VLAN tags are taken out of frames; netsniff puts them back"),
];

/// What a setting that is on does to the packets that a capture sees, where it does something.
#[must_use]
pub fn falsified_by(setting: &Setting) -> Option<&'static str> {
    let Setting::Feature { name, .. } = setting else { return None };
    FALSIFYING.iter().find(|(of, _)| of == name).map(|(_, effect)| *effect)
}

pub(super) fn offloads(look: &Look<'_>) -> Stage {
    let mut stage = Stage::new(StageId::Offloads);
    let features = ethtool::features(look.kernel, look.interface).unwrap_or_default();
    for (name, effect) in FALSIFYING {
        let Some(feature) = features.iter().find(|feature| feature.name == name) else { continue };
        if feature.is_fixed && !feature.is_on {
            continue;
        }
        let setting =
            Setting::Feature { interface: look.interface.to_owned(), name: name.to_owned() };
        if let Some(knob) = stage.knob(look.kernel, setting, effect) {
            knob.is_fixed = feature.is_fixed;
        }
    }
    for name in ["tx-tcp-segmentation", "tx-checksum-ip-generic"] {
        if features.iter().any(|feature| feature.name == name && feature.is_on) {
            stage.notes.push(format!(
                "{name} is on: what this machine sends is captured before it is cut or summed."
            ));
        }
    }
    stage
}
