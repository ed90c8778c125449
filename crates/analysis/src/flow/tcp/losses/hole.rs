//! Something that was skipped or that the receiver lacks, and what comes in its place.

use netsniff_packet::Timestamp;

use super::Revealed;
use super::gap::{Gap, Proof};
use crate::log::gaps::{Cause, Ended, Missing};

/// Numbers that were skipped.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hole {
    pub(super) low: i64,
    pub(super) high: i64,
    /// What revealed it.
    pub(super) revealed: Revealed,
    /// When the receiver first acknowledged it, and the stamp that it echoed of just this.
    pub(super) acknowledged: Option<Timestamp>,
    pub(super) echo: Option<u32>,
    /// When the receiver first showed that it lacks it.
    pub(super) lacked: Option<Timestamp>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Lacking {
    pub(super) low: i64,
    /// Where the receiver has data again, if it told.
    pub(super) high: i64,
    pub(super) since: Timestamp,
    /// When it last showed that it does.
    pub(super) last: Timestamp,
    pub(super) is_repaired: bool,
    /// When that was sent again, if it was.
    pub(super) repaired: Timestamp,
}

/// How data came that was missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Coming {
    pub(super) why: Why,
    /// What is known of the segment that brought it, where it brought nothing new.
    pub(super) sent: Option<Sent>,
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
pub(super) struct Sent {
    /// Its time stamp.
    pub(super) stamp: Option<u32>,
    /// Up to where its sender had sent before.
    pub(super) next: i64,
    /// How soon it can have been sent for the hole that it fills.
    pub(super) soon: u64,
}

impl Coming {
    /// With what comes for the first time.
    pub(super) const NEW: Self = Self { why: Why::SentAgain, sent: None };
}

impl Hole {
    /// The loss that it is.
    pub(super) const fn gap(&self, cause: Cause, ended: Ended, until: Timestamp) -> Gap {
        let Self { low, high, revealed: Revealed { at: since, .. }, .. } = *self;
        Gap { what: Missing::Data, low, high, since, until, ended, cause, proof: Proof::None }
    }
}
