//! The `websocket` log: one row for each connection that became a WebSocket, as Zeek writes it.

use netsniff_packet::Timestamp;

use crate::protocol::Role;
use crate::record::UnsetIfEmpty;

crate::record! {
    /// One row for each connection that changed from HTTP to WebSocket.
    #[derive(Default)]
    pub(super) struct WebSocket => "websocket" {
        /// Time of the response that changed it.
        ts: Timestamp => "ts", time, Seconds, Plain, Zeek;
        connection Zeek;
        /// Host of the request, as in the log `http`.
        host: Option<Box<[u8]>> => "host", string, None, Name, Zeek;
        /// URI of the request, as in the log `http`.
        uri: Option<Box<[u8]>> => "uri", string, None, FreeText, Zeek;
        /// User agent of the request, as in the log `http`.
        user_agent: Option<Box<[u8]>> => "user_agent", string, None, FreeText, Zeek;
        /// Protocol above it that the server chose.
        subprotocol: Option<Box<[u8]>> => "subprotocol", string, None, FreeText, Zeek;
        /// Protocols above it that the client offered.
        client_protocols: UnsetIfEmpty<Box<[u8]>> => "client_protocols", vector[string], None, FreeText, Zeek;
        /// Extensions that the server chose.
        server_extensions: UnsetIfEmpty<Box<[u8]>> => "server_extensions", vector[string], None, FreeText, Zeek;
        /// Extensions that the client offered.
        client_extensions: UnsetIfEmpty<Box<[u8]>> => "client_extensions", vector[string], None, FreeText, Zeek;
        /// Frames from the originator; unset where bytes between them are missing.
        orig_frames: Option<u64> => "orig_frames", count, None, Plain, Netsniff;
        /// Bytes in those frames, without their headers.
        orig_frame_bytes: Option<u64> => "orig_frame_bytes", count, Bytes, Plain, Netsniff;
        /// Frames from the responder; unset where bytes between them are missing.
        resp_frames: Option<u64> => "resp_frames", count, None, Plain, Netsniff;
        /// Bytes in those frames, without their headers.
        resp_frame_bytes: Option<u64> => "resp_frame_bytes", count, Bytes, Plain, Netsniff;
    }
}

impl WebSocket {
    /// Bytes that it holds outside itself.
    pub(super) fn heap_bytes(&self) -> usize {
        let lists = [&self.client_protocols, &self.server_extensions, &self.client_extensions];
        let texts = [&self.host, &self.uri, &self.user_agent, &self.subprotocol];
        let texts = texts.into_iter().flatten().chain(lists.into_iter().flat_map(|list| &list.0));
        texts.map(|text| text.len() + size_of::<Box<[u8]>>()).sum()
    }

    /// Frames of one side, and their bytes.
    pub(super) const fn frames(&mut self, from: Role) -> (&mut Option<u64>, &mut Option<u64>) {
        match from {
            Role::Originator => (&mut self.orig_frames, &mut self.orig_frame_bytes),
            Role::Responder => (&mut self.resp_frames, &mut self.resp_frame_bytes),
        }
    }
}
