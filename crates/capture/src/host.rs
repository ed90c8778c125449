//! What the host counts for all of its interfaces together, and where it tells of each without a lock.

use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::FileExt as _;

use crate::error::{CallContext as _, Error, Result};
use crate::sys::netlink::{self, Netlink, attribute};

/// Where the kernel counts for each processor what it does with received packets.
const SOFTNET_STAT: &str = "/proc/net/softnet_stat";

/// Where it tells what each interface of this thread's namespace has counted. Unlike rtnetlink(7), it does not wait for
/// who changes interfaces.
const INTERFACES: &str = "/proc/thread-self/net/dev";

/// More processors no kernel has (`CONFIG_NR_CPUS`).
const MOST_PROCESSORS: usize = 8192;

/// Totals over all processors since the host was started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostCounters {
    /// Packets that found the backlog of a processor full.
    pub backlog_dropped: u64,
    /// Times that packets were left when the budget or the time was spent.
    pub time_squeezes: u64,
}

/// Packets between interfaces and the stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Packets that wait in the queue.
    pub waiting: u64,
    /// Processors, each of which may have one in hand.
    pub processors: u64,
}

/// Reads the host's counters again and again, from a file that stays open.
#[derive(Debug)]
pub struct HostReader {
    softnet: File,
    interfaces: File,
}

/// What the interfaces had counted at a moment.
#[derive(Clone, Debug, Default)]
pub struct Interfaces(String);

/// Packets that an interface has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    /// Packets received and handed to the system.
    pub rx_packets: u64,
    /// Packets that the interface has sent.
    pub tx_packets: u64,
}

impl Interfaces {
    /// What the interface of this name has counted; `None` where there is none.
    #[must_use]
    pub fn of(&self, name: &str) -> Option<Passed> {
        let counted = self
            .0
            .lines()
            .find_map(|line| line.trim_start().strip_prefix(name)?.strip_prefix(':'))?;
        let mut columns = counted.split_ascii_whitespace();
        let mut column = |skip| columns.nth(skip)?.parse().ok();
        // Eight columns of what was received, bytes before packets, then as many of what was sent.
        Some(Passed { rx_packets: column(1)?, tx_packets: column(7)? })
    }

    /// The names of all of them, in the order in which the kernel tells them.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        let name = |line: &str| Some(line.split_once(':')?.0.trim().to_owned());
        // Two lines of headings come first.
        self.0.lines().skip(2).filter_map(name).collect()
    }
}

impl HostReader {
    /// Opens what is needed.
    ///
    /// # Errors
    ///
    /// Where /proc is not mounted.
    pub fn open() -> Result<Self> {
        let softnet = File::open(SOFTNET_STAT).trying(format!("open {SOFTNET_STAT}"))?;
        let interfaces = File::open(INTERFACES).trying(format!("open {INTERFACES}"))?;
        Ok(Self { softnet, interfaces })
    }

    /// What the interfaces have counted so far.
    ///
    /// # Errors
    ///
    /// Where the file cannot be read.
    pub fn interfaces(&mut self) -> Result<Interfaces> {
        Ok(Interfaces(read(&self.interfaces, INTERFACES)?))
    }

    /// What was counted so far.
    ///
    /// # Errors
    ///
    /// Where the file cannot be read.
    pub fn counters(&mut self) -> Result<HostCounters> {
        Ok(totals(&softnet(&self.text()?)))
    }

    /// Packets that each processor has received so far, by its number; 0 for those that are offline.
    ///
    /// # Errors
    ///
    /// Where the file cannot be read.
    pub fn received(&mut self) -> Result<Vec<u64>> {
        Ok(received(&softnet(&self.text()?)))
    }

    /// Packets that interfaces have handed over and that wait for the stack, and how many processors may have one
    /// more in hand; `None` where the kernel does not tell (before Linux 5.10).
    ///
    /// # Errors
    ///
    /// Where the file cannot be read.
    pub fn backlog(&mut self) -> Result<Option<Backlog>> {
        Ok(backlog(&softnet(&self.text()?)))
    }

    fn text(&self) -> Result<String> {
        read(&self.softnet, SOFTNET_STAT)
    }
}

/// A file from its begin.
fn read(file: &File, name: &str) -> Result<String> {
    let mut text = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let at = text.len() as u64;
        let got = file.read_at(&mut piece, at).trying(format!("read {name}"))?;
        if got == 0 {
            break;
        }
        text.extend_from_slice(&piece[..got]);
    }
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// One more than the highest number of a processor that may ever be there.
pub(crate) fn possible_processors() -> Result<u32> {
    /// Ranges of numbers, the highest last.
    const POSSIBLE: &str = "/sys/devices/system/cpu/possible";
    let text = std::fs::read_to_string(POSSIBLE).trying(format!("read {POSSIBLE}"))?;
    let last = text.trim().rsplit([',', '-']).next().and_then(|last| last.parse::<u32>().ok());
    let count = last.and_then(|last| last.checked_add(1));
    count.ok_or_else(|| Error::Invalid(format!("{POSSIBLE} makes no sense: {text}")))
}

/// What a processor has done with received packets: a line of `/proc/net/softnet_stat`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Softnet {
    /// Its number.
    pub processor: usize,
    /// Packets that it received.
    pub processed: u64,
    /// Packets for which its backlog had no room.
    pub dropped: u64,
    /// How often it stopped although more was there.
    pub squeezed: u64,
    /// How often another processor asked it to receive (RPS).
    pub steered: u64,
    /// Packets that wait in its backlog; `None` where the kernel does not tell (before Linux 5.10).
    pub waiting: Option<u64>,
}

/// Reads `/proc/net/softnet_stat`: a line for each processor, columns in hexadecimal. Lines that make no sense are left out.
#[must_use]
pub fn softnet(text: &str) -> Vec<Softnet> {
    /// Where the steered, the waiting and the processor's number stand. Before Linux 5.10 there was no number, and lines
    /// were as many as processors.
    const STEERED: usize = 9;
    const WAITING: usize = 11;
    const PROCESSOR: usize = 12;
    let line = |(at, line): (usize, &str)| {
        let columns = line.split_ascii_whitespace();
        let columns: Vec<_> =
            columns.map(|word| u64::from_str_radix(word, 16).ok()).take(PROCESSOR + 1).collect();
        let column = |at: usize| columns.get(at).copied().flatten();
        let number = column(PROCESSOR).map_or(Some(at), |number| usize::try_from(number).ok());
        Some(Softnet {
            processor: number.filter(|number| *number < MOST_PROCESSORS)?,
            processed: column(0)?,
            dropped: column(1).unwrap_or_default(),
            squeezed: column(2).unwrap_or_default(),
            steered: column(STEERED).unwrap_or_default(),
            waiting: column(WAITING),
        })
    };
    text.lines().enumerate().filter_map(line).collect()
}

fn totals(all: &[Softnet]) -> HostCounters {
    HostCounters {
        backlog_dropped: all.iter().map(|one| one.dropped).sum(),
        time_squeezes: all.iter().map(|one| one.squeezed).sum(),
    }
}

/// Packets that each processor has received, at the place of its number.
fn received(all: &[Softnet]) -> Vec<u64> {
    let mut received = Vec::new();
    for one in all {
        received.resize(received.len().max(one.processor + 1), 0);
        received[one.processor] = one.processed;
    }
    received
}

/// What waits on all of them; `None` where one does not tell.
fn backlog(all: &[Softnet]) -> Option<Backlog> {
    let waiting = all.iter().map(|one| one.waiting).sum::<Option<u64>>()?;
    Some(Backlog { waiting, processors: all.len() as u64 })
}

/// A packet socket of this network namespace, of any process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct PacketSocket {
    /// Its number in links of `/proc/PID/fd`.
    pub inode: u32,
    /// Number of the interface that it is bound to; 0 for all of them.
    pub interface: u32,
    /// Bytes of the ring that packets wait in; 0 for a socket without one.
    pub ring_bytes: u64,
    /// The fan-out group that it is a member of.
    pub fanout_group: Option<u16>,
    /// Packets for which a socket without a ring had no room; those of rings are told to their owner alone.
    pub dropped: Option<u64>,
}

impl PacketSocket {
    /// Reads attributes of <linux/packet_diag.h>.
    fn parse(inode: u32, attributes: &[u8]) -> Self {
        /// `PACKET_DIAG_INFO`, `_RX_RING`, `_FANOUT` and `_MEMINFO`; the last one has drops at its ninth word.
        const INFO: u16 = 0;
        const RING: u16 = 2;
        const FANOUT: u16 = 4;
        const MEMORY: u16 = 6;
        let word = |kind: u16, at: usize| netlink::word(attribute(attributes, kind)?, at * 4);
        let ring = word(RING, 0).zip(word(RING, 1));
        let ring_bytes = ring.map_or(0, |(bytes, count)| u64::from(bytes) * u64::from(count));
        Self {
            inode,
            interface: word(INFO, 0).unwrap_or_default(),
            ring_bytes,
            fanout_group: word(FANOUT, 0).map(|group| group as u16),
            dropped: if ring_bytes > 0 { None } else { word(MEMORY, 8).map(u64::from) },
        }
    }
}

/// All packet sockets of this network namespace.
///
/// # Errors
///
/// Where the kernel does not tell.
pub fn packet_sockets() -> Result<Vec<PacketSocket>> {
    let sockets = Netlink::of_sockets().and_then(|mut netlink| netlink.packet_sockets());
    let sockets = sockets.trying("ask for packet sockets")?;
    Ok(sockets.iter().map(|(inode, attributes)| PacketSocket::parse(*inode, attributes)).collect())
}

/// A queueing discipline (tc(8)) of an interface of this network namespace: frames that are sent wait in it, or are filtered.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Qdisc {
    /// Number of the interface.
    pub interface: u32,
    /// Its kind, as `fq_codel`.
    pub kind: String,
    /// Packets that it had no room for or dropped by its rules; `None` where the kernel does not tell.
    pub dropped: Option<u64>,
}

impl Qdisc {
    /// Reads attributes of <linux/rtnetlink.h>.
    fn parse(interface: u32, attributes: &[u8]) -> Self {
        /// `TCA_KIND`, `TCA_STATS2`, and in that `TCA_STATS_QUEUE`, which has drops at its third word.
        const KIND: u16 = 1;
        const STATS: u16 = 7;
        const QUEUE: u16 = 3;
        let kind = attribute(attributes, KIND).unwrap_or_default();
        let kind = kind.split(|byte| *byte == 0).next().unwrap_or_default();
        let queue = attribute(attributes, STATS).and_then(|stats| attribute(stats, QUEUE));
        Self {
            interface,
            kind: String::from_utf8_lossy(kind).into_owned(),
            dropped: queue.and_then(|queue| netlink::word(queue, 8)).map(u64::from),
        }
    }
}

/// All queueing disciplines of this network namespace.
///
/// # Errors
///
/// Where the kernel does not tell.
pub fn qdiscs() -> Result<Vec<Qdisc>> {
    let all = Netlink::open().and_then(|mut netlink| netlink.qdiscs());
    let all = all.trying("ask for queueing disciplines")?;
    Ok(all.iter().map(|(interface, attributes)| Qdisc::parse(*interface, attributes)).collect())
}

/// Bytes of memory that can be had without pressing others (`MemAvailable`); `None` where the kernel does not
/// tell.
#[must_use]
pub fn available_memory() -> Option<usize> {
    let mut text = String::new();
    File::open("/proc/meminfo").ok()?.read_to_string(&mut text).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kibibytes: usize = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

/// Bytes that this process may map beside what it has mapped (`ulimit -v`); `None` without such a limit, and where the kernel
/// does not tell.
#[must_use]
pub fn mappable_memory() -> Option<usize> {
    let read = |path| {
        let mut text = String::new();
        File::open(path).ok()?.read_to_string(&mut text).ok().map(|_| text)
    };
    mappable(&read("/proc/self/limits")?, &read("/proc/self/status")?)
}

fn mappable(limits: &str, status: &str) -> Option<usize> {
    let limit = limits.lines().find_map(|line| line.strip_prefix("Max address space"))?;
    let limit: usize = limit.split_whitespace().next()?.parse().ok()?;
    let size = status.lines().find_map(|line| line.strip_prefix("VmSize:"))?;
    let kibibytes: usize = size.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(limit.saturating_sub(kibibytes.checked_mul(1024)?))
}

/// The clock by which the kernel measures time, as sysfs tells; `None` where it does not.
#[must_use]
pub fn clocksource() -> Option<String> {
    const PATH: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    let mut name = String::new();
    File::open(PATH).ok()?.read_to_string(&mut name).ok()?;
    Some(name.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_add_up() {
        let text = "0000a1b2 00000003 00000010 00000000\n00000001 0000000f 00000001 00000000\n";
        let sum = totals(&softnet(text));
        assert_eq!((sum.backlog_dropped, sum.time_squeezes), (18, 17));
        assert_eq!(totals(&softnet("")), HostCounters::default());
    }

    #[test]
    fn each_processor_has_its_packets() {
        let rest = "0 0 0 0 0 0 0 0 0 0 0";
        let text = format!("10 {rest} 0 0 0\n2b {rest} 3 0 0\nxyz {rest} 1\n5 {rest} ffffffff\n");
        assert_eq!(received(&softnet(&text)), [16, 0, 0, 43]);
        assert_eq!(received(&softnet("a 0 0\nb 0 0\n")), [10, 11]);
        let mut reader = HostReader::open().unwrap();
        assert!(!reader.received().unwrap().is_empty());
    }

    #[test]
    fn each_processor_has_its_line() {
        let rest = "0 0 0 0 0 0";
        let all = softnet(&format!("10 2 3 {rest} 4 7 5 1\nff 0 1 {rest} 0 0 0 5"));
        let first = Softnet {
            processor: 1,
            processed: 16,
            dropped: 2,
            squeezed: 3,
            steered: 4,
            waiting: Some(5),
        };
        assert_eq!((all[0], all[1].processor, all[1].processed), (first, 5, 255));
    }

    #[test]
    fn what_waits_for_the_stack_is_known_where_the_kernel_tells() {
        let text = "10 0 0 0 0 0 0 0 0 0 0 1a 0 0 0\n2b 0 0 0 0 0 0 0 0 0 0 3 1 3 0\n";
        assert_eq!(backlog(&softnet(text)), Some(Backlog { waiting: 29, processors: 2 }));
        assert_eq!(backlog(&softnet("10 0 0 0 0 0 0 0 0 0 0\n")), None);
    }

    #[test]
    fn interfaces_are_told_apart() {
        let text = "Inter-|   Receive\n face |bytes\n    lo: 10 1 0 0 0 0 0 0 20 2 0 0 0 0 0 0\n\
                    eth0.5:30 3 0 0 0 0 0 0 40 4 0 0 0 0 0 0\n  eth0: 50 5 0 0 0 0 0 0 60 6 0 0 0 0 0 0\n";
        let of = |name| Interfaces(text.to_owned()).of(name);
        let passed = |rx_packets, tx_packets| Some(Passed { rx_packets, tx_packets });
        assert_eq!(
            (of("lo"), of("eth0"), of("eth0.5")),
            (passed(1, 2), passed(5, 6), passed(3, 4))
        );
        assert_eq!((of("eth"), of("eth1")), (None, None));
        assert_eq!(Interfaces(text.to_owned()).names(), ["lo", "eth0.5", "eth0"]);
        let here = HostReader::open().unwrap().interfaces().unwrap().of("lo").unwrap();
        assert_eq!(here.rx_packets, here.tx_packets);
    }

    #[test]
    fn sockets_are_read_as_the_kernel_tells_them() {
        let mut attributes = Vec::new();
        let add = |attributes: &mut Vec<u8>, kind: u16, words: &[u32]| {
            attributes.extend((4 + 4 * words.len() as u16).to_ne_bytes());
            attributes.extend(kind.to_ne_bytes());
            words.iter().for_each(|word| attributes.extend(word.to_ne_bytes()));
        };
        add(&mut attributes, 0, &[7, 2, 0, 0, 0, 0]);
        add(&mut attributes, 6, &[0, 0, 0, 0, 0, 0, 0, 0, 9]);
        let plain = PacketSocket::parse(5, &attributes);
        add(&mut attributes, 2, &[1 << 20, 64, 2048, 1, 50, 0, 0]);
        add(&mut attributes, 4, &[0x6_0003]);
        let ring = PacketSocket::parse(5, &attributes);
        let expected =
            PacketSocket { inode: 5, interface: 7, dropped: Some(9), ..PacketSocket::default() };
        assert_eq!(plain, expected);
        let expected =
            PacketSocket { ring_bytes: 64 << 20, fanout_group: Some(3), dropped: None, ..expected };
        assert_eq!(ring, expected);
        // The kernel may not be able to tell; what it tells is of sockets, each with an inode.
        let sockets = packet_sockets().unwrap_or_default();
        assert!(sockets.iter().all(|socket| socket.inode > 0), "{sockets:?}");
    }

    #[test]
    fn disciplines_are_read_as_the_kernel_tells_them() {
        let attribute = |kind: u16, value: &[u8]| {
            let head = [(4 + value.len() as u16).to_ne_bytes(), kind.to_ne_bytes()].concat();
            let mut all = [&head, value].concat();
            all.resize(all.len().next_multiple_of(4), 0);
            all
        };
        let queue: Vec<u8> = [1_u32, 2, 37, 4, 5].iter().flat_map(|it| it.to_ne_bytes()).collect();
        let kind = attribute(1, b"fq_codel\0");
        let whole = [kind.clone(), attribute(7, &attribute(3, &queue))].concat();
        let expected = Qdisc { interface: 3, kind: "fq_codel".to_owned(), dropped: Some(37) };
        assert_eq!(Qdisc::parse(3, &whole), expected);
        assert_eq!(Qdisc::parse(3, &kind), Qdisc { dropped: None, ..expected });
        assert_eq!(Qdisc::parse(0, &[9, 0]), Qdisc::default());
        // The loopback interface has one wherever there are some.
        let here = qdiscs().unwrap();
        assert!(here.iter().all(|it| !it.kind.is_empty() && it.interface > 0), "{here:?}");
    }

    #[test]
    fn this_host_has_memory() {
        assert!(available_memory().unwrap() > 1 << 20);
        assert!(mappable_memory().is_none_or(|bytes| bytes > 1 << 20));
    }

    #[test]
    fn a_process_may_map_what_its_limit_leaves() {
        let limits = |soft| {
            format!(
                "Limit                     Soft Limit           Hard Limit           Units     \n\
                 Max processes             94000                94000                processes \n\
                 Max address space         {soft:<20} unlimited            bytes     \n"
            )
        };
        let status = "Name:\tnetsniff\nVmPeak:\t 9000 kB\nVmSize:\t 1000 kB\nVmRSS:\t 300 kB\n";
        assert_eq!(mappable(&limits("3072000"), status), Some(2_048_000));
        assert_eq!(mappable(&limits("1000"), status), Some(0));
        assert_eq!(mappable(&limits("unlimited"), status), None);
        assert_eq!((mappable(&limits("3072000"), ""), mappable("", status)), (None, None));
    }

    #[test]
    fn this_host_counts() {
        let mut reader = HostReader::open().unwrap();
        let first = reader.counters().unwrap();
        assert!(reader.counters().unwrap().time_squeezes >= first.time_squeezes);
    }
}
