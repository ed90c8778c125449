//! The summary of an analysis: plain data, printed for people or as JSON.

mod capture;
mod cut_headers;
mod delivery;
mod layout;
mod stamps;
mod text;

pub use capture::{CaptureBooks, CaptureReport};
pub use cut_headers::{CutHeaderBooks, cut_headers, cut_headers_now};
pub use layout::Style;
pub use stamps::equal_stamps;

use netsniff_console::printable::printable_json;
use netsniff_packet::Timestamp;
use serde::{Serialize, Serializer};

/// What an analysis found. Lists come sorted, the most important first, and as long as they are to
/// be shown; sections with nothing to say are empty and left out of the text.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Summary {
    /// The files or interfaces that were read.
    pub input: Input,
    /// Packets and bytes by layer, each followed by the layers inside it.
    pub layers: Vec<Layer>,
    /// The addresses with most bytes.
    pub talkers: Vec<Talker>,
    /// The connections with most bytes.
    pub connections: Vec<Connection>,
    /// How TCP fares; `None` where there is none.
    pub tcp: Option<TcpHealth>,
    /// How often each oddity was met, by its name.
    pub oddities: Vec<Count>,
    /// Flows by state and by what ended them; `None` where packets were counted only.
    pub flows: Option<Flows>,
    /// What became of files that were to be extracted; `None` where none were.
    pub extracted: Option<Extracted>,
    /// What the packets' checksums say.
    pub checksums: Checksums,
    /// Where the packets of a live capture went before they came in; empty for files.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub capture: Vec<CaptureBooks>,
    /// Where the rows went that were to be delivered; empty where none were.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub delivery: Vec<netsniff_delivery::Books>,
    /// Where every packet went.
    pub books: Books,
    /// What else must be known to believe the logs: bounds reached, offloads, lost precision.
    pub notes: Vec<String>,
}

/// The files or interfaces that were read.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Input {
    /// The files or interfaces in their order.
    pub sources: Vec<InputSource>,
    /// The filters that packets had to pass; empty where all were wanted.
    pub filters: Vec<String>,
    /// Number of packets read.
    pub packets: u64,
    /// Packets that no filter refused. The layers are shares of these.
    pub wanted_packets: u64,
    /// Bytes on the wire, as the captures tell.
    pub wire_bytes: u64,
    /// Bytes on the wire of the wanted packets.
    pub wanted_bytes: u64,
    /// Bytes captured; less where packets were cut.
    pub captured_bytes: u64,
    /// Earliest timestamp.
    #[serde(serialize_with = "seconds")]
    pub first: Option<Timestamp>,
    /// Latest timestamp.
    #[serde(serialize_with = "seconds")]
    pub last: Option<Timestamp>,
    /// How several files were read.
    #[serde(skip)]
    pub order: &'static str,
    /// What became of the files with `--jobs`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jobs: Option<JobBooks>,
    /// Whether it was captured by this run.
    #[serde(skip)]
    pub is_live: bool,
    /// What the analysis took, in nanoseconds of wall time.
    #[serde(rename = "elapsed_seconds", serialize_with = "nanos_as_seconds")]
    pub elapsed_nanos: Option<u64>,
}

/// Files that are analysed by themselves, and what became of that.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct JobBooks {
    /// Files with packets.
    pub files: usize,
    /// Those whose analysis by itself is the same as in order, and was taken.
    pub apart: usize,
    /// Those of which pairs of hosts were analysed by themselves, and the others in order.
    pub by_pairs: usize,
    /// Those that were analysed in order.
    pub in_order: usize,
    /// Bytes of packets that were analysed twice: by themselves in vain, and in order.
    pub read_again_bytes: u64,
}

/// One file or interface.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct InputSource {
    /// Name of the file or interface.
    pub name: String,
    /// Its format, as `pcap, nanoseconds`.
    pub format: String,
    /// How it is packed, the outermost layer first.
    pub compression: Vec<String>,
    /// Size of the file in bytes, if it is one.
    pub bytes: Option<u64>,
    /// Packets read from it.
    pub packets: u64,
    /// The interfaces on which it was captured.
    pub interfaces: Vec<CaptureInterface>,
    /// Number of places at which the file is damaged.
    pub damage_count: u64,
    /// The first of them, a sentence each, with packet number and offset, and failures to read.
    pub damage: Vec<String>,
}

/// An interface as its file describes it; `None` is what the file does not tell.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CaptureInterface {
    /// Name of the interface, as the file says.
    pub name: Option<String>,
    /// The link type's name.
    pub link_type: String,
    /// Packets that it dropped.
    pub dropped_by_interface: Option<u64>,
    /// Packets that the operating system dropped.
    pub dropped_by_os: Option<u64>,
    /// Packets lost between single packets, as these tell.
    pub dropped_between_packets: Option<u64>,
}

/// Packets and bytes of one layer.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Layer {
    /// Name of the protocol.
    pub name: String,
    /// How many layers are around it.
    pub depth: usize,
    /// Packets that have this layer.
    pub packets: u64,
    /// Bytes of these packets on the wire.
    pub bytes: u64,
}

/// An address and its traffic.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Talker {
    /// The host's address.
    pub address: String,
    /// Bytes of IP that it sent.
    pub sent_bytes: u64,
    /// Bytes of IP that it received.
    pub received_bytes: u64,
    /// Connections that it had.
    pub flows: u64,
}

/// One of the connections with the most bytes.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Connection {
    /// Identifier, as in the logs.
    pub uid: String,
    /// Address and port of the originator.
    pub originator: String,
    /// Address and port of the responder.
    pub responder: String,
    /// Transport protocol.
    pub proto: String,
    /// Application protocol, if known.
    pub service: Option<String>,
    /// Zeek's `conn_state`.
    pub state: String,
    /// From the first packet to the last.
    #[serde(rename = "duration_seconds", serialize_with = "nanos_as_seconds")]
    pub duration_nanos: Option<u64>,
    /// Packets in both directions.
    pub packets: u64,
    /// Bytes of IP in both directions.
    pub bytes: u64,
}

/// How healthy the TCP connections are.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TcpHealth {
    /// Number of TCP connections.
    pub connections: u64,
    /// Connections whose handshake was complete.
    pub established: u64,
    /// Attempts that a reset rejected.
    pub rejected: u64,
    /// Attempts without an answer.
    pub unanswered: u64,
    /// Connections that a reset ended.
    pub reset: u64,
    /// Segments with payload: this and the three below are the sums of the columns of the log `tcp`, `None` where
    /// connections have no row there.
    pub data_segments: Option<u64>,
    /// Segments that were retransmitted.
    pub retransmitted: Option<u64>,
    /// Segments out of order, which were not sent again.
    pub out_of_order: Option<u64>,
    /// Copies of segments that the network or the capture made.
    pub duplicates: Option<u64>,
    /// Connections with payload that was acknowledged but never seen: the capture lost it.
    /// `None` where nobody looked.
    pub with_gaps: Option<u64>,
    /// Bytes of such payload.
    pub missed_bytes: Option<u64>,
    /// Holes whose data came after its acknowledgement, but in time: nothing was lost.
    pub acknowledged_early: Option<u64>,
    /// Median of the handshakes' round-trip times.
    #[serde(rename = "rtt_median_seconds", serialize_with = "nanos_as_seconds")]
    pub rtt_median_nanos: Option<u64>,
    /// What 95 of 100 handshakes' round-trip times are below.
    #[serde(rename = "rtt_p95_seconds", serialize_with = "nanos_as_seconds")]
    pub rtt_p95_nanos: Option<u64>,
}

/// How often something was there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Count {
    /// The name of what is counted.
    pub name: String,
    /// How often it was met.
    pub count: u64,
}

/// Flows by what became of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Flows {
    /// Number of flows.
    pub total: u64,
    /// Number of flows by transport protocol.
    pub by_protocol: Vec<Count>,
    /// Number of flows by Zeek's `conn_state`.
    pub by_state: Vec<Count>,
    /// By what ended them: closed, time-out, a bound, the end of the input.
    pub by_end: Vec<Count>,
    /// By application protocol; a flow that spoke several counts in each.
    pub by_service: Vec<Count>,
    /// Number of flows by quality.
    pub by_quality: Vec<Count>,
    /// How holes in TCP streams ended: filled by what came later, or as gaps by their causes.
    pub holes: Vec<Count>,
    /// Sessions of protocols that failed by a fault of this program.
    pub failed_sessions: u64,
    /// The most that were held at once. With several workers, their peaks added up.
    pub peak: u64,
    /// The most bytes of memory that they took, looked at behind every 16 packets of a worker: what was held only
    /// between is not in it.
    pub peak_bytes: u64,
    /// The most bytes of memory that waited behind holes in streams at once, looked at behind every segment. With several
    /// workers, their peaks added up.
    pub peak_held_bytes: u64,
}

/// What became of the content of files.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Extracted {
    /// Files that were written.
    pub files: u64,
    /// Their bytes, those among them that are missing and stand as zeros.
    pub bytes: u64,
    /// Files of which only the begin was written, since they are longer than one may be.
    pub cut_off: u64,
    /// Files that were not written since a bound of all together was reached.
    pub refused: u64,
    /// Files that were not written since they came faster than the disk takes them; live only.
    pub overrun: u64,
    /// Files that could not be written.
    pub failed: u64,
}

/// What the packets' checksums say, by protocol; `None` where they were not looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Checksums {
    /// What became of packets with wrong ones: `count`, `discard` or `ignore`.
    pub mode: String,
    /// Datagrams left out for wrong checksums of TCP, UDP or ICMP. Packets left out for wrong IP
    /// headers stand in the books.
    pub discarded: u64,
    /// IP headers, those of fragments and inside tunnels included. IPv6 has no checksum.
    pub ip: Option<ChecksumCounts>,
    /// Checksums of TCP segments.
    pub tcp: Option<ChecksumCounts>,
    /// Checksums of UDP datagrams.
    pub udp: Option<ChecksumCounts>,
    /// ICMP and ICMPv6 messages.
    pub icmp: Option<ChecksumCounts>,
    /// SCTP packets, whose checksums are not verified.
    pub sctp: Option<ChecksumCounts>,
}

impl Checksums {
    /// The counts with the protocols' names.
    #[must_use]
    pub const fn by_protocol(&self) -> [(&'static str, Option<ChecksumCounts>); 5] {
        let Self { ip, tcp, udp, icmp, sctp, .. } = *self;
        [("IP", ip), ("TCP", tcp), ("UDP", udp), ("ICMP", icmp), ("SCTP", sctp)]
    }
}

/// Checksums by what they say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ChecksumCounts {
    /// Number of checksums that fit.
    pub good: u64,
    /// Those that do not.
    pub bad: u64,
    /// Those that their sender left to the network card.
    pub partial: u64,
    /// Packets that have none.
    pub absent: u64,
    /// Those that cannot be verified: not all bytes were captured, or the algorithm is not known.
    pub unknown: u64,
}

/// Where every packet went: each line has a counter of its own.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Books {
    /// Packets that came in.
    pub read: u64,
    /// Where they went: analysed, filtered out, of an unsupported link type, and so on.
    pub parts: Vec<Part>,
    /// Packets that never came in, as far as the capture tells: no part of those above.
    pub lost: Vec<Part>,
    /// Where between the packets they were lost.
    pub holes: Holes,
}

/// Places between packets at which a capture lost some, as it tells itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Holes {
    /// Number of places.
    pub places: u64,
    /// Packets lost there; what two counters tell of the same packets counts once.
    pub packets: u64,
}

/// A line of the books.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Part {
    /// What became of the packets.
    pub name: String,
    /// How many; `None` where nobody can tell.
    pub packets: Option<u64>,
}

impl Books {
    /// Packets that came in and stand in no part, negative where parts count packets twice.
    ///
    /// The one number that is a difference; `None` while any part is unavailable.
    #[must_use]
    pub fn unexplained(&self) -> Option<i128> {
        let parts = self.parts.iter().map(|part| part.packets.map(i128::from));
        let sum: i128 = parts.sum::<Option<i128>>()?;
        Some(i128::from(self.read) - sum)
    }
}

impl Summary {
    /// The summary as text of 80 columns.
    #[must_use]
    pub fn text(&self, style: Style) -> String {
        text::render(self, style)
    }

    /// The summary as one JSON document; times are in seconds.
    ///
    /// # Errors
    ///
    /// Never with the types of this module; the serializer's own signature has it.
    pub fn json(&self) -> serde_json::Result<String> {
        let mut value = serde_json::to_value(self)?;
        let unexplained = self.books.unexplained().and_then(|count| i64::try_from(count).ok());
        value["books"]["unexplained"] = unexplained.into();
        Ok(printable_json(&format!("{value:#}\n")).into_owned())
    }
}

fn seconds<S: Serializer>(time: &Option<Timestamp>, serializer: S) -> Result<S::Ok, S::Error> {
    time.map(|time| time.nanos() as f64 / 1e9).serialize(serializer)
}

fn nanos_as_seconds<S: Serializer>(nanos: &Option<u64>, serializer: S) -> Result<S::Ok, S::Error> {
    nanos.map(|nanos| nanos as f64 / 1e9).serialize(serializer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_books_close_or_say_that_they_cannot() {
        let part = |packets| Part { name: String::new(), packets };
        let books = |read, parts: &[Option<u64>]| Books {
            read,
            parts: parts.iter().copied().map(part).collect(),
            lost: vec![part(None), part(Some(5))],
            holes: Holes::default(),
        };
        assert_eq!(books(10, &[Some(7), Some(3)]).unexplained(), Some(0));
        assert_eq!(books(10, &[Some(7)]).unexplained(), Some(3));
        assert_eq!(books(10, &[Some(7), Some(4)]).unexplained(), Some(-1));
        assert_eq!(books(10, &[Some(7), None]).unexplained(), None);
        assert_eq!(books(0, &[Some(u64::MAX), Some(u64::MAX)]).unexplained().unwrap() >> 64, -2);
    }
}
