//! The flows of a capture, as the analysis finds them.

use std::collections::HashMap;
use std::fs::File;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::Path;

use anyhow::Context as _;
use netsniff_analysis::engine::decoding::DecodeStage;
use netsniff_analysis::engine::shard::Shard;
use netsniff_analysis::flow::flow_events::{FlowEvent, FlowEventKind};
use netsniff_analysis::key::FlowKey;
use netsniff_analysis::{DecodedDatagram, Depth, Limits, Observer, Options, Record, SortKey};
use netsniff_packet::{Batch, Packet, Progress, Source as _};
use netsniff_pcapfile::Reader;

use crate::damage::Flows;

/// Packets that are looked at, at most: a number and a digest of each stay in memory.
const MOST: usize = 4_000_000;

pub(super) struct Capture {
    /// The flow of each.
    pub(super) flows: Flows,
    /// A digest of each.
    pub(super) digests: Vec<u64>,
    /// Bytes of all on the wire.
    pub(super) bytes: u64,
    /// How many were not captured whole.
    pub(super) cut: u64,
    /// Whether the file has more.
    pub(super) has_more: bool,
}

impl Capture {
    /// Reads a capture, and finds its flows.
    ///
    /// # Errors
    ///
    /// Where it cannot be read.
    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        let (mut follower, mut flows, mut digests) = (Follower::new(), Vec::new(), Vec::new());
        let (mut bytes, mut cut) = (0, 0);
        let has_more = !packets(path, |packet| {
            if digests.len() == MOST {
                return false;
            }
            flows.push(follower.flow(packet));
            digests.push(digest(packet.data));
            bytes += u64::from(packet.wire_len);
            cut += u64::from((packet.data.len() as u64) < u64::from(packet.wire_len));
            true
        })?;
        Ok(Self { flows: Flows::of(flows), digests, bytes, cut, has_more })
    }
}

/// Digests of a capture's packets, in order.
///
/// # Errors
///
/// Where it cannot be read.
pub(super) fn digests(path: &Path) -> anyhow::Result<Vec<u64>> {
    let mut digests = Vec::new();
    packets(path, |packet| {
        digests.push(digest(packet.data));
        true
    })?;
    Ok(digests)
}

fn digest(data: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    data.hash(&mut hasher);
    hasher.finish()
}

/// Takes the packets of a file until `take` wants no more. Returns whether it took all.
fn packets(path: &Path, mut take: impl FnMut(&Packet<'_>) -> bool) -> anyhow::Result<bool> {
    let name = path.display();
    let file = File::open(path).with_context(|| format!("cannot open {name}"))?;
    let mut reader = Reader::new(file).with_context(|| format!("{name} is no capture"))?;
    let mut batch = Batch::default();
    loop {
        let state = reader.read_batch(&mut batch);
        let state = state.with_context(|| format!("{name} cannot be read"))?;
        if !batch.iter().all(|packet| take(&packet)) {
            return Ok(false);
        }
        if state == Progress::End {
            return Ok(true);
        }
    }
}

/// Tells which flow a packet belongs to.
struct Follower {
    stage: DecodeStage,
    shard: Shard,
    turns: Vec<FlowEvent>,
    /// The number of the last flow with a key.
    numbers: HashMap<FlowKey, u32>,
    begun: u32,
}

struct Nobody;

impl Observer for Nobody {
    fn record<R: Record>(&mut self, _: &SortKey, _: &R) {}
}

impl Follower {
    fn new() -> Self {
        let options = Options { depth: Depth::Flows, ..Options::default() };
        // What the user gives is not aimed at a table of ours.
        let mut shard = Shard::new(Limits::default(), options.clone(), 0);
        shard.note_turnover();
        Self {
            stage: DecodeStage::new(Limits::default(), options, 1),
            shard,
            turns: Vec::new(),
            numbers: HashMap::new(),
            begun: 0,
        }
    }

    /// The number of the innermost flow of a packet, from 0 in the order in which flows begin.
    fn flow(&mut self, packet: &Packet<'_>) -> Option<u32> {
        let all = 0..packet.data.len();
        self.stage.packet(packet, all, &mut (), &mut Nobody);
        let watermark = self.stage.watermark();
        let units = self.stage.units();
        let datagrams = units.as_slice().iter().enumerate();
        self.shard.round(datagrams, units.holes(), packet.data, watermark, &mut Nobody);
        self.shard.swap_turnover(&mut self.turns);
        for turn in self.turns.drain(..).filter(|turn| turn.event == FlowEventKind::Begin) {
            self.numbers.insert(turn.key, self.begun);
            self.begun += 1;
        }
        let unit = units.as_slice().iter().rev().find(|unit| unit.is_packet);
        let key = unit.and_then(DecodedDatagram::flow_key);
        let number = key.and_then(|(key, _)| self.numbers.get(&key).copied());
        self.stage.clear_units();
        number
    }
}
