//! A command with its reply: a row of the log.

use netsniff_packet::{Address, Timestamp};

use super::channel::Channel;
use crate::log::Ftp;
use crate::protocol::Connection;
use crate::record::Port;
use crate::uid::Uid;

/// Bytes of arguments and replies in the log (`FTP::max_arg_length`).
pub(super) const MAX_TEXT: usize = 4_096;
/// What the address of a file begins with.
pub(super) const SCHEME: &str = "ftp://";

/// A command of which a row is logged.
#[derive(Debug)]
pub struct Command {
    pub(super) start: Timestamp,
    pub(super) user: Option<Box<[u8]>>,
    pub(super) password: Option<Box<[u8]>>,
    pub(super) name: Box<[u8]>,
    pub(super) arg: Argument,
    pub(super) reply: Option<(u16, Box<[u8]>)>,
    pub(super) mime_type: Option<&'static str>,
    pub(super) file_size: Option<u64>,
    pub(super) channel: Option<Channel>,
    pub(super) fuid: Option<Uid>,
}

/// The argument of a command.
#[derive(Debug)]
pub(super) enum Argument {
    /// Any text, perhaps none.
    Text(Box<[u8]>),
    /// The path of a file on the server.
    Path(Box<[u8]>),
}

impl Argument {
    /// As the log has it.
    fn text(&self, server: Address) -> Option<Vec<u8>> {
        match self {
            Self::Text(text) => (!text.is_empty()).then(|| text.to_vec()),
            Self::Path(path) => {
                let host = match server.to_ip() {
                    core::net::IpAddr::V4(address) => address.to_string(),
                    core::net::IpAddr::V6(address) => format!("[{address}]"),
                };
                let slash = if path.starts_with(b"/") { "" } else { "/" };
                let mut text = [format!("{SCHEME}{host}{slash}").as_bytes(), path].concat();
                text.truncate(MAX_TEXT);
                Some(text)
            }
        }
    }
}

impl Command {
    /// Hands the row of the log to `take`.
    pub fn report<T>(&self, connection: &Connection, take: impl FnOnce(&Ftp<'_>) -> T) -> T {
        let [orig, resp] = [connection.originator, connection.responder];
        let begins =
            |channel: Channel| if channel.is_passive { orig.address } else { resp.address };
        let arg = self.arg.text(resp.address);
        take(&Ftp {
            ts: self.start,
            uid: connection.uid,
            id_orig_h: orig.address,
            id_orig_p: Port(orig.port),
            id_resp_h: resp.address,
            id_resp_p: Port(resp.port),
            user: self.user.as_deref().unwrap_or(b"<unknown>"),
            password: self.password.as_deref(),
            command: &self.name,
            arg: arg.as_deref(),
            mime_type: self.mime_type,
            file_size: self.file_size,
            reply_code: self.reply.as_ref().map(|(code, _)| *code),
            reply_msg: self.reply.as_ref().map(|(_, text)| &**text),
            data_channel_passive: self.channel.map(|channel| channel.is_passive),
            data_channel_orig_h: self.channel.map(begins),
            data_channel_resp_h: self
                .channel
                .map(|channel| channel.address.unwrap_or(resp.address)),
            data_channel_resp_p: self.channel.map(|channel| Port(channel.port)),
            fuid: self.fuid,
        })
    }
}
