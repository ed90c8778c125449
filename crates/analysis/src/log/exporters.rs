//! The `exporters` log: the books of flow export, where every record of every exporter went.

use netsniff_packet::{Address, Timestamp};

use super::exported::ExportProtocol;
use crate::record::Port;

crate::record! {
    /// One row for each exporter and domain at every interval of `netsniff collect`, and at its end. Counts are totals since
    /// the first message. `records` is `flows` + `options` + `others`; `sets` is `decoded_sets` + `waiting_sets` + `undecoded_sets`.
    pub struct Exporters => "exporters" {
        /// When it was counted.
        ts: Timestamp => "ts", time, Seconds, Plain, Netsniff;
        /// Whether it is the last one.
        is_final: bool => "final", bool, None, Plain, Netsniff;
        /// Address of the exporter.
        exporter: Address => "exporter", addr, None, Address, Netsniff;
        /// Port that it sends from.
        exporter_p: Port => "exporter_p", port, None, Plain, Netsniff;
        /// How its messages come.
        transport: ExportTransport => "transport", enum, None, Plain, Netsniff;
        /// Protocol of the export.
        protocol: ExportProtocol => "protocol", enum, None, Plain, Netsniff;
        /// Observation domain, source id, or of NetFlow 5 type and number of the engine.
        domain: u32 => "domain", count, None, Plain, Netsniff;
        /// When the first message came.
        first: Timestamp => "first", time, Seconds, Plain, Netsniff;
        /// When the last one came.
        last: Timestamp => "last", time, Seconds, Plain, Netsniff;
        /// Messages that were read.
        messages: u64 => "messages", count, None, Plain, Netsniff;
        /// Messages that came twice, and were left out.
        duplicates: u64 => "duplicates", count, None, Plain, Netsniff;
        /// Messages that came behind later ones.
        late: u64 => "late", count, None, Plain, Netsniff;
        /// Bytes of all messages.
        bytes: u64 => "bytes", count, Bytes, Plain, Netsniff;
        /// Messages of which a part could not be told into sets.
        damaged: u64 => "damaged", count, None, Plain, Netsniff;
        /// Sets of data; of NetFlow 5, messages.
        sets: u64 => "sets", count, None, Plain, Netsniff;
        /// Those that were read.
        decoded_sets: u64 => "decoded_sets", count, None, Plain, Netsniff;
        /// Those that wait for their template.
        waiting_sets: u64 => "waiting_sets", count, None, Plain, Netsniff;
        /// Those that were given up, since no template came for them, or since they are not what it says.
        undecoded_sets: u64 => "undecoded_sets", count, None, Plain, Netsniff;
        /// Records that were read.
        records: u64 => "records", count, None, Plain, Netsniff;
        /// Records that tell of connections.
        flows: u64 => "flows", count, None, Plain, Netsniff;
        /// Records that tell of the exporter.
        options: u64 => "options", count, None, Plain, Netsniff;
        /// Records that tell of no connection: without addresses, ports or times, or of an event.
        others: u64 => "others", count, None, Plain, Netsniff;
        /// Templates that hold.
        templates: u64 => "templates", count, None, Plain, Netsniff;
        /// Templates that make no sense, or for which there was no room.
        templates_refused: u64 => "templates_refused", count, None, Plain, Netsniff;
        /// Templates that were withdrawn, or not told again for too long.
        templates_ended: u64 => "templates_ended", count, None, Plain, Netsniff;
        /// How often the sequence numbers began anew: what was lost then is in no count.
        restarts: u64 => "restarts", count, Times, Plain, Netsniff;
        /// Records that are missing by the sequence numbers. Unset for NetFlow 9, whose numbers count messages, and where sets
        /// were not read, since nobody knows how many records they have.
        lost_records: Option<u64> => "lost_records", count, None, Plain, Netsniff;
        /// Messages that are missing by the sequence numbers. Unset for NetFlow 5 and IPFIX, whose numbers count records.
        lost_messages: Option<u64> => "lost_messages", count, None, Plain, Netsniff;
        /// One in so many packets was counted, as it was told last. Unset as in `exported`.
        sampling: Option<u64> => "sampling", count, None, Plain, Netsniff;
        /// Flow records that the exporter says it sent.
        told_exported: Option<u64> => "told_exported", count, None, Plain, Netsniff;
        /// Flow records that the exporter says it had and did not send.
        told_not_sent: Option<u64> => "told_not_sent", count, None, Plain, Netsniff;
        /// Packets that the exporter says it did not look at.
        told_ignored: Option<u64> => "told_ignored", count, Packets, Plain, Netsniff;
        /// Packets that the exporter says it dropped.
        told_dropped: Option<u64> => "told_dropped", count, Packets, Plain, Netsniff;
    }
}

crate::words! {
    /// How messages come.
    pub enum ExportTransport {
        /// Each in a datagram.
        Udp => "udp",
        /// In a connection.
        Tcp => "tcp",
    }
}
