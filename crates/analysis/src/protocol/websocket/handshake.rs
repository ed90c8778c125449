//! The header fields of the upgrade to WebSocket, RFC 6455 section 4.

use netsniff_packet::Timestamp;
use sha1::{Digest, Sha1};

use super::log::WebSocket;
use super::session::WebSocketSession;
use crate::protocol::syntax::base64;
use crate::protocol::{Role, Successor};

/// What the server appends to the client's key, RFC 6455 section 1.3.
const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// Protocols and extensions of one side that are kept. Real ones offer fewer than five.
const MAX_OFFERS: usize = 16;

/// What request and response say of the WebSocket that begins.
#[derive(Debug, Default)]
pub(in crate::protocol) struct Handshake {
    opened: WebSocket,
    key: Option<Box<[u8]>>,
    accept: Option<Box<[u8]>>,
    oddities: Vec<&'static str>,
}

impl Handshake {
    /// Takes a header field, if it is one of WebSocket's.
    pub(in crate::protocol) fn field(
        handshake: &mut Option<Box<Self>>,
        from: Role,
        name: &[u8],
        value: &[u8],
    ) {
        let Some((prefix, name)) = name.split_at_checked(14) else { return };
        if !prefix.eq_ignore_ascii_case(b"Sec-WebSocket-") {
            return;
        }
        let handshake = handshake.get_or_insert_default();
        let opened = &mut handshake.opened;
        match (from, name.to_ascii_lowercase().as_slice()) {
            (Role::Originator, b"protocol") => offer(&mut opened.client_protocols.0, value),
            (Role::Originator, b"extensions") => offer(&mut opened.client_extensions.0, value),
            (Role::Responder, b"extensions") => offer(&mut opened.server_extensions.0, value),
            (Role::Originator, b"key") => {
                let is_second = handshake.key.replace(value.into()).is_some();
                handshake.note(is_second, "websocket_multiple_key_headers");
            }
            (Role::Responder, b"protocol") => {
                let is_second = opened.subprotocol.replace(value.into()).is_some();
                handshake.note(is_second, "websocket_multiple_protocol_headers");
            }
            (Role::Responder, b"accept") => {
                let is_second = handshake.accept.replace(value.into()).is_some();
                handshake.note(is_second, "websocket_multiple_accept_headers");
            }
            _ => {}
        }
    }

    fn note(&mut self, is_so: bool, name: &'static str) {
        if is_so && !self.oddities.contains(&name) {
            self.oddities.push(name);
        }
    }

    /// The session that begins with the response at `time`, to a request for `target`: its host, URI
    /// and user agent.
    pub(in crate::protocol) fn completed(
        mut self,
        time: Timestamp,
        target: [Option<Box<[u8]>>; 3],
    ) -> Successor {
        self.note(self.key.is_none(), "websocket_missing_key_header");
        self.note(self.accept.is_none(), "websocket_missing_accept_header");
        if let (Some(key), Some(accept)) = (&self.key, &self.accept) {
            let is_wrong = accepted(key).as_bytes() != &**accept;
            self.note(is_wrong, "websocket_wrong_accept_header");
        }
        let [host, uri, user_agent] = target;
        let opened = WebSocket { ts: time, host, uri, user_agent, ..self.opened };
        let session = Box::new(WebSocketSession::new(opened, self.oddities));
        Successor { protocol: "websocket", session }
    }

    /// Bytes that it takes, itself included.
    pub(in crate::protocol) fn bytes(&self) -> usize {
        size_of::<Self>()
            + self.opened.heap_bytes()
            + [&self.key, &self.accept].into_iter().flatten().map(|text| text.len()).sum::<usize>()
    }
}

/// What the server has to answer to a key.
fn accepted(key: &[u8]) -> String {
    base64::encode(&Sha1::new().chain_update(key).chain_update(GUID).finalize())
}

/// Adds the members of a list, RFC 9110 section 5.6.1.
fn offer(list: &mut Vec<Box<[u8]>>, value: &[u8]) {
    for member in value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii) {
        if list.len() < MAX_OFFERS {
            list.push(member.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_of_rfc_6455() {
        assert_eq!(accepted(b"dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }
}
