//! What flows show in each interval, as the logs of flows have it.

use std::collections::BTreeMap;
use std::path::Path;

use netsniff_testing::print_uncaptured;

use crate::recorded::recorded;
use crate::zeek::corpus::{Scratch, analyze, captures};
use crate::zeek::log::{self, Row};

/// The logs of a run.
struct Logs {
    series: Vec<Row>,
    conn: Vec<Row>,
    tcp: Vec<Row>,
    gaps: Vec<Row>,
    dns: Vec<Row>,
    ssl: Vec<Row>,
}

impl Logs {
    fn of(capture: &Path, length: &str) -> Self {
        let scratch = Scratch::new("series-flows");
        analyze(capture, scratch.path(), &["--series", length, "--workers", "2"]);
        let read = |name: &str| log::read(&scratch.path().join(format!("{name}.log"))).unwrap();
        Self {
            series: read("series"),
            conn: read("conn"),
            tcp: read("tcp"),
            gaps: read("gaps"),
            dns: read("dns"),
            ssl: read("ssl"),
        }
    }

    /// What the rows of a kind have in a column, by second; what is 0 is left out.
    fn by_second(&self, kind: &str, column: &str) -> BTreeMap<i64, i64> {
        let rows = self.series.iter().filter(|row| row["kind"] == kind);
        sums(rows.map(|row| (second(row), number(&row[column]))))
    }

    /// What all rows of a kind have in a column.
    fn sum(&self, kind: &str, column: &str) -> i64 {
        self.by_second(kind, column).values().sum()
    }
}

/// A count; an unset one is nothing.
fn number(cell: &str) -> i64 {
    if cell == "-" { 0 } else { cell.parse().unwrap() }
}

/// The second that the time of a row lies in.
fn second(row: &Row) -> i64 {
    let (whole, fraction) = row["ts"].split_once('.').unwrap();
    let is_below = whole.starts_with('-') && fraction.bytes().any(|digit| digit != b'0');
    whole.parse::<i64>().unwrap() - i64::from(is_below)
}

fn sums<K: Ord>(counts: impl Iterator<Item = (K, i64)>) -> BTreeMap<K, i64> {
    let mut sums = BTreeMap::new();
    counts.for_each(|(key, count)| *sums.entry(key).or_default() += count);
    sums.retain(|_, sum| *sum != 0);
    sums
}

/// How many of some rows there are in each second.
fn rows_by_second<'a>(rows: impl Iterator<Item = &'a Row>) -> BTreeMap<i64, i64> {
    sums(rows.map(|row| (second(row), 1)))
}

#[test]
fn every_interval_is_as_the_logs_of_flows_have_it() {
    let mut paths = vec![recorded("office.pcapng"), recorded("protocols.pcapng")];
    let corpus = captures("series were not compared with the other logs");
    paths.extend(corpus.into_iter().flatten().map(|capture| capture.path));
    let mut seen = BTreeMap::<&str, i64>::new();
    for path in &paths {
        let logs = Logs::of(path, "1s");
        let mut check = |column: &'static str, expected: BTreeMap<i64, i64>| {
            let told = logs.by_second("total", column);
            assert_eq!(told, expected, "{column} of {}", path.display());
            assert_eq!(logs.by_second("service", column), told, "{column} of {}", path.display());
            *seen.entry(column).or_default() += told.values().sum::<i64>();
        };
        check("new_flows", rows_by_second(logs.conn.iter()));
        let missing = |causes: &'static [&'static str]| {
            let of_flows = logs.gaps.iter().filter(|row| row["uid"] != "-");
            let wanted = of_flows.filter(|row| causes.contains(&row["cause"].as_str()));
            sums(wanted.map(|row| (second(row), number(&row["bytes"]))))
        };
        check("network_lost", missing(&["network_before", "network_behind"]));
        check("capture_lost", missing(&["capture"]));
        check("unknown_lost", missing(&["unknown"]));
        let is_error = |row: &&Row| row["rcode"] != "-" && row["rcode"] != "0";
        check("dns_errors", rows_by_second(logs.dns.iter().filter(is_error)));
        let is_unanswered = |row: &&Row| row["rcode"] == "-";
        check("dns_unanswered", rows_by_second(logs.dns.iter().filter(is_unanswered)));
        let has_failed = |row: &&Row| row["established"] == "F";
        check("tls_failures", rows_by_second(logs.ssl.iter().filter(has_failed)));
        let dropped = logs.gaps.iter().filter(|row| row["uid"] == "-");
        let dropped = sums(dropped.map(|row| (second(row), number(&row["packets"]))));
        assert_eq!(logs.by_second("total", "dropped"), dropped, "{}", path.display());
        *seen.entry("dropped").or_default() += dropped.values().sum::<i64>();
        // Each flow has two ends.
        assert_eq!(logs.sum("host", "new_flows"), 2 * logs.conn.len() as i64);
        for column in ["network_lost", "capture_lost", "unknown_lost"] {
            let told = logs.by_second("total", column);
            assert_eq!(logs.by_second("host", column), told, "{column} of {}", path.display());
        }
    }
    print_uncaptured(&format!("series: in all intervals as the logs of flows: {seen:?}"));
    for (column, least) in
        [("new_flows", 1_000), ("network_lost", 1_000), ("capture_lost", 1_000), ("dns_errors", 10)]
    {
        assert!(seen[column] >= least, "{column}: {seen:?}");
    }
    assert!(seen["tls_failures"] >= 3 && seen["dns_unanswered"] >= 10, "{seen:?}");
}

#[test]
fn sums_are_those_of_connections() {
    let mut paths = vec![recorded("office.pcapng"), recorded("protocols.pcapng")];
    let corpus = captures("sums of series were not compared with connections");
    paths.extend(corpus.into_iter().flatten().map(|capture| capture.path));
    let (mut packets, mut retransmitted, mut samples) = (0, 0, 0);
    for path in &paths {
        let name = path.display();
        let logs = Logs::of(path, "1s");
        for kind in ["total", "service"] {
            for what in ["pkts", "ip_bytes"] {
                let columns = ["orig", "resp"].map(|role| format!("{role}_{what}"));
                let of_conn = columns
                    .iter()
                    .flat_map(|column| logs.conn.iter().map(|row| number(&row[column])));
                let told: i64 = columns.iter().map(|column| logs.sum(kind, column)).sum();
                assert_eq!(told, of_conn.sum::<i64>(), "{kind} {what} of {name}");
            }
        }
        packets += logs.sum("total", "orig_pkts") + logs.sum("total", "resp_pkts");
        let of_tcp = |columns: &[&str]| -> i64 {
            let cells =
                columns.iter().flat_map(|column| logs.tcp.iter().map(|row| number(&row[*column])));
            cells.sum()
        };
        let again = of_tcp(&[
            "orig_retx_rto",
            "orig_retx_fast",
            "orig_retx_spurious",
            "resp_retx_rto",
            "resp_retx_fast",
            "resp_retx_spurious",
        ]);
        for kind in ["total", "service", "host"] {
            assert_eq!(logs.sum(kind, "retransmitted"), again, "{kind} of {name}");
        }
        let timed = of_tcp(&["orig_rtt_samples", "resp_rtt_samples"]);
        assert_eq!(logs.sum("host", "rtt_samples"), timed, "{name}");
        retransmitted += again;
        samples += timed;
    }
    print_uncaptured(&format!(
        "series: sums of {packets} packets, {retransmitted} retransmissions, {samples} round trips as the logs of flows"
    ));
    assert!(packets > 10_000 && retransmitted > 50 && samples > 500);
}

/// Within one interval, whose services are those of the connections' ends, all is as the connections have it.
#[test]
fn services_are_those_of_connections() {
    for name in ["office.pcapng", "protocols.pcapng"] {
        let logs = Logs::of(&recorded(name), "365d");
        assert!(logs.series.iter().all(|row| row["late"] == "F"));
        for column in ["orig_pkts", "orig_ip_bytes", "resp_pkts", "resp_ip_bytes"] {
            let of = |rows: &mut dyn Iterator<Item = &Row>| {
                sums(rows.map(|row| (row["service"].clone(), number(&row[column]))))
            };
            let told = of(&mut logs.series.iter().filter(|row| row["kind"] == "service"));
            assert!(told.len() >= 5, "{told:?}");
            assert_eq!(told, of(&mut logs.conn.iter()), "{column} of {name}");
        }
        let services = logs.series.iter().filter(|row| row["kind"] == "service");
        let flows =
            sums(services.map(|row| (row["service"].clone(), number(&row["active_flows"]))));
        assert_eq!(flows, sums(logs.conn.iter().map(|row| (row["service"].clone(), 1))), "{name}");
        check_round_trips(&logs);
    }
}

/// The least and greatest round trip are exact, and percentiles lie between them in order.
fn check_round_trips(logs: &Logs) {
    let total = logs.series.iter().find(|row| row["kind"] == "total").unwrap();
    let seconds = |row: &Row, column: &str| row[column].parse::<f64>().ok();
    let all =
        |column: &str| logs.tcp.iter().filter_map(|row| seconds(row, column)).collect::<Vec<_>>();
    let least = all("orig_rtt_min").into_iter().reduce(f64::min);
    let most = all("orig_rtt_max").into_iter().reduce(f64::max);
    assert_eq!([seconds(total, "rtt_min"), seconds(total, "rtt_max")], [least, most]);
    let told: Vec<f64> = ["rtt_min", "rtt_p50", "rtt_p90", "rtt_p99", "rtt_max"]
        .iter()
        .map(|column| seconds(total, column).unwrap())
        .collect();
    assert!(told.is_sorted(), "{told:?}");
}
