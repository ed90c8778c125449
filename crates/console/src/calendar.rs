//! Dates and times of day in UTC.

use netsniff_packet::Timestamp;

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
        let seconds = time.nanos().div_euclid(1_000_000_000);
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

/// Year, month and day from days since 1970-01-01.
///
/// The year is taken to begin in March, so that the leap day is its last.
const fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let leap_days = day_of_era / 1460 + day_of_era / 146_096;
    let year_of_era = (day_of_era - leap_days + day_of_era / 36_524) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + (month <= 2) as i64;
    (year, month, day)
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
    fn every_day_follows_the_one_before() {
        let lengths = |year: i64| {
            let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            [31, 28 + i64::from(leap), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
        };
        let (mut year, mut month, mut day) = civil(-106_751);
        for days in -106_750..=106_751 {
            day += 1;
            if day > lengths(year)[month as usize - 1] {
                (month, day) = (month + 1, 1);
            }
            if month > 12 {
                (year, month) = (year + 1, 1);
            }
            assert_eq!(civil(days), (year, month, day), "day {days}");
        }
        assert_eq!((year, month, day), (2262, 4, 11));
    }
}
