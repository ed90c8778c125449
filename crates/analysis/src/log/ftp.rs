//! The `ftp` log: one row for each command that is about files or data connections, as Zeek writes it.

use netsniff_packet::{Address, Timestamp};

use crate::record::Port;
use crate::uid::Uid;

crate::record! {
    /// One row for each of the FTP commands APPE, DELE, RETR, STOR, STOU, ACCT, PORT, PASV, EPRT and
    /// EPSV, with its reply.
    pub struct Ftp<'a> => "ftp" {
        /// Time of the command.
        ts: Timestamp => "ts", time, Seconds, Plain, Zeek;
        /// Identifier of the control connection, the same in every log.
        uid: Uid => "uid", string, None, Plain, Zeek;
        /// Address of the originator.
        id_orig_h: Address => "id.orig_h", addr, None, Address, Zeek;
        /// Port of the originator.
        id_orig_p: Port => "id.orig_p", port, None, Plain, Zeek;
        /// Address of the responder.
        id_resp_h: Address => "id.resp_h", addr, None, Address, Zeek;
        /// Port of the responder.
        id_resp_p: Port => "id.resp_p", port, None, Plain, Zeek;
        /// User that the client logs in as; `<unknown>` where that was not seen.
        user: &'a [u8] => "user", string, None, User, Zeek;
        /// Password, of users that need none; `<hidden>` for all others.
        password: Option<&'a [u8]> => "password", string, None, User, Zeek;
        /// Command, in upper case.
        command: &'a [u8] => "command", string, None, Word(FtpCommand), Zeek;
        /// Its argument; files as URLs with the directory that the client is in.
        arg: Option<&'a [u8]> => "arg", string, None, FreeText, Zeek;
        /// Kind of the file that was transferred, by its content. Unset where that was sniffed behind the
        /// next command: `files` has it.
        mime_type: Option<&'a str> => "mime_type", string, None, Plain, Zeek;
        /// Size of the file as the server announces it: the last number in its reply.
        file_size: Option<u64> => "file_size", count, Bytes, Plain, Zeek;
        /// Code of the reply.
        reply_code: Option<u16> => "reply_code", count, None, Plain, Zeek;
        /// Text of the reply; its last line, if it has several.
        reply_msg: Option<&'a [u8]> => "reply_msg", string, None, FreeText, Zeek;
        /// Whether the client begins the data connection.
        data_channel_passive: Option<bool> => "data_channel.passive", bool, None, Plain, Zeek;
        /// Who begins the data connection.
        data_channel_orig_h: Option<Address> => "data_channel.orig_h", addr, None, Address, Zeek;
        /// Where the data connection goes.
        data_channel_resp_h: Option<Address> => "data_channel.resp_h", addr, None, Address, Zeek;
        /// Port that the data connection goes to.
        data_channel_resp_p: Option<Port> => "data_channel.resp_p", port, None, Plain, Zeek;
        /// Identifier of the file that was transferred, as in the log `files`.
        fuid: Option<Uid> => "fuid", string, None, Plain, Zeek;
    }
}
