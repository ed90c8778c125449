//! Connections that a session knows of before they begin: FTP tells on one connection where the
//! file will go on another.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use netsniff_packet::{Address, Timestamp};

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
    pub mime_type: Kind,
    /// What kind of file it is by what came of it so far.
    pub mime_type_so_far: Kind,
}

/// A kind of file, and when it was told.
#[derive(Debug, Default)]
pub struct Kind(Mutex<Known>);

/// What was told last, and each time at which something was or will be told: by the first bytes, by more of
/// them, and at the end.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    kind: Option<&'static str>,
    times: [Option<Timestamp>; 3],
}

impl Kind {
    /// Tells it without saying when.
    pub fn learn(&self, mime_type: &'static str) {
        self.known().kind = Some(mime_type);
    }

    /// Tells it, as of a time.
    pub fn tell(&self, time: Timestamp, mime_type: &'static str) {
        self.learn(mime_type);
        if let Some(free) = self.known().times.iter_mut().find(|time| time.is_none()) {
            *free = Some(time);
        }
    }

    /// What was told last.
    #[must_use]
    pub fn get(&self) -> Option<&'static str> {
        self.known().kind
    }

    /// Whether it was told after one time and not after another.
    #[must_use]
    pub fn was_told_within(&self, after: Timestamp, until: Timestamp) -> bool {
        self.known().times.iter().flatten().any(|time| *time > after && *time <= until)
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Errand {
    /// Bytes of the name of the file.
    #[must_use]
    pub fn name_bytes(&self) -> usize {
        self.filename.as_ref().map_or(0, |name| name.len())
    }
}
