//! Shutting the intake of a ring from another thread than the one that reads it.

use std::fmt;
use std::sync::{Arc, Weak};

use super::packet_socket::REFUSE;
use super::shared_tally::SharedTally;
use crate::error::{Context as _, Result};
use crate::sys::socket::Socket;

/// What packets come in by, as far as it can be shut.
pub trait Shut: Send + Sync + fmt::Debug {
    /// Lets no more packets in. Those that a processor has already begun with still come.
    ///
    /// # Errors
    ///
    /// Where the kernel refuses.
    fn shut(&self) -> Result<()>;
}

/// Shuts the intake of a ring from any thread, whatever the thread of the ring is doing. It keeps nothing open.
#[derive(Clone, Debug)]
pub struct Gate(Weak<dyn Shut>);

impl Gate {
    /// The gate of what packets come in by.
    pub fn new<S: Shut + 'static>(of: &Arc<S>) -> Self {
        let weak: Weak<S> = Arc::downgrade(of);
        Self(weak)
    }

    /// Lets no more packets in. Does nothing where the ring is not there any more.
    ///
    /// # Errors
    ///
    /// Where the kernel refuses.
    pub fn shut(&self) -> Result<()> {
        self.0.upgrade().map_or(Ok(()), |of| of.shut())
    }
}

impl Shut for Socket {
    fn shut(&self) -> Result<()> {
        self.attach_filter(&REFUSE).trying("attach a filter")
    }
}

impl Shut for SharedTally {
    fn shut(&self) -> Result<()> {
        self.set_open(false);
        Ok(())
    }
}
