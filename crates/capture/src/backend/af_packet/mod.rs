//! Packet sockets: what they have in common, and the three ways in which they hand packets over.
//!
//! | module | concern |
//! |---|---|
//! | [`packet_socket`] | binding, filter, direction, stamps, fan-out, counters |
//! | `intake` | which packets are let in, and what the kernel counted of them |
//! | `counting` | filters that count what they refuse |
//! | `mapped` | memory that is shared with the kernel |
//! | `block`, [`v3`] | TPACKET_V3: blocks of packets |
//! | `frame`, [`v2`] | TPACKET_V2: a slot for each packet |
//! | [`recvmmsg`] | copies, without shared memory |

mod block;
mod counting;
mod frame;
mod intake;
mod mapped;
pub(super) mod packet_socket;
pub(super) mod recvmmsg;
pub(super) mod v2;
pub(super) mod v3;
