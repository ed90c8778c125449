//! One packet, borrowed from whoever captured, read or made it.

use crate::{LinkType, Timestamp};

/// A packet as it was seen on an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// When it was seen, as its source stamped it.
    pub timestamp: Timestamp,
    /// The bytes that were captured, from the header that `link_type` names.
    pub data: &'a [u8],
    /// Its length on the wire in bytes; more than `data.len()` where the capture cut it (snaplen).
    pub wire_len: u32,
    /// What the first header is.
    pub link_type: LinkType,
    /// Number of the interface in its source, from 0.
    pub interface: u32,
}

impl Packet<'_> {
    /// Whether the capture kept less than the wire carried.
    #[must_use]
    pub const fn is_cut(&self) -> bool {
        (self.wire_len as usize) > self.data.len()
    }
}
