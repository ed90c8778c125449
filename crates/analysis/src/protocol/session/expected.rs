//! Connections that a session knows of before they begin: FTP tells on one connection where the
//! file will go on another.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use netsniff_packet::{Address, Timestamp};

use super::Role;
use crate::file::mime::{self, HEAD};
use crate::key::uid::Uid;

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
    pub announced: Announcement,
}

/// What is known of a connection before it begins.
#[derive(Clone, Debug)]
pub struct Announcement {
    /// The name of the protocol that it will speak, as Zeek's `service` column has it.
    pub protocol: &'static str,
    /// What both sessions know of it.
    pub errand: Arc<ExpectedTransfer>,
}

/// What one connection does for another: the session that announced it tells what is known before,
/// and the one that does it tells what came of it. Both are on the same worker.
#[derive(Debug, Default)]
pub struct ExpectedTransfer {
    /// The name of the file that it carries.
    pub filename: Option<Box<[u8]>>,
    /// Name in the logs of the file that it carried.
    pub fuid: OnceLock<Uid>,
    /// What kind of file that was.
    pub mime_type: Kind,
    /// The begin of the file, as long as that does not tell its kind yet: whoever must know it before looks at
    /// that.
    pub head: Head,
}

/// The begin of a file on its way.
#[derive(Debug, Default)]
pub struct Head(Mutex<Vec<u8>>);

impl Head {
    /// Adds bytes, of which the first count.
    pub(in crate::protocol) fn push(&self, data: &[u8]) {
        let mut head = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let wanted = HEAD.saturating_sub(head.len()).min(data.len());
        head.extend_from_slice(&data[..wanted]);
    }

    /// Forgets it, since its kind is told.
    pub(in crate::protocol) fn clear(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Vec::new();
    }

    /// The kind of a file that begins so.
    #[must_use]
    pub fn kind(&self) -> Option<&'static str> {
        mime::of(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Bytes that it holds outside itself.
    pub(in crate::protocol) fn heap_bytes(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).capacity()
    }
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
    pub fn publish(&self, time: Timestamp, mime_type: &'static str) {
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
    pub fn was_published_within(&self, after: Timestamp, until: Timestamp) -> bool {
        self.known().times.iter().flatten().any(|time| *time > after && *time <= until)
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ExpectedTransfer {
    /// Bytes of the name of the file.
    #[must_use]
    pub fn name_bytes(&self) -> usize {
        self.filename.as_ref().map_or(0, |name| name.len())
    }
}
