//! From packets to the packets of chosen flows, in one pass and in bounded memory.
//!
//! The engine tells for each packet which flows it belongs to. Most are decided at once. Fragments wait for their
//! datagram, and a SYN within a connection for its answer, which tells whether it begins another one. What is wanted
//! waits behind them, so that packets come out in the order in which they came in.
//!
//! | module | concern |
//! |---|---|
//! | [`choice`] | which flows and packets are wanted |
//! | `watch` | what the engine tells of a batch |
//! | `held` | packets that wait |
//! | [`index`] | which packets belong to which connection, in a file |

pub mod choice;
mod held;
pub mod index;
#[cfg(test)]
mod tests;
mod watch;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use netsniff_analysis::file::Bodies;
use netsniff_analysis::key::FlowKey;
use netsniff_analysis::key::uid::Uid;
use netsniff_analysis::{Engine, Limits, Options};
use netsniff_packet::{Batch, Loss, Note, Packet, Stage, Timestamp};

use self::choice::{FlowChoice, PacketChoice};
use self::held::{HeldPacket, HeldPackets};
use self::watch::{Doubt, Told, Watch};

/// How long a SYN within a connection waits for its answer: longer than hosts repeat it at first.
const SYN_PATIENCE: Duration = Duration::from_secs(5);

/// How often all that waits is looked through where the first one holds none back, in engine time.
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);

/// A flow that a packet belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// The bits of its uid ([`Uid::new`]).
    pub name: u128,
    /// Its addresses and ports; `None` where an index tells the flow.
    pub key: Option<FlowKey>,
}

/// A packet of chosen flows.
#[derive(Clone, Copy, Debug)]
pub struct Carved<'a> {
    /// The packet.
    pub packet: Packet<'a>,
    /// What [`TakeCarved::number`] told of it.
    pub number: u64,
    /// The chosen flows that it belongs to, outer ones first.
    pub flows: &'a [Flow],
    /// Packets that the capture lost before it, behind the one before.
    pub lost: u64,
    /// The comments that the capture has on it.
    pub comments: &'a [String],
    /// Whether it was decided as it stood, since the bound of memory was reached: it may belong to other flows.
    pub is_hurried: bool,
}

/// Whoever takes the packets.
pub trait TakeCarved {
    /// Whether it wants no more than numbers and flows. Then no bytes are kept, and packets come as soon as they are
    /// decided, so that one for which others are waited for holds none back.
    const NUMBERS_ONLY: bool = false;

    /// Numbers a packet that was read, before it is decided.
    fn number(&mut self, _packet: &Packet<'_>) -> u64 {
        0
    }

    /// A packet of chosen flows.
    ///
    /// # Errors
    ///
    /// Whatever is to end the carving.
    fn packet(&mut self, carved: &Carved<'_>) -> io::Result<()>;

    /// A block of pcapng that holds for what follows ([`Note::Block`]).
    ///
    /// # Errors
    ///
    /// Whatever is to end the carving.
    fn block(&mut self, _block: &[u8]) -> io::Result<()> {
        Ok(())
    }
}

/// What was carved.
#[derive(Clone, Copy, Debug, Default)]
pub struct CarvingStatistics {
    /// Packets read.
    pub read: u64,
    /// Packets carved.
    pub packets: u64,
    /// Packets that waited for a decision and were decided as they stood, since the bound of memory was reached.
    pub hurried: u64,
}

/// Packets that a loss tells of at its place. With several interfaces nothing tells on which one their totals grew; these
/// stand at the end of the file.
const fn lost_before(loss: &Loss, interfaces: usize) -> u64 {
    match loss.stage {
        Stage::Interface | Stage::System if interfaces > 1 => 0,
        _ => loss.packets,
    }
}

/// Finds the packets of chosen flows.
#[derive(Debug)]
pub struct Carver {
    engine: Engine,
    watch: Watch,
    packets: PacketChoice,
    held: HeldPackets,
    /// The most bytes that may wait.
    most_held: usize,
    /// The engine time at which all that waits was last looked through.
    swept: Timestamp,
    fragment_patience: Duration,
    /// Packets lost behind the last one that was taken or waits, and behind the last one that was taken.
    lost: u64,
    carried: u64,
    statistics: CarvingStatistics,
}

impl Carver {
    /// Carves packets of `flows`; `most_held` bytes may wait for a decision. `seed` is as for [`Engine::new`].
    #[must_use]
    pub fn new(
        mut flows: FlowChoice,
        packets: PacketChoice,
        limits: Limits,
        options: Options,
        seed: u64,
        most_held: usize,
    ) -> Self {
        // As deep as by default, since what is said tells when some flows end. What is in bodies does not.
        let options = Options { bodies: Bodies::Head, ..options };
        if let Some(anonymizer) = &options.anonymizer {
            flows.anonymized(Arc::clone(anonymizer));
        }
        Self {
            engine: Engine::new(limits, options, seed),
            watch: Watch::new(flows),
            packets,
            held: HeldPackets::default(),
            most_held,
            swept: Timestamp::EPOCH,
            fragment_patience: limits.fragment_timeout,
            lost: 0,
            carried: 0,
            statistics: CarvingStatistics::default(),
        }
    }

    /// Takes the packets of a batch in order, of a source that has described so many interfaces.
    ///
    /// # Errors
    ///
    /// Those of `taker`.
    pub fn batch<T: TakeCarved>(
        &mut self,
        batch: &Batch,
        interfaces: usize,
        taker: &mut T,
    ) -> io::Result<()> {
        self.engine.batch(batch, &mut self.watch);
        self.settle();
        if T::NUMBERS_ONLY {
            self.sweep(taker)?;
        }
        // Lent out, since it is read while all else changes.
        let mut told = core::mem::take(&mut self.watch.told);
        self.sort_out(&told, batch, interfaces, taker)?;
        told.claims.iter().for_each(|claim| self.held.claim(claim));
        told.clear();
        self.watch.told = told;
        if T::NUMBERS_ONLY { self.sweep(taker) } else { self.flush(taker) }
    }

    /// What was carved so far.
    #[must_use]
    pub const fn statistics(&self) -> CarvingStatistics {
        self.statistics
    }

    /// Decides what waits at the end of the input.
    ///
    /// # Errors
    ///
    /// Those of `taker`.
    pub fn finish<T: TakeCarved>(
        mut self,
        taker: &mut T,
    ) -> io::Result<(CarvingStatistics, Vec<Uid>)> {
        self.engine.finish(&mut self.watch);
        self.settle();
        self.watch.told.claims.iter().for_each(|claim| self.held.claim(claim));
        while let Some(mut packet) = self.held.pop_if(|_| true) {
            // Nothing more will be found out of any.
            packet.doubt = None;
            self.decide(&packet, taker)?;
        }
        let missing = self.watch.choice.missing_in(&self.watch.found);
        Ok((self.statistics, missing))
    }

    /// Tells packets that wait what was found out of them.
    fn settle(&mut self) {
        let mut told = core::mem::take(&mut self.watch.told);
        // Fragments are told before flows of the same round.
        told.members.sort_by_key(|(ordinal, _)| *ordinal);
        told.doubts.sort_by_key(|(ordinal, _)| *ordinal);
        let before = self.statistics.read;
        if !self.held.is_empty() {
            for &(ordinal, why) in told.doubts.iter().filter(|(it, _)| *it <= before) {
                self.held.seen(ordinal, Some((why, self.patience(why))));
            }
            if before <= self.engine.ingress().ordinal() {
                self.held.seen(before, None);
            }
            for (ordinal, flow) in told.members.iter().filter(|(it, _)| *it <= before) {
                self.held.add(*ordinal, *flow);
            }
            told.joined.iter().for_each(|ordinal| self.held.join(*ordinal));
        }
        self.watch.told = told;
    }

    /// Takes, keeps or drops each packet of a batch.
    fn sort_out<T: TakeCarved>(
        &mut self,
        told: &Told,
        batch: &Batch,
        interfaces: usize,
        taker: &mut T,
    ) -> io::Result<()> {
        let mut told = told.packets_from(self.statistics.read + 1);
        let mut losses = batch.losses.iter().peekable();
        let mut notes = batch.notes.iter().peekable();
        let (mut flows, mut comments) = (Vec::new(), Vec::new());
        for (at, packet) in batch.iter().enumerate() {
            while let Some((_, loss)) = losses.next_if(|(place, _)| *place as usize <= at) {
                self.lose(loss, interfaces);
            }
            comments.clear();
            while let Some((_, note)) = notes.next_if(|(place, _)| *place as usize <= at) {
                self.note(note, &mut comments, taker)?;
            }
            self.statistics.read += 1;
            let ordinal = self.statistics.read;
            let number = taker.number(&packet);
            let is_unseen = ordinal > self.engine.ingress().ordinal();
            let doubt = told.of(ordinal, &mut flows).or(is_unseen.then_some(Doubt::Unseen));
            let may_be = !flows.is_empty() || doubt.is_some() || self.watch.choice.is_everything();
            if !may_be || !self.packets.wants(&packet) {
                continue;
            }
            if doubt.is_none() && (T::NUMBERS_ONLY || self.held.is_empty()) {
                let lost = core::mem::take(&mut self.lost);
                let (flows, comments, is_hurried) = (&flows[..], &comments[..], false);
                self.take(Carved { packet, number, flows, lost, comments, is_hurried }, taker)?;
            } else {
                let data = if T::NUMBERS_ONLY { &[] } else { packet.data };
                let packet = Packet { data, ..packet };
                let comments = core::mem::take(&mut comments);
                let held = HeldPacket::new(ordinal, number, &packet, flows.clone(), comments);
                self.keep(held, doubt);
            }
        }
        losses.for_each(|(_, loss)| self.lose(loss, interfaces));
        comments.clear();
        notes.try_for_each(|(_, note)| self.note(note, &mut comments, taker))
    }

    /// Gathers a comment; hands a block over, or lets it wait behind what waits.
    fn note<T: TakeCarved>(
        &mut self,
        note: &Note,
        comments: &mut Vec<String>,
        taker: &mut T,
    ) -> io::Result<()> {
        match note {
            _ if T::NUMBERS_ONLY => {}
            Note::Comment(text) => comments.push(text.clone()),
            Note::Block(block) if !self.held.is_empty() => {
                self.held.push(HeldPacket::of_block(self.statistics.read, block));
            }
            Note::Block(block) => taker.block(block)?,
        }
        Ok(())
    }

    fn keep(&mut self, mut packet: HeldPacket, doubt: Option<Doubt>) {
        packet.lost = core::mem::take(&mut self.lost);
        packet.doubt = doubt.map(|why| (why, self.patience(why)));
        self.held.push(packet);
    }

    /// Up to which engine time a packet waits that begins to wait now.
    fn patience(&self, why: Doubt) -> Timestamp {
        let now = self.engine.ingress().now();
        match why {
            Doubt::Syn(..) => now + SYN_PATIENCE,
            Doubt::Fragment => now + self.fragment_patience,
            // The next packet ends it, whenever that comes.
            Doubt::Unseen => Timestamp::MAX,
        }
    }

    fn lose(&mut self, loss: &Loss, interfaces: usize) {
        self.lost = self.lost.saturating_add(lost_before(loss, interfaces));
    }

    /// Decides packets from the first one on, up to one that has to wait.
    fn flush<T: TakeCarved>(&mut self, taker: &mut T) -> io::Result<()> {
        let now = self.engine.ingress().now();
        loop {
            let is_full = self.held.bytes() > self.most_held;
            let is_decided = |packet: &HeldPacket| is_full || !packet.is_open(now);
            let Some(packet) = self.held.pop_if(is_decided) else { return Ok(()) };
            self.decide(&packet, taker)?;
        }
    }

    /// Decides whichever packets nothing more is to be waited for, and the first ones besides where too much waits.
    fn sweep<T: TakeCarved>(&mut self, taker: &mut T) -> io::Result<()> {
        let now = self.engine.ingress().now();
        let is_full = self.held.bytes() > self.most_held;
        // The one that the engine had in hand is the last one. To look through all the others for each batch would take
        // longer the more they are.
        let last = self.held.pop_last_if(|packet| !packet.is_open(now));
        last.iter().try_for_each(|packet| self.decide(packet, taker))?;
        if is_full || now >= self.swept + SWEEP_INTERVAL {
            self.swept = now;
            for packet in self.held.take_decided(|packet| !packet.is_open(now)) {
                self.decide(&packet, taker)?;
            }
        }
        let most = if is_full { self.most_held / 4 * 3 } else { self.most_held };
        while self.held.bytes() > most
            && let Some(packet) = self.held.pop_if(|_| true)
        {
            self.decide(&packet, taker)?;
        }
        Ok(())
    }

    /// Takes or drops a packet that waited.
    fn decide<T: TakeCarved>(&mut self, packet: &HeldPacket, taker: &mut T) -> io::Result<()> {
        let now = self.engine.ingress().now();
        self.statistics.hurried += u64::from(packet.is_open(now));
        if let Some(block) = packet.block() {
            return taker.block(block);
        }
        if packet.flows.is_empty() && !self.watch.choice.is_everything() {
            self.carried = self.carried.saturating_add(packet.lost);
            return Ok(());
        }
        self.take(packet.carved(now), taker)
    }

    /// Hands a packet over.
    fn take<T: TakeCarved>(&mut self, carved: Carved<'_>, taker: &mut T) -> io::Result<()> {
        let lost = carved.lost.saturating_add(core::mem::take(&mut self.carried));
        self.statistics.packets += 1;
        taker.packet(&Carved { lost, ..carved })
    }
}
