//! Captures that the page lists for a log as a whole: the packets prove the reason, and what can still be compared is.
//!
//! `time`: Zeek's clock begins at 1 s and never runs back. Its rows have the clock's time, all but those of `conn`, which
//! have the packet's; its timers go by the clock. A packet whose stamp is behind the clock by more than a time-out
//! therefore makes a connection that is over when the next packet comes.
//!
//! `begin`: Zeek analyses no TCP stream whose SYN it did not see.
//!
//! `questions` and `group`: [`questions`]. `service` and `rtsp`: [`services`].

mod questions;
mod services;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;

use netsniff_packet::batch::Batch;
use netsniff_packet::decode::{self, Decoded, TcpFlags, Transport};
use netsniff_packet::source::{Progress, Source};

use super::compare::{Columns, Comparison, Difference, compare};
use super::corpus::Capture;
use super::log::Row;
use questions::Messages;
use services::Rtsp;

/// The reasons.
pub(crate) const REASONS: [&str; 6] = ["time", "begin", "questions", "group", "service", "rtsp"];

/// In microseconds, where Zeek's clock begins.
const BEGIN: i64 = 1_000_000;

/// In microseconds, Zeek's shortest time-out of a connection (`tcp_attempt_delay`).
const SHORTEST_TIMEOUT: i64 = 5_000_000;

/// Two ends, the lower first, as a row names them: address and port.
type Ends = [String; 2];

/// Connections that have something in common.
#[derive(Clone, Debug, Default)]
struct Group {
    ends: BTreeSet<Ends>,
    /// Times that rows about their packets may have.
    times: BTreeSet<String>,
}

impl Group {
    fn has(&self, columns: Columns, key: &str) -> bool {
        let cells: Vec<&str> = key.split(' ').collect();
        let end = |at: usize| format!("{} {}", cells[at], cells[at + 1]);
        match columns.key.iter().position(|column| *column == "id.orig_h") {
            Some(at) => self.ends.contains(&in_order([end(at), end(at + 2)])),
            None => self.times.contains(cells[0]),
        }
    }
}

/// What the packets of a capture tell.
#[derive(Clone, Debug, Default)]
pub(crate) struct Packets {
    name: String,
    now: i64,
    /// Zeek's clock by the stamp of packets that are behind it, and stamps of packets that are not.
    behind: BTreeMap<String, String>,
    in_time: BTreeSet<String>,
    /// Connections that have a packet which is behind the clock by more than a time-out.
    split: Group,
    /// Connections of TCP of which there is a packet, but no SYN.
    without_begin: Group,
    times: BTreeMap<Ends, BTreeSet<String>>,
    begun: BTreeSet<Ends>,
    messages: Messages,
    rtsp: Rtsp,
}

impl Packets {
    /// Those of a capture.
    pub(crate) fn of(capture: &Capture) -> Self {
        let mut told = Self { name: capture.name.clone(), ..Self::default() };
        let file = File::open(&capture.path).unwrap();
        let mut reader = netsniff_pcapfile::Reader::new(file).unwrap();
        let (mut batch, mut progress) = (Batch::default(), Progress::More);
        while progress == Progress::More {
            progress = reader.read_batch(&mut batch).unwrap();
            for packet in batch.iter() {
                let stamp = packet.timestamp.nanos().div_euclid(1_000);
                let decoded = decode::packet(packet.link_type, packet.data, packet.wire_len);
                let ends = ends(&decoded);
                told.tick(stamp, ends.as_ref());
                told.messages.packet(&text(stamp), &decoded, packet.data);
                if let (Some(ends), Transport::Tcp(tcp)) = (ends, decoded.transport) {
                    let payload = packet.data.get(tcp.payload_offset as usize..);
                    told.rtsp.segment(&ends, payload.unwrap_or_default());
                    told.tcp(stamp, ends, tcp.flags.any(TcpFlags::SYN));
                }
            }
        }
        told.end()
    }

    fn tick(&mut self, stamp: i64, ends: Option<&Ends>) {
        self.now = self.now.max(stamp).max(BEGIN);
        if stamp < self.now {
            self.behind.entry(text(stamp)).or_insert_with(|| text(self.now));
        } else {
            self.in_time.insert(text(stamp));
        }
        if self.now - stamp > SHORTEST_TIMEOUT {
            self.split.ends.extend(ends.cloned());
            self.split.times.insert(text(self.now));
        }
    }

    fn tcp(&mut self, stamp: i64, ends: Ends, is_begin: bool) {
        if is_begin {
            self.begun.insert(ends.clone());
        }
        self.times.entry(ends).or_default().insert(text(stamp));
    }

    fn end(mut self) -> Self {
        for (ends, times) in &self.times {
            if !self.begun.contains(ends) {
                self.without_begin.ends.insert(ends.clone());
                self.without_begin.times.extend(times.iter().cloned());
            }
        }
        self
    }

    /// Compares a log of a capture that the page lists as a whole for these reasons. Returns how many
    /// rows are left out, too.
    ///
    /// # Panics
    ///
    /// When the packets do not prove a reason, or it explains nothing. When the rows of a connection that Zeek splits do
    /// not come to the same packets and bytes of each end.
    pub(crate) fn compare(
        &self,
        log: &str,
        columns: Columns,
        theirs: &[Row],
        mut ours: Vec<Row>,
        reasons: &[String],
    ) -> (Comparison, usize) {
        let mut comparison = compare(columns, theirs, &ours, &BTreeSet::new());
        let mut differing = comparison.differing();
        let mut left_out = 0;
        for reason in reasons {
            if reason == "time" {
                self.put_on_clock(log, theirs, &mut ours);
                comparison = compare(columns, theirs, &ours, &BTreeSet::new());
                if log == "conn" {
                    assert_eq!(self.sums(theirs), self.sums(&ours), "not the same packets");
                }
            }
            let all = comparison.rows;
            let keys: BTreeSet<String> = theirs.iter().map(|row| key(columns, row)).collect();
            take_out(&mut comparison, |key, difference| match reason.as_str() {
                "time" => self.split.has(columns, key),
                "begin" => self.without_begin.has(columns, key) && is_only_ours(difference),
                "questions" => self.messages.is_further_question(key, difference, &keys),
                "group" => self.messages.is_joined(key, difference),
                "service" => services::is_further(difference),
                "rtsp" => self.rtsp.is_http(columns, key, difference),
                other => panic!("listed for {other}"),
            });
            left_out += all - comparison.rows;
            let is_used = comparison.differing() < differing;
            assert!(is_used, "{} {log}: {reason} explains nothing", self.name);
            differing = comparison.differing();
        }
        (comparison, left_out)
    }

    /// Gives our rows of a log the times that the clock has at their packets. Where a packet that is not behind has the
    /// same stamp, in whole microseconds, the stamp stays if Zeek's log has it.
    fn put_on_clock(&self, log: &str, theirs: &[Row], ours: &mut [Row]) {
        for row in ours.iter_mut().filter(|_| log != "conn") {
            let ts = &row["ts"];
            let stays = self.in_time.contains(ts) && theirs.iter().any(|row| row["ts"] == *ts);
            if let Some(told) = self.behind.get(ts).filter(|_| !stays).cloned() {
                row.insert("ts".to_owned(), told);
            }
        }
    }

    /// Packets and bytes of each end of each connection that is split.
    fn sums(&self, rows: &[Row]) -> BTreeMap<(Ends, String), [u64; 2]> {
        let mut sums = BTreeMap::new();
        for row in rows {
            let end =
                |side| format!("{} {}", row[&format!("id.{side}_h")], row[&format!("id.{side}_p")]);
            let ends = in_order([end("orig"), end("resp")]);
            if !self.split.ends.contains(&ends) {
                continue;
            }
            for side in ["orig", "resp"] {
                let sum: &mut [u64; 2] = sums.entry((ends.clone(), end(side))).or_default();
                for (sum, column) in sum.iter_mut().zip(["pkts", "ip_bytes"]) {
                    *sum += row[&format!("{side}_{column}")].parse::<u64>().unwrap();
                }
            }
        }
        sums
    }
}

fn key(columns: Columns, row: &Row) -> String {
    columns.key.iter().map(|name| row[*name].as_str()).collect::<Vec<_>>().join(" ")
}

/// Whether a row is one that Zeek does not have, or whose service Zeek did not find.
fn is_only_ours(difference: &Difference) -> bool {
    match difference {
        Difference::Extra => true,
        Difference::Missing => false,
        Difference::Cells(cells) => {
            matches!(cells.as_slice(), [("service", theirs, _)] if theirs == "-")
        }
    }
}

fn take_out(comparison: &mut Comparison, is_out: impl Fn(&str, &Difference) -> bool) {
    comparison.differences.retain(|(key, difference)| !is_out(key, difference));
    let count = |is_counted: fn(&Difference) -> bool| {
        comparison.differences.iter().filter(|(_, difference)| is_counted(difference)).count()
    };
    let missing = count(|difference| *difference == Difference::Missing);
    let extra = count(|difference| *difference == Difference::Extra);
    let others = comparison.differences.len() - missing - extra;
    // A missing and an extra row count as one.
    comparison.rows = comparison.same + others + missing.max(extra);
}

fn ends(told: &Decoded) -> Option<Ends> {
    let ip = told.ip?;
    let (from, to) = match told.transport {
        Transport::Tcp(tcp) => (tcp.source_port, tcp.destination_port),
        Transport::Udp(udp) => (udp.source_port, udp.destination_port),
        _ => return None,
    };
    Some(in_order([format!("{} {from}", ip.source), format!("{} {to}", ip.destination)]))
}

fn in_order(mut ends: Ends) -> Ends {
    ends.sort();
    ends
}

/// Microseconds as rows have them.
fn text(micros: i64) -> String {
    format!("{}.{:06}", micros.div_euclid(1_000_000), micros.rem_euclid(1_000_000))
}

#[cfg(test)]
mod tests {
    use super::super::compare::{CONN, DNS};
    use super::*;

    fn ends(name: &str) -> Ends {
        in_order([format!("{name} 1"), "b 2".to_owned()])
    }

    fn row(columns: Columns, ts: &str, host: &str, packets: &str) -> Row {
        let names = columns.key.iter().chain(columns.compared);
        let mut row: Row = names.map(|&name| (name.to_owned(), "0".to_owned())).collect();
        let cells = [
            ("ts", ts),
            ("id.orig_h", host),
            ("id.orig_p", "1"),
            ("id.resp_h", "b"),
            ("id.resp_p", "2"),
            ("orig_pkts", packets),
        ];
        row.extend(cells.map(|(name, cell)| (name.to_owned(), cell.to_owned())));
        row
    }

    fn packets() -> Packets {
        let mut packets = Packets::default();
        packets.tick(20_000_000, Some(&ends("a")));
        packets.tick(19_000_000, Some(&ends("a")));
        packets.tick(2_000_000, Some(&ends("split")));
        packets.tcp(2_000_000, ends("split"), true);
        packets.tcp(20_000_000, ends("a"), false);
        packets.end()
    }

    fn left(log: &str, columns: Columns, theirs: &[Row], ours: &[Row], why: &str) -> Comparison {
        packets().compare(log, columns, theirs, ours.to_vec(), &[why.to_owned()]).0
    }

    #[test]
    fn rows_are_compared_by_the_clock_and_connections_that_are_not_split_remain() {
        let theirs = [row(DNS, "20.000000", "a", "0"), row(DNS, "20.000000", "a", "0")];
        let ours = [row(DNS, "20.000000", "a", "0"), row(DNS, "19.000000", "a", "0")];
        let all = left("dns", DNS, &theirs, &ours, "time");
        assert_eq!((all.rows, all.same), (2, 2));
        let ours = [row(DNS, "19.000000", "a", "0"), row(DNS, "20.500000", "a", "0")];
        let one = left("dns", DNS, &theirs, &ours, "time");
        assert_eq!((one.rows, one.same, one.differences.len()), (2, 1, 2));
    }

    #[test]
    fn only_rows_of_split_connections_are_left_out() {
        let split = |ts, packets| row(CONN, ts, "split", packets);
        let theirs =
            [split("2.000000", "1"), split("3.000000", "2"), row(CONN, "3.000000", "a", "1")];
        let ours = [split("2.000000", "3"), row(CONN, "3.000000", "a", "2")];
        let some = left("conn", CONN, &theirs, &ours, "time");
        assert_eq!((some.rows, some.same, some.differences.len()), (1, 0, 1));
    }

    #[test]
    #[should_panic(expected = "not the same packets")]
    fn pieces_of_a_split_connection_add_up() {
        let split = |ts, packets| row(CONN, ts, "split", packets);
        left("conn", CONN, &[split("2.000000", "1")], &[split("2.000000", "3")], "time");
    }

    #[test]
    #[should_panic(expected = "explains nothing")]
    fn a_line_that_explains_nothing_is_refused() {
        let [theirs, ours] = ["1", "2"].map(|packets| [row(CONN, "20.000000", "a", packets)]);
        left("conn", CONN, &theirs, &ours, "time");
    }

    #[test]
    fn only_what_is_ours_alone_is_left_out_for_want_of_a_begin() {
        let ours = [row(DNS, "20.000000", "a", "0"), row(DNS, "2.000000", "split", "0")];
        let some = left("dns", DNS, &[], &ours, "begin");
        assert_eq!((some.rows, some.differences.len()), (1, 1));
        let found = |service: &str| {
            let mut row = row(CONN, "20.000000", "a", "1");
            row.insert("service".to_owned(), service.to_owned());
            row
        };
        assert_eq!(left("conn", CONN, &[found("-")], &[found("ssl")], "begin").rows, 0);
        assert!(!is_only_ours(&Difference::Missing));
        let cells = vec![("service", "http".to_owned(), "-".to_owned())];
        assert!(!is_only_ours(&Difference::Cells(cells)));
    }
}
