//! Decodes every packet of the corpus and compares with what TShark saw of the outermost IP.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "tests read the corpus"
)]

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Display;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use netsniff_packet::decode::TunnelPorts;
use netsniff_packet::decode::tunnel::{self, Tunnel, TunnelKind};
use netsniff_packet::decode::{self, Decoded, Transport};
use netsniff_packet::wire::ethernet::EthernetHeader;
use netsniff_packet::wire::icmp::IcmpHeader;
use netsniff_packet::wire::ipv4::Ipv4Header;
use netsniff_packet::wire::ipv6::Ipv6Header;
use netsniff_packet::wire::tcp::TcpHeader;
use netsniff_packet::wire::udp::UdpHeader;
use netsniff_packet::{Batch, LinkType, Packet, Progress, Source, checksum};
use netsniff_pcapfile::Reader;
use netsniff_testing::{Need, folder};

/// The corpus, or `None` with a line that says that the test did not run.
fn corpus(test: &str) -> Option<PathBuf> {
    folder(Need::Corpus, test)
}

/// Capture files below `folder`, without the folders of expected answers.
fn captures(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            if path.extension().is_none_or(|extension| extension != "oracle") {
                captures(&path, found);
            }
        } else if path.extension().is_some_and(|e| e == "pcap" || e == "pcapng") {
            found.push(path);
        }
    }
    found.sort();
}

/// Calls `each` with every packet that can be read and its number from 1.
fn for_each_packet(path: &Path, mut each: impl FnMut(usize, &Packet<'_>)) -> bool {
    let Ok(mut reader) = Reader::new(File::open(path).unwrap()) else { return false };
    let mut batch = Batch::default();
    let mut number = 0;
    loop {
        let Ok(progress) = reader.read_batch(&mut batch) else { return false };
        for packet in batch.iter() {
            number += 1;
            each(number, &packet);
        }
        if progress == Progress::End {
            return true;
        }
    }
}

/// A line of TShark's table.
struct Row<'a>(HashMap<&'a str, &'a str>);

impl Row<'_> {
    /// The outermost value of a field.
    fn first(&self, field: &str) -> &str {
        self.0.get(field).map_or("", |value| value.split(',').next().unwrap())
    }

    /// The protocols from the outermost IP header on, without IPv6 extension headers.
    fn above_link(&self) -> Vec<&str> {
        self.first("frame.protocols")
            .split(':')
            .skip_while(|name| !matches!(*name, "ip" | "ipv6"))
            .filter(|name| !name.starts_with("ipv6."))
            .collect()
    }
}

/// What disagreed, and how many packets were compared.
#[derive(Default)]
struct Findings {
    compared: usize,
    segments: usize,
    inner: usize,
    mismatches: Vec<String>,
}

impl Findings {
    fn check(&mut self, place: &str, field: &str, ours: impl Display, theirs: &str) {
        let ours = ours.to_string();
        if ours != theirs {
            self.mismatches.push(format!("{place}: {field}: {ours}, TShark {theirs:?}"));
        }
    }

    fn packet(&mut self, place: &str, decoded: &Decoded, row: &Row<'_>) {
        let vlans = [decoded.vlan, decoded.inner_vlan].into_iter().flatten();
        let vlans = vlans.map(|id| id.to_string()).collect::<Vec<_>>().join(",");
        self.check(place, "vlan.id", vlans, row.0.get("vlan.id").unwrap_or(&""));
        let names = row.above_link();
        let Some(&version) = names.first() else {
            let ours = decoded.ip.map_or(String::new(), |ip| ip.source.to_string());
            return self.check(place, "source", ours, "");
        };
        let Some(ip) = decoded.ip else {
            let stop = decoded.stop.map_or("no stop", |stop| stop.weird);
            return self.check(place, "IP header", stop, version);
        };
        self.compared += 1;
        self.check(place, "source", ip.source, row.first(&format!("{version}.src")));
        self.check(place, "destination", ip.destination, row.first(&format!("{version}.dst")));
        if version == "ip" {
            self.check(place, "ip.proto", ip.protocol, row.first("ip.proto"));
            self.check(place, "ip.id", format!("0x{:04x}", ip.identification), row.first("ip.id"));
        }
        if ip.fragment.is_none() {
            self.transport(place, decoded, names.get(1).copied().unwrap_or(""), row);
        }
    }

    /// Compares the addresses of the first packet inside a tunnel.
    fn tunnel(&mut self, place: &str, decoded: &Decoded, data: &[u8], row: &Row<'_>) {
        if decoded.ip.is_some_and(|ip| ip.fragment.is_some()) {
            // TShark shows the reassembled datagram at its last fragment.
            return;
        }
        let addresses = |tunnel: Tunnel| {
            let inner = tunnel.decode(data).ip;
            inner.map_or(String::new(), |ip| format!("{} {}", ip.source, ip.destination))
        };
        let ours = match tunnel::find(decoded, data, TunnelPorts::KNOWN) {
            None => String::new(),
            Some(Err(stop)) => stop.weird.to_owned(),
            // TShark knows Teredo by its port only.
            Some(Ok(tunnel))
                if tunnel.kind == TunnelKind::Teredo
                    && row.first("frame.protocols").ends_with(":data") =>
            {
                return;
            }
            Some(Ok(tunnel)) => addresses(tunnel),
        };
        let names = row.above_link();
        let inner =
            names.iter().skip(1).find(|name| matches!(**name, "ip" | "ipv6" | "icmp" | "arp"));
        let theirs = match (names.first(), inner) {
            (Some(outer), Some(version @ (&"ip" | &"ipv6"))) => {
                let nth = |field: &str| {
                    let values = row.0.get(format!("{version}.{field}").as_str()).unwrap_or(&"");
                    values.split(',').nth(usize::from(outer == version)).unwrap_or("").to_owned()
                };
                format!("{} {}", nth("src"), nth("dst"))
            }
            _ => String::new(),
        };
        self.inner += usize::from(!theirs.is_empty());
        self.check(place, "tunnel", ours, &theirs);
    }

    fn transport(&mut self, place: &str, decoded: &Decoded, name: &str, row: &Row<'_>) {
        match (name, decoded.transport) {
            ("tcp", Transport::Tcp(tcp)) => {
                self.segments += 1;
                self.check(place, "srcport", tcp.source_port, row.first("tcp.srcport"));
                self.check(place, "dstport", tcp.destination_port, row.first("tcp.dstport"));
                self.check(place, "seq", tcp.sequence, row.first("tcp.seq_raw"));
                self.check(place, "ack", tcp.acknowledgement, row.first("tcp.ack_raw"));
                let window = row.first("tcp.window_size_value");
                self.check(place, "window", tcp.window, window);
                self.check(place, "len", tcp.payload_len, row.first("tcp.len"));
                let flags = row.first("tcp.flags").trim_start_matches("0x");
                let flags = u16::from_str_radix(flags, 16).unwrap_or(u16::MAX) & 0x1ff;
                self.check(place, "flags", tcp.flags.0, &flags.to_string());
            }
            ("udp", Transport::Udp(udp)) => {
                self.segments += 1;
                self.check(place, "srcport", udp.source_port, row.first("udp.srcport"));
                self.check(place, "dstport", udp.destination_port, row.first("udp.dstport"));
            }
            ("icmp" | "icmpv6", Transport::Icmp(_)) | ("sctp", Transport::Sctp(_)) => {
                self.segments += 1;
            }
            ("tcp" | "udp" | "icmp" | "icmpv6" | "sctp", _) => {
                let stop = decoded.stop.map_or("no stop", |stop| stop.weird);
                self.check(place, "transport", stop, name);
            }
            (_, Transport::Tcp(_) | Transport::Udp(_)) => {
                self.check(place, "transport", "TCP or UDP", name);
            }
            _ => {}
        }
    }
}

#[test]
fn agrees_with_tshark_on_every_packet() {
    let Some(root) = corpus("agrees_with_tshark_on_every_packet") else { return };
    let mut files = Vec::new();
    captures(&root, &mut files);
    let mut findings = Findings::default();
    let mut compared_files = 0;
    for file in &files {
        let table = PathBuf::from(format!("{}.oracle/tshark/packets.tsv", file.display()));
        let Ok(table) = fs::read(table) else { continue };
        let table = String::from_utf8_lossy(&table);
        let mut lines = table.lines();
        let fields: Vec<&str> = lines.next().unwrap_or_default().split('\t').collect();
        let rows: Vec<Row<'_>> =
            lines.map(|line| Row(fields.iter().copied().zip(line.split('\t')).collect())).collect();
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        let read = for_each_packet(file, |number, packet| {
            let Some(row) = rows.get(number - 1) else { return };
            assert_eq!(row.first("frame.number"), number.to_string());
            let decoded = decode::packet(packet.link_type, packet.data, packet.wire_len);
            findings.packet(&format!("{name} {number}"), &decoded, row);
            findings.tunnel(&format!("{name} {number}"), &decoded, packet.data, row);
        });
        compared_files += usize::from(read);
        if !read {
            eprintln!("not readable: {name}");
        }
    }
    let Findings { compared, segments, inner, mismatches } = findings;
    eprintln!(
        "{compared_files} files, {compared} IP headers, {segments} transport headers, \
         {inner} inner IP headers"
    );
    assert!(compared > 3000, "the corpus was not read");
    let shown = mismatches.iter().take(60).map(String::as_str).collect::<Vec<_>>().join("\n");
    assert!(mismatches.is_empty(), "{} mismatches:\n{shown}", mismatches.len());
}

/// Weirds of Zeek that a decoder can raise.
const WEIRDS: &[&str] = &[
    "truncated_ethernet_frame",
    "truncated_llc_header",
    "truncated_ARP",
    "truncated_IP",
    "truncated_IP_len",
    "truncated_header",
    "internally_truncated_header",
    "invalid_IP_header_size",
    "IPv4_min_header_size",
    "unknown_ip_version",
    "bad_TCP_header_len",
    "routing0_hdr",
    "ip_hdr_len_zero",
    "pppoe_extra_data_after_payload",
    "truncated_GRE",
    "truncated_inner_IP",
    "inner_IP_payload_length_mismatch",
    "invalid_inner_IP_version",
];

/// Every name that decoding a packet and what is inside it raises.
fn weirds(decoded: &Decoded, data: &[u8], depth: usize, found: &mut BTreeSet<String>) {
    found.extend(decoded.oddities.iter().map(|oddity| oddity.weird().to_owned()));
    found.extend(decoded.stop.map(|stop| stop.weird.to_owned()));
    match tunnel::find(decoded, data, TunnelPorts::KNOWN) {
        Some(Ok(tunnel)) if depth < 4 => weirds(&tunnel.decode(data), data, depth + 1, found),
        Some(Err(stop)) => found.extend([stop.weird.to_owned()]),
        _ => {}
    }
}

#[test]
fn raises_the_weirds_that_zeek_raises() {
    let Some(root) = corpus("raises_the_weirds_that_zeek_raises") else { return };
    let mut files = Vec::new();
    captures(&root, &mut files);
    let (mut compared, mut named, mut wrong) = (0, 0, Vec::new());
    for file in &files {
        let folder = PathBuf::from(format!("{}.oracle/zeek-run", file.display()));
        if !folder.join("conn.log").exists() && !folder.join("weird.log").exists() {
            continue;
        }
        let log = fs::read(folder.join("weird.log")).unwrap_or_default();
        let theirs: BTreeSet<String> = String::from_utf8_lossy(&log)
            .lines()
            .filter_map(|line| line.split('\t').nth(6))
            .filter(|name| WEIRDS.contains(name))
            .map(str::to_owned)
            .collect();
        let mut ours = BTreeSet::new();
        let read = for_each_packet(file, |_, packet| {
            let decoded = decode::packet(packet.link_type, packet.data, packet.wire_len);
            weirds(&decoded, packet.data, 0, &mut ours);
        });
        if read {
            compared += 1;
            named += theirs.len();
            // The capture cut the options of a SYN, which Zeek refuses and we read as far as it goes.
            let is_cut_syn = file.ends_with("format/zeek-truncated-header.pcap");
            assert!(!is_cut_syn || ours.is_empty(), "{ours:?}");
            if ours != theirs && !is_cut_syn {
                wrong.push(format!("{}: {ours:?}, Zeek {theirs:?}", file.display()));
            }
        }
    }
    eprintln!("{compared} files, {named} names");
    assert!(compared > 60, "the corpus was not read");
    assert!(wrong.is_empty(), "{} files differ:\n{}", wrong.len(), wrong.join("\n"));
}

/// Reads a header and writes it again; the bytes must be the same.
macro_rules! assert_rewrites {
    ($place:expr, $data:expr, $parse:path, $count:expr) => {
        if let Some(header) = $parse($data) {
            let mut buffer = [0; 512];
            let len = header.emit(&mut buffer).unwrap();
            assert_eq!(buffer[..len], $data[..len], "{}: {header:?}", $place);
            $count += 1;
        }
    };
}

#[test]
fn headers_are_written_as_they_were_read() {
    let Some(root) = corpus("headers_are_written_as_they_were_read") else { return };
    let mut files = Vec::new();
    captures(&root, &mut files);
    let (mut frames, mut ips, mut uppers) = (0, 0, 0);
    let mut verdicts: BTreeMap<String, usize> = BTreeMap::new();
    for file in &files {
        for_each_packet(file, |number, packet| {
            let place = format!("{} {number}", file.display());
            let decoded = decode::packet(packet.link_type, packet.data, packet.wire_len);
            if packet.link_type == LinkType::ETHERNET {
                assert_rewrites!(place, packet.data, EthernetHeader::parse, frames);
            }
            let Some(ip) = decoded.ip else { return };
            let data = &packet.data[ip.offset as usize..];
            if ip.source.is_v4() {
                assert_rewrites!(place, data, Ipv4Header::parse, ips);
            } else {
                assert_rewrites!(place, data, Ipv6Header::parse, ips);
            }
            let above = packet.data.get(ip.payload_offset as usize..).unwrap_or_default();
            match decoded.transport {
                Transport::Tcp(_) => assert_rewrites!(place, above, TcpHeader::parse, uppers),
                Transport::Udp(_) => assert_rewrites!(place, above, UdpHeader::parse, uppers),
                Transport::Icmp(_) => assert_rewrites!(place, above, IcmpHeader::parse, uppers),
                _ => {}
            }
            for (kind, verdict) in [
                ("IP", checksum::ip_header(data)),
                ("transport", checksum::transport(&decoded, packet.data)),
            ] {
                *verdicts.entry(format!("{kind} {verdict:?}")).or_default() += 1;
            }
        });
    }
    eprintln!("{frames} frames, {ips} IP and {uppers} transport headers; checksums {verdicts:?}");
    assert!(frames > 3000 && ips > 3000 && uppers > 3000, "the corpus was not read");
    // Bad ones are real: some captures were anonymised or made on a sender that offloads.
    assert!(verdicts["transport Good"] > 2 * verdicts["transport Bad"], "{verdicts:?}");
    assert!(verdicts["IP Good"] > 2 * verdicts["IP Bad"], "{verdicts:?}");
}
