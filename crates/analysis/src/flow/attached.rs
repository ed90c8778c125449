//! What few flows have, and no packet of the others should pay for.

use super::parents::Parents;
use crate::protocol::Session;

/// Tunnels around a flow, and what is said in it.
#[derive(Debug, Default)]
pub struct Attached {
    /// The flows that it was tunnelled in.
    pub parents: Option<Parents>,
    /// What is said in it, in the protocol of its port.
    pub session: Option<Box<dyn Session>>,
}

impl Attached {
    /// Bytes that it takes, itself included.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        size_of::<Self>()
            + self.parents.as_ref().map_or(0, Parents::heap_bytes)
            + self.session.as_ref().map_or(0, |session| session.heap_bytes())
    }
}
