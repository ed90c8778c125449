//! The `websocket` log: one row for each connection that became a WebSocket, as Zeek writes it.

use netsniff_packet::{Address, Timestamp};

use crate::record::Port;
use crate::uid::Uid;

crate::record! {
    /// One row for each connection that changed from HTTP to WebSocket.
    pub struct WebSocket<'a> => "websocket" {
        /// Time of the response that changed it.
        ts: Timestamp => "ts", time, Seconds, Plain, Zeek;
        /// Identifier of the connection, the same in every log.
        uid: Uid => "uid", string, None, Plain, Zeek;
        /// Address of the originator.
        id_orig_h: Address => "id.orig_h", addr, None, Address, Zeek;
        /// Port of the originator.
        id_orig_p: Port => "id.orig_p", port, None, Plain, Zeek;
        /// Address of the responder.
        id_resp_h: Address => "id.resp_h", addr, None, Address, Zeek;
        /// Port of the responder.
        id_resp_p: Port => "id.resp_p", port, None, Plain, Zeek;
        /// Host of the request, as in the log `http`.
        host: Option<&'a [u8]> => "host", string, None, Name, Zeek;
        /// URI of the request, as in the log `http`.
        uri: Option<&'a [u8]> => "uri", string, None, FreeText, Zeek;
        /// User agent of the request, as in the log `http`.
        user_agent: Option<&'a [u8]> => "user_agent", string, None, FreeText, Zeek;
        /// Protocol above it that the server chose.
        subprotocol: Option<&'a [u8]> => "subprotocol", string, None, FreeText, Zeek;
        /// Protocols above it that the client offered.
        client_protocols: Option<&'a [Box<[u8]>]> => "client_protocols", vector[string], None, FreeText, Zeek;
        /// Extensions that the server chose.
        server_extensions: Option<&'a [Box<[u8]>]> => "server_extensions", vector[string], None, Plain, Zeek;
        /// Extensions that the client offered.
        client_extensions: Option<&'a [Box<[u8]>]> => "client_extensions", vector[string], None, Plain, Zeek;
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
