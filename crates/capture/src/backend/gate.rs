//! Shutting the intake of a ring, and asking what it has let in, from another thread than the one that reads it.

use std::fmt;
use std::sync::{Arc, Weak};

use crate::counters::Counted;
use crate::error::Result;

/// What packets come in by.
pub trait Intake: Send + Sync + fmt::Debug {
    /// Lets no more packets in. Those that a processor has already begun with still come.
    ///
    /// # Errors
    ///
    /// Where the kernel refuses.
    fn shut(&self) -> Result<()>;

    /// What the kernel has counted up to this moment, since the start.
    ///
    /// # Errors
    ///
    /// Where the kernel's counters cannot be read.
    fn counted(&self) -> Result<Counted>;
}

/// The intake of a ring for any thread, whatever the thread of the ring is doing. It keeps nothing open.
#[derive(Clone, Debug)]
pub struct Gate(Weak<dyn Intake>);

impl Gate {
    /// The gate of what packets come in by.
    pub fn new<I: Intake + 'static>(of: &Arc<I>) -> Self {
        let weak: Weak<I> = Arc::downgrade(of);
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

    /// What the kernel has counted up to this moment; `None` where the ring is not there any more.
    ///
    /// # Errors
    ///
    /// Where the kernel's counters cannot be read.
    pub fn counted(&self) -> Result<Option<Counted>> {
        self.0.upgrade().map(|of| of.counted()).transpose()
    }
}
