//! Something that was skipped or that the receiver lacks, and what comes in its place.

use netsniff_packet::Timestamp;

use super::gap::{Proof, StreamGap};
use super::second_copies::REORDER;
use super::{Again, Class, Revealed, is_past};
use crate::flow::tcp::coverage;
use crate::log::gaps::{Cause, Ended, Missing};

/// Numbers that were skipped, and the evidence of who lost them.
pub(super) type Hole = coverage::Hole<Evidence>;

/// What is known of a hole.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Evidence {
    /// The segment or acknowledgement that skipped it.
    pub(super) revealed: Revealed,
    /// When the receiver first acknowledged it, and the stamp that it echoed of just this.
    pub(super) acknowledged: Option<Timestamp>,
    pub(super) echo: Option<u32>,
    /// When the receiver showed that it lacks it.
    pub(super) lacked: Option<Shown>,
    /// When the receiver first told with SACK that it has all of it.
    pub(super) got: Option<Timestamp>,
    /// Whether it is listed as a loss. What comes then is still no second copy.
    pub(super) is_given_up: bool,
    /// Whether its sender may send it yet, for all that was seen of it: the receiver told of it.
    pub(super) is_ahead: bool,
}

impl Evidence {
    /// Nothing but what revealed the hole.
    pub(super) const fn new(revealed: Revealed) -> Self {
        let (acknowledged, echo, lacked, got) = (None, None, None, None);
        let (is_given_up, is_ahead) = (false, false);
        Self { revealed, acknowledged, echo, lacked, got, is_given_up, is_ahead }
    }

    /// Of a hole that nothing of its sender has revealed yet.
    pub(super) const fn ahead(at: Timestamp) -> Self {
        Self { is_ahead: true, ..Self::new(Revealed::at(at)) }
    }
}

/// When the receiver showed that it lacks something.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Shown {
    pub(super) since: Timestamp,
    /// When it last did.
    pub(super) last: Timestamp,
}

impl Shown {
    pub(super) const fn at(time: Timestamp) -> Self {
        Self { since: time, last: time }
    }

    /// Whether it did for longer than a packet may be late: what its sender sent behind it can be answered
    /// after `repair` nanoseconds.
    pub(super) fn is_long(&self, repair: u64) -> bool {
        is_past(self.since, self.last, repair.max(REORDER))
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Lacking {
    pub(super) low: i64,
    /// Where the receiver has data again, if it told.
    pub(super) high: i64,
    /// Up to where it has showed since that it has data, or its sender had sent.
    pub(super) top: i64,
    pub(super) shown: Shown,
    /// When it passed the tap, if that was out of order.
    pub(super) passed: Option<Timestamp>,
    pub(super) is_repaired: bool,
    /// When that was sent again, if it was.
    pub(super) repaired: Timestamp,
}

/// What filled holes last, and when.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Fills([Option<(i64, i64, Timestamp)>; 4]);

impl Fills {
    pub(super) const fn note(&mut self, low: i64, high: i64, time: Timestamp) {
        let [first, second, third, _] = self.0;
        self.0 = [Some((low, high, time)), first, second, third];
    }

    /// When the number at a position filled a hole, as far as that is known.
    pub(super) fn last(&self, position: i64) -> Option<Timestamp> {
        let is_it = |&&(low, high, _): &&(i64, i64, Timestamp)| low <= position && position < high;
        self.0.iter().flatten().find(is_it).map(|fill| fill.2)
    }
}

impl Lacking {
    /// Whether the receiver lacked it still when it should have had what was sent last.
    pub(super) fn is_shown_since(&self, again: &Again) -> bool {
        let answer = again.least_acknowledgement.map_or(0, |least| least.saturating_mul(2));
        self.repaired < self.shown.last && is_past(self.repaired, self.shown.last, answer)
    }
}

/// How data came that was missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Coming {
    pub(super) why: Why,
    /// What is known of the segment that brought it, where it brought nothing new.
    pub(super) sent: Option<SentAgain>,
    /// Whether it may have been late, though it looks like an answer.
    pub(super) is_hasty: bool,
}

/// Why data came that was missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    /// It may have been overtaken on its way; unless the receiver had shown the lack for longer
    /// than these nanoseconds, in which the sender can have answered that.
    Reordered(Option<u64>),
    /// It was sent again.
    SentAgain,
    /// Its stamp or number proves that it was sent again.
    SentLater,
    /// It was sent again though the receiver had it.
    Unneeded,
}

/// A segment that brought nothing new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SentAgain {
    /// Its time stamp (RFC 7323).
    pub(super) stamp: Option<u32>,
    /// Whether all that its sender sent before has an older stamp.
    pub(super) is_newest: bool,
    /// Up to where its sender had sent before.
    pub(super) next: i64,
    /// How soon it can have been sent for the hole that it fills.
    pub(super) soon: u64,
}

impl Coming {
    /// With what comes for the first time.
    pub(super) const NEW: Self = Self { why: Why::SentAgain, sent: None, is_hasty: false };

    /// With a segment whose numbers up to `high` are not new.
    pub(super) fn of(again: &Again, high: i64) -> Self {
        let why = match again.class {
            _ if again.is_later => Why::SentLater,
            Class::OutOfOrder => Why::Reordered(again.least_answer),
            Class::Unnecessary => Why::Unneeded,
            Class::Timeout | Class::Fast | Class::Doubled => Why::SentAgain,
        };
        Self { why, sent: Some(SentAgain::of(again, high)), is_hasty: again.is_hasty }
    }
}

impl SentAgain {
    /// A segment with numbers up to `high`.
    pub(super) fn of(again: &Again, high: i64) -> Self {
        let next = high + i64::from(again.sent_beyond);
        let Again { stamp, is_newest, .. } = *again;
        Self { stamp, is_newest, next, soon: again.repair.behind_a_hole }
    }
}

impl Hole {
    /// The loss that it is.
    pub(super) const fn gap(&self, cause: Cause, ended: Ended, until: Timestamp) -> StreamGap {
        let Self { low, high, known: Evidence { revealed: Revealed { at: since, .. }, .. } } =
            *self;
        let (what, proof) = (Missing::Data, Proof::None);
        StreamGap { what, low, high, since, until, ended, cause, proof, is_assumed: false }
    }
}
