//! The recorded messages of NTP, DHCP and DHCPv6, cut and changed everywhere: none does harm, and
//! what is told of one is the same as what its verdict says.

use crate::support;
use std::path::Path;

use netsniff_analysis::Limits;
use netsniff_analysis::file::HashKinds;
use netsniff_analysis::protocol::{
    Datagram, DatagramVerdict, Findings, Protocol, ProtocolId, Role, Session, SessionContext,
};
use netsniff_packet::Timestamp;
use netsniff_packet::decode::{self, Transport};

/// Enough messages of one length to see all of its fields changed.
const EACH: usize = 4;

/// The messages of the recorded capture to and from some ports, a few of each length.
fn recorded(ports: &[u16]) -> Vec<Vec<u8>> {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/recorded/protocols.pcapng");
    let mut messages: Vec<Vec<u8>> = Vec::new();
    for batch in support::read(&path) {
        for packet in batch.iter() {
            let decoded = decode::packet(packet.link_type, packet.data, packet.wire_len);
            let Transport::Udp(header) = &decoded.transport else { continue };
            let begin = header.payload_offset as usize;
            let message = &packet.data[begin..begin + header.payload_captured as usize];
            let alike = messages.iter().filter(|other| other.len() == message.len()).count();
            let is_of_them = ports.contains(&header.destination_port);
            if is_of_them && alike < EACH && !messages.iter().any(|other| other == message) {
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
        let datagram = Datagram { time, from, port: 0, payload };
        let contradicts = session.datagram(&datagram, &mut found) == DatagramVerdict::Contradicts;
        session.end(&mut found);
        let (records, weirds) = (found.records.len(), found.weirds.drain().count());
        assert!(records <= 1 && weirds <= 1);
        assert_eq!(contradicts, weirds == 1, "{}: {payload:?}", protocol.name());
        assert!(session.is_confirmed() || records == 0);
        self.messages += 1;
        self.records += records;
        self.weirds += weirds;
    }
}

fn spoil(name: &str, ports: &[u16]) -> Told {
    let messages = recorded(ports);
    assert!(messages.len() >= 3, "{name}: {} messages", messages.len());
    let (protocol, limits) = (ProtocolId::named(name).unwrap().protocol(), Limits::default());
    let mut told = Told::default();
    for message in &messages {
        told.message(protocol, &limits, message);
    }
    assert_eq!((told.records, told.weirds), (messages.len(), 0), "{name}: not all were read");
    for message in &messages {
        (0..message.len()).for_each(|len| told.message(protocol, &limits, &message[..len]));
        let mut changed = message.clone();
        for at in 0..message.len() {
            for value in [0, 1, 2, 4, 8, 16, 32, 64, 127, 128, 192, 254, 255] {
                changed[at] = value;
                told.message(protocol, &limits, &changed);
            }
            changed[at] = message[at];
        }
    }
    told
}

#[test]
fn no_message_does_harm_cut_or_changed_anywhere() {
    for (name, ports) in [("ntp", &[123][..]), ("dhcp", &[67, 68]), ("dhcpv6", &[546, 547])] {
        let told = spoil(name, ports);
        assert!(told.records * 3 > told.messages && told.weirds > 100, "{name}: {told:?}");
    }
}
