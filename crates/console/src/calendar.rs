//! Dates and times of day in UTC.

use netsniff_packet::Timestamp;
use netsniff_packet::calendar::{civil, days};

/// A second of the proleptic Gregorian calendar, in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Date {
    /// Year; 0 is 1 BC.
    pub year: i64,
    /// Month from 1.
    pub month: i64,
    /// Day of the month from 1.
    pub day: i64,
    /// Hour from 0.
    pub hour: i64,
    /// Minute from 0.
    pub minute: i64,
    /// Second from 0.
    pub second: i64,
}

impl Date {
    /// The second in which `time` lies.
    #[must_use]
    pub const fn of(time: Timestamp) -> Self {
        Self::of_second(time.nanos().div_euclid(1_000_000_000))
    }

    /// The second that many seconds since 1970.
    #[must_use]
    pub const fn of_second(seconds: i64) -> Self {
        let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
        let (year, month, day) = civil(days);
        Self {
            year,
            month,
            day,
            hour: second / 3600,
            minute: second / 60 % 60,
            second: second % 60,
        }
    }
}

/// A point in time, as `1317402178.5` (seconds since 1970, as logs have it) or `2011-09-30T17:02:58.5Z`, where an offset
/// as `+02:00` may stand for the `Z`. Without either it is in UTC; without a time of day it is midnight.
///
/// # Errors
///
/// What is wrong with the text.
pub fn moment(text: &str) -> Result<Timestamp, String> {
    let what = "is no point in time; write seconds since 1970, or 2026-11-28T17:30:00Z";
    since_1970(text).or_else(|| written_out(text)).ok_or_else(|| format!("{text:?} {what}"))
}

/// Seconds with a fraction.
fn since_1970(text: &str) -> Option<Timestamp> {
    let (seconds, fraction) = text.split_once('.').unwrap_or((text, ""));
    let seconds: i64 = number(seconds)?;
    let nanos = seconds.checked_mul(1_000_000_000)?.checked_add(nanos(fraction)?)?;
    Some(Timestamp::from_nanos(nanos))
}

/// A date, and a time of day with an offset.
fn written_out(text: &str) -> Option<Timestamp> {
    let (date, time) = text.split_once(['T', 't', ' ']).unwrap_or((text, "00:00:00"));
    let mut parts = date.split('-');
    let [year, month, day] = [parts.next()?, parts.next()?, parts.next()?];
    let (year, month, day) = (number(year)?, number(month)?, number(day)?);
    let is_plausible = (1..=9999).contains(&year) && month <= 12 && day <= 31;
    if !is_plausible || parts.next().is_some() {
        return None;
    }
    let days = days(year, month, day);
    // A day that the month does not have would be one of the next month.
    if civil(days) != (year, month, day) {
        return None;
    }
    let (time, offset) = match time.strip_suffix(['Z', 'z']) {
        Some(time) => (time, 0),
        None => match time.find(['+', '-']) {
            Some(at) => (time.get(..at)?, offset(time.get(at..)?)?),
            None => (time, 0),
        },
    };
    let (time, fraction) = time.split_once('.').unwrap_or((time, ""));
    let mut parts = time.split(':');
    let [hour, minute] = [number(parts.next()?)?, number(parts.next()?)?];
    let second = parts.next().map_or(Some(0), number)?;
    if parts.next().is_some() || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let seconds = days * 86_400 + hour * 3600 + minute * 60 + second - offset;
    Some(Timestamp::from_nanos(seconds.checked_mul(1_000_000_000)?.checked_add(nanos(fraction)?)?))
}

/// Seconds east of UTC, of `+02:00`.
fn offset(text: &str) -> Option<i64> {
    let (sign, rest) = text.split_at_checked(1)?;
    let (hours, minutes) = rest.split_once(':')?;
    let (hours, minutes) = (number(hours)?, number(minutes)?);
    let seconds = || hours * 3600 + minutes * 60;
    (hours < 24 && minutes < 60).then(|| if sign == "-" { -seconds() } else { seconds() })
}

/// Digits and nothing else.
fn number(text: &str) -> Option<i64> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}

/// Nanoseconds of the digits behind the point.
fn nanos(fraction: &str) -> Option<i64> {
    match fraction.len() {
        0 => Some(0),
        1..=9 => Some(number(fraction)? * 10_i64.pow(9 - fraction.len() as u32)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_moments() {
        let at = |seconds| {
            let date = Date::of(Timestamp::from_secs_nanos(seconds, 0));
            (date.year, date.month, date.day, date.hour, date.minute, date.second)
        };
        assert_eq!(at(0), (1970, 1, 1, 0, 0, 0));
        assert_eq!(at(-1), (1969, 12, 31, 23, 59, 59));
        assert_eq!(at(1_317_402_178), (2011, 9, 30, 17, 2, 58));
        assert_eq!(at(951_782_400), (2000, 2, 29, 0, 0, 0));
        assert_eq!(at(1_735_689_599), (2024, 12, 31, 23, 59, 59));
    }

    #[test]
    fn points_in_time_are_read_as_logs_and_people_write_them() {
        let nanos = |text: &str| moment(text).map(Timestamp::nanos);
        for text in [
            "1317402178.5",
            "2011-09-30T17:02:58.5Z",
            "2011-09-30 17:02:58.500",
            "2011-09-30T19:02:58.5+02:00",
            "2011-09-30t15:32:58.5-01:30",
        ] {
            assert_eq!(nanos(text), Ok(1_317_402_178_500_000_000), "{text}");
        }
        assert_eq!(nanos("2024-02-29"), Ok(1_709_164_800_000_000_000));
        assert_eq!(nanos("2024-02-29T00:01Z"), Ok(1_709_164_860_000_000_000));
        assert_eq!(nanos("0.000000001"), Ok(1));
        for text in [
            "",
            "now",
            "-5",
            "1.0000000001",
            "2023-02-29",
            "2023-13-01",
            "2023-01-01T24:00:00",
            "2023-01-01T1:2:3:4",
            "2023-01-01T00:00+2",
            "99999999999999",
            "12:00",
            "1e9",
            "2023-01-01T+",
        ] {
            let error = moment(text).unwrap_err();
            assert!(error.contains("is no point in time; write"), "{error}");
        }
    }

    #[test]
    fn days_are_the_inverse_of_dates() {
        for day in (-106_751..=106_751).step_by(13) {
            let (year, month, of_month) = civil(day);
            assert_eq!(days(year, month, of_month), day);
        }
    }
}
