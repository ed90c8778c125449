//! Connections that a session knows of before they begin: FTP tells on one connection where the
//! file will go on another.

use std::sync::{Arc, OnceLock};

use netsniff_packet::Address;

use super::list::ProtocolId;
use super::session::Role;
use crate::uid::Uid;

/// A connection that will come.
#[derive(Debug)]
pub struct Expected {
    /// The side of this connection that will begin it.
    pub from: Role,
    /// Where it will go; `None` for the other side of this connection. Connections to third hosts
    /// are not awaited, since another worker may have them, and make an oddity.
    pub to: Option<Address>,
    /// Whether it may go to the other side of this connection all the same.
    pub or_peer: bool,
    /// The port that it will go to.
    pub port: u16,
    /// What it will be.
    pub announced: Announced,
}

/// What is known of a connection before it begins.
#[derive(Clone, Debug)]
pub struct Announced {
    /// Its protocol.
    pub protocol: ProtocolId,
    /// What both sessions know of it.
    pub errand: Arc<Errand>,
}

/// What one connection does for another: the session that announced it tells what is known before,
/// and the one that does it tells what came of it. Both are on the same worker.
#[derive(Debug, Default)]
pub struct Errand {
    /// The name of the file that it carries.
    pub filename: Option<Box<[u8]>>,
    /// Name in the logs of the file that it carried.
    pub fuid: OnceLock<Uid>,
    /// What kind of file that was.
    pub mime_type: OnceLock<&'static str>,
}

impl Errand {
    /// Bytes of the name of the file.
    #[must_use]
    pub fn name_bytes(&self) -> usize {
        self.filename.as_ref().map_or(0, |name| name.len())
    }
}
