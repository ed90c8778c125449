//! Both streams of a connection: requests and responses as they come.

mod asked;
mod dated;
mod header;
mod resume;

use std::collections::VecDeque;

use netsniff_packet::Timestamp;

use super::ambiguity;
use super::body::{Files, Sink};
use super::exchange::is_informational;
use super::exchanges::Exchanges;
use super::framing::Expected;
use super::line::{self, Folded, Next};
use super::message::{Consumed, HttpMessage};
use super::start_line::{self, StatusLine, Version};
use crate::log::tunnel::TunnelType;
use crate::protocol::socks::proxies::Proxied;
use crate::protocol::syntax::line::Line;
use crate::protocol::websocket::Handshake;
use crate::protocol::{
    Bytes, Counted, Findings, GapAction, MissingBytes, Progress, Role, Session, SessionContext,
    SideEnd, Successor,
};
use crate::weird::Detail;
use asked::Asked;
use dated::Dated;

/// Bytes of a connection after which what contradicts HTTP no longer takes back that it was HTTP
/// (`Analyzer::ignore_violations_after`).
const SURE_AFTER: u64 = 10 << 10;

/// Requests without a response of which it is known whether they are HEAD. Of more, the response to
/// one is hardly found anyway.
const MAX_UNANSWERED: usize = 1_024;

/// Both streams of a connection that speaks HTTP/1.
#[derive(Debug)]
pub(super) struct HttpSession {
    sides: [HttpStream; 2],
    exchanges: Exchanges,
    files: Files,
    versions: [Version; 2],
    /// The requests without a response.
    unanswered: VecDeque<Asked>,
    has_requests: bool,
    is_kept_alive: bool,
    /// Whether a CONNECT waits for its response.
    wants_tunnel: bool,
    /// Whether a CONNECT was refused, and no request was read since.
    is_refused: bool,
    /// Status of the response in progress.
    code: u16,
    upgrade: Upgrade,
    /// When the first response was made, up to the end of its header; `None` behind that.
    dated: Option<Dated>,
    handshake: Option<Box<Handshake>>,
    is_confirmed: bool,
    /// Whether it was told that there are blank lines between requests.
    is_blank_told: bool,
    /// Number of the first request since the server spoke.
    turn: u64,
    /// Whether the server spoke since the last request.
    has_answered: bool,
    /// What shows that this never was HTTP, among the last bytes of a side.
    contradiction: Option<&'static str>,
    /// Bytes that were taken.
    taken: u64,
    /// Bytes of header fields that one message may have kept.
    header_room: usize,
    last: Timestamp,
}

/// What a response tells of the protocol that will follow.
#[derive(Debug, Default)]
struct Upgrade {
    is_announced: bool,
    protocol: Option<Box<[u8]>>,
    is_done: bool,
}

/// One of both streams.
#[derive(Debug)]
struct HttpStream {
    stage: StreamStage,
    /// Bytes of the header of the message in progress.
    header_bytes: usize,
    /// The header field that may go on.
    folded: Option<Folded>,
    /// Of the bytes that come again, how many have no end of a line.
    scanned: usize,
}

#[derive(Debug)]
enum StreamStage {
    /// A start line comes.
    StartLine,
    /// A message is in progress.
    Message(Box<HttpMessage>),
    /// A body of version 0.9 comes, which has no header.
    Bare,
    /// What comes cannot be understood until a message begins, because of a loss. The other side may have
    /// spoken since.
    Lost { is_turn: bool },
    /// What comes cannot be understood.
    Nothing,
}

impl HttpStream {
    const fn at(stage: StreamStage) -> Self {
        Self { stage, header_bytes: 0, folded: None, scanned: 0 }
    }

    /// Whether bytes of a body come, or what is between them.
    fn is_in_body(&self) -> bool {
        match &self.stage {
            StreamStage::Message(message) => !message.is_in_header(),
            StreamStage::Bare => true,
            StreamStage::StartLine | StreamStage::Lost { .. } | StreamStage::Nothing => false,
        }
    }
}

impl HttpSession {
    pub(super) fn new(context: &SessionContext<'_>) -> Self {
        let side = || HttpStream::at(StreamStage::StartLine);
        Self {
            sides: [side(), side()],
            exchanges: Exchanges::new(context.limits),
            files: Files::new(context),
            versions: Default::default(),
            unanswered: VecDeque::new(),
            has_requests: false,
            is_kept_alive: false,
            wants_tunnel: false,
            is_refused: false,
            code: 0,
            upgrade: Upgrade::default(),
            dated: Some(Dated::default()),
            handshake: None,
            is_confirmed: false,
            is_blank_told: false,
            turn: 0,
            has_answered: false,
            contradiction: None,
            taken: 0,
            header_room: context.limits.http_header_bytes,
            last: Timestamp::EPOCH,
        }
    }

    /// Takes what stands first in the bytes.
    fn step(&mut self, input: &Bytes<'_>, next: Next, found: &mut Findings) -> Progress {
        self.last = input.time;
        self.note_turn(input.from);
        let is_body = self.sides[input.from.index()].is_in_body();
        let progress = match &self.sides[input.from.index()].stage {
            StreamStage::StartLine if input.from == Role::Originator => {
                self.request_line(input, next, found)
            }
            StreamStage::StartLine => self.status_line(input, next, found),
            StreamStage::Message(message) if message.is_in_header() => {
                self.header(input, next, found)
            }
            StreamStage::Message(_) => self.body(input, next, found),
            StreamStage::Bare => self.bare_response(input, found),
            StreamStage::Lost { .. } => self.resume(input, next, found),
            StreamStage::Nothing => Progress::Skip(u64::MAX),
        };
        if let Progress::Consumed(len) | Progress::Handover(len) = progress {
            self.sides[input.from.index()].scanned = 0;
            self.taken = self.taken.saturating_add(len as u64);
            if !is_body {
                self.files.budget.carry(len as u64);
            }
        }
        progress
    }

    /// The first line of the bytes.
    fn line<'a>(
        &mut self,
        input: &Bytes<'a>,
        next: Next,
        found: &mut Findings,
    ) -> Result<Line<'a>, Progress> {
        let side = &mut self.sides[input.from.index()];
        let Some(line) = line::line(input.data, side.scanned, next) else {
            side.scanned = line::scanned(input.data);
            return Err(Progress::Need(input.data.len() + 1));
        };
        if line::is_cut(&line) {
            found.weirds.add("contentline_size_exceeded");
        }
        ambiguity::of_line(input.data, &line, &mut found.weirds);
        Ok(line)
    }

    fn request_line(&mut self, input: &Bytes<'_>, next: Next, found: &mut Findings) -> Progress {
        if self.wants_tunnel && next == Next::Open {
            // What follows a CONNECT may already be for the tunnel.
            return Progress::Wait;
        }
        let line = match self.line(input, next, found) {
            Ok(line) => line,
            Err(progress) => return progress,
        };
        self.is_refused = false;
        match start_line::request(line.text, &mut found.weirds) {
            Ok(request) => self.request(request, input.time, found),
            // A client that does not keep the connection alive may send anything behind its request.
            Err(name) if self.has_requests && !self.is_kept_alive => found.weirds.add(name),
            Err(_) if line.text.is_empty() => {
                // Servers skip any number of them (RFC 9112, 2.2).
                if !core::mem::replace(&mut self.is_blank_told, true) {
                    found.weirds.add("empty_http_request");
                }
            }
            Err(name) => {
                self.sides[Role::Originator.index()].stage = StreamStage::Nothing;
                if self.is_contradicted() {
                    return Progress::Contradicts(name);
                }
                found.weirds.add(name);
            }
        }
        Progress::Consumed(line.len)
    }

    fn request(
        &mut self,
        request: start_line::RequestLine<'_>,
        time: Timestamp,
        found: &mut Findings,
    ) {
        if let Some(version) = request.version {
            self.set_version(Role::Originator, version, found);
        }
        if self.has_requests && !self.is_kept_alive {
            found.weirds.add("unexpected_multiple_HTTP_requests");
        }
        (self.has_requests, self.is_confirmed) = (true, true);
        if self.unanswered.len() >= MAX_UNANSWERED {
            self.unanswered.pop_front();
        }
        self.handshake = None;
        let asked = Asked::by(request.method);
        self.unanswered.push_back(asked);
        self.wants_tunnel |= asked == Asked::Connect;
        if request.version == Some(Version::V0_9) {
            if request.method != b"GET" {
                let method = Detail::word(request.method);
                found.weirds.add_with("invalid_http_09_request_method", method);
            }
            if matches!(self.sides[Role::Responder.index()].stage, StreamStage::Message(_)) {
                found.weirds.add("http_09_reply_before_request");
                self.end_message(Role::Responder, time, found);
            }
            self.sides[Role::Responder.index()].stage = StreamStage::Bare;
        }
        self.exchanges.request(request, time, found);
        if core::mem::take(&mut self.has_answered) || self.turn == 0 {
            self.turn = self.exchanges.asked();
        }
        self.begin_message(Role::Originator, Expected::IfTold);
    }

    fn status_line(&mut self, input: &Bytes<'_>, next: Next, found: &mut Findings) -> Progress {
        if self.is_refused && next == Next::Open {
            // The client's next request may be waiting, and comes before its response.
            return Progress::Wait;
        }
        let line = match self.line(input, next, found) {
            Ok(line) => line,
            Err(progress) => return progress,
        };
        if let Some(status) = start_line::status(line.text, &mut found.weirds) {
            self.set_version(Role::Responder, status.version, found);
            self.is_confirmed |= !self.unanswered.is_empty();
            let is_about_tunnel = self.is_about_tunnel();
            self.is_refused = is_about_tunnel && status.code != 200;
            self.wants_tunnel &= !self.is_refused;
            if is_about_tunnel && self.wants_tunnel {
                let seen = Proxied { time: input.time, kind: TunnelType::Http };
                found.fact(seen);
            }
            self.response(&status, input.time);
        } else if !line.text.is_empty() {
            self.sides[Role::Responder.index()].stage = StreamStage::Nothing;
            if self.is_contradicted() {
                return Progress::Contradicts("bad_HTTP_reply");
            }
        }
        Progress::Consumed(line.len)
    }

    /// Whether the response that comes tells what becomes of a CONNECT: those to requests before it do not.
    fn is_about_tunnel(&self) -> bool {
        self.wants_tunnel && self.unanswered.front().is_none_or(|asked| *asked == Asked::Connect)
    }

    fn response(&mut self, status: &StatusLine<'_>, time: Timestamp) {
        self.code = status.code;
        self.exchanges.response(status, time);
        // RFC 9112, section 6.3.
        let is_bare = matches!(status.code, 100..=199 | 204 | 304);
        let is_to_head = self.unanswered.front() == Some(&Asked::Head);
        let expected = if is_bare || is_to_head { Expected::Never } else { Expected::Always };
        self.begin_message(Role::Responder, expected);
    }

    /// A body that follows a request of version 0.9 directly.
    fn bare_response(&mut self, input: &Bytes<'_>, found: &mut Findings) -> Progress {
        self.set_version(Role::Responder, Version::V0_9, found);
        self.is_confirmed |= self.unanswered.pop_front().is_some();
        self.response(&StatusLine { version: Version::V0_9, code: 0, reason: None }, input.time);
        if let StreamStage::Message(message) = &mut self.sides[Role::Responder.index()].stage {
            message.end_header(false, &mut found.weirds);
        }
        self.body(input, Next::Open, found)
    }

    fn body(&mut self, input: &Bytes<'_>, next: Next, found: &mut Findings) -> Progress {
        let Self { sides, exchanges, files, .. } = self;
        let HttpStream { stage, scanned, .. } = &mut sides[input.from.index()];
        let StreamStage::Message(message) = stage else {
            return Progress::Skip(u64::MAX);
        };
        let Bytes { time, from, data } = *input;
        let mut sink = Sink { time, from, exchanges, files, found };
        match message.bytes(data, *scanned, next, &mut sink) {
            Consumed::None => {
                *scanned = line::scanned(data);
                Progress::Need(data.len() + 1)
            }
            Consumed::Some(len) => Progress::Consumed(len),
            Consumed::Last(len) => {
                self.end_message(from, time, found);
                Progress::Consumed(len)
            }
        }
    }

    fn begin_message(&mut self, from: Role, expected: Expected) {
        let message = Box::new(HttpMessage::begun(expected));
        self.sides[from.index()] = HttpStream::at(StreamStage::Message(message));
    }

    /// Ends the message of a side that is in progress, complete or not.
    fn end_message(&mut self, from: Role, time: Timestamp, found: &mut Findings) {
        let Self { sides, exchanges, files, .. } = self;
        let stage = core::mem::replace(&mut sides[from.index()].stage, StreamStage::StartLine);
        let StreamStage::Message(message) = stage else {
            sides[from.index()].stage = stage;
            return;
        };
        let len = message.end(&mut Sink { time, from, exchanges, files, found });
        self.exchanges.message_ends(from, time, len, found);
        if from == Role::Responder {
            self.response_ends();
        }
    }

    fn response_ends(&mut self) {
        let code = core::mem::take(&mut self.code);
        if !is_informational(code) {
            self.unanswered.pop_front();
        }
        let upgrade = core::mem::take(&mut self.upgrade);
        let is_done = code == 101 && self.unanswered.len() == 1 && upgrade.is_announced;
        if is_done && upgrade.protocol.is_some() {
            self.upgrade = Upgrade { is_done, ..upgrade };
        }
    }

    /// Ends the message of a side behind which nothing can be understood.
    fn interrupt(&mut self, from: Role, time: Timestamp, found: &mut Findings) {
        if matches!(self.sides[from.index()].stage, StreamStage::Message(_)) {
            self.end_message(from, time, found);
            self.sides[from.index()].stage = StreamStage::Nothing;
        }
    }

    fn set_version(&mut self, from: Role, version: Version, found: &mut Findings) {
        let known = &mut self.versions[from.index()];
        if *known != Version::default() && *known != version {
            found.weirds.add("HTTP_version_mismatch");
        }
        *known = version;
        self.is_kept_alive |= version.keeps_alive();
    }

    /// Whether what is no HTTP shows that this never was HTTP.
    const fn is_contradicted(&self) -> bool {
        self.is_confirmed && self.taken <= SURE_AFTER
    }

    /// Reads what was left, of which nothing more comes directly behind.
    fn read_rest(&mut self, mut input: Bytes<'_>, next: Next, found: &mut Findings) {
        while !input.data.is_empty() {
            let len = match self.step(&input, next, found) {
                Progress::Consumed(len) | Progress::Handover(len) => len,
                Progress::Contradicts(name) => {
                    self.contradiction = Some(name).filter(|_| next == Next::Nothing);
                    break;
                }
                _ => break,
            };
            input.data = input.data.get(len..).unwrap_or_default();
        }
        self.end_field(&input, found);
    }
}

impl Session for HttpSession {
    fn bytes(&mut self, input: &Bytes<'_>, found: &mut Findings) -> Progress {
        self.step(input, Next::Open, found)
    }

    fn gap(&mut self, gap: &MissingBytes<'_>, found: &mut Findings) -> GapAction {
        let MissingBytes { time, from, unread, .. } = *gap;
        self.read_rest(Bytes { time, from, data: unread }, Next::Missing, found);
        self.last = time;
        self.take_gap(gap, found);
        GapAction::Continue
    }

    fn side_end(&mut self, end: &SideEnd<'_>, found: &mut Findings) {
        let SideEnd { time, from, unread } = *end;
        self.read_rest(Bytes { time, from, data: unread }, Next::Nothing, found);
        self.last = time;
        self.end_message(from, time, found);
    }

    fn contradiction(&self) -> Option<&'static str> {
        self.contradiction
    }

    fn counted(&self) -> Counted {
        Counted { exchanges: self.exchanges.depth(), files: self.files.count() }
    }

    fn count_on(&mut self, counted: Counted) {
        self.exchanges.count_on(counted.exchanges);
        self.files.count_on(counted.files);
    }

    fn end(&mut self, found: &mut Findings) {
        self.end_message(Role::Originator, self.last, found);
        self.end_message(Role::Responder, self.last, found);
        self.exchanges.end(found);
        self.files.end(found);
    }

    /// After the upgrade to WebSocket that goes on; of other protocols the bytes must tell.
    fn successor(&mut self) -> Option<Successor> {
        let protocol = self.upgrade.protocol.take().filter(|_| self.upgrade.is_done)?;
        let is_websocket = protocol.eq_ignore_ascii_case(b"websocket");
        let handshake = self.handshake.take().filter(|_| is_websocket).unwrap_or_default();
        is_websocket.then(|| {
            let target = self.exchanges.current(Role::Responder).map(|exchange| exchange.target());
            handshake.completed(self.last, target.unwrap_or_default())
        })
    }

    fn is_confirmed(&self) -> bool {
        self.is_confirmed
    }

    fn heap_bytes(&self) -> usize {
        let messages = self.sides.iter().map(|side| match &side.stage {
            StreamStage::Message(message) => size_of::<HttpMessage>() + message.heap_bytes(),
            _ => 0,
        });
        let folded = self.sides.iter().filter_map(|side| side.folded.as_ref());
        size_of::<Self>()
            + messages.sum::<usize>()
            + folded.map(|field| field.text.capacity()).sum::<usize>()
            + self.exchanges.bytes()
            + self.files.heap_bytes()
            + self.unanswered.capacity() * size_of::<Asked>()
            + self.handshake.as_ref().map_or(0, |handshake| handshake.bytes())
    }
}
