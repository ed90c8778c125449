//! The `exported` log: what exporters told of connections, as they told it.

use netsniff_packet::{Address, Timestamp};

use crate::key::uid::Uid;
use crate::record::Port;

crate::record! {
    /// One row for each connection that an exporter told of (`netsniff collect`), beside its row of `conn`. Counts stand here as the
    /// exporter counted them, also of a sample.
    pub struct Exported => "exported" {
        /// Time of the first packet, as in `conn`.
        ts: Timestamp => "ts", time, Seconds, Plain, Netsniff;
        /// Identifier of the connection.
        uid: Uid => "uid", string, None, Plain, Netsniff;
        /// Address of the exporter.
        exporter: Address => "exporter", addr, None, Address, Netsniff;
        /// Port that the exporter sends from.
        exporter_p: Port => "exporter_p", port, None, Plain, Netsniff;
        /// Observation domain, source id, or of NetFlow 5 type and number of the engine.
        domain: u32 => "domain", count, None, Plain, Netsniff;
        /// Protocol of the export.
        protocol: ExportProtocol => "protocol", enum, None, Plain, Netsniff;
        /// When the last record came that the row is made of.
        arrived: Timestamp => "arrived", time, Seconds, Plain, Netsniff;
        /// Records that the row is made of: 2 where each direction had its own.
        records: u64 => "records", count, None, Plain, Netsniff;
        /// What tells who began the connection.
        direction: DirectionKnown => "direction", enum, None, Plain, Netsniff;
        /// One in so many packets was counted. Unset where every packet was, where nobody told, and where it is no such
        /// share.
        sampling: Option<u64> => "sampling", count, None, Plain, Netsniff;
        /// Whether packets were counted by a sample; unset where nobody told.
        is_sampled: Option<bool> => "sampled", bool, None, Plain, Netsniff;
        /// Packets of the originator that were counted.
        orig_pkts: Option<u64> => "orig_pkts", count, Packets, Plain, Netsniff;
        /// Bytes in them as the exporter counts them, mostly those of IP.
        orig_octets: Option<u64> => "orig_octets", count, Bytes, Plain, Netsniff;
        /// Packets of the responder that were counted.
        resp_pkts: Option<u64> => "resp_pkts", count, Packets, Plain, Netsniff;
        /// Bytes in them.
        resp_octets: Option<u64> => "resp_octets", count, Bytes, Plain, Netsniff;
        /// TCP flags that the originator sent, in all packets together.
        orig_tcp_flags: Option<u16> => "orig_tcp_flags", count, None, Plain, Netsniff;
        /// TCP flags that the responder sent.
        resp_tcp_flags: Option<u16> => "resp_tcp_flags", count, None, Plain, Netsniff;
        /// Why the exporter told of the connection; of two records that of the later one.
        end_reason: Option<FlowEndReason> => "end_reason", enum, None, Plain, Netsniff;
        /// Index of the interface where packets of the originator came in.
        ingress: Option<u32> => "ingress", count, None, Plain, Netsniff;
        /// Index of the interface where they went out.
        egress: Option<u32> => "egress", count, None, Plain, Netsniff;
        /// Template of the record, or of the first of two.
        template: Option<u16> => "template", count, None, Plain, Netsniff;
    }
}

crate::words! {
    /// A protocol of flow export.
    pub enum ExportProtocol {
        /// NetFlow 5.
        Netflow5 => "netflow5",
        /// NetFlow 9 (RFC 3954).
        Netflow9 => "netflow9",
        /// IPFIX (RFC 7011).
        Ipfix => "ipfix",
    }
}

crate::words! {
    /// What tells who began a connection.
    pub enum DirectionKnown {
        /// The exporter says so.
        Told => "told",
        /// One of two records begins before the other.
        Earlier => "earlier",
        /// One of the ports is likely that of a server, or the lower one.
        Ports => "ports",
        /// Nothing: the source of the record is taken for the originator.
        Source => "source",
    }
}

crate::words! {
    /// Why an exporter tells of a flow (`flowEndReason`).
    pub enum FlowEndReason {
        /// Nothing came of it for some time.
        Idle => "idle",
        /// It had lasted for some time, and goes on: the next row is another part of it.
        Active => "active",
        /// Its end was seen.
        End => "end",
        /// The exporter was stopped or told to.
        Forced => "forced",
        /// The exporter had no room.
        Lack => "lack",
    }
}
