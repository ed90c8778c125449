//! Numbers as people read them: three digits and a unit.

use std::fmt::Write as _;

/// A count: exact below ten thousand, else `1.73 M`.
#[must_use]
pub fn count(value: u64) -> String {
    if value < 10_000 { value.to_string() } else { scaled(value as f64, "") }
}

/// Bytes in decimal units: `1.09 GB`.
#[must_use]
pub fn bytes(value: u64) -> String {
    if value < 1000 { format!("{value} B") } else { scaled(value as f64, "B") }
}

/// Things a second: `3.20 M packets/s`, or with an SI unit `22.4 Mbit/s`.
#[must_use]
pub fn rate(value: f64, unit: &str) -> String {
    let unit = if unit == "bit/s" { unit.to_owned() } else { format!(" {unit}") };
    let text = scaled(value, &unit);
    text.replace("  ", " ")
}

/// Every digit, in groups of three: `1,730,112`.
#[must_use]
pub fn exact(value: i128) -> String {
    let digits = value.unsigned_abs().to_string();
    let mut text = String::from(if value < 0 { "-" } else { "" });
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number of things, as `1 file` or `59.5 k files`.
#[must_use]
pub fn things(number: u64, one: &str) -> String {
    format!("{} {}", count(number), plural(number, one))
}

/// A number of files, as `1 file` or `12 files`.
#[must_use]
pub fn files(number: u64) -> String {
    format!("{} {}", exact(number.into()), plural(number, "file"))
}

/// A number of rows, as `1 row` or `4,820 rows`.
#[must_use]
pub fn rows(number: u64) -> String {
    format!("{} {}", exact(number.into()), plural(number, "row"))
}

fn plural(number: u64, one: &str) -> String {
    format!("{one}{}", if number == 1 { "" } else { "s" })
}

/// The share of `part` in `whole`: `12.3 %`; empty where `whole` is 0.
#[must_use]
pub fn percent(part: u64, whole: u64) -> String {
    if whole == 0 {
        return String::new();
    }
    let percent = part as f64 / whole as f64 * 100.0;
    match percent {
        _ if part == 0 => "0 %".to_owned(),
        _ if part == whole => "100 %".to_owned(),
        percent if percent < 0.1 => "<0.1 %".to_owned(),
        percent if part < whole && percent > 99.9 => ">99.9 %".to_owned(),
        percent => format!("{percent:.1} %"),
    }
}

/// A span of time in nanoseconds: `85.0 µs`, `1.23 s`, `6 min 5 s`, `3 d 4 h`.
#[must_use]
pub fn duration(nanos: u64) -> String {
    const MINUTE: u64 = 60;
    const HOUR: u64 = 60 * MINUTE;
    const DAY: u64 = 24 * HOUR;
    let small =
        |unit: u64, name: &str| format!("{} {name}", three_digits(nanos as f64 / unit as f64));
    // A unit ends where rounding to three digits would print 1000 of it.
    match nanos {
        0..1000 => format!("{nanos} ns"),
        1000..999_500 => small(1000, "µs"),
        999_500..999_500_000 => small(1_000_000, "ms"),
        999_500_000..59_950_000_000 => small(1_000_000_000, "s"),
        _ => {
            let seconds = nanos / 1_000_000_000 + u64::from(nanos % 1_000_000_000 >= 500_000_000);
            let pair = |large: u64, small: u64, names: [&str; 2]| {
                let mut text = format!("{} {}", seconds / large, names[0]);
                if seconds % large / small > 0 {
                    let _ = write!(text, " {} {}", seconds % large / small, names[1]);
                }
                text
            };
            match seconds {
                0..HOUR => pair(MINUTE, 1, ["min", "s"]),
                HOUR..DAY => pair(HOUR, MINUTE, ["h", "min"]),
                _ => pair(DAY, HOUR, ["d", "h"]),
            }
        }
    }
}

/// A number with a unit prefix, from a thousand on.
fn scaled(mut value: f64, unit: &str) -> String {
    let mut prefix = 0;
    // 999.5 would print as 1000.
    while value >= 999.5 && prefix < PREFIXES.len() {
        value /= 1000.0;
        prefix += 1;
    }
    let prefix = prefix.checked_sub(1).map_or("", |index| PREFIXES[index]);
    format!("{} {prefix}{unit}", three_digits(value))
}

const PREFIXES: [&str; 6] = ["k", "M", "G", "T", "P", "E"];

/// Three significant digits, as `1.73`, `17.3`, `173`.
fn three_digits(value: f64) -> String {
    match value {
        value if value < 9.995 => format!("{value:.2}"),
        value if value < 99.95 => format!("{value:.1}"),
        value => format!("{value:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_and_bytes() {
        assert_eq!(count(0), "0");
        assert_eq!(count(9999), "9999");
        assert_eq!(count(10_000), "10.0 k");
        assert_eq!(count(999_499), "999 k");
        assert_eq!(count(999_500), "1.00 M");
        assert_eq!(count(1_730_112), "1.73 M");
        assert_eq!(count(u64::MAX), "18.4 E");
        assert_eq!(bytes(999), "999 B");
        assert_eq!(bytes(1000), "1.00 kB");
        assert_eq!(bytes(1_090_000_000), "1.09 GB");
        assert_eq!(rate(12.0, "bit/s"), "12.0 bit/s");
        assert_eq!(rate(22_400_000.0, "bit/s"), "22.4 Mbit/s");
        assert_eq!(rate(999.9, "bit/s"), "1.00 kbit/s");
        assert_eq!(rate(4_740.0, "packets/s"), "4.74 k packets/s");
        assert_eq!(rate(0.5, "packets/s"), "0.50 packets/s");
    }

    #[test]
    fn exact_numbers_are_grouped() {
        assert_eq!(exact(0), "0");
        assert_eq!(exact(999), "999");
        assert_eq!(exact(1000), "1,000");
        assert_eq!(exact(-1_730_112), "-1,730,112");
    }

    #[test]
    fn shares_round_to_all_or_nothing_only_where_it_is_true() {
        assert_eq!(percent(0, 10), "0 %");
        assert_eq!(percent(10, 10), "100 %");
        assert_eq!(percent(1, 1_000_000), "<0.1 %");
        assert_eq!(percent(999_999, 1_000_000), ">99.9 %");
        assert_eq!(percent(123, 1000), "12.3 %");
        assert_eq!(percent(1, 0), "");
    }

    #[test]
    fn durations() {
        for (nanos, expected) in [
            (0, "0 ns"),
            (999, "999 ns"),
            (85_000, "85.0 µs"),
            (999_499, "999 µs"),
            (999_500, "1.00 ms"),
            (163_820_000, "164 ms"),
            (1_234_000_000, "1.23 s"),
            (59_949_999_999, "59.9 s"),
            (59_950_000_000, "1 min"),
            (365_366_227_000, "6 min 5 s"),
            (3_600_000_000_000, "1 h"),
            (8_000_000_000_000, "2 h 13 min"),
            (273_600_000_000_000, "3 d 4 h"),
        ] {
            assert_eq!(duration(nanos), expected);
        }
    }
}
