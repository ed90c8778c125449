//! What passed in each interval in all.

use std::collections::BTreeMap;

use netsniff_analysis::log::capture::CaptureVerdict;

use super::figures::{Figures, Known, Traffic};
use super::row::LogRow;
use super::subjects::{INTERVALS, Span};

/// The sums of all packets.
#[derive(Clone, Debug, Default)]
pub(crate) struct Totals {
    recent: BTreeMap<i64, Total>,
    whole: Total,
    /// The last interval that was told for the first time.
    last: Option<i64>,
    /// The first one, of which only the end may have been seen.
    first: Option<i64>,
}

/// What passed in some intervals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Total {
    pub(crate) all: Traffic,
    pub(crate) flows: Figures,
    /// How many were open at the end of the last one.
    pub(crate) open_flows: Option<u64>,
    /// What the capture lost.
    pub(crate) dropped: Known,
    /// How many intervals with packets there were.
    pub(crate) intervals: u64,
}

impl Total {
    /// Whether these packets can be believed.
    pub(crate) fn verdict(&self) -> CaptureVerdict {
        let share = |(dropped, packets): (i64, i64)| {
            let all = dropped.saturating_add(packets);
            if all > 0 { dropped as f64 / all as f64 } else { 0.0 }
        };
        let known = self.dropped.0.zip(self.all.packets.0).filter(|_| self.intervals > 0);
        CaptureVerdict::of(known.map(share))
    }

    /// Adds what is of a later interval.
    fn add(&mut self, later: &Self) {
        self.all += later.all;
        self.flows += &later.flows;
        self.open_flows = later.open_flows;
        self.dropped += later.dropped;
        self.intervals += later.intervals;
    }
}

impl Totals {
    /// Takes a row about all packets of the interval with this number.
    pub(crate) fn take(&mut self, number: i64, row: &LogRow) {
        let is_late = row.is("late");
        let known = |column: &str| Known(row.int(column));
        // Whoever adds to an interval may know nothing of drops, which changes nothing.
        let dropped = row.int("dropped").or(is_late.then_some(0));
        let one = Total {
            all: Traffic { packets: known("packets"), bytes: known("bytes") },
            flows: Figures::of(row, ["orig_pkts", "orig_ip_bytes"], ["resp_pkts", "resp_ip_bytes"]),
            open_flows: row.count("open_flows"),
            dropped: Known(dropped),
            intervals: u64::from(!is_late),
        };
        let open_flows = self.whole.open_flows;
        self.whole.add(&one);
        let entry = self.recent.entry(number).or_default();
        entry.add(&one);
        if is_late {
            self.whole.open_flows = open_flows;
        } else {
            self.last = Some(number);
            self.first = self.first.or(Some(number));
        }
        while self.recent.len() > INTERVALS {
            self.recent.pop_first();
        }
    }

    /// The last interval that was told for the first time.
    pub(crate) const fn last(&self) -> Option<i64> {
        self.last
    }

    /// The sum over the last intervals.
    pub(crate) fn over(&self, span: Span) -> Total {
        let (Span::Last(intervals), Some(last)) = (span, self.last) else { return self.whole };
        let first = last.saturating_sub(i64::try_from(intervals).unwrap_or(i64::MAX) - 1);
        let mut sum = Total::default();
        self.recent.range(first..=last).for_each(|(_, total)| sum.add(total));
        sum
    }

    /// The sum over those of the last intervals that were seen from their begin on, and how many these are; `None` where
    /// none was.
    pub(crate) fn whole_intervals(&self, most: usize) -> Option<(Total, i64)> {
        let (first, last) = self.first.zip(self.last)?;
        let intervals = i64::try_from(most).unwrap_or(i64::MAX).min(last.saturating_sub(first));
        let most = usize::try_from(intervals).ok().filter(|intervals| *intervals > 0)?;
        Some((self.over(Span::Last(most)), intervals))
    }

    /// Bytes of each of the last intervals, where none passed 0.
    pub(crate) fn trend(&self, intervals: usize) -> Vec<u64> {
        let Some(last) = self.last else { return Vec::new() };
        let bytes = |number: i64| {
            let bytes = self.recent.get(&number).and_then(|total| total.all.bytes.0);
            bytes.and_then(|bytes| u64::try_from(bytes).ok()).unwrap_or(0)
        };
        let intervals = i64::try_from(intervals.min(INTERVALS)).unwrap_or(0);
        (last.saturating_sub(intervals - 1)..=last).map(bytes).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(totals: &mut Totals, number: i64, cells: &str) {
        let row = LogRow::read(&format!("{{\"_path\":\"series\",{cells}}}")).unwrap();
        totals.take(number, &row);
    }

    #[test]
    fn drops_that_nobody_told_make_the_sum_unknown_and_late_rows_do_not() {
        let mut totals = Totals::default();
        take(&mut totals, 1, "\"late\":false,\"packets\":99,\"bytes\":9,\"dropped\":0");
        take(&mut totals, 1, "\"late\":true,\"packets\":0,\"bytes\":0");
        assert_eq!(totals.over(Span::Whole).verdict(), CaptureVerdict::Good);
        take(&mut totals, 1, "\"late\":true,\"packets\":0,\"bytes\":0,\"dropped\":50");
        assert_eq!(totals.over(Span::Last(1)).verdict(), CaptureVerdict::Bad);
        take(&mut totals, 3, "\"late\":false,\"packets\":1,\"bytes\":7");
        assert_eq!(totals.over(Span::Whole).verdict(), CaptureVerdict::Unknown);
        assert_eq!(totals.over(Span::Whole).all.packets, Known(Some(100)));
        assert_eq!(totals.trend(4), [0, 9, 0, 7]);
        let (total, intervals) = totals.whole_intervals(10).unwrap();
        assert_eq!(
            (total.all.packets, intervals),
            (Known(Some(1)), 2),
            "not those of the first one"
        );
        assert_eq!(Totals::default().over(Span::Whole).verdict(), CaptureVerdict::Unknown);
    }
}
