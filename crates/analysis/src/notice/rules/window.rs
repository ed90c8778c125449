//! Records that a rule counts within a time, in the order of their own stamps.
//!
//! A record comes when it is told, which may be long after its stamp: that of a connection is its begin. So what is
//! counted is sorted, and a record that comes late counts among those that it belongs to.

use std::collections::VecDeque;

use netsniff_packet::Timestamp;

use crate::notice::finding::MOST_UIDS;

/// A record of a group.
#[derive(Debug)]
pub(super) struct Entry {
    /// Its stamp.
    pub(super) time: Timestamp,
    /// What counts once, however often it is seen; `None` where each record counts.
    pub(super) value: Option<[u8; 32]>,
    /// Its connection, of the latest ones alone.
    pub(super) uid: Option<Box<str>>,
}

/// The records of one group of a rule.
#[derive(Debug, Default)]
pub(super) struct Window {
    /// In the order of stamps. Of each value, the latest one.
    entries: VecDeque<Entry>,
    /// The latest stamp of a record that stands here no more.
    forgotten: Option<Timestamp>,
}

/// Records that are enough.
#[derive(Debug)]
pub(super) struct Seen {
    /// How many count.
    pub(super) count: usize,
    /// Connections of the latest ones.
    pub(super) uids: Vec<String>,
}

/// One of the entries, and the last one that lies within the time of the rule from there.
type Span = (usize, usize);

impl Window {
    /// Entries that are kept where `count` are enough. As many again leave room for those that come late.
    const fn most(count: usize) -> usize {
        2 * count
    }

    /// Bytes that entries take, without their uids. A queue that grows has up to twice the room that it needs.
    pub(super) const fn most_bytes(count: usize) -> usize {
        2 * (Self::most(count) + 1) * size_of::<Entry>()
    }

    /// Whether a record may belong to others that stand here no more.
    pub(super) fn is_late(&self, entry: &Entry, within: Option<u64>) -> bool {
        let is_behind = self.entries.back().is_some_and(|newest| entry.time < newest.time);
        // The latest one that was forgotten; others, which the record may also belong to, stood before it.
        let may_belong = |(forgotten, within)| {
            entry.time <= forgotten || fits(forgotten, entry.time, Some(within))
        };
        is_behind && self.forgotten.zip(within).is_some_and(may_belong)
    }

    /// Takes a record, and tells those that are enough now.
    pub(super) fn add(&mut self, entry: Entry, count: usize, within: Option<u64>) -> Option<Seen> {
        let twin = entry
            .value
            .and_then(|value| self.entries.iter().position(|other| other.value == Some(value)));
        let at = self.entries.partition_point(|other| other.time <= entry.time);
        self.entries.insert(at, entry);
        // It moves where the new one stands before it.
        let twin = twin.map(|twin| twin + usize::from(twin >= at));
        if let Some(span) = self.span(at, twin, count, within) {
            return Some(self.seen(span, twin.filter(|twin| (span.0..=span.1).contains(twin))));
        }
        self.forget(at, twin, count);
        None
    }

    /// A span of time with the entry `at` in which `count` entries lie, of which one and its twin count once.
    fn span(
        &self,
        at: usize,
        twin: Option<usize>,
        count: usize,
        within: Option<u64>,
    ) -> Option<Span> {
        let time = |at: usize| self.entries[at].time;
        let first = self
            .entries
            .partition_point(|it| it.time < time(at) && !fits(it.time, time(at), within));
        for begin in first..=at {
            let end = self
                .entries
                .partition_point(|it| it.time <= time(begin) || fits(time(begin), it.time, within))
                - 1;
            let is_twice = twin.is_some_and(|twin| (begin..=end).contains(&twin));
            if end + 1 - begin - usize::from(is_twice) >= count {
                return Some((begin, end));
            }
            // Later ones end there, too, and have fewer.
            if end + 1 == self.entries.len() {
                break;
            }
        }
        None
    }

    fn seen(&self, (begin, end): Span, twin: Option<usize>) -> Seen {
        let uids = self.entries.range(begin..=end).filter_map(|it| it.uid.as_deref());
        let mut uids: Vec<_> = uids.map(str::to_owned).collect();
        let surplus = uids.len().saturating_sub(MOST_UIDS);
        uids.drain(..surplus);
        Seen { count: end + 1 - begin - usize::from(twin.is_some()), uids }
    }

    /// Gives up what no record that comes in order can need: of two with one value the earlier one, the first where
    /// there is no room, and uids but of the last ones.
    fn forget(&mut self, at: usize, twin: Option<usize>, count: usize) {
        let earlier = twin.map(|twin| twin.min(at));
        let surplus = (self.entries.len() > Self::most(count)).then_some(0);
        if let Some(gone) = earlier.or(surplus).and_then(|gone| self.entries.remove(gone)) {
            self.forgotten = self.forgotten.max(Some(gone.time));
        }
        // The new one may stand one place before, since one is gone.
        let last = self.entries.len().saturating_sub(MOST_UIDS);
        for without in [last.saturating_sub(1), at.saturating_sub(1), at] {
            if without < last
                && let Some(entry) = self.entries.get_mut(without)
            {
                entry.uid = None;
            }
        }
    }
}

/// Whether two stamps lie within the time of a rule.
fn fits(one: Timestamp, other: Timestamp, within: Option<u64>) -> bool {
    within.is_none_or(|within| one.nanos().abs_diff(other.nanos()) <= within)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Adds records at some times, each with its value, and tells the number of the one that was enough.
    fn enough(count: usize, records: &[(i64, Option<u8>)]) -> Option<(usize, Seen)> {
        let mut window = Window::default();
        records.iter().zip(1..).find_map(|(&(nanos, value), number)| {
            let seen = window.add(entry(nanos, value), count, Some(10))?;
            Some((number, seen))
        })
    }

    fn entry(nanos: i64, value: Option<u8>) -> Entry {
        let uid = Some(format!("C{nanos}").into());
        Entry { time: Timestamp::from_nanos(nanos), value: value.map(|value| [value; 32]), uid }
    }

    fn each(nanos: &[i64]) -> Vec<(i64, Option<u8>)> {
        nanos.iter().map(|&nanos| (nanos, None)).collect()
    }

    #[test]
    fn records_count_within_the_time_of_the_rule() {
        let (number, seen) = enough(3, &each(&[0, 5, 11, 15, 16])).unwrap();
        assert_eq!((number, seen.count), (4, 3), "from 5 to 15");
        assert_eq!(seen.uids, ["C5", "C11", "C15"]);
        assert!(enough(3, &each(&[0, 5, 11, 22, 33, 34])).is_none());
        assert!(enough(3, &each(&[0, 5, 10])).is_some(), "the time is that between both ends");
    }

    #[test]
    fn what_comes_late_counts_by_its_own_stamp() {
        assert!(enough(3, &each(&[0, 100, 101, 8])).is_none());
        let (number, seen) = enough(3, &each(&[0, 100, 101, 8, 9])).unwrap();
        assert_eq!((number, seen.uids), (5, ["C0", "C8", "C9"].map(str::to_owned).into()));
        let (number, _) = enough(3, &each(&[14, 100, 101, 0, 9, 5])).unwrap();
        assert_eq!(number, 6, "of two windows, the one that is full");
    }

    #[test]
    fn a_value_counts_once_within_the_time() {
        let of = |pairs: &[(i64, u8)]| {
            let pairs: Vec<_> = pairs.iter().map(|&(nanos, value)| (nanos, Some(value))).collect();
            enough(3, &pairs).map(|(number, seen)| (number, seen.count))
        };
        assert_eq!(of(&[(0, 1), (1, 1), (2, 1), (3, 2), (4, 2)]), None);
        assert_eq!(
            of(&[(0, 1), (1, 1), (3, 2), (11, 3)]),
            Some((4, 3)),
            "the last 1 is near enough"
        );
        assert_eq!(of(&[(0, 1), (3, 2), (11, 3), (12, 3)]), None, "1 is too old");
        let flood: Vec<_> = [(0, 1), (1, 2)].into_iter().chain((2..9).map(|at| (at, 2))).collect();
        assert_eq!(of(&[flood, vec![(10, 3)]].concat()), Some((10, 3)), "2 pushes nothing out");
    }

    #[test]
    fn what_is_kept_is_bounded_and_what_may_be_missed_is_told() {
        let mut window = Window::default();
        for at in 0..1000 {
            assert!(window.add(entry(at * 100, None), 20, Some(10)).is_none());
            assert!(!window.is_late(&entry(at * 100 + 1, None), Some(10)), "it comes in order");
        }
        assert_eq!(window.entries.len(), Window::most(20));
        let with_uid = window.entries.iter().filter(|entry| entry.uid.is_some());
        assert_eq!(with_uid.count(), MOST_UIDS);
        assert!(window.is_late(&entry(95_905, None), Some(10)), "that at 95,900 is forgotten");
        assert!(!window.is_late(&entry(96_005, None), Some(10)));
        assert!(window.is_late(&entry(50_005, None), Some(10)), "those before are forgotten, too");
        assert!(window.add(entry(96_001, None), 20, Some(10)).is_none());
        assert_eq!(window.entries.iter().filter(|it| it.uid.is_some()).count(), MOST_UIDS);
    }
}
