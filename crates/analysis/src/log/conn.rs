//! The `conn` log: one row for each connection, as Zeek writes it, and what can be believed of it.

use netsniff_packet::{Address, Timestamp};

use crate::depth::Depth;
use crate::key::community_id::CommunityId;
use crate::key::uid::Uid;
use crate::record::{Interval, Port, Proto};

crate::record! {
    /// One row for each connection: a TCP connection, or an exchange of UDP or ICMP packets that no
    /// time-out divides.
    pub struct Conn<'a> => "conn" {
        /// Time of the first packet.
        ts: Timestamp => "ts", time, Seconds, Plain, Zeek;
        /// Identifier of the connection, the same in every log.
        uid: Uid => "uid", string, None, Plain, Zeek;
        /// Address of the originator.
        id_orig_h: Address => "id.orig_h", addr, None, Address, Zeek;
        /// Port of the originator; for ICMP the type.
        id_orig_p: Port => "id.orig_p", port, None, Plain, Zeek;
        /// Address of the responder.
        id_resp_h: Address => "id.resp_h", addr, None, Address, Zeek;
        /// Port of the responder; for ICMP the type of the answer, or the code.
        id_resp_p: Port => "id.resp_p", port, None, Plain, Zeek;
        /// Transport protocol.
        proto: Proto => "proto", enum, None, Plain, Zeek;
        /// Application protocols that the content showed, with commas between.
        service: Option<&'a str> => "service", string, None, Plain, Zeek;
        /// Time from the first packet to the last.
        duration: Option<Interval> => "duration", interval, Seconds, Plain, Zeek;
        /// Payload bytes that the originator sent; for TCP counted by sequence numbers.
        orig_bytes: Option<u64> => "orig_bytes", count, Bytes, Plain, Zeek;
        /// Payload bytes that the responder sent; for TCP counted by sequence numbers.
        resp_bytes: Option<u64> => "resp_bytes", count, Bytes, Plain, Zeek;
        /// How the connection began and ended. Unset where an exporter did not tell enough.
        conn_state: Option<ConnState> => "conn_state", string, None, Plain, Zeek;
        /// Whether the originator's address is local.
        local_orig: Option<bool> => "local_orig", bool, None, Plain, Zeek;
        /// Whether the responder's address is local.
        local_resp: Option<bool> => "local_resp", bool, None, Plain, Zeek;
        /// Payload bytes missing in the streams, for whatever cause. Unset for TCP at the depth `flows`.
        missed_bytes: Option<u64> => "missed_bytes", count, Bytes, Plain, Zeek;
        /// What happened, a letter each: upper case by the originator, lower case by the responder.
        history: Option<&'a str> => "history", string, None, Plain, Zeek;
        /// Packets that the originator sent.
        orig_pkts: Option<u64> => "orig_pkts", count, Packets, Plain, Zeek;
        /// Bytes of IP that the originator sent, headers included.
        orig_ip_bytes: Option<u64> => "orig_ip_bytes", count, Bytes, Plain, Zeek;
        /// Packets that the responder sent.
        resp_pkts: Option<u64> => "resp_pkts", count, Packets, Plain, Zeek;
        /// Bytes of IP that the responder sent, headers included.
        resp_ip_bytes: Option<u64> => "resp_ip_bytes", count, Bytes, Plain, Zeek;
        /// Identifiers of the connections that this one was tunnelled in.
        tunnel_parents: Option<&'a [Uid]> => "tunnel_parents", set[string], None, Plain, Zeek;
        /// Protocol number of the IP header.
        ip_proto: Option<u8> => "ip_proto", count, None, Plain, Zeek;
        /// Community ID version 1 with seed 0: a hash of the addresses, ports and protocol that is
        /// equal in other tools.
        community_id: Option<CommunityId> => "community_id", string, None, FromAddress, ZeekPolicy;
        /// Id of the outer VLAN.
        vlan: Option<i32> => "vlan", int, None, Plain, ZeekPolicy;
        /// Id of the inner VLAN.
        inner_vlan: Option<i32> => "inner_vlan", int, None, Plain, ZeekPolicy;
        /// Whether the capture lost anything of this connection, as far as anybody can tell.
        quality: Quality => "quality", enum, None, Plain, Netsniff;
        /// Payload bytes that the capture lost: acknowledged by the receiver and not seen, not even
        /// shortly after. Bytes that a snaplen cut were seen. Unset where only one side was seen, where
        /// more was lost at once than there is room to tell apart, and for anything but TCP.
        capture_missed_bytes: Option<u64> => "capture_missed_bytes", count, Bytes, Plain, Netsniff;
        /// Payload bytes that the network lost, before or behind the tap; each time that one was lost
        /// counts. Copies of which nothing tells why they were sent do not. Unset where no acknowledgements were seen,
        /// where more was lost at once than there is room to tell apart, and for anything but TCP.
        network_missed_bytes: Option<u64> => "network_missed_bytes", count, Bytes, Plain, Netsniff;
        /// How deep this connection was analysed, to its last packet. At any depth but `protocols` nobody
        /// looked for what is said in it: `service` is unset then, or has what was found before. What an exporter
        /// told of has the depth `flows`.
        depth: Depth => "depth", enum, None, Plain, Netsniff;
        /// Packets whose IPv4 header, TCP, UDP or ICMP checksum is wrong and that were analysed all
        /// the same; with `--checksums discard` those that were left out for it, apart from wrong
        /// IPv4 headers. Checksums that were left to the network card are not counted unless left
        /// out. Unset where nobody looked.
        bad_checksums: Option<u64> => "bad_checksums", count, Packets, Plain, Netsniff;
        /// How deep this connection was to be analysed when it began. A connection that was cut short has
        /// a lesser `depth`.
        depth_begin: Depth => "depth_begin", enum, None, Plain, Netsniff;
        /// Connections of one in so many pairs of addresses were captured (`--sample`), so that this one stands for
        /// as many. Unset where all were, and where the capture was taken by somebody else.
        sampling: Option<u64> => "sampling", count, None, Plain, Netsniff;
    }
}

crate::words! {
    /// How a connection began and ended, in Zeek's words.
    pub enum ConnState {
        /// An attempt to connect, without an answer.
        S0 => "S0",
        /// Established, not ended.
        S1 => "S1",
        /// Established and ended in order.
        Sf => "SF",
        /// The attempt was rejected.
        Rej => "REJ",
        /// Established; the originator wants to close, the responder did not answer to that.
        S2 => "S2",
        /// Established; the responder wants to close, the originator did not answer to that.
        S3 => "S3",
        /// Established; the originator aborted.
        Rsto => "RSTO",
        /// The responder aborted.
        Rstr => "RSTR",
        /// The originator sent a SYN and then a RST; the responder sent no SYN-ACK.
        Rstos0 => "RSTOS0",
        /// The responder sent a SYN-ACK and then a RST; the originator's SYN was not seen.
        Rstrh => "RSTRH",
        /// The originator sent a SYN and then a FIN; the responder sent no SYN-ACK.
        Sh => "SH",
        /// The responder sent a SYN-ACK and then a FIN; the originator's SYN was not seen.
        Shr => "SHR",
        /// No SYN was seen.
        Oth => "OTH",
    }
}

crate::words! {
    /// Whether a connection's record can be believed.
    pub enum Quality {
        /// Both sides were seen from the begin, and nothing that they say is missing.
        Clean => "clean",
        /// The capture lost something of it: the other side got what was never seen, or the capture
        /// tells of packets lost while it was alive, or messages of its exporter were.
        Touched => "touched",
        /// Something is missing, and its packets do not tell who lost it; or more was lost at once than there
        /// is room to tell apart; or the network seems to have lost what may only have been late; or both sides went on with
        /// numbers beyond all that they can have sent, or an acknowledgement of unseen data
        /// was contradicted, which somebody may have forged; or its last bytes have a wrong
        /// checksum and were not acknowledged; or only a FIN more than 1 GiB behind a SYN tells how
        /// much was sent.
        Suspect => "suspect",
        /// Its packets would not show a loss: it is not TCP, only one side was seen, it was picked up in
        /// its middle, or nobody looked (`depth` is `flows`), as with all that an exporter told of.
        Unknown => "unknown",
    }
}
