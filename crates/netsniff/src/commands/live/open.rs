//! Opening interfaces, and saying what was had.

use std::time::Duration;

use anyhow::Context as _;
use netsniff_capture::backend::{Backend, Path, Receiver, RingUnit, XdpFacts};
use netsniff_capture::host::HostReader;
use netsniff_capture::interface::Offloads;
use netsniff_capture::options::{Fanout, Options, Wait};
use netsniff_capture::{Interface, host};
use netsniff_console::number;
use netsniff_console::{UsageError, say};
use netsniff_packet::filter::Filter;
use netsniff_packet::filter::classic::steering;
use netsniff_pipeline::books::RingPlace;

use super::contention::Contention;
use super::wanted::Wanted;

/// Rings that are open and not started.
pub struct Rings {
    /// The backend that opens the rings.
    pub backend: &'static Backend,
    /// The interfaces, in the order in which they were named.
    pub interfaces: Vec<Interface>,
    /// One for each thread.
    pub rings: Vec<Ring>,
    /// What all interfaces share, opened before the right to do so is given up; `None` where the system does
    /// not tell.
    pub host: Option<HostReader>,
    /// Watches over rings that wait busily, if any do and the system tells.
    pub contention: Option<Contention>,
}

/// A ring and what belongs to it.
pub struct Ring {
    /// Where packets come from.
    pub receiver: Box<dyn Receiver>,
    /// Its interface, backend and options.
    pub place: RingPlace,
    /// What it was opened with, for opening it again.
    pub options: Options,
    /// What is asked of each packet in user space, with the reason why the kernel cannot.
    pub filter: Option<(Filter, String)>,
}

/// How to open interfaces.
pub struct Opening<'a> {
    /// The kind of rings.
    pub backend: &'static Backend,
    /// How to capture, but for the filter and the fan-out.
    pub options: Options,
    /// Which packets are wanted.
    pub wanted: &'a Wanted,
    /// Rings for each interface.
    pub rings: usize,
    /// Processors for them in turn; empty where they may run on any.
    pub cpus: &'a [usize],
    /// The fan-out group to join; `None` for one of our own.
    pub group: Option<u16>,
}

impl Opening<'_> {
    /// Opens the interfaces of these names.
    ///
    /// # Errors
    ///
    /// Missing rights, what the kernel refuses, and filters without meaning.
    pub fn open(&self, names: &[String]) -> anyhow::Result<Rings> {
        let host = HostReader::open().ok();
        let backend = self.backend;
        let is_busy = self.options.wait == Wait::Busy;
        let contention =
            if is_busy { Contention::begin(self.cpus, names.len() * self.rings) } else { None };
        let mut rings =
            Rings { backend, interfaces: Vec::new(), rings: Vec::new(), host, contention };
        for (number, name) in names.iter().enumerate() {
            let interface = Interface::find(name)?;
            let split = self.wanted.split(&interface, self.options.snaplen)?;
            if let (Path::Bypass, Some((_, why))) = (backend.path, &split.rest) {
                return Err(UsageError(format!(
                    "the kernel cannot run the filter ({why}), and with --path bypass the system would lose \
                     packets that are not wanted here; choose --path tap"
                ))
                .into());
            }
            let mut group = self.group;
            for _ in 0..self.rings {
                let fanout = (self.rings > 1 || group.is_some())
                    .then(|| fanout(&interface, group))
                    .transpose()?;
                let filter = split.program.clone();
                let options = Options { filter, fanout, ..self.options.clone() };
                let receiver = backend.open(&interface, &options)?;
                let facts = receiver.facts().clone();
                group = group.or(facts.fanout_group);
                rings.rings.push(Ring {
                    receiver,
                    place: RingPlace { interface: number, facts, is_shared: self.group.is_some() },
                    options,
                    filter: split.rest.clone(),
                });
            }
            rings.interfaces.push(interface);
        }
        Ok(rings)
    }
}

/// Rings share packets out by the unordered pair of addresses, so that what belongs together stays together.
fn fanout(interface: &Interface, group: Option<u16>) -> anyhow::Result<Fanout> {
    let program = steering(interface.link_type)
        .with_context(|| format!("packets of {} cannot be shared out", interface.name))?;
    Ok(Fanout { group, program: program.instructions().to_vec() })
}

/// Says what was asked for, and what of it is at work.
pub fn print_rings(rings: &Rings, wanted: &Wanted, cpus: &[usize]) {
    let path = rings.backend.path;
    say(&format!("path {}: {}", path.name(), path.description()));
    for interface in &rings.interfaces {
        say(&about_interface(interface));
        let xdp = rings.rings.iter().find_map(|ring| ring.place.facts.xdp);
        for warning in about_offloads(interface, interface.offloads(), xdp) {
            say(&warning);
        }
        if rings.rings.iter().any(|ring| ring.options.wait == Wait::Busy) {
            about_busy_waiting(interface, cpus).iter().for_each(|warning| say(warning));
        }
    }
    for ring in &rings.rings {
        for line in about_ring(ring, &rings.interfaces[ring.place.interface], wanted) {
            say(&line);
        }
    }
    let clock = host::clocksource().unwrap_or_else(|| "unknown".to_owned());
    let stamps = rings.rings.first().map(|ring| ring.place.facts.stamps.description());
    let stamps = stamps.unwrap_or("nobody");
    say(&format!("stamps by {stamps}; clocksource {clock}"));
}

fn about_interface(interface: &Interface) -> String {
    let Interface { name, mtu, speed_mbps, driver, is_up, link_type, .. } = interface;
    let mut text = format!("{name}: {}", link_type.name().unwrap_or("unknown link type"));
    text += &driver.as_ref().map(|driver| format!(", driver {driver}")).unwrap_or_default();
    text += &match speed_mbps {
        Some(speed) => format!(", {speed} Mb/s"),
        None => ", speed unknown".to_owned(),
    };
    text += &format!(", MTU {mtu}");
    if !is_up {
        text += "; it is DOWN, and nothing comes until it is up";
    }
    text
}

/// Where busy waiting takes the processor that the kernel needs to receive.
fn about_busy_waiting(interface: &Interface, cpus: &[usize]) -> Option<String> {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    if processors == 1 {
        let said =
            "busy waiting takes the only processor, which the kernel needs to receive packets";
        return Some(said.to_owned());
    }
    let steered = interface.steered_to();
    let shared: Vec<_> =
        steered.iter().filter(|cpu| cpus.is_empty() || cpus.contains(cpu)).collect();
    (!shared.is_empty()).then(|| {
        format!(
            "{}: the kernel receives on processors {shared:?} (rps_cpus), where a ring that waits busily may \
             run: choose others with --cpus, or --wait adaptive",
            interface.name
        )
    })
}

/// What offloads do to what is captured, by an XDP program or beside the stack.
fn about_offloads(interface: &Interface, offloads: Offloads, xdp: Option<XdpFacts>) -> Vec<String> {
    let on = |of: Option<bool>| of == Some(true);
    let name = &interface.name;
    let mut said = Vec::new();
    if xdp.is_some() && on(offloads.rxvlan) {
        said.push(format!(
            "{name}: rxvlan is on: VLAN tags that the interface takes out are not seen by an XDP program. To \
             see them: ethtool -K {name} rxvlan off"
        ));
    }
    if xdp.is_some_and(|xdp| xdp.is_native) {
        // It runs before segments are merged, and sees none that this machine sends.
        return said;
    }
    let merged: Vec<&str> = [(offloads.gro, "GRO"), (offloads.lro, "LRO")]
        .into_iter()
        .filter_map(|(is_on, name)| on(is_on).then_some(name))
        .collect();
    if !merged.is_empty() {
        said.push(format!(
            "{name}: {} is on: received segments may be merged into packets larger than the MTU, which \
             are counted as super_frames. To see those of the wire: ethtool -K {name} gro off lro off",
            merged.join(" and ")
        ));
    }
    if on(offloads.tso) || on(offloads.gso) {
        said.push(format!(
            "{name}: TSO or GSO is on: segments of this machine are captured before they are cut, and \
             without checksums, which are not judged"
        ));
    }
    said
}

fn about_ring(of: &Ring, interface: &Interface, wanted: &Wanted) -> Vec<String> {
    let (facts, options) = (&of.place.facts, &of.options);
    let mut lines = Vec::new();
    let name = &facts.interface;
    let mut ring = format!("{name}: {}, {} {}", facts.backend, facts.units, facts.unit.plural());
    if facts.unit != RingUnit::Byte {
        ring += &format!(" of {}", number::bytes(facts.unit_bytes as u64));
    }
    if let Some(memory) = &facts.memory {
        ring = format!(
            "{ring} = {} granted of {} wanted",
            number::bytes(memory.granted as u64),
            number::bytes(memory.wanted as u64)
        );
        // Where the interface does not know its speed, the usual one gives an idea.
        let speed = interface.speed_mbps.unwrap_or(1000);
        if let Some(millis) = memory.millis_at(speed) {
            ring += &format!(", {millis} ms at {speed} Mb/s");
        }
        for (size, why) in &memory.refused {
            let size = number::bytes(*size as u64);
            lines.push(format!("{name}: a ring of {size} was refused: {why}"));
        }
    }
    ring += &format!(", snaplen {}", facts.snaplen);
    lines.push(ring);
    let mut active = Vec::new();
    match (wanted.text(), &of.filter) {
        (Some(text), None) => {
            let counts = if facts.counts_filtered { ", counts what it refuses" } else { "" };
            let len = facts.filter_len;
            active.push(format!("filter in the kernel, {len} instructions{counts}: {text}"));
        }
        (_, Some((filter, why))) => {
            active.push(format!("filter in user space, since {why}: {}", filter.text()));
        }
        (None, None) => active.push("no filter".to_owned()),
    }
    if let Some(one_in) = wanted.sampled() {
        active.push(format!("one in {one_in} pairs of addresses"));
    }
    active.push(if options.promiscuous { "promiscuous" } else { "not promiscuous" }.to_owned());
    active.extend(facts.xdp.map(about_xdp));
    active.extend(facts.fanout_group.map(|group| format!("fan-out group {group}")));
    match (options.busy_poll, facts.busy_poll) {
        (Some(_), Some(micros)) => active.push(format!("busy polling for {micros} µs")),
        (Some(asked), None) => active.push(format!("busy polling for {asked:?} NOT active")),
        (None, _) => {}
    }
    active.push(format!("wait {}", format!("{:?}", options.wait).to_lowercase()));
    if facts.unit == RingUnit::Block {
        active.push(format!("blocks open for {}", number::duration(nanos(options.retire))));
    }
    lines.push(format!("{name}: {}", active.join("; ")));
    lines
}

/// Where an XDP program takes packets, and how they come from there.
fn about_xdp(xdp: XdpFacts) -> String {
    let place = if xdp.is_native { "in the driver (native)" } else { "before the stack (generic)" };
    let how = match xdp.is_zero_copy {
        Some(true) => ", zero-copy",
        Some(false) => ", copy mode",
        None => "",
    };
    format!("XDP program {place}{how}, for what comes in (queues: {})", xdp.queues)
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
