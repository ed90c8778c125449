//! Which packets belong to which flow, for whoever wants packets beside records.

use netsniff_packet::Timestamp;

use crate::key::FlowKey;
use crate::key::uid::Uid;

/// A packet that belongs to a flow. One with a tunnel belongs to several: those outside come first.
#[derive(Clone, Copy, Debug)]
pub struct Membership<'a> {
    /// Number of the packet in the input, from 1.
    pub ordinal: u64,
    /// Its stamp.
    pub time: Timestamp,
    /// The numbers of all packets of its datagram, where that was put together from fragments; else empty.
    pub fragments: &'a [u64],
    /// The flow's addresses and ports.
    pub key: &'a FlowKey,
    /// The bits that name the flow: [`Uid::new`] makes its uid of them.
    pub name: u128,
    /// Whether the flow begins with this packet.
    pub begins: bool,
    /// Where the flow begins with an answer: its SYNs, stamped at or after this time, came within the flow
    /// before it with the same addresses and ports, and belong to this one.
    pub claimed_from: Option<Timestamp>,
}

impl Membership<'_> {
    /// The identifier that rows of the flow have.
    #[must_use]
    pub const fn uid(&self) -> Uid {
        Uid::new(self.name)
    }
}

/// Why it is not known yet to which flow a packet belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Undecided<'a> {
    /// It is a fragment, and the rest of its datagram did not come yet.
    Fragment,
    /// It is a SYN within the flow of this key. It begins another one if it is answered.
    Syn(&'a FlowKey),
}
