//! Sends stamped frames, or the packets of a file, at a rate: the sender of the measurements.
//!
//! `sender -i tx --rate 100000 --seconds 10 --size 64` in a network namespace of its own. It prints one
//! line of JSON: what it sent, how long it took, how often its schedule slipped, and what the interface
//! has counted meanwhile.

use std::fs::File;
use std::path::PathBuf;

use anyhow::{Context as _, bail, ensure};
use clap::Parser;
use netsniff_capture::interface::{Interface, LinkCounters, LinkReader};
use netsniff_capture::transmit::{Transmitter, WAYS};
use netsniff_capture::{monotonic, pin, set_nice};
use netsniff_packet::{Batch, Progress, Source as _, Timestamp};
use netsniff_traffic::addresses::{Clones, Numbered};
use netsniff_traffic::pace::{Late, Pacer};
use netsniff_traffic::plan::{Even, Mean, Outgoing, Rate};
use netsniff_traffic::probe;
use netsniff_traffic::rewrite::rewrite_addresses;
use netsniff_traffic::stamp::Stamp;

/// The time that a frame may wait for room before the sender gives up, in nanoseconds.
const PATIENCE: u64 = 2_000_000_000;

#[derive(Parser)]
struct Args {
    /// The interface to send on
    #[arg(short, long)]
    interface: String,
    /// How to send; the first of the list by default
    #[arg(long, default_value = WAYS[0].name)]
    way: String,
    /// The queue of the interface that an XDP socket sends on
    #[arg(long, default_value_t = 0)]
    queue: u32,
    /// Bytes of each frame, frame check sequence included
    #[arg(long, default_value_t = 64)]
    size: usize,
    /// Frames to send at most
    #[arg(long, default_value_t = u64::MAX)]
    count: u64,
    /// Seconds to send at most
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
    /// Frames a second; 0 for as many as possible
    #[arg(long, default_value_t = 0.0)]
    rate: f64,
    /// Flows that the frames belong to, over a quarter as many pairs of addresses
    #[arg(long, default_value_t = 256)]
    flows: u32,
    /// Frames that are handed to the kernel together
    #[arg(long, default_value_t = 32)]
    batch: u64,
    /// The processor to run on
    #[arg(long)]
    cpu: Option<usize>,
    /// The number of the run, which all stamps carry
    #[arg(long, default_value_t = 1)]
    run: u32,
    /// Send the packets of this capture file, again and again, instead of stamped frames
    #[arg(long)]
    file: Option<PathBuf>,
    /// Give each round over the file other IP addresses, so that its flows are new ones
    #[arg(long, requires = "file")]
    unique_ip: bool,
}

/// What is sent: frames that are made, or read.
enum Frames {
    Stamped { size: usize, flows: u32, made: Vec<bool> },
    Read { batch: Vec<Batch>, at: (usize, usize), round: u64, clones: Option<Clones> },
}

impl Frames {
    /// Puts the next frame into `room` and returns its length.
    fn next(&mut self, buffer: usize, room: &mut [u8], stamp: &Stamp) -> anyhow::Result<usize> {
        match self {
            Self::Stamped { size, flows, made } => {
                let len = *size - probe::FCS_LEN;
                if !made[buffer] {
                    let frame = probe::frame(*size, buffer as u32 % *flows);
                    room[..len].copy_from_slice(&frame.context("no frame has this size")?);
                    made[buffer] = true;
                }
                ensure!(stamp.emit(&mut room[probe::STAMP_AT..len]), "no room for a stamp");
                Ok(len)
            }
            Self::Read { batch, at, round, clones } => {
                let record = &batch[at.0].packets[at.1];
                let data = batch[at.0].packet(record).data;
                room[..data.len()].copy_from_slice(data);
                let len = data.len();
                if let Some(clones) = clones.as_ref().filter(|_| *round > 0) {
                    rewrite_addresses(&mut room[..len], &mut clones.of(*round));
                }
                at.1 += 1;
                if at.1 == batch[at.0].packets.len() {
                    *at = ((at.0 + 1) % batch.len(), 0);
                    *round += u64::from(at.0 == 0);
                }
                Ok(len)
            }
        }
    }
}

fn read(path: &PathBuf, unique_ip: bool, longest: usize) -> anyhow::Result<Frames> {
    let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    let mut reader = netsniff_pcapfile::Reader::new(file)?;
    let mut batches = Vec::new();
    loop {
        let mut batch = Batch::default();
        let state = reader.read_batch(&mut batch)?;
        // A frame without bytes cannot be sent, one that is too large fits no buffer.
        batch.packets.retain(|packet| (14..=longest as u32).contains(&packet.captured_len));
        if !batch.packets.is_empty() {
            batches.push(batch);
        }
        if state == Progress::End {
            break;
        }
    }
    ensure!(!batches.is_empty(), "{} has no packets that could be sent", path.display());
    let mut numbered = Numbered::default();
    for packet in batches.iter().flat_map(Batch::iter).filter(|_| unique_ip) {
        rewrite_addresses(&mut packet.data.to_vec(), &mut numbered);
    }
    let clones = if unique_ip { Clones::new(numbered) } else { None };
    Ok(Frames::Read { batch: batches, at: (0, 0), round: 0, clones })
}

struct Sent {
    frames: u64,
    bytes: u64,
    nanos: u64,
    slips: u64,
    slipped: u64,
}

fn send(
    args: &Args,
    transmitter: &mut dyn Transmitter,
    frames: &mut Frames,
) -> anyhow::Result<Sent> {
    let start = monotonic() + 1_000_000;
    let end = start + (args.seconds * 1e9) as u64;
    let rate = Rate::per_second(args.rate);
    let mut plan = rate.map(|rate| Even::new(Mean::Frames(rate), args.batch));
    let mut pacer = Pacer::new(start, Late::Slip);
    let any = Outgoing { recorded: Timestamp::EPOCH, len: 0 };
    while monotonic() < start {}
    let (mut number, mut bytes) = (0, 0);
    while number < args.count {
        let mut now = monotonic();
        let batch = args.batch.min(args.count - number);
        if let Some(plan) = &mut plan {
            // They are due together.
            let planned = (0..batch).map(|_| plan.due(&any)).min().unwrap_or_default();
            while now < pacer.due(planned) {
                now = monotonic();
            }
            pacer.leaves(planned, now);
        }
        if now >= end {
            break;
        }
        let stamp = Stamp { run: args.run, stream: 0, sequence: 0, sent: now - start };
        for _ in 0..batch {
            wait_until(transmitter, |transmitter| transmitter.room().is_some())?;
            let Some((buffer, room)) = transmitter.room() else { continue };
            let len = frames.next(buffer, room, &Stamp { sequence: number, ..stamp })?;
            transmitter.fill(len);
            number += 1;
            bytes += len as u64;
        }
        transmitter.flush()?;
    }
    wait_until(transmitter, |transmitter| transmitter.pending() == 0)?;
    let nanos = monotonic() - start;
    let (slips, slipped) = (pacer.stalls(), pacer.slipped());
    Ok(Sent { frames: number, bytes, nanos, slips, slipped })
}

/// Hands frames to the kernel until something holds.
fn wait_until(
    transmitter: &mut dyn Transmitter,
    holds: impl Fn(&mut dyn Transmitter) -> bool,
) -> anyhow::Result<()> {
    let mut since = None;
    while !holds(transmitter) {
        transmitter.flush()?;
        let now = monotonic();
        ensure!(now < *since.get_or_insert(now) + PATIENCE, "the kernel takes no more frames");
    }
    Ok(())
}

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    if let Some(cpu) = args.cpu {
        pin(cpu).with_context(|| format!("cannot run on processor {cpu}"))?;
    }
    // Best effort: without the right it is merely less even.
    let _ = set_nice(-20);
    let interface = Interface::find(&args.interface)?;
    let names: Vec<_> = WAYS.iter().map(|way| way.name).collect();
    let Some(way) = WAYS.iter().find(|way| way.name == args.way) else {
        bail!("there is no way {}; there are {:?}", args.way, names);
    };
    let mut transmitter = way.open(&interface, args.queue)?;
    let mut frames = match &args.file {
        Some(path) => read(path, args.unique_ip, transmitter.longest())?,
        None => {
            let made = vec![false; transmitter.buffers()];
            Frames::Stamped { size: args.size, flows: args.flows.max(1), made }
        }
    };
    let mut reader = LinkReader::new(interface.index)?;
    let before = reader.counters()?.context("the interface is gone")?;
    let sent = send(&args, transmitter.as_mut(), &mut frames)?;
    let after = reader.counters()?.context("the interface is gone")?;
    let LinkCounters { tx_packets, tx_dropped, .. } = after;
    let seconds = sent.nanos as f64 / 1e9;
    println!(
        "{{\"way\":\"{}\",\"size\":{},\"rate\":{},\"sent\":{},\"bytes\":{},\"seconds\":{seconds:.4},\
         \"pps\":{:.0},\"slips\":{},\"slipped_ms\":{:.3},\"refusals\":{},\"tx_packets\":{},\"tx_dropped\":{}}}",
        transmitter.way(),
        args.size,
        args.rate,
        sent.frames,
        sent.bytes,
        sent.frames as f64 / seconds,
        sent.slips,
        sent.slipped as f64 / 1e6,
        transmitter.refusals(),
        tx_packets - before.tx_packets,
        tx_dropped - before.tx_dropped,
    );
    Ok(())
}
