//! Tables: what stands in them, for readers, for sorting and for tests.

use netsniff_analysis::record::Unit;
use netsniff_console::calendar::Date;
use netsniff_console::number::{bytes, duration, exact};
use serde::Serialize;

use super::sum::{Sum, Times};

/// A table.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Table {
    /// By which scripts and tests find it.
    pub id: String,
    /// What it shows.
    pub caption: String,
    /// The columns in their order.
    pub columns: Vec<Column>,
    /// The rows in their order.
    pub rows: Vec<Vec<Cell>>,
    /// All that has no row of its own, and the sum.
    pub foot: Vec<Vec<Cell>>,
    /// What else there is to know.
    pub notes: Vec<String>,
    /// Whether it has a field for words that rows must have.
    pub is_searched: bool,
    /// Whether its rows stay in their order: it is renewed, or is a part of what is in order.
    pub is_fixed: bool,
}

/// A column.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Column {
    /// Its name.
    pub name: String,
    /// What its values mean.
    pub doc: String,
    /// Whether it has numbers.
    pub is_number: bool,
    /// What puts the rows in order by it, of pages that are one of many.
    pub link: Option<String>,
    /// Whether they are: `ascending` or `descending`.
    pub order: Option<&'static str>,
}

/// A value of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Cell {
    /// For readers.
    pub text: String,
    /// The number behind it, to the last digit, by which columns are sorted.
    pub value: Option<String>,
    /// The same for readers, or why there is no value.
    pub title: Option<String>,
    /// Its colour.
    pub look: Option<&'static str>,
    /// Where it leads to, of pages that are one of many.
    pub link: Option<String>,
    /// Its part of the largest of its column, of 100, where a bar shows that.
    pub bar: Option<u8>,
    /// What is left of it where rows that it is made of may be missing.
    #[serde(skip)]
    pub in_part: InPart,
}

/// What a value is where some of the rows that it is made of may be missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum InPart {
    /// The same: it is no value of many rows.
    #[default]
    Same,
    /// A lower bound: it is a sum.
    Bound,
    /// Nothing: it is a mean, or the least or the most.
    Nothing,
}

/// What stands for a value that is not set.
pub(crate) const UNSET: &str = "\u{2013}";

impl Table {
    /// It with bars in a column, whose values are no lower than 0.
    pub(crate) fn with_bars(mut self, column: usize) -> Self {
        let value = |cell: &Cell| cell.value.as_ref()?.parse::<u128>().ok();
        let values = self.rows.iter().filter_map(|row| value(row.get(column)?));
        let most = values.max().unwrap_or(0);
        for cell in self.rows.iter_mut().filter_map(|row| row.get_mut(column)) {
            let part = value(cell).and_then(|value| value.saturating_mul(100).checked_div(most));
            cell.bar = part.and_then(|part| u8::try_from(part).ok());
        }
        self
    }
}

impl Column {
    /// A column of text.
    pub(crate) fn text(name: &str, doc: &str) -> Self {
        Self { name: name.to_owned(), doc: doc.to_owned(), ..Self::default() }
    }

    /// A column of numbers.
    pub(crate) fn number(name: &str, doc: &str) -> Self {
        Self { is_number: true, ..Self::text(name, doc) }
    }
}

impl Cell {
    /// Text.
    pub(crate) fn text(text: impl AsRef<str>) -> Self {
        Self { text: text.as_ref().to_owned(), ..Self::default() }
    }

    /// Text that may not be set.
    pub(crate) fn maybe(text: Option<impl AsRef<str>>) -> Self {
        text.map_or_else(|| Self::unset("not set in the logs"), Self::text)
    }

    /// No value, with the reason.
    pub(crate) fn unset(why: &str) -> Self {
        Self { text: UNSET.to_owned(), title: Some(why.to_owned()), ..Self::default() }
    }

    /// An exact count.
    pub(crate) fn count(count: impl Into<u128>) -> Self {
        let count = count.into();
        let text = exact(i128::try_from(count).unwrap_or(i128::MAX));
        Self { text, value: Some(count.to_string()), in_part: InPart::Bound, ..Self::default() }
    }

    /// Bytes, which read as MB and the like.
    pub(crate) fn bytes(count: u128) -> Self {
        let title = format!("{} bytes", Self::count(count).text);
        let text = bytes(u64::try_from(count).unwrap_or(u64::MAX));
        Self { text, title: Some(title), ..Self::count(count) }
    }

    /// A number of a row that may not tell it.
    pub(crate) fn of(value: Option<u64>, unit: Unit) -> Self {
        let mut sum = Sum::default();
        sum.add(value);
        Self::sum(&sum, unit)
    }

    /// A sum, which is a lower bound where rows do not tell.
    pub(crate) fn sum(sum: &Sum, unit: Unit) -> Self {
        let Some(total) = sum.told() else { return Self::unset("no row tells it") };
        let cell = if unit == Unit::Bytes { Self::bytes(total) } else { Self::count(total) };
        if sum.untold() == 0 {
            return cell;
        }
        let silent = format!(
            "at least: {} of {} rows do not tell",
            exact(sum.untold().into()),
            exact(sum.rows().into())
        );
        let title = cell.title.map_or_else(|| silent.clone(), |title| format!("{title}; {silent}"));
        Self { text: format!("\u{2265} {}", cell.text), title: Some(title), ..cell }
    }

    /// It where some of the rows that it is made of may be missing.
    pub(crate) fn in_part(self, why: &str) -> Self {
        match self.in_part {
            InPart::Bound => self.at_least(why),
            InPart::Nothing => Self::unset(why),
            InPart::Same => self,
        }
    }

    /// It as what is known at least.
    pub(crate) fn at_least(self, why: &str) -> Self {
        if self.text.starts_with('\u{2265}') || self.text == UNSET {
            return self;
        }
        Self { text: format!("\u{2265} {}", self.text), title: Some(why.to_owned()), ..self }
    }

    /// A span of time in nanoseconds.
    pub(crate) fn span(nanos: Option<i64>) -> Self {
        let Some(nanos) = nanos else { return Self::unset("no row tells it") };
        let sign = if nanos < 0 { "\u{2212}" } else { "" };
        let text = format!("{sign}{}", duration(nanos.unsigned_abs()));
        let title = Some(format!("{} s", decimal(nanos)));
        let value = Some(nanos.to_string());
        Self { text, value, title, in_part: InPart::Nothing, ..Self::default() }
    }

    /// The mean of spans.
    pub(crate) fn mean(times: &Times) -> Self {
        let mut cell = Self::span(times.mean());
        if let Some(title) = &mut cell.title
            && times.number() > 0
        {
            *title = format!("{title}: the mean of {} values", exact(times.number().into()));
        }
        cell
    }

    /// A time in nanoseconds since 1970.
    pub(crate) fn time(nanos: Option<i64>) -> Self {
        let Some(nanos) = nanos else { return Self::unset("no row tells it") };
        let title = format!("{} s since 1970", decimal(nanos));
        Self {
            text: format!("{}.{:03}", moment(nanos), nanos.rem_euclid(1_000_000_000) / 1_000_000),
            value: Some(nanos.to_string()),
            title: Some(title),
            ..Self::default()
        }
    }

    /// Bytes of memory that it takes.
    pub(crate) fn memory(&self) -> usize {
        let texts = [&self.value, &self.title, &self.link].into_iter().flatten();
        size_of::<Self>() + self.text.capacity() + texts.map(String::capacity).sum::<usize>()
    }

    /// It in a colour.
    pub(crate) fn looking(self, look: Option<&'static str>) -> Self {
        Self { look, ..self }
    }

    /// It as a link.
    pub(crate) fn linked(self, link: Option<String>) -> Self {
        Self { link, ..self }
    }

    /// It in a colour where it is a number other than 0.
    pub(crate) fn alarming(self, look: &'static str) -> Self {
        let is_some = self.value.as_deref().is_some_and(|value| value != "0");
        self.looking(is_some.then_some(look))
    }
}

/// A second of the calendar, in UTC.
pub(crate) fn moment(nanos: i64) -> String {
    let Date { year, month, day, hour, minute, second } =
        Date::of_second(nanos.div_euclid(1_000_000_000));
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}")
}

/// Nanoseconds in seconds, with six decimals as in the logs.
fn decimal(nanos: i64) -> String {
    let sign = if nanos < 0 { "-" } else { "" };
    let nanos = nanos.unsigned_abs();
    format!("{sign}{}.{:06}", nanos / 1_000_000_000, nanos % 1_000_000_000 / 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(values: &[Option<u64>]) -> Cell {
        let mut sum = Sum::default();
        values.iter().for_each(|value| sum.add(*value));
        Cell::sum(&sum, Unit::Bytes)
    }

    #[test]
    fn cells_say_what_is_not_known() {
        let exact = sum(&[Some(1_500_000), Some(1)]);
        assert_eq!((exact.text.as_str(), exact.value.as_deref()), ("1.50 MB", Some("1500001")));
        assert_eq!(exact.title.as_deref(), Some("1,500,001 bytes"));
        let least = sum(&[Some(1_500_000), None]);
        assert_eq!(least.text, "\u{2265} 1.50 MB");
        assert_eq!(
            least.title.as_deref(),
            Some("1,500,000 bytes; at least: 1 of 2 rows do not tell")
        );
        let none = sum(&[None]);
        assert_eq!((none.text.as_str(), none.value), (UNSET, None));
    }

    #[test]
    fn times_are_told_to_the_microsecond() {
        let time = Cell::time(Some(1_795_298_940_058_525_000));
        assert_eq!(time.text, "2026-11-21 22:09:00.058");
        assert_eq!(time.title.as_deref(), Some("1795298940.058525 s since 1970"));
        assert_eq!(decimal(-1_500_000), "-0.001500");
        assert_eq!(Cell::time(Some(-1)).text, "1969-12-31 23:59:59.999");
    }
}
