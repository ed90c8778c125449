//! Traffic over time, by service.

use std::collections::BTreeMap;

use netsniff_analysis::record::Unit;
use netsniff_console::number::duration;

use super::{About, Gather};
use crate::logs::Row;
use crate::page::plot::{COLOURS, Layers};
use crate::page::sum::Sum;
use crate::page::table::{Cell, Column, Table, moment};
use crate::page::{Part, Picture, Section};

/// What passed in spans of time.
#[derive(Debug, Default)]
pub(super) struct Time {
    /// The length of a span in nanoseconds: of the longest intervals of the log, or a multiple, so that each interval is
    /// in one span. 0 before the first.
    width: i64,
    /// By the number of the span since 1970.
    spans: BTreeMap<i64, Span>,
    services: BTreeMap<String, Sum>,
    /// Rows that have no time, or no length, or one that no span can hold.
    unplaced: u64,
}

/// Bytes of each service in a span.
type Span = BTreeMap<String, Sum>;

/// Spans that are kept; where there are more, two become one.
const SPANS: usize = 240;
/// Services that are told apart; the rest have one name.
const SERVICES: usize = 64;
/// The rest of them.
const OTHERS: &str = "other services";
/// What has no service.
const NONE: &str = "not recognised";
/// Nanoseconds of the longest interval, and of the span that intervals of different lengths may make: a leap year.
const LONGEST: i64 = 366 * 86_400 * 1_000_000_000;

fn greatest_common_divisor(mut one: i64, mut other: i64) -> i64 {
    while other != 0 {
        (one, other) = (other, one % other);
    }
    one.max(1)
}

impl Time {
    /// Makes spans so long that each interval of such a length is in one; whether that is possible.
    fn hold(&mut self, interval: i64) -> bool {
        if interval > LONGEST {
            return false;
        }
        if self.width == 0 {
            self.width = interval;
        }
        if self.width % interval == 0 {
            return true;
        }
        // Intervals begin at multiples of their length since 1970.
        let times = interval / greatest_common_divisor(self.width, interval);
        match self.width.checked_mul(times) {
            Some(width) if width <= LONGEST => {
                self.lengthen(times);
                true
            }
            _ => false,
        }
    }

    /// Makes so many spans one.
    fn lengthen(&mut self, times: i64) {
        self.width = self.width.saturating_mul(times);
        let mut joined: BTreeMap<i64, Span> = BTreeMap::new();
        for (at, span) in std::mem::take(&mut self.spans) {
            let to = joined.entry(at.div_euclid(times)).or_default();
            for (service, sum) in span {
                to.entry(service).or_default().merge(sum);
            }
        }
        self.spans = joined;
    }

    /// Makes spans longer until there are few enough.
    fn join(&mut self) {
        let is_too_many = |spans: &BTreeMap<i64, Span>| {
            let ends = spans.keys().next().zip(spans.keys().next_back());
            // Spans in which nothing passed have room in the picture, too.
            ends.is_some_and(|(first, last)| last.saturating_sub(*first) >= SPANS as i64)
        };
        // Spans of a time that fits 64 bits are few long before their length no longer does.
        while is_too_many(&self.spans) && self.width < i64::MAX / 2 {
            self.lengthen(2);
        }
    }

    /// The services with the most bytes, as many as there are colours.
    fn layers(&self) -> Vec<String> {
        let mut all: Vec<_> = self.services.iter().filter(|(name, _)| *name != OTHERS).collect();
        all.sort_by(|one, other| other.1.rank().cmp(&one.1.rank()).then(one.0.cmp(other.0)));
        let room = COLOURS - 1;
        let mut layers: Vec<String> =
            all.iter().take(room).map(|(name, _)| (*name).clone()).collect();
        if all.len() > room || self.services.contains_key(OTHERS) {
            layers.push(OTHERS.to_owned());
        }
        layers
    }

    /// The bytes of each layer in each span, those in which nothing passed included.
    fn values(&self, layers: &[String]) -> Vec<(i64, Vec<Sum>)> {
        let ends = self.spans.keys().next().zip(self.spans.keys().next_back());
        let Some((&first, &last)) = ends else { return Vec::new() };
        let of = |at: i64| {
            let mut sums = vec![Sum::default(); layers.len()];
            for (service, sum) in self.spans.get(&at).into_iter().flatten() {
                let layer = layers.iter().position(|layer| layer == service);
                let layer = layer.or_else(|| layers.iter().position(|layer| layer == OTHERS));
                if let Some(to) = layer.and_then(|layer| sums.get_mut(layer)) {
                    to.merge(*sum);
                }
            }
            (at.saturating_mul(self.width), sums)
        };
        (first..=last).map(of).collect()
    }

    fn table(&self, layers: &[String], values: &[(i64, Vec<Sum>)]) -> Table {
        let mut columns = vec![Column::text("begin", "of the span, UTC")];
        columns.extend(layers.iter().map(|name| Column::number(name, "bytes of IP")));
        let row = |(begin, sums): &(i64, Vec<Sum>)| {
            let mut cells = vec![Cell::time(Some(*begin))];
            cells.extend(sums.iter().map(|sum| Cell::sum(sum, Unit::Bytes)));
            cells
        };
        let mut all = vec![Cell::text("all")];
        for layer in 0..layers.len() {
            let mut sum = Sum::default();
            values.iter().filter_map(|(_, sums)| sums.get(layer)).for_each(|it| sum.merge(*it));
            all.push(Cell::sum(&sum, Unit::Bytes));
        }
        Table {
            id: "time".to_owned(),
            caption: "Bytes of IP by service".to_owned(),
            columns,
            rows: values.iter().map(row).collect(),
            foot: vec![all],
            ..Table::default()
        }
    }
}

impl Gather for Time {
    fn logs(&self) -> &'static [&'static str] {
        &["series"]
    }

    fn row(&mut self, _: &str, row: &Row<'_>) {
        if row.text("kind").as_deref() != Some("service") {
            return;
        }
        let interval = row.nanos("interval").filter(|nanos| *nanos > 0);
        let (Some(ts), Some(interval)) = (row.nanos("ts"), interval) else {
            self.unplaced += 1;
            return;
        };
        if !self.hold(interval) {
            self.unplaced += 1;
            return;
        }
        let service = row.text("service").filter(|service| !service.is_empty());
        let mut service = service.map_or_else(|| NONE.to_owned(), Into::into);
        if self.services.len() >= SERVICES && !self.services.contains_key(&service) {
            service = OTHERS.to_owned();
        }
        let span = ts.div_euclid(self.width);
        let (of_all, of_span) = (
            self.services.entry(service.clone()).or_default(),
            self.spans.entry(span).or_default().entry(service).or_default(),
        );
        for name in ["orig_ip_bytes", "resp_ip_bytes"] {
            let bytes = row.count(name);
            of_all.add(bytes);
            of_span.add(bytes);
        }
        self.join();
    }

    fn section(self: Box<Self>, _: &About<'_>) -> Option<Section> {
        let layers = self.layers();
        let values = self.values(&layers);
        let mut lead = Vec::new();
        let mut parts = Vec::new();
        if let (Some((first, _)), Some((last, _))) = (values.first(), values.last()) {
            let width = self.width;
            let long = duration(width.unsigned_abs());
            let plot = Layers {
                title: "Traffic over time by service",
                begin: *first,
                width,
                values: values
                    .iter()
                    .map(|(_, sums)| sums.iter().map(Sum::rank).collect())
                    .collect(),
            };
            let caption = format!(
                "Bits of IP a second, in spans of {long}, from {} to {} UTC. Layers lie on each other.",
                moment(*first),
                moment(last.saturating_add(width))
            );
            parts.push(Part::Picture(Picture {
                svg: plot.svg(),
                caption,
                key: layers.iter().cloned().enumerate().collect(),
                table: self.table(&layers, &values),
            }));
        } else {
            let said =
                "There is no log series: nobody told what passed in each interval (--series).";
            lead.push(said.to_owned());
        }
        if self.unplaced > 0 {
            let rows = super::trust::things(self.unplaced, "row", "rows");
            lead.push(format!("{rows} of series had no time, or no interval that fits the others, and were left out."));
        }
        Some(Section { id: "time", title: "Traffic over time".to_owned(), lead, parts })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_grow_and_lose_nothing() {
        let mut time = Time { width: 1_000_000_000, ..Time::default() };
        for at in 0..10_000_i64 {
            let span = at.saturating_mul(1_000_000_000).div_euclid(time.width);
            let service = if at % 3 == 0 { "dns" } else { "ssl" };
            for sums in [&mut time.services, time.spans.entry(span).or_default()] {
                sums.entry(service.to_owned()).or_default().add(Some(at as u64));
            }
            time.join();
            assert!(time.spans.len() <= SPANS);
        }
        assert_eq!(time.width, 64_000_000_000);
        let layers = time.layers();
        assert_eq!(layers, ["ssl", "dns"]);
        let values = time.values(&layers);
        let all: u128 = values.iter().flat_map(|(_, sums)| sums).map(Sum::rank).sum();
        assert_eq!(all, 9_999 * 10_000 / 2);
        assert_eq!(values[1].0 - values[0].0, 64_000_000_000);
    }

    #[test]
    fn intervals_of_different_lengths_are_each_in_one_span() {
        const SECOND: i64 = 1_000_000_000;
        let mut time = Time::default();
        for (at, interval) in [(0, 1), (1, 1), (60, 60), (59, 1), (61, 2), (0, 90)] {
            assert!(time.hold(interval * SECOND));
            let span = (at * SECOND).div_euclid(time.width);
            time.spans.entry(span).or_default().entry(String::new()).or_default().add(Some(1));
        }
        assert_eq!(time.width, 180 * SECOND, "three of 60 s are two of 90 s");
        let sums: Vec<_> = time.values(&[String::new()]).iter().map(|it| it.1[0].rank()).collect();
        assert_eq!(sums, [6]);
        // Nothing can hold these.
        assert!(!time.hold(i64::MAX) && !time.hold(LONGEST - 1));
        assert_eq!(time.width, 180 * SECOND);
    }

    #[test]
    fn times_at_both_ends_make_few_spans() {
        let mut time = Time::default();
        for ts in [i64::MIN, i64::MAX, 0] {
            assert!(time.hold(1));
            let span = ts.div_euclid(time.width);
            time.spans.entry(span).or_default().entry(String::new()).or_default().add(Some(1));
            time.join();
        }
        let values = time.values(&[String::new()]);
        assert!(values.len() <= SPANS);
        assert_eq!(values.iter().map(|it| it.1[0].rank()).sum::<u128>(), 3);
    }
}
