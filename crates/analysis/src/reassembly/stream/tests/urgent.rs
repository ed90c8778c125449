//! Bytes that the urgent pointer names, in streams that are cut in any way.

use super::*;

impl Test {
    fn urgent(&mut self, time: i64, position: u64, data: &str, urgent: u64) -> &mut Self {
        let (time, data, urgent) = (ms(time), data.as_bytes(), Some(urgent));
        let (missing, is_doubtful) = (0, false);
        self.put(&ArrivedSegment { time, position, data, missing, is_doubtful, urgent })
    }
}

#[test]
fn urgent_bytes_are_passed_over_however_the_stream_is_cut() {
    // In order, in any two segments, of which either or both tell the pointer.
    for at in 1..8 {
        let (begin, rest) = "abcXdef".split_at(at - 1);
        for flags in [[true, true], [true, false], [false, true]] {
            let mut test = Test::new();
            for (position, data, is_marked) in [(1, begin, flags[0]), (at as u64, rest, flags[1])] {
                // A pointer does not lie behind its segment.
                if is_marked && position <= 4 {
                    test.urgent(0, position, data, 4);
                } else {
                    test.segment(0, position, data);
                }
            }
            // Whoever hears of it only behind the byte has read it.
            let is_told = flags[0] || (flags[1] && at <= 4);
            let expected = if is_told { "abcdef" } else { "abcXdef" };
            assert_eq!(test.out.text, expected, "{at} {flags:?}");
            assert!(test.out.oddities.is_empty() && !test.stream.is_waiting());
        }
    }
}

#[test]
fn a_later_urgent_byte_takes_the_place_of_one_that_did_not_come() {
    let mut test = Test::new();
    test.urgent(0, 1, "ab", 3).urgent(1, 3, "cdX", 5).segment(2, 6, "e");
    assert_eq!(test.out.text, "abcde");
    // Both were marked where they came.
    let mut test = Test::new();
    test.urgent(0, 1, "Xab", 1).urgent(1, 4, "cY", 5).segment(2, 6, "d");
    assert_eq!(test.out.text, "abcd");
    // Neither does an earlier one change a later one, nor is one forgotten that came out of order.
    let mut test = Test::new();
    test.urgent(0, 4, "cY", 5).urgent(1, 1, "Xab", 1).segment(2, 6, "d");
    assert_eq!(test.out.text, "abcd");
}

#[test]
fn urgent_bytes_are_known_before_they_come_and_behind_holes() {
    // By a segment without data.
    let mut test = Test::new();
    test.urgent(0, 1, "", 3).segment(1, 1, "ab").segment(2, 3, "Xc");
    assert_eq!(test.out.text, "abc");
    assert!(!test.stream.is_waiting());
    // Behind a hole; told by the segment itself, by a copy of it, or by what fills the hole.
    let mut test = Test::new();
    test.urgent(0, 3, "cXd", 4).segment(1, 1, "ab");
    assert_eq!(test.out.text, "abcd");
    let mut test = Test::new();
    test.segment(0, 3, "cXd").urgent(1, 3, "cXd", 4).segment(2, 3, "cXd").segment(3, 1, "ab");
    assert_eq!(test.out.text, "abcd");
    let mut test = Test::new();
    test.segment(0, 3, "cXd").urgent(1, 1, "ab", 4).segment(2, 6, "e");
    assert_eq!(test.out.text, "abcde");
    // The byte itself is lost, or was not captured.
    let mut test = Test::new();
    test.urgent(0, 1, "ab", 3).segment(1, 4, "d").acknowledge(2, 5);
    assert_eq!(test.finish(20), "ab[1 capture]d.");
}

#[test]
fn copies_of_urgent_bytes_change_nothing_that_was_read() {
    let mut test = Test::new();
    test.urgent(0, 1, "aXb", 2).segment(1, 1, "aXb").urgent(2, 1, "aXb", 2).segment(3, 4, "c");
    assert_eq!(test.out.text, "abc");
    let mut test = Test::new();
    test.segment(0, 1, "aXb").urgent(1, 1, "aXb", 2).segment(2, 4, "c");
    assert_eq!(test.out.text, "aXbc");
    assert!(test.out.oddities.is_empty());
    // Other bytes in the place of those around it, or of itself, are told.
    for copy in ["aYb", "aXY"] {
        let mut test = Test::new();
        test.urgent(0, 1, "aXb", 2).segment(1, 1, copy);
        assert_eq!(test.out.oddities, ["retransmission_inconsistency"]);
    }
}

#[test]
fn a_doubtful_urgent_pointer_counts_with_its_segment() {
    let doubtful = |test: &mut Test| {
        let (time, data, urgent) = (ms(0), &b"aXb"[..], Some(2));
        let (position, missing, is_doubtful) = (1, 0, true);
        test.put(&ArrivedSegment { time, position, data, missing, is_doubtful, urgent });
    };
    let mut test = Test::new();
    doubtful(&mut test);
    test.acknowledge(1, 4).segment(2, 4, "c");
    assert_eq!(test.out.text, "abc");
    // What surely arrives takes its place, and does not have the mark.
    let mut test = Test::new();
    doubtful(&mut test);
    test.segment(1, 1, "aXb").acknowledge(2, 4);
    assert_eq!(test.out.text, "aXb");
    let mut test = Test::new();
    test.segment(0, 2, "Xb");
    doubtful(&mut test);
    test.segment(1, 1, "a");
    assert_eq!(test.out.text, "aXb");
}

/// An urgent byte at the end, and many pointers that lie ahead of what is held.
#[test]
fn urgent_bytes_end_streams_and_take_no_memory() {
    let mut test = Test::new();
    test.urgent(0, 1, "abX", 3).end(1, 4).acknowledge(2, 5);
    assert_eq!(test.out.text, "ab.");
    let mut test = Test::new();
    for at in 0..500 {
        test.urgent(at, 1 + at as u64, "x", 60_000 + at as u64);
        assert_eq!(test.held, 0);
    }
    assert_eq!(test.out.text.len(), 500);
    let mut test = Test::new();
    test.limits.stream_held_bytes = 400;
    for at in 0..100 {
        test.urgent(at, 2 + 4 * at as u64, "xYz", 3 + 4 * at as u64);
        assert!(test.held <= 400, "{}", test.held);
    }
}

/// Urgent bytes anywhere in any segments, in any order: what is read is the stream without them.
#[test]
fn any_order_gives_the_stream_without_its_urgent_bytes() {
    let stream: String = (0..600).map(|at| char::from(b'a' + (at % 26) as u8)).collect();
    let is_urgent = |at: usize| at % 20 == 13;
    let read: String =
        stream.char_indices().filter(|(at, _)| !is_urgent(*at)).map(|(_, letter)| letter).collect();
    let mut state = 5_u64;
    let mut random = |below: usize| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    for _ in 0..200 {
        let mut test = Test::new();
        let mut segments: Vec<usize> = (0..600).step_by(20).collect();
        for at in (1..segments.len()).rev() {
            segments.swap(at, random(at + 1));
        }
        for at in segments {
            // Up to it or beyond, and the rest once more.
            let len = 14 + random(7);
            test.urgent(0, 1 + at as u64, &stream[at..at + len], 14 + at as u64);
            test.segment(0, 15 + at as u64, &stream[at + 14..at + 20]);
        }
        assert_eq!(test.out.text, read);
        assert!(test.out.oddities.is_empty());
        assert_eq!(test.held, 0);
    }
}
