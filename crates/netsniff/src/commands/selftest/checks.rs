//! THE list of what is tried.

use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use netsniff_capture::Interface;
use netsniff_capture::backend::{BACKENDS, Backend, Received, Receiver, RingFacts};
use netsniff_capture::options::{Direction, Fanout, Options};
use netsniff_capture::transmit::{SendMethod, WAYS};
use netsniff_packet::filter::Filter;
use netsniff_packet::filter::classic::{self, Target, steering};
use netsniff_traffic::probe;
use netsniff_traffic::stamp::Stamp;

use super::Check;
use super::wire::Wire;

/// Frames of each try.
const FRAMES: u32 = 500;

/// Bytes of each, frame check sequence included.
const SIZE: usize = 128;

/// How long the last frames may take to arrive.
const PATIENCE: Duration = Duration::from_millis(400);

/// Tries everything.
pub(super) fn all(wire: &Wire) -> Vec<Check> {
    let mut checks = Vec::new();
    let mut check = |name: &str, is_needed: bool, tried: anyhow::Result<String>| {
        let (works, text) = match tried {
            Ok(text) => (true, text),
            Err(why) => (false, format!("{why:#}")),
        };
        checks.push(Check { name: name.to_owned(), works, text, is_needed });
    };
    for (number, backend) in BACKENDS.iter().enumerate() {
        check(&format!("capture {}", backend.name), number == 0, capture(wire, backend));
    }
    for way in WAYS {
        check(&format!("send {}", way.name), false, send(wire, way));
    }
    check("filter in the kernel", false, filter(wire));
    check("snap length in the kernel", false, snaplen(wire));
    check("rings that share packets", false, fanout(wire));
    check("stamps", false, stamps(wire));
    checks
}

/// What a ring got of the frames of a run.
#[derive(Debug, Default)]
struct Got {
    frames: u64,
    /// The most bytes that were kept of one.
    longest: u32,
    /// Frames whose stamp is less than a second off this machine's clock.
    near: u64,
}

fn options() -> Options {
    Options { direction: Direction::In, ..Options::default() }
}

fn open(wire: &Wire, backend: &Backend, options: &Options) -> anyhow::Result<Box<dyn Receiver>> {
    let name = wire.receiver();
    wire.at_receiver(|| {
        let mut receiver = backend.open(&Interface::find(name)?, options)?;
        receiver.start()?;
        Ok(receiver)
    })
}

/// The interface that receives.
fn interface(wire: &Wire) -> anyhow::Result<Interface> {
    let name = wire.receiver();
    wire.at_receiver(|| Ok(Interface::find(name)?))
}

/// A way that sends on every interface, whatever else works.
fn plain() -> anyhow::Result<&'static SendMethod> {
    WAYS.last().context("there is no way to send")
}

/// Sends the frames of a run, of so many flows.
fn transmit(wire: &Wire, way: &SendMethod, run: u32, flows: u32) -> anyhow::Result<()> {
    let name = wire.sender();
    wire.at_sender(|| {
        let mut transmitter = way.open(&Interface::find(name)?, 0)?;
        for number in 0..FRAMES {
            let mut frame = probe::frame(SIZE, number % flows).context("no frame has this size")?;
            let stamp = Stamp { run, stream: 0, sequence: number.into(), sent: 0 };
            ensure!(stamp.emit(&mut frame[probe::STAMP_AT..]), "a frame has no room for a stamp");
            let begin = Instant::now();
            loop {
                if let Some((_, room)) = transmitter.room() {
                    room[..frame.len()].copy_from_slice(&frame);
                    transmitter.fill(frame.len());
                    break;
                }
                transmitter.flush()?;
                ensure!(begin.elapsed() < PATIENCE, "the kernel takes no frames");
            }
        }
        let begin = Instant::now();
        while transmitter.pending() > 0 {
            transmitter.flush()?;
            ensure!(
                begin.elapsed() < PATIENCE,
                "{} frames are not taken by the kernel",
                transmitter.pending()
            );
        }
        Ok(())
    })
}

/// What a ring has of the frames of a run.
fn collect(receiver: &mut dyn Receiver, run: u32) -> anyhow::Result<Got> {
    let mut got = Got::default();
    let (begin, now) = (Instant::now(), netsniff_capture::realtime());
    while begin.elapsed() < PATIENCE && got.frames < FRAMES.into() {
        if let Received::Packets(lent) = receiver.receive(Duration::from_millis(50))? {
            for packet in lent.packets {
                let data = lent.data.get(packet.range()).unwrap_or_default();
                let stamp = data.get(probe::STAMP_AT..).and_then(Stamp::parse);
                if stamp.is_some_and(|stamp| stamp.run == run) {
                    got.frames += 1;
                    got.longest = got.longest.max(packet.captured_len);
                    let off = packet.timestamp.nanos_since(now).abs();
                    got.near += u64::from(off < 5_000_000_000);
                }
            }
        }
    }
    Ok(got)
}

/// A number of a run that no other one has.
fn run_number() -> u32 {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    (std::process::id() << 8) ^ NEXT.fetch_add(1, Ordering::Relaxed)
}

fn all_came(got: &Got) -> anyhow::Result<()> {
    ensure!(got.frames == u64::from(FRAMES), "{} of {FRAMES} frames came", got.frames);
    Ok(())
}

fn about(facts: &RingFacts) -> String {
    let memory = facts
        .memory
        .as_ref()
        .map_or_else(String::new, |it| format!(", a ring of {} KiB", it.granted >> 10));
    let xdp = facts.xdp.map_or_else(String::new, |xdp| {
        let mode = if xdp.is_native { "by the driver" } else { "by the stack" };
        let copies = match xdp.is_zero_copy {
            Some(true) => ", without copying",
            Some(false) => ", copying",
            None => "",
        };
        format!(", XDP {mode}{copies}")
    });
    format!("stamps by {}{memory}{xdp}", facts.stamps.description())
}

fn capture(wire: &Wire, backend: &Backend) -> anyhow::Result<String> {
    let run = run_number();
    let mut receiver = open(wire, backend, &options())?;
    transmit(wire, plain()?, run, 16)?;
    let got = collect(&mut *receiver, run)?;
    all_came(&got)?;
    Ok(format!("{FRAMES} of {FRAMES} frames, {}", about(receiver.facts())))
}

fn send(wire: &Wire, way: &SendMethod) -> anyhow::Result<String> {
    let run = run_number();
    let backend = BACKENDS.first().context("there is no way to capture")?;
    let mut receiver = open(wire, backend, &options())?;
    transmit(wire, way, run, 16)?;
    all_came(&collect(&mut *receiver, run)?)?;
    Ok(format!("{FRAMES} of {FRAMES} frames arrived"))
}

fn filter(wire: &Wire) -> anyhow::Result<String> {
    let run = run_number();
    let backend = BACKENDS.first().context("there is no way to capture")?;
    let link_type = interface(wire)?.link_type;
    // Flows differ in their ports, of which this is the first one's.
    let first = Filter::parse("udp src port 1024")?;
    let kernel =
        classic::Options { target: Target::Kernel, snaplen: NonZeroU32::MAX, sample: None };
    let program = first.compile(link_type, &kernel)?.instructions().to_vec();
    let mut receiver = open(wire, backend, &Options { filter: program, ..options() })?;
    transmit(wire, plain()?, run, 2)?;
    let got = collect(&mut *receiver, run)?;
    ensure!(
        got.frames == u64::from(FRAMES / 2),
        "{} of {FRAMES} frames came, and {} were to",
        got.frames,
        FRAMES / 2
    );
    let counted = receiver.counters()?.filtered;
    let counted = match counted {
        Some(filtered) => format!("{filtered} frames that it refused are counted"),
        None => "what it refuses is not counted (that needs CAP_BPF)".to_owned(),
    };
    Ok(format!("{} of {FRAMES} frames pass it; {counted}", got.frames))
}

fn snaplen(wire: &Wire) -> anyhow::Result<String> {
    const KEPT: u32 = 96;
    let run = run_number();
    let backend = BACKENDS.first().context("there is no way to capture")?;
    let mut receiver = open(wire, backend, &Options { snaplen: KEPT, ..options() })?;
    transmit(wire, plain()?, run, 16)?;
    let got = collect(&mut *receiver, run)?;
    all_came(&got)?;
    ensure!(got.longest == KEPT, "{} bytes were kept of a frame, and {KEPT} were to", got.longest);
    Ok(format!("{KEPT} bytes of each frame were kept"))
}

fn fanout(wire: &Wire) -> anyhow::Result<String> {
    let run = run_number();
    let backend = BACKENDS.first().context("there is no way to capture")?;
    let link_type = interface(wire)?.link_type;
    let program = steering(link_type)?.instructions().to_vec();
    let of = |group: Option<u16>| Options {
        fanout: Some(Fanout { group, program: program.clone() }),
        ..options()
    };
    let mut first = open(wire, backend, &of(None))?;
    let group = first.facts().fanout_group;
    let mut second = open(wire, backend, &of(group))?;
    transmit(wire, plain()?, run, 16)?;
    let (one, other) = (collect(&mut *first, run)?, collect(&mut *second, run)?);
    let all = one.frames + other.frames;
    ensure!(all == u64::from(FRAMES), "{all} of {FRAMES} frames came to both rings together");
    Ok(format!("each of {FRAMES} frames came to one of two rings"))
}

fn stamps(wire: &Wire) -> anyhow::Result<String> {
    let run = run_number();
    let backend = BACKENDS.first().context("there is no way to capture")?;
    let mut receiver = open(wire, backend, &options())?;
    transmit(wire, plain()?, run, 16)?;
    let got = collect(&mut *receiver, run)?;
    all_came(&got)?;
    ensure!(
        got.near == got.frames,
        "{} stamps are off the clock of this machine",
        got.frames - got.near
    );
    let name = wire.receiver();
    let hardware = wire.at_receiver(|| Ok(Interface::find(name)?.has_hardware_stamps()))?;
    let hardware = if hardware { "can" } else { "cannot" };
    let clock =
        netsniff_capture::host::clocksource().unwrap_or_else(|| "an unknown clock".to_owned());
    Ok(format!(
        "by {} with {clock}; the interface {hardware} stamp by itself",
        receiver.facts().stamps.description()
    ))
}
