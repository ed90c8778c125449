//! TCP connections segment by segment, with positions in place of sequence numbers, and what the
//! engine makes of them.

use core::net::IpAddr;

use netsniff_analysis::file::HashKinds;
use netsniff_analysis::options::Urgent;
use netsniff_analysis::reassembly::piece::Overlap;
use netsniff_analysis::{Limits, Options};
use netsniff_packet::decode::TcpFlags;
use netsniff_packet::wire::tcp::TcpHeader;
use netsniff_packet::{Packet, Timestamp};
use netsniff_traffic::dialogue::Side;
use netsniff_traffic::frame::{Host, tcp_frame};

use crate::support::{Rows, analyse_with, packet};

pub(crate) use netsniff_traffic::dialogue::Side::{Client, Server};

pub(crate) const ACK: TcpFlags = TcpFlags::ACK;
pub(crate) const SYN: TcpFlags = TcpFlags::SYN;
pub(crate) const FIN_ACK: TcpFlags = TcpFlags::FIN.with(TcpFlags::ACK);
pub(crate) const RST_ACK: TcpFlags = TcpFlags::RST.with(TcpFlags::ACK);
pub(crate) const SYN_ACK: TcpFlags = TcpFlags::SYN.with(TcpFlags::ACK);

/// A segment with positions: the SYN of a side is 0, its first byte of data 1.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part<'a> {
    pub(crate) flags: TcpFlags,
    pub(crate) position: i64,
    pub(crate) acknowledged: i64,
    pub(crate) window: u16,
    pub(crate) urgent: u16,
    pub(crate) data: &'a [u8],
}

/// What passes the tap, a millisecond from one segment to the next.
#[derive(Clone, Debug)]
pub(crate) struct Wire {
    frames: Vec<(Timestamp, Vec<u8>)>,
    now: Timestamp,
    initial: [u32; 2],
    hosts: [Host; 2],
    /// The position that each side sends next.
    next: [i64; 2],
    overlap: Overlap,
    urgent: Urgent,
    identification: u16,
    /// Whether the next segment has a wrong checksum.
    is_damaged: bool,
    /// The time stamp of the next segment (RFC 7323).
    stamp: Option<u32>,
    /// The options of the next segment, where it has no time stamp.
    options: Vec<u8>,
}

impl Wire {
    /// A connection to a port that has not begun.
    pub(crate) fn new(port: u16) -> Self {
        Self::between([192, 0, 2, 1].into(), [198, 51, 100, 1].into(), port)
    }

    /// A connection over IPv6.
    pub(crate) fn over_v6(port: u16) -> Self {
        let host = |last| IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, last]);
        Self::between(host(1), host(2), port)
    }

    fn between(client: IpAddr, server: IpAddr, port: u16) -> Self {
        let (client, server) = (Host::new(client, 40_000), Host::new(server, port));
        Self {
            frames: Vec::new(),
            now: Timestamp::from_secs_nanos(1_767_225_600, 0),
            initial: [1_000, 900_000],
            hosts: [client, server],
            next: [0; 2],
            overlap: Overlap::First,
            urgent: Urgent::OutOfBand,
            identification: 0,
            is_damaged: false,
            stamp: None,
            options: Vec::new(),
        }
    }

    /// The next segment has these options (RFC 9293, 3.2), in whole words.
    pub(crate) fn options(&mut self, options: &[u8]) -> &mut Self {
        options.clone_into(&mut self.options);
        self
    }

    /// Segments have time stamps, the next one this.
    pub(crate) const fn stamped(&mut self, first: u32) -> &mut Self {
        self.stamp = Some(first);
        self
    }

    /// Where the numbers of client and server begin.
    pub(crate) const fn initial(&mut self, client: u32, server: u32) -> &mut Self {
        self.initial = [client, server];
        self
    }

    /// What follows passes so many hops less than other packets of its side may.
    pub(crate) const fn expired(&mut self, side: Side) -> &mut Self {
        self.hosts[side as usize].ttl = 1;
        self
    }

    /// What follows may reach its receiver again.
    pub(crate) const fn arrives(&mut self, side: Side) -> &mut Self {
        self.hosts[side as usize].ttl = 64;
        self
    }

    /// The next segment has a wrong checksum.
    pub(crate) const fn damaged(&mut self) -> &mut Self {
        self.is_damaged = true;
        self
    }

    /// The next connection between the same ports, with other numbers.
    pub(crate) fn anew(&mut self, client: u32, server: u32) -> &mut Self {
        (self.initial, self.next) = ([client, server], [0; 2]);
        self
    }

    pub(crate) fn overlap(&mut self, overlap: Overlap) -> &mut Self {
        self.overlap = overlap;
        self
    }

    pub(crate) const fn urgent(&mut self, urgent: Urgent) -> &mut Self {
        self.urgent = urgent;
        self
    }

    pub(crate) fn pass(&mut self, millis: i64) -> &mut Self {
        self.now = self.now.offset(millis * 1_000_000);
        self
    }

    /// The position that a side sends next.
    pub(crate) const fn next(&self, side: Side) -> i64 {
        self.next[side as usize]
    }

    /// What a side would send next, as an acknowledgement without data.
    pub(crate) const fn part(&self, side: Side) -> Part<'static> {
        Part {
            flags: ACK,
            position: self.next[side as usize],
            acknowledged: self.next[side.other() as usize],
            window: 64_000,
            urgent: 0,
            data: &[],
        }
    }

    /// Any segment, of which the ends know nothing.
    pub(crate) fn put(&mut self, side: Side, part: &Part<'_>) -> &mut Self {
        let [own, other] = [side as usize, side.other() as usize];
        let mut stamps = [1, 1, 8, 10, 0, 0, 0, 0, 0, 0, 0, 0];
        let given = core::mem::take(&mut self.options);
        let mut options = &given[..];
        if let Some(stamp) = &mut self.stamp {
            stamps[4..8].copy_from_slice(&stamp.to_be_bytes());
            *stamp = stamp.wrapping_add(1);
            options = &stamps;
        }
        let header = TcpHeader {
            source_port: 0,
            destination_port: 0,
            sequence: self.initial[own].wrapping_add(part.position as u32),
            acknowledgement: if part.flags.any(ACK) {
                self.initial[other].wrapping_add(part.acknowledged as u32)
            } else {
                0
            },
            flags: part.flags.0,
            window: part.window,
            checksum: 0,
            urgent_pointer: part.urgent,
            options,
        };
        self.identification += 1;
        let [source, destination] = [&self.hosts[own], &self.hosts[other]];
        let frame = tcp_frame(source, destination, self.identification, &header, part.data);
        let mut frame = frame.unwrap();
        if core::mem::take(&mut self.is_damaged) {
            let at = frame.len() - part.data.len() - options.len() - 4;
            frame[at] ^= 0x55;
        }
        self.frames.push((self.now, frame));
        self.pass(1)
    }

    /// A SYN, with or without an acknowledgement, and data in it.
    pub(crate) fn syn(&mut self, side: Side, flags: TcpFlags, data: &[u8]) -> &mut Self {
        let part = Part { flags, data, ..self.part(side) };
        self.next[side as usize] = 1 + data.len() as i64;
        self.put(side, &part)
    }

    /// The three-way handshake.
    pub(crate) fn open(&mut self) -> &mut Self {
        self.syn(Client, SYN, b"").syn(Server, SYN_ACK, b"").acks(Client)
    }

    pub(crate) fn acks(&mut self, side: Side) -> &mut Self {
        self.put(side, &self.part(side))
    }

    /// Data without an acknowledgement.
    pub(crate) fn sends(&mut self, side: Side, data: impl AsRef<[u8]>) -> &mut Self {
        let part = Part { data: data.as_ref(), ..self.part(side) };
        self.next[side as usize] += part.data.len() as i64;
        self.put(side, &part)
    }

    /// Data and its acknowledgement.
    pub(crate) fn says(&mut self, side: Side, data: impl AsRef<[u8]>) -> &mut Self {
        self.sends(side, data).acks(side.other())
    }

    /// Data that does not pass the tap.
    pub(crate) const fn hides(&mut self, side: Side, data: &[u8]) -> &mut Self {
        self.next[side as usize] += data.len() as i64;
        self
    }

    /// Data at a position, of which the ends know nothing.
    pub(crate) fn data_at(&mut self, side: Side, position: i64, data: &[u8]) -> &mut Self {
        self.put(side, &Part { position, data, ..self.part(side) })
    }

    /// A FIN and its acknowledgement.
    pub(crate) fn ends(&mut self, side: Side) -> &mut Self {
        let part = Part { flags: FIN_ACK, ..self.part(side) };
        self.put(side, &part);
        self.next[side as usize] += 1;
        self.acks(side.other())
    }

    /// The capture begins behind the first segment.
    pub(crate) fn drop_first(&mut self) -> &mut Self {
        self.frames.remove(0);
        self
    }

    /// The first two segments are captured in the wrong order.
    pub(crate) fn swap_first(&mut self) -> &mut Self {
        self.late_first(1)
    }

    /// The first segment is captured behind so many others.
    pub(crate) fn late_first(&mut self, others: usize) -> &mut Self {
        let times: Vec<_> = self.frames.iter().map(|(time, _)| *time).collect();
        self.frames[..=others].rotate_left(1);
        self.frames.iter_mut().zip(times).for_each(|(frame, time)| frame.0 = time);
        self
    }

    /// How many segments there were so far.
    pub(crate) fn len(&self) -> usize {
        self.frames.len()
    }

    /// Its segments as packets.
    pub(crate) fn packets(&self) -> impl Iterator<Item = Packet<'_>> {
        self.frames.iter().map(|(timestamp, frame)| packet(*timestamp, frame))
    }

    /// What the engine makes of it.
    pub(crate) fn logs(&self) -> Logs {
        let hashes = HashKinds { sha1: true, ..HashKinds::default() };
        let (overlap, urgent) = (self.overlap, self.urgent);
        let options = Options { overlap, urgent, hashes, ..Options::default() };
        Logs(analyse_with(self.packets(), Limits::default(), options).0)
    }
}

/// Rows of all logs.
pub(crate) struct Logs(pub(crate) Rows);

impl Logs {
    /// Some columns of a log, as words in a line for each row.
    pub(crate) fn lines(&self, log: &str, columns: &[&str]) -> Vec<String> {
        let line = |row: &&crate::support::Row| {
            columns.iter().map(|name| row[*name].as_str()).collect::<Vec<_>>().join(" ")
        };
        self.0.log(log).iter().map(line).collect()
    }

    /// Requests and responses.
    pub(crate) fn http(&self) -> Vec<String> {
        let columns =
            ["method", "uri", "request_body_len", "status_code", "status_msg", "response_body_len"];
        self.lines("http", &columns)
    }

    /// Bodies, with the hash of their bytes.
    pub(crate) fn files(&self) -> Vec<String> {
        self.lines("files", &["is_orig", "seen_bytes", "missing_bytes", "sha1"])
    }

    /// The connections: service, state, bytes, what was missed, history and quality.
    pub(crate) fn conn(&self) -> Vec<String> {
        let columns = [
            "service",
            "conn_state",
            "orig_bytes",
            "resp_bytes",
            "missed_bytes",
            "history",
            "quality",
            "capture_missed_bytes",
        ];
        self.lines("conn", &columns)
    }

    /// The oddities behind whose they are.
    pub(crate) fn weirds(&self) -> Vec<String> {
        self.lines("weird", &["source", "name"])
    }
}
