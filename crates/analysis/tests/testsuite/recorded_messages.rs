//! The recorded messages of every protocol over UDP, cut and changed everywhere: none does harm. Where a message
//! makes one row or one oddity, its verdict says which.

use crate::support;
use std::path::Path;

use netsniff_analysis::Limits;
use netsniff_analysis::file::{Bodies, HashKinds};
use netsniff_analysis::protocol::{
    Datagram, DatagramVerdict, Findings, Protocol, ProtocolId, Role, Session, SessionContext,
};
use netsniff_packet::Timestamp;
use netsniff_packet::decode::{self, Transport};

/// Enough messages of one length to see all of its fields changed.
const EACH: usize = 4;

/// Messages of one protocol, which are enough.
const MOST: usize = 60;

/// The messages of the recorded captures to some ports, a few of each length.
fn recorded(ports: &[u16]) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/recorded");
    let mut messages: Vec<Vec<u8>> = Vec::new();
    let captures =
        ["protocols.pcapng", "office.pcapng"].map(|name| support::read(&folder.join(name)));
    for batch in captures.into_iter().flatten() {
        for packet in batch.iter() {
            let decoded = decode::packet(packet.link_type, packet.data, packet.wire_len);
            let Transport::Udp(header) = &decoded.transport else { continue };
            let begin = header.payload_offset as usize;
            let message = &packet.data[begin..begin + header.payload_captured as usize];
            let alike = messages.iter().filter(|other| other.len() == message.len()).count();
            let is_of_them = ports.contains(&header.destination_port);
            if is_of_them
                && alike < EACH
                && messages.len() < MOST
                && !messages.iter().any(|other| other == message)
            {
                messages.push(message.to_vec());
            }
        }
    }
    messages
}

fn session(protocol: &dyn Protocol, limits: &Limits) -> Box<dyn Session> {
    let (name, hashes) = (0, HashKinds::default());
    protocol.session(&SessionContext {
        limits,
        name,
        port: 0,
        hashes,
        bodies: Bodies::default(),
        is_midstream: false,
        is_multicast: false,
        crossing_port: None,
    })
}

/// What became of messages.
#[derive(Debug, Default)]
struct Told {
    messages: usize,
    records: usize,
    weirds: usize,
}

impl Told {
    fn message(&mut self, protocol: &dyn Protocol, limits: &Limits, payload: &[u8]) {
        let (mut session, mut found) = (session(protocol, limits), Findings::default());
        let (time, from) = (Timestamp::EPOCH, Role::Originator);
        let port = protocol.udp_ports().first().copied().unwrap_or(0);
        let _ = (protocol.sender(port, payload), protocol.detect_datagram(payload));
        let verdict = session.datagram(&Datagram { time, from, port, payload }, &mut found);
        assert!(session.heap_bytes() < MOST_HELD, "{}: {payload:?}", protocol.name());
        session.end(&mut found);
        let (records, weirds) = (found.records.len(), found.weirds.drain().count());
        if ONE_EACH.contains(&protocol.name()) {
            assert!(records <= 1 && weirds <= 1);
            let contradicts = verdict == DatagramVerdict::Contradicts;
            assert_eq!(contradicts, weirds == 1, "{}: {payload:?}", protocol.name());
            assert!(session.is_confirmed() || records == 0);
        }
        self.messages += 1;
        self.records += records;
        self.weirds += weirds;
    }

    /// Takes recorded messages, and each of them cut and changed at every place.
    fn spoil(&mut self, protocol: &dyn Protocol, limits: &Limits, messages: &[Vec<u8>]) {
        for message in messages {
            (0..message.len()).for_each(|len| self.message(protocol, limits, &message[..len]));
            let mut changed = message.clone();
            for at in 0..message.len() {
                for value in [0, 1, 2, 4, 8, 16, 32, 64, 127, 128, 192, 254, 255] {
                    changed[at] = value;
                    self.message(protocol, limits, &changed);
                }
                changed[at] = message[at];
            }
        }
    }
}

/// Protocols of which each message makes one row or one oddity.
const ONE_EACH: [&str; 3] = ["ntp", "dhcp", "dhcpv6"];

/// Bytes that a session may hold after one message.
const MOST_HELD: usize = 1 << 20;

#[test]
fn no_message_does_harm_cut_or_changed_anywhere() {
    let limits = Limits::default();
    let mut recorded_ones = 0;
    let of_datagrams = |protocol: &&dyn Protocol| !protocol.udp_ports().is_empty();
    for protocol in ProtocolId::all().map(ProtocolId::protocol).filter(of_datagrams) {
        let messages = recorded(protocol.udp_ports());
        let mut whole = Told::default();
        messages.iter().for_each(|message| whole.message(protocol, &limits, message));
        let mut spoilt = Told::default();
        spoilt.spoil(protocol, &limits, &messages);
        recorded_ones += usize::from(!messages.is_empty());
        if ONE_EACH.contains(&protocol.name()) {
            let name = protocol.name();
            assert!(messages.len() >= 3, "{name}: {} messages", messages.len());
            assert_eq!(
                (whole.records, whole.weirds),
                (messages.len(), 0),
                "{name}: not all were read"
            );
            assert!(
                spoilt.records * 3 > spoilt.messages && spoilt.weirds > 100,
                "{name}: {spoilt:?}"
            );
        }
    }
    assert!(recorded_ones > ONE_EACH.len(), "{recorded_ones} protocols have recorded messages");
}
