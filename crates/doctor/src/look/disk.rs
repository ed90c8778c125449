//! Disks and the page cache: what a recording is written to.

use super::Look;
use super::machine::pressure;
use crate::kernel::Kernel;
use crate::stage::{Loss, Stage, StageId};

const STATS: &str = "/proc/diskstats";

/// The unit of that file, whatever the disk's own is (kernel: Documentation/admin-guide/iostats.rst).
const SECTOR: u64 = 512;

/// How a counter of written bytes begins, and one of milliseconds in which a disk had something to do; the name of the disk
/// follows.
pub(crate) const WRITTEN: &str = "bytes written to ";
pub(crate) const BUSY: &str = "milliseconds busy of ";

/// What a disk has done since the machine was started.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Disk {
    name: String,
    written: u64,
    busy_ms: u64,
}

/// Reads `/proc/diskstats`. Lines that make no sense are left out.
fn disks_of(text: &str) -> Vec<Disk> {
    /// Where the name, sectors that were written, and milliseconds with requests stand.
    const NAME: usize = 2;
    const SECTORS: usize = 9;
    const MILLISECONDS: usize = 12;
    let disk = |line: &str| {
        let words: Vec<_> = line.split_whitespace().collect();
        let number = |at: usize| words.get(at)?.parse::<u64>().ok();
        Some(Disk {
            name: (*words.get(NAME)?).to_owned(),
            written: number(SECTORS)?.saturating_mul(SECTOR),
            busy_ms: number(MILLISECONDS)?,
        })
    };
    text.lines().filter_map(disk).collect()
}

/// Whether it is a disk, and not a part of one, a file, or made of others: those have no device of their own.
fn is_whole(kernel: &dyn Kernel, name: &str) -> bool {
    kernel.target(&format!("/sys/block/{name}/device")).is_ok()
}

/// What a disk is, by its queue in sysfs.
fn words(kernel: &dyn Kernel, name: &str) -> String {
    let file = |file: &str| kernel.read(&format!("/sys/block/{name}/queue/{file}")).ok();
    let kind = match file("rotational").as_deref() {
        Some("1") => "it turns",
        Some("0") => "it does not turn",
        _ => "whether it turns is unavailable",
    };
    let cache = file("write_cache").map_or_else(String::new, |cache| format!(", cache {cache}"));
    let scheduler = file("scheduler").unwrap_or_default();
    // The one in use stands in brackets.
    let used = scheduler.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    let scheduler = used.map_or_else(String::new, |(name, _)| format!(", scheduler {name}"));
    format!("Disk {name}: {kind}{cache}{scheduler}.")
}

fn counts(stage: &mut Stage, kernel: &dyn Kernel) {
    let text = match kernel.read(STATS) {
        Ok(text) => text,
        Err(why) => return stage.unread.push(format!("{STATS}: {why}")),
    };
    for Disk { name, written, busy_ms } in disks_of(&text) {
        if is_whole(kernel, &name) {
            stage.count(&format!("{WRITTEN}{name}"), STATS, Some(written), Loss::None);
            stage.count(&format!("{BUSY}{name}"), STATS, Some(busy_ms), Loss::None);
            stage.notes.push(words(kernel, &name));
        }
    }
}

pub(super) fn disk(look: &Look<'_>) -> Stage {
    let mut stage = Stage::new(StageId::Disk);
    counts(&mut stage, look.kernel);
    let memory = look.kernel.read("/proc/meminfo").unwrap_or_default();
    for name in ["Dirty", "Writeback"] {
        let kib = memory.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        let kib = kib.and_then(|rest| rest.trim().strip_suffix("kB")?.trim().parse().ok());
        stage.count(&format!("{name} (KiB)"), "/proc/meminfo", kib, Loss::None);
    }
    for name in ["dirty_background_ratio", "dirty_ratio"] {
        if let Some(percent) = look.kernel.number(&format!("/proc/sys/vm/{name}")) {
            stage.notes.push(format!(
                "vm.{name} is {percent}: at that share of memory in unwritten pages, {}.",
                match name {
                    "dirty_ratio" => "whoever writes waits",
                    _ => "the kernel begins to write",
                }
            ));
        }
    }
    if let Some(share) = pressure(look.kernel, "io") {
        stage
            .notes
            .push(format!("In the last 10 s, work waited for disks in {share} % of the time."));
    }
    stage
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Recorded;

    const DISKS: &str = " 254 0 vda 10 0 80 5 20 0 4096 9 0 700 14 0 0 0 0\n 254 1 vda1 1 0 8 1 2 0 16 1 0 2 2\n   7 0 loop0 x";

    #[test]
    fn disks_are_read_by_their_columns() {
        let disk = |name: &str, written, busy_ms| Disk { name: name.to_owned(), written, busy_ms };
        assert_eq!(disks_of(DISKS), [disk("vda", 4096 * 512, 700), disk("vda1", 16 * 512, 2)]);
    }

    #[test]
    fn whole_disks_alone_are_counted() {
        let answers = serde_json::json!({
            "read /proc/diskstats": [{"text": DISKS}],
            "target /sys/block/vda/device": [{"text": "../../../virtio1"}],
            "read /sys/block/vda/queue/rotational": [{"text": "0"}],
            "read /sys/block/vda/queue/write_cache": [{"text": "write back"}],
            "read /sys/block/vda/queue/scheduler": [{"text": "[none] mq-deadline"}],
        });
        let kernel = Recorded::new(serde_json::from_value(answers).unwrap());
        let stage = disk(&Look { kernel: &kernel, interface: "eth0" });
        assert_eq!(stage.total("bytes written to vda"), Some(4096 * 512));
        assert_eq!(stage.total("milliseconds busy of vda"), Some(700));
        assert!(!stage.counters.iter().any(|it| it.name.contains("vda1")), "{stage:?}");
        let said = "Disk vda: it does not turn, cache write back, scheduler none.";
        assert!(stage.notes.iter().any(|note| note == said), "{stage:?}");
        assert!(stage.unread.is_empty(), "{stage:?}");
        let none = Recorded::default();
        let stage = disk(&Look { kernel: &none, interface: "eth0" });
        assert!(stage.unread[0].starts_with(STATS), "{stage:?}");
    }
}
