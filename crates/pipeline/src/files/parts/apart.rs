//! The analysis of one part by itself, as if nothing had come before it.

use std::sync::Arc;

use netsniff_analysis::engine::decoding::Intake;
use netsniff_analysis::engine::pairs::{BoundaryScan, Nobody};
use netsniff_analysis::ingress::Unparsed;
use netsniff_analysis::ingress::boundary::{Boundary, Crossing};
use netsniff_analysis::{DecodedDatagram, Engine};
use netsniff_output::RowBuffer;
use netsniff_packet::{Batch, Packet, Progress, Source, Timestamp};

use super::board::Board;
use super::plan::{Claim, Work};
use super::{OpenPart, PartIntake, PartReading};
use crate::files::run::Settings;

/// Batches after which the bytes that wait are counted: that looks at each fact.
const COUNTED_AFTER: u32 = 16;

/// The most pairs of hosts that are noted of a part.
const PAIRS: usize = 1 << 18;
/// Bytes that each of them takes, in a table that has room for as many again.
const PAIR_BYTES: usize = 128;
/// One of so many parts of what may wait is for pairs: those of several parts are known at once.
const PAIRS_SHARE: usize = 8;

/// What came of a part, up to its end or to where too much waited.
pub(super) struct Apart<P: OpenPart> {
    /// Which in the order in which parts begin, from 1.
    pub(super) number: u32,
    pub(super) engine: Engine,
    /// All rows of its flows.
    pub(super) rows: RowBuffer,
    /// Rows of what is of no flow.
    pub(super) decoded: RowBuffer,
    /// Its pairs of hosts, once it is over.
    pub(super) boundary: Option<Arc<Boundary>>,
    /// Those that were left to the carrier, if any were.
    pub(super) crossing: Option<Arc<Crossing>>,
    /// Whether it was analysed to its end.
    pub(super) is_whole: bool,
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
    /// Whether what is not understood is told here.
    tells: bool,
}

/// Asks an intake which packets it wants, and tells it nothing.
struct Wanted<'a, I>(&'a mut I);

impl<I: Intake> Intake for Wanted<'_, I> {
    fn wants(&mut self, packet: &Packet<'_>) -> bool {
        self.0.wants(packet)
    }
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
        if self.tells {
            self.intake.unparsed(packet, why);
        }
    }
}

/// Does what there is to do with one part after the other, until there is none left.
pub(super) fn serve<P: OpenPart>(board: &Board<P>, parts: &P, settings: &Settings) {
    while let Some(work) = board.claim() {
        work_on(&work, board, parts, settings);
    }
}

/// Does some work, and puts on the board what came of it.
pub(super) fn work_on<P: OpenPart>(work: &Work, board: &Board<P>, parts: &P, settings: &Settings) {
    let watch = board.watch();
    match work {
        Work::Analyse(claim) => {
            let apart = part(claim, board, parts, settings);
            watch.analysed(claim, apart);
        }
        Work::Scan(claim) => {
            let boundary = boundary(claim, board, parts, settings);
            watch.scanned(claim, boundary);
        }
    }
}

/// The pairs of hosts in a part; `None` where it cannot be read, or has too many.
fn boundary<P: OpenPart>(
    claim: &Claim,
    board: &Board<P>,
    parts: &P,
    settings: &Settings,
) -> Option<Boundary> {
    let (mut source, mut intake) = parts.open(claim.part, PartReading::Pairs)?;
    let most = most_pairs(board.waiting_bytes());
    let options = settings.options.clone();
    let mut scan = BoundaryScan::new(settings.limits, options, claim.number, most);
    let mut batch = Batch::default();
    loop {
        let progress = source.read_batch(&mut batch).ok().filter(|_| board.is_planned())?;
        scan.batch(&batch, &mut Wanted(&mut intake));
        if progress == Progress::End {
            return scan.finish().filter(Boundary::is_whole);
        }
    }
}

/// How many pairs of a part are noted, where so many bytes may wait of it.
fn most_pairs(waiting_bytes: usize) -> usize {
    (waiting_bytes / PAIRS_SHARE / PAIR_BYTES).min(PAIRS)
}

/// `None` where it cannot be read, or nobody wants it any more.
fn part<P: OpenPart>(
    claim: &Claim,
    board: &Board<P>,
    parts: &P,
    settings: &Settings,
) -> Option<Apart<P>> {
    let (source, intake) = parts.open(claim.part, PartReading::Analysis)?;
    let (mut rows, decoded) = (settings.rows(), settings.rows());
    let place = (claim.number, claim.begun);
    let options = settings.options.clone();
    let mut engine = Engine::of_part(settings.limits, options, settings.seed, place, &mut rows);
    let (mut boundary, mut crossing) = (None, None);
    match &claim.choice {
        None => engine.note_boundary(most_pairs(board.waiting_bytes())),
        Some(choice) => {
            boundary = Some(Arc::clone(&choice.boundary));
            crossing = Some(Arc::clone(&choice.crossing)).filter(|pairs| !pairs.is_empty());
        }
    }
    let mut apart: Apart<P> = Apart {
        number: claim.number,
        engine,
        rows,
        decoded,
        boundary,
        crossing,
        is_whole: false,
        source,
        intake,
        stamps: Stamps::NONE,
        bytes: 0,
    };
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
        let is_full = is_counted && apart.heap_bytes() > board.waiting_bytes();
        apart.is_whole = progress == Progress::End;
        if apart.is_whole || is_full || apart.intake.is_full() {
            break;
        }
    }
    let found = apart.engine.take_boundary().filter(Boundary::is_whole);
    apart.boundary = apart.boundary.or_else(|| found.map(Arc::new));
    Some(apart)
}

impl<P: OpenPart> Apart<P> {
    /// Bytes of all that waits.
    fn heap_bytes(&self) -> usize {
        self.rows.heap_bytes() + self.decoded.heap_bytes()
    }

    fn take(&mut self, batch: &Batch) {
        let Self { engine, rows, decoded, crossing, intake, stamps, bytes, .. } = self;
        stamps.note_all(batch);
        *bytes += batch.data.len() as u64;
        let (is_begin, refused) = (stamps.first.is_none(), stamps.refused);
        let mut intake = Noted { intake, stamps, tells: crossing.is_none() };
        if let Some(crossing) = crossing {
            // The carrier decodes all of it, and tells what is of no flow.
            let is_own = |unit: &DecodedDatagram| !crossing.takes(unit);
            engine.batch_apart(batch, is_own, &mut intake, &mut Nobody, rows);
        } else {
            engine.batch_apart(batch, |_| true, &mut intake, decoded, rows);
        }
        if is_begin && let Some(&(before, _)) = batch.losses.first() {
            stamps.begins_with_loss |= u64::from(before) <= stamps.refused - refused;
        }
    }
}
