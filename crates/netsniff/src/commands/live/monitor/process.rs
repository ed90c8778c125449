//! What this process takes of the machine, for those who watch over it.

use std::fs::{self, File};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt as _;
use std::sync::{Mutex, PoisonError};

use netsniff_console::exposition::{Exposition, Kind, Labels};
use rustix::fs::{Dir, Mode, OFlags};
use rustix::param::{clock_ticks_per_second, page_size};

/// Reads what the kernel counts of this process. Its files are opened before the right to do so is given up.
#[derive(Debug)]
pub(super) struct ProcessReader {
    stat: Option<File>,
    descriptors: Option<Mutex<Dir>>,
    /// When the system was started, in seconds since 1970.
    boot: Option<f64>,
}

/// What stands in `/proc/self/stat` (proc(5)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stat {
    /// Time on processors, in ticks.
    busy: u64,
    threads: u64,
    /// When it was started, in ticks since the system was.
    started: u64,
    /// Bytes of its address space.
    virtual_bytes: u64,
    resident_pages: u64,
}

impl ProcessReader {
    /// Of this process. What the system does not tell is not shown.
    pub(super) fn open() -> Self {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder: Option<OwnedFd> = rustix::fs::open("/proc/self/fd", flags, Mode::empty()).ok();
        let boot = fs::read_to_string("/proc/stat").ok().and_then(|text| {
            text.lines().find_map(|line| line.strip_prefix("btime ")?.trim().parse().ok())
        });
        Self {
            stat: File::open("/proc/self/stat").ok(),
            descriptors: folder.and_then(|of| Dir::new(of).ok()).map(Mutex::new),
            boot,
        }
    }

    fn stat(&self) -> Option<Stat> {
        let mut bytes = [0; 2048];
        let len = self.stat.as_ref()?.read_at(&mut bytes, 0).ok()?;
        stat(&String::from_utf8_lossy(bytes.get(..len)?))
    }

    /// Descriptors that are open, with that of the directory itself.
    fn open_files(&self) -> Option<u64> {
        let mut folder = self.descriptors.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner);
        folder.rewind();
        let names = folder.by_ref().map_while(Result::ok);
        let is_number = |name: &[u8]| name.iter().all(u8::is_ascii_digit);
        Some(names.filter(|entry| is_number(entry.file_name().to_bytes())).count() as u64)
    }

    /// Adds what is known now, under the names that other programs use for it.
    pub(super) fn add_metrics(&self, text: &mut Exposition) {
        let none = Labels::default;
        let ticks = clock_ticks_per_second().max(1) as f64;
        let stat = self.stat();
        let busy = stat.map(|stat| (none(), stat.busy as f64 / ticks));
        text.add(Kind::Counter, "process_cpu_seconds", "Time on processors, of all threads.", busy);
        let resident =
            stat.map(|stat| (none(), stat.resident_pages.saturating_mul(page_size() as u64)));
        text.add(Kind::Gauge, "process_resident_memory_bytes", "Memory that it holds.", resident);
        let virtual_bytes = stat.map(|stat| (none(), stat.virtual_bytes));
        text.add(Kind::Gauge, "process_virtual_memory_bytes", "Its address space.", virtual_bytes);
        let threads = stat.map(|stat| (none(), stat.threads));
        text.add(Kind::Gauge, "process_threads", "Its threads.", threads);
        let files = self.open_files().map(|files| (none(), files));
        text.add(Kind::Gauge, "process_open_fds", "Descriptors that are open.", files);
        let most = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
        let most = most.map(|most| (none(), most));
        text.add(Kind::Gauge, "process_max_fds", "Descriptors that may be open.", most);
        let started = stat.zip(self.boot).map(|(stat, boot)| boot + stat.started as f64 / ticks);
        let started = started.map(|at| (none(), at));
        text.add(
            Kind::Gauge,
            "process_start_time_seconds",
            "When it was started, since 1970.",
            started,
        );
    }
}

fn stat(text: &str) -> Option<Stat> {
    // The name in brackets may have anything in it.
    let (_, behind) = text.rsplit_once(") ")?;
    let fields: Vec<_> = behind.split_ascii_whitespace().collect();
    // The first field behind the name has the number 3 in proc(5).
    let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
    Some(Stat {
        busy: field(14)?.saturating_add(field(15)?),
        threads: field(20)?,
        started: field(22)?,
        virtual_bytes: field(23)?,
        resident_pages: field(24)?,
    })
}

#[cfg(test)]
mod tests {
    use netsniff_console::exposition::Dialect;

    use super::*;

    #[test]
    fn a_name_in_brackets_hides_no_field() {
        let text = "7 (a) b (c) S 1 7 7 0 -1 4194560 9 0 0 0 30 12 0 0 20 0 5 0 900 8192 77 1 1\n";
        let expected =
            Stat { busy: 42, threads: 5, started: 900, virtual_bytes: 8192, resident_pages: 77 };
        assert_eq!(stat(text), Some(expected));
        assert_eq!(stat("7 (a) S 1"), None);
    }

    #[test]
    fn this_process_is_told_as_the_system_has_it() {
        let reader = ProcessReader::open();
        let before = reader.open_files().unwrap();
        let more: Vec<_> = (0..5).map(|_| File::open("/dev/null").unwrap()).collect();
        // Other tests open files in this process, too.
        assert!(reader.open_files().unwrap() + 3 >= before + more.len() as u64);
        let mut text = Exposition::new(Dialect::Prometheus);
        reader.add_metrics(&mut text);
        let text = text.finish();
        let value = |name: &str| -> f64 {
            let line = text.lines().find(|line| line.starts_with(&format!("{name} "))).unwrap();
            line.rsplit(' ').next().unwrap().parse().unwrap()
        };
        assert!(value("process_resident_memory_bytes") > 1e6, "{text}");
        assert!(value("process_threads") >= 1.0 && value("process_open_fds") >= 3.0, "{text}");
        let now = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs_f64();
        let age = now - value("process_start_time_seconds");
        assert!((-2.0..3600.0).contains(&age), "{age}");
    }
}
