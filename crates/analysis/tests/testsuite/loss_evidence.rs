//! Verdicts about losses where the packets that tell of them are scarce: what a report is of, what an acknowledgement is an
//! answer to, and what was seen of a side at all. Segment by segment, so that it is known what the receiver had.

use crate::support::wire::{ACK, Client, FIN_ACK, Part, RST_ACK, SYN, SYN_ACK, Server, Wire};

/// The SYN of either side permits SACK (RFC 2018, 2).
const PERMITTED: [u8; 4] = [4, 2, 1, 1];
/// Where the numbers of the server begin.
const SERVER: u32 = 900_000;

/// Time stamps (RFC 7323, 3.2) and blocks of SACK (RFC 2018, 3), which name positions of the server's stream.
fn options(stamps: Option<(u32, u32)>, blocks: &[(u32, u32)]) -> Vec<u8> {
    let mut options = Vec::new();
    if let Some((value, echo)) = stamps {
        options.extend([1, 1, 8, 10]);
        options.extend([value, echo].into_iter().flat_map(u32::to_be_bytes));
    }
    if !blocks.is_empty() {
        options.extend([1, 1, 5, 2 + 8 * blocks.len() as u8]);
        let numbers = blocks.iter().flat_map(|(low, high)| [SERVER + low, SERVER + high]);
        options.extend(numbers.flat_map(u32::to_be_bytes));
    }
    options
}

/// A connection whose sides know SACK.
fn opened() -> Wire {
    opened_over(Wire::new(80))
}

fn opened_over(mut wire: Wire) -> Wire {
    wire.options(&PERMITTED).syn(Client, SYN, b"").pass(9);
    wire.options(&PERMITTED).syn(Server, SYN_ACK, b"").pass(1).acks(Client).pass(10);
    wire
}

/// The client acknowledges the server's numbers up to `position` and tells of blocks.
fn answers(wire: &mut Wire, position: i64, stamps: Option<(u32, u32)>, blocks: &[(u32, u32)]) {
    let part = Part { acknowledged: position, ..wire.part(Client) };
    wire.options(&options(stamps, blocks)).put(Client, &part);
}

/// The server sends a hundred bytes from `position` on.
fn sends(wire: &mut Wire, position: i64, stamps: Option<(u32, u32)>) {
    let ahead = position + 100 - wire.next(Server);
    if ahead > 0 {
        wire.hides(Server, &vec![0; ahead as usize]);
    }
    let part = Part { position, data: &[7; 100], ..wire.part(Server) };
    wire.options(&options(stamps, &[])).put(Server, &part);
}

fn resets(wire: &mut Wire) {
    let part = Part { flags: RST_ACK, ..wire.part(Server) };
    wire.put(Server, &part);
}

/// The rows of `gaps`, and the verdict.
fn judged(wire: &Wire) -> (Vec<String>, String) {
    let logs = wire.logs();
    let gaps = logs.lines("gaps", &["is_orig", "what", "cause", "start", "end"]);
    (gaps, logs.lines("conn", &["quality", "capture_missed_bytes"]).remove(0))
}

#[test]
fn what_was_acknowledged_of_a_side_of_which_only_a_reset_was_seen_was_lost() {
    let mut wire = Wire::new(80);
    // Somebody else was there first.
    wire.syn(Client, SYN, b"").pass(20).hides(Server, &[0]).acks(Client).pass(20);
    wire.hides(Server, &[0; 262]).acks(Client).pass(20);
    resets(&mut wire);
    let expected = ["F syn_ack capture 0 0", "F data capture 0 262"];
    assert_eq!(judged(&wire), (expected.map(str::to_owned).to_vec(), "touched 262".to_owned()));
    // A refusal acknowledges the SYN and was answered by nothing.
    let mut wire = Wire::new(80);
    wire.syn(Client, SYN, b"");
    resets(&mut wire);
    assert_eq!(judged(&wire), (vec![], "clean 0".to_owned()));
}

#[test]
fn who_acknowledges_more_than_it_had_may_have_got_the_rest_before() {
    for (acknowledged, expected) in [
        (401, vec![]),
        (301, vec!["F data network_behind 100 200", "F retransmission capture 100 200"]),
    ] {
        let mut wire = opened();
        [1, 101, 201].into_iter().for_each(|position| sends(&mut wire, position, None));
        answers(&mut wire, 101, None, &[]);
        // The second one came late. What it was acknowledged with is missing.
        answers(&mut wire, 101, None, &[(201, 301)]);
        wire.pass(20);
        sends(&mut wire, 301, None);
        answers(&mut wire, acknowledged, None, &[]);
        wire.ends(Client).ends(Server);
        assert_eq!(judged(&wire).0, expected, "{acknowledged}");
    }
}

/// The server's second hundred bytes are missing at the client, which tells so, and are sent again as often as there are
/// stamps; the client's last word has a report and an echo.
fn repaired(stamps: &[u32], echo: Option<u32>) -> Vec<String> {
    let mut wire = opened();
    let stamp = |value| echo.map(|_| (value, 1));
    [1, 101, 201].into_iter().for_each(|position| sends(&mut wire, position, stamp(10)));
    wire.pass(5);
    answers(&mut wire, 101, stamp(50), &[]);
    answers(&mut wire, 101, stamp(50), &[(201, 301)]);
    for value in stamps {
        wire.pass(200);
        sends(&mut wire, 101, stamp(*value));
    }
    wire.pass(10);
    let part = Part { acknowledged: 301, ..wire.part(Client) };
    let stamps = echo.map(|echo| (60, echo));
    wire.options(&options(stamps, &[(101, 201)])).put(Client, &part);
    wire.ends(Client).ends(Server);
    judged(&wire).0
}

#[test]
fn one_report_is_of_one_copy() {
    // The answer to the first one is missing.
    let expected = ["F data network_behind 100 200"];
    assert_eq!(repaired(&[20, 40], None), expected);
    assert_eq!(repaired(&[20], None), [""; 0], "the first segment was late");
}

/// The server's second hundred bytes are missing at the client. What is sent again begins and ends elsewhere than what was
/// sent first, so that the client needs half of each (RFC 2883, 4.2).
#[test]
fn a_report_of_a_part_leaves_the_rest_needed() {
    let mut wire = opened();
    [1, 101, 201, 301].into_iter().for_each(|position| sends(&mut wire, position, None));
    wire.pass(5);
    answers(&mut wire, 101, None, &[]);
    answers(&mut wire, 101, None, &[(201, 401)]);
    wire.pass(200);
    sends(&mut wire, 151, None);
    wire.pass(10);
    answers(&mut wire, 101, None, &[(201, 251), (151, 401)]);
    wire.pass(200);
    sends(&mut wire, 101, None);
    wire.pass(10);
    answers(&mut wire, 401, None, &[(151, 201)]);
    wire.ends(Client).ends(Server);
    let (mut gaps, verdict) = judged(&wire);
    gaps.sort();
    assert_eq!(gaps, ["F data network_behind 100 150", "F data network_behind 150 200"]);
    assert_eq!(verdict, "clean 0");
    assert_eq!(wire.logs().lines("conn", &["network_missed_bytes"]), ["100"]);
}

/// Of two parts that came twice a receiver reports the first (RFC 2883, 4). It had shown to have the other.
#[test]
fn what_the_receiver_showed_to_have_was_not_needed() {
    let mut wire = opened();
    [1, 101, 201, 301].into_iter().for_each(|position| sends(&mut wire, position, None));
    wire.pass(5);
    answers(&mut wire, 101, None, &[]);
    // Its acknowledgement of the second hundred is missing.
    answers(&mut wire, 101, None, &[(301, 401)]);
    wire.pass(200);
    let part = Part { position: 101, data: &[7; 300], ..wire.part(Server) };
    wire.put(Server, &part);
    wire.pass(10);
    answers(&mut wire, 401, None, &[(101, 201)]);
    wire.ends(Client).ends(Server);
    assert_eq!(judged(&wire).0, ["F data network_behind 200 300"]);
}

/// A receiver that joins segments reports them together.
#[test]
fn a_report_may_be_of_several_copies() {
    let mut wire = opened();
    [1, 101, 201, 301].into_iter().for_each(|position| sends(&mut wire, position, None));
    wire.pass(300);
    [101, 201].into_iter().for_each(|position| sends(&mut wire, position, None));
    wire.pass(10);
    answers(&mut wire, 401, None, &[(101, 301)]);
    wire.ends(Client).ends(Server);
    assert_eq!(judged(&wire), (vec![], "clean 0".to_owned()));
}

#[test]
fn a_report_with_the_echo_of_an_unseen_stamp_is_of_an_unseen_copy() {
    assert_eq!(repaired(&[20], Some(20)), [""; 0]);
    assert_eq!(repaired(&[20], Some(21)), ["F data network_behind 100 200"]);
}

#[test]
fn what_was_selectively_acknowledged_soon_did_not_have_to_be_sent_again() {
    let mut wire = opened();
    // The capture lost the fourth, which was late behind the tap; the second was lost there.
    [1, 101, 201, 401].into_iter().for_each(|position| sends(&mut wire, position, None));
    answers(&mut wire, 101, None, &[]);
    answers(&mut wire, 101, None, &[(201, 301)]);
    answers(&mut wire, 101, None, &[(401, 501), (201, 301)]);
    answers(&mut wire, 101, None, &[(201, 501)]);
    wire.pass(30);
    sends(&mut wire, 101, None);
    wire.pass(9);
    answers(&mut wire, 501, None, &[]);
    wire.ends(Client).ends(Server);
    let expected = ["F data network_behind 100 200", "F data capture 300 400"];
    assert_eq!(judged(&wire).0, expected);
}

#[test]
fn a_late_segment_that_was_sent_again_was_not_lost_before_the_tap() {
    let mut wire = opened();
    let stamp = |value| Some((value, 1));
    // The capture lost the second. The client lacked it for a moment; its answer, when it came, is missing.
    [1, 201].into_iter().for_each(|position| sends(&mut wire, position, stamp(10)));
    answers(&mut wire, 101, Some((50, 10)), &[]);
    answers(&mut wire, 101, Some((50, 10)), &[(201, 301)]);
    wire.pass(20);
    sends(&mut wire, 101, stamp(30));
    wire.pass(9);
    answers(&mut wire, 301, Some((60, 30)), &[(101, 201)]);
    wire.ends(Client).ends(Server);
    let (gaps, quality) = judged(&wire);
    assert_eq!(
        (gaps, quality),
        (vec!["F data capture 100 200".to_owned()], "touched 100".to_owned())
    );
}

#[test]
fn a_fin_may_be_late_like_data() {
    // A stamp that is older than that of what revealed it tells so.
    for (stamp, expected) in [(9, vec![]), (11, vec!["F fin network_before 100 101"])] {
        let mut wire = opened();
        sends(&mut wire, 1, Some((8, 1)));
        answers(&mut wire, 101, Some((50, 8)), &[]);
        let bare = Part { position: 102, ..wire.part(Server) };
        wire.options(&options(Some((10, 50)), &[])).put(Server, &bare).pass(1);
        let fin = Part { position: 101, flags: FIN_ACK, ..wire.part(Server) };
        wire.options(&options(Some((stamp, 50)), &[])).put(Server, &fin).pass(9);
        answers(&mut wire, 102, Some((60, stamp)), &[]);
        assert_eq!(judged(&wire).0, expected, "{stamp}");
    }
}

#[test]
fn what_is_not_the_answer_of_the_handshake_measures_no_round_trip() {
    let measured = |wire: &Wire| {
        wire.logs().lines("tcp", &["orig_handshake_rtt", "resp_handshake_rtt"]).remove(0)
    };
    let begun = || {
        let mut wire = Wire::new(80);
        wire.options(&PERMITTED).syn(Client, SYN, b"").pass(9);
        wire.options(&PERMITTED).syn(Server, SYN_ACK, b"").pass(4);
        wire
    };
    let mut wire = begun();
    wire.acks(Client).ends(Client).ends(Server);
    assert_eq!(measured(&wire), "0.005000 0.010000");
    // The server has sent data, so the handshake was over.
    let mut wire = begun();
    sends(&mut wire, 1, None);
    answers(&mut wire, 1, None, &[]);
    wire.ends(Client).ends(Server);
    assert_eq!(measured(&wire), "- 0.010000");
    // The client tells what it has of that.
    let mut wire = begun();
    answers(&mut wire, 1, None, &[(101, 201)]);
    wire.ends(Client).ends(Server);
    assert_eq!(measured(&wire), "- 0.010000");
    // The client has sent something before.
    let mut wire = begun();
    wire.hides(Client, b"unseen").acks(Client);
    wire.ends(Client).ends(Server);
    assert_eq!(measured(&wire), "- 0.010000");
}

#[test]
fn a_report_takes_its_time() {
    // A connection that ends at once tells nothing of whether the first copy came.
    for (pause, expected) in [(0, "F data unknown 0 100"), (20, "F data network_behind 0 100")] {
        let mut wire = opened();
        sends(&mut wire, 1, None);
        wire.pass(200);
        sends(&mut wire, 1, None);
        answers(&mut wire, 101, None, &[]);
        if pause > 0 {
            wire.pass(pause).acks(Client);
        }
        assert_eq!(judged(&wire).0, [expected], "{pause}");
    }
}

#[test]
fn what_is_lacked_for_long_was_not_late() {
    let mut wire = opened();
    // The second was lost before the tap; what repaired it was doubled behind it.
    [1, 201].into_iter().for_each(|position| sends(&mut wire, position, None));
    answers(&mut wire, 101, None, &[]);
    answers(&mut wire, 101, None, &[(201, 301)]);
    wire.pass(20);
    [301, 101].into_iter().for_each(|position| sends(&mut wire, position, None));
    answers(&mut wire, 101, None, &[(201, 401)]);
    answers(&mut wire, 401, None, &[]);
    answers(&mut wire, 401, None, &[(101, 201)]);
    wire.ends(Client).ends(Server);
    assert_eq!(judged(&wire).0, ["F data network_before 100 200"]);
}

/// Without the handshake nobody knows how soon the client answers, so that what it shows after the copy may be older.
#[test]
fn a_lack_shown_again_proves_nothing_where_no_answer_was_timed() {
    let mut wire = Wire::new(80);
    wire.hides(Client, &[0]).hides(Server, &[0]);
    [1, 101, 201].into_iter().for_each(|position| sends(&mut wire, position, None));
    answers(&mut wire, 101, None, &[(201, 301)]);
    sends(&mut wire, 101, None);
    answers(&mut wire, 101, None, &[(201, 301)]);
    answers(&mut wire, 301, None, &[(101, 201)]);
    wire.pass(50).ends(Client).ends(Server);
    assert_eq!(judged(&wire).0, [""; 0]);
}

#[test]
fn the_echo_of_the_newest_stamp_answers_just_that_segment() {
    let mut wire = Wire::new(80);
    wire.options(&PERMITTED).syn(Client, SYN, b"").pass(9);
    // The client takes long to end the handshake, and answers soon then.
    wire.options(&PERMITTED).syn(Server, SYN_ACK, b"").pass(40).acks(Client).pass(10);
    [1, 101, 201].into_iter().for_each(|position| sends(&mut wire, position, Some((10, 1))));
    answers(&mut wire, 1, Some((50, 1)), &[(101, 201)]);
    answers(&mut wire, 1, Some((50, 1)), &[(101, 301)]);
    wire.pass(100);
    sends(&mut wire, 1, Some((20, 50)));
    answers(&mut wire, 301, Some((60, 20)), &[]);
    wire.ends(Client).ends(Server);
    assert_eq!(judged(&wire).0, ["F data network_behind 0 100"]);
}

/// RFC 8985, 6.2: a sender waits a quarter of the round trip of 12 ms longer where the receiver shows fewer than three
/// segments. Sooner, the data was late by a round trip, or an acknowledgement was not seen.
#[test]
fn a_loss_that_was_hardly_shown_and_soon_repaired_is_told_to_be_assumed() {
    for (shown, millis, quality) in
        [(1, 9, "suspect 0"), (2, 9, "suspect 0"), (1, 15, "clean 0"), (3, 9, "clean 0")]
    {
        // Nothing numbers packets there.
        let mut wire = opened_over(Wire::over_v6(80));
        sends(&mut wire, 1, None);
        for number in 0..shown {
            sends(&mut wire, 201 + 100 * number, None);
        }
        answers(&mut wire, 101, None, &[(201, 201 + 100 * shown as u32)]);
        wire.pass(millis);
        sends(&mut wire, 101, None);
        wire.pass(9).acks(Client).ends(Server).ends(Client);
        let expected = (vec!["F data network_before 100 200".to_owned()], quality.to_owned());
        assert_eq!(judged(&wire), expected, "{shown} {millis}");
    }
}

/// A connection over IPv6, which numbers no packets, of which the server's second hundred bytes came a while after
/// the third.
fn filled_late() -> Wire {
    let mut wire = opened_over(Wire::over_v6(80));
    [1, 201].into_iter().for_each(|position| sends(&mut wire, position, Some((10, 1))));
    answers(&mut wire, 101, Some((50, 10)), &[]);
    wire.pass(40);
    sends(&mut wire, 101, Some((10, 1)));
    wire.pass(1);
    answers(&mut wire, 301, Some((60, 10)), &[]);
    wire
}

#[test]
fn a_report_that_comes_twice_is_of_one_copy() {
    for (second, expected) in [(70, "network_before"), (71, "capture")] {
        let mut wire = filled_late();
        sends(&mut wire, 101, Some((10, 1)));
        for value in [70, second] {
            answers(&mut wire, 301, Some((value, 10)), &[(101, 201)]);
            wire.pass(1);
        }
        wire.ends(Client).ends(Server);
        assert_eq!(judged(&wire).0, [format!("F data {expected} 100 200")], "{second}");
    }
}

#[test]
fn a_byte_that_passes_for_a_keep_alive_is_reported_like_others() {
    let mut wire = opened();
    sends(&mut wire, 1, None);
    answers(&mut wire, 101, None, &[]);
    // Its number tells that there was a byte.
    wire.hides(Server, &[0]).acks(Server).pass(40);
    for _ in 0..2 {
        let part = Part { position: 101, data: &[7], ..wire.part(Server) };
        wire.put(Server, &part).pass(1);
        answers(&mut wire, 102, None, &[]);
    }
    answers(&mut wire, 102, None, &[(101, 102)]);
    wire.ends(Client).ends(Server);
    assert_eq!(judged(&wire).0, ["F data network_before 100 101"]);
}

/// What the handshake took tells of hosts that were slow, and a few segments of queues that were full.
#[test]
fn an_answer_is_too_soon_only_beside_what_was_measured_with_much_data() {
    for (measured, expected) in [
        (0, "network_before clean"),
        (1, "network_before suspect"),
        (7, "network_before suspect"),
        (8, "capture touched"),
    ] {
        let mut wire = Wire::over_v6(80);
        wire.syn(Client, SYN, b"").pass(9).syn(Server, SYN_ACK, b"").pass(40).acks(Client).pass(10);
        for _ in 0..measured {
            wire.sends(Server, [1; 100]).pass(40).acks(Client).pass(10);
        }
        let (lost, before) = (wire.next(Server), wire.part(Client));
        wire.hides(Server, &[2; 100]).sends(Server, [3; 100]).pass(1).put(Client, &before);
        wire.pass(200).data_at(Server, lost, &[2; 100]).acks(Client);
        wire.ends(Client).ends(Server);
        let logs = wire.logs();
        let [cause, quality] = [("gaps", "cause"), ("conn", "quality")]
            .map(|(log, column)| logs.lines(log, &[column]).remove(0));
        assert_eq!(format!("{cause} {quality}"), expected, "{measured}");
    }
}

/// The SYN-ACK was missed, and so was much of what followed it. A segment without data tells how far its sender had
/// come, before data comes that lies further back.
#[test]
fn what_was_missed_counts_from_the_begin_wherever_the_first_data_lies() {
    let mut wire = Wire::new(50_001);
    wire.syn(Client, SYN, b"");
    wire.put(Client, &Part { flags: ACK, acknowledged: 1, ..wire.part(Client) });
    let at = |position, data| Part { flags: ACK, position, data, ..wire.part(Server) };
    let parts = [at(1_001, &[]), at(501, &[1; 100]), at(1_001, &[2; 100])];
    for part in &parts {
        wire.put(Server, part);
    }
    let answer = Part { flags: ACK, acknowledged: 1_101, ..wire.part(Client) };
    wire.put(Client, &answer).pass(50).put(Client, &answer);
    let logs = wire.logs();
    assert_eq!(logs.lines("conn", &["capture_missed_bytes", "quality"]), ["900 touched"]);
    let gaps = ["0 0 syn_ack", "0 500 data", "600 1000 data"];
    assert_eq!(logs.lines("gaps", &["start", "end", "what"]), gaps);
}

/// The SYN-ACK and the first data were missed, and come late, behind other data. The client's handshake tells where the
/// server began, so that the SYN-ACK is no other answer.
#[test]
fn a_late_answer_to_a_syn_begins_nothing_anew() {
    let mut wire = Wire::new(80);
    wire.syn(Client, SYN, b"").pass(9);
    let answer = Part { flags: SYN_ACK, position: 0, ..wire.part(Server) };
    wire.hides(Server, b"#").acks(Client).sends(Client, [1; 50]).pass(1);
    let opened = wire.part(Client);
    let at = |position, data| Part { position, data, ..wire.part(Server) };
    let parts = [at(1, &[2; 100][..]), at(101, &[3; 100]), at(201, &[4; 100])];
    wire.acks(Server).put(Server, &parts[1]).put(Client, &opened);
    wire.put(Server, &answer).put(Client, &opened).put(Server, &parts[2]).pass(200);
    wire.put(Server, &parts[0]).hides(Server, &[0; 300]).acks(Client).ends(Client).ends(Server);
    let logs = wire.logs();
    let columns =
        ["conn_state", "history", "orig_bytes", "resp_bytes", "capture_missed_bytes", "quality"];
    assert_eq!(logs.lines("conn", &columns), ["SF SADadhtFf 50 300 0 clean"]);
    let columns = ["is_orig", "what", "start", "end", "cause"];
    assert_eq!(logs.lines("gaps", &columns), ["F data 0 100 network_before"]);
}
