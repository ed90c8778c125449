//! Copies that say something else than the segments before them.

use super::*;

#[test]
fn the_first_segment_wins_unless_told_otherwise() {
    for (overlap, expected) in [(Overlap::First, "abcDEFghi"), (Overlap::Last, "abcdefghi")] {
        let mut test = Test::new();
        test.overlap = overlap;
        test.segment(0, 4, "DEF").segment(1, 3, "cdefghi").segment(2, 1, "ab");
        assert_eq!(test.out.text, expected);
        assert_eq!(test.out.oddities, ["retransmission_inconsistency"]);
    }
    let mut test = Test::new();
    test.segment(0, 4, "def").segment(1, 2, "bcdefg").segment(2, 1, "a");
    assert_eq!(test.out.text, "abcdefg");
    assert!(test.out.oddities.is_empty());
}

#[test]
fn a_copy_that_contradicts_what_was_read_is_told_once() {
    let mut test = Test::new();
    test.segment(0, 1, "abc").segment(1, 4, "def").acknowledge(1, 7);
    test.segment(2, 1, "abc").segment(2, 6, "x").segment(2, 2, "bcdef");
    assert!(test.out.oddities.is_empty());
    test.segment(3, 2, "bcdeXghi").segment(4, 1, "abX");
    assert_eq!(test.out.text, "abcdefghi");
    assert_eq!(test.out.oddities, ["retransmission_inconsistency"]);
    // What waited beyond a hole is remembered, too, and the rest of what overlapped.
    for (position, copy) in [(5, "eX"), (7, "gX"), (3, "X"), (4, "X")] {
        let mut test = Test::new();
        test.segment(0, 5, "ef").segment(0, 7, "gh").segment(1, 1, "abc").segment(2, 2, "bcd");
        assert_eq!(test.out.text, "abcdefgh");
        assert!(test.out.oddities.is_empty());
        test.segment(3, position, copy);
        assert_eq!(test.out.oddities.len(), 1, "{position} {copy}");
    }
}
