//! What ARP tells: a record that findings read, and that no log has.

use netsniff_packet::{Address, Timestamp};

crate::record! {
    /// A host says by ARP which hardware address its IP address has.
    pub(crate) struct Binding<'a> => "arp" {
        /// Time of the packet.
        ts: Timestamp => "ts", time, Seconds, Plain, Netsniff;
        /// The interface that it came by, from 0; of several files that go on from each other, that of the first.
        interface: u32 => "interface", count, None, Plain, Netsniff;
        /// Id of the outer VLAN.
        vlan: Option<u16> => "vlan", count, None, Plain, Netsniff;
        /// The IP address of the sender.
        address: Address => "address", addr, None, Address, Netsniff;
        /// The hardware address of the sender.
        mac: &'a str => "mac", string, None, Address, Netsniff;
    }
}
