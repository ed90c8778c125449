//! What checksums say, counted by protocol, against TShark's word on each packet of the same
//! captures; and that nothing but the mode of analysis changes with it.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::Path;
use std::process::Command;

use crate::zeek::corpus::{Capture, captures};
use netsniff_testing::has_program;
use serde_json::Value;

/// Good, bad, left to the card, absent, not verifiable.
type Counts = [u64; 5];
const NAMES: [&str; 5] = ["good", "bad", "partial", "absent", "unknown"];

/// Where TShark counts otherwise: our counts, TShark's, and why.
const DIFFERENT: &[(&str, &str, Counts, Counts, &str)] = &[
    ("fuzz/nDPI-fuzz-2006-06-26-2594.pcap", "tcp", [18, 29, 0, 0, 0], [18, 32, 0, 0, 0], TOO_LONG),
    (
        "fuzz/nDPI-fuzz-2006-06-26-2594.pcap",
        "udp",
        [143, 333, 0, 0, 25],
        [147, 349, 0, 0, 26],
        TOO_LONG_OR_IN_PART,
    ),
];

/// 3 packets of TCP and 20 of UDP, `truncated_IP_len` in `weird`: packet 25, for one, claims 118 bytes
/// of IP in a frame of 86.
const TOO_LONG: &str = "a datagram that claims more bytes than its frame had is not analysed, and \
                        TShark takes what there is for its payload";
/// Besides, packet 642 is a first fragment, which TShark does not put together since its header's
/// checksum is wrong. It shows the UDP header without judging it.
const TOO_LONG_OR_IN_PART: &str = "the same, and a fragment that finds no rest is no datagram";

#[test]
fn checksums_are_judged_as_tshark_judges_them() {
    let Some(captures) = captures("checksums were not compared with TShark's") else { return };
    if !has_program("tshark", "checksums were not compared with its") {
        return;
    }
    let mut sums = BTreeMap::<&str, Counts>::new();
    let (mut quoted, mut differing) = (0, Vec::new());
    for capture in &captures {
        let (theirs, left_out) = of_tshark(&capture.path);
        quoted += left_out;
        let ours = of_netsniff(capture, "count");
        for (protocol, our) in ours {
            let their = theirs.get(protocol).copied().unwrap_or_default();
            for (sum, count) in sums.entry(protocol).or_default().iter_mut().zip(our) {
                *sum += count;
            }
            if our != their {
                eprintln!("{} {protocol}: ours {our:?}, TShark's {their:?}", capture.name);
                differing.push((capture.name.as_str(), protocol, our, their));
            }
        }
    }
    eprintln!(
        "{} captures; {NAMES:?}: {sums:?}; left out: {quoted} headers that ICMP errors quote, which \
         are no packets of the capture",
        captures.len()
    );
    let listed: Vec<_> =
        DIFFERENT.iter().map(|&(file, of, our, their, _)| (file, of, our, their)).collect();
    differing.sort_unstable();
    assert_eq!(differing, listed, "these differ, and those are listed");
    let [good, bad, partial, ..] = sums["tcp"];
    assert!(good > 8000 && bad > 50 && partial > 1900, "{sums:?}");
    assert!(sums["ip"][0] > 10_000 && sums["ip"][1] > 100 && sums["icmp"][0] > 50, "{sums:?}");
}

/// The counts by protocol. IPv6 headers, which have no checksum, are left out of IP.
fn of_netsniff(capture: &Capture, mode: &str) -> BTreeMap<&'static str, Counts> {
    let value = summary(capture, &["--checksums", mode]);
    let counts = |protocol: &'static str| {
        let mut all = NAMES.map(|name| value["checksums"][protocol][name].as_u64().unwrap());
        if protocol == "ip" {
            all[3] = 0;
        }
        (protocol, all)
    };
    ["ip", "tcp", "udp", "icmp"].map(counts).into_iter().collect()
}

fn summary(capture: &Capture, arguments: &[&str]) -> Value {
    let run = Command::new(env!("CARGO_BIN_EXE_netsniff"))
        .args(["analyze", "--json"])
        .args(arguments)
        .arg(&capture.path)
        .output()
        .unwrap();
    serde_json::from_slice(&run.stdout).unwrap_or_else(|error| panic!("{}: {error}", capture.name))
}

const FIELDS: [&str; 16] = [
    "frame.protocols",
    "ip.checksum.status",
    "tcp.checksum.status",
    "udp.checksum.status",
    "icmp.checksum.status",
    "icmpv6.checksum.status",
    "ip.src",
    "ip.dst",
    "ipv6.src",
    "ipv6.dst",
    "tcp.checksum",
    "tcp.hdr_len",
    "tcp.len",
    "udp.checksum",
    "udp.length",
    "frame.number",
];

/// TShark's counts, and how many headers were left out.
fn of_tshark(path: &Path) -> (BTreeMap<&'static str, Counts>, u64) {
    let mut command = Command::new("tshark");
    command.args(["-n", "-T", "fields", "--enable-heuristic", "teredo_udp", "-r"]).arg(path);
    for check in ["ip", "tcp", "udp"] {
        command.args(["-o", &format!("{check}.check_checksum:TRUE")]);
    }
    FIELDS.iter().for_each(|field| {
        command.args(["-e", field]);
    });
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let (mut counts, mut quoted) = (BTreeMap::new(), 0);
    for line in text.lines() {
        let cells = FIELDS.into_iter().zip(line.split('\t')).collect();
        quoted += count_frame(&cells, &mut counts);
    }
    (counts, quoted)
}

/// Adds one frame, without the headers that an ICMP error in it quotes, and returns how many those
/// were.
fn count_frame(cells: &BTreeMap<&str, &str>, counts: &mut BTreeMap<&'static str, Counts>) -> u64 {
    let protocols: Vec<&str> = cells["frame.protocols"].split(':').collect();
    let at = protocols.iter().position(|name| matches!(*name, "icmp" | "icmpv6"));
    let quotes = at.map_or(&[][..], |at| &protocols[at + 1..]);
    let mut left_out = 0;
    for (protocol, layer) in
        [("ip", "ip"), ("tcp", "tcp"), ("udp", "udp"), ("icmp", "icmp"), ("icmp", "icmpv6")]
    {
        let statuses: Vec<&str> = cells[&*format!("{layer}.checksum.status")]
            .split(',')
            .filter(|status| !status.is_empty())
            .collect();
        let is_quoted = |name: &&&str| **name == layer;
        let kept = statuses.len().saturating_sub(quotes.iter().filter(is_quoted).count());
        left_out += (statuses.len() - kept) as u64;
        for status in &statuses[..kept] {
            let verdict = match *status {
                "0" | "1" if is_left_to_card(layer, cells) => 2,
                "1" => 0,
                // What must not be left out but is.
                "0" | "4" => 1,
                "3" => 3,
                "2" => 4,
                other => panic!("status {other} of {layer} in {cells:?}"),
            };
            counts.entry(protocol).or_default()[verdict] += 1;
        }
    }
    left_out
}

/// Whether the checksum is the sum of the pseudo-header, by the values that TShark prints. Not told
/// of packets with several such headers.
fn is_left_to_card(layer: &str, cells: &BTreeMap<&str, &str>) -> bool {
    let number = |name: &str| cells[name].parse::<u32>();
    let (number, len) = match layer {
        "tcp" => (6, number("tcp.hdr_len").and_then(|len| Ok(len + number("tcp.len")?))),
        "udp" => (17, number("udp.length")),
        _ => return false,
    };
    let field = cells[&*format!("{layer}.checksum")].strip_prefix("0x");
    let field = field.and_then(|field| u32::from_str_radix(field, 16).ok());
    let version = if cells["ip.src"].is_empty() { "ipv6" } else { "ip" };
    let ends = ["src", "dst"].map(|end| cells[&*format!("{version}.{end}")].parse::<IpAddr>());
    let ([Ok(source), Ok(destination)], Ok(len), Some(field)) = (ends, len, field) else {
        return false;
    };
    let mut sum = number + len;
    for end in [source, destination] {
        let bytes = match end {
            IpAddr::V4(v4) => v4.octets().to_vec(),
            IpAddr::V6(v6) => v6.octets().to_vec(),
        };
        let words = bytes.as_chunks().0.iter().map(|word| u32::from(u16::from_be_bytes(*word)));
        sum += words.sum::<u32>();
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum == field
}

#[test]
fn what_is_left_out_is_what_was_wrong() {
    let Some(captures) = captures("modes of checksums were not compared") else { return };
    let (mut wrong, mut datagrams, mut packets) = (0, 0, 0);
    for capture in captures.iter().filter(|capture| !capture.is_fuzzed()) {
        let counted = of_netsniff(capture, "count");
        let value = summary(capture, &["--checksums", "discard"]);
        let part = |name: &str| {
            let parts = value["books"]["parts"].as_array().unwrap();
            let part = parts.iter().find(|part| part["name"] == name);
            part.and_then(|part| part["packets"].as_u64())
        };
        assert_eq!(value["books"]["unexplained"], 0, "{}", capture.name);
        let left_out = value["checksums"]["discarded"].as_u64().unwrap();
        let of_headers = part("left out for a wrong IP checksum").unwrap();
        let of_ip: u64 = counted["ip"][1];
        assert_eq!(of_headers, of_ip, "{}: no tunnels or fragments there", capture.name);
        if of_ip == 0 {
            let of = |name: &str| counted[name][1] + counted[name][2];
            assert_eq!(left_out, of("tcp") + of("udp") + of("icmp"), "{}", capture.name);
        }
        wrong += u64::from(left_out + of_headers > 0);
        (datagrams, packets) = (datagrams + left_out, packets + of_headers);
        let ignored = summary(capture, &["--checksums", "ignore"]);
        assert!(ignored["checksums"]["tcp"].is_null(), "{}", capture.name);
    }
    eprintln!("left out of {wrong} captures: {datagrams} datagrams, {packets} packets");
    assert!(wrong > 15 && datagrams > 1900 && packets > 100);
}
