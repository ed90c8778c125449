//! Frames, RFC 6455 section 5: counted, and what those with data carry handed on.

use netsniff_packet::Timestamp;

use super::frame::{Frame, FrameHeader};
use crate::log;
use crate::protocol::{
    Bytes, Connection, Findings, Gap, Onward, Progress, ProtocolRecord, Role, Session,
};
use crate::record::Port;
use crate::weird::Detail;

/// Bytes that a control frame may carry (RFC 6455, 5.5), above which Zeek tells it.
const MAX_CONTROL: u64 = 125;

/// A connection that became a WebSocket.
#[derive(Debug, Default)]
pub(super) struct WebSocketSession {
    talk: Option<Box<Talk>>,
    /// The frame that each side is at.
    frames: [Frame; 2],
    /// Whether nobody can follow what the frames carry: some of it is missing, or is compressed.
    is_opaque: bool,
    oddities: Vec<&'static str>,
    is_confirmed: bool,
}

/// What the upgrade told.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) time: Timestamp,
    pub(super) host: Option<Box<[u8]>>,
    pub(super) uri: Option<Box<[u8]>>,
    pub(super) user_agent: Option<Box<[u8]>>,
    pub(super) subprotocol: Option<Box<[u8]>>,
    pub(super) client_protocols: Vec<Box<[u8]>>,
    pub(super) server_extensions: Vec<Box<[u8]>>,
    pub(super) client_extensions: Vec<Box<[u8]>>,
}

/// A WebSocket: a row of the log.
#[derive(Debug)]
pub struct Talk {
    opened: Opened,
    /// Frames and their bytes, of each side; `None` where some are missing.
    frames: [Option<Frames>; 2],
}

#[derive(Clone, Copy, Debug, Default)]
struct Frames {
    count: u64,
    bytes: u64,
}

impl Default for Opened {
    fn default() -> Self {
        Self {
            time: Timestamp::EPOCH,
            host: None,
            uri: None,
            user_agent: None,
            subprotocol: None,
            client_protocols: Vec::new(),
            server_extensions: Vec::new(),
            client_extensions: Vec::new(),
        }
    }
}

impl Opened {
    /// Bytes that it holds outside itself.
    pub(super) fn heap_bytes(&self) -> usize {
        let lists = [&self.client_protocols, &self.server_extensions, &self.client_extensions];
        let texts = [&self.host, &self.uri, &self.user_agent, &self.subprotocol];
        let texts = texts.into_iter().flatten().chain(lists.into_iter().flatten());
        texts.map(|text| text.len() + size_of::<Box<[u8]>>()).sum()
    }
}

impl WebSocketSession {
    /// A WebSocket that was just opened, with what was odd about that.
    pub(super) fn new(opened: Opened, oddities: Vec<&'static str>) -> Self {
        let talk = Talk { opened, frames: [Some(Frames::default()); 2] };
        Self { talk: Some(Box::new(talk)), oddities, ..Self::default() }
    }
}

impl WebSocketSession {
    /// Takes bytes of the frame that a side is at.
    fn payload(&mut self, input: &Bytes<'_>, found: &mut Findings) -> Progress {
        let frame = &mut self.frames[input.from.index()];
        let carried = &mut found.carried;
        if self.is_opaque || !frame.has_data() || !carried.is_wanted {
            return Progress::Skip(frame.skip());
        }
        Progress::Consumed(frame.unmask(input.data, &mut carried.bytes))
    }
}

impl Session for WebSocketSession {
    fn bytes(&mut self, input: &Bytes<'_>, found: &mut Findings) -> Progress {
        self.oddities.drain(..).for_each(|name| found.weirds.add(name));
        let frames = self.talk.as_mut().and_then(|talk| talk.frames[input.from.index()].as_mut());
        let Some(frames) = frames else { return Progress::Skip(u64::MAX) };
        if self.frames[input.from.index()].is_open() {
            return self.payload(input, found);
        }
        let header = match FrameHeader::parse(input.data) {
            Ok(header) => header,
            Err(Some(len)) => return Progress::Need(len),
            Err(None) => return Progress::Contradicts("websocket_bad_frame"),
        };
        self.is_confirmed = true;
        frames.count = frames.count.saturating_add(1);
        frames.bytes = frames.bytes.saturating_add(header.payload);
        if header.is_control() && header.payload > MAX_CONTROL {
            let sizes = format!("{} > {MAX_CONTROL}", header.payload);
            let sizes = Detail::word(sizes.as_bytes());
            found.weirds.add_with("websocket_control_frame_size_exceeded", sizes);
        }
        self.frames[input.from.index()].begin(&header);
        self.is_opaque |= header.is_compressed;
        Progress::Consumed(header.len)
    }

    /// Behind a gap that reaches over a frame's end nobody knows where one begins.
    fn gap(&mut self, gap: &Gap<'_>, found: &mut Findings) -> Onward {
        let frame = &mut self.frames[gap.from.index()];
        let missing = frame.miss(gap.len);
        if !self.is_opaque && frame.has_data() {
            found.carried.missing = missing;
        }
        if missing == gap.len {
            return Onward::Continue;
        }
        self.is_opaque = true;
        if let Some(talk) = &mut self.talk {
            talk.frames[gap.from.index()] = None;
            if talk.frames.iter().all(Option::is_none) {
                return Onward::LetGo;
            }
        }
        Onward::Continue
    }

    fn end(&mut self, found: &mut Findings) {
        self.oddities.drain(..).for_each(|name| found.weirds.add(name));
        found.records.extend(self.talk.take().map(ProtocolRecord::WebSocket));
    }

    fn is_confirmed(&self) -> bool {
        self.is_confirmed
    }

    fn heap_bytes(&self) -> usize {
        let talk = self.talk.as_ref();
        size_of::<Self>()
            + self.oddities.capacity() * size_of::<&str>()
            + talk.map_or(0, |talk| size_of::<Talk>() + talk.opened.heap_bytes())
    }
}

impl Talk {
    /// Hands the row of the log to `take`.
    pub fn report<T>(
        &self,
        connection: &Connection,
        take: impl FnOnce(&log::WebSocket<'_>) -> T,
    ) -> T {
        let opened = &self.opened;
        let [sent, received] = [Role::Originator, Role::Responder].map(|r| self.frames[r.index()]);
        take(&log::WebSocket {
            ts: opened.time,
            uid: connection.uid,
            id_orig_h: connection.originator.address,
            id_orig_p: Port(connection.originator.port),
            id_resp_h: connection.responder.address,
            id_resp_p: Port(connection.responder.port),
            host: opened.host.as_deref(),
            uri: opened.uri.as_deref(),
            user_agent: opened.user_agent.as_deref(),
            subprotocol: opened.subprotocol.as_deref(),
            client_protocols: some(&opened.client_protocols),
            server_extensions: some(&opened.server_extensions),
            client_extensions: some(&opened.client_extensions),
            orig_frames: sent.map(|frames| frames.count),
            orig_frame_bytes: sent.map(|frames| frames.bytes),
            resp_frames: received.map(|frames| frames.count),
            resp_frame_bytes: received.map(|frames| frames.bytes),
        })
    }
}

fn some<T>(list: &[T]) -> Option<&[T]> {
    (!list.is_empty()).then_some(list)
}
