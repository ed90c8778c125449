//! Whole HTTP transfers over TCP, of which everything is known: what was said, what the network and the
//! capture did to it, and what somebody forged. The records may tell less, and nothing else.
//!
//! An input says how the hosts are set up, what they say, and what becomes of each of some frames. Needs
//! nothing of libFuzzer: an ordinary test replays findings with it.

mod path;
mod rows;
mod tap;

use netsniff_analysis::file::HashKinds;
use netsniff_analysis::rows::Output;
use netsniff_analysis::{Engine, Limits, Options};
use netsniff_packet::{Batch, LinkType, Packet};
use netsniff_traffic::dialogue::{Cause, DialogueTrace};

use path::{CLIENT_PORT, Script};
use rows::{Row, Rows, Values};
use tap::{Shot, Tap};

/// The bytes of an input, and zeros past its end.
struct Choices<'a>(core::slice::Iter<'a, u8>);

impl Choices<'_> {
    fn byte(&mut self) -> u8 {
        self.0.next().copied().unwrap_or_default()
    }

    /// A number below a bound.
    fn below(&mut self, bound: u32) -> u32 {
        let [a, b] = [self.byte(), self.byte()];
        u32::from(u16::from_be_bytes([a, b])) % bound.max(1)
    }

    fn is_left(&self) -> bool {
        !self.0.as_slice().is_empty()
    }
}

/// Plays a transfer from an input and analyses what a tap saw of it. Returns whether its connection was
/// told to be clean.
///
/// # Panics
///
/// Where the records say what was not so.
pub fn check(input: &[u8]) -> bool {
    let mut choices = Choices(input.iter());
    let script = Script::choose(&mut choices);
    let told = analyse(&Tap::whole(&script.play(true)).shots, 1);
    let story = script.play(false);
    let mut tap = Tap::whole(&story);
    tap.trouble(&mut choices);
    let group = 2 + usize::from(choices.byte() % 40);
    let rows = analyse(&tap.shots, 1);
    let in_batches = analyse(&tap.shots, group);
    assert!(rows == in_batches, "other batches, other records: {rows:?} {in_batches:?}");
    let case = Case { script: &script, tap: &tap, rows: &rows };
    case.bytes_are_no_more_than_were_said();
    case.losses_are_no_more_than_there_were(&story);
    for conn in rows.log("conn").filter(|conn| conn["quality"] == "clean") {
        case.clean_is_what_was_said(conn, &told, &story);
    }
    rows.log("conn").any(|conn| conn["quality"] == "clean")
}

fn analyse(shots: &[Shot], group: usize) -> Rows {
    let hashes = HashKinds { sha256: true, ..HashKinds::default() };
    let options = Options { hashes, ..Options::default() };
    let limits = Limits::default();
    let mut engine = Engine::new(limits, options, 1);
    let mut rows = Output::encoded(&limits, Values, Rows::default());
    for some in shots.chunks(group) {
        let mut batch = Batch::default();
        for shot in some {
            let packet = Packet {
                timestamp: shot.timestamp,
                data: &shot.frame,
                wire_len: shot.frame.len() as u32,
                link_type: LinkType::ETHERNET,
                interface: 0,
            };
            if group == 1 {
                engine.packet(&packet, &mut rows);
            } else {
                assert!(batch.push(&packet));
            }
        }
        engine.batch(&batch, &mut rows);
    }
    engine.finish(&mut rows);
    let Ok(()) = rows.finish(engine.ingress().now());
    rows.into_sink()
}

/// What happened, and what is told of it.
struct Case<'a> {
    script: &'a Script,
    tap: &'a Tap,
    rows: &'a Rows,
}

impl Case<'_> {
    /// The numbers of a connection that is established are those of its handshake, whatever else comes.
    fn bytes_are_no_more_than_were_said(&self) {
        if self.tap.has_forged() && !self.tap.has_handshake() {
            return;
        }
        // Who forges both sides in agreement, or the SYN, or where no SYN tells of windows, is believed numbers
        // that the fastest connection reaches, but not without a warning.
        let is_warned = |conn: &&Row| {
            let is_begun = conn["history"].contains(['S', 's']);
            let is_free =
                self.tap.has_forged_both() || !is_begun || self.tap.has_forged_at(&conn["ts"]);
            let may_be = is_free && self.tap.has_forged_in_time();
            may_be && conn["quality"] != "clean"
        };
        for conn in self.rows.log("conn").filter(|conn| !is_warned(conn)) {
            for (column, side) in [("orig_bytes", 0), ("resp_bytes", 1)] {
                let side = if is_by_client(conn) { side } else { 1 - side };
                let bytes = number(conn, column).unwrap_or_default();
                // Of a FIN that was not seen, or not in this connection, nobody knows that what is
                // acknowledged is no byte.
                let is_without_fin = self.tap.has_lost() || self.rows.log("conn").count() > 1;
                // Forged numbers of both sides are as far from each other as those of what was said.
                let is_twofold = self.tap.has_forged_both() && conn["quality"] != "clean";
                let times = if is_twofold { 1 + self.tap.forged() } else { 1 };
                let said = self.script.said[side] * times + u64::from(is_without_fin);
                assert!(bytes <= said, "{column} of {said}: {conn:?}{}", self.tap);
            }
        }
    }

    fn losses_are_no_more_than_there_were(&self, story: &DialogueTrace) {
        if self.tap.has_forged() || self.tap.is_shuffled {
            return;
        }
        for conn in self.rows.log("conn") {
            let missed = number(conn, "capture_missed_bytes").unwrap_or_default();
            let dropped = self.tap.dropped_bytes;
            assert!(
                missed <= dropped,
                "{dropped} bytes were not captured: {conn:?}{}\n{:#?}",
                self.tap,
                self.rows.log("gaps").collect::<Vec<_>>()
            );
        }
        // Where the hosts took late segments for lost, they sent them again, and the tap may believe them.
        let is_believed = story.seen.iter().any(|seen| seen.cause != Cause::Said);
        if self.tap.has_lost() || !story.lost.is_empty() || is_believed {
            return;
        }
        let is_like_loss = |row: &Row| {
            let is_by_client = (row["is_orig"] == "true") == is_by_client(row);
            self.script.has_long_delays[usize::from(!is_by_client)]
        };
        let is_suspect = |row: &Row| {
            let mut of_it = self.rows.log("conn").filter(|conn| conn["uid"] == row["uid"]);
            of_it.all(|conn| conn["quality"] == "suspect")
        };
        let is_assumed = |row: &Row| is_like_loss(row) && is_suspect(row);
        let is_named = |row: &&Row| row["cause"] != "unknown" && !is_assumed(row);
        let told = self.rows.log("gaps").find(is_named);
        assert!(told.is_none(), "nothing was lost: {told:?}{}", self.tap);
        if self.script.has_disorder || self.tap.is_swapped {
            return;
        }
        assert!(self.rows.log("gaps").next().is_none(), "{:?}", self.rows);
        let conns = self.rows.log("conn");
        assert!(conns.into_iter().all(|conn| conn["quality"] == "clean"), "{:?}", self.rows);
        // What the tap doubled came again.
        let is_single = !self.tap.is_doubled;
        for tcp in self.rows.log("tcp").filter(|_| is_single) {
            for column in ["retx_rto", "retx_fast", "retx_spurious", "out_of_order", "duplicates"] {
                for side in ["orig", "resp"] {
                    let count = number(tcp, &format!("{side}_{column}"));
                    assert_eq!(count, Some(0), "{side}_{column}: {tcp:?}");
                }
            }
        }
    }

    /// A connection that is clean and of which nothing odd is told says what it says when nothing happens to it.
    fn clean_is_what_was_said(&self, conn: &Row, told: &Rows, story: &DialogueTrace) {
        let of_it = |row: &&Row| row["uid"] == conn["uid"];
        assert!(!matches!(number(conn, "capture_missed_bytes"), Some(1..)), "{conn:?}");
        let gap = self.rows.log("gaps").filter(of_it).find(|row| {
            row["what"] == "data"
                && row["ended"] != "filled"
                && !row["cause"].starts_with("network")
        });
        assert!(gap.is_none(), "clean, with {gap:?}");
        if self.rows.log("weird").any(|row| of_it(&row)) {
            return;
        }
        if !self.tap.has_replaced() {
            self.content_is_what_was_said(conn, told);
        }
        // Hosts that gave up have not said the rest.
        let is_closed = self.script.is_closed && !story.given_up;
        let is_whole = !self.tap.has_lost() && is_closed && !self.tap.has_forged();
        if is_whole {
            let count = |rows: &Rows, log| rows.log(log).count();
            for log in ["http", "files"] {
                assert_eq!(count(self.rows, log), count(told, log), "{log}: {:?}", self.rows);
            }
        }
    }

    /// What is told of its messages and files stands in what is told when nothing happens.
    fn content_is_what_was_said(&self, conn: &Row, told: &Rows) {
        let of_it = |row: &&Row| row["uid"] == conn["uid"];
        for file in self.rows.log("files").filter(of_it) {
            if file["total_bytes"] != file["seen_bytes"] {
                continue;
            }
            let mut same = told.log("files").filter(|other| {
                ["total_bytes", "is_orig"].iter().all(|column| file[column] == other[column])
            });
            assert!(
                same.any(|other| file["sha256"] == other["sha256"]),
                "clean, and other bytes than were said: {file:?} {conn:?}{}",
                self.tap
            );
        }
        for http in self.rows.log("http").filter(of_it) {
            let of_all = |column: &&str| {
                told.log("http").any(|other| other[column] == http[column]) || http[*column] == "-"
            };
            let wrong = ["method", "uri", "host", "status_code"].into_iter().find(|it| !of_all(it));
            assert!(wrong.is_none(), "clean, and {wrong:?} was never said: {http:?}{}", self.tap);
        }
    }
}

fn is_by_client(conn: &Row) -> bool {
    number(conn, "id.orig_p") == Some(u64::from(CLIENT_PORT))
}

fn number(row: &Row, column: &str) -> Option<u64> {
    row[column].parse().ok()
}
