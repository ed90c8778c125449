//! What packets show of clocks: records that findings read, and that no log has.

use netsniff_packet::Timestamp;

use crate::record::Interval;

crate::record! {
    /// The clock that stamps packets was set.
    pub(crate) struct Step => "clock_step" {
        /// The interface, from 0.
        interface: u32 => "interface", count, None, Plain, Netsniff;
        /// Number of the first packet behind it.
        packet: u64 => "packet", count, None, Plain, Netsniff;
        /// How far the clock went, less than 0 for back.
        size: Interval => "size", interval, Seconds, Plain, Netsniff;
        /// Hosts whose own clocks say so.
        hosts: u64 => "hosts", count, None, Plain, Netsniff;
        /// How many steps there were in all, of which this is the largest; unset before the end.
        steps: Option<u64> => "steps", count, None, Plain, Netsniff;
    }
}

crate::record! {
    /// Packets of an interface that are stamped before an earlier one, at the end of the input.
    pub(crate) struct Disorder => "disorder" {
        /// The interface, from 0.
        interface: u32 => "interface", count, None, Plain, Netsniff;
        /// Its packets.
        packets: u64 => "packets", count, None, Plain, Netsniff;
        /// Those that are stamped before an earlier one.
        late: u64 => "late", count, None, Plain, Netsniff;
        /// By how much at most.
        deepest: Interval => "deepest", interval, Seconds, Plain, Netsniff;
        /// Number of the first of them.
        first: u64 => "first", count, None, Plain, Netsniff;
    }
}

crate::record! {
    /// A web server says when it made its response, which no cache seems to have kept.
    pub(crate) struct HttpDate => "http_date" {
        /// Time of the end of its header.
        ts: Timestamp => "ts", time, Seconds, Plain, Netsniff;
        connection Netsniff;
        /// The time that the server says.
        date: Timestamp => "date", time, Seconds, Plain, Netsniff;
    }
}
