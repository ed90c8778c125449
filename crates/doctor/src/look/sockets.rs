//! Sockets that packets are captured with, and whose they are.

use std::io;

use netsniff_capture::host::PacketSocket;
use serde::Serialize;

use super::Look;
use crate::arithmetic::Holds;
use crate::kernel::Kernel;
use crate::setting::Setting;
use crate::stage::{Loss, Stage, StageId};

/// A process that captures on the interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Capture {
    /// Its number.
    pub pid: u32,
    /// Its name.
    pub name: String,
    /// Its threads.
    pub threads: Vec<Thread>,
    /// How often it was kept off the processors since its control group had used up its share; `None` where there is no bound, or
    /// none that can be read.
    pub throttled: Option<u64>,
    /// How often while it was watched; `None` where it was not watched from the begin.
    pub throttled_during: Option<u64>,
    /// Its packet sockets that listen to the interface.
    pub sockets: Vec<PacketSocket>,
}

/// A thread of such a process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Thread {
    /// Its number.
    pub tid: u32,
    /// Its name.
    pub name: String,
    /// Processors that it may run on, as a list.
    pub allowed: String,
    /// The processor that it ran on last.
    pub processor: Option<u32>,
    /// Nanoseconds on processors; `None` where the kernel counts none.
    pub ran_ns: Option<u64>,
    /// Nanoseconds that it could have run, and waited for a processor; `None` likewise.
    pub waited_ns: Option<u64>,
    /// Likewise while it was watched; `None` where it was not watched from the begin.
    pub waited_during_ns: Option<u64>,
    /// Whether the scheduler prefers it to ordinary ones, or puts it behind them: its class and nice value.
    pub class: String,
}

impl Capture {
    /// The same with what it has waited since then.
    #[must_use]
    pub fn since(mut self, before: &[Self]) -> Self {
        let Some(before) = before.iter().find(|other| other.pid == self.pid) else { return self };
        self.throttled_during =
            self.throttled.zip(before.throttled).and_then(|(now, then)| now.checked_sub(then));
        for thread in &mut self.threads {
            let then = before.threads.iter().find(|other| other.tid == thread.tid);
            thread.waited_during_ns =
                then.and_then(|then| thread.waited_ns?.checked_sub(then.waited_ns?));
        }
        self
    }
}

/// Packet sockets that listen to the interface, or to all of them.
fn sockets_of(look: &Look<'_>) -> io::Result<Vec<PacketSocket>> {
    let index = look.index();
    let mut sockets = look.kernel.packet_sockets()?;
    sockets.retain(|socket| socket.interface == 0 || Some(u64::from(socket.interface)) == index);
    Ok(sockets)
}

/// What a descriptor of the socket leads to.
fn link_of(socket: &PacketSocket) -> String {
    format!("socket:[{}]", socket.inode)
}

/// Processes that hold packet sockets of the interface, as far as they may be looked at.
#[must_use]
pub fn captures(look: &Look<'_>) -> Vec<Capture> {
    let sockets = sockets_of(look).unwrap_or_default();
    if sockets.is_empty() {
        return Vec::new();
    }
    let wanted: Vec<_> = sockets.iter().map(link_of).collect();
    let holders = look.kernel.holders(&wanted);
    holders
        .into_iter()
        .filter_map(|(pid, links)| capture(look.kernel, pid, &links, &sockets))
        .collect()
}

fn capture(
    kernel: &dyn Kernel,
    pid: u32,
    links: &[String],
    sockets: &[PacketSocket],
) -> Option<Capture> {
    let tids = kernel.list(&format!("/proc/{pid}/task")).ok()?;
    let tids = tids.iter().filter_map(|tid| tid.parse().ok());
    Some(Capture {
        pid,
        name: kernel.read(&format!("/proc/{pid}/comm")).ok()?,
        threads: tids.filter_map(|tid| thread(kernel, pid, tid)).collect(),
        throttled: throttled(kernel, pid),
        throttled_during: None,
        sockets: sockets.iter().filter(|it| links.contains(&link_of(it))).copied().collect(),
    })
}

fn thread(kernel: &dyn Kernel, pid: u32, tid: u32) -> Option<Thread> {
    let folder = format!("/proc/{pid}/task/{tid}");
    let status = kernel.read(&format!("{folder}/status")).ok()?;
    let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    let stat = kernel.read(&format!("{folder}/stat")).ok()?;
    // The name before it may have blanks and brackets (proc(5)); state is the third field.
    let fields: Vec<_> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let field = |number: usize| fields.get(number - 3).copied();
    let schedule = kernel.read(&format!("{folder}/schedstat")).unwrap_or_default();
    let mut times = schedule.split_whitespace().map(|word| word.parse().ok());
    let class = match field(41) {
        Some("0") => "other",
        Some("1") => "fifo",
        Some("2") => "rr",
        Some("3") => "batch",
        Some("5") => "idle",
        Some("6") => "deadline",
        _ => "unknown",
    };
    Some(Thread {
        tid,
        name: kernel.read(&format!("{folder}/comm")).ok()?,
        allowed: allowed.trim().to_owned(),
        processor: field(39).and_then(|word| word.parse().ok()),
        ran_ns: times.next().flatten(),
        waited_ns: times.next().flatten(),
        waited_during_ns: None,
        class: format!("{class}, nice {}", field(19).unwrap_or("unknown")),
    })
}

/// How often the control group of a process was throttled: `cpu.stat` of cgroup v2, or of the controller `cpu` of v1.
fn throttled(kernel: &dyn Kernel, pid: u32) -> Option<u64> {
    let groups = kernel.read(&format!("/proc/{pid}/cgroup")).ok()?;
    let stat = groups.lines().find_map(|line| {
        let mut words = line.splitn(3, ':');
        let (number, controllers, path) = (words.next()?, words.next()?, words.next()?);
        let roots: &[&str] = match number {
            "0" => &["/sys/fs/cgroup", "/sys/fs/cgroup/unified"],
            _ if controllers.split(',').any(|it| it == "cpu") => {
                &["/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"]
            }
            _ => return None,
        };
        let path = path.trim_end_matches('/');
        let read = |root: &&str| kernel.read(&format!("{root}{path}/cpu.stat")).ok();
        roots.iter().find_map(read).filter(|stat| stat.contains("nr_throttled"))
    })?;
    let line = stat.lines().find_map(|line| line.strip_prefix("nr_throttled "))?;
    line.trim().parse().ok()
}

pub(super) fn sockets(look: &Look<'_>) -> Stage {
    let mut stage = Stage::new(StageId::Socket);
    match sockets_of(look) {
        Ok(sockets) => {
            let rings = sockets.iter().filter(|socket| socket.ring_bytes > 0).count();
            stage.notes.push(format!(
                "{} packet sockets listen to this interface, {rings} of them with a ring.",
                sockets.len()
            ));
            for socket in sockets {
                // The kernel tells of sockets without a ring alone.
                if let Some(dropped) = socket.dropped {
                    let name = format!("dropped by socket {}", socket.inode);
                    stage.count(
                        &name,
                        "sock_diag(7), PACKET_DIAG_MEMINFO",
                        Some(dropped),
                        Loss::Packets,
                    );
                }
            }
        }
        Err(why) => stage.unread.push(format!("packet sockets: {why}")),
    }
    stage.notes.push(
        "What a ring had no room for is counted in its socket, and its owner alone can read it: netsniff's log capture, the last \
         lines of tcpdump."
            .to_owned(),
    );
    let megabits = look.megabits();
    for (name, rules) in [
        (
            "net.core.rmem_default",
            "bytes of packets that wait in a socket without a mapped ring; it rules no ring of netsniff, tcpdump or dumpcap",
        ),
        ("net.core.rmem_max", "the most that such a socket may ask for"),
        ("net.core.optmem_max", "bytes of options and filters of a socket"),
        ("net.core.busy_read", "microseconds that a read asks the driver itself"),
    ] {
        let Some(knob) = stage.knob(look.kernel, Setting::sysctl(name), rules) else { continue };
        if name == "net.core.rmem_default" {
            // Each packet takes its buffer and its description (`struct sk_buff`, 232 bytes), at least 768 together.
            knob.holds = knob.number().map(|bytes| Holds::bytes(bytes, 768, megabits));
        }
    }
    stage
}

pub(super) fn processes(look: &Look<'_>) -> Stage {
    let mut stage = Stage::new(StageId::Process);
    let all = captures(look);
    if all.is_empty() {
        stage.notes.push(
            "No process captures on this interface, or none that may be looked at.".to_owned(),
        );
    }
    for Capture { pid, name, threads, throttled, sockets, .. } in all {
        let source = format!("/proc/{pid}");
        stage
            .notes
            .push(format!("{name} (process {pid}) captures with {} threads.", threads.len()));
        for socket in sockets.iter().filter(|socket| socket.ring_bytes > 0) {
            let group = socket.fanout_group.map(|it| format!(", of the fan-out group {it}"));
            stage.notes.push(format!(
                "Its socket {} has a ring of {} KiB{}.",
                socket.inode,
                socket.ring_bytes >> 10,
                group.unwrap_or_default()
            ));
        }
        if let Some(throttled) = throttled {
            stage.count(
                &format!("throttled {name} {pid}"),
                "cpu.stat of its control group",
                Some(throttled),
                Loss::Sign,
            );
        }
        for thread in threads {
            let of = format!("thread {} {}", thread.tid, thread.name);
            stage.count(&format!("ran_ns {of}"), &source, thread.ran_ns, Loss::None);
            stage.count(&format!("waited_ns {of}"), &source, thread.waited_ns, Loss::None);
            stage.notes.push(format!(
                "{of} may run on {}, ran last on {}, class {}.",
                thread.allowed,
                thread.processor.map_or_else(|| "unknown".to_owned(), |it| it.to_string()),
                thread.class
            ));
        }
    }
    stage
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Recorded;

    #[test]
    fn a_throttled_process_is_told_in_both_versions() {
        let groups = "/proc/7/cgroup";
        let stat = "nr_periods 9\nnr_throttled 4\nthrottled_usec 1";
        let first = Recorded::of_files([
            (groups, "3:cpu,cpuacct:/lab\n1:name=systemd:/x"),
            ("/sys/fs/cgroup/cpu,cpuacct/lab/cpu.stat", stat),
        ]);
        let second =
            Recorded::of_files([(groups, "0::/a/b"), ("/sys/fs/cgroup/a/b/cpu.stat", stat)]);
        let none =
            Recorded::of_files([(groups, "0::/"), ("/sys/fs/cgroup/cpu.stat", "usage_usec 1")]);
        assert_eq!((throttled(&first, 7), throttled(&second, 7)), (Some(4), Some(4)));
        assert_eq!((throttled(&none, 7), throttled(&none, 8)), (None, None));
    }
}
