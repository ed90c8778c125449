//! Packets and bytes of connections against what TShark says of the same captures: its
//! conversations (`conv.txt`) and its reassembled streams (`tcp_streams.tsv`).
//!
//! A conversation of TShark never times out, so all our rows between the same two ends are added
//! up.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::zeek::corpus::{Capture, Scratch, analyze, captures};
use crate::zeek::log::{self, Row};

/// Protocol and both ends, the lower first.
type Pair = (&'static str, String, String);

/// What each of the two ends of a [`Pair`] sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sent {
    packets: [u64; 2],
    /// Bytes of frames for TShark, of IP packets for us; `None` where TShark rounded.
    bytes: [Option<u64>; 2],
    /// Payload bytes of TCP.
    payload: [u64; 2],
    /// Whether payload was missed, or is not told because there is no duration.
    is_unclear: bool,
}

/// Captures of which TShark counts the bytes of conversations in another way, and why.
const CONVERSATIONS: &[(&str, &str)] = &[
    ("dns/zeek-dns-edns-ecs.pcap", FRAGMENTS),
    ("format/zeek-truncated-header.pcap", CUT_OPTIONS),
    ("ip/pcpp-ip4_fragments.pcap", FRAGMENTS),
    ("tunnel/zeek-gtp1_gn_normal_incl_fragmentation.pcap", FRAGMENTS),
];

/// Packet 1: 68 of 74 bytes were captured.
const CUT_OPTIONS: &str = "TShark takes a segment whose options were cut for none";

/// Frames 53 and 54 of `zeek-dns-edns-ecs.pcap`, for example, are one datagram.
const FRAGMENTS: &str = "of a datagram in fragments, TShark counts the frame of the last one only";

#[test]
fn conversations_are_those_of_tshark() {
    let Some(captures) = captures("connections were not compared with TShark's") else { return };
    let (mut pairs, mut exact, mut rounded, mut only) = (0, 0, 0, [0, 0]);
    let mut differing = Vec::new();
    for capture in captures.iter().filter(|capture| !capture.is_fuzzed()) {
        let Some(theirs) = conversations(&capture.oracle().join("tshark/conv.txt")) else {
            continue;
        };
        let ours = our_conversations(&rows(capture));
        only[1] += ours.keys().filter(|pair| !theirs.contains_key(*pair)).count();
        for (pair, their) in &theirs {
            let Some(our) = ours.get(pair) else {
                only[0] += 1;
                eprintln!("{}: {pair:?} only in TShark: {their:?}", capture.name);
                continue;
            };
            pairs += 1;
            let more = (0..2).any(|at| their.bytes[at].is_some_and(|b| our.bytes[at] > Some(b)));
            if our.packets != their.packets || more {
                eprintln!("{}: {pair:?}\n  ours {our:?}\n  them {their:?}", capture.name);
                differing.push(capture.name.as_str());
            }
            for at in 0..2 {
                match their.bytes[at] {
                    None => rounded += 1,
                    // An Ethernet header and no padding.
                    Some(b) if our.bytes[at] == Some(b - 14 * their.packets[at]) => exact += 1,
                    Some(_) => {}
                }
            }
        }
    }
    eprintln!(
        "{pairs} conversations compared, {} only in TShark, {} only in netsniff; of {} byte counts \
         {exact} are TShark's without Ethernet headers, {rounded} were rounded by TShark, the others \
         have padding or other headers",
        only[0],
        only[1],
        2 * pairs
    );
    judge(CONVERSATIONS, &differing);
    assert!(pairs > 300 && exact > 300);
}

#[test]
fn payload_is_that_of_the_streams_of_tshark() {
    let Some(captures) = captures("streams were not compared with TShark's") else { return };
    let (mut compared, mut gaps, mut unclear) = (0, 0, 0);
    let mut differing = Vec::new();
    for capture in captures.iter().filter(|capture| !capture.is_fuzzed()) {
        let Some((theirs, with_gaps)) = streams(&capture.oracle().join("tshark/tcp_streams.tsv"))
        else {
            continue;
        };
        gaps += with_gaps;
        let ours = our_conversations(&rows(capture));
        for (pair, their) in theirs {
            let Some(our) = ours.get(&pair).filter(|our| !our.is_unclear) else {
                unclear += 1;
                continue;
            };
            compared += 1;
            if our.payload != their {
                eprintln!("{}: {pair:?} ours {:?} them {their:?}", capture.name, our.payload);
                differing.push(capture.name.as_str());
            }
        }
    }
    eprintln!(
        "{compared} pairs of ends compared; left out: {gaps} streams of which TShark misses bytes, \
         {unclear} pairs of which we miss bytes or that have no duration"
    );
    judge(&[], &differing);
    assert!(compared > 150);
}

/// Fails for captures that differ without being listed, and for listed ones that do not differ.
fn judge(listed: &[(&str, &str)], differing: &[&str]) {
    let is_listed = |name: &str| listed.iter().any(|(file, _)| *file == name);
    let unexplained: Vec<_> = differing.iter().filter(|name| !is_listed(name)).collect();
    assert!(unexplained.is_empty(), "not explained: {unexplained:?}");
    let stale: Vec<_> = listed.iter().filter(|(file, _)| !differing.contains(file)).collect();
    assert!(stale.is_empty(), "listed, but not so: {stale:?}");
}

fn rows(capture: &Capture) -> Vec<Row> {
    let scratch = Scratch::new("tshark-conn");
    analyze(&capture.path, scratch.path(), &[]);
    log::read(&scratch.path().join("conn.log")).unwrap()
}

fn our_conversations(rows: &[Row]) -> BTreeMap<Pair, Sent> {
    let mut conversations = BTreeMap::new();
    for row in rows {
        let protocol = match row["proto"].as_str() {
            "tcp" => "tcp",
            "udp" => "udp",
            _ => continue,
        };
        let end =
            |side| format!("{}:{}", row[&format!("id.{side}_h")], row[&format!("id.{side}_p")]);
        let (pair, from) = pair(protocol, end("orig"), end("resp"));
        let sent: &mut Sent = conversations.entry(pair).or_default();
        for (side, at) in [("orig", from), ("resp", 1 - from)] {
            let count = |name| row[&format!("{side}_{name}")].parse().unwrap_or(0);
            sent.packets[at] += count("pkts");
            sent.bytes[at] = Some(sent.bytes[at].unwrap_or(0) + count("ip_bytes"));
            sent.payload[at] += count("bytes");
            sent.is_unclear |= row["duration"] == "-" || row["missed_bytes"] != "0";
        }
    }
    conversations
}

/// A pair and the place of `a` in it.
fn pair(protocol: &'static str, a: String, b: String) -> (Pair, usize) {
    if a <= b { ((protocol, a, b), 0) } else { ((protocol, b, a), 1) }
}

/// TShark's conversations over TCP and UDP; `None` where it gave none.
fn conversations(path: &Path) -> Option<BTreeMap<Pair, Sent>> {
    let text = fs::read_to_string(path).ok()?;
    let mut conversations = BTreeMap::new();
    let mut protocol = None;
    for line in text.lines() {
        match line {
            "TCP Conversations" => protocol = Some("tcp"),
            "UDP Conversations" => protocol = Some("udp"),
            line if line.ends_with(" Conversations") => protocol = None,
            _ => {}
        }
        let (Some(protocol), Some((a, rest))) = (protocol, line.split_once("<->")) else {
            continue;
        };
        let words: Vec<&str> = rest.split_whitespace().collect();
        // End, then frames and bytes towards the first end and towards this one.
        let &[b, to_a, to_a_bytes, to_a_unit, to_b, to_b_bytes, to_b_unit, ..] = words.as_slice()
        else {
            panic!("{}: {line}", path.display());
        };
        let bytes = |text: &str, unit| (unit == "bytes").then(|| text.parse().unwrap());
        let (pair, from) = pair(protocol, a.trim().to_owned(), b.to_owned());
        let sent: &mut Sent = conversations.entry(pair).or_default();
        let a_sent = (to_b, bytes(to_b_bytes, to_b_unit));
        let b_sent = (to_a, bytes(to_a_bytes, to_a_unit));
        for ((frames, bytes), at) in [(a_sent, from), (b_sent, 1 - from)] {
            // Several conversations between the same ends are several streams.
            let first = sent.packets == [0, 0] && sent.bytes == [None, None];
            sent.packets[at] += frames.parse::<u64>().unwrap();
            sent.bytes[at] = match (sent.bytes[at], bytes) {
                (Some(sum), Some(bytes)) => Some(sum + bytes),
                (None, bytes) if first || at != from => bytes,
                _ => None,
            };
        }
    }
    Some(conversations)
}

/// Bytes of TShark's streams per pair of ends, and how many streams miss bytes; their pairs are
/// left out.
fn streams(path: &Path) -> Option<(BTreeMap<Pair, [u64; 2]>, usize)> {
    let text = fs::read_to_string(path).ok()?;
    let mut streams = BTreeMap::<Pair, [u64; 2]>::new();
    let mut with_gaps = Vec::new();
    for line in text.lines().skip(1) {
        let cells: Vec<&str> = line.split('\t').collect();
        let &[_, a, b, a_bytes, _, a_gaps, b_bytes, _, b_gaps] = cells.as_slice() else {
            panic!("{}: {line}", path.display());
        };
        let unbracketed = |end: &str| end.replace(['[', ']'], "");
        let (pair, from) = pair("tcp", unbracketed(a), unbracketed(b));
        if [a_gaps, b_gaps] != ["-", "-"] {
            with_gaps.push(pair.clone());
        }
        let bytes = streams.entry(pair).or_default();
        bytes[from] += a_bytes.parse::<u64>().unwrap();
        bytes[1 - from] += b_bytes.parse::<u64>().unwrap();
    }
    streams.retain(|pair, _| !with_gaps.contains(pair));
    Some((streams, with_gaps.len()))
}
