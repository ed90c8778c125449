//! The interface that is sent on, the way to send, and what the interface counts meanwhile.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use netsniff_capture::interface::{LinkCounters, LinkReader};
use netsniff_capture::transmit::{SendMethod, Transmitter, WAYS};
use netsniff_capture::{Interface, pin, set_nice};
use netsniff_console::UsageError;
use netsniff_packet::LinkType;

/// How frames are sent.
#[derive(Clone, Copy, Debug)]
pub struct WireOptions<'a> {
    /// How frames get to the kernel, by the name of a way ([`WAYS`]); the first of them that works where it is `None`.
    pub way: Option<&'a str>,
    /// The queue of the interface that AF_XDP sends on.
    pub queue: u32,
    /// The processor to send on.
    pub cpu: Option<usize>,
}

/// An interface that is sent on.
pub struct Wire {
    /// The interface that sends.
    pub interface: Interface,
    /// The transmitter that takes the frames.
    pub transmitter: Box<dyn Transmitter>,
    /// Why it is this way.
    pub choice: String,
    reader: LinkReader,
    before: LinkCounters,
}

impl core::fmt::Debug for Wire {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Wire").field("interface", &self.interface).finish_non_exhaustive()
    }
}

/// What the interface has counted since it was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Counted {
    /// Frames that it sent.
    pub tx_packets: u64,
    /// Frames that it refused or dropped: those that were offered again, each time, and those that were lost.
    pub tx_dropped: u64,
}

impl WireOptions<'_> {
    /// Opens an interface, and another one beside it if there is one, and goes to the processor of the options.
    ///
    /// # Errors
    ///
    /// As [`Wire::open`]; the same interface twice; and a processor that is not there.
    pub fn open(&self, one: &str, other: Option<&str>) -> anyhow::Result<Vec<Wire>> {
        if other == Some(one) {
            let said = format!("{one} cannot be both sides");
            return Err(UsageError(said).into());
        }
        if let Some(cpu) = self.cpu {
            pin(cpu).with_context(|| format!("cannot run on processor {cpu}"))?;
        }
        // Best effort: without the right it is merely less even.
        let _ = set_nice(-20);
        let names = [Some(one), other].into_iter().flatten();
        names.map(|name| Wire::open(self, name)).collect()
    }
}

impl Wire {
    /// Opens an interface in the way of the options.
    ///
    /// # Errors
    ///
    /// An interface that is not there, is down, has no carrier or no Ethernet header, missing rights, and an unknown way.
    pub fn open(options: &WireOptions<'_>, name: &str) -> anyhow::Result<Self> {
        let interface = Interface::find(name)?;
        let name = &interface.name;
        ensure!(
            interface.link_type == LinkType::ETHERNET,
            "{name} has packets of type {}; frames can be sent on Ethernet alone",
            interface.link_type
        );
        ensure!(interface.is_up, "{name} is down; `ip link set {name} up` brings it up");
        ensure!(
            interface.has_carrier,
            "{name} has no carrier: its cable is unplugged, or what is at the other end is down"
        );
        let (transmitter, choice) = open_way(options, &interface)?;
        let mut reader = LinkReader::new(interface.index)?;
        let before = reader.counters()?.with_context(|| format!("{name} is gone"))?;
        Ok(Self { transmitter, choice, reader, before, interface })
    }

    /// Counts from now on.
    ///
    /// # Errors
    ///
    /// An interface that is gone.
    pub(super) fn begin(&mut self) -> anyhow::Result<()> {
        let gone = || format!("{} is gone", self.interface.name);
        self.before = self.reader.counters()?.with_context(gone)?;
        Ok(())
    }

    /// What the interface has counted since then, once it has counted as many frames as were sent or a
    /// second has passed, since some count late; `None` where it is gone.
    pub fn counted(&mut self, sent: u64) -> Option<Counted> {
        let end = Instant::now() + Duration::from_secs(1);
        loop {
            let after = self.reader.counters().ok().flatten()?;
            let counted = Counted {
                tx_packets: after.tx_packets.wrapping_sub(self.before.tx_packets),
                tx_dropped: after.tx_dropped.wrapping_sub(self.before.tx_dropped),
            };
            if counted.tx_packets >= sent || Instant::now() >= end {
                return Some(counted);
            }
            thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Opens the way that was asked for, or else the first of the list that works and takes all frames.
fn open_way(
    options: &WireOptions<'_>,
    interface: &Interface,
) -> anyhow::Result<(Box<dyn Transmitter>, String)> {
    if let Some(name) = options.way {
        let Some(way) = WAYS.iter().find(|way| way.name == name) else {
            let names: Vec<_> = WAYS.iter().map(|way| way.name).collect();
            return Err(UsageError(format!("there is no way {name}; there are {names:?}")).into());
        };
        return Ok((way.open(interface, options.queue)?, "as told".to_owned()));
    }
    let mut refused = Vec::new();
    for way in WAYS {
        match attempt(way, interface, options.queue) {
            Ok(transmitter) if refused.is_empty() => {
                return Ok((transmitter, "the fastest way that was measured".to_owned()));
            }
            Ok(transmitter) => {
                let why: Vec<_> =
                    refused.iter().map(|(way, why)| format!("{way}: {why:#}")).collect();
                return Ok((transmitter, format!("since {}", why.join("; "))));
            }
            Err(error) => refused.push((way.name, error)),
        }
    }
    // The last one needs the least.
    match refused.pop() {
        Some((_, error)) => Err(error),
        None => bail!("there is no way to send"),
    }
}

fn attempt(
    way: &SendMethod,
    interface: &Interface,
    queue: u32,
) -> anyhow::Result<Box<dyn Transmitter>> {
    let transmitter = way.open(interface, queue)?;
    let (longest, needed) = (transmitter.longest(), interface.longest_frame());
    ensure!(
        longest >= needed as usize,
        "it takes {longest} bytes, and frames of {} may have {needed}",
        interface.name
    );
    Ok(transmitter)
}
