//! A segment's way through a connection, in the order in which Zeek takes the steps, since its
//! records depend on that order.
//!
//! | module | concern |
//! |---|---|
//! | `acceptance` | which segments are of the connection |
//! | `refusal` | why segments are not of it |
//! | `contest` | what the others said |
//! | `hearsay` | acknowledgements of what nobody saw |
//! | `predict` | the short way of the segment that is awaited |
//! | `numbers` | how far both sides have come |
//! | [`transitions`] | how flags change the states |
//! | `letters` | what the history says of a segment |
//! | `delivery` | what of the streams was seen, and when they are complete |
//! | `lifetime` | from an opening to a deadline |
//! | [`verdict`] | what the losses amount to in the end |

mod acceptance;
mod contest;
mod delivery;
mod hearsay;
mod letters;
mod lifetime;
mod numbers;
mod predict;
mod refusal;
pub mod transitions;
pub mod verdict;

pub use contest::{Claimed, Unanswered};
pub use hearsay::Withdrawn;

use netsniff_packet::Timestamp;
use netsniff_packet::decode::TcpFlags;

use self::contest::Contest;
use self::hearsay::Hearsay;
use self::numbers::sequence_length;
use super::endpoint::TcpEndpoint;
use super::metrics::Metrics;
use super::metrics::series::IntervalRtt;
use super::observed::{Observed, StreamPosition};
use super::segment::Segment;
use crate::flow::history::History;
use crate::limits::Limits;
use crate::prefetch::prefetch;
use crate::weird::Weirds;

/// The parts of a flow that a segment changes besides its connection.
pub struct SegmentContext<'a> {
    /// Engine time, by which connections end: stamps may run back.
    pub now: Timestamp,
    /// The history of the flow, to which the segment may add a letter.
    pub history: History<'a>,
    /// The time of the last packet that counts for the duration.
    pub last_time: &'a mut Timestamp,
    /// Oddities that the segment shows.
    pub weirds: &'a mut Weirds,
    /// Time-outs and bounds.
    pub limits: &'a Limits,
    /// Length of the intervals by which the RTT is sampled, in nanoseconds.
    pub rtt_interval: Option<i64>,
    /// The sampling interval that the segment ended.
    pub rtt: &'a mut Option<IntervalRtt>,
}

/// What a segment amounted to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentOutcome {
    /// Whether originator and responder changed places.
    pub is_flipped: bool,
    /// Index of its sender after that.
    pub from: usize,
    /// Position of its first byte of data, relative to its sender's SYN; `None` where the data is
    /// of no stream.
    pub position: Option<u64>,
    /// Up to where it acknowledges the peer's stream.
    pub acknowledged: Option<u64>,
    /// Whether it is a RST that was taken.
    pub is_reset: bool,
    /// Whether nobody knows how much lies between what was sent before and its numbers.
    pub is_renumbering: bool,
}

/// Whether and how a segment ended its sender's side.
#[derive(Clone, Copy, Debug, Default)]
struct Close {
    closed: bool,
    finished: bool,
}

/// Both sides of a connection and when it will be over. Times that are not set are the latest.
#[derive(Clone, Debug, PartialEq)]
#[repr(C)]
pub struct TcpConnection {
    /// Which sides have sent something: bit 0 the originator, bit 1 the responder.
    seen: u8,
    /// No begin was seen.
    partial: bool,
    /// Over: only waits to be removed.
    inactive: bool,
    /// Whether originator and responder changed places with this segment.
    flipped: bool,
    /// Whether this segment has numbers beyond all that was sent before.
    renumbered: bool,
    /// Closing waits for data that is still missing.
    close_deferred: bool,
    deferred_finish: bool,
    /// Nobody looks at what was seen of the streams.
    unwatched: bool,
    /// Whether this segment may have brought the deadline forward.
    pub(super) hastened: bool,
    /// The handshake is done on either side, so that the longer inactivity time-out applies.
    is_established: bool,
    /// Ports or handshake say that people type here.
    handshake_done: bool,
    /// Both sides began, and what they said has not told the client yet.
    is_crossed: bool,
    /// What a side sent is not where it seemed to begin: a FIN ends more than was ever on its way at once, of which nothing
    /// was seen, or data stands before a begin that nobody acknowledged.
    is_unlike_begin: bool,
    /// Something was acknowledged that was never sent.
    has_taken_back: bool,
    /// Nothing but `remove_at` ends the connection any more.
    timers_cancelled: bool,
    /// Whether both sides are in the middle of streams of which nothing is missing, and nothing is undecided, so that
    /// the next segment may be predicted.
    is_steady: bool,
    /// Bytes outside itself when [`Self::recount`] was last called.
    counted: u32,
    /// Whether it may hold others since.
    may_have_grown: bool,
    /// When a connection that is over will be removed.
    remove_at: Timestamp,
    /// When an attempt will have failed.
    attempt_until: Timestamp,
    /// When one side ended first; looks at the connection follow from there.
    half_closed_at: Timestamp,
    /// Bytes that were acknowledged but never seen while both sides were in order.
    pub missed_bytes: u64,
    /// Both sides: the originator, then the responder.
    pub ends: [TcpEndpoint; 2],
    /// What its segments tell of path and hosts.
    pub metrics: Metrics,
    /// What segments said that were not taken.
    contest: Option<Box<Contest>>,
    /// What one segment alone says of data that nobody saw.
    hearsay: Option<Box<Hearsay>>,
}

impl Default for TcpConnection {
    fn default() -> Self {
        Self {
            ends: Default::default(),
            seen: 0,
            partial: false,
            inactive: false,
            flipped: false,
            renumbered: false,
            close_deferred: false,
            deferred_finish: false,
            unwatched: false,
            hastened: false,
            is_established: false,
            handshake_done: false,
            is_crossed: false,
            is_unlike_begin: false,
            has_taken_back: false,
            timers_cancelled: false,
            is_steady: false,
            counted: 0,
            may_have_grown: true,
            remove_at: Timestamp::MAX,
            attempt_until: Timestamp::MAX,
            half_closed_at: Timestamp::MAX,
            missed_bytes: 0,
            metrics: Metrics::default(),
            contest: None,
            hearsay: None,
        }
    }
}

impl TcpConnection {
    /// Takes one segment, and says what it amounted to.
    #[inline(always)]
    pub fn segment(
        &mut self,
        segment: &Segment<'_>,
        context: &mut SegmentContext<'_>,
    ) -> SegmentOutcome {
        match self.predict(segment, context.limits) {
            Some(predicted) => {
                #[cfg(debug_assertions)]
                let whole = self.take_in_full_beside(segment, context);
                let outcome = self.take_predicted(segment, predicted, context);
                #[cfg(debug_assertions)]
                whole.assert_same(self, &outcome, context);
                outcome
            }
            None => self.unpredicted(segment, context),
        }
    }

    /// Takes a segment that was not predicted, as the first one never is.
    #[inline(never)]
    pub fn unpredicted(
        &mut self,
        segment: &Segment<'_>,
        context: &mut SegmentContext<'_>,
    ) -> SegmentOutcome {
        let outcome = self.take_in_full(segment, context);
        self.is_steady = self.finds_steady();
        self.may_have_grown = true;
        outcome
    }

    /// Takes any segment.
    fn take_in_full(
        &mut self,
        segment: &Segment<'_>,
        context: &mut SegmentContext<'_>,
    ) -> SegmentOutcome {
        if let Some(refused) = self.refuse(segment, context) {
            return refused;
        }
        self.note_partial(segment);
        let tcp = segment.tcp;
        let length = sequence_length(tcp);
        let end = tcp.sequence.wrapping_add(length);
        self.begin_endpoint(segment, end, context.weirds);

        let sender = &self.ends[segment.from];
        let (position, underflow) = sender.last.relative(tcp.sequence, sender.start);
        if underflow && !segment.has(TcpFlags::RST) {
            self.is_unlike_begin |= tcp.payload_len > 0 && !self.is_begun(segment.from);
            context.weirds.add("TCP_seq_underflow_or_misorder");
        }
        self.note_history(segment, position, &mut context.history);
        self.note_window(segment, context);
        if !(self.ends[0].did_close && self.ends[1].did_close) {
            *context.last_time = segment.time;
        }
        self.note_flags(segment, position, length, context.weirds);
        if segment.has(TcpFlags::URG) {
            transitions::note_urgent(segment, context);
        }
        let is_claiming = self.is_claiming(segment);
        if is_claiming {
            self.note_claim(segment);
        }
        let acknowledged = self.note_acknowledgement(segment, context.weirds);
        let advance = self.note_last(segment, end, &mut context.history);

        let close = self.transition(segment, advance, context);
        // The machine may have made the sender the originator.
        let from = if self.flipped { 1 - segment.from } else { segment.from };
        if let Some(position) = acknowledged {
            self.acknowledge(1 - from, position, context);
        }
        if is_claiming {
            self.claimed(segment);
        }
        self.seen |= 1 << from;
        let scale = self.ends[from].window_scale;
        let place = StreamPosition {
            position: position.cast_signed(),
            acknowledged: acknowledged.unwrap_or(0).cast_signed(),
            limits: context.limits,
        };
        let observed = Observed::new(segment, from, scale, Some(place));
        self.measure(&observed, context);
        self.note_data(from, segment, position, underflow, context);
        self.check_end(from, context);
        if close.closed {
            self.close(from, close.finished, context.now, context.limits);
        }
        let is_data = !underflow && !segment.has(TcpFlags::RST);
        self.outcome(&observed, is_data.then_some(position), acknowledged)
    }

    /// Begins with a segment. Returns what it amounted to where it is not of the connection.
    #[inline]
    fn refuse(
        &mut self,
        segment: &Segment<'_>,
        context: &mut SegmentContext<'_>,
    ) -> Option<SegmentOutcome> {
        self.flipped = false;
        self.renumbered = false;
        if self.hearsay.is_some() {
            self.weigh(segment, context);
        }
        self.hastened = false;
        let refusal = self.refusal(segment, *context.last_time)?;
        Some(self.leave_out(segment, &refusal, context))
    }

    /// What a segment amounted to that was taken, and whose data stands at a position, or in no stream.
    #[inline]
    fn outcome(
        &self,
        observed: &Observed<'_>,
        position: Option<u64>,
        acknowledged: Option<u64>,
    ) -> SegmentOutcome {
        let syn = u64::from(observed.has(TcpFlags::SYN));
        SegmentOutcome {
            is_flipped: self.flipped,
            from: observed.from,
            position: position.map(|position| position.wrapping_add(syn)),
            acknowledged,
            is_reset: observed.has(TcpFlags::RST),
            is_renumbering: self.renumbered,
        }
    }

    /// Takes a segment into the metrics of the connection.
    #[inline]
    fn measure(&mut self, observed: &Observed<'_>, context: &mut SegmentContext<'_>) {
        if self.unwatched {
            self.metrics.take(observed);
        } else {
            *context.rtt = self.metrics.segment(observed, context.rtt_interval);
        }
    }

    /// Whether something about a segment that was just taken tells that it may never reach its receiver.
    #[must_use]
    pub fn is_doubtful(&self, segment: &Segment<'_>, outcome: &SegmentOutcome) -> bool {
        let observed = Observed::new(segment, outcome.from, 0, None);
        self.metrics.is_doubtful(&observed) || self.is_before_begin(outcome.acknowledged)
    }

    /// Whether what a segment acknowledges lies before the peer's begin: hosts drop it then (RFC 5961, 5).
    const fn is_before_begin(&self, acknowledged: Option<u64>) -> bool {
        matches!(acknowledged, Some(0)) && !self.partial
    }

    /// Whether two SYNs crossed (RFC 9293, 3.5), which do not tell the client.
    #[must_use]
    #[inline]
    pub const fn is_crossed(&self) -> bool {
        self.is_crossed
    }

    /// Whether no begin was seen.
    #[must_use]
    #[inline]
    pub const fn is_partial(&self) -> bool {
        self.partial
    }

    /// Bytes that it held outside itself when [`Self::recount`] was last called.
    #[must_use]
    #[inline]
    pub const fn heap_bytes(&self) -> usize {
        self.counted as usize
    }

    /// Counts what it holds outside itself, and returns by how many bytes that has grown: after each segment, so it is
    /// looked at only where it may have.
    #[inline]
    pub fn recount(&mut self) -> isize {
        if self.is_steady && !self.may_have_grown {
            debug_assert_eq!(self.counted, self.held(), "what a predicted segment takes");
            return 0;
        }
        self.may_have_grown = false;
        let before = self.counted as isize;
        self.counted = self.held();
        self.counted as isize - before
    }

    fn held(&self) -> u32 {
        // What hardly any connection has is looked at only where it is there.
        let rare = if self.is_steady { 0 } else { self.rare_bytes() };
        u32::try_from(self.metrics.heap_bytes() + rare).unwrap_or(u32::MAX)
    }

    /// Bytes of holes, and of what is not decided yet. A steady connection has neither.
    fn rare_bytes(&self) -> usize {
        self.ends[0].assembler.heap_bytes()
            + self.ends[1].assembler.heap_bytes()
            + self.contest.as_ref().map_or(0, |contest| size_of::<Contest>() + contest.heap_bytes())
            + self.hearsay.as_ref().map_or(0, |it| size_of::<Hearsay>() + it.heap_bytes())
    }

    /// Asks for every cache line that a segment may need.
    #[inline]
    pub fn prefetch(&self) {
        let [orig, resp] = &self.ends;
        prefetch(&self.seen);
        prefetch(&orig.last);
        prefetch(&orig.fin_position);
        prefetch(&resp.last);
        prefetch(&resp.fin_position);
        prefetch(&self.metrics);
    }

    /// Asks for every cache line of its metrics that a segment may need.
    #[inline]
    pub fn prefetch_metrics(&self) {
        self.metrics.prefetch_full();
    }

    /// Whether it may be another connection, or begin otherwise, than it was taken for.
    #[must_use]
    #[inline]
    pub const fn is_undecided(&self) -> bool {
        self.contest.is_some() || self.seen == 1
    }

    /// Whether the last segment may have brought the deadline forward.
    #[must_use]
    #[inline]
    pub const fn is_hastened(&self) -> bool {
        self.hastened
    }

    fn note_partial(&mut self, segment: &Segment<'_>) {
        let syn = segment.has(TcpFlags::SYN);
        if self.seen & (1 << segment.from) != 0 {
            return;
        }
        if segment.is_originator() {
            self.partial = !syn || segment.has(TcpFlags::ACK);
        } else if !self.partial {
            self.partial = !syn;
        }
    }

    fn note_flags(
        &mut self,
        segment: &Segment<'_>,
        position: u64,
        length: u32,
        weirds: &mut Weirds,
    ) {
        if segment.has(TcpFlags::SYN) {
            self.note_syn(segment, weirds);
        }
        let sender = &mut self.ends[segment.from];
        if segment.has(TcpFlags::FIN) {
            sender.fins = sender.fins.saturating_add(1);
            sender.fin_position = position.wrapping_add(length.into());
        }
        if segment.has(TcpFlags::RST) {
            sender.resets = sender.resets.saturating_add(1);
        }
    }
}
