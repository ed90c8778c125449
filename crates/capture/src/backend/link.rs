//! The interface of a ring: whether it is up, down or gone.

use super::receiver::Entrance;
use crate::error::{CallContext as _, Result};
use crate::interface::{Interface, LinkCounters, LinkReader};

/// What became of the interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LinkState {
    Up,
    Down,
    Gone,
}

/// Watches the interface of a ring, which tells that it goes down, but not that it is back.
#[derive(Debug)]
pub(super) struct LinkWatch {
    reader: LinkReader,
    name: String,
    state: LinkState,
    /// When it was looked at last, in nanoseconds.
    looked: u64,
}

/// How often to look at an interface of which nothing comes, in nanoseconds.
const LOOK: u64 = 1_000_000_000;

impl LinkWatch {
    pub(super) fn new(interface: &Interface) -> Result<Self> {
        let reader = LinkReader::new(interface.index)?;
        Ok(Self { reader, name: interface.name.clone(), state: LinkState::Up, looked: 0 })
    }

    /// Takes the error that is pending on the entrance, and looks at the interface where that is about it.
    pub(super) fn after_error(&mut self, entrance: &dyn Entrance, now: u64) -> Result<LinkState> {
        let Some(error) = entrance.pending_error().trying("read the state of the socket")? else {
            return self.look(now);
        };
        match error.raw_os_error() {
            Some(libc::ENETDOWN | libc::ENODEV | libc::ENXIO) => self.look(now),
            _ => Err(error).trying(format!("capture on {}", self.name)),
        }
    }

    /// The state while nothing comes: looked at now and then, and each time where it was not up.
    pub(super) fn while_idle(&mut self, now: u64) -> Result<LinkState> {
        if self.state == LinkState::Up && now.saturating_sub(self.looked) < LOOK {
            return Ok(LinkState::Up);
        }
        self.look(now)
    }

    /// What the interface has counted; `None` once it is gone.
    pub(super) fn counters(&mut self) -> Result<Option<LinkCounters>> {
        self.reader.counters()
    }

    fn look(&mut self, now: u64) -> Result<LinkState> {
        self.looked = now;
        // It keeps its number when it is renamed.
        self.state = match self.reader.flags()? {
            None => LinkState::Gone,
            Some(flags) if flags & libc::IFF_UP as u32 == 0 => LinkState::Down,
            Some(_) => LinkState::Up,
        };
        Ok(self.state)
    }
}
