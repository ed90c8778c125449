//! Hosts, services or connections by name, over the last intervals and over all of them, with what is in no row of its own.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::figures::Figures;
use super::row::LogRow;

/// Intervals that are kept one by one.
pub(crate) const INTERVALS: usize = 300;
/// Names that are kept over all intervals, and of one.
const NAMES: usize = 50_000;
/// Rows of names that are kept of the intervals that are kept one by one, but for the last one's.
const RECENT: usize = INTERVALS * 1_000;
/// Bytes of the longest name that is kept. Names of hosts, services and connections are far shorter.
const LONGEST: usize = 256;

/// Over how many of the last intervals figures are summed up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Span {
    /// The last so many.
    Last(usize),
    /// All since the begin.
    Whole,
}

/// The subjects of one kind.
#[derive(Clone, Debug, Default)]
pub(crate) struct Subjects {
    recent: BTreeMap<i64, Listing>,
    /// Rows of names in those.
    rows: usize,
    /// The last interval that was given up.
    given_up: Option<i64>,
    whole: Listing,
    /// Names of the rows that came last: those of one interval, until the row of all others comes.
    batch: HashSet<Box<str>>,
    at: i64,
    /// Whether names came for which there was no room.
    is_beyond: bool,
}

/// Who had rows, and how often others had none.
#[derive(Clone, Debug, Default)]
struct Listing {
    named: HashMap<Box<str>, Listed>,
    /// How many rows of all others there were.
    rests: u32,
    rest: Figures,
}

/// What a subject had in its rows.
#[derive(Clone, Copy, Debug, Default)]
struct Listed {
    figures: Figures,
    /// How many of the rows of all others have nothing of it, since it had its own beside them.
    beside_rests: u32,
}

/// A subject with its figures.
#[derive(Clone, Debug)]
pub(crate) struct Subject {
    pub(crate) name: Box<str>,
    pub(crate) figures: Figures,
    /// Whether that is all; otherwise a part may be among all others, and packets and bytes are the least.
    pub(crate) is_exact: bool,
}

impl Subjects {
    /// Ends the rows that belong together.
    pub(crate) fn end_batch(&mut self) {
        self.batch.clear();
    }

    /// Takes a row about `name` in the interval with this number; of all others where there is none.
    pub(crate) fn take(
        &mut self,
        number: i64,
        name: Option<&str>,
        row: &LogRow,
        figures: &Figures,
    ) {
        if number != self.at || name.is_some_and(|name| self.batch.contains(name)) {
            self.end_batch();
        }
        self.at = number;
        let Some(name) = name else { return self.take_rest(number, row.is("late"), figures) };
        // Whoever is not in the batch may have something among all others, which is the careful way.
        if self.batch.len() < NAMES && name.len() <= LONGEST {
            self.batch.insert(name.into());
        }
        self.is_beyond |= !self.whole.add(name, figures);
        let recent = self.recent.entry(number).or_default();
        let before = recent.named.len();
        if !recent.add(name, figures) {
            // What it had is among all others then.
            recent.rests = recent.rests.saturating_add(1);
            self.is_beyond = true;
        }
        self.rows += recent.named.len() - before;
        self.trim();
    }

    fn trim(&mut self) {
        while self.recent.len() > INTERVALS || (self.rows > RECENT && self.recent.len() > 1) {
            let Some((number, listing)) = self.recent.pop_first() else { return };
            self.rows -= listing.named.len();
            self.given_up = self.given_up.max(Some(number));
        }
    }

    fn take_rest(&mut self, number: i64, is_late: bool, figures: &Figures) {
        for listing in [self.recent.entry(number).or_default(), &mut self.whole] {
            listing.rests = listing.rests.saturating_add(1);
            listing.rest += figures;
            // What comes late has rows in parts: nobody knows which of them belong together.
            for name in self.batch.iter().filter(|_| !is_late) {
                if let Some(listed) = listing.named.get_mut(name) {
                    listed.beside_rests += 1;
                }
            }
        }
        self.end_batch();
        self.trim();
    }

    /// Those with rows in the last intervals up to number `last`.
    pub(crate) fn over(&self, span: Span, last: i64) -> Vec<Subject> {
        let Span::Last(intervals) = span else { return self.whole.subjects() };
        let first = last.saturating_sub(i64::try_from(intervals).unwrap_or(i64::MAX) - 1);
        // Of an interval that was given up nobody knows who had what.
        let is_partial = self.given_up.is_some_and(|given_up| first <= given_up);
        let mut sum = Listing { rests: u32::from(is_partial), ..Listing::default() };
        for listing in self.recent.range(first..=last.max(first)).map(|(_, listing)| listing) {
            sum.rests = sum.rests.saturating_add(listing.rests);
            for (name, listed) in &listing.named {
                let all = sum.of(name);
                all.figures += &listed.figures;
                all.beside_rests += listed.beside_rests;
            }
        }
        sum.subjects()
    }

    /// Whether there were rows of all others in the last intervals up to number `last`, or intervals were given up.
    pub(crate) fn has_rests(&self, span: Span, last: i64) -> bool {
        let Span::Last(intervals) = span else { return self.whole.rests > 0 || self.is_beyond };
        let first = last.saturating_sub(i64::try_from(intervals).unwrap_or(i64::MAX) - 1);
        self.given_up.is_some_and(|given_up| first <= given_up)
            || self.recent.range(first..=last.max(first)).any(|(_, listing)| listing.rests > 0)
    }

    /// Bytes of a subject in each of the last intervals; 0 where it had no row.
    pub(crate) fn trend(&self, name: &str, intervals: usize, last: i64) -> Vec<u64> {
        let intervals = i64::try_from(intervals).unwrap_or(i64::MAX);
        let bytes = |number: i64| {
            let listed = self.recent.get(&number).and_then(|listing| listing.named.get(name));
            let bytes = listed.and_then(|listed| listed.figures.bytes());
            bytes.and_then(|bytes| u64::try_from(bytes).ok()).unwrap_or(0)
        };
        (last.saturating_sub(intervals - 1)..=last).map(bytes).collect()
    }

    /// Whether names came over time for which there was no room.
    pub(crate) const fn is_beyond(&self) -> bool {
        self.is_beyond
    }
}

impl Listing {
    /// Adds what a subject had. Returns whether there was room for it.
    fn add(&mut self, name: &str, figures: &Figures) -> bool {
        let has_room = self.named.len() < NAMES && name.len() <= LONGEST;
        if !has_room && !self.named.contains_key(name) {
            return false;
        }
        self.of(name).figures += figures;
        true
    }

    fn of(&mut self, name: &str) -> &mut Listed {
        self.named.entry(name.into()).or_default()
    }

    fn subjects(&self) -> Vec<Subject> {
        let subject = |(name, listed): (_, &Listed)| {
            let is_exact = listed.beside_rests >= self.rests;
            let figures = if is_exact { listed.figures } else { listed.figures.partial() };
            Subject { name: Box::clone(name), figures, is_exact }
        };
        self.named.iter().map(subject).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(is_late: bool) -> LogRow {
        LogRow::read(&format!("{{\"_path\":\"series\",\"late\":{is_late}}}")).unwrap()
    }

    fn figures(bytes: i64) -> Figures {
        let mut figures = Figures::default();
        figures.sent.bytes.0 = Some(bytes);
        figures
    }

    fn of(subjects: &Subjects, span: Span) -> Vec<(String, i64, bool)> {
        let all = subjects.over(span, 3).into_iter();
        let told = |it: Subject| (it.name.to_string(), it.figures.bytes().unwrap(), it.is_exact);
        let mut all: Vec<_> = all.map(told).collect();
        all.sort();
        all
    }

    #[test]
    fn a_sum_is_exact_where_nothing_of_it_is_among_others() {
        let mut subjects = Subjects::default();
        let row = row(false);
        subjects.take(1, Some("a"), &row, &figures(5));
        subjects.take(1, Some("b"), &row, &figures(4));
        subjects.take(1, None, &row, &figures(1));
        subjects.take(2, Some("a"), &row, &figures(7));
        subjects.take(2, None, &row, &figures(1));
        subjects.take(3, Some("b"), &row, &figures(2));
        let exact = |name: &str, bytes, is_exact| (name.to_owned(), bytes, is_exact);
        // Nothing of `a` can be in a rest; `b` may be in that of the second interval.
        assert_eq!(of(&subjects, Span::Whole), [exact("a", 12, true), exact("b", 6, false)]);
        assert_eq!(of(&subjects, Span::Last(1)), [exact("b", 2, true)]);
        assert_eq!(of(&subjects, Span::Last(2)), [exact("a", 7, true), exact("b", 2, false)]);
        assert_eq!(subjects.trend("a", 3, 3), [5, 7, 0]);
    }

    #[test]
    fn the_rest_of_what_is_late_may_have_something_of_all() {
        let mut subjects = Subjects::default();
        subjects.take(3, Some("a"), &row(false), &figures(5));
        subjects.end_batch();
        subjects.take(3, Some("a"), &row(true), &figures(1));
        subjects.take(3, None, &row(true), &figures(1));
        assert_eq!(of(&subjects, Span::Last(1)), [("a".to_owned(), 6, false)]);
    }

    #[test]
    fn memory_is_bounded() {
        let mut subjects = Subjects::default();
        for at in 0..NAMES as i64 + 10 {
            subjects.take(at, Some(&at.to_string()), &row(false), &figures(1));
        }
        assert_eq!(subjects.recent.len(), INTERVALS);
        assert_eq!(subjects.whole.named.len(), NAMES);
        assert!(subjects.is_beyond());
    }

    #[test]
    fn memory_is_bounded_whatever_one_interval_has() {
        let mut subjects = Subjects::default();
        let row = row(false);
        subjects.take(1, Some("0"), &row, &figures(1));
        for number in 2..12 {
            for at in 0..NAMES + 10 {
                subjects.take(number, Some(&at.to_string()), &row, &figures(1));
            }
            subjects.take(number, Some(&"x".repeat(LONGEST + 1)), &row, &figures(1));
        }
        assert!(subjects.batch.len() <= NAMES);
        let rows: usize = subjects.recent.values().map(|listing| listing.named.len()).sum();
        assert_eq!(rows, subjects.rows);
        assert!(rows <= RECENT + NAMES && subjects.is_beyond());
        // Whose row had no room, and whose interval was given up, has the least of it.
        assert!(subjects.over(Span::Last(2), 11).iter().all(|one| !one.is_exact));
        let mut subjects = Subjects::default();
        for number in 1..=8 {
            for at in 0..NAMES - 1 {
                subjects.take(number, Some(&at.to_string()), &row, &figures(1));
            }
        }
        assert!(subjects.over(Span::Last(2), 8).iter().all(|one| one.is_exact));
        assert!(subjects.over(Span::Last(60), 8).iter().all(|one| !one.is_exact));
    }
}
