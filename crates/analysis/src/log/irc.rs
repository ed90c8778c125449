//! The `irc` log: one row for each command that tells who speaks where, as Zeek writes it.

use netsniff_packet::{Address, Timestamp};

use crate::record::Port;
use crate::uid::Uid;

crate::record! {
    /// One row for each of a client's IRC commands NICK, USER and JOIN, and for each file that is
    /// offered over a direct connection (DCC SEND).
    pub struct Irc<'a> => "irc" {
        /// Time of the command.
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
        /// Nickname that the client had before.
        nick: Option<&'a [u8]> => "nick", string, None, User, Zeek;
        /// User that the client named before.
        user: Option<&'a [u8]> => "user", string, None, User, Zeek;
        /// Command; `DCC` for a file that is offered.
        command: &'a str => "command", string, None, Plain, Zeek;
        /// Nickname, user or channel; for DCC that of the command before.
        value: Option<&'a [u8]> => "value", string, None, User, Zeek;
        /// Host, server and real name of USER; the key of a channel.
        addl: Option<&'a [u8]> => "addl", string, None, User, Zeek;
        /// Name of the file that is offered.
        dcc_file_name: Option<&'a [u8]> => "dcc_file_name", string, None, FreeText, Zeek;
        /// Size of the file as whoever offers it announces it.
        dcc_file_size: Option<u64> => "dcc_file_size", count, Bytes, Plain, Zeek;
        /// Kind of the file that came, by its content.
        dcc_mime_type: Option<&'a str> => "dcc_mime_type", string, None, Plain, Zeek;
        /// Identifier of the file that came, as in the log `files`.
        fuid: Option<Uid> => "fuid", string, None, Plain, Zeek;
    }
}
