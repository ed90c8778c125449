//! The `irc` log: one row for each command that tells who speaks where, as Zeek writes it.

use netsniff_packet::Timestamp;

use crate::key::uid::Uid;

crate::record! {
    /// One row for each of a client's IRC commands NICK, USER and JOIN, and for each file that is
    /// offered over a direct connection (DCC SEND).
    pub(super) struct Irc => "irc" {
        /// Time of the command.
        ts: Timestamp => "ts", time, Seconds, Plain, Zeek;
        connection Zeek;
        /// Nickname that the client had before.
        nick: Option<Box<[u8]>> => "nick", string, None, User, Zeek;
        /// User that the client named before.
        user: Option<Box<[u8]>> => "user", string, None, User, Zeek;
        /// Command; `DCC` for a file that is offered.
        command: &'static str => "command", string, None, Plain, Zeek;
        /// Nickname, user or channel; for DCC that of the command before.
        value: Option<Box<[u8]>> => "value", string, None, User, Zeek;
        /// Host, server and real name of USER; the key of a channel.
        addl: Option<Box<[u8]>> => "addl", string, None, User, Zeek;
        /// Name of the file that is offered.
        dcc_file_name: Option<Box<[u8]>> => "dcc_file_name", string, None, FreeText, Zeek;
        /// Size of the file as whoever offers it announces it.
        dcc_file_size: Option<u64> => "dcc_file_size", count, Bytes, Plain, Zeek;
        /// Kind of the file that came, by its content.
        dcc_mime_type: Option<&'static str> => "dcc_mime_type", string, None, Plain, Zeek;
        /// Identifier of the file that came, as in the log `files`.
        fuid: Option<Uid> => "fuid", string, None, Plain, Zeek;
    }
}

impl Irc {
    /// Bytes that it holds outside itself, without a file's name.
    pub(super) fn heap_bytes(&self) -> usize {
        let texts = [&self.nick, &self.user, &self.value, &self.addl].into_iter().flatten();
        texts.map(|text| text.len()).sum()
    }
}
