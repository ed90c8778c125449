//! Rows of logs that name a connection, as they came, up to a bound of memory.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use super::row::LogRow;

/// Bytes of rows that are kept.
const MOST: usize = 64 << 20;
/// What each row, and each connection that it names, takes besides.
const BESIDE: usize = 160;

/// The last rows.
#[derive(Clone, Debug, Default)]
pub(crate) struct KeptRows {
    rows: VecDeque<(Arc<LogRow>, Vec<Box<str>>)>,
    /// The number of the first row that is kept.
    first: u64,
    by_uid: HashMap<Box<str>, VecDeque<u64>>,
    bytes: usize,
}

impl KeptRows {
    /// Keeps a row.
    pub(crate) fn take(&mut self, row: Arc<LogRow>) {
        let uids = uids(&row);
        if uids.is_empty() {
            return;
        }
        let number = self.first + self.rows.len() as u64;
        for uid in &uids {
            self.by_uid.entry(uid.clone()).or_default().push_back(number);
        }
        self.bytes += row.size() + BESIDE * (1 + uids.len());
        self.rows.push_back((row, uids));
        while self.bytes > MOST {
            self.give_up();
        }
    }

    fn give_up(&mut self) {
        let Some((row, uids)) = self.rows.pop_front() else { return };
        self.first += 1;
        self.bytes -= row.size() + BESIDE * (1 + uids.len());
        for uid in uids {
            if let Some(numbers) = self.by_uid.get_mut(&uid) {
                numbers.pop_front();
                if numbers.is_empty() {
                    self.by_uid.remove(&uid);
                }
            }
        }
    }

    /// The rows that name a connection, in the order in which they came.
    pub(crate) fn of(&self, uid: &str) -> Vec<Arc<LogRow>> {
        let numbers = self.by_uid.get(uid).into_iter().flatten();
        let rows = numbers.filter_map(|number| {
            let at = usize::try_from(number.checked_sub(self.first)?).ok()?;
            Some(Arc::clone(&self.rows.get(at)?.0))
        });
        rows.collect()
    }

    /// How many rows were given up.
    pub(crate) const fn given_up(&self) -> u64 {
        self.first
    }
}

/// The connections that a row names, each once.
fn uids(row: &LogRow) -> Vec<Box<str>> {
    let all = row.text("uid").into_iter().chain(row.elements("uids"));
    let mut found: Vec<Box<str>> = all.map(Box::from).collect();
    found.retain(|uid| !uid.is_empty());
    found.sort_unstable();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(line: &str) -> Arc<LogRow> {
        Arc::new(LogRow::read(line).unwrap())
    }

    #[test]
    fn rows_are_found_by_each_connection_that_they_name() {
        let mut rows = KeptRows::default();
        rows.take(row(r#"{"_path":"dns","uid":"C1","query":"\"uid\":\"C9\""}"#));
        rows.take(row(r#"{"_path":"dhcp","uids":["C1","C2"]}"#));
        rows.take(row(r#"{"_path":"weird","name":"none"}"#));
        let logs = |uid: &str| rows.of(uid).iter().map(|row| row.log().path).collect::<Vec<_>>();
        assert_eq!(logs("C1"), ["dns", "dhcp"]);
        assert_eq!(logs("C2"), ["dhcp"]);
        assert!(logs("C9").is_empty(), "text is no column");
    }

    #[test]
    fn a_row_that_names_very_many_connections_takes_no_time() {
        let list: Vec<_> = (0..100_000).map(|at| format!("\"C{at}\"")).collect();
        let begin = std::time::Instant::now();
        let line = format!("{{\"_path\":\"dhcp\",\"uids\":[{}]}}", list.join(","));
        assert_eq!(uids(&row(&line)).len(), 100_000);
        assert!(begin.elapsed().as_secs() < 10, "{:?}", begin.elapsed());
    }

    #[test]
    fn memory_is_bounded_and_the_last_rows_are_kept() {
        let mut rows = KeptRows::default();
        let long = "x".repeat(1_000_000);
        for at in 0..200 {
            let line = format!("{{\"_path\":\"dns\",\"uid\":\"C{at}\",\"query\":\"{long}\"}}");
            rows.take(row(&line));
        }
        assert!(rows.bytes <= MOST && rows.rows.len() > 50 && rows.given_up() > 100);
        assert_eq!(rows.by_uid.len(), rows.rows.len());
        assert!(rows.of("C0").is_empty());
        assert_eq!(rows.of("C199").len(), 1);
    }
}
