//! Engines of parts of an input: where one may go on for another, without a record that tells.

use netsniff_packet::Timestamp;

use super::Engine;
use crate::engine::shard::Shard;
use crate::limits::Limits;
use crate::options::Options;
use crate::record::{Observer, SortKey};
use crate::unit::{CaptureHole, HoleKind};

impl Engine {
    /// An engine for a part of an input that began at engine time `begun`, which has seen nothing of it. `part` tells which
    /// of the parts it is, from 1 and in their order: keys of its records lie behind those of parts before it.
    ///
    /// What it tells is what an engine tells that saw the whole input, if that one
    /// [is over](Self::is_over_before) before the first packet of the part.
    pub fn of_part<O: Observer>(
        limits: Limits,
        options: Options,
        seed: u64,
        (part, begun): (u32, Timestamp),
        observer: &mut O,
    ) -> Self {
        let mut engine = Self::new(limits, options, seed);
        engine.stage.begin_part(part);
        let begin = CaptureHole { at: 0, now: begun, kind: HoleKind::Begin };
        let watermark = SortKey::first_at(begun);
        engine.shard.round(core::iter::empty(), &[begin], &[], watermark, observer);
        engine
    }

    /// Ends what ends until `first`, the stamp of the packet that comes next, if that stamp is believed. No packet may be
    /// put aside: [`Self::take_held`].
    pub fn settle_before<O: Observer>(&mut self, first: Timestamp, observer: &mut O) {
        self.stage.settle_before(first, observer);
        settle(&mut self.shard, first, observer);
    }

    /// Whether what comes from `first` on, the stamp of the packet that comes next, is told as it were if nothing had
    /// come before. Call [`Self::settle_before`] first.
    #[must_use]
    pub fn is_over_before(&self, first: Timestamp) -> bool {
        self.stage.is_over_before(first) && self.tracker().is_over_before(first)
    }
}

/// Ends the flows whose deadlines lie at `now` or before, to the nanosecond.
pub(super) fn settle<O: Observer>(shard: &mut Shard, now: Timestamp, observer: &mut O) {
    shard.round(core::iter::empty(), &[], &[], SortKey::behind_packet(now, 0), observer);
}
