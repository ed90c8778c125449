//! Two network namespaces joined by a veth pair: `tx0` sends, `rx0` receives.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow, ensure};
use netsniff_capture::interface::{LinkCounters, LinkReader};
use netsniff_capture::{Interface, in_namespace};

use super::tap::{self, Tap};
use super::{
    GeneratorOutput, Layout, Meanwhile, Placement, Processors, SENDER_CPU, TICK, WireEnds,
    processors,
};
use crate::host::namespace::{inside, ip, raise};
use crate::host::nic::Nic;
use crate::host::process;
use crate::host::sysctl;
use crate::load::Load;
use crate::tools::{self, Setting};

/// How long the kernel may take to start a thread.
const PATIENCE: Duration = Duration::from_secs(5);

/// The namespace of a bed that sends.
pub(super) fn sender(bed: &str) -> String {
    format!("{bed}-tx")
}

/// The namespace of a bed that receives.
pub(super) fn receiver(bed: &str) -> String {
    format!("{bed}-rx")
}

/// Both of them, which the warden of the bed removes.
#[derive(Debug)]
pub(super) struct Pair {
    name: String,
    tap: Option<Tap>,
    processors: Processors,
    /// Whether frames are sent on all queues.
    is_spread: bool,
    tx: Mutex<LinkReader>,
    rx: Mutex<LinkReader>,
}

impl Pair {
    /// Makes the namespaces of a bed with a name, a directory for scratch files, and the processors that capture.
    pub(super) fn make(
        name: &str,
        scratch: &Path,
        layout: &Layout,
        processors: &Processors,
    ) -> anyhow::Result<Self> {
        let queues = layout.queues.to_string();
        build(name, &queues)?;
        let receiver = receiver(name);
        if let Some(tap) = &layout.tap {
            tap.build(&receiver, &queues)?;
        }
        for setting in &layout.sysctls {
            sysctl::change(scratch, &receiver, setting)?;
        }
        place(name, layout)?;
        if layout.has_spread_queues() {
            spread(&sender(name))?;
        }
        let reader = |namespace: &str, name: &str| {
            let open = || LinkReader::new(Interface::find(name)?.index);
            let opened = in_namespace(namespace, open).context("cannot enter a namespace")?;
            opened.context("cannot read counters").map(Mutex::new)
        };
        let (tx, rx) = (reader(&sender(name), "tx0")?, reader(&receiver, "rx0")?);
        let processors = processors.clone();
        let is_spread = layout.has_spread_queues();
        Ok(Self { name: name.to_owned(), tap: layout.tap, processors, is_spread, tx, rx })
    }

    fn command(namespace: &str, processors: &Processors, words: &[String]) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", namespace]).args(processors.taskset()).args(words);
        command
    }
}

impl WireEnds for Pair {
    fn interface(&self) -> &str {
        if self.tap.is_some() { tap::MONITOR } else { "rx0" }
    }

    fn capture(&self, words: &[String]) -> Command {
        Self::command(&receiver(&self.name), &self.processors, words)
    }

    fn send(
        &self,
        netsniff: &Path,
        load: &Load,
        most: Duration,
        meanwhile: Meanwhile<'_>,
    ) -> anyhow::Result<GeneratorOutput> {
        let program = tools::ours(&netsniff.display().to_string());
        let spread = self.is_spread.then(|| on_all_queues(load));
        let arguments = spread.as_ref().unwrap_or(load).arguments("tx0", SENDER_CPU);
        let words = [program, arguments].concat();
        let mut command = Self::command(&sender(&self.name), &Processors::sender(), &words);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().context("cannot start the generator")?;
        let end = Instant::now() + most;
        while process::wait(&mut child, TICK)?.is_none() {
            let ended = match meanwhile() {
                Ok(()) if Instant::now() < end => continue,
                Ok(()) => anyhow!("the generator does not end"),
                Err(why) => why,
            };
            // It may have ended by itself.
            let _ = child.kill();
            let _ = child.wait();
            return Err(ended);
        }
        // Its report is one line, which a pipe has room for.
        let out = child.wait_with_output().context("cannot read the generator's report")?;
        let [report, errors] =
            [out.stdout, out.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
        Ok(GeneratorOutput { report, errors })
    }

    fn left(&self) -> anyhow::Result<u64> {
        let counters = counters(&self.tx, "tx0")?;
        // A veth counts what the other end's backlog dropped as not sent.
        Ok(counters.tx_packets.wrapping_add(counters.tx_dropped))
    }

    fn dropped(&self) -> anyhow::Result<u64> {
        Ok(counters(&self.tx, "tx0")?.tx_dropped)
    }

    fn came(&self) -> anyhow::Result<LinkCounters> {
        counters(&self.rx, "rx0")
    }

    fn nics(&self) -> Vec<Nic> {
        let (tx, rx) = (sender(&self.name), receiver(&self.name));
        let monitor = self.tap.map(|_| (&rx, tap::MONITOR));
        let all = [(&tx, "tx0"), (&rx, "rx0")].into_iter().chain(monitor);
        let look = |(namespace, name): (&String, &str)| {
            in_namespace(namespace, || Nic::look(name)).ok().flatten()
        };
        all.filter_map(look).collect()
    }

    fn meter(&self) -> anyhow::Result<Option<tap::Meter>> {
        self.tap.map(|tap| tap::Meter::open(&receiver(&self.name), tap)).transpose()
    }
}

/// What an interface has counted.
pub(super) fn counters(reader: &Mutex<LinkReader>, name: &str) -> anyhow::Result<LinkCounters> {
    let mut reader = reader.lock().unwrap_or_else(PoisonError::into_inner);
    reader.counters()?.with_context(|| format!("{name} is gone"))
}

/// Makes the namespaces of a bed, with interfaces of so many queues.
fn build(bed: &str, number: &str) -> anyhow::Result<()> {
    let (tx, rx) = (&sender(bed), &receiver(bed));
    for namespace in [tx, rx] {
        ip(&["netns", "add", namespace])?;
        let off = "net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1";
        inside(namespace, &format!("sysctl -qw {off} || true"))?;
    }
    let queues = ["numtxqueues", number, "numrxqueues", number];
    let (one, other) = (["link", "add", "name", "tx0"], ["name", "rx0", "netns", rx]);
    let pair = [&one[..], &["netns", tx], &queues, &["type", "veth", "peer"], &other, &queues];
    ip(&pair.concat())?;
    for (namespace, name, address) in
        [(tx, "tx0", "02:00:00:00:00:0a"), (rx, "rx0", "02:00:00:00:00:0b")]
    {
        raise(namespace, name, &["address", address])?;
    }
    Ok(())
}

/// Lets who is to pay for receiving pay.
fn place(bed: &str, layout: &Layout) -> anyhow::Result<()> {
    let rx = &receiver(bed);
    let receiving = Processors::of(layout.receiving(), processors::there());
    // A veth has a NAPI only where it merges packets; ours are of different flows.
    let napi = "ethtool -K rx0 gro on";
    match layout.placement {
        Placement::None | Placement::AsFound => Ok(()),
        Placement::Napi => inside(rx, napi),
        Placement::Rps => {
            let mask = receiving.mask();
            let each = "for queue in /sys/class/net/rx0/queues/rx-*";
            inside(rx, &format!("{each}; do echo {mask} >$queue/rps_cpus || exit 1; done"))
        }
        Placement::Thread => {
            inside(rx, &format!("{napi} && echo 1 >/sys/class/net/rx0/threaded"))?;
            let end = Instant::now() + PATIENCE;
            while process::pin_newest("napi/rx0-", layout.queues as usize, receiving.numbers())?
                < layout.queues as usize
            {
                ensure!(Instant::now() < end, "rx0 has no NAPI thread for each queue");
                thread::sleep(Duration::from_millis(20));
            }
            Ok(())
        }
    }
}

/// The way of the generator to send that leaves the choice of a queue to the kernel: an XDP socket sends on one.
const SPREADING_WAY: (&str, &str) = ("way", "tx-ring");

/// Options of the generator that say on which queue it sends.
const OF_QUEUES: [&str; 2] = ["way", "queue"];

/// Lets the sender's processor send on all queues, so that flows are spread over them. Without that a packet socket that passes
/// the queueing discipline over has one queue for each processor (`packet_pick_tx_queue` in the kernel's
/// net/packet/af_packet.c).
fn spread(tx: &str) -> anyhow::Result<()> {
    let mask = Processors::sender().mask();
    let each = "for queue in /sys/class/net/tx0/queues/tx-*";
    inside(tx, &format!("{each}; do echo {mask} >$queue/xps_cpus || exit 1; done"))
}

/// A load with frames on all queues, unless it says itself on which.
fn on_all_queues(load: &Load) -> Load {
    let is_told = load.options.iter().any(|it| OF_QUEUES.contains(&it.name.as_str()));
    let (name, value) = SPREADING_WAY;
    let way = Setting { name: name.to_owned(), value: value.to_owned() };
    load.clone().with(if is_told { &[] } else { std::slice::from_ref(&way) })
}
