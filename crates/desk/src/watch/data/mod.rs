//! What is known of the traffic: rows of logs as they come, in bounded memory.
//!
//! | module | concern |
//! |---|---|
//! | `row` | a row that was read back |
//! | `figures` | what is counted, and how it is added up |
//! | `subjects` | hosts, services and connections by name, with what is in no row of its own |
//! | `sockets` | sockets of this host, and who has them |
//! | `totals` | all packets, interval by interval |
//! | `connections` | those that go on, and those that have ended |
//! | `kept` | rows that name a connection |
//! | `books` | where a live capture lost packets |

pub(crate) mod books;
pub(crate) mod connections;
pub(crate) mod figures;
pub(crate) mod kept;
pub(crate) mod row;
pub(crate) mod sockets;
pub(crate) mod subjects;
pub(crate) mod totals;

use std::sync::Arc;

use self::books::Books;
use self::connections::Connections;
use self::figures::Figures;
use self::kept::KeptRows;
use self::row::LogRow;
use self::subjects::Subjects;
use self::totals::Totals;

/// Everything that rows have told.
#[derive(Clone, Debug, Default)]
pub(crate) struct Data {
    pub(crate) totals: Totals,
    pub(crate) hosts: Subjects,
    pub(crate) services: Subjects,
    pub(crate) connections: Connections,
    pub(crate) kept: KeptRows,
    pub(crate) books: Books,
    /// Length of an interval in nanoseconds.
    pub(crate) interval: Option<i64>,
    /// Rows of all logs that came.
    pub(crate) rows: u64,
}

/// The shortest interval, in nanoseconds, as `--series` has it.
const SHORTEST: i64 = 1_000_000;

/// What a service is called that nothing is known of.
pub(crate) const UNKNOWN_SERVICE: &str = "-";

impl Data {
    /// Takes a row.
    pub(crate) fn take(&mut self, row: LogRow) {
        self.rows += 1;
        match row.log().path {
            "series" => self.take_series(&row),
            "series_conn" => self.take_connection(&row),
            "capture" => self.books.take(row),
            "conn" => {
                let row = Arc::new(row);
                self.connections.take_end(Arc::clone(&row));
                self.kept.take(row);
            }
            _ => self.kept.take(Arc::new(row)),
        }
    }

    /// The number of the interval of a row.
    fn number(&mut self, row: &LogRow) -> Option<i64> {
        let length = row.nanos("interval").filter(|length| *length >= SHORTEST)?;
        let time = row.nanos("ts")?;
        self.interval = Some(length);
        // Logs have microseconds, and an interval may begin between two of them.
        Some(time.checked_add(length / 2)?.div_euclid(length))
    }

    fn take_connection(&mut self, row: &LogRow) {
        if let Some(number) = self.number(row) {
            self.connections.take_interval(number, row);
        }
    }

    fn take_series(&mut self, row: &LogRow) {
        let Some(number) = self.number(row) else { return };
        let of_flows = (["orig_pkts", "orig_ip_bytes"], ["resp_pkts", "resp_ip_bytes"]);
        let of_hosts = (["sent_packets", "sent_bytes"], ["received_packets", "received_bytes"]);
        let is_other = row.is("other");
        match row.text("kind") {
            Some("total") => {
                self.hosts.end_batch();
                self.services.end_batch();
                self.connections.end_batch();
                self.totals.take(number, row);
            }
            Some("service") => {
                let name = row.text("service").unwrap_or(UNKNOWN_SERVICE);
                let figures = Figures::of(row, of_flows.0, of_flows.1);
                self.services.take(number, (!is_other).then_some(name), row, &figures);
            }
            Some("host") => {
                let figures = Figures::of(row, of_hosts.0, of_hosts.1);
                self.hosts.take(number, row.text("host").filter(|_| !is_other), row, &figures);
            }
            _ => {}
        }
    }

    /// The number of the last interval.
    pub(crate) fn last(&self) -> i64 {
        self.totals.last().unwrap_or(0)
    }

    /// When the last interval ends, in nanoseconds since 1970.
    pub(crate) fn now(&self) -> Option<i64> {
        self.totals
            .last()
            .zip(self.interval)
            .and_then(|(last, length)| last.checked_add(1)?.checked_mul(length))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_nobody_could_have_written_do_no_harm() {
        let mut data = Data::default();
        let take = |data: &mut Data, line: &str| data.take(LogRow::read(line).unwrap());
        for time in ["9.3e9", "-9.3e9", "1e300", "-1e300", "9223372036.854775", "1"] {
            for interval in ["1e-9", "0.0009", "0", "-1", "1e300", "9e9", "1"] {
                for cells in [
                    "\"kind\":\"total\",\"packets\":9223372036854775807",
                    "\"kind\":\"host\",\"host\":\"a\"",
                ] {
                    let line = format!(
                        "{{\"_path\":\"series\",\"ts\":{time},\"interval\":{interval},{cells}}}"
                    );
                    take(&mut data, &line);
                    let _ =
                        (data.now(), data.totals.trend(5), data.hosts.trend("a", 5, data.last()));
                    let _ = data.hosts.over(subjects::Span::Last(5), data.last());
                }
            }
        }
        assert_eq!(data.interval, Some(1_000_000_000));
        let mut data = Data::default();
        let short = r#"{"_path":"series","ts":1.0,"interval":0.0009,"kind":"total","packets":1}"#;
        take(&mut data, short);
        assert_eq!((data.interval, data.totals.last()), (None, None));
    }
}
