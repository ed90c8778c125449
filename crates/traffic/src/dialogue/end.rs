//! One TCP end of a dialogue: what it has to send, what it has received, and when it tries again.
//!
//! Positions count from the SYN at 0: data begins at 1, and a FIN follows the last byte.

use std::collections::BTreeMap;
use std::time::Duration;

use netsniff_packet::decode::TcpFlags;

use super::{Cause, Segment, Setup, Side};

/// Time-outs in a row after which an end gives up.
const MAX_TIMEOUTS: u32 = 6;

/// Bytes that fit an IPv4 packet beside the longest headers.
const MAX_PAYLOAD: u16 = 65_400;

#[derive(Clone, Debug)]
pub(super) struct End {
    initial: u32,
    peer_initial: u32,
    max_payload: u64,
    in_flight: u64,
    first_timeout: Duration,
    delays_acknowledgements: bool,

    /// Bytes to send, from position 1.
    data: Vec<u8>,
    /// One past the last position that may be sent: 0 before the SYN.
    end: u64,
    fin: bool,
    acknowledged: u64,
    next: u64,
    /// Until this position is acknowledged, partial acknowledgements cause retransmissions (RFC 6582).
    recovering: Option<u64>,
    duplicates: u32,
    peer_window: u64,

    /// The next position expected; 0 before the other's SYN.
    expected: u64,
    /// Ranges received beyond it, start to end.
    beyond: BTreeMap<u64, u64>,
    /// Start of the range that grew last: it is told first (RFC 2018).
    latest: u64,
    window: u32,
    /// Shift of the windows that are announced, so that the ends know what the wire says and no more.
    shift: u8,
    echo: u32,
    /// Whether a segment has come that is not acknowledged yet.
    owes: bool,

    timeouts: u32,
    generation: u64,
    timer_set: bool,
    silent: bool,
}

/// What a received segment asks of an end.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reaction {
    pub(super) acknowledge: bool,
    /// Positions that came a second time, which the acknowledgement reports.
    pub(super) duplicate: Option<(u64, u64)>,
    pub(super) retransmit: bool,
}

impl End {
    pub(super) fn new(setup: &Setup, initial: u32) -> Self {
        let stamps = if setup.timestamps { 12 } else { 0 };
        let mut end = Self {
            initial,
            peer_initial: 0,
            max_payload: u64::from(setup.mss.saturating_sub(stamps).clamp(1, MAX_PAYLOAD)),
            in_flight: u64::from(setup.in_flight.max(1)),
            first_timeout: setup.timeout,
            delays_acknowledgements: setup.delays_acknowledgements,
            data: Vec::new(),
            end: 0,
            fin: false,
            acknowledged: 0,
            next: 0,
            recovering: None,
            duplicates: 0,
            peer_window: 1,
            expected: 0,
            beyond: BTreeMap::new(),
            latest: 0,
            window: 0,
            shift: setup.window_scale.unwrap_or(0).min(14),
            echo: 0,
            owes: false,
            timeouts: 0,
            generation: 0,
            timer_set: false,
            silent: false,
        };
        end.set_window(setup.window);
        end
    }

    pub(super) fn open(&mut self) {
        self.end = self.end.max(1);
    }

    pub(super) fn queue(&mut self, data: &[u8]) {
        self.open();
        if !self.fin {
            self.data.extend_from_slice(data);
            self.end += data.len() as u64;
        }
    }

    pub(super) fn queue_fin(&mut self) {
        self.open();
        if !self.fin {
            self.fin = true;
            self.end += 1;
        }
    }

    pub(super) const fn set_window(&mut self, window: u32) {
        let announced = window >> self.shift;
        self.window = (if announced > 0xffff { 0xffff } else { announced }) << self.shift;
    }

    pub(super) const fn fall_silent(&mut self) {
        self.silent = true;
        self.timer_set = false;
    }

    pub(super) const fn all_acknowledged(&self) -> bool {
        self.silent || self.acknowledged == self.end
    }

    /// The next new segment, where windows allow one.
    pub(super) fn next(&mut self, side: Side) -> Option<Segment> {
        let under_way = self.next - self.acknowledged;
        let room = self.in_flight.min(self.peer_window).saturating_sub(under_way);
        let waits = self.next > 0 && self.acknowledged == 0;
        // No small segment while others are under way, but the last one (RFC 1122, 4.2.3.4).
        let full = self.max_payload.min(self.end.saturating_sub(self.next));
        if self.silent
            || self.next >= self.end
            || waits
            || room == 0
            || (room < full && under_way > 0)
        {
            return None;
        }
        let segment = self.at(side, self.next, room, Cause::Said);
        self.next += length(&segment);
        Some(segment)
    }

    /// The first segment that is not acknowledged, again.
    pub(super) fn again(&mut self, side: Side, cause: Cause) -> Option<Segment> {
        if self.silent || self.acknowledged >= self.next {
            return None;
        }
        Some(self.at(side, self.acknowledged, self.next - self.acknowledged, cause))
    }

    /// The segment that starts at a position, with at most `room` bytes.
    fn at(&self, side: Side, position: u64, room: u64, cause: Cause) -> Segment {
        let data_end = 1 + self.data.len() as u64;
        let mut segment = Segment { cause, ..self.acknowledgement(side) };
        segment.sequence = self.initial.wrapping_add(position as u32);
        if position == 0 {
            segment.flags =
                if self.expected > 0 { TcpFlags::SYN.with(TcpFlags::ACK) } else { TcpFlags::SYN };
        } else if position < data_end {
            let len = (data_end - position).min(self.max_payload).min(room);
            let start = (position - 1) as usize;
            segment.payload = self.data[start..start + len as usize].to_vec();
            if position + len == data_end {
                segment.flags = segment.flags.with(TcpFlags::PSH);
            }
        } else {
            segment.flags = segment.flags.with(TcpFlags::FIN);
        }
        segment
    }

    /// An acknowledgement of all that was received, without data.
    pub(super) fn acknowledgement(&self, side: Side) -> Segment {
        let peer = |position: u64| self.peer_initial.wrapping_add(position as u32);
        let mut blocks: Vec<(u64, u64)> =
            self.beyond.iter().map(|(start, end)| (*start, *end)).collect();
        blocks.sort_by_key(|(start, _)| *start != self.latest);
        let acknowledges = self.expected > 0;
        Segment {
            from: side,
            flags: if acknowledges { TcpFlags::ACK } else { TcpFlags::default() },
            sequence: self.initial.wrapping_add(self.next as u32),
            acknowledgement: if acknowledges { peer(self.expected) } else { 0 },
            window: self.window,
            sack: blocks.into_iter().take(3).map(|(start, end)| (peer(start), peer(end))).collect(),
            stamp: 0,
            echo: self.echo,
            payload: Vec::new(),
            cause: Cause::Said,
        }
    }

    /// The acknowledgement of a segment, with a report of what came a second time (RFC 2883).
    pub(super) fn answer(&self, side: Side, duplicate: Option<(u64, u64)>) -> Segment {
        let mut answer = self.acknowledgement(side);
        let peer = |position: u64| self.peer_initial.wrapping_add(position as u32);
        if let Some((start, end)) = duplicate {
            answer.sack.insert(0, (peer(start), peer(end)));
            answer.sack.truncate(3);
        }
        answer
    }

    pub(super) fn receive(&mut self, segment: &Segment) -> Reaction {
        if self.silent {
            return Reaction::default();
        }
        if segment.flags.any(TcpFlags::RST) {
            self.fall_silent();
            return Reaction::default();
        }
        let retransmit = segment.flags.any(TcpFlags::ACK) && self.take_acknowledgement(segment);
        let before = self.expected;
        let duplicate = self.take_data(segment, length(segment));
        // A SYN is answered with a SYN of one's own, which acknowledges it, and a repeated one with the same again.
        if segment.flags.any(TcpFlags::SYN) && self.acknowledged == 0 {
            return Reaction { retransmit: self.next > 0, ..Reaction::default() };
        }
        let may_wait = self.may_wait(segment, before);
        self.owes = may_wait && !self.owes;
        Reaction { acknowledge: length(segment) > 0 && !self.owes, duplicate, retransmit }
    }

    /// Whether a segment need not be acknowledged at once: it is full, more follows, and nothing is missing (RFC 5681, 4.2).
    fn may_wait(&self, segment: &Segment, expected_before: u64) -> bool {
        let len = segment.payload.len() as u64;
        let is_in_order = self.expected == expected_before + len && self.beyond.is_empty();
        let is_last = segment.flags.any(TcpFlags::PSH) || segment.flags.any(TcpFlags::FIN);
        self.delays_acknowledgements && is_in_order && !is_last && len == self.max_payload
    }

    /// Whether the acknowledgement asks for a retransmission.
    fn take_acknowledgement(&mut self, segment: &Segment) -> bool {
        let base = self.initial.wrapping_add(self.acknowledged as u32);
        let ahead = u64::from(segment.acknowledgement.wrapping_sub(base));
        let same_window = u64::from(segment.window) == self.peer_window;
        self.peer_window = u64::from(segment.window);
        if ahead > self.next - self.acknowledged {
            return false;
        }
        if ahead > 0 {
            self.acknowledged += ahead;
            (self.duplicates, self.timeouts, self.timer_set) = (0, 0, false);
            let partial = self.recovering.is_some_and(|until| self.acknowledged < until);
            if !partial {
                self.recovering = None;
            }
            return partial;
        }
        if length(segment) == 0 && same_window && self.acknowledged < self.next {
            self.duplicates += 1;
            if self.duplicates == 3 && self.recovering.is_none() {
                self.recovering = Some(self.next);
                return true;
            }
        }
        false
    }

    /// What of it had come before, if all of it had.
    fn take_data(&mut self, segment: &Segment, len: u64) -> Option<(u64, u64)> {
        if segment.flags.any(TcpFlags::SYN) {
            self.peer_initial = segment.sequence;
            // A late copy of it takes no stamp back (RFC 7323, 4.3).
            if self.expected == 0 || segment.stamp.wrapping_sub(self.echo).cast_signed() > 0 {
                self.echo = segment.stamp;
            }
            self.expected = self.expected.max(1);
            self.open();
            return None;
        }
        let base = self.peer_initial.wrapping_add(self.expected as u32);
        // Signed, since a segment may lie before what is expected.
        let offset = i64::from(segment.sequence.wrapping_sub(base).cast_signed());
        let start = self.expected.saturating_add_signed(offset);
        let end = start + len;
        let is_kept = |(first, last): (&u64, &u64)| *first <= start && end <= *last;
        let came = end <= self.expected || self.beyond.iter().any(is_kept);
        if start <= self.expected {
            // RFC 7323, 4.3: the stamp of what advances, or could, is echoed; never an older one.
            if segment.stamp.wrapping_sub(self.echo).cast_signed() > 0 {
                self.echo = segment.stamp;
            }
            self.expected = self.expected.max(end);
            while let Some((first, last)) = self.beyond.first_key_value().map(|(a, b)| (*a, *b)) {
                if first > self.expected {
                    break;
                }
                self.beyond.remove(&first);
                self.expected = self.expected.max(last);
            }
        } else {
            self.keep(start, end);
        }
        (len > 0 && came).then_some((start, end))
    }

    /// Adds a range beyond what is expected and joins those that touch.
    fn keep(&mut self, mut start: u64, mut end: u64) {
        let touching: Vec<(u64, u64)> = self
            .beyond
            .range(..=end)
            .filter(|(_, last)| **last >= start)
            .map(|(a, b)| (*a, *b))
            .collect();
        for (first, last) in touching {
            self.beyond.remove(&first);
            (start, end) = (start.min(first), end.max(last));
        }
        self.beyond.insert(start, end);
        self.latest = start;
    }

    /// Whether something is under way and no timer watches it.
    pub(super) const fn wants_timer(&self) -> bool {
        !self.silent && !self.timer_set && self.acknowledged < self.next
    }

    /// Sets the timer anew where something is under way: its generation and how long to wait.
    pub(super) fn restart_timer(&mut self) -> Option<(u64, Duration)> {
        self.generation += 1;
        self.timer_set = !self.silent && self.acknowledged < self.next;
        self.timer_set.then(|| (self.generation, self.first_timeout * 2u32.pow(self.timeouts)))
    }

    pub(super) const fn timer_fires(&self, generation: u64) -> bool {
        self.timer_set && self.generation == generation
    }

    /// Counts a time-out; `false` where the end gives up.
    pub(super) fn back_off(&mut self) -> bool {
        self.timeouts += 1;
        self.duplicates = 0;
        self.recovering = Some(self.next);
        if self.timeouts > MAX_TIMEOUTS {
            self.fall_silent();
        }
        !self.silent
    }
}

/// Positions that a segment takes: its payload, SYN and FIN.
fn length(segment: &Segment) -> u64 {
    segment.payload.len() as u64
        + u64::from(segment.flags.any(TcpFlags::SYN))
        + u64::from(segment.flags.any(TcpFlags::FIN))
}
