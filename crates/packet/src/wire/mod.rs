//! One file per header: a view that reads it, a value that can be built, `parse` and `emit`.
//!
//! A *view* (`UdpView`) borrows bytes that are known to hold the fixed part of the header. It makes
//! no judgement: every field is read as it stands. A *value* (`UdpHeader`) is what the fields mean.
//! `XHeader::parse` reads a value through the view, `XHeader::emit` writes it, so that reading and
//! building cannot drift apart. Lengths and checksums are fields like any other: who builds a packet
//! sets them (see [`crate::checksum`]).

pub mod arp;
pub mod ethernet;
pub mod geneve;
pub mod gre;
pub mod gtpu;
pub mod icmp;
pub mod ipv4;
pub mod ipv4_option;
pub mod ipv6;
pub mod ipv6_extension;
pub mod llc;
pub mod mpls;
pub mod pppoe;
#[cfg(test)]
pub(crate) mod random;
pub mod sctp;
pub mod tcp;
pub mod tcp_option;
pub mod udp;
pub mod vlan;
pub mod vxlan;
