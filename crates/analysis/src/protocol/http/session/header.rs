//! Header fields of messages, on their way to whoever wants them.

use super::dated::Dated;
use super::{HttpSession, StreamStage};
use crate::notice::clocks::HttpDate;
use crate::protocol::http::ambiguity;
use crate::protocol::http::framing::FramingContext;
use crate::protocol::http::line::{self, Folded, Next};
use crate::protocol::http::start_line::Version;
use crate::protocol::mime::Field;
use crate::protocol::websocket::Handshake;
use crate::protocol::{Bytes, Findings, Progress, Role};

impl HttpSession {
    pub(super) fn header(
        &mut self,
        input: &Bytes<'_>,
        next: Next,
        found: &mut Findings,
    ) -> Progress {
        // Its first byte tells whether a line goes on with the field before it.
        if !line::is_continuation(input.data.first()) {
            self.end_field(input, found);
        }
        let line = match self.line(input, next, found) {
            Ok(line) => line,
            Err(progress) => return progress,
        };
        let side = &mut self.sides[input.from.index()];
        if side.folded.as_mut().is_some_and(|field| field.goes_on(&line)) {
            return Progress::Consumed(line.len);
        }
        self.end_field(input, found);
        if line::is_end(&line) {
            return self.end_header(input, line.len, found);
        }
        let behind = input.data.get(line.len);
        if behind.is_some() && !line::is_continuation(behind) {
            self.field_text(input, line.text, line.len, found);
        } else {
            self.sides[input.from.index()].folded = Some(Folded::begun(&line));
        }
        Progress::Consumed(line.len)
    }

    /// Ends the field that might have gone on.
    pub(super) fn end_field(&mut self, input: &Bytes<'_>, found: &mut Findings) {
        let Some(field) = self.sides[input.from.index()].folded.take() else { return };
        if field.lines > 1 {
            found.weirds.add("HTTP_obsolete_line_folding");
        }
        self.field_text(input, &field.text, field.len, found);
    }

    fn field_text(&mut self, input: &Bytes<'_>, text: &[u8], len: usize, found: &mut Findings) {
        // What a loss or the end cut off is no field of its sender's.
        if len > text.len() {
            ambiguity::of_field(text, &mut found.weirds);
        }
        if let Some(field) = Field::parse(text) {
            self.field(input, &field, len, found);
        }
    }

    fn field(&mut self, input: &Bytes<'_>, field: &Field<'_>, len: usize, found: &mut Findings) {
        let from = input.from;
        let [request, response] = self.versions;
        let is_requesting =
            matches!(self.sides[Role::Originator.index()].stage, StreamStage::Message(_));
        let around = FramingContext {
            is_partial: from == Role::Responder && self.code == 206,
            version: if is_requesting { request } else { response },
        };
        let side = &mut self.sides[from.index()];
        let StreamStage::Message(message) = &mut side.stage else { return };
        message.field(field, around, &mut found.weirds);
        side.header_bytes = side.header_bytes.saturating_add(len);
        if side.header_bytes > self.header_room {
            return;
        }
        if let (Role::Responder, Some(dated)) = (from, &mut self.dated) {
            dated.field(field);
        }
        let exchange = self.exchanges.at(from, input.time);
        match from {
            Role::Originator => {
                exchange.request_field(field);
                self.is_kept_alive |= field.is("connection") && field.says("keep-alive");
            }
            Role::Responder if field.is("connection") => {
                self.upgrade.is_announced |= field.says("upgrade");
            }
            Role::Responder if field.is("upgrade") => {
                self.upgrade.protocol = field.token().map(|(token, _)| token.into());
            }
            Role::Responder => {}
        }
        Handshake::field(&mut self.handshake, from, field.name, field.value);
    }

    fn end_header(&mut self, input: &Bytes<'_>, len: usize, found: &mut Findings) -> Progress {
        let from = input.from;
        let [_, response] = self.versions;
        let StreamStage::Message(message) = &mut self.sides[from.index()].stage else {
            return Progress::Consumed(len);
        };
        if from == Role::Originator && response == Version::V0_9 {
            // The server closes behind its one response, so that no other request follows.
            message.is_last_of_side();
        }
        let is_partial = from == Role::Responder && self.code == 206;
        let is_complete = message.end_header(is_partial, &mut found.weirds);
        if from == Role::Responder
            && let Some(date) = self.dated.take().and_then(Dated::time)
        {
            found.unwritten(HttpDate { ts: input.time, date });
        }
        let opens_tunnel = from == Role::Responder && self.is_about_tunnel();
        if is_complete || opens_tunnel {
            self.end_message(from, input.time, found);
        }
        if opens_tunnel || self.upgrade.is_done {
            Progress::Handover(len)
        } else {
            Progress::Consumed(len)
        }
    }
}
