//! What two streams say, from their pieces to the calls of a session.
//!
//! The conversation keeps what a session did not consume, so that no session ever does. It finds
//! out the protocol, also anew where one protocol hands over to another, and it contains sessions
//! that fail.

mod beside;
mod detection;
mod handover;
mod opening;
mod within;

use std::panic::{AssertUnwindSafe, catch_unwind};

use netsniff_packet::Timestamp;

use self::detection::Detecting;
use super::list::{ProtocolId, ProtocolSet, Services};
use super::{
    Announcement, Bytes, Counted, Findings, GapAction, MAX_ODDITIES, MissingBytes, Progress, Role,
    Session, SessionContext, SideEnd,
};
use crate::reassembly::stream::{GapCause, Piece};
use beside::Beside;
use within::Within;

/// A piece of one of the streams.
#[derive(Clone, Copy, Debug)]
pub struct Event<'a> {
    /// When it was seen, or became known to be next.
    pub time: Timestamp,
    /// Whose stream it is of.
    pub from: Role,
    /// Bytes, a gap or the end.
    pub piece: Piece<'a>,
}

/// Bytes that may stay reserved for what is not consumed.
const SPARE: usize = 512;

/// Bytes of both sides behind which a protocol that was spoken all the while is told, although something
/// contradicts it (`DPD::ignore_violations_after`).
const CONTRADICTED_WITHIN: u64 = 10 << 10;

/// Two streams and what is made of them.
#[derive(Debug)]
pub struct Conversation {
    wanted: ProtocolSet,
    stage: Understanding,
    /// What was not consumed, of either side.
    unread: [Unread; 2],
    services: Services,
    handovers: u8,
    /// Bytes that sessions took, of both sides.
    said: u64,
    /// How far the sessions so far have counted.
    counted: Counted,
    /// Another reading of the same bytes.
    beside: Option<Beside>,
    /// What the messages carry.
    within: Within,
    /// How many more oddities it may show.
    oddities: u8,
    /// The responder of the connection is the originator of what is said.
    is_turned: bool,
}

/// How far the conversation is understood.
#[derive(Debug)]
enum Understanding {
    /// Its protocol is not known yet.
    Detecting(Detecting),
    /// Its protocol is known.
    Speaking(Speaker),
    /// It is of no interest any more.
    Over,
}

/// A session in progress.
#[derive(Debug)]
struct Speaker {
    id: ProtocolId,
    session: Box<dyn Session>,
    is_confirmed: bool,
}

/// Bytes of one side that wait.
#[derive(Debug, Default)]
struct Unread {
    bytes: Vec<u8>,
    /// How many there must be before the session looks again.
    needed: usize,
    /// Whether the other side must speak before the session looks again.
    is_waiting: bool,
    /// Whether they were left only because the other side was to be looked at first, which waited.
    is_paused: bool,
    /// How many of those to come are of no interest.
    skip: u64,
    has_ended: bool,
}

/// What a call came to.
enum Outcome {
    Progress(Progress),
    Failed,
}

impl Conversation {
    /// Two streams of which nothing was seen yet, in one of the protocols that are wanted.
    #[must_use]
    pub fn new(wanted: ProtocolSet) -> Self {
        Self {
            wanted,
            stage: Understanding::Detecting(Detecting::default()),
            unread: Default::default(),
            services: Services::default(),
            handovers: 0,
            said: 0,
            counted: Counted::default(),
            beside: None,
            within: Within::default(),
            oddities: MAX_ODDITIES,
            is_turned: false,
        }
    }

    /// Two streams that another session announced.
    #[must_use]
    pub fn announced(
        announced: Announcement,
        wanted: ProtocolSet,
        context: &SessionContext<'_>,
    ) -> Self {
        let Some(id) = ProtocolId::named(announced.protocol) else { return Self::new(wanted) };
        let session = id.protocol().errand(context, announced.errand);
        let is_confirmed = session.is_confirmed();
        let mut services = Services::default();
        if is_confirmed {
            services.add(id);
        }
        let stage = Understanding::Speaking(Speaker { id, session, is_confirmed });
        Self { stage, services, ..Self::new(wanted) }
    }

    /// The protocols that were found.
    #[must_use]
    pub const fn services(&self) -> &Services {
        &self.services
    }

    /// Whether nothing more is of interest.
    #[must_use]
    #[inline]
    pub const fn is_over(&self) -> bool {
        matches!(self.stage, Understanding::Over) && self.beside.is_none()
    }

    /// Bytes that it holds outside itself.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        let stage = match &self.stage {
            Understanding::Detecting(detecting) => detecting.heap_bytes(),
            Understanding::Speaking(speaker) => speaker.session.heap_bytes(),
            Understanding::Over => 0,
        };
        stage
            + self.unread.iter().map(|unread| unread.bytes.capacity()).sum::<usize>()
            + self.beside.as_ref().map_or(0, Beside::heap_bytes)
            + self.within.heap_bytes()
    }

    /// Whether what is said has shown that the responder is the client.
    #[must_use]
    #[inline]
    pub const fn is_turned(&self) -> bool {
        self.is_turned
    }

    /// Takes the next piece of one of the streams.
    #[inline]
    pub fn take(&mut self, event: &Event<'_>, context: &SessionContext<'_>, found: &mut Findings) {
        if self.is_turned {
            let event = Event { from: event.from.peer(), ..*event };
            return self.take_piece(&event, &context.turned(), found);
        }
        self.take_piece(event, context, found);
    }

    #[inline]
    fn take_piece(
        &mut self,
        event: &Event<'_>,
        context: &SessionContext<'_>,
        found: &mut Findings,
    ) {
        if self.beside.is_some() {
            self.read_beside(event, context, found);
        }
        match &mut self.stage {
            Understanding::Speaking(_) => self.speak(event, context, found),
            Understanding::Detecting(detecting) if detecting.is_empty() => {
                self.begin(event, context, found);
            }
            Understanding::Detecting(_) => self.detect(event, context, found),
            Understanding::Over => {}
        }
    }

    /// Ends the conversation: what its sessions still hold is reported.
    pub fn finish(&mut self, found: &mut Findings) {
        self.stop(found);
        if let Some(beside) = self.beside.take() {
            beside.finish(found);
        }
    }

    /// Ends the session, behind which nothing of it is of interest.
    fn stop(&mut self, found: &mut Findings) {
        self.end_session(found);
        self.stage = Understanding::Over;
        self.unread = Default::default();
    }

    fn speak(&mut self, event: &Event<'_>, context: &SessionContext<'_>, found: &mut Findings) {
        let Event { time, from, piece } = *event;
        let has_moved = match piece {
            Piece::Bytes(bytes) => self.bytes(time, from, bytes, context, found),
            Piece::Gap(len, cause) => self.gap(event, len, cause, context, found),
            Piece::End => self.side_end(time, from, context, found),
        };
        if has_moved {
            self.wake(time, from.peer(), context, found);
        }
    }

    /// Looks again at bytes of a side that waited for the other, and goes on with those that the
    /// other had left meanwhile.
    fn wake(
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
    fn bytes(
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

    /// Lets go of a session whose protocol this is not.
    fn contradict(&mut self, name: &'static str, found: &mut Findings) {
        if let Understanding::Speaking(speaker) = &self.stage {
            if self.said <= CONTRADICTED_WITHIN {
                self.services.remove(speaker.id);
            }
            found.weirds.add(name);
            found.attribute(speaker.id.protocol().analyzer(), &mut self.oddities);
        }
        self.stop(found);
    }

    /// Tells the session of a gap, unless it lies where nothing is of interest.
    fn gap(
        &mut self,
        event: &Event<'_>,
        len: u64,
        cause: GapCause,
        context: &SessionContext<'_>,
        found: &mut Findings,
    ) -> bool {
        let Event { time, from, .. } = *event;
        let unread = &mut self.unread[from.index()];
        let skipped = unread.skip.min(len);
        unread.skip -= skipped;
        let len = len - skipped;
        if len == 0 {
            return false;
        }
        let kept = core::mem::take(&mut unread.bytes);
        (unread.needed, unread.is_waiting) = (0, false);
        let gap = MissingBytes { time, from, unread: &kept, len, cause };
        let mut onward = GapAction::Abort;
        self.call(found, |session, found| {
            onward = session.gap(&gap, found);
            Progress::Wait
        });
        self.read_within(time, from, context, found);
        if onward == GapAction::Abort {
            self.stop(found);
        }
        true
    }

    fn side_end(
        &mut self,
        time: Timestamp,
        from: Role,
        context: &SessionContext<'_>,
        found: &mut Findings,
    ) -> bool {
        let unread = &mut self.unread[from.index()];
        unread.has_ended = true;
        let kept = core::mem::take(&mut unread.bytes);
        (unread.needed, unread.is_waiting) = (0, false);
        let end = SideEnd { time, from, unread: &kept };
        let outcome = self.call(found, |session, found| {
            session.side_end(&end, found);
            session.contradiction().map_or(Progress::Wait, Progress::Contradicts)
        });
        self.end_side_within(time, from, context, found);
        if let Outcome::Progress(Progress::Contradicts(name)) = outcome {
            self.contradict(name, found);
        }
        true
    }

    fn end_session(&mut self, found: &mut Findings) {
        self.finish_within(found);
        self.call(found, |session, found| {
            session.end(found);
            Progress::Wait
        });
    }

    /// Calls the session, which may be asked several times at once as long as nobody else has to look at what it
    /// came to. One that panics is dropped, and counted.
    #[inline]
    fn call(
        &mut self,
        found: &mut Findings,
        call: impl FnOnce(&mut dyn Session, &mut Findings) -> Progress,
    ) -> Outcome {
        let Understanding::Speaking(speaker) = &mut self.stage else { return Outcome::Failed };
        let session = &mut *speaker.session;
        found.carried.is_wanted = self.within.is_wanted();
        let result = catch_unwind(AssertUnwindSafe(|| call(session, &mut *found)));
        found.attribute(speaker.id.protocol().analyzer(), &mut self.oddities);
        if !speaker.is_confirmed && result.is_ok() && speaker.session.is_confirmed() {
            speaker.is_confirmed = true;
            self.services.add(speaker.id);
        }
        match result {
            Ok(progress) => Outcome::Progress(progress),
            Err(_) => {
                found.panics += 1;
                self.stage = Understanding::Over;
                self.unread = Default::default();
                Outcome::Failed
            }
        }
    }

    /// Lets go of a session that needs more than it may have.
    fn check_bound(&mut self, from: Role, context: &SessionContext<'_>, found: &mut Findings) {
        let unread = &self.unread[from.index()];
        let max = context.limits.session_bytes;
        if unread.bytes.len() > max || unread.needed > max {
            self.contradict("session_needs_too_much", found);
        }
    }
}

/// How far a session read.
struct Read {
    taken: usize,
    is_handed_over: bool,
}

#[cfg(test)]
mod tests;
