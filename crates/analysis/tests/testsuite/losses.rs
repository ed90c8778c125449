//! Who lost what: conversations in virtual time, of which it is known what the network lost before
//! and behind the tap, and what the capture lost. The verdicts must say the same.

use crate::support;
use std::collections::HashSet;
use std::time::Duration;

use crate::support::{Row, Rows, analyse};
use netsniff_analysis::{Engine, Limits, Options};
use netsniff_packet::decode::{self, Tcp, TcpFlags, Transport};
use netsniff_packet::{LinkType, Loss, Packet, Stage, Timestamp};
use netsniff_traffic::Random;
use netsniff_traffic::dialogue::{Cause, Dialogue, DialogueTrace, Leg, Seen, Segment, Setup, Side};
use netsniff_traffic::frame::Host;

fn packet(seen: &Seen) -> Packet<'_> {
    support::packet(seen.timestamp, &seen.frame)
}

fn tcp(seen: &Seen) -> Tcp {
    let decoded = decode::packet(LinkType::ETHERNET, &seen.frame, seen.frame.len() as u32);
    let Transport::Tcp(tcp) = decoded.transport else { panic!("no TCP: {decoded:?}") };
    tcp
}

/// Sequence numbers that a segment takes.
fn len(tcp: &Tcp) -> u32 {
    let control = [TcpFlags::SYN, TcpFlags::FIN].into_iter().filter(|&flag| tcp.flags.any(flag));
    tcp.payload_len + control.count() as u32
}

/// A conversation that depends on nothing but the seed.
fn story(seed: u64, loss: f64) -> DialogueTrace {
    let mut random = Random::new(seed);
    let mut micros = || Duration::from_micros(100 + random.below(40_000));
    let delay = (micros(), micros());
    let number = |random: &mut Random| {
        let number = random.below(1 << 32) as u32;
        if random.chance(0.5) { number | 0xffff_f000 } else { number }
    };
    let setup = Setup {
        delay,
        loss: (random.below(2) as f64 * loss, random.below(2) as f64 * loss),
        seed,
        mss: [536, 1220, 1460][random.below(3) as usize],
        sack: random.chance(0.5),
        timestamps: random.chance(0.5),
        initial_sequence: (number(&mut random), number(&mut random)),
        ..Setup::default()
    };
    let mut dialogue = Dialogue::new(setup);
    dialogue.connect();
    for _ in 0..1 + random.below(6) {
        let side = if random.chance(0.5) { Side::Client } else { Side::Server };
        dialogue.say(side, &vec![seed as u8; 1 + random.below(30_000) as usize]);
    }
    let side = if random.chance(0.5) { Side::Client } else { Side::Server };
    dialogue.close(side).close(side.other());
    dialogue.finish()
}

/// What is known of a conversation, and the rows of its logs.
struct Judged {
    conn: Row,
    gaps: Vec<Row>,
}

impl Judged {
    fn of<'a>(seen: impl IntoIterator<Item = &'a Seen>) -> Self {
        Self::with(seen, Limits::default())
    }

    fn with<'a>(seen: impl IntoIterator<Item = &'a Seen>, limits: Limits) -> Self {
        // The capture has run for long when the conversation begins.
        let start = Setup::default().start.nanos() - 60_000_000_000;
        let setup = Setup { start: Timestamp::from_nanos(start), ..Setup::default() };
        let mut earlier = Dialogue::new(setup);
        earlier.datagram(Side::Client, b"somebody else");
        let earlier = earlier.finish().seen;
        let mut packets: Vec<Packet<'_>> = earlier.iter().map(packet).collect();
        for seen in seen {
            packets.push(packet(seen));
        }
        let rows: Rows = analyse(packets, limits);
        let conn: Vec<_> =
            rows.log("conn").into_iter().filter(|row| row["proto"] == "tcp").collect();
        assert_eq!(conn.len(), 1);
        Self { conn: conn[0].clone(), gaps: rows.log("gaps").into_iter().cloned().collect() }
    }

    /// Bytes and number of the rows with a cause.
    fn lost(&self, cause: &str) -> (u64, usize) {
        let rows = self.gaps.iter().filter(|row| row["cause"] == cause);
        (rows.clone().map(|row| row["bytes"].parse::<u64>().unwrap()).sum(), rows.count())
    }

    fn quality(&self) -> &str {
        &self.conn["quality"]
    }

    fn bytes(&self, column: &str) -> u64 {
        self.conn[column].parse().unwrap_or_else(|_| panic!("{column}: {:?}", self.conn))
    }

    /// The rows as `what cause ended start-end`.
    fn words(&self) -> Vec<String> {
        let words = |row: &Row| {
            let side = if row["is_orig"] == "T" { "orig" } else { "resp" };
            let [what, cause, ended] = ["what", "cause", "ended"].map(|name| &row[name]);
            format!("{side} {what} {cause} {ended} {}-{}", row["start"], row["end"])
        };
        self.gaps.iter().map(words).collect()
    }
}

/// Whether what a lost segment brought is acknowledged by one that was captured.
fn is_shown(lost: &Seen, kept: &[&Seen]) -> bool {
    let header = tcp(lost);
    let end = header.sequence.wrapping_add(len(&header));
    kept.iter().any(|seen| {
        let answer = tcp(seen);
        seen.from != lost.from
            && seen.timestamp > lost.timestamp
            && answer.flags.any(TcpFlags::ACK)
            && answer.acknowledgement.wrapping_sub(end) as i32 >= 0
    })
}

/// The payload of ten segments of 1,448 bytes.
const TEN: usize = 14_480;

/// A server says ten segments, of which `leg` loses the fourth, and both close.
fn download(leg: Option<Leg>) -> DialogueTrace {
    let mut dialogue = Dialogue::new(Setup::default());
    dialogue.connect().say(Side::Client, b"question");
    if let Some(leg) = leg {
        dialogue.lose(Side::Server, leg, 3, 1);
    }
    dialogue.say(Side::Server, &[b'x'; TEN]);
    dialogue.close(Side::Server).close(Side::Client);
    dialogue.finish()
}

/// Numbers of the frames of a side with payload.
fn data(story: &DialogueTrace, side: Side) -> Vec<usize> {
    let is_data = |seen: &Seen| seen.from == side && tcp(seen).payload_len > 0;
    (0..story.seen.len()).filter(|&at| is_data(&story.seen[at])).collect()
}

/// Numbers of the frames of a side with a flag.
fn flagged(story: &DialogueTrace, side: Side, flag: TcpFlags) -> Vec<usize> {
    let is_it = |seen: &Seen| seen.from == side && tcp(seen).flags.any(flag);
    (0..story.seen.len()).filter(|&at| is_it(&story.seen[at])).collect()
}

/// What is judged of a story of which the capture lost the frames with some numbers.
fn without(story: &DialogueTrace, lost: &[usize]) -> Judged {
    let kept = story.seen.iter().enumerate().filter(|(at, _)| !lost.contains(at));
    Judged::of(kept.map(|(_, seen)| seen))
}

#[test]
fn one_loss_is_told_with_its_place() {
    let whole = without(&download(None), &[]);
    assert_eq!((whole.quality(), whole.words().len()), ("clean", 0));
    for (leg, cause) in [(Leg::Far, "network_before"), (Leg::Near, "network_behind")] {
        let judged = without(&download(Some(leg)), &[]);
        assert_eq!(judged.words(), [format!("resp data {cause} filled 4344-5792")]);
        assert_eq!(judged.quality(), "clean");
        assert_eq!(judged.bytes("network_missed_bytes"), 1448);
        assert_eq!(judged.bytes("capture_missed_bytes"), 0);
    }
    let story = download(None);
    let judged = without(&story, &data(&story, Side::Server)[3..4]);
    assert_eq!(judged.words(), ["resp data capture acknowledged 4344-5792"]);
    assert_eq!(judged.quality(), "touched");
    assert_eq!(judged.bytes("capture_missed_bytes"), 1448);
    assert_eq!(judged.bytes("network_missed_bytes"), 0);
}

#[test]
fn what_was_lost_and_whose_repair_the_capture_lost_has_two_causes() {
    for (leg, what, cause) in
        [(Leg::Far, "data", "network_before"), (Leg::Near, "retransmission", "network_behind")]
    {
        let story = download(Some(leg));
        let again = (0..story.seen.len()).find(|&at| story.seen[at].cause == Cause::Fast);
        let judged = without(&story, &[again.unwrap()]);
        let expected = [
            format!("resp data {cause} filled 4344-5792"),
            format!("resp {what} capture acknowledged 4344-5792"),
        ];
        assert_eq!(judged.words(), expected);
        assert_eq!(judged.quality(), "touched");
        assert_eq!(judged.bytes("network_missed_bytes"), 1448);
        let missing = if what == "data" { 1448 } else { 0 };
        assert_eq!(judged.bytes("capture_missed_bytes"), missing);
    }
}

#[test]
fn a_segment_that_is_captured_a_little_late_is_not_lost() {
    for (millis, expected) in
        [(9, vec![]), (11, vec!["resp data capture acknowledged 4344-5792".to_owned()])]
    {
        let mut story = download(None);
        let late = data(&story, Side::Server)[3];
        let end = tcp(&story.seen[late]).sequence.wrapping_add(1448);
        let acknowledges = |seen: &&Seen| {
            seen.from == Side::Client
                && tcp(seen).acknowledgement.wrapping_sub(end) as i32 >= 0
                && seen.timestamp > story.seen[late].timestamp
        };
        let answered = story.seen.iter().find(acknowledges).unwrap().timestamp;
        story.seen[late].timestamp = answered + Duration::from_millis(millis);
        story.seen.sort_by_key(|seen| seen.timestamp);
        assert_eq!(without(&story, &[]).words(), expected, "{millis} ms");
    }
}

#[test]
fn segments_without_data_are_missed_too() {
    use Side::{Client, Server};
    let story = download(None);
    for (side, flag, expected) in [
        (Client, TcpFlags::SYN, "orig syn capture acknowledged 0-0"),
        (Server, TcpFlags::SYN, "resp syn_ack capture acknowledged 0-0"),
        (Client, TcpFlags::FIN, "orig fin capture acknowledged 8-9"),
        (Server, TcpFlags::FIN, "resp fin capture acknowledged 14480-14481"),
    ] {
        let judged = without(&story, &flagged(&story, side, flag));
        assert_eq!((judged.words(), judged.quality()), (vec![expected.to_owned()], "touched"));
        assert_eq!(judged.bytes("capture_missed_bytes"), 0);
    }
    // The SYN-ACK, and what was sent up to the second data.
    let until = data(&story, Server)[1];
    let lost: Vec<_> = (0..until).filter(|&at| story.seen[at].from == Server).collect();
    let expected =
        ["resp syn_ack capture acknowledged 0-0", "resp data capture acknowledged 0-1448"];
    assert_eq!(without(&story, &lost).words(), expected);
    // The last data and the FIN behind it, at once.
    let mut last = data(&story, Server)[9..].to_vec();
    last.extend(flagged(&story, Server, TcpFlags::FIN));
    let expected =
        ["resp data capture acknowledged 13032-14480", "resp fin capture acknowledged 14480-14481"];
    let judged = without(&story, &last);
    assert_eq!(judged.words(), expected);
    assert_eq!(judged.bytes("capture_missed_bytes"), 1448);
}

#[test]
fn a_reset_in_order_acknowledges_what_was_never_seen() {
    for (off, expected) in
        [(0, vec!["resp data capture acknowledged 0-1448".to_owned()]), (9, vec![])]
    {
        let mut dialogue = Dialogue::new(Setup::default());
        dialogue.connect().say(Side::Server, &[b'x'; 1448]);
        let reset = dialogue.template(Side::Client);
        let sequence = reset.sequence.wrapping_add(off);
        let flags = TcpFlags::RST.with(TcpFlags::ACK);
        dialogue.segment(Segment { sequence, flags, ..reset });
        let story = dialogue.finish();
        // All but the handshake and the reset.
        let lost: Vec<_> = (3..story.seen.len() - 1).collect();
        assert_eq!(without(&story, &lost).words(), expected, "{off}");
    }
}

#[test]
fn a_hole_is_known_by_the_number_of_an_acknowledgement_alone() {
    let story = download(None);
    let lost = &data(&story, Side::Server)[9..];
    // The client's acknowledgement of it is missing, too, and so is all that follows its FIN.
    let fin = flagged(&story, Side::Client, TcpFlags::FIN)[0];
    let gone = |at: usize| at >= lost[0] && story.seen[at].from == Side::Client;
    let kept = (0..fin).filter(|&at| !gone(at) && !lost.contains(&at));
    let judged = Judged::of(kept.map(|at| &story.seen[at]));
    assert_eq!(judged.words(), ["resp data unknown end_of_flow 13032-14480"]);
    assert_eq!(judged.quality(), "suspect");
}

#[test]
fn nothing_is_claimed_without_evidence() {
    let story = download(Some(Leg::Near));
    for side in [Side::Client, Side::Server] {
        let judged = Judged::of(story.seen.iter().filter(|seen| seen.from == side));
        assert_eq!(judged.quality(), "unknown", "{side:?}: {:?}", judged.words());
        assert_eq!(judged.conn["capture_missed_bytes"], "-");
        assert_eq!(judged.conn["network_missed_bytes"], "-");
        assert_eq!(judged.lost("capture").1, 0);
    }
    // Picked up in its middle: what is seen is judged, what came before is not.
    let judged = Judged::of(&story.seen[3..]);
    assert_eq!(judged.quality(), "unknown");
    assert_eq!(judged.words(), ["resp data network_behind filled 4344-5792"]);
}

#[test]
fn what_comes_twice_need_not_have_been_lost() {
    // Each frame twice, as some mirrors have it.
    let story = download(None);
    let doubled = story.seen.iter().flat_map(|seen| [seen, seen]);
    let judged = Judged::of(doubled);
    assert_eq!((judged.quality(), judged.words().len()), ("clean", 0));

    // Sent again after it was acknowledged.
    let mut dialogue = Dialogue::new(Setup::default());
    dialogue.connect().say(Side::Server, &[b'x'; 3000]);
    let template = dialogue.template(Side::Server);
    let sequence = template.sequence.wrapping_sub(1000);
    dialogue.segment(Segment { sequence, payload: vec![b'x'; 1000], ..template });
    dialogue.close(Side::Server).close(Side::Client);
    let judged = Judged::of(&dialogue.finish().seen);
    assert_eq!((judged.quality(), judged.words().len()), ("clean", 0));

    // Sent again before that, and the receiver reports that it had it: RFC 2883.
    for (is_reported, expected) in [(false, "network_behind"), (true, "")] {
        let mut dialogue = Dialogue::new(Setup::default());
        dialogue.connect();
        let said = dialogue.template(Side::Server);
        for _ in 0..2 {
            dialogue.segment(Segment { payload: vec![b'x'; 1000], ..said.clone() });
            dialogue.pause(Duration::from_millis(300));
        }
        let mut answer = dialogue.template(Side::Client);
        if is_reported {
            answer.sack = vec![(said.sequence, said.sequence.wrapping_add(1000))];
        }
        dialogue.segment(answer);
        let seen = dialogue.finish().seen;
        // The acknowledgements of both copies are left out.
        let (last, rest) = seen.split_last().unwrap();
        let kept = rest.iter().enumerate();
        let kept = kept.filter(|(at, seen)| *at < 3 || seen.from == Side::Server);
        let judged = Judged::of(kept.map(|(_, seen)| seen).chain([last]));
        let causes: Vec<_> = judged.gaps.iter().map(|row| row["cause"].as_str()).collect();
        assert_eq!(causes.join(" "), expected);
    }
}

#[test]
fn what_a_snaplen_cut_was_seen() {
    let story = download(None);
    let cut: Vec<_> = story
        .seen
        .iter()
        .map(|seen| {
            let mut packet = packet(seen);
            packet.data = &packet.data[..packet.data.len().min(96)];
            packet
        })
        .collect();
    let rows = analyse(cut, Limits::default());
    let conn = rows.log("conn")[0].clone();
    assert_eq!(conn["quality"], "clean");
    assert_eq!(
        (conn["missed_bytes"].as_str(), conn["capture_missed_bytes"].as_str()),
        ("14480", "0")
    );
    assert!(rows.log("gaps").is_empty());
}

#[test]
fn beyond_the_bounds_losses_are_counted() {
    let story = download(None);
    let lost: Vec<_> = data(&story, Side::Server).into_iter().step_by(2).collect();
    let kept =
        || story.seen.iter().enumerate().filter(|(at, _)| !lost.contains(at)).map(|(_, s)| s);
    for limits in [
        Limits { listed_gaps: 2, ..Limits::default() },
        Limits { listed_gaps: 0, ..Limits::default() },
        Limits { open_gaps: 1, ..Limits::default() },
    ] {
        let judged = Judged::with(kept(), limits);
        let more: u64 = judged.gaps.iter().filter_map(|row| row["more"].parse::<u64>().ok()).sum();
        assert_eq!(judged.quality(), "touched");
        if limits.listed_gaps > 0 {
            assert_eq!(judged.gaps.len() as u64 + more, 5, "{:?}", judged.words());
        }
        // Of a hole that was given up nobody knows who lost it.
        let expected = if limits.open_gaps == 1 { "-" } else { "7240" };
        assert_eq!(judged.conn["capture_missed_bytes"], expected, "{:?}", judged.words());
    }
}

#[test]
fn a_loss_of_the_capture_has_a_row_and_touches_what_it_may_have_hidden() {
    let story = download(None);
    let loss = Loss {
        before: Some(story.seen[2].timestamp),
        after: story.seen[3].timestamp,
        packets: 17,
        stage: Stage::System,
    };
    // Before the connection, in it, or right before it is picked up in its middle.
    for (skipped, place, quality) in
        [(0, 0, "clean"), (0, 3, "touched"), (3, 3, "touched"), (1, 1, "touched")]
    {
        let mut rows = Rows::default();
        let mut engine = Engine::new(Limits::default(), Options::default(), 7);
        let mut other = Dialogue::new(Setup::default());
        other.datagram(Side::Client, b"somebody else");
        engine.packet(&packet(&other.finish().seen[0]), &mut rows);
        for (at, seen) in story.seen.iter().enumerate() {
            if at == place {
                engine.loss(&loss, &mut rows);
            }
            if at >= skipped {
                engine.packet(&packet(seen), &mut rows);
            }
        }
        engine.finish(&mut rows);
        rows.sort();
        let conn = rows.log("conn");
        let tcp = conn.iter().find(|row| row["proto"] == "tcp").unwrap();
        assert_eq!(tcp["quality"], quality, "{skipped} {place}");
        let gaps = rows.log("gaps");
        assert_eq!(gaps.len(), 1);
        let words = ["what", "cause", "stage", "packets", "uid"].map(|name| gaps[0][name].as_str());
        assert_eq!(words, ["packets", "capture", "system", "17", "-"]);
    }
}

/// Timers come up by ticks of 10 ms, but what ends in one before a loss is not touched by it.
#[test]
fn a_flow_that_ended_before_a_loss_in_its_tick_is_not_touched() {
    let begin = Timestamp::from_secs_nanos(1000, 0);
    let datagram = |client: u8, nanos: i64| {
        let client = Host::new([10, 0, 0, client].into(), 4000);
        let start = begin.offset(nanos);
        let mut dialogue = Dialogue::new(Setup { client, start, ..Setup::default() });
        dialogue.datagram(Side::Client, b"hello");
        dialogue.finish().seen.remove(0)
    };
    let minute = 60_000_000_000;
    let all = [datagram(1, 0), datagram(2, 1000), datagram(3, minute + 500)];
    let after = all[2].timestamp;
    let (mut rows, limits) = (Rows::default(), Limits::default());
    let mut engine = Engine::new(limits, Options::default(), 7);
    all.iter().for_each(|seen| engine.packet(&packet(seen), &mut rows));
    let lost = Loss { before: None, after, packets: 17, stage: Stage::System };
    engine.loss(&lost, &mut rows);
    engine.finish(&mut rows);
    rows.sort();
    let conn = rows.log("conn");
    let told = [1, 2, 3].map(|client| {
        let client = format!("10.0.0.{client}");
        let row = conn.iter().find(|row| row["id.orig_h"] == client.as_str());
        row.is_some_and(|row| row["quality"] == "touched")
    });
    assert_eq!(told, [false, true, true]);
}

#[test]
fn what_the_capture_lost_is_told_with_precision_and_recall() {
    let (mut shown, mut found, mut touched, mut wrong) = (0, 0, 0, 0);
    let (mut only_acknowledgements, mut bytes_lost) = (0, 0);
    for seed in 0..600 {
        let story = story(seed, 0.0);
        let mut random = Random::new(seed ^ 0x1055);
        let share = [0.001, 0.01, 0.03, 0.05][(seed % 4) as usize];
        let (lost, kept): (Vec<&Seen>, Vec<&Seen>) =
            story.seen.iter().partition(|_| random.chance(share));
        let judged = Judged::of(kept.iter().copied());
        let weighty: Vec<_> = lost.iter().filter(|seen| len(&tcp(seen)) > 0).collect();
        let is_shown = weighty.iter().any(|seen| is_shown(seen, &kept));
        let is_touched = judged.quality() == "touched";
        shown += u32::from(is_shown);
        found += u32::from(is_shown && is_touched);
        touched += u32::from(is_touched);
        wrong += u32::from(is_touched && weighty.is_empty());
        only_acknowledgements += u32::from(!lost.is_empty() && weighty.is_empty());
        if is_shown != is_touched {
            eprintln!(
                "seed {seed}: {} for {} lost: {:?}",
                judged.quality(),
                weighty.len(),
                judged.words()
            );
        }
        let is_complete = weighty.iter().all(|lost| self::is_shown(lost, &kept));
        if is_complete && judged.conn["quality"] != "unknown" {
            let expected: u64 = weighty.iter().map(|seen| u64::from(tcp(seen).payload_len)).sum();
            assert_eq!(
                judged.bytes("capture_missed_bytes"),
                expected,
                "seed {seed}: {:?}",
                judged.words()
            );
            assert_eq!(judged.lost("capture").0, expected, "seed {seed}");
            assert_eq!(
                judged.bytes("network_missed_bytes"),
                0,
                "seed {seed}: {:?}",
                judged.words()
            );
            bytes_lost += expected;
        }
    }
    eprintln!(
        "600 flows, {shown} with a loss that is shown: {found} found; {touched} touched, {wrong} \
         wrongly; {only_acknowledgements} lost only acknowledgements; {bytes_lost} bytes"
    );
    assert!(shown > 100 && bytes_lost > 500_000);
    assert!(f64::from(found) >= 0.99 * f64::from(shown), "{found} of {shown}");
    assert!(f64::from(wrong) <= 0.01 * f64::from(touched), "{wrong} of {touched}");
}

/// What the network lost of payload, as far as the tap can know: before it and behind it.
fn network(story: &DialogueTrace) -> (u64, u64) {
    let (mut before, mut behind) = (0, 0);
    let mut holes = HashSet::new();
    for lost in story.lost.iter().filter(|lost| lost.len > 0) {
        let of_sender = |seen: &&Seen| seen.from == lost.from && seen.timestamp >= lost.sent;
        let later = story.seen.iter().filter(of_sender).map(|seen| (seen, tcp(seen)));
        if lost.seen() {
            behind += u64::from(lost.len);
            continue;
        }
        // It is noticed only if something beyond it passes before it comes again.
        let mut later = later.skip_while(|(_, tcp)| {
            tcp.sequence.wrapping_sub(lost.sequence) as i32 <= 0 && tcp.sequence != lost.sequence
        });
        let first = later.next().map(|(_, tcp)| tcp.sequence);
        // Whether one that fills a hole was lost on its way, too, nobody can tell.
        let is_noticed = first != Some(lost.sequence) && holes.insert((lost.from, lost.sequence));
        before += if is_noticed { u64::from(lost.len) } else { 0 };
    }
    (before, behind)
}

#[test]
fn what_the_network_lost_is_no_loss_of_the_capture() {
    let (mut lossy, mut right) = (0, 0);
    for seed in 0..600 {
        let story = story(seed, 0.02);
        let judged = Judged::of(&story.seen);
        assert_eq!(judged.lost("capture"), (0, 0), "seed {seed}: {:?}", judged.words());
        assert_eq!(judged.quality(), "clean", "seed {seed}: {:?}", judged.words());
        assert_eq!(judged.bytes("capture_missed_bytes"), 0);
        if story.lost.iter().any(|lost| lost.len == 0) {
            // Without a D-SACK, which may be among the lost ones, what is sent again since an
            // acknowledgement was lost looks as if the data had been.
            continue;
        }
        let (before, behind) = network(&story);
        let told = (judged.lost("network_before").0, judged.lost("network_behind").0);
        assert_eq!(judged.bytes("network_missed_bytes"), told.0 + told.1);
        // Hosts without SACK never tell whether they had what came again after a time-out.
        let reports = tcp(&story.seen[0]).options.sack_permitted;
        let told = (told.0, told.1 + if reports { 0 } else { judged.lost("unknown").0 });
        lossy += u32::from(before + behind > 0);
        right += u32::from(before + behind > 0 && told == (before, behind));
        if told != (before, behind) {
            eprintln!("seed {seed}: {told:?} for {:?}: {:?}", (before, behind), judged.words());
        }
    }
    eprintln!("{right} of {lossy} right");
    assert!(lossy > 50);
    assert!(f64::from(right) >= 0.99 * f64::from(lossy), "{right} of {lossy}");
}

#[test]
fn two_causes_in_one_conversation_are_told_apart() {
    let (mut shown, mut found, mut touched, mut wrong) = (0, 0, 0, 0);
    for seed in 1000..1800 {
        let story = story(seed, 0.02);
        let mut random = Random::new(seed ^ 0x1055);
        let share = [0.001, 0.01, 0.03, 0.05][(seed / 4 % 4) as usize];
        let (lost, kept): (Vec<&Seen>, Vec<&Seen>) =
            story.seen.iter().partition(|_| random.chance(share));
        let judged = Judged::of(kept.iter().copied());
        let weighty: Vec<_> = lost.iter().filter(|seen| len(&tcp(seen)) > 0).collect();
        let is_shown = weighty.iter().any(|seen| is_shown(seen, &kept));
        let is_touched = judged.quality() == "touched";
        shown += u32::from(is_shown);
        found += u32::from(is_shown && is_touched);
        touched += u32::from(is_touched);
        wrong += u32::from(is_touched && weighty.is_empty());
        if is_shown != is_touched {
            let lost: Vec<_> = weighty
                .iter()
                .map(|seen| (seen.from, seen.cause, tcp(seen).sequence, tcp(seen).payload_len))
                .collect();
            eprintln!("seed {seed}: {} for {lost:?}: {:?}", judged.quality(), judged.words());
        }
    }
    eprintln!(
        "800 flows, {shown} with a loss that is shown: {found} found; {touched} touched, {wrong} \
         wrongly"
    );
    // What is missing may have come again, in which case nothing shows it.
    assert!(f64::from(found) >= 0.98 * f64::from(shown), "{found} of {shown}");
    assert!(f64::from(wrong) <= 0.01 * f64::from(touched), "{wrong} of {touched}");
    assert!(shown > 300);
}
