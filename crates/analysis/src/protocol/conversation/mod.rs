//! What two streams say, from their pieces to the calls of a session.
//!
//! The conversation keeps what a session did not consume, so that no session ever does. It finds
//! out the protocol, also anew where one protocol hands over to another, and it contains sessions
//! that fail.

mod beside;
mod detection;
mod handover;
mod opening;
mod reading;
mod within;

use std::panic::{AssertUnwindSafe, catch_unwind};

use netsniff_packet::Timestamp;

use self::detection::Detecting;
use super::list::{ProtocolId, ProtocolSet, Services};
use super::{
    Announcement, Counted, Findings, GapAction, MAX_ODDITIES, MissingBytes, Progress, Role,
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

#[cfg(test)]
mod tests;
