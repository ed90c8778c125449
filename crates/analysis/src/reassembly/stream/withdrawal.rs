//! What was acknowledged of a stream and turns out never to have been sent.

use super::StreamReassembler;

impl StreamReassembler {
    /// Whether bytes from `position` up to `reach` continue the stream.
    #[must_use]
    #[inline]
    pub const fn is_continued_by(&self, position: u64, reach: u64) -> bool {
        position <= self.next && reach > self.next
    }

    /// Takes back that more was acknowledged than lies below `acknowledged`: from `low` on nothing was sent then. A
    /// gap that was told of that is none where nothing was handed on behind it. Returns the position that is
    /// handed on next.
    pub fn withdraw(&mut self, low: u64, acknowledged: u64) -> u64 {
        self.acknowledged = self.acknowledged.min(acknowledged);
        if self.has_ended {
            return self.next;
        }
        self.next -= self.recent.forget_gap(self.next.saturating_sub(low));
        let is_missing = self.acknowledged.min(self.end) > self.next;
        if let Some(queue) = self.queue.as_mut().filter(|_| !is_missing) {
            queue.due = None;
            if queue.first().is_none() {
                self.queue = None;
            }
        }
        self.next
    }
}
