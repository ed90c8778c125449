//! The analysis of one part by itself, as if nothing had come before it.

use netsniff_analysis::Engine;
use netsniff_analysis::engine::decoding::Intake;
use netsniff_analysis::ingress::Unparsed;
use netsniff_output::RowBuffer;
use netsniff_packet::{Batch, Packet, Progress, Source, Timestamp};

use super::board::{Board, Claim};
use super::{OpenPart, PartIntake};
use crate::files::run::Settings;

/// Batches after which the bytes that wait are counted: that looks at each fact.
const COUNTED_AFTER: u32 = 16;

/// What came of a part, up to its end or to where too much waited.
pub(super) struct Apart<P: OpenPart> {
    pub(super) engine: Engine,
    /// All its rows.
    pub(super) rows: RowBuffer,
    pub(super) source: P::Source,
    pub(super) intake: P::Intake,
    pub(super) stamps: Stamps,
    /// Bytes of its packets.
    pub(super) bytes: u64,
}

/// Stamps by which a part is judged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stamps {
    /// That of the first packet that is wanted.
    first: Option<Timestamp>,
    /// That of the packet behind it, wanted or not.
    second: Option<Timestamp>,
    /// Packets before the first one that is wanted.
    refused: u64,
    /// Whether something was lost before it: whoever saw more knows which flows that touched.
    begins_with_loss: bool,
    /// The earliest and the latest one of all.
    pub(super) span: (Timestamp, Timestamp),
}

impl Stamps {
    const NONE: Self = Self {
        first: None,
        second: None,
        refused: 0,
        begins_with_loss: false,
        span: (Timestamp::MAX, Timestamp::MIN),
    };

    /// The stamp of the first packet that is wanted, if every clock believes it: the next one is no earlier.
    pub(super) fn first(&self) -> Option<Timestamp> {
        let is_believed = |first: &Timestamp| self.second.is_none_or(|second| second >= *first);
        self.first.filter(|first| !self.begins_with_loss && is_believed(first))
    }

    fn note_all(&mut self, batch: &Batch) {
        for packet in &batch.packets {
            let (first, last) = self.span;
            self.span = (first.min(packet.timestamp), last.max(packet.timestamp));
        }
    }
}

/// Notes the first stamps that an intake sees.
struct Noted<'a, I> {
    intake: &'a mut I,
    stamps: &'a mut Stamps,
}

impl<I: Intake> Intake for Noted<'_, I> {
    #[inline]
    fn wants(&mut self, packet: &Packet<'_>) -> bool {
        let wants = self.intake.wants(packet);
        if self.stamps.second.is_none() {
            if self.stamps.first.is_some() {
                self.stamps.second = Some(packet.timestamp);
            } else if wants {
                self.stamps.first = Some(packet.timestamp);
            } else {
                self.stamps.refused += 1;
            }
        }
        wants
    }

    fn unparsed(&mut self, packet: &Packet<'_>, why: &Unparsed) {
        self.intake.unparsed(packet, why);
    }
}

/// Analyses one part after the other, until there is none left.
pub(super) fn serve<P: OpenPart>(board: &Board<P>, parts: &P, settings: &Settings) {
    while let Some(claim) = board.claim() {
        analyse(&claim, board, parts, settings);
    }
}

/// Analyses the part of a claim, and puts on the board what came of it.
pub(super) fn analyse<P: OpenPart>(
    claim: &Claim,
    board: &Board<P>,
    parts: &P,
    settings: &Settings,
) {
    let watch = board.watch(claim);
    let apart = part(claim, board, parts, settings);
    watch.done(apart);
}

/// `None` where it cannot be read, or nobody wants it any more.
fn part<P: OpenPart>(
    claim: &Claim,
    board: &Board<P>,
    parts: &P,
    settings: &Settings,
) -> Option<Apart<P>> {
    let (source, intake) = parts.open(claim.part)?;
    let mut rows = settings.rows();
    let place = (claim.number, claim.begun);
    let options = settings.options.clone();
    let engine = Engine::of_part(settings.limits, options, settings.seed, place, &mut rows);
    let mut apart: Apart<P> =
        Apart { engine, rows, source, intake, stamps: Stamps::NONE, bytes: 0 };
    let mut batch = Batch::default();
    for number in 1.. {
        // A failure is told by whoever reads in order.
        let progress = match apart.source.read_batch(&mut batch) {
            Ok(progress) if board.is_wanted(claim) => progress,
            _ => {
                board.note_in_vain(apart.bytes);
                return None;
            }
        };
        apart.take(&batch);
        let is_counted = number % COUNTED_AFTER == 0;
        let is_full = is_counted && apart.rows.heap_bytes() > board.waiting_bytes();
        if progress == Progress::End || is_full || apart.intake.is_full() {
            break;
        }
    }
    Some(apart)
}

impl<P: OpenPart> Apart<P> {
    fn take(&mut self, batch: &Batch) {
        let Self { engine, rows, intake, stamps, bytes, .. } = self;
        stamps.note_all(batch);
        *bytes += batch.data.len() as u64;
        let (is_begin, refused) = (stamps.first.is_none(), stamps.refused);
        engine.batch_with(batch, &mut Noted { intake, stamps }, rows);
        if is_begin && let Some(&(before, _)) = batch.losses.first() {
            stamps.begins_with_loss |= u64::from(before) <= stamps.refused - refused;
        }
    }
}
