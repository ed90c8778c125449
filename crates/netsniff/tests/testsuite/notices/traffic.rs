//! Captures with traffic that deserves a look, and with such that only looks like it.

use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use netsniff_packet::decode::TcpFlags;
use netsniff_packet::wire::tcp::TcpHeader;
use netsniff_packet::{Batch, LinkType, Packet, Progress, Source as _, Timestamp, checksum};
use netsniff_pcapfile::{PcapWriter, Reader};
use netsniff_traffic::dialogue::{Dialogue, Setup, Side};
use netsniff_traffic::frame::{Host, tcp_frame, udp_frame};

use crate::zeek::corpus::Scratch;

/// The client of all traffic.
pub(super) const CLIENT: &str = "192.0.2.1";
/// Its server.
pub(super) const SERVER: &str = "198.51.100.1";

pub(super) fn host(address: &str, port: u16) -> Host {
    Host::new(address.parse::<IpAddr>().unwrap(), port)
}

/// Frames of a capture, in any order until they are written.
#[derive(Default)]
pub(super) struct Traffic {
    frames: Vec<(Timestamp, Vec<u8>)>,
    /// The port of the next connection.
    port: u16,
    identification: u16,
}

/// Milliseconds behind the begin.
pub(super) fn at(milliseconds: u64) -> Timestamp {
    Setup::default().start + Duration::from_millis(milliseconds)
}

impl Traffic {
    /// Setup of a connection with a port of its own.
    pub(super) fn setup(&mut self, server: Host, milliseconds: u64) -> Setup {
        self.port += 1;
        let client = host(CLIENT, 40_000 + self.port);
        Setup { client, server, start: at(milliseconds), ..Setup::default() }
    }

    /// What a script says on a connection.
    pub(super) fn dialogue(&mut self, setup: Setup, script: impl Fn(&mut Dialogue)) {
        let mut dialogue = Dialogue::new(setup);
        dialogue.connect();
        script(&mut dialogue);
        let frames = dialogue.finish().seen.into_iter();
        self.frames.extend(frames.map(|seen| (seen.timestamp, seen.frame)));
    }

    /// A request with an answer.
    pub(super) fn exchange(&mut self, server: Host, milliseconds: u64, request: usize) {
        let setup = self.setup(server, milliseconds);
        self.dialogue(setup, |dialogue| {
            dialogue.say(Side::Client, &vec![1; request]).say(Side::Server, &[2; 500]);
            dialogue.close(Side::Client).close(Side::Server);
        });
    }

    /// An attempt to connect that a host rejects, or leaves without an answer.
    pub(super) fn attempt(&mut self, server: Host, milliseconds: u64, is_rejected: bool) {
        let client = self.setup(server, milliseconds).client;
        self.segment(&client, &server, TcpFlags::SYN, (100, 0), milliseconds);
        if is_rejected {
            let flags = TcpFlags::RST.with(TcpFlags::ACK);
            self.segment(&server, &client, flags, (0, 101), milliseconds + 1);
        }
    }

    /// What a FIN scan sends to a port that does not answer: the end of no connection, and once more.
    pub(super) fn fin_probe(&mut self, server: Host, milliseconds: u64) {
        let client = self.setup(server, milliseconds).client;
        for time in [milliseconds, milliseconds + 1000] {
            self.segment(&client, &server, TcpFlags::FIN, (100, 0), time);
        }
    }

    /// A segment without payload, by its sequence and acknowledgement numbers.
    fn segment(
        &mut self,
        from: &Host,
        to: &Host,
        flags: TcpFlags,
        (sequence, acknowledgement): (u32, u32),
        milliseconds: u64,
    ) {
        let header = TcpHeader {
            source_port: 0,
            destination_port: 0,
            sequence,
            acknowledgement,
            flags: flags.0,
            window: 1000,
            checksum: 0,
            urgent_pointer: 0,
            options: &[],
        };
        let frame = tcp_frame(from, to, 7, &header, &[]).unwrap();
        self.frames.push((at(milliseconds), frame));
    }

    pub(super) fn datagram(&mut self, from: Host, to: Host, milliseconds: u64, payload: &[u8]) {
        self.identification += 1;
        let frame = udp_frame(&from, &to, self.identification, payload).unwrap();
        self.frames.push((at(milliseconds), frame));
    }

    /// A query of DNS for an address, with an answer that there is no such name.
    pub(super) fn query(&mut self, name: &str, milliseconds: u64) {
        let mut message = vec![0, self.identification as u8, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        for label in name.split('.') {
            message.push(label.len() as u8);
            message.extend_from_slice(label.as_bytes());
        }
        message.extend_from_slice(&[0, 0, 1, 0, 1]);
        self.port += 1;
        let (client, resolver) = (host(CLIENT, 20_000 + self.port), host(SERVER, 53));
        self.datagram(client, resolver, milliseconds, &message);
        (message[2], message[3]) = (0x81, 0x83);
        self.datagram(resolver, client, milliseconds + 3, &message);
    }

    /// A host says by ARP that an address is its own, maybe in a VLAN.
    pub(super) fn arp(&mut self, mac: u8, address: [u8; 4], milliseconds: u64, vlan: Option<u8>) {
        let mut frame = vec![0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, mac];
        frame.extend(vlan.into_iter().flat_map(|vlan| [0x81, 0, 0, vlan]));
        frame.extend_from_slice(&[8, 6, 0, 1, 8, 0, 6, 4, 0, 2, 2, 0, 0, 0, 0, mac]);
        frame.extend_from_slice(&address);
        frame.extend_from_slice(&[0; 28]);
        self.frames.push((at(milliseconds), frame));
    }

    /// A router tells the client by ICMP that its packet was too large.
    pub(super) fn too_big(&mut self, milliseconds: u64) {
        let mut icmp =
            vec![3, 4, 0, 0, 0, 0, 5, 0x14, 0x45, 0, 5, 0xdc, 0, 7, 0x40, 0, 63, 6, 0, 0];
        icmp.extend_from_slice(&[192, 0, 2, 1, 198, 51, 100, 1, 0x9c, 0x41, 0, 80, 0, 0, 0, 1]);
        let sum = checksum::compute(&icmp).to_be_bytes();
        icmp[2..4].copy_from_slice(&sum);
        let (router, client) = (host("192.0.2.254", 0), host(CLIENT, 0));
        let mut frame = [client.mac, router.mac].concat();
        frame.extend_from_slice(&[
            8,
            0,
            0x45,
            0,
            0,
            (20 + icmp.len()) as u8,
            0,
            9,
            0,
            0,
            64,
            1,
            0,
            0,
        ]);
        frame.extend_from_slice(&[192, 0, 2, 254, 192, 0, 2, 1]);
        let sum = checksum::compute(&frame[14..34]).to_be_bytes();
        frame[24..26].copy_from_slice(&sum);
        frame.extend_from_slice(&icmp);
        self.frames.push((at(milliseconds), frame));
    }

    /// Every frame a second time, a little later.
    pub(super) fn doubled(mut self) -> Self {
        let copies =
            self.frames.iter().map(|(time, frame)| (*time + Duration::from_micros(9), frame));
        let copies: Vec<_> = copies.map(|(time, frame)| (time, frame.clone())).collect();
        self.frames.extend(copies);
        self
    }

    /// What the client sent alone.
    pub(super) fn one_way(mut self) -> Self {
        let client = CLIENT.parse::<std::net::Ipv4Addr>().unwrap().octets();
        self.frames.retain(|(_, frame)| frame[26..30] == client);
        self
    }

    /// The traffic of both.
    pub(super) fn with(mut self, other: Self) -> Self {
        self.frames.extend(other.frames);
        self
    }

    /// Writes it to a capture.
    pub(super) fn write(mut self, scratch: &Scratch) -> PathBuf {
        self.frames.sort_by_key(|(timestamp, _)| *timestamp);
        fs::create_dir_all(scratch.path()).unwrap();
        let path = scratch.path().join("capture.pcap");
        write(&path, &self.frames);
        path
    }
}

pub(super) fn write(path: &Path, frames: &[(Timestamp, Vec<u8>)]) {
    let mut writer = PcapWriter::new(Vec::new(), LinkType::ETHERNET, 65_535).unwrap();
    for (timestamp, data) in frames {
        let (wire_len, link_type) = (data.len() as u32, LinkType::ETHERNET);
        let packet = Packet { timestamp: *timestamp, wire_len, data, link_type, interface: 0 };
        writer.write_packet(&packet).unwrap();
    }
    fs::write(path, writer.finish().unwrap()).unwrap();
}

/// A capture as if it had been taken so much later.
pub(super) fn later(capture: &Path, time: Duration, scratch: &Scratch) -> PathBuf {
    let mut reader = Reader::new(fs::File::open(capture).unwrap()).unwrap();
    let (mut batch, mut frames, mut progress) = (Batch::default(), Vec::new(), Progress::More);
    while progress == Progress::More {
        progress = reader.read_batch(&mut batch).unwrap();
        frames.extend(batch.iter().map(|packet| (packet.timestamp + time, packet.data.to_vec())));
    }
    fs::create_dir_all(scratch.path()).unwrap();
    let path = scratch.path().join("later.pcap");
    write(&path, &frames);
    path
}
