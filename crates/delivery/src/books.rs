//! Where every row went that was to be delivered to a target.

use netsniff_console::exposition::{Exposition, Kind, Labels};
use serde::Serialize;

/// The books of one target. At any time `found + made = delivered + spooled + refused_full + refused_by_receiver +
/// lost`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Books {
    /// The target, without secrets.
    pub target: String,
    /// Rows that earlier runs left in the spool.
    pub found: u64,
    /// Rows of this run.
    pub made: u64,
    /// Rows that the receiver took.
    pub delivered: u64,
    /// Rows that wait in the spool.
    pub spooled: u64,
    /// Rows for which the spool had no room.
    pub refused_full: u64,
    /// Rows that the receiver will never take.
    pub refused_by_receiver: u64,
    /// Of those, the ones that are kept with their reasons in `refused.json`.
    pub refused_kept: u64,
    /// Rows of the spool that could not be read any more.
    pub lost: u64,
    /// Batches that were sent, with those that were sent again.
    pub batches: u64,
    /// Batches that have to be sent again, in whole or in part.
    pub retried: u64,
    /// Bytes of the spool that cannot be read any more. How many rows they were is known only where the damage came during this run
    /// (`lost`).
    pub damaged_bytes: u64,
    /// What went wrong last.
    pub last_error: Option<String>,
}

impl Books {
    /// Rows that were given up.
    #[must_use]
    pub const fn refused(&self) -> u64 {
        self.refused_full + self.refused_by_receiver + self.lost
    }

    /// Whether every row is with the receiver.
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        self.spooled == 0 && self.refused() == 0 && self.damaged_bytes == 0
    }
}

/// A metric: its kind, its name, what it tells, and its value in the books.
type Metric = (Kind, &'static str, &'static str, fn(&Books) -> u64);

const METRICS: &[Metric] = &[
    (Kind::Gauge, "found_rows", "Rows that earlier runs left in the spool.", |of| of.found),
    (Kind::Counter, "made_rows", "Rows that were to be delivered.", |of| of.made),
    (Kind::Counter, "delivered_rows", "Rows that the receiver took.", |of| of.delivered),
    (Kind::Gauge, "spooled_rows", "Rows that wait in the spool.", |of| of.spooled),
    (Kind::Counter, "refused_full_rows", "Rows for which the spool had no room.", |of| {
        of.refused_full
    }),
    (Kind::Counter, "refused_rows", "Rows that the receiver will never take.", |of| {
        of.refused_by_receiver
    }),
    (Kind::Counter, "lost_rows", "Rows of the spool that could not be read any more.", |of| {
        of.lost
    }),
    (Kind::Gauge, "damaged_bytes", "Bytes of the spool that fail their checksum.", |of| {
        of.damaged_bytes
    }),
    (Kind::Counter, "batches", "Batches that were sent, with those sent again.", |of| of.batches),
    (Kind::Counter, "retried_batches", "Batches to be sent again, in whole or in part.", |of| {
        of.retried
    }),
];

/// Adds the books of some targets.
pub fn add_metrics(books: &[Books], text: &mut Exposition) {
    for (kind, name, help, value) in METRICS {
        let samples =
            books.iter().map(|of| (Labels::default().with("target", &of.target), value(of)));
        text.add(*kind, &format!("netsniff_delivery_{name}"), help, samples);
    }
}

#[cfg(test)]
mod tests {
    use netsniff_console::exposition::Dialect;

    use super::*;

    #[test]
    fn metrics_name_their_target_and_keep_the_balance() {
        let prometheus = |books: &[Books]| {
            let mut text = Exposition::new(Dialect::Prometheus);
            add_metrics(books, &mut text);
            text.finish()
        };
        assert_eq!(prometheus(&[]), "");
        let books = Books {
            target: "a\"b".to_owned(),
            found: 1,
            made: 9,
            delivered: 4,
            spooled: 1,
            refused_full: 2,
            ..Books::default()
        };
        let books = Books { refused_by_receiver: 2, lost: 1, ..books };
        let page = prometheus(&[books]);
        assert!(
            page.contains("netsniff_delivery_delivered_rows_total{target=\"a\\\"b\"} 4\n"),
            "{page}"
        );
        assert_eq!(page.lines().filter(|line| !line.starts_with('#')).count(), METRICS.len());
    }
}
