//! Packets through the engine, one by one, and what it tells of each.

use std::borrow::Cow;
use std::io::Read;

use netsniff_analysis::engine::decoding::DecodeStage;
use netsniff_analysis::engine::shard::{FinishStep, Shard};
use netsniff_analysis::file::Bodies;
use netsniff_analysis::key::FlowKey;
use netsniff_analysis::record::Membership;
use netsniff_analysis::{DecodedDatagram, Observer, Options, Record, SortKey, Uid};
use netsniff_packet::decode::Transport;
use netsniff_packet::{Batch, Progress, Source as _};
use netsniff_pcapfile::Reader;

use super::facts::{Drawn, Sequence};
use super::following::{self, Track};
use super::rows::{Row, Rows};

/// How much is read.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The most packets.
    pub packets: u64,
}

impl Default for Limits {
    /// A million packets: about a gigabyte of full segments, which is some seconds of work.
    fn default() -> Self {
        Self { packets: 1_000_000 }
    }
}

/// The connection with this `uid`, out of a capture of its packets. If the engine gives none of them this name, as where its
/// tunnel began with another packet, it is the innermost connection of the first packet.
///
/// # Errors
///
/// What was wrong with the capture, or that there is no connection in it.
pub fn of(packets: impl Read, uid: &str, limits: Limits) -> Result<Sequence, String> {
    let mut reader = Reader::new(packets).map_err(|error| error.to_string())?;
    let mut reading = Reading::new(uid);
    let mut batch = Batch::default();
    let mut left = limits.packets;
    loop {
        let progress = reader.read_batch(&mut batch).map_err(|error| error.to_string())?;
        reading.is_cut = (batch.packets.len() as u64) > left;
        if reading.is_cut {
            batch.packets.truncate(usize::try_from(left).unwrap_or(usize::MAX));
            batch.losses.retain(|(before, _)| u64::from(*before) < left);
        }
        left -= batch.packets.len() as u64;
        reading.batch(&batch);
        if reading.is_cut || progress == Progress::End {
            break;
        }
    }
    reading.damage = reader.damage_count();
    reading.finish().ok_or_else(|| "there is no connection in these packets".to_owned())
}

/// A flow among those of a packet.
type Member = (FlowKey, u128);

/// Whoever listens to the engine.
#[derive(Debug, Default)]
struct Listener {
    /// The flow that the datagram at hand belongs to.
    member: Option<Member>,
    /// The name of the connection.
    chosen: Option<Uid>,
    rows: Rows,
}

impl Observer for Listener {
    fn record<R: Record>(&mut self, key: &SortKey, record: &R) {
        if self.chosen == Some(key.uid) {
            self.rows.take(record);
        }
    }

    fn member(&mut self, membership: &Membership<'_>) {
        self.member = Some((*membership.key, membership.name));
    }
}

/// What headers alone tell is of no connection.
struct Nobody;

impl Observer for Nobody {
    fn record<R: Record>(&mut self, _key: &SortKey, _record: &R) {}
}

/// What was read so far.
#[derive(Debug)]
struct Reading {
    stage: Option<DecodeStage>,
    drawing: Drawing,
    is_cut: bool,
    damage: u64,
}

/// All but the stage that reads headers, which hands on to this.
#[derive(Debug)]
struct Drawing {
    wanted: String,
    /// Whether a packet of the wanted name came.
    is_found: bool,
    shard: Shard,
    listener: Listener,
    /// Addresses and ports of the connection.
    key: Option<FlowKey>,
    /// Stamp of its first datagram, the earliest, and the latest.
    stamps: Option<[i64; 3]>,
    tracks: [Track; 2],
    datagrams: u64,
    /// Datagrams of other flows that are none around it.
    others: u64,
}

impl Reading {
    fn new(uid: &str) -> Self {
        let limits = netsniff_analysis::Limits::default();
        let options = Options { bodies: Bodies::Head, ..Options::default() };
        Self {
            // Rounds of one packet: what each changes is to be seen.
            stage: Some(DecodeStage::new(limits, options.clone(), 1)),
            drawing: Drawing {
                wanted: uid.to_owned(),
                is_found: false,
                shard: Shard::new(limits, options, 0),
                listener: Listener::default(),
                key: None,
                stamps: None,
                tracks: Default::default(),
                datagrams: 0,
                others: 0,
            },
            is_cut: false,
            damage: 0,
        }
    }

    fn batch(&mut self, batch: &Batch) {
        let Some(stage) = &mut self.stage else { return };
        let drawing = &mut self.drawing;
        let batch = Cow::Borrowed(batch);
        stage.batch(&batch, Cow::Owned, &mut (), &mut Nobody, |stage, batch, _| {
            drawing.round(stage, &batch.data);
        });
    }

    fn finish(mut self) -> Option<Sequence> {
        let Self { stage, drawing, is_cut, damage } = &mut self;
        let stage = stage.as_mut()?;
        let own = Cow::Owned;
        stage.finish(own, &mut (), &mut Nobody, |stage, batch: &Cow<'_, Batch>, _| {
            drawing.round(stage, &batch.data);
        });
        for step in FinishStep::all(stage.ingress().now()) {
            drawing.shard.finish(step, &mut drawing.listener);
        }
        let uid = drawing.listener.chosen?;
        let rows = std::mem::take(&mut drawing.listener.rows);
        let mut tracks = std::mem::take(&mut drawing.tracks);
        if !drawing.is_low_first(&rows.conn) {
            tracks.reverse();
        }
        let Drawing { datagrams, others, stamps, .. } = *drawing;
        let drawn = Drawn { tracks, datagrams, others, stamps: stamps? };
        let mut sequence = Sequence::new(drawn, &rows)?;
        sequence.is_named_otherwise = !drawing.is_found;
        sequence.uid = uid.as_str().to_owned();
        (sequence.is_cut, sequence.damage) = (*is_cut, *damage);
        Some(sequence)
    }
}

impl Drawing {
    /// Hands the datagrams of one packet, which lie in `bytes`, to their flows.
    fn round(&mut self, stage: &mut DecodeStage, bytes: &[u8]) {
        let watermark = stage.watermark();
        let units = stage.units();
        let mut members = Vec::new();
        let mut holes = units.holes();
        for (at, unit) in units.as_slice().iter().enumerate() {
            let (before, behind) = holes.split_at(holes.partition_point(|hole| hole.at <= at));
            holes = behind;
            let one = std::iter::once((at, unit));
            self.listener.member = None;
            self.shard.round(one, before, bytes, watermark, &mut self.listener);
            members.extend(self.listener.member.map(|member| (member, unit)));
        }
        self.shard.round(std::iter::empty(), holes, bytes, watermark, &mut self.listener);
        if !self.is_found {
            self.choose(&members);
        }
        let chosen = self.listener.chosen;
        let own = members.iter().filter(|((_, name), _)| Some(Uid::new(*name)) == chosen);
        let own: Vec<_> = own.collect();
        self.others += u64::from(own.is_empty() && !members.is_empty());
        for ((key, _), unit) in own {
            self.draw(key, unit);
        }
        stage.clear_units();
    }

    /// Whether the originator, which a row of `conn` tells, is the lower end of its key.
    fn is_low_first(&self, conn: &Row) -> bool {
        let Some(key) = &self.key else { return true };
        let (low, high) = (key.low(), key.high());
        if low.address == high.address {
            return conn.count("id.orig_p") == Some(low.port.into());
        }
        conn.text("id.orig_h") == Some(&*low.address.to_string())
    }

    /// The connection is that of the wanted name, and until a packet of that comes the innermost one of the first packet.
    fn choose(&mut self, members: &[(Member, &DecodedDatagram)]) {
        let names = || members.iter().map(|((_, name), _)| Uid::new(*name));
        if let Some(wanted) = names().find(|uid| uid.as_str() == self.wanted) {
            self.is_found = true;
            self.others += self.datagrams;
            self.listener.chosen = Some(wanted);
            self.listener.rows = Rows::default();
            (self.tracks, self.datagrams, self.stamps) = (Default::default(), 0, None);
        } else if self.listener.chosen.is_none() {
            self.listener.chosen = names().next_back();
        }
    }

    fn draw(&mut self, key: &FlowKey, unit: &DecodedDatagram) {
        let Some((_, side)) = unit.flow_key() else { return };
        let time = unit.time.nanos();
        let [begin, earliest, latest] = self.stamps.unwrap_or([time; 3]);
        self.stamps = Some([begin, earliest.min(time), latest.max(time)]);
        self.key = Some(*key);
        self.datagrams += 1;
        let at = time.saturating_sub(begin);
        let flow = self.shard.tracker().flow(key);
        match &unit.decoded.transport {
            Transport::Tcp(tcp) => following::segment(&mut self.tracks, flow, side, at, tcp),
            _ => following::datagram(&mut self.tracks[side as usize], flow, side, at),
        }
    }
}
