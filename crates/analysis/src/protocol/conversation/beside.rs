//! Another reading of streams that a port suggests: whatever begins on it as the protocol of that port may
//! begin is read as that too, beside what it is found to be. Zeek hands the streams of a known port to its
//! protocol, and looks for others at the same time.

use memchr::memchr2;

use super::{Conversation, Event, Understanding};
use crate::protocol::list::ProtocolId;
use crate::protocol::session::findings::Findings;
use crate::protocol::session::{Role, SessionContext};
use crate::protocol::{Detection, Protocol};
use crate::reassembly::stream::Piece;

/// A reading beside the one that was found.
#[derive(Debug)]
pub(super) enum Beside {
    /// The originator's first line, as far as it came.
    Line(ProtocolId, Vec<u8>),
    /// A protocol reads it.
    Reading(Box<Conversation>),
}

impl Beside {
    /// Bytes that it holds outside itself.
    pub(super) fn heap_bytes(&self) -> usize {
        match self {
            Self::Line(_, line) => line.capacity(),
            Self::Reading(reading) => size_of::<Conversation>() + reading.heap_bytes(),
        }
    }

    pub(super) fn finish(self, found: &mut Findings) {
        if let Self::Reading(mut reading) = self {
            reading.finish(found);
        }
    }
}

/// Whether the first line of `head` is one by which a protocol may begin.
fn begins(protocol: &dyn Protocol, head: &[u8], longest: usize) -> Detection {
    let blank = head.iter().take_while(|&&byte| matches!(byte, b'\r' | b'\n')).count();
    let rest = head.get(blank..).unwrap_or_default();
    if rest.first().is_some_and(|byte| !byte.is_ascii_graphic()) {
        return Detection::No;
    }
    match memchr2(b'\r', b'\n', rest).and_then(|end| rest.get(..end)) {
        Some(line) if protocol.begins_by_port(line) => Detection::Yes,
        None if head.len() < longest => Detection::Undecided,
        Some(_) | None => Detection::No,
    }
}

impl Conversation {
    /// Looks for the protocol of the port, now that the content is known to be `found`, or nothing that is
    /// known.
    pub(super) fn look_beside(&mut self, found: Option<ProtocolId>, context: &SessionContext<'_>) {
        if self.handovers > 0 || context.is_midstream {
            return;
        }
        let of_port = |id: &ProtocolId| id.protocol().tcp_ports().contains(&context.port);
        let id = self.wanted.iter().find(of_port).filter(|id| Some(*id) != found);
        self.beside = id.map(|id| Beside::Line(id, Vec::new()));
    }

    /// Lets the other reading have a piece.
    pub(super) fn read_beside(
        &mut self,
        event: &Event<'_>,
        context: &SessionContext<'_>,
        found: &mut Findings,
    ) {
        self.beside = match self.beside.take() {
            Some(Beside::Line(id, line)) => self.begin_beside(id, line, event, context, found),
            Some(Beside::Reading(reading)) => self.go_on_beside(reading, event, context, found),
            None => None,
        };
    }

    /// Begins once the originator's first line is one by which the protocol may begin.
    fn begin_beside(
        &mut self,
        id: ProtocolId,
        mut line: Vec<u8>,
        event: &Event<'_>,
        context: &SessionContext<'_>,
        found: &mut Findings,
    ) -> Option<Beside> {
        // Who answers before the first line is complete speaks another protocol.
        let (Role::Originator, Piece::Bytes(bytes)) = (event.from, event.piece) else {
            return None;
        };
        line.extend_from_slice(bytes);
        match begins(id.protocol(), &line, context.limits.detection_bytes) {
            Detection::No => None,
            Detection::Undecided => Some(Beside::Line(id, line)),
            Detection::Yes => {
                let stage = Understanding::begin(id, self.counted, context);
                let reading = Box::new(Self { stage, ..Self::new(self.wanted) });
                let event = Event { piece: Piece::Bytes(&line), ..*event };
                self.go_on_beside(reading, &event, context, found)
            }
        }
    }

    fn go_on_beside(
        &mut self,
        mut reading: Box<Self>,
        event: &Event<'_>,
        context: &SessionContext<'_>,
        found: &mut Findings,
    ) -> Option<Beside> {
        let before = reading.services;
        reading.take(event, context, found);
        self.services.follow(before, reading.services);
        (!reading.is_over()).then_some(Beside::Reading(reading))
    }
}
