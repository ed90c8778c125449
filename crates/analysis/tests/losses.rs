//! Who lost what: conversations in virtual time, of which it is known what the network lost before
//! and behind the tap, and what the capture lost. The verdicts must say the same.

mod support;

use std::collections::HashSet;
use std::time::Duration;

use netsniff_analysis::Limits;
use netsniff_packet::decode::{self, Tcp, TcpFlags, Transport};
use netsniff_packet::{LinkType, Packet, Timestamp};
use netsniff_traffic::Random;
use netsniff_traffic::dialogue::{Dialogue, Seen, Setup, Side, Story};
use support::{Row, Rows, analyse};

fn packet(seen: &Seen) -> Packet<'_> {
    Packet {
        timestamp: seen.timestamp,
        data: &seen.frame,
        wire_len: seen.frame.len() as u32,
        link_type: LinkType::ETHERNET,
        interface: 0,
    }
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
fn story(seed: u64, loss: f64) -> Story {
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
fn network(story: &Story) -> (u64, u64) {
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
            // Without D-SACK, which these hosts do not send, what is sent again since an
            // acknowledgement was lost looks as if the data had been.
            continue;
        }
        let (before, behind) = network(&story);
        let told = (judged.lost("network_before").0, judged.lost("network_behind").0);
        lossy += u32::from(before + behind > 0);
        right += u32::from(before + behind > 0 && told == (before, behind));
        if told != (before, behind) {
            eprintln!("seed {seed}: {told:?} for {:?}: {:?}", (before, behind), judged.words());
        }
        assert_eq!(judged.bytes("network_missed_bytes"), told.0 + told.1);
    }
    eprintln!("{right} of {lossy} right");
    assert!(lossy > 50);
    assert!(f64::from(right) >= 0.99 * f64::from(lossy), "{right} of {lossy}");
}
