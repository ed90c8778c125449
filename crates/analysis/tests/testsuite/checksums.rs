//! Wrong checksums: counted where they are, and left out as Zeek leaves them out.

use std::net::IpAddr;

use crate::support::{CONN, Row, Rows, analyse_with, packet};
use netsniff_analysis::checksums::Checked;
use netsniff_analysis::{ChecksumMode, Engine, Limits, Options};
use netsniff_packet::Timestamp;
use netsniff_packet::checksum::{self, ChecksumVerdict};
use netsniff_traffic::Random;
use netsniff_traffic::dialogue::{Dialogue, Setup, Side};
use netsniff_traffic::frame::{Host, udp_frame};

/// Frames with their times in nanoseconds.
type Frames = Vec<(i64, Vec<u8>)>;

/// Offsets in a frame of Ethernet and IPv4.
const IP_CHECKSUM: usize = 24;
const TTL: usize = 22;
const PAYLOAD_OF_UDP: usize = 42;

fn engine(frames: &[(i64, Vec<u8>)], checksums: ChecksumMode) -> (Rows, Engine) {
    let options = Options { checksums, ..Options::default() };
    let packets = frames.iter().map(|(nanos, data)| packet(Timestamp::from_nanos(*nanos), data));
    analyse_with(packets, Limits::default(), options)
}

fn run(frames: &[(i64, Vec<u8>)], checksums: ChecksumMode) -> Rows {
    engine(frames, checksums).0
}

/// The only row of `conn`.
fn conn(rows: &Rows) -> Row {
    let rows = rows.log("conn");
    assert_eq!(rows.len(), 1, "{rows:?}");
    rows[0].clone()
}

fn weirds(rows: &Rows) -> Vec<&str> {
    rows.log("weird").iter().map(|row| row["name"].as_str()).collect()
}

fn zeek_columns(row: &Row) -> Vec<&str> {
    CONN.iter().map(|name| row[*name].as_str()).collect()
}

fn dialogue(seed: u64) -> Frames {
    let setup = Setup { seed, ..Setup::default() };
    let mut dialogue = Dialogue::new(setup);
    dialogue.connect();
    for turn in 0..6_usize {
        let side = if turn.is_multiple_of(2) { Side::Client } else { Side::Server };
        dialogue.say(side, &vec![seed as u8 | 1; 700 + 900 * turn]);
    }
    dialogue.close(Side::Client).close(Side::Server);
    let seen = dialogue.finish().seen;
    seen.into_iter().map(|seen| (seen.timestamp.nanos(), seen.frame)).collect()
}

fn hosts() -> [Host; 2] {
    let host = |last, port| Host::new(IpAddr::from([192, 0, 2, last]), port);
    [host(1, 40_000), host(2, 9_999)]
}

/// A datagram from the first host to the second, or back.
fn datagram(to_second: bool, payload: &[u8]) -> Vec<u8> {
    let [a, b] = hosts();
    let (from, to) = if to_second { (a, b) } else { (b, a) };
    udp_frame(&from, &to, 7, payload).unwrap()
}

/// The frame with a bit of its last byte flipped.
fn damaged(mut frame: Vec<u8>) -> Vec<u8> {
    *frame.last_mut().unwrap() ^= 1;
    frame
}

/// The frame with a wrong IPv4 header, but right pseudo-header.
fn with_wrong_header(mut frame: Vec<u8>) -> Vec<u8> {
    frame[TTL] ^= 1;
    frame
}

/// One message a second.
fn each_second(frames: impl IntoIterator<Item = Vec<u8>>) -> Frames {
    (0..).map(|second| second * 1_000_000_000).zip(frames).collect()
}

/// What Zeek does with a bad checksum is, apart from the history, what it does without the packet.
#[test]
fn left_out_is_as_never_seen_but_for_a_letter() {
    let (mut left_out, mut with_letters) = (0, 0);
    for seed in 0..200 {
        let mut random = Random::new(seed);
        let all = dialogue(seed);
        let (mut spoiled, mut intact) = (Vec::new(), Vec::new());
        let mut bad = 0_u64;
        for (index, (nanos, frame)) in all.into_iter().enumerate() {
            // Without its first packet a connection begins later, which is another test.
            if index > 0 && random.chance(0.15) {
                // Any byte behind the ports, and none whose change the sum does not see.
                let at = 14 + 20 + 4 + random.below(frame.len() as u64 - 38) as usize;
                let mut frame = frame;
                frame[at] ^= 0x40;
                // Another length of its header would make it another packet.
                if at == 46 {
                    frame[at] ^= 0x41;
                }
                spoiled.push((nanos, frame));
                bad += 1;
            } else {
                spoiled.push((nanos, frame.clone()));
                intact.push((nanos, frame));
            }
        }
        let rows = run(&spoiled, ChecksumMode::Discard);
        let mut row = conn(&rows);
        assert_eq!(row["bad_checksums"], bad.to_string(), "seed {seed}");
        let told = weirds(&rows).iter().filter(|name| **name == "bad_TCP_checksum").count();
        let sides = ['C', 'c'].map(|letter| usize::from(row["history"].contains(letter)));
        assert_eq!(told, sides[0] + sides[1], "once for each side, seed {seed}");
        let history = row["history"].replace(['C', 'c'], "");
        with_letters += u64::from(history != row["history"]);
        row.insert("history".to_owned(), history);
        let expected = conn(&run(&intact, ChecksumMode::Count));
        assert_eq!(zeek_columns(&row), zeek_columns(&expected), "seed {seed}");
        left_out += bad;
    }
    assert!(left_out > 500 && with_letters > 150, "{left_out} left out, {with_letters} told");
}

#[test]
fn a_wrong_data_segment_leaves_a_letter_at_its_place() {
    let mut frames = dialogue(1);
    // Behind the handshake.
    let data = frames[3].1.len();
    assert!(data > 700);
    frames[3].1 = damaged(frames[3].1.clone());
    let rows = run(&frames, ChecksumMode::Discard);
    let row = conn(&rows);
    assert!(row["history"].starts_with("ShAC"), "{row:?}");
    let weird = rows.log("weird")[0];
    assert_eq!((weird["name"].as_str(), weird["source"].as_str()), ("bad_TCP_checksum", "TCP"));
    assert_eq!((&weird["uid"], &weird["id.orig_p"]), (&row["uid"], &row["id.orig_p"]));
    let before = conn(&run(&frames, ChecksumMode::Ignore));
    let packets = |row: &Row| row["orig_pkts"].parse::<u64>().unwrap();
    assert_eq!(packets(&row) + 1, packets(&before));
}

/// In the words of `TCPSessionAdapter::ExpireTimer`: nothing ever happened on this connection.
#[test]
fn a_connection_may_begin_and_end_with_a_wrong_packet() {
    let first = damaged(dialogue(1)[3].1.clone());
    let rows = run(&[(0, first.clone())], ChecksumMode::Discard);
    let row = conn(&rows);
    let found: Vec<_> =
        ["ts", "conn_state", "history", "orig_pkts", "orig_ip_bytes", "duration", "orig_bytes"]
            .map(|name| row[name].as_str())
            .to_vec();
    assert_eq!(found, ["0.000000", "OTH", "C", "0", "0", "-", "-"]);
    assert_eq!((row["bad_checksums"].as_str(), weirds(&rows)), ("1", vec!["bad_TCP_checksum"]));
    // The first look that comes more than the linger time after it, 11 s, finds it over.
    for (seconds, connections) in [(10, 1), (12, 2)] {
        let again = seconds * 1_000_000_000;
        let rows = run(&[(0, first.clone()), (again, first.clone())], ChecksumMode::Discard);
        assert_eq!(rows.log("conn").len(), connections, "{seconds} s");
    }
    // One that is silent but for wrong packets times out.
    let wrong = |seconds: i64| (seconds * 1_000_000_000, damaged(datagram(true, b"hello")));
    let rows = run(&[wrong(0), wrong(59), wrong(61)], ChecksumMode::Discard);
    let counts: Vec<_> = rows.log("conn").iter().map(|row| row["bad_checksums"].clone()).collect();
    assert_eq!(counts, ["2", "1"], "wrong packets prolong nothing");
}

#[test]
fn letters_come_at_powers_of_ten_for_each_side() {
    let good = || datagram(true, b"hello");
    let from_first = (0..100).map(|_| damaged(datagram(true, b"hello")));
    let from_second = (0..9).map(|_| damaged(datagram(false, b"hello")));
    let all = core::iter::once(good()).chain(from_first).chain(from_second);
    let frames: Frames = (0..).zip(all).collect();
    let rows = run(&frames, ChecksumMode::Discard);
    let row = conn(&rows);
    assert_eq!((row["history"].as_str(), row["bad_checksums"].as_str()), ("DCCCc", "109"));
    assert_eq!((row["orig_pkts"].as_str(), row["resp_pkts"].as_str()), ("1", "0"));
    assert_eq!(weirds(&rows), ["bad_UDP_checksum"; 2], "once for each side");
}

#[test]
fn counting_changes_nothing_else() {
    for seed in 0..50 {
        let mut random = Random::new(seed);
        let mut bad = 0;
        let mut frames = dialogue(seed);
        for (_, frame) in &mut frames {
            if frame.len() > 60 && random.chance(0.3) {
                *frame = if random.chance(0.5) {
                    damaged(frame.clone())
                } else {
                    // A packet counts once, whatever is wrong with it.
                    with_wrong_header(damaged(frame.clone()))
                };
                bad += 1;
            } else if random.chance(0.1) {
                *frame = with_wrong_header(frame.clone());
                bad += 1;
            }
        }
        let [counted, ignored] =
            [ChecksumMode::Count, ChecksumMode::Ignore].map(|mode| run(&frames, mode));
        assert_eq!(weirds(&counted), weirds(&ignored), "seed {seed}");
        let (counted, mut ignored) = (conn(&counted), conn(&ignored));
        assert_eq!(ignored["bad_checksums"], "-");
        ignored.insert("bad_checksums".to_owned(), bad.to_string());
        assert_eq!(counted, ignored, "seed {seed}");
    }
}

#[test]
fn what_was_left_to_the_card_is_counted_apart() {
    let mut frame = datagram(true, b"on its way out");
    let [a, b] = hosts().map(|host| host.address.into());
    let len = frame.len() - 34;
    // The sum of a segment of zeros is that of its pseudo-header.
    let sum = !checksum::compute_with_pseudo_header(a, b, 17, &vec![0; len]);
    frame[40..42].copy_from_slice(&sum.to_be_bytes());
    for (mode, row_says) in
        [(ChecksumMode::Count, ["0", "D", "1"]), (ChecksumMode::Discard, ["1", "C", "0"])]
    {
        let (rows, engine) = engine(&[(0, frame.clone())], mode);
        let row = conn(&rows);
        assert_eq!(["bad_checksums", "history", "orig_pkts"].map(|name| &row[name]), row_says);
        let udp = engine.tracker().statistics().checksums().find(|(of, _)| *of == Checked::Udp);
        let verdicts = udp.unwrap().1;
        assert_eq!(
            (verdicts.of(ChecksumVerdict::Partial), verdicts.of(ChecksumVerdict::Bad)),
            (1, 0),
            "{mode:?}"
        );
    }
}

#[test]
fn a_wrong_header_goes_no_further() {
    let frames =
        each_second([datagram(true, b"good"), with_wrong_header(datagram(true, b"wrong header"))]);
    let (rows, engine) = engine(&frames, ChecksumMode::Discard);
    let row = conn(&rows);
    assert_eq!((row["orig_pkts"].as_str(), row["history"].as_str()), ("1", "D"));
    assert_eq!((row["bad_checksums"].as_str(), weirds(&rows)), ("0", vec!["bad_IP_checksum"]));
    assert_eq!(rows.log("weird")[0]["uid"], "-");
    let packets = engine.ingress().statistics();
    assert_eq!((packets.discarded, packets.decoded, packets.stopped), (1, 1, 0));
    assert_eq!(packets.ip_checksums.of(ChecksumVerdict::Bad), 1);
    let alone = run(&frames[1..], ChecksumMode::Discard);
    assert!(alone.log("conn").is_empty());
}

#[test]
fn icmp_has_no_letter() {
    let mut message = vec![8, 0, 0, 0, 0, 7, 0, 1];
    message.extend(b"ping");
    let sum = checksum::compute(&message);
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    let mut frame = datagram(true, &[0; 4]);
    frame[23] = 1;
    frame.truncate(34);
    frame.extend(&message);
    frame[IP_CHECKSUM..IP_CHECKSUM + 2].fill(0);
    let sum = checksum::compute(&frame[14..34]);
    frame[IP_CHECKSUM..IP_CHECKSUM + 2].copy_from_slice(&sum.to_be_bytes());
    let rows = run(&each_second([frame.clone(), damaged(frame)]), ChecksumMode::Discard);
    let row = conn(&rows);
    assert_eq!((row["orig_pkts"].as_str(), row["history"].as_str()), ("1", "-"));
    assert_eq!((row["bad_checksums"].as_str(), weirds(&rows)), ("1", vec!["bad_ICMP_checksum"]));
}

/// A datagram in two fragments; the payload of the first has a length of 8 bytes times something.
fn fragments(frame: &[u8]) -> [Vec<u8>; 2] {
    let (headers, payload) = frame.split_at(34);
    let (first, second) = payload.split_at(64);
    [(first, 0x2000_u16), (second, 8)].map(|(payload, word)| {
        let mut frame = headers.to_vec();
        frame.extend(payload);
        frame[16..18].copy_from_slice(&(20 + payload.len() as u16).to_be_bytes());
        frame[20..22].copy_from_slice(&word.to_be_bytes());
        frame[IP_CHECKSUM..IP_CHECKSUM + 2].fill(0);
        let sum = checksum::compute(&frame[14..34]);
        frame[IP_CHECKSUM..IP_CHECKSUM + 2].copy_from_slice(&sum.to_be_bytes());
        frame
    })
}

#[test]
fn fragments_have_headers_of_their_own_and_one_checksum() {
    let whole = datagram(true, &[5; 100]);
    let [first, second] = fragments(&whole);
    for (frames, in_count, in_discard) in [
        ([first.clone(), second.clone()], Some("0"), Some("0")),
        ([first.clone(), damaged(second.clone())], Some("1"), Some("1")),
        ([with_wrong_header(first.clone()), second.clone()], Some("1"), None),
        ([first, with_wrong_header(second)], Some("1"), None),
    ] {
        for (mode, expected) in
            [(ChecksumMode::Count, in_count), (ChecksumMode::Discard, in_discard)]
        {
            let rows = run(&each_second(frames.clone()), mode);
            let found = rows.log("conn").first().map(|row| row["bad_checksums"].as_str());
            assert_eq!(found, expected, "{mode:?}");
        }
    }
}

/// A datagram between other hosts in a VXLAN tunnel.
fn tunnelled(inner: &[u8]) -> Vec<u8> {
    let [mut a, mut b] = hosts();
    (a.port, b.port) = (50_000, 4789);
    let payload = [&[8, 0, 0, 0, 0, 0, 7, 0], inner].concat();
    udp_frame(&a, &b, 8, &payload).unwrap()
}

fn inside(payload: &[u8]) -> Vec<u8> {
    let [mut a, mut b] = hosts();
    (a.address, b.address) = (IpAddr::from([198, 51, 100, 1]), IpAddr::from([198, 51, 100, 2]));
    udp_frame(&a, &b, 9, payload).unwrap()
}

#[test]
fn nothing_inside_a_wrong_datagram_counts() {
    let frames = each_second([
        damaged(tunnelled(&inside(b"never seen"))),
        tunnelled(&inside(b"seen")),
        tunnelled(&damaged(inside(b"wrong itself"))),
        tunnelled(&with_wrong_header(inside(b"no datagram"))),
    ]);
    assert!(frames[0].1[PAYLOAD_OF_UDP] == 8);
    let rows = run(&frames, ChecksumMode::Discard);
    let conns = rows.log("conn");
    let of = |port: &str| conns.iter().find(|row| row["id.resp_p"] == port).unwrap();
    let (outer, inner) = (of("4789"), of("9999"));
    assert_eq!(conns.len(), 2);
    assert_eq!((outer["history"].as_str(), outer["orig_pkts"].as_str()), ("CD", "3"));
    assert_eq!((inner["history"].as_str(), inner["orig_pkts"].as_str()), ("DC", "1"));
    assert_eq!((&inner["tunnel_parents"], inner["ts"].as_str()), (&outer["uid"], "1.000000"));
    let mut names = weirds(&rows);
    names.sort_unstable();
    assert_eq!(names, ["bad_IP_checksum", "bad_UDP_checksum", "bad_UDP_checksum"]);
    // The tunnel has the name of the flow that its first, wrong, datagram began.
    assert_eq!(rows.log("tunnel")[0]["uid"], outer["uid"]);
    let counted = run(&frames, ChecksumMode::Count);
    let sum = |rows: &Rows| {
        let counts = rows.log("conn").into_iter().map(|row| row["bad_checksums"].clone());
        counts.map(|count| count.parse::<u64>().unwrap()).sum::<u64>()
    };
    // In the first frame the last byte, which is wrong, belongs to both datagrams.
    assert_eq!((sum(&rows), sum(&counted)), (2, 4));
}
