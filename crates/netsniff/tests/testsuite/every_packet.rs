//! No packet is counted as analysed of which nothing tells: each is in a row of a log, in `weird`, in `unparsed.pcapng`, or in
//! a class of its own in the books.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::zeek::corpus::Scratch;
use netsniff_packet::{LinkType, Packet, Timestamp};
use netsniff_pcapfile::{Interface, PcapngWriter, Section};

const NO_LOG: &str = "in no log: ARP, GRE acknowledgements";
const NOT_WHOLE: &str = "fragments of datagrams not whole";

/// What tells of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    /// A row of this log.
    Row(&'static str),
    /// `weird` alone, with this name.
    Weird(&'static str),
    /// `unparsed.pcapng`.
    Unparsed,
    /// Both of the latter.
    Both(&'static str),
    /// A line of the books.
    Books(&'static str),
}

use Told::*;

const CONN: Told = Row("conn");

fn eth(kind: u16, rest: &[u8]) -> Vec<u8> {
    [&[2; 12], &kind.to_be_bytes()[..], rest].concat()
}

/// A frame with a length and an LLC header (IEEE 802.2).
fn llc(rest: &[u8]) -> Vec<u8> {
    eth(rest.len() as u16, rest)
}

fn ipv4_with(protocol: u8, fragment: u16, body: &[u8]) -> Vec<u8> {
    let mut header = [0_u8; 20];
    (header[0], header[5], header[8], header[9]) = (0x45, 1, 64, protocol);
    header[2..4].copy_from_slice(&(20 + body.len() as u16).to_be_bytes());
    header[6..8].copy_from_slice(&fragment.to_be_bytes());
    header[12..20].copy_from_slice(&[192, 0, 2, 1, 192, 0, 2, 2]);
    let words = header.chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(word[1]));
    let sum: u32 = words.sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    header[10..12].copy_from_slice(&(!(sum as u16)).to_be_bytes());
    [&header[..], body].concat()
}

fn ipv4(protocol: u8, body: &[u8]) -> Vec<u8> {
    ipv4_with(protocol, 0, body)
}

fn ipv6(next: u8, body: &[u8]) -> Vec<u8> {
    let mut header = [0_u8; 40];
    (header[0], header[6], header[7]) = (0x60, next, 64);
    header[4..6].copy_from_slice(&(body.len() as u16).to_be_bytes());
    for (at, last) in [(8, 1), (24, 2)] {
        header[at..at + 4].copy_from_slice(&[0x20, 1, 0x0d, 0xb8]);
        header[at + 15] = last;
    }
    [&header[..], body].concat()
}

fn udp(port: u16, body: &[u8]) -> Vec<u8> {
    let len = (8 + body.len() as u16).to_be_bytes();
    [&[0xc3, 0x50], &port.to_be_bytes()[..], &len, &[0, 0], body].concat()
}

fn gre(flags: u16, kind: u16, rest: &[u8]) -> Vec<u8> {
    ipv4(47, &[&flags.to_be_bytes()[..], &kind.to_be_bytes(), rest].concat())
}

/// One entry of a label stack (RFC 3032), the last one or not.
fn label(value: u32, is_last: bool) -> [u8; 4] {
    (value << 12 | u32::from(is_last) << 8 | 64).to_be_bytes()
}

/// ARP, RFC 826: who has 192.0.2.2?
const ARP: &[u8] =
    &[0, 1, 8, 0, 6, 4, 0, 1, 2, 2, 2, 2, 2, 2, 192, 0, 2, 1, 0, 0, 0, 0, 0, 0, 192, 0, 2, 2];
/// A bridge protocol data unit (IEEE 802.1D).
const STP: &[u8] = &[0x42, 0x42, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
/// The VXLAN header of network 1, RFC 7348.
const VXLAN: [u8; 8] = [8, 0, 0, 0, 0, 0, 1, 0];

/// What is no IP, or not as it should be.
fn links() -> Vec<(&'static str, Vec<u8>, Told)> {
    let whole = ipv4(17, &udp(9_999, b"abcd"));
    vec![
        ("UDP", eth(0x0800, &whole), CONN),
        ("ARP", eth(0x0806, ARP), Books(NO_LOG)),
        ("ARP in a VLAN", eth(0x8100, &[&[0, 1, 8, 6], ARP].concat()), Books(NO_LOG)),
        ("RARP", eth(0x8035, ARP), Books(NO_LOG)),
        ("ARP, cut", eth(0x0806, &ARP[..10]), Both("truncated_ARP")),
        ("STP", llc(STP), Unparsed),
        ("CDP", llc(&[&[0xaa, 0xaa, 3, 0, 0, 12, 0x20, 0][..], &[0; 20]].concat()), Unparsed),
        ("IS-IS", llc(&[0xfe; 30]), Unparsed),
        ("IPX without LLC", llc(&[0xff; 40]), Unparsed),
        ("IP in SNAP", llc(&[&[0xaa, 0xaa, 3, 0, 0, 0, 8, 0], &whole[..]].concat()), CONN),
        ("LLDP", eth(0x88cc, &[0; 46]), Unparsed),
        ("LLDP in a VLAN", eth(0x8100, &[&[0, 1, 0x88, 0xcc][..], &[0; 46]].concat()), Unparsed),
        ("EAPOL", eth(0x888e, &[1, 1, 0, 0]), Unparsed),
        ("LACP", eth(0x8809, &[0; 46]), Unparsed),
        ("CFM", eth(0x8902, &[0; 46]), Unparsed),
        ("PTP", eth(0x88f7, &[0; 46]), Unparsed),
        ("pause", eth(0x8808, &[0; 46]), Unparsed),
        ("MACsec, encrypted", eth(0x88e5, &[0x2c; 46]), Unparsed),
        ("PPPoE discovery", eth(0x8863, &[0x11, 9, 0, 0, 0, 4, 1, 1, 0, 0]), Unparsed),
        ("LCP", eth(0x8864, &[0x11, 0, 0, 1, 0, 6, 0xc0, 0x21, 1, 1, 0, 4]), Unparsed),
        ("IP under MPLS", eth(0x8847, &[&label(100, true), &whole[..]].concat()), CONN),
        (
            "OAM under MPLS (RFC 5586)",
            eth(0x8847, &[label(100, false), label(13, true), [0x10, 0, 0, 7], [0; 4]].concat()),
            Unparsed,
        ),
        (
            "LLDP in a pseudowire",
            eth(0x8847, &[&label(100, true)[..], &eth(0x88cc, &[0; 46])].concat()),
            Unparsed,
        ),
        ("no header of Ethernet", vec![2; 12], Both("truncated_ethernet_frame")),
        ("half an IPv4 header", eth(0x0800, &whole[..10]), Both("truncated_IP")),
    ]
}

/// What is directly above IP.
fn transports() -> Vec<(&'static str, Vec<u8>, Told)> {
    let v4 = |protocol, body: &[u8]| eth(0x0800, &ipv4(protocol, body));
    let v6 = |next, body: &[u8]| eth(0x86dd, &ipv6(next, body));
    let sctp = [&[0x13, 0x88, 0x13, 0x89][..], &[0; 8], &[1, 0, 0, 20], &[0; 16]].concat();
    let part = udp(9_999, &[7; 92]);
    let atomic = [&[17, 0, 0, 0, 0, 0, 0, 1][..], &part].concat();
    vec![
        ("IGMP", v4(2, &[0x16, 0, 0, 0, 224, 0, 0, 251]), CONN),
        ("OSPF", v4(89, &[2; 24]), CONN),
        ("OSPF, version 3", v6(89, &[3; 24]), CONN),
        ("ESP", v4(50, &[1; 24]), CONN),
        ("ESP in IPv6", v6(50, &[1; 24]), Unparsed),
        ("an unknown protocol", v4(253, &[]), CONN),
        ("an unknown protocol in IPv6", v6(253, &[]), CONN),
        ("SCTP", v4(132, &sctp), CONN),
        ("SCTP, cut", v4(132, &sctp[..6]), Both("truncated_header")),
        ("TCP, cut", v4(6, &[0, 80, 0, 81]), Both("truncated_header")),
        ("ICMP without a header", v4(1, &[]), Both("truncated_header")),
        ("no next header", v6(59, &[]), Weird("ipv6_no_next")),
        ("no next header behind options", v6(0, &[59, 0, 1, 4, 0, 0, 0, 0]), Weird("ipv6_no_next")),
        ("options, cut", v6(0, &[58]), Both("internally_truncated_header")),
        ("an atomic fragment (RFC 6946)", v6(44, &atomic), CONN),
        ("a first fragment", eth(0x0800, &ipv4_with(17, 0x2000, &part[..96])), Books(NOT_WHOLE)),
        ("a later fragment", eth(0x0800, &ipv4_with(17, 0x2003, &part[..96])), Books(NOT_WHOLE)),
    ]
}

/// What is in tunnels.
fn tunnels() -> Vec<(&'static str, Vec<u8>, Told)> {
    let whole = ipv4(17, &udp(9_999, b"abcd"));
    let v4 = |packet: Vec<u8>| eth(0x0800, &packet);
    let bridged = |frame: &[u8]| v4(gre(0, 0x6558, frame));
    let ack = [0, 0, 0, 1, 0, 0, 0, 5];
    let vxlan = |frame: &[u8]| v4(ipv4(17, &udp(4_789, &[&VXLAN, frame].concat())));
    vec![
        ("IP in GRE", v4(gre(0, 0x0800, &whole)), CONN),
        ("a keep-alive of GRE", v4(gre(0, 0x0800, &gre(0, 0, &[]))), Unparsed),
        ("the answer to it", v4(gre(0, 0, &[])), Unparsed),
        ("NHRP", v4(gre(0, 0x2001, &[0; 30])), Unparsed),
        ("an acknowledgement of PPTP", v4(gre(0x2081, 0x880b, &ack)), Books(NO_LOG)),
        ("GRE, cut", v4(ipv4(47, &[0])), Both("truncated_GRE")),
        ("GRE, version 2", v4(gre(2, 0x0800, &whole)), Both("unknown_gre_version")),
        ("ARP in GRE", bridged(&eth(0x0806, ARP)), Books(NO_LOG)),
        ("LLDP in GRE", bridged(&eth(0x88cc, &[0; 46])), Unparsed),
        ("STP in GRE", bridged(&llc(STP)), Unparsed),
        ("an unknown protocol in IP in IP", v4(ipv4(4, &ipv4(253, &[0; 8]))), CONN),
        ("OSPF in IP in IP", v4(ipv4(4, &ipv4(89, &[2; 24]))), CONN),
        ("ESP in IPv6 in IPv4", v4(ipv4(41, &ipv6(50, &[1; 24]))), Unparsed),
        ("no next header in a tunnel", v4(ipv4(41, &ipv6(59, &[]))), Weird("ipv6_no_next")),
        ("nothing in IP in IP", v4(ipv4(4, &[])), Both("truncated_inner_IP")),
        ("a fragment in IP in IP", v4(ipv4(4, &ipv4_with(17, 0x2003, &[7; 96]))), Books(NOT_WHOLE)),
        ("ARP in VXLAN", vxlan(&eth(0x0806, ARP)), CONN),
        ("LLDP in VXLAN", vxlan(&eth(0x88cc, &[0; 46])), CONN),
    ]
}

/// The sections of a run's summary, and its standard output, where it ended well.
fn summary(frames: &[&[u8]], capture: &Path, logs: &Path) -> serde_json::Value {
    let mut writer = PcapngWriter::new(Vec::new(), &Section::default()).unwrap();
    writer.add_interface(&Interface::new(LinkType::ETHERNET, 0)).unwrap();
    for (at, data) in (1..).zip(frames) {
        let (timestamp, wire_len) = (Timestamp::from_nanos(at * 1_000_000), data.len() as u32);
        let link_type = LinkType::ETHERNET;
        writer
            .write_packet(&Packet { timestamp, interface: 0, link_type, wire_len, data })
            .unwrap();
    }
    fs::write(capture, writer.finish().unwrap()).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_netsniff"));
    command.args(["analyze", "--json", "--workers", "1", "--format", "json"]);
    let run = command.arg(capture).arg("-o").arg(logs).output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    serde_json::from_slice(&run.stdout).unwrap()
}

/// How many packets a line of the books has.
fn part(summary: &serde_json::Value, name: &str) -> u64 {
    let parts = summary["books"]["parts"].as_array().unwrap();
    let found = parts.iter().find(|part| part["name"] == name);
    found.map_or(0, |part| part["packets"].as_u64().unwrap())
}

fn books_close(summary: &serde_json::Value) {
    assert_eq!(summary["books"]["unexplained"], 0);
    let parts = summary["books"]["parts"].as_array().unwrap();
    let sum: u64 = parts.iter().map(|part| part["packets"].as_u64().unwrap()).sum();
    assert_eq!(summary["books"]["read"], sum);
}

#[test]
fn something_tells_of_every_packet() {
    let scratch = Scratch::new("every-packet");
    fs::create_dir_all(scratch.path()).unwrap();
    let (capture, logs) = (scratch.path().join("in.pcapng"), scratch.path().join("logs"));
    for (name, frame, told) in links().into_iter().chain(transports()).chain(tunnels()) {
        let summary = summary(&[&frame], &capture, &logs);
        books_close(&summary);
        let log = |log: &str| fs::read_to_string(logs.join(log).with_extension("log"));
        let rows = |of: &str| log(of).is_ok_and(|rows| !rows.is_empty());
        let weird = log("weird").unwrap_or_default();
        let is_weird = |name| weird.contains(&format!("\"name\":\"{name}\""));
        let is_kept = logs.join("unparsed.pcapng").exists();
        let untold = part(&summary, NO_LOG) + part(&summary, NOT_WHOLE);
        let is_so = match told {
            Row(of) => rows(of) && !is_kept && untold == 0,
            Weird(name) => is_weird(name) && !is_kept && untold == 0,
            Unparsed => is_kept && weird.is_empty() && !rows("conn") && untold == 0,
            Both(name) => is_weird(name) && is_kept && !rows("conn") && untold == 0,
            Books(line) => part(&summary, line) == 1 && !is_kept && !rows("conn"),
        };
        assert!(is_so, "{name} is not {told:?}: weird {weird}, kept {is_kept}, {summary:#}");
    }
}

/// Fragments stand in the books by themselves as long as something is missing, and not once the datagram has a row.
#[test]
fn fragments_of_a_whole_datagram_are_analysed() {
    let scratch = Scratch::new("every-fragment");
    fs::create_dir_all(scratch.path()).unwrap();
    let (capture, logs) = (scratch.path().join("in.pcapng"), scratch.path().join("logs"));
    let datagram = udp(9_999, &[7; 280]);
    let pieces: Vec<_> = datagram.chunks(96).zip([0x2000, 0x200c, 0x0018]).collect();
    let frames: Vec<_> =
        pieces.iter().map(|(piece, at)| eth(0x0800, &ipv4_with(17, *at, piece))).collect();
    let frames: Vec<&[u8]> = frames.iter().map(Vec::as_slice).collect();
    for (taken, untold) in [(1, 1), (2, 2), (3, 0)] {
        let summary = summary(&frames[..taken], &capture, &logs);
        books_close(&summary);
        assert_eq!(part(&summary, NOT_WHOLE), untold, "{taken}");
        assert_eq!(part(&summary, "analysed"), taken as u64 - untold, "{taken}");
        assert_eq!(logs.join("conn.log").exists(), untold == 0, "{taken}");
    }
}
