//! The `series` log: what passed in each interval of time.

use netsniff_packet::{Address, Timestamp};

use crate::record::Interval;

crate::record! {
    /// What passed in an interval, by the packets' own stamps: a row for all of it, and one for each interface and each of
    /// the hosts with the most bytes. Rows that have the same `ts`, `kind` and name are parts of one interval, which add
    /// up: what comes late has a row of its own.
    pub struct Series => "series" {
        /// When the interval begins: a multiple of its length since the epoch.
        ts: Timestamp => "ts", time, Seconds, Plain, Netsniff;
        /// Length of the interval.
        interval: Interval => "interval", interval, Seconds, Plain, Netsniff;
        /// What the row is about.
        kind: Kind => "kind", enum, None, Plain, Netsniff;
        /// The interface: its name, or its number in the input, counted from 0.
        interface: Option<Box<str>> => "interface", string, None, Plain, Netsniff;
        /// The host.
        host: Option<Address> => "host", addr, None, Address, Netsniff;
        /// Whether it is the row of all that have no row of their own: with it, the rows of a kind add up to all.
        is_other: bool => "other", bool, None, Plain, Netsniff;
        /// How many have no row of their own. Unset where there were more than are told apart.
        others: Option<u64> => "others", count, None, Plain, Netsniff;
        /// Packets, whatever is in them.
        packets: Option<u64> => "packets", count, Packets, Plain, Netsniff;
        /// Bytes of these packets on the wire, from the first header of the link.
        bytes: Option<u64> => "bytes", count, Bytes, Plain, Netsniff;
        /// Packets that the host sent, by the outermost IP header.
        sent_packets: Option<u64> => "sent_packets", count, Packets, Plain, Netsniff;
        /// Bytes of these packets on the wire.
        sent_bytes: Option<u64> => "sent_bytes", count, Bytes, Plain, Netsniff;
        /// Packets that were sent to the host, by the outermost IP header.
        received_packets: Option<u64> => "received_packets", count, Packets, Plain, Netsniff;
        /// Bytes of these packets on the wire.
        received_bytes: Option<u64> => "received_bytes", count, Bytes, Plain, Netsniff;
        /// Packets that the capture lost, as it tells itself, at the time that the log `gaps` has.
        dropped: Option<u64> => "dropped", count, Packets, Plain, Netsniff;
    }
}

crate::words! {
    /// What a row of the series is about.
    pub enum Kind {
        /// All packets.
        Total => "total",
        /// Those of an interface.
        Interface => "interface",
        /// Those that a host sent or received.
        Host => "host",
    }
}

impl Series {
    /// A row without any figure.
    pub(crate) const fn of(ts: Timestamp, interval: Interval, kind: Kind) -> Self {
        Self {
            ts,
            interval,
            kind,
            interface: None,
            host: None,
            is_other: false,
            others: None,
            packets: None,
            bytes: None,
            sent_packets: None,
            sent_bytes: None,
            received_packets: None,
            received_bytes: None,
            dropped: None,
        }
    }
}
