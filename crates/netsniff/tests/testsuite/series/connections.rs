//! The log `series_conn`: in sum as `conn` and as the totals of `series`, and whoever has no row is in the rest.

use std::collections::BTreeMap;

use crate::recorded::recorded;
use crate::zeek::corpus::{Scratch, analyze, captures};
use crate::zeek::log::{self, Row};

/// Packets and bytes of originators and responders.
type Sent = [u64; 4];

const COLUMNS: [&str; 4] = ["orig_pkts", "orig_ip_bytes", "resp_pkts", "resp_ip_bytes"];

fn sent(row: &Row) -> Sent {
    COLUMNS.map(|column| row[column].parse().unwrap())
}

fn add(sum: &mut Sent, more: Sent) {
    sum.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
}

/// Rows by what `key` says of them.
fn sums(rows: &[Row], key: impl Fn(&Row) -> String) -> BTreeMap<String, Sent> {
    let mut sums = BTreeMap::new();
    rows.iter().for_each(|row| add(sums.entry(key(row)).or_default(), sent(row)));
    sums
}

/// The logs `series_conn`, `series` and `conn` of a capture.
fn logs(capture: &std::path::Path, listed: &str) -> [Vec<Row>; 3] {
    let scratch = Scratch::new("series-conn");
    analyze(capture, scratch.path(), &["--series", "1s", "--series-conns", listed]);
    ["series_conn.log", "series.log", "conn.log"].map(|name| {
        let path = scratch.path().join(name);
        if path.exists() { log::read(&path).unwrap() } else { Vec::new() }
    })
}

#[test]
fn connections_add_up_to_themselves_and_to_all() {
    let mut paths = vec![recorded("office.pcapng"), recorded("protocols.pcapng")];
    let corpus = captures("connections by intervals were not compared with conn");
    paths.extend(corpus.into_iter().flatten().map(|capture| capture.path));
    let mut compared = 0;
    for path in paths {
        let [rows, series, conn] = logs(&path, "1000000");
        let of_conn = sums(&conn, |row| row["uid"].clone());
        assert_eq!(sums(&rows, |row| row["uid"].clone()), of_conn, "{}", path.display());
        compared += of_conn.len();
        let [_, some_series, _] = logs(&path, "2");
        assert!(some_series == series, "{}: the log series changed", path.display());
        let totals: Vec<_> = series.into_iter().filter(|row| row["kind"] == "total").collect();
        let mut of_total = sums(&totals, |row| row["ts"].clone());
        of_total.retain(|_, sent| *sent != Sent::default());
        for listed in ["1000000", "2"] {
            let [rows, ..] = logs(&path, listed);
            let mut own = sums(&rows, |row| row["ts"].clone());
            own.retain(|_, sent| *sent != Sent::default());
            assert_eq!(own, of_total, "{} {listed}", path.display());
        }
    }
    assert!(compared > 300, "{compared} connections");
}

/// Those of the rows of an interval that have the most bytes, and how many others there are.
#[test]
fn the_busiest_have_rows_and_all_others_one() {
    for name in ["office.pcapng", "protocols.pcapng"] {
        let [all, ..] = logs(&recorded(name), "1000000");
        let [some, ..] = logs(&recorded(name), "2");
        let parts = |rows: &[Row]| -> BTreeMap<(String, String), Vec<Row>> {
            let mut parts = BTreeMap::<_, Vec<_>>::new();
            for row in rows {
                parts
                    .entry((row["ts"].clone(), row["late"].clone()))
                    .or_default()
                    .push(row.clone());
            }
            parts
        };
        let (all, some) = (parts(&all), parts(&some));
        assert!(all.len() > 10 && all.keys().eq(some.keys()), "{name}");
        for (at, every) in &all {
            let mut own = some[at].clone();
            if every.len() > 2 {
                let rest = own.pop().unwrap();
                assert_eq!(rest["others"], (every.len() - 2).to_string());
                assert_eq!((rest["uid"].as_str(), rest["other"].as_str()), ("-", "T"));
            }
            assert_eq!(own, every[..every.len().min(2)], "{name} {at:?}");
            let bytes = |row: &Row| sent(row)[1] + sent(row)[3];
            assert!(every.is_sorted_by_key(|row| std::cmp::Reverse(bytes(row))), "{at:?}");
        }
    }
}
