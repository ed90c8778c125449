//! Values of tables: how they are ordered, and how people read them.

use core::cmp::Reverse;

use netsniff_console::calendar::Date;
use netsniff_console::number::{bytes, count, duration};
use netsniff_console::printable::printable;
use netsniff_console::terminal::signs::Signs;
use netsniff_packet::Timestamp;

/// A value of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Cell {
    /// Nobody knows it.
    Unknown,
    /// Text from anywhere.
    Text(String),
    /// A number of things, and whether it is the least.
    Count(i64, bool),
    /// Bytes, and whether it is the least.
    Bytes(i64, bool),
    /// Nanoseconds.
    Duration(i64),
    /// Nanoseconds since 1970.
    Time(i64),
    /// Values over time.
    Trend(Vec<u64>),
}

/// What cells are ordered by.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Order {
    Up(i64, String),
    Down(Reverse<i64>, Reverse<String>),
}

impl Cell {
    /// A count that may be unknown.
    pub(crate) fn count(value: Option<i64>, is_exact: bool) -> Self {
        value.map_or(Self::Unknown, |value| Self::Count(value, !is_exact))
    }

    /// Bytes that may be unknown.
    pub(crate) fn bytes(value: Option<i64>, is_exact: bool) -> Self {
        value.map_or(Self::Unknown, |value| Self::Bytes(value, !is_exact))
    }

    /// A span of time that may be unknown.
    pub(crate) fn duration(nanos: Option<i64>) -> Self {
        nanos.map_or(Self::Unknown, Self::Duration)
    }

    /// Text that may be unset.
    pub(crate) fn text(text: Option<&str>) -> Self {
        text.map_or(Self::Unknown, |text| Self::Text(text.to_owned()))
    }

    pub(crate) const fn is_unknown(&self) -> bool {
        matches!(self, Self::Unknown)
    }

    /// What it is ordered by.
    pub(crate) fn order(&self, is_ascending: bool) -> Order {
        let (number, text) = match self {
            Self::Unknown => (0, String::new()),
            Self::Text(text) => (0, text.clone()),
            Self::Count(value, _) | Self::Bytes(value, _) => (*value, String::new()),
            Self::Duration(nanos) | Self::Time(nanos) => (*nanos, String::new()),
            Self::Trend(values) => {
                let sum = values.iter().fold(0, |sum: u64, value| sum.saturating_add(*value));
                (i64::try_from(sum).unwrap_or(i64::MAX), String::new())
            }
        };
        match is_ascending {
            true => Order::Up(number, text),
            false => Order::Down(Reverse(number), Reverse(text)),
        }
    }

    /// As people read it. Nothing in it steers a terminal.
    pub(crate) fn shown(&self, signs: Signs) -> String {
        let least = |is_least: bool| if is_least { signs.at_least() } else { "" };
        match self {
            Self::Unknown => "-".to_owned(),
            Self::Text(text) => printable(text).into_owned(),
            Self::Count(value, is_least) => {
                format!("{}{}", least(*is_least), signed(*value, count))
            }
            Self::Bytes(value, is_least) => {
                format!("{}{}", least(*is_least), signed(*value, bytes))
            }
            Self::Duration(nanos) => signed(*nanos, duration),
            Self::Time(nanos) => time_of_day(*nanos, 3),
            Self::Trend(values) => spark(values),
        }
    }
}

fn signed(value: i64, shown: impl Fn(u64) -> String) -> String {
    format!("{}{}", if value < 0 { "-" } else { "" }, shown(value.unsigned_abs()))
}

/// A time of day in UTC with so many digits of a second.
pub(crate) fn time_of_day(nanos: i64, digits: usize) -> String {
    let Date { hour, minute, second, .. } = Date::of(Timestamp::from_nanos(nanos));
    let fraction = format!("{:09}", nanos.rem_euclid(1_000_000_000));
    let point = if digits > 0 { "." } else { "" };
    let fraction = fraction.get(..digits).unwrap_or_default();
    format!("{hour:02}:{minute:02}:{second:02}{point}{fraction}")
}

/// Bars of eight heights, the highest of which is the greatest value.
pub(crate) fn spark(values: &[u64]) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let most = values.iter().copied().max().unwrap_or(0);
    let bar = |value: &u64| {
        if *value == 0 || most == 0 {
            return ' ';
        }
        let height = u128::from(*value) * 8 / (u128::from(most) + 1);
        BARS.get(usize::try_from(height).unwrap_or(7)).copied().unwrap_or('█')
    };
    values.iter().map(bar).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_as_high_as_their_values() {
        assert_eq!(spark(&[0, 1, 50, 100]), " ▁▄█");
        assert_eq!(spark(&[u64::MAX, 0]), "█ ");
        assert_eq!(spark(&[0, 0]), "  ");
    }

    #[test]
    fn text_steers_no_terminal_and_the_least_is_told() {
        assert_eq!(Cell::text(Some("a\x1b[2Jb")).shown(Signs::Ascii), r"a\x1b[2Jb");
        let least = Cell::bytes(Some(1_500), false);
        assert_eq!(least.shown(Signs::Unicode), "≥1.50 kB");
        assert_eq!(least.shown(Signs::Ascii), ">=1.50 kB");
        assert_eq!(Cell::count(None, true).shown(Signs::Ascii), "-");
        assert_eq!(Cell::count(Some(-3), true).shown(Signs::Ascii), "-3");
        assert_eq!(time_of_day(1_795_298_940_250_000_000, 3), "22:09:00.250");
    }
}
