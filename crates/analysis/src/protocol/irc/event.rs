//! A command: a row of the log.

use std::sync::Arc;

use netsniff_packet::Timestamp;

use crate::log::Irc;
use crate::protocol::{Connection, Errand};
use crate::record::Port;

/// What a client did.
#[derive(Debug)]
pub struct IrcEvent {
    pub(super) start: Timestamp,
    pub(super) nick: Option<Box<[u8]>>,
    pub(super) user: Option<Box<[u8]>>,
    pub(super) command: &'static str,
    pub(super) value: Option<Box<[u8]>>,
    pub(super) addl: Option<Box<[u8]>>,
    pub(super) transfer: Option<Transfer>,
}

/// A file that was offered.
#[derive(Debug)]
pub(super) struct Transfer {
    /// Its size, where that was told.
    pub(super) size: Option<u64>,
    /// Its name, and what came of it.
    pub(super) errand: Arc<Errand>,
}

impl IrcEvent {
    /// Whether a file that was offered has come so far that its kind is known.
    pub(super) fn is_complete(&self) -> bool {
        let errand = self.transfer.as_ref().map(|transfer| &transfer.errand);
        errand.is_none_or(|errand| errand.mime_type.get().is_some())
    }

    /// Whether a file that was offered has begun to come.
    pub(super) fn has_come(&self) -> bool {
        self.transfer.as_ref().is_none_or(|transfer| transfer.errand.fuid.get().is_some())
    }

    /// Bytes that it holds outside itself.
    pub(super) fn heap_bytes(&self) -> usize {
        let texts = [&self.nick, &self.user, &self.value, &self.addl].into_iter().flatten();
        let name = self.transfer.as_ref().and_then(|transfer| transfer.errand.filename.as_deref());
        texts.map(|text| text.len()).sum::<usize>()
            + name.map_or(0, <[u8]>::len)
            + self.transfer.as_ref().map_or(0, |_| size_of::<Errand>())
    }

    /// Hands the row of the log to `take`.
    pub fn report<T>(&self, connection: &Connection, take: impl FnOnce(&Irc<'_>) -> T) -> T {
        let [orig, resp] = [connection.originator, connection.responder];
        let errand = self.transfer.as_ref().map(|transfer| &transfer.errand);
        take(&Irc {
            ts: self.start,
            uid: connection.uid,
            id_orig_h: orig.address,
            id_orig_p: Port(orig.port),
            id_resp_h: resp.address,
            id_resp_p: Port(resp.port),
            nick: self.nick.as_deref(),
            user: self.user.as_deref(),
            command: self.command,
            value: self.value.as_deref(),
            addl: self.addl.as_deref(),
            dcc_file_name: errand.and_then(|errand| errand.filename.as_deref()),
            dcc_file_size: self.transfer.as_ref().and_then(|transfer| transfer.size),
            dcc_mime_type: errand
                .and_then(|errand| errand.mime_type.get().or_else(|| errand.head.kind())),
            fuid: errand.and_then(|errand| errand.fuid.get().copied()),
        })
    }
}
