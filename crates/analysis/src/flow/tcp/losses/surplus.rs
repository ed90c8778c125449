//! Losses for which the list has no room, and what was forgotten that evidence may still come for.

use netsniff_packet::Timestamp;

use super::gap::{Proof, StreamGap};
use super::is_past;
use crate::log::gaps::{Cause, Missing};

/// Sums of losses that are not listed any more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Surplus {
    /// Number of losses.
    pub gaps: u64,
    /// Bytes that the capture lost.
    pub capture: u64,
    /// Bytes that the network lost before the tap.
    pub before: u64,
    /// Bytes that the network lost behind the tap.
    pub behind: u64,
    /// Losses whose cause is unknown.
    pub unknown: u64,
    /// Losses of the capture that are proven.
    pub captures: u64,
    /// Losses that may have been late packets.
    pub assumed: u64,
    /// Whether nothing tells of some second copies whether the first ones were lost.
    pub is_incomplete: bool,
    /// Whether these sums, or those of what is listed, would be others if there had been room for everything.
    pub is_doubtful: bool,
    copies: Copies,
}

/// Second copies of which the end tells whether the first ones were lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Copies {
    bytes: u64,
    /// One past the highest number in any, and when the last one came; `None` where there is none.
    last: Option<(i64, Timestamp)>,
}

/// What is known of a stream at its end.
#[derive(Clone, Copy, Debug)]
pub(in crate::flow::tcp) struct Ending {
    /// Up to where the receiver has everything.
    pub(in crate::flow::tcp) acknowledged: i64,
    /// In how many nanoseconds the receiver would have reported what came to it twice (RFC 2883), if it does.
    pub(in crate::flow::tcp) reports: Option<u64>,
    /// The time of the last packet.
    pub(in crate::flow::tcp) last: Timestamp,
}

impl Ending {
    /// Whether the receiver would have reported a copy of numbers up to `high` that came at some time, had it had
    /// the first one.
    pub(super) fn would_tell(&self, high: i64, came: Timestamp) -> bool {
        let is_over = |wait: u64| is_past(came, self.last, wait.saturating_sub(1));
        self.reports.is_some_and(is_over) && high <= self.acknowledged
    }
}

impl Surplus {
    /// Adds a loss. The first byte of data stands at 1 plus `shift`.
    pub(super) fn add(&mut self, gap: &StreamGap, shift: i64) {
        let bytes = if gap.what == Missing::Data { gap.bytes(shift) } else { 0 };
        self.gaps = self.gaps.saturating_add(1);
        self.assumed = self.assumed.saturating_add(gap.is_assumed.into());
        let sum = match gap.cause {
            Cause::Capture => {
                self.captures = self.captures.saturating_add((!gap.is_assumed).into());
                &mut self.capture
            }
            Cause::NetworkBefore => &mut self.before,
            Cause::NetworkBehind => &mut self.behind,
            Cause::Unknown if gap.is_second_copy() && gap.proof == Proof::Unsure => {
                self.is_incomplete = true;
                return;
            }
            Cause::Unknown if gap.is_second_copy() => {
                let (high, last) = self.copies.last.unwrap_or((gap.high, gap.until));
                self.copies.last = Some((high.max(gap.high), last.max(gap.until)));
                &mut self.copies.bytes
            }
            Cause::Unknown => {
                self.unknown = self.unknown.saturating_add(1);
                return;
            }
        };
        *sum = sum.saturating_add(bytes);
    }

    /// The sums at the end.
    pub(super) fn at(mut self, ending: &Ending) -> Self {
        let Copies { bytes, last } = core::mem::take(&mut self.copies);
        match last {
            None => {}
            Some((high, came)) if ending.would_tell(high, came) => {
                self.behind = self.behind.saturating_add(bytes);
            }
            Some(_) => {
                self.is_incomplete = true;
                // Some of them may have come early enough.
                self.is_doubtful |= ending.reports.is_some();
            }
        }
        self
    }
}

/// The range of numbers in which something was forgotten. Evidence of what lies elsewhere is complete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Forgotten(Option<Range>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Range {
    low: i64,
    high: i64,
    until: Timestamp,
}

impl Forgotten {
    /// What lies from `low` up to `high`, and was known until some time, is not any more.
    pub(super) fn note(&mut self, low: i64, high: i64, until: Timestamp) {
        let new = Range { low, high, until };
        let old = self.0.unwrap_or(new);
        self.0 = Some(Range {
            low: old.low.min(low),
            high: old.high.max(high),
            until: old.until.max(until),
        });
    }

    /// Until when something was known that lies from `low` up to `high`.
    pub(super) fn within(&self, low: i64, high: i64) -> Option<Timestamp> {
        self.0.filter(|it| it.low < high && low < it.high).map(|it| it.until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::gaps::Ended;

    fn copy(low: i64, high: i64, nanos: i64) -> StreamGap {
        let at = Timestamp::from_nanos(nanos);
        StreamGap {
            what: Missing::Data,
            low,
            high,
            since: at,
            until: at,
            ended: Ended::Filled,
            cause: Cause::Unknown,
            proof: Proof::None,
            is_assumed: false,
        }
    }

    fn ending(acknowledged: i64, reports: Option<u64>, last: i64) -> Ending {
        Ending { acknowledged, reports, last: Timestamp::from_nanos(last) }
    }

    #[test]
    fn the_end_tells_of_second_copies_that_are_not_listed() {
        let mut surplus = Surplus::default();
        surplus.add(&copy(1, 11, 5), 0);
        surplus.add(&copy(11, 16, 9), 0);
        let told = surplus.at(&ending(16, Some(10), 20));
        assert_eq!((told.behind, told.is_incomplete, told.is_doubtful), (15, false, false));
        // Nobody would have told, somebody would tell yet, or has not acknowledged all of it.
        for (ending, is_doubtful) in [
            (ending(16, None, 20), false),
            (ending(16, Some(10), 15), true),
            (ending(15, Some(10), 20), true),
        ] {
            let told = surplus.at(&ending);
            assert_eq!((told.behind, told.is_incomplete), (0, true), "{ending:?}");
            assert_eq!(told.is_doubtful, is_doubtful, "{ending:?}");
        }
        assert_eq!((told.gaps, told.unknown), (2, 0));
    }

    #[test]
    fn each_cause_has_its_sum() {
        let mut surplus = Surplus::default();
        for (cause, proof) in [
            (Cause::Capture, Proof::None),
            (Cause::NetworkBefore, Proof::None),
            (Cause::NetworkBehind, Proof::Lacked),
            (Cause::Unknown, Proof::Unsure),
        ] {
            surplus.add(&StreamGap { cause, proof, ..copy(5, 9, 1) }, 0);
        }
        surplus.add(&StreamGap { cause: Cause::Capture, is_assumed: true, ..copy(1, 4, 1) }, 2);
        surplus.add(&StreamGap { ended: Ended::EndOfFlow, ..copy(5, 9, 1) }, 0);
        let told = surplus.at(&ending(99, Some(1), 99));
        assert_eq!((told.capture, told.before, told.behind), (5, 4, 4));
        assert_eq!((told.gaps, told.captures, told.assumed, told.unknown), (6, 1, 1, 1));
        assert!(told.is_incomplete && !told.is_doubtful);
    }

    #[test]
    fn what_was_forgotten_is_a_range() {
        let mut forgotten = Forgotten::default();
        assert_eq!(forgotten.within(i64::MIN, i64::MAX), None);
        let at = Timestamp::from_nanos;
        forgotten.note(10, 20, at(7));
        forgotten.note(40, 50, at(3));
        assert_eq!(forgotten.within(20, 40), Some(at(7)));
        assert_eq!((forgotten.within(5, 10), forgotten.within(50, 60)), (None, None));
    }
}
