//! Bytes on their way to the session, and those that wait for more or for the other side.

use netsniff_packet::Timestamp;

use super::{Conversation, Outcome, Understanding};
use crate::protocol::{Bytes, Findings, Progress, Role, Session, SessionContext};

/// Bytes that may stay reserved for what is not consumed.
const SPARE: usize = 512;

/// How far a session read.
struct Read {
    taken: usize,
    is_handed_over: bool,
}

impl Conversation {
    /// Looks again at bytes of a side that waited for the other, and goes on with those that the
    /// other had left meanwhile.
    pub(super) fn wake(
        &mut self,
        time: Timestamp,
        mut from: Role,
        context: &SessionContext<'_>,
        found: &mut Findings,
    ) {
        loop {
            let unread = &mut self.unread[from.index()];
            let has_waited = core::mem::take(&mut unread.is_waiting);
            if !(core::mem::take(&mut unread.is_paused) || has_waited) {
                return;
            }
            let has_moved = self.read(time, from, &[], context, found);
            from = from.peer();
            if !has_moved && !self.unread[from.index()].is_paused {
                return;
            }
        }
    }

    /// Hands bytes to the session. Returns whether it took some.
    pub(super) fn bytes(
        &mut self,
        time: Timestamp,
        from: Role,
        mut bytes: &[u8],
        context: &SessionContext<'_>,
        found: &mut Findings,
    ) -> bool {
        let unread = &mut self.unread[from.index()];
        if unread.skip > 0 {
            let skipped = usize::try_from(unread.skip).unwrap_or(usize::MAX).min(bytes.len());
            unread.skip -= skipped as u64;
            self.said = self.said.saturating_add(skipped as u64);
            bytes = &bytes[skipped..];
            if bytes.is_empty() {
                return false;
            }
        }
        if unread.is_waiting || unread.bytes.len() + bytes.len() < unread.needed {
            unread.bytes.extend_from_slice(bytes);
            self.check_bound(from, context, found);
            return false;
        }
        self.read(time, from, bytes, context, found)
    }

    /// Lets the session read what waits, and `fresh` behind it. Returns whether it took some.
    fn read(
        &mut self,
        time: Timestamp,
        from: Role,
        fresh: &[u8],
        context: &SessionContext<'_>,
        found: &mut Findings,
    ) -> bool {
        let mut kept = core::mem::take(&mut self.unread[from.index()].bytes);
        let is_direct = kept.is_empty();
        let all = if is_direct {
            fresh
        } else {
            kept.extend_from_slice(fresh);
            kept.as_slice()
        };
        let read = self.read_all(time, from, all, context, found);
        if !matches!(self.stage, Understanding::Speaking(_)) || read.is_handed_over {
            return read.taken > 0;
        }
        let unread = &mut self.unread[from.index()];
        if is_direct {
            unread.bytes.extend_from_slice(&fresh[read.taken..]);
        } else {
            kept.drain(..read.taken);
            // Long messages are rare, and most conversations are long over.
            if kept.capacity() > 2 * kept.len() + SPARE {
                kept.shrink_to_fit();
            }
            unread.bytes = kept;
        }
        self.check_bound(from, context, found);
        read.taken > 0
    }

    fn read_all(
        &mut self,
        time: Timestamp,
        from: Role,
        all: &[u8],
        context: &SessionContext<'_>,
        found: &mut Findings,
    ) -> Read {
        let mut taken = 0;
        while taken < all.len() {
            let other_waits = self.unread[from.peer().index()].is_waiting;
            let step = |session: &mut dyn Session, found: &mut Findings| loop {
                let data = &all[taken..];
                match session.bytes(&Bytes { time, from, data }, found) {
                    Progress::Consumed(len)
                        if len < data.len() && !other_waits && found.is_silent() =>
                    {
                        taken += len.max(1);
                    }
                    progress => break progress,
                }
            };
            let progress = match self.call(found, step) {
                Outcome::Progress(progress) => progress,
                Outcome::Failed => break,
            };
            let data = &all[taken..];
            self.read_within(time, from, context, found);
            let unread = &mut self.unread[from.index()];
            unread.needed = 0;
            match progress {
                Progress::Consumed(len) => {
                    taken += len.clamp(1, data.len());
                    // What comes next may be the answer to what waits.
                    if self.unread[from.peer().index()].is_waiting {
                        self.unread[from.index()].is_paused = taken < all.len();
                        break;
                    }
                }
                Progress::Need(len) => {
                    unread.needed = len.max(data.len() + 1);
                    break;
                }
                Progress::Wait => {
                    unread.is_waiting = true;
                    break;
                }
                Progress::Skip(len) => {
                    let now = usize::try_from(len).unwrap_or(usize::MAX).min(data.len());
                    unread.skip = len - now as u64;
                    taken += now;
                }
                Progress::Handover(len) => {
                    taken += len.min(data.len());
                    self.hand_over(time, from, &all[taken..], context, found);
                    return Read { taken, is_handed_over: true };
                }
                Progress::Done => {
                    self.stop(found);
                    break;
                }
                Progress::Contradicts(name) => {
                    self.said = self.said.saturating_add(taken as u64);
                    self.contradict(name, found);
                    break;
                }
            }
        }
        self.said = self.said.saturating_add(taken as u64);
        Read { taken, is_handed_over: false }
    }
}
