//! What the baton stands for: the source and its decoding, piece by piece.

use std::sync::Arc;

use netsniff_analysis::engine::decoding::DecodeStage;
use netsniff_analysis::engine::shard::FinishStep;
use netsniff_analysis::key::FlowKey;
use netsniff_output::RowBuffer;
use netsniff_packet::{Batch, Progress, Source};

use super::board::{Round, RoundMemory, SharedBoard, Work};
use super::run::{Attend, BatchPool, Settings};

/// Packets of a round for each thread: enough that sharing it out hardly counts, few enough that they stay in the
/// cache of whoever decoded them.
const ROUND: usize = 256;

/// Reads and decodes. One thread after another does it.
pub(super) struct Reading<'a, S, A> {
    source: &'a mut S,
    attendant: &'a mut A,
    stage: DecodeStage,
    /// The rows of decoding that are not complete.
    waiting: RowBuffer,
    pool: BatchPool,
    workers: usize,
    /// What is left of the end, once everything was read.
    end: Option<Box<dyn Iterator<Item = FinishStep> + Send>>,
}

impl<'a, S, A> Reading<'a, S, A> {
    /// Nothing was read yet.
    pub(super) fn new(source: &'a mut S, settings: &Settings, attendant: &'a mut A) -> Self {
        Self {
            source,
            attendant,
            stage: DecodeStage::new(
                settings.limits,
                settings.options.clone(),
                ROUND * settings.workers,
            ),
            waiting: settings.rows(),
            pool: BatchPool::default(),
            workers: settings.workers,
            end: None,
        }
    }

    /// Decoding, with its counts.
    pub(super) fn into_stage(self) -> DecodeStage {
        self.stage
    }
}

impl<S: Source<Error: Into<anyhow::Error>>, A: Attend<S>> Reading<'_, S, A> {
    /// Puts the rounds of the next piece on the board.
    ///
    /// # Errors
    ///
    /// Failures of the source and of the attendant.
    pub(super) fn piece(&mut self, board: &SharedBoard) -> anyhow::Result<Progress> {
        match &mut self.end {
            None => self.read(board),
            Some(steps) => Ok(match steps.next() {
                Some(step) => {
                    self.finish_step(step, board);
                    Progress::More
                }
                None => Progress::End,
            }),
        }
    }

    fn read(&mut self, board: &SharedBoard) -> anyhow::Result<Progress> {
        let (batch, progress) = self.pool.read(self.source)?;
        let Self { stage, waiting, attendant, workers, .. } = self;
        let mut round = |stage: &mut DecodeStage, batch: &Arc<Batch>, waiting: &mut RowBuffer| {
            share_out(stage, batch, waiting, *workers, board);
        };
        stage.batch(&batch, Arc::new, *attendant, waiting, &mut round);
        attendant.taken(self.source)?;
        if progress == Progress::End {
            stage.finish(Arc::new, *attendant, waiting, &mut round);
            self.end = Some(Box::new(FinishStep::all(stage.ingress().now())));
        }
        self.pool.give_back(batch);
        Ok(Progress::More)
    }

    fn finish_step(&mut self, step: FinishStep, board: &SharedBoard) {
        let (RoundMemory { units, shares }, mut rows) = board.memory();
        let watermark = step.watermark();
        self.waiting.take_before(watermark, &mut rows);
        board.post(Round { work: Work::Finish(step), units, shares, watermark }, rows);
    }
}

/// Shares out the datagrams that were decoded since the last round.
fn share_out(
    stage: &mut DecodeStage,
    batch: &Arc<Batch>,
    waiting: &mut RowBuffer,
    workers: usize,
    board: &SharedBoard,
) {
    let (RoundMemory { units: empty, mut shares }, mut rows) = board.memory();
    let watermark = stage.watermark();
    shares.resize_with(workers, Vec::new);
    for (at, unit) in (0..).zip(stage.units().as_slice()) {
        if let Some(ip) = unit.ip() {
            shares[FlowKey::worker(ip.source, ip.destination, workers)].push(at);
        }
    }
    let units = stage.take_units(empty);
    waiting.take_before(watermark, &mut rows);
    let work = Work::Datagrams(Arc::clone(batch));
    board.post(Round { work, units, shares, watermark }, rows);
}
