//! Where a stream ends: at a FIN that was acknowledged, or with its connection.

use netsniff_packet::Timestamp;

use super::StreamReassembler;
use crate::reassembly::piece::{GapCause, Piece, ReassemblyContext, Sink};

impl StreamReassembler {
    /// Notes that the data ends at `position`. What came of later positions does not count.
    pub fn finish_at(
        &mut self,
        position: u64,
        time: Timestamp,
        around: &mut ReassemblyContext<'_>,
        to: &mut impl Sink,
    ) {
        if self.end != u64::MAX || position < self.next || self.has_ended {
            return;
        }
        (self.end, self.end_time) = (position, time);
        if let Some(queue) = &mut self.queue {
            let before = queue.bytes();
            queue.split_at(position);
            let is_beyond = queue.reaches_beyond(position);
            *around.held_in_all = (*around.held_in_all + queue.bytes()).saturating_sub(before);
            if is_beyond {
                self.note_surplus(to);
            }
        }
        self.note_end(to);
    }

    /// Tells the end, once everything before it was told and the FIN was acknowledged.
    #[inline]
    pub(super) fn note_end(&mut self, to: &mut impl Sink) {
        if self.next >= self.end && self.acknowledged > self.end && !self.has_ended {
            self.has_ended = true;
            to.piece(self.end_time, self.next, Piece::End);
        }
    }

    /// Hands on all that is left, since the connection is over.
    pub fn finish(
        &mut self,
        time: Timestamp,
        around: &mut ReassemblyContext<'_>,
        to: &mut impl Sink,
    ) {
        // Nobody refuted the FIN.
        if let Some(queue) = &mut self.queue
            && self.end != u64::MAX
        {
            let before = queue.bytes();
            queue.truncate(self.end);
            *around.held_in_all = around.held_in_all.saturating_sub(before - queue.bytes());
        }
        let is_cut_off = self.is_reset && self.is_heard();
        while let Some(queue) = &self.queue {
            let is_acknowledged = queue.due.is_some();
            if is_cut_off && !is_acknowledged {
                self.drop_held(around);
                break;
            }
            let cause = if is_acknowledged { GapCause::Capture } else { GapCause::End };
            self.give_up(time, cause, around, to);
        }
        if !self.has_ended {
            // Where the end was seen and what lies before it was not, nothing waits behind a hole.
            if self.end != u64::MAX && self.end > self.next && !is_cut_off {
                let is_acknowledged = self.acknowledged > self.next;
                let cause = if is_acknowledged { GapCause::Capture } else { GapCause::End };
                self.gap(time, self.end, cause, around.endings, to);
            }
            self.has_ended = true;
            let is_known = self.end != u64::MAX;
            let time = if is_known { self.end_time.min(time) } else { time };
            to.piece(time, self.next, Piece::End);
        }
    }
}
