//! What is told: a connection, and the end of a run.

use netsniff_packet::{Address, Timestamp};

/// What one side of a connection sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Side {
    /// Packets.
    pub packets: u64,
    /// Bytes of IP, headers included.
    pub octets: u64,
    /// Bytes behind the transport header, where they are known.
    pub payload_octets: Option<u64>,
}

/// A connection, as its row in the log `conn` has it. What the row does not tell is unset, or text without a letter.
#[derive(Clone, Copy, Debug)]
pub struct Connection<'a> {
    /// Who watched.
    pub sensor: &'a str,
    /// The analysis.
    pub run: &'a str,
    /// The number of the row in this run, from 0 on.
    pub seq: u64,
    /// Identifier of the connection in all logs.
    pub uid: &'a str,
    /// Time of the first packet.
    pub start: Timestamp,
    /// Time of the last packet.
    pub end: Option<Timestamp>,
    /// Address of the originator.
    pub originator: Address,
    /// Address of the responder.
    pub responder: Address,
    /// Ports of both, originator first; 0 for protocols without ports.
    pub ports: [u16; 2],
    /// Type and code, of ICMP.
    pub icmp: Option<(u8, u8)>,
    /// Protocol number of the IP header.
    pub protocol: u8,
    /// What both sent, originator first.
    pub sent: [Side; 2],
    /// TCP flags that were seen of both, originator first.
    pub tcp_flags: Option<[u16; 2]>,
    /// Whether a FIN or RST ended it.
    pub is_ended: bool,
    /// Application protocols, with commas between.
    pub service: &'a str,
    /// How it began and ended, in Zeek's words.
    pub state: &'a str,
    /// What happened, a letter each.
    pub history: &'a str,
    /// Id of the outer VLAN.
    pub vlan: Option<u16>,
    /// Id of the inner VLAN.
    pub inner_vlan: Option<u16>,
    /// Whether the capture lost anything of it.
    pub quality: &'a str,
    /// How deep it was analysed.
    pub depth: &'a str,
    /// Payload bytes that are missing, for whatever cause.
    pub missed: Option<u64>,
    /// Payload bytes that the capture lost.
    pub capture_missed: Option<u64>,
    /// Payload bytes that the network lost.
    pub network_missed: Option<u64>,
    /// Packets with a wrong checksum.
    pub bad_checksums: Option<u64>,
    /// Connections of one in so many pairs of addresses were captured.
    pub sampling: Option<u64>,
}

/// The end of a run.
#[derive(Clone, Copy, Debug)]
pub struct RunEnd<'a> {
    /// Who watched.
    pub sensor: &'a str,
    /// The analysis.
    pub run: &'a str,
    /// How many connections it had.
    pub rows: u64,
}

/// What one record tells.
#[derive(Clone, Debug)]
pub enum Told<'a> {
    /// A connection.
    Connection(Box<Connection<'a>>),
    /// The end of a run.
    End(RunEnd<'a>),
}

impl<'a> From<Connection<'a>> for Told<'a> {
    fn from(connection: Connection<'a>) -> Self {
        Self::Connection(Box::new(connection))
    }
}
