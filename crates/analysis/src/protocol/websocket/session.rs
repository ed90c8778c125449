//! Frames, RFC 6455 section 5, counted.

use netsniff_packet::Timestamp;

use crate::log;
use crate::protocol::{
    Bytes, Connection, Findings, Gap, Onward, Progress, ProtocolRecord, Role, Session,
};
use crate::record::Port;

/// A connection that became a WebSocket.
#[derive(Debug, Default)]
pub(super) struct WebSocketSession {
    talk: Option<Box<Talk>>,
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

/// A frame's header: how long it is, and how much follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FrameHeader {
    len: usize,
    payload: u64,
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
        Self { talk: Some(Box::new(talk)), oddities, is_confirmed: false }
    }
}

impl FrameHeader {
    /// Reads a header; an error is how many bytes it needs, or `None` for what is none.
    fn parse(data: &[u8]) -> Result<Self, Option<usize>> {
        let Some(&[first, second]) = data.first_chunk::<2>() else { return Err(Some(2)) };
        let (opcode, short) = (first & 0xf, second & 0x7f);
        let is_control = opcode & 8 != 0;
        // RFC 6455, 5.2 and 5.5: opcodes of the future are unknown, and control frames are short.
        if matches!(opcode, 3..=7 | 11..=15) || (is_control && short > 125) {
            return Err(None);
        }
        let extended = match short {
            126 => 2,
            127 => 8,
            _ => 0,
        };
        let mask = if second & 0x80 != 0 { 4 } else { 0 };
        let len = 2 + extended + mask;
        let Some(header) = data.get(..len) else { return Err(Some(len)) };
        let long = header.get(2..2 + extended).unwrap_or_default();
        let payload = match extended {
            0 => u64::from(short),
            _ => long.iter().fold(0, |payload, &byte| payload << 8 | u64::from(byte)),
        };
        Ok(Self { len, payload })
    }
}

impl Session for WebSocketSession {
    fn bytes(&mut self, input: &Bytes<'_>, found: &mut Findings) -> Progress {
        self.oddities.drain(..).for_each(|name| found.weirds.add(name));
        let frames = self.talk.as_mut().and_then(|talk| talk.frames[input.from.index()].as_mut());
        let Some(frames) = frames else { return Progress::Skip(u64::MAX) };
        let header = match FrameHeader::parse(input.data) {
            Ok(header) => header,
            Err(Some(len)) => return Progress::Need(len),
            Err(None) => return Progress::Contradicts("websocket_bad_frame"),
        };
        self.is_confirmed = true;
        frames.count = frames.count.saturating_add(1);
        frames.bytes = frames.bytes.saturating_add(header.payload);
        Progress::Skip(header.payload.saturating_add(header.len as u64))
    }

    /// Behind a gap nobody knows where a frame begins.
    fn gap(&mut self, gap: &Gap<'_>, _: &mut Findings) -> Onward {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_have_three_lengths_and_a_mask() {
        let read = FrameHeader::parse;
        assert_eq!(read(&[0x81, 5]), Ok(FrameHeader { len: 2, payload: 5 }));
        assert_eq!(read(&[0x81, 0x85, 1, 2, 3, 4]), Ok(FrameHeader { len: 6, payload: 5 }));
        assert_eq!(read(&[2, 126, 1, 0]), Ok(FrameHeader { len: 4, payload: 256 }));
        let long = [2, 127, 0, 0, 0, 1, 0, 0, 0, 0];
        assert_eq!(read(&long), Ok(FrameHeader { len: 10, payload: 1 << 32 }));
        assert_eq!(read(&long[..9]), Err(Some(10)));
        assert_eq!(read(&[0x81]), Err(Some(2)));
        assert_eq!(read(&[0x83, 0]), Err(None));
        assert_eq!(read(&[0x88, 126, 0, 0]), Err(None));
    }
}
