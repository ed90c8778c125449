//! Segments in any order against the stream that they are of.

use core::time::Duration;

use super::*;
use crate::reassembly::piece::Overlap;

mod copies;
mod urgent;

/// What came out, and the bounds it came out under.
struct Test {
    stream: StreamReassembler,
    limits: Limits,
    overlap: Overlap,
    held: usize,
    endings: HoleEndings,
    out: Out,
}

#[derive(Default)]
struct Out {
    text: String,
    times: Vec<i64>,
    oddities: Vec<&'static str>,
}

impl Sink for Out {
    fn piece(&mut self, time: Timestamp, _: u64, piece: Piece<'_>) {
        self.times.push(time.nanos() / 1_000_000);
        match piece {
            Piece::Bytes(bytes) => self.text.push_str(core::str::from_utf8(bytes).unwrap()),
            Piece::Gap(len, cause) => self.text.push_str(&format!("[{len} {}]", cause.name())),
            Piece::End => self.text.push('.'),
        }
    }

    fn oddity(&mut self, name: &'static str) {
        self.oddities.push(name);
    }
}

fn ms(millis: i64) -> Timestamp {
    Timestamp::from_nanos(millis * 1_000_000)
}

impl Test {
    fn new() -> Self {
        let limits = Limits {
            stream_acknowledged_wait: Duration::from_millis(10),
            stream_hole_timeout: Duration::from_millis(1_000),
            stream_lack_timeout: Duration::from_millis(6_000),
            ..Limits::default()
        };
        Self {
            stream: StreamReassembler::default(),
            limits,
            overlap: Overlap::First,
            held: 0,
            endings: HoleEndings::default(),
            out: Out::default(),
        }
    }

    fn with(
        &mut self,
        act: impl FnOnce(&mut StreamReassembler, &mut ReassemblyContext<'_>, &mut Out),
    ) {
        let mut around = ReassemblyContext {
            limits: &self.limits,
            overlap: self.overlap,
            keys: &Fingerprints::new(1),
            held_in_all: &mut self.held,
            endings: &mut self.endings,
        };
        act(&mut self.stream, &mut around, &mut self.out);
        assert_eq!(self.held, self.stream.held(), "what all hold is what this one holds");
    }

    fn segment(&mut self, time: i64, position: u64, data: &str) -> &mut Self {
        self.cut_segment(time, position, data, 0)
    }

    fn cut_segment(&mut self, time: i64, position: u64, data: &str, missing: u64) -> &mut Self {
        self.arrive(time, position, data, missing, false)
    }

    fn doubtful(&mut self, time: i64, position: u64, data: &str) -> &mut Self {
        self.arrive(time, position, data, 0, true)
    }

    fn arrive(
        &mut self,
        time: i64,
        position: u64,
        data: &str,
        missing: u64,
        is_doubtful: bool,
    ) -> &mut Self {
        let data = data.as_bytes();
        let time = ms(time);
        self.put(&ArrivedSegment { time, position, data, missing, is_doubtful, urgent: None })
    }

    fn put(&mut self, arrival: &ArrivedSegment<'_>) -> &mut Self {
        self.with(|stream, around, out| {
            stream.expire(arrival.time, around, out);
            stream.arrive(arrival, around, out);
        });
        self
    }

    fn acknowledge(&mut self, time: i64, position: u64) -> &mut Self {
        self.with(|stream, around, out| {
            stream.expire(ms(time), around, out);
            stream.acknowledge(position, ms(time), around, out);
        });
        self
    }

    fn end(&mut self, time: i64, position: u64) -> &mut Self {
        self.with(|stream, around, out| stream.finish_at(position, ms(time), around, out));
        self
    }

    fn reset(&mut self) -> &mut Self {
        self.stream.reset();
        self
    }

    fn finish(&mut self, time: i64) -> &str {
        self.with(|stream, around, out| stream.finish(ms(time), around, out));
        &self.out.text
    }
}

#[test]
fn segments_in_order_pass_at_once() {
    let mut test = Test::new();
    test.segment(0, 1, "abc").segment(1, 4, "def").end(1, 7);
    assert_eq!(test.out.text, "abcdef");
    // A FIN counts once it is acknowledged, with the time at which it came.
    test.acknowledge(5, 8);
    assert_eq!(test.out.text, "abcdef.");
    assert_eq!(test.out.times, [0, 1, 1]);
}

#[test]
fn a_fin_that_the_receiver_did_not_get_ends_nothing() {
    for decoy in [1, 3, 4] {
        let mut test = Test::new();
        test.segment(0, 1, "ab").end(1, decoy).segment(2, 3, "cdef").acknowledge(3, 7);
        if decoy == 1 {
            assert_eq!(test.out.oddities, [""; 0], "a FIN before what was seen is none");
        } else {
            assert_eq!(test.out.oddities, ["data_after_FIN"], "{decoy}");
        }
        assert_eq!(test.out.text, "abcdef", "{decoy}");
        test.segment(4, 7, "g").end(4, 8).acknowledge(5, 9);
        assert_eq!(test.out.text, "abcdefg.", "{decoy}");
        assert_eq!(test.stream.held(), 0);
    }
}

#[test]
fn doubtful_segments_count_once_they_are_acknowledged() {
    let mut test = Test::new();
    test.doubtful(0, 1, "abc").segment(1, 4, "def");
    assert_eq!(test.out.text, "");
    test.acknowledge(2, 3);
    assert_eq!(test.out.text, "", "a part of it");
    test.acknowledge(3, 7);
    assert_eq!((test.out.text.as_str(), &test.out.times[..]), ("abcdef", &[0, 1][..]));
    assert!(test.out.oddities.is_empty() && !test.stream.is_waiting());
    // Without acknowledgements they count in the end, or after a while.
    let mut test = Test::new();
    assert_eq!(test.doubtful(0, 1, "abc").segment(1, 4, "def").finish(2), "abcdef.");
    let mut test = Test::new();
    test.doubtful(0, 1, "abc").segment(1, 4, "def").segment(2_000, 7, "g");
    assert_eq!(test.out.text, "abcdefg");
}

#[test]
fn what_comes_in_the_place_of_doubtful_segments_counts() {
    for (pieces, expected) in [
        (&[(1, "xy"), (3, "z")][..], "xyz"),
        (&[(3, "z"), (1, "xy")], "xyz"),
        (&[(1, "x")], "xbc"),
        (&[(2, "y")], "ayc"),
        (&[(3, "z")], "abz"),
        (&[(1, "xyzuvw")], "xyzuvw"),
    ] {
        let mut test = Test::new();
        test.doubtful(0, 1, "abc");
        for &(position, data) in pieces {
            test.segment(1, position, data);
        }
        test.acknowledge(2, 4);
        assert_eq!(test.out.text, expected, "{pieces:?}");
        assert_eq!(test.out.oddities, ["retransmission_inconsistency"], "{pieces:?}");
    }
    // The same bytes again are no oddity, and a doubtful copy changes nothing.
    let mut test = Test::new();
    test.doubtful(0, 1, "abc").segment(1, 1, "ab").segment(1, 3, "c").segment(2, 6, "f");
    test.doubtful(3, 6, "X").segment(4, 4, "de").acknowledge(5, 7);
    assert_eq!(test.out.text, "abcdef");
    assert_eq!(test.out.oddities, ["retransmission_inconsistency"]);
    assert_eq!(test.endings.filled, 1);
}

#[test]
fn segments_out_of_order_wait_and_repetitions_are_nothing() {
    let mut test = Test::new();
    test.segment(0, 4, "def").segment(1, 7, "ghi").segment(2, 1, "abc").segment(3, 2, "bcdefghi");
    assert_eq!(test.out.text, "abcdefghi");
    assert_eq!(test.out.times, [2, 2, 2]);
    assert_eq!(test.endings.filled, 1);
    assert!(!test.stream.is_waiting());
}

#[test]
fn what_was_acknowledged_is_waited_for_a_little_and_then_a_gap_of_the_capture() {
    let mut test = Test::new();
    test.segment(0, 4, "def").acknowledge(1, 7).acknowledge(10, 7);
    assert_eq!(test.out.text, "");
    test.acknowledge(11, 7);
    assert_eq!(test.out.text, "[3 capture]def");
    // It is told with the time of the acknowledgement, not of the packet that made somebody look.
    assert_eq!(test.out.times, [1, 1]);
    assert_eq!(test.endings.gaps[GapCause::Capture as usize], 1);
}

#[test]
fn later_acknowledgements_do_not_prolong_the_wait_and_the_end_shortens_it() {
    let mut test = Test::new();
    test.segment(0, 4, "def").acknowledge(1, 3).acknowledge(8, 7).segment(11, 7, "g");
    assert_eq!(test.out.text, "[3 capture]defg");
    let mut test = Test::new();
    test.segment(0, 4, "def").acknowledge(1, 7);
    assert_eq!(test.finish(2), "[3 capture]def.");
    // It lasts as long where the time for what nobody acknowledged is over before.
    let mut test = Test::new();
    test.segment(0, 4, "def").acknowledge(995, 7).segment(1_000, 7, "g");
    assert_eq!(test.out.text, "");
    test.segment(1_005, 8, "h");
    assert_eq!(test.out.text, "[3 capture]defgh");
}

#[test]
fn what_comes_late_but_within_the_wait_is_saved() {
    let mut test = Test::new();
    test.acknowledge(1, 7).segment(5, 1, "abcdef");
    assert_eq!(test.out.text, "abcdef");
    assert_eq!(test.endings.filled, 1);
    let mut test = Test::new();
    test.segment(0, 4, "def").acknowledge(1, 7).segment(11, 1, "abc");
    assert_eq!(test.out.text, "[3 capture]def", "too late");
}

#[test]
fn several_holes_that_were_acknowledged_end_together() {
    let mut test = Test::new();
    test.segment(0, 4, "d").segment(0, 6, "f").segment(0, 9, "i").acknowledge(1, 7);
    test.acknowledge(20, 7);
    assert_eq!(test.out.text, "[3 capture]d[1 capture]f");
    assert_eq!(test.finish(30), "[3 capture]d[1 capture]f[2 end]i.");
}

#[test]
fn one_acknowledged_byte_may_be_a_fin() {
    let mut test = Test::new();
    test.segment(0, 1, "abc").acknowledge(1, 5).acknowledge(100, 5);
    assert_eq!(test.out.text, "abc");
    test.acknowledge(101, 6).acknowledge(200, 6);
    assert_eq!(test.out.text, "abc[2 capture]");
    let mut test = Test::new();
    test.segment(0, 1, "abc").end(0, 4).acknowledge(1, 5).acknowledge(100, 5);
    assert_eq!(test.finish(100), "abc.");
    // It is data where the FIN stands behind it, or more data.
    let mut test = Test::new();
    test.segment(0, 1, "abc").end(0, 5).acknowledge(1, 6).acknowledge(11, 6);
    assert_eq!(test.out.text, "abc[1 capture].");
    let mut test = Test::new();
    test.acknowledge(1, 2).segment(2, 2, "bcd").acknowledge(12, 2);
    assert_eq!(test.out.text, "[1 capture]bcd");
}

#[test]
fn what_lacks_before_a_fin_is_a_gap_at_the_end() {
    for (acknowledged, expected) in [(4, "abc[2 end]."), (5, "abc[2 capture].")] {
        let mut test = Test::new();
        test.segment(0, 1, "abc").acknowledge(1, acknowledged).end(2, 6);
        assert_eq!(test.out.text, "abc");
        assert_eq!(test.finish(3), expected);
        assert_eq!(test.endings.gaps.iter().sum::<u64>(), 1);
    }
}

#[test]
fn holes_that_nobody_acknowledges_end_by_time() {
    let mut test = Test::new();
    test.segment(0, 4, "def").segment(999, 7, "g");
    assert_eq!(test.out.text, "");
    test.segment(1_000, 8, "h");
    assert_eq!(test.out.text, "[3 time]defgh");
    // Where one was filled, others may follow: the next has the whole time from then on.
    let mut test = Test::new();
    test.segment(0, 2, "b").segment(0, 4, "d").segment(900, 1, "a").segment(1_899, 5, "e");
    assert_eq!(test.out.text, "ab");
    test.segment(1_900, 6, "f");
    assert_eq!(test.out.text, "ab[1 time]def");
}

#[test]
fn what_the_receiver_shows_to_lack_is_waited_for_longer() {
    let mut test = Test::new();
    test.segment(0, 1, "abc").acknowledge(1, 4).segment(2, 7, "ghi").segment(5_000, 4, "def");
    assert_eq!(test.out.text, "abcdefghi");
    let mut test = Test::new();
    test.acknowledge(0, 1).segment(0, 4, "def").segment(5_999, 7, "g");
    assert_eq!(test.out.text, "");
    test.segment(6_000, 8, "h");
    assert_eq!(test.out.text, "[3 time]defgh");
}

#[test]
fn behind_a_reset_only_what_is_acknowledged_counts() {
    let mut test = Test::new();
    test.segment(0, 1, "abc").acknowledge(1, 4).reset().segment(2, 4, "def").segment(9_000, 7, "g");
    assert_eq!(test.out.text, "abc");
    // The receiver goes on, so that it never got the RST.
    test.acknowledge(9_001, 7);
    assert_eq!(test.out.text, "abcdef");
    assert_eq!(test.finish(9_002), "abcdef.");
    assert_eq!((test.held, &test.out.times[..]), (0, &[0, 2, 9_002][..]));
    // Where nothing of the receiver is seen, nobody knows.
    let mut test = Test::new();
    assert_eq!(test.segment(0, 1, "abc").reset().segment(1, 4, "def").finish(2), "abcdef.");
}

#[test]
fn what_the_receiver_lacked_at_a_reset_hides_what_lies_behind() {
    let mut test = Test::new();
    test.segment(0, 1, "abc").acknowledge(1, 4).segment(2, 7, "ghi").end(2, 10).reset();
    assert_eq!(test.acknowledge(9_000, 4).finish(9_001), "abc.");
    assert_eq!((test.held, test.endings.gaps), (0, [0; GapCause::ALL.len()]));
    // What it acknowledged, the capture lost.
    let mut test = Test::new();
    test.segment(0, 4, "d").segment(0, 6, "f").acknowledge(1, 5).reset();
    assert_eq!(test.finish(2), "[3 capture]d.");
    let mut test = Test::new();
    assert_eq!(test.segment(0, 4, "def").reset().finish(1), "[3 end]def.");
}

/// A hole each 400 ms, of which none is ever filled: nothing is held for longer than the time-out.
#[test]
fn holes_that_come_faster_than_they_end_do_not_add_up() {
    let mut test = Test::new();
    let mut most = 0;
    for at in 0..100 {
        test.segment(400 * at, 2 + 2 * at as u64, "x");
        most = most.max(test.stream.queue.as_ref().map_or(0, |queue| queue.ranges()));
    }
    assert_eq!(most, 3);
    assert!(test.out.text.starts_with("[1 time]x[1 time]x"), "{}", test.out.text);
}

#[test]
fn no_more_is_held_than_may_be() {
    let mut test = Test::new();
    test.limits.stream_held_bytes = 400;
    for at in 0..100 {
        test.segment(at, 2 + 2 * at as u64, "x");
        assert!(test.held <= 400, "{}", test.held);
    }
    assert!(test.out.text.starts_with("[1 bound]x[1 bound]x"), "{}", test.out.text);
    let mut test = Test::new();
    test.limits.streams_held_bytes = 200;
    test.segment(0, 3, "x").segment(0, 5, "x").segment(0, 7, "x").segment(0, 9, "x");
    assert!(test.held <= 200 && test.endings.gaps[GapCause::Bound as usize] > 0);
    let mut test = Test::new();
    test.limits.tcp_ranges = 2;
    test.segment(0, 3, "c").segment(0, 5, "e");
    assert_eq!(test.out.text, "");
    test.segment(0, 7, "g");
    assert_eq!(test.out.text, "[2 bound]c");
    assert_eq!(test.finish(1), "[2 bound]c[1 end]e[1 end]g.");
    // What goes on where something ends is one range, however it was cut.
    let mut test = Test::new();
    test.limits.tcp_ranges = 2;
    test.segment(0, 3, "c").segment(0, 5, "e").segment(0, 4, "d").segment(0, 6, "f");
    test.segment(0, 9, "i").segment(0, 10, "j");
    assert_eq!(test.out.text, "");
    test.segment(0, 12, "l");
    assert_eq!(test.out.text, "[2 bound]cdef");
}

#[test]
fn what_the_capture_cut_off_is_a_gap_at_its_place() {
    let mut test = Test::new();
    test.cut_segment(0, 1, "abc", 4).segment(1, 8, "hij");
    assert_eq!(test.out.text, "abc[4 snaplen]hij");
    let mut test = Test::new();
    test.cut_segment(0, 4, "d", 2).segment(1, 1, "abc").segment(2, 7, "g");
    assert_eq!(test.out.text, "abcd[2 snaplen]g");
    // The end lies in what was cut off.
    let mut test = Test::new();
    test.cut_segment(0, 3, "c", 6).end(1, 5).segment(2, 1, "ab").acknowledge(3, 6);
    assert_eq!(test.out.text, "abc[1 snaplen].");
}

#[test]
fn nothing_lies_behind_the_end() {
    let mut test = Test::new();
    test.segment(0, 1, "abc").end(0, 4).segment(1, 4, "def").segment(2, 3, "cdef");
    test.acknowledge(3, 5);
    assert_eq!(test.out.text, "abc.");
    assert_eq!(test.out.oddities, ["data_after_FIN"]);
    let mut test = Test::new();
    test.end(0, 4).segment(1, 1, "abcdef").segment(2, 5, "ef").acknowledge(3, 5);
    assert_eq!(test.out.text, "abc.");
    assert_eq!(test.out.oddities, ["data_after_FIN"], "once");
    // What came before the end was known.
    let mut test = Test::new();
    test.segment(0, 3, "cdef").segment(1, 9, "ij").end(2, 4).segment(3, 1, "ab");
    assert_eq!(test.finish(4), "abc.");
    assert_eq!((test.out.oddities.as_slice(), test.held), (&["data_after_FIN"][..], 0));
    // A keep-alive, and a repetition.
    let mut test = Test::new();
    test.segment(0, 1, "abc").end(0, 4).segment(1, 4, "x").segment(1, 3, "y").segment(2, 1, "abc");
    assert!(test.out.oddities.is_empty());
}

#[test]
fn acknowledgements_from_nowhere_are_not_believed() {
    let mut test = Test::new();
    test.acknowledge(0, (1 << 30) + 2).acknowledge(100, (1 << 30) + 2).segment(101, 1, "abc");
    assert_eq!(test.out.text, "abc");
    let mut test = Test::new();
    test.acknowledge(0, (1 << 30) + 1).acknowledge(100, (1 << 30) + 1);
    assert_eq!(test.out.text, "[1073741824 capture]");
}

/// Any segments of a stream, in any order and overlapping, give the stream.
#[test]
fn any_order_gives_the_stream() {
    let stream: String = (0..600).map(|at| char::from(b'a' + (at % 26) as u8)).collect();
    let mut state = 1_u64;
    let mut random = |below: usize| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    for _ in 0..300 {
        let mut test = Test::new();
        let mut segments: Vec<_> = (0..120).map(|_| (random(600), 1 + random(40))).collect();
        segments.extend((0..600).step_by(20).map(|at| (at, 20)));
        for at in (1..segments.len()).rev() {
            segments.swap(at, random(at + 1));
        }
        for (at, len) in segments {
            test.segment(0, 1 + at as u64, &stream[at..(at + len).min(600)]);
        }
        assert_eq!(test.out.text, stream);
        assert!(test.out.oddities.is_empty());
        assert_eq!(test.held, 0);
    }
}

/// What was doubtful came first, and counts once it is acknowledged; it is told no earlier than what was told meanwhile.
#[test]
fn times_never_go_back() {
    let mut test = Test::new();
    test.doubtful(1, 4, "def").segment(2, 1, "abc").acknowledge(3, 7);
    assert_eq!((&*test.out.text, &*test.out.times), ("abcdef", &[2, 2][..]));
    let mut test = Test::new();
    test.doubtful(1, 7, "ghi").doubtful(2, 4, "def").segment(3, 1, "abc");
    test.acknowledge(4, 7).acknowledge(5, 10);
    assert_eq!((&*test.out.text, &*test.out.times), ("abcdefghi", &[3, 3, 3][..]));
}
