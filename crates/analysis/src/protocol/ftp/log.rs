//! The `ftp` log: one row for each command that is about files or data connections, as Zeek writes it.

use core::net::IpAddr;

use netsniff_packet::{Address, Timestamp};

use super::codes;
use crate::key::uid::Uid;
use crate::record::{Connection, Port};

/// Bytes of arguments and replies in the log (`FTP::max_arg_length`).
pub(super) const MAX_TEXT: usize = 4_096;
/// What the address of a file begins with.
pub(super) const SCHEME: &str = "ftp://";

crate::record! {
    /// One row for each of the FTP commands APPE, DELE, RETR, STOR, STOU, ACCT, PORT, PASV, EPRT and
    /// EPSV, with its reply. `uid` is that of the control connection.
    pub(super) struct Ftp => "ftp" {
        /// Time of the command.
        ts: Timestamp => "ts", time, Seconds, Plain, Zeek;
        connection Zeek, Self::place;
        /// User that the client logs in as; `<unknown>` where that was not seen.
        user: Box<[u8]> => "user", string, None, User, Zeek;
        /// Password, of users that need none; `<hidden>` for all others.
        password: Option<Box<[u8]>> => "password", string, None, User, Zeek;
        /// Command, in upper case.
        command: Box<[u8]> => "command", string, None, Word(FtpCommand), Zeek;
        /// Its argument; files as URLs with the directory that the client is in.
        arg: Option<Box<[u8]>> => "arg", string, None, FreeText, Zeek;
        /// Kind of the file that was transferred, by its content. Unset where that was sniffed behind the
        /// next command: `files` has it.
        mime_type: Option<&'static str> => "mime_type", string, None, Plain, Zeek;
        /// Size of the file as the server announces it: the last number in its reply.
        file_size: Option<u64> => "file_size", count, Bytes, Plain, Zeek;
        /// Code of the reply.
        reply_code: Option<u16> => "reply_code", count, None, Plain, Zeek;
        /// Text of the reply; its last line, if it has several.
        reply_msg: Option<Box<[u8]>> => "reply_msg", string, None, FreeText, Zeek;
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

impl Ftp {
    /// Sets what the connection tells: the server in the address of a file, and the ends of a data connection.
    fn place(&mut self, connection: &Connection) {
        let [client, server] = [connection.originator.address, connection.responder.address];
        if codes::is_of_files(&self.command) {
            self.arg = self.arg.take().map(|path| url(server, &path));
        }
        if let Some(is_passive) = self.data_channel_passive {
            self.data_channel_orig_h = Some(if is_passive { client } else { server });
            self.data_channel_resp_h.get_or_insert(server);
        }
    }
}

/// The address of a file, as the log has it.
fn url(server: Address, path: &[u8]) -> Box<[u8]> {
    let host = match server.to_ip() {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("[{address}]"),
    };
    let slash = if path.starts_with(b"/") { "" } else { "/" };
    let mut text = [format!("{SCHEME}{host}{slash}").as_bytes(), path].concat();
    text.truncate(MAX_TEXT);
    text.into_boxed_slice()
}
