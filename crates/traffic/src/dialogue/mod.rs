//! Scripted conversations of two hosts in virtual time, as a tap between them sees them.
//!
//! ```text
//! client -- near leg -- TAP -- far leg -- server
//! ```
//!
//! The script says who says what; small but honest TCP ends do the rest: segments of the agreed size, acknowledgements,
//! SACK, D-SACK, fast retransmission, time-outs. Either leg may lose segments, by chance or by script, and [`DialogueTrace::lost`] is
//! the truth about it.
//!
//! ```
//! use netsniff_traffic::dialogue::{Dialogue, Setup, Side};
//!
//! let mut dialogue = Dialogue::new(Setup::default());
//! dialogue.connect().say(Side::Client, b"GET / HTTP/1.1\r\n\r\n").say(Side::Server, &[b'x'; 3000]);
//! dialogue.close(Side::Server).close(Side::Client);
//! let story = dialogue.finish();
//! assert_eq!(story.seen.len(), 3 + 2 + 3 * 2 + 2 * 2);
//! ```

mod end;
mod segment;
mod setup;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use netsniff_packet::Timestamp;
use netsniff_packet::decode::TcpFlags;

use self::end::End;
pub use self::segment::{Cause, Segment};
pub use self::setup::{DialogueTrace, Leg, Lost, Seen, Setup, Side};
use crate::Random;
use crate::frame::{Host, udp_frame};

/// A conversation under way. Every step goes on until what it says is acknowledged, or the ends give up.
#[derive(Clone, Debug)]
pub struct Dialogue {
    setup: Setup,
    now: Timestamp,
    /// Decides about losses; the other one about delays and doubles, so that either leaves the other's choices alone.
    random: Random,
    troubles: Random,
    events: BinaryHeap<Reverse<(Timestamp, u64, Event)>>,
    serial: u64,
    segments: Vec<Segment>,
    ends: [End; 2],
    /// When each side can send its next frame.
    free: [Timestamp; 2],
    /// Segments still to be lost by script: side, leg, how many pass first, how many are lost.
    scripted: Vec<(Side, Leg, u32, u32)>,
    story: DialogueTrace,
    identification: u16,
    /// Whether the last datagram did.
    has_arrived: bool,
}

/// What is on the way, as far as its loss would tell.
#[derive(Clone, Copy, Debug)]
struct Carried {
    sent: Timestamp,
    from: Side,
    sequence: u32,
    flags: TcpFlags,
    len: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A segment arrives at its end.
    Arrives(usize),
    /// A retransmission timer, with the generation that set it.
    Timer(Side, u64),
}

impl Dialogue {
    /// A conversation that has not begun.
    #[must_use]
    pub fn new(setup: Setup) -> Self {
        let end = |sequence| End::new(&setup, sequence);
        let ends = [end(setup.initial_sequence.0), end(setup.initial_sequence.1)];
        Self {
            now: setup.start,
            random: Random::new(setup.seed),
            troubles: Random::new(crate::random::mix(setup.seed)),
            events: BinaryHeap::new(),
            serial: 0,
            segments: Vec::new(),
            ends,
            free: [setup.start; 2],
            scripted: Vec::new(),
            story: DialogueTrace::default(),
            identification: 1,
            has_arrived: false,
            setup,
        }
    }

    /// Adds the three-way handshake (RFC 9293, 3.5).
    pub fn connect(&mut self) -> &mut Self {
        self.ends[0].open();
        self.send_more(Side::Client);
        self.run_until_acknowledged(Side::Client);
        self.run_until_acknowledged(Side::Server)
    }

    /// Data from one side, in as many segments as it needs.
    pub fn say(&mut self, side: Side, data: &[u8]) -> &mut Self {
        self.ends[side as usize].queue(data);
        self.send_more(side);
        self.run_until_acknowledged(side)
    }

    /// A FIN and its acknowledgement.
    pub fn close(&mut self, side: Side) -> &mut Self {
        self.ends[side as usize].queue_fin();
        self.send_more(side);
        self.run_until_acknowledged(side)
    }

    /// A RST; both ends are silent from then on.
    pub fn reset(&mut self, side: Side) -> &mut Self {
        let mut segment = self.ends[side as usize].acknowledgement(side);
        segment.flags = TcpFlags::RST.with(TcpFlags::ACK);
        self.send(segment);
        self.ends.iter_mut().for_each(End::fall_silent);
        self.drain()
    }

    /// Announces another receive window with an acknowledgement of its own; 0 stops the other side.
    pub fn window(&mut self, side: Side, window: u32) -> &mut Self {
        self.ends[side as usize].set_window(window);
        let segment = self.ends[side as usize].acknowledgement(side);
        self.send(segment);
        self.drain()
    }

    /// Silence, in which only what is under way happens.
    pub fn pause(&mut self, time: Duration) -> &mut Self {
        let until = self.now + time;
        self.run(|dialogue| dialogue.events.peek().is_none_or(|Reverse((at, ..))| *at > until));
        self.now = self.now.max(until);
        self
    }

    /// A segment as it is, beside what the ends do: probes, keep-alives, attacks. The other end receives it.
    pub fn segment(&mut self, segment: Segment) -> &mut Self {
        self.send(segment);
        self.drain()
    }

    /// The segment that `side` would send to acknowledge what it has, to be changed for [`Dialogue::segment`].
    #[must_use]
    pub fn template(&self, side: Side) -> Segment {
        self.ends[side as usize].acknowledgement(side)
    }

    /// A UDP datagram between the same hosts and ports. Nothing answers it, and one too large for IP is not sent.
    /// [`Self::has_arrived`] tells whether it got there.
    pub fn datagram(&mut self, from: Side, payload: &[u8]) -> &mut Self {
        let [source, destination] = self.hosts(from);
        self.has_arrived = false;
        let Some(frame) = udp_frame(&source, &destination, self.identification, payload) else {
            return self;
        };
        let carried = Carried {
            sent: self.time_to_send(from),
            from,
            sequence: 0,
            flags: TcpFlags::default(),
            len: payload.len() as u32,
        };
        if let Some(arrival) = self.carry(carried, Cause::Said, frame).into_iter().flatten().min() {
            (self.now, self.has_arrived) = (arrival, true);
        }
        self
    }

    /// Whether the last datagram arrived, or a double of it.
    #[must_use]
    pub const fn has_arrived(&self) -> bool {
        self.has_arrived
    }

    /// Lets `leg` lose `count` segments of `side`, after `passing` more have passed it.
    pub fn lose(&mut self, side: Side, leg: Leg, passing: u32, count: u32) -> &mut Self {
        self.scripted.push((side, leg, passing, count));
        self
    }

    /// Silence until some time, if that is not over.
    pub fn pause_until(&mut self, time: Timestamp) -> &mut Self {
        let left = u64::try_from(time.nanos_since(self.now)).unwrap_or(0);
        self.pause(Duration::from_nanos(left))
    }

    /// The time of the script.
    #[must_use]
    pub const fn now(&self) -> Timestamp {
        self.now
    }

    /// Lets what is under way happen, and tells the story.
    #[must_use]
    pub fn finish(mut self) -> DialogueTrace {
        self.drain();
        self.story.seen.sort_by_key(|seen| seen.timestamp);
        self.story
    }

    fn run_until_acknowledged(&mut self, side: Side) -> &mut Self {
        self.run(|dialogue| dialogue.ends[side as usize].all_acknowledged());
        self
    }

    fn drain(&mut self) -> &mut Self {
        self.run(|_| false);
        self
    }

    fn run(&mut self, done: impl Fn(&Self) -> bool) {
        while !done(self) {
            let Some(Reverse((at, _, event))) = self.events.pop() else { return };
            match event {
                Event::Arrives(number) => {
                    self.now = self.now.max(at);
                    self.arrive(number);
                }
                Event::Timer(side, generation) => {
                    // A timer that was set anew or stopped does not move the clock.
                    if self.ends[side as usize].timer_fires(generation) {
                        self.now = self.now.max(at);
                        self.time_out(side);
                    }
                }
            }
        }
    }

    fn arrive(&mut self, number: usize) {
        let segment = self.segments[number].clone();
        let side = segment.from.other();
        let end = &mut self.ends[side as usize];
        let reaction = end.receive(&segment);
        if reaction.acknowledge {
            let answer = end.answer(side, reaction.duplicate);
            self.send(answer);
        }
        if reaction.retransmit {
            self.retransmit(side, Cause::Fast);
        }
        self.send_more(side);
    }

    fn time_out(&mut self, side: Side) {
        if self.ends[side as usize].back_off() {
            self.retransmit(side, Cause::Timeout);
        } else {
            self.story.given_up = true;
        }
    }

    fn retransmit(&mut self, side: Side, cause: Cause) {
        if let Some(segment) = self.ends[side as usize].again(side, cause) {
            self.send(segment);
        }
        self.set_timer(side);
    }

    fn send_more(&mut self, side: Side) {
        let mut sent = false;
        while let Some(segment) = self.ends[side as usize].next(side) {
            self.send(segment);
            sent = true;
        }
        if sent || self.ends[side as usize].wants_timer() {
            self.set_timer(side);
        }
    }

    fn set_timer(&mut self, side: Side) {
        if let Some((generation, wait)) = self.ends[side as usize].restart_timer() {
            self.schedule(self.now + wait, Event::Timer(side, generation));
        }
    }

    fn schedule(&mut self, at: Timestamp, event: Event) {
        self.serial += 1;
        self.events.push(Reverse((at, self.serial, event)));
    }

    fn send(&mut self, mut segment: Segment) {
        let sent = self.time_to_send(segment.from);
        segment.stamp = segment::stamp(sent, segment.from);
        let [source, destination] = self.hosts(segment.from);
        let Some(frame) = segment.frame(&source, &destination, self.identification, &self.setup)
        else {
            return;
        };
        let carried = Carried {
            sent,
            from: segment.from,
            sequence: segment.sequence,
            flags: segment.flags,
            len: segment.payload.len() as u32,
        };
        let arrivals = self.carry(carried, segment.cause, frame);
        self.segments.push(segment);
        for at in arrivals.into_iter().flatten() {
            self.schedule(at, Event::Arrives(self.segments.len() - 1));
        }
    }

    fn time_to_send(&mut self, side: Side) -> Timestamp {
        let at = self.now.max(self.free[side as usize]);
        self.free[side as usize] = at + self.setup.gap;
        at
    }

    fn hosts(&self, from: Side) -> [Host; 2] {
        match from {
            Side::Client => [self.setup.client, self.setup.server],
            Side::Server => [self.setup.server, self.setup.client],
        }
    }

    /// Takes a frame over both legs and past the tap; returns when it arrives, and its double, if they do.
    fn carry(&mut self, carried: Carried, cause: Cause, frame: Vec<u8>) -> [Option<Timestamp>; 2] {
        let Carried { sent, from, sequence, flags, len } = carried;
        self.identification = self.identification.wrapping_add(1);
        let Setup { delay, loss, loss_around_tap: (before, behind), .. } = self.setup;
        let near = (Leg::Near, delay.0, loss.0);
        let far = (Leg::Far, delay.1, loss.1);
        let [first, second] = if from == Side::Client { [near, far] } else { [far, near] };
        let timestamp = sent + first.1 + self.lateness(self.setup.reordering);
        let lost = |leg| Lost { sent, at_tap: timestamp, from, leg, sequence, flags, len };
        if self.is_lost(from, first.0, either(first.2, before)) {
            self.story.lost.push(lost(first.0));
            return [None; 2];
        }
        let arrival = timestamp + second.1 + self.lateness(self.setup.reordering_behind);
        let double = self.lateness(self.setup.duplication);
        let double = (!double.is_zero()).then(|| timestamp + double);
        let is_doubled = double.is_some();
        if let Some(timestamp) = double {
            self.story.seen.push(Seen { timestamp, from, cause, frame: frame.clone(), is_doubled });
        }
        self.story.seen.push(Seen { timestamp, from, cause, frame, is_doubled });
        if self.is_lost(from, second.0, either(second.2, behind)) {
            self.story.lost.push(lost(second.0));
            return [None, double.map(|at| at + second.1)];
        }
        [Some(arrival), double.map(|at| at + second.1)]
    }

    /// With a probability some time, else none.
    fn lateness(&mut self, probability: f64) -> Duration {
        if probability <= 0.0 || !self.troubles.chance(probability) {
            return Duration::ZERO;
        }
        let most = u64::try_from(self.setup.jitter.as_nanos()).unwrap_or(u64::MAX);
        Duration::from_nanos(1 + self.troubles.below(most))
    }

    fn is_lost(&mut self, side: Side, leg: Leg, probability: f64) -> bool {
        let by_chance = self.random.chance(probability);
        let mut by_script = false;
        for (of, on, passing, count) in &mut self.scripted {
            if (*of, *on) == (side, leg) {
                if *passing > 0 {
                    *passing -= 1;
                } else if *count > 0 {
                    *count -= 1;
                    by_script = true;
                }
            }
        }
        by_chance || by_script
    }
}

/// The probability of at least one of two independent events.
fn either(one: f64, other: f64) -> f64 {
    one + other - one * other
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use netsniff_packet::LinkType;
    use netsniff_packet::checksum::{self, ChecksumVerdict};
    use netsniff_packet::decode::{self, Tcp, Transport};

    use super::*;

    /// The TCP header and payload of a frame, whose checksums must be right.
    fn tcp(frame: &[u8]) -> (Tcp, &[u8]) {
        let decoded = decode::packet(LinkType::ETHERNET, frame, frame.len() as u32);
        assert_eq!(checksum::transport(&decoded, frame), ChecksumVerdict::Good);
        let Transport::Tcp(tcp) = decoded.transport else { panic!("no TCP: {decoded:?}") };
        (tcp, &frame[tcp.payload_offset as usize..])
    }

    /// What the tap saw of a side's stream, put together by sequence number; later copies must be equal.
    fn stream(story: &DialogueTrace, side: Side, initial: u32) -> Vec<u8> {
        let mut pieces: Vec<(usize, &[u8])> = Vec::new();
        for seen in story.seen.iter().filter(|seen| seen.from == side) {
            let (header, payload) = tcp(&seen.frame);
            let start = header.sequence.wrapping_sub(initial).wrapping_sub(1) as usize;
            if !payload.is_empty() {
                pieces.push((start, payload));
            }
        }
        pieces.sort_by_key(|(start, _)| *start);
        let mut bytes = Vec::new();
        for (start, payload) in pieces {
            assert!(start <= bytes.len(), "a hole in what the tap saw at {}", bytes.len());
            let known = payload.len().min(bytes.len() - start);
            assert_eq!(bytes[start..start + known], payload[..known]);
            bytes.extend_from_slice(&payload[known..]);
        }
        bytes
    }

    fn body(len: usize) -> Vec<u8> {
        (0..len).map(|at| (at % 251) as u8).collect()
    }

    fn flags(story: &DialogueTrace) -> Vec<(Side, u16)> {
        story.seen.iter().map(|seen| (seen.from, tcp(&seen.frame).0.flags.0)).collect()
    }

    #[test]
    fn a_clean_conversation() {
        use Side::{Client, Server};
        let mut dialogue = Dialogue::new(Setup::default());
        dialogue.connect().say(Client, b"hello").close(Client).close(Server);
        let story = dialogue.finish();
        let expected = [
            (Client, 0x02),
            (Server, 0x12),
            (Client, 0x10),
            (Client, 0x18),
            (Server, 0x10),
            (Client, 0x11),
            (Server, 0x10),
            (Server, 0x11),
            (Client, 0x10),
        ];
        assert_eq!(flags(&story), expected);
        let millis =
            |at: usize| story.seen[at].timestamp.nanos_since(Setup::default().start) / 1_000_000;
        assert_eq!([millis(0), millis(1), millis(2)], [1, 21, 23], "near 1 ms, far 10 ms");
        let options = tcp(&story.seen[0].frame).0.options;
        assert_eq!(
            (options.mss, options.window_scale, options.sack_permitted),
            (Some(1460), Some(7), true)
        );
        let (syn, answer) =
            (options.timestamps.unwrap(), tcp(&story.seen[1].frame).0.options.timestamps.unwrap());
        assert_eq!(answer.1, syn.0, "the SYN's time stamp comes back");
        assert!(story.lost.is_empty() && !story.given_up);
    }

    #[test]
    fn everything_arrives_over_lossy_legs_and_the_books_close() {
        for seed in 0..60 {
            let loss = (0.04, 0.04);
            let setup = Setup {
                seed,
                loss,
                sack: seed % 2 == 0,
                timestamps: seed % 3 == 0,
                ..Setup::default()
            };
            let (question, answer) = (body(3000), body(90_000));
            let mut dialogue = Dialogue::new(setup.clone());
            dialogue.connect().say(Side::Client, &question).say(Side::Server, &answer);
            dialogue.close(Side::Server).close(Side::Client);
            let sent = usize::from(dialogue.drain().identification) - 1;
            let story = dialogue.finish();
            assert!(!story.given_up, "seed {seed}");
            assert_eq!(
                stream(&story, Side::Client, setup.initial_sequence.0),
                question,
                "seed {seed}"
            );
            assert_eq!(
                stream(&story, Side::Server, setup.initial_sequence.1),
                answer,
                "seed {seed}"
            );
            let unseen = story.lost.iter().filter(|lost| !lost.seen()).count();
            assert_eq!(sent, story.seen.len() + unseen, "seed {seed}");
            assert!(story.seen.is_sorted_by_key(|seen| seen.timestamp));
            let again = story.seen.iter().filter(|seen| seen.cause != Cause::Said);
            let again: HashSet<_> =
                again.map(|seen| (seen.from, tcp(&seen.frame).0.sequence)).collect();
            for lost in story.lost.iter().filter(|lost| lost.len > 0) {
                assert!(
                    again.contains(&(lost.from, lost.sequence)),
                    "seed {seed}: {lost:?} never came again"
                );
            }
        }
    }

    #[test]
    fn a_lost_segment_in_the_middle_is_sent_again_at_once_and_the_last_one_after_a_timeout() {
        for (passing, cause) in [(3, Cause::Fast), (9, Cause::Timeout)] {
            for leg in [Leg::Near, Leg::Far] {
                let mut dialogue = Dialogue::new(Setup::default());
                // The SYN-ACK passes first; then ten segments of 1,448 bytes.
                dialogue
                    .connect()
                    .lose(Side::Server, leg, passing, 1)
                    .say(Side::Server, &body(14_480));
                let story = dialogue.finish();
                assert_eq!(story.lost.len(), 1);
                assert_eq!(story.lost[0].seen(), leg == Leg::Near);
                let again: Vec<_> =
                    story.seen.iter().filter(|seen| seen.cause != Cause::Said).collect();
                assert_eq!(again.len(), 1);
                assert_eq!(again[0].cause, cause, "{passing} {leg:?}");
                assert_eq!(tcp(&again[0].frame).0.sequence, story.lost[0].sequence);
                let waited = again[0].timestamp.nanos_since(story.lost[0].sent) / 1_000_000;
                assert!(
                    if cause == Cause::Fast { waited < 60 } else { waited >= 200 },
                    "{waited} ms"
                );
                let sacked = story
                    .seen
                    .iter()
                    .filter(|seen| tcp(&seen.frame).0.options.sack_count > 0)
                    .count();
                assert_eq!(sacked, 9 - passing as usize, "each later segment is told");
            }
        }
    }

    #[test]
    fn two_holes_in_one_flight_are_filled_without_a_timeout() {
        for sack in [true, false] {
            let mut dialogue = Dialogue::new(Setup { sack, ..Setup::default() });
            dialogue.connect().lose(Side::Server, Leg::Near, 2, 1).lose(
                Side::Server,
                Leg::Near,
                4,
                1,
            );
            dialogue.say(Side::Server, &body(14_480));
            let story = dialogue.finish();
            let causes: Vec<_> = story
                .seen
                .iter()
                .map(|seen| seen.cause)
                .filter(|cause| *cause != Cause::Said)
                .collect();
            assert_eq!((story.lost.len(), causes), (2, vec![Cause::Fast, Cause::Fast]));
        }
    }

    #[test]
    fn lost_handshakes_are_repeated() {
        for side in [Side::Client, Side::Server] {
            let mut dialogue = Dialogue::new(Setup::default());
            dialogue.lose(side, Leg::Far, 0, 2).connect().say(Side::Client, b"x");
            let story = dialogue.finish();
            let syns = flags(&story)
                .iter()
                .filter(|(from, flags)| *from == side && flags & 2 != 0)
                .count();
            assert_eq!(syns, if side == Side::Client { 3 } else { 1 }, "{side:?}");
            assert_eq!(stream(&story, Side::Client, 1000), b"x");
        }
    }

    #[test]
    fn losses_around_the_tap_strike_both_sides_at_their_place() {
        for loss_around_tap in [(0.1, 0.0), (0.0, 0.1)] {
            let mut dialogue = Dialogue::new(Setup { loss_around_tap, ..Setup::default() });
            dialogue.connect();
            dialogue.say(Side::Client, &body(200_000)).say(Side::Server, &body(200_000));
            let story = dialogue.finish();
            for side in [Side::Client, Side::Server] {
                let lost = story.lost.iter().filter(|lost| lost.from == side);
                let at_place = lost.clone().filter(|lost| lost.seen() == (loss_around_tap.1 > 0.0));
                assert!(lost.clone().count() > 10, "{side:?}");
                assert_eq!(at_place.count(), lost.count(), "{side:?}");
            }
            let passed = |lost: &&Lost| story.seen.iter().any(|seen| seen.timestamp == lost.at_tap);
            let seen = story.lost.iter().filter(passed).count();
            assert_eq!(seen, if loss_around_tap.1 > 0.0 { story.lost.len() } else { 0 });
        }
    }

    #[test]
    fn a_closed_window_stops_the_other_side() {
        let mut dialogue = Dialogue::new(Setup::default());
        dialogue.connect().window(Side::Client, 0).say(Side::Server, b"late");
        let before = dialogue.now();
        dialogue.pause(Duration::from_secs(2)).window(Side::Client, 64_000);
        let story = dialogue.finish();
        let data: Vec<_> =
            story.seen.iter().filter(|seen| !tcp(&seen.frame).1.is_empty()).collect();
        assert_eq!(data.len(), 1);
        assert!(data[0].timestamp.nanos_since(before) > 2_000_000_000);
        assert!(story.seen.iter().any(|seen| tcp(&seen.frame).0.window == 0));
    }

    #[test]
    fn nobody_answers_and_resets_end_it() {
        let mut dialogue = Dialogue::new(Setup { loss: (0.0, 1.0), ..Setup::default() });
        dialogue.connect();
        let story = dialogue.finish();
        assert!(story.given_up);
        assert_eq!(flags(&story), [(Side::Client, 2); 7]);

        let mut dialogue = Dialogue::new(Setup::default());
        dialogue.connect().reset(Side::Server).say(Side::Client, b"nobody listens");
        assert_eq!(flags(&dialogue.finish()).last(), Some(&(Side::Server, 0x14)));
    }

    #[test]
    fn datagrams_and_scripted_segments() {
        let mut dialogue = Dialogue::new(Setup::default());
        dialogue.datagram(Side::Client, b"question").datagram(Side::Server, b"answer");
        assert!(dialogue.has_arrived());
        assert!(!dialogue.clone().datagram(Side::Client, &[0; 70_000]).has_arrived(), "too large");
        dialogue.lose(Side::Client, Leg::Far, 0, 1);
        assert!(!dialogue.clone().datagram(Side::Client, b"question").has_arrived());
        let story = dialogue.finish();
        assert_eq!(story.seen.len(), 2);
        assert_eq!(story.seen[1].timestamp.nanos_since(story.seen[0].timestamp), 20_000_000);

        let mut dialogue = Dialogue::new(Setup::default());
        dialogue.connect();
        let template = dialogue.template(Side::Client);
        // A keep-alive: one byte before what is expected (RFC 9293, 3.8.4).
        let sequence = template.sequence.wrapping_sub(1);
        dialogue.segment(Segment { sequence, payload: vec![0], ..template });
        let story = dialogue.finish();
        assert_eq!(flags(&story).last(), Some(&(Side::Server, 0x10)), "it is answered");
    }
}
