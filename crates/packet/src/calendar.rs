//! Days of the proleptic Gregorian calendar.
//!
//! The year is taken to begin in March, so that the leap day is its last.

/// Year, month from 1 and day from 1 of a number of days since 1970-01-01. The year 0 is 1 BC.
#[must_use]
pub const fn civil(days: i64) -> (i64, i64, i64) {
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

/// Days since 1970-01-01 of a date; the inverse of [`civil`]. A day that the month does not have is one of the next month.
#[must_use]
pub const fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let month_from_march = (month + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_day_follows_the_one_before() {
        let lengths = |year: i64| {
            let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            [31, 28 + i64::from(leap), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
        };
        let (mut year, mut month, mut day) = civil(-106_751);
        for number in -106_750..=106_751 {
            day += 1;
            if day > lengths(year)[month as usize - 1] {
                (month, day) = (month + 1, 1);
            }
            if month > 12 {
                (year, month) = (year + 1, 1);
            }
            assert_eq!(civil(number), (year, month, day), "day {number}");
            assert_eq!(days(year, month, day), number);
        }
        assert_eq!((year, month, day), (2262, 4, 11));
        assert_eq!([civil(0), civil(11_016)], [(1970, 1, 1), (2000, 2, 29)]);
    }
}
