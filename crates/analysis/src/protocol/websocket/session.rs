//! Frames, RFC 6455 section 5: counted, and what those with data carry handed on.

use super::frame::{Frame, FrameHeader};
use super::log::WebSocket;
use crate::protocol::{Bytes, Findings, GapAction, MissingBytes, Progress, Role, Session};
use crate::weird::Detail;

/// Bytes that a control frame may carry (RFC 6455, 5.5), above which Zeek tells it.
const MAX_CONTROL: u64 = 125;

/// A connection that became a WebSocket.
#[derive(Debug, Default)]
pub(super) struct WebSocketSession {
    row: Option<Box<WebSocket>>,
    /// The frame that each side is at.
    frames: [Frame; 2],
    /// Whether nobody can follow what the frames carry: some of it is missing, or is compressed.
    is_opaque: bool,
    oddities: Vec<&'static str>,
    is_confirmed: bool,
}

impl WebSocketSession {
    /// A WebSocket that was just opened, with what was odd about that.
    pub(super) fn new(mut row: WebSocket, oddities: Vec<&'static str>) -> Self {
        for from in [Role::Originator, Role::Responder] {
            let (frames, bytes) = row.frames(from);
            (*frames, *bytes) = (Some(0), Some(0));
        }
        Self { row: Some(Box::new(row)), oddities, ..Self::default() }
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
        let frames = self.row.as_mut().map(|row| row.frames(input.from));
        let Some((Some(frames), Some(bytes))) = frames else { return Progress::Skip(u64::MAX) };
        if self.frames[input.from.index()].is_open() {
            return self.payload(input, found);
        }
        let header = match FrameHeader::parse(input.data) {
            Ok(header) => header,
            Err(Some(len)) => return Progress::Need(len),
            Err(None) => return Progress::Contradicts("websocket_bad_frame"),
        };
        self.is_confirmed = true;
        *frames = frames.saturating_add(1);
        *bytes = bytes.saturating_add(header.payload);
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
    fn gap(&mut self, gap: &MissingBytes<'_>, found: &mut Findings) -> GapAction {
        let frame = &mut self.frames[gap.from.index()];
        let missing = frame.miss(gap.len);
        if !self.is_opaque && frame.has_data() {
            found.carried.missing = missing;
        }
        if missing == gap.len {
            return GapAction::Continue;
        }
        self.is_opaque = true;
        if let Some(row) = &mut self.row {
            let (frames, bytes) = row.frames(gap.from);
            (*frames, *bytes) = (None, None);
            if row.orig_frames.is_none() && row.resp_frames.is_none() {
                return GapAction::Abort;
            }
        }
        GapAction::Continue
    }

    fn end(&mut self, found: &mut Findings) {
        self.oddities.drain(..).for_each(|name| found.weirds.add(name));
        if let Some(row) = self.row.take() {
            found.boxed_row(row);
        }
    }

    fn is_confirmed(&self) -> bool {
        self.is_confirmed
    }

    fn heap_bytes(&self) -> usize {
        let row = self.row.as_ref();
        size_of::<Self>()
            + self.oddities.capacity() * size_of::<&str>()
            + row.map_or(0, |row| size_of::<WebSocket>() + row.heap_bytes())
    }
}
