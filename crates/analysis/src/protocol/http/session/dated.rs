//! The time at which a server says that it made its response (RFC 9110, 6.6.1), for whoever looks at clocks.

use netsniff_packet::Timestamp;
use netsniff_packet::calendar::days;

use crate::protocol::mime::Field;

/// Fields of those who hand on what they kept: its time is not that of the response.
const OF_CACHES: [&str; 4] = ["age", "via", "x-cache", "x-cache-hits"];

const MONTHS: [&[u8]; 12] = [
    b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec",
];

/// What the header of a response says of when it was made.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Dated {
    date: Option<Timestamp>,
    may_be_kept: bool,
}

impl Dated {
    /// Takes a field of the header.
    pub(super) fn field(&mut self, field: &Field<'_>) {
        if field.is("date") {
            self.date = date(field.value);
        } else {
            self.may_be_kept |= OF_CACHES.into_iter().any(|name| field.is(name));
        }
    }

    /// When the response was made; `None` where the header does not say, or may have been kept.
    pub(super) fn time(self) -> Option<Timestamp> {
        self.date.filter(|_| !self.may_be_kept)
    }
}

/// A date as servers write it since 1996 (`IMF-fixdate`): `Sun, 06 Nov 1994 08:49:37 GMT`.
fn date(text: &[u8]) -> Option<Timestamp> {
    let text: &[u8; 29] = text.trim_ascii_end().try_into().ok()?;
    let number = |from: usize, to: usize| {
        let digits = text.get(from..to)?;
        let is_number = digits.iter().all(u8::is_ascii_digit);
        is_number.then(|| digits.iter().fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0')))
    };
    let separators =
        [(3, b','), (4, b' '), (7, b' '), (11, b' '), (16, b' '), (19, b':'), (22, b':')];
    let is_date =
        separators.into_iter().all(|(at, byte)| text[at] == byte) && text.ends_with(b" GMT");
    let month = MONTHS.iter().position(|month| text[8..11] == **month)?;
    let (day, year) = (number(5, 7)?, number(12, 16)?);
    let (hour, minute, second) = (number(17, 19)?, number(20, 22)?, number(23, 25)?);
    let is_time = (1..=31).contains(&day) && hour < 24 && minute < 60 && second <= 60;
    let seconds = days(year, month as i64 + 1, day) * 86_400 + hour * 3600 + minute * 60 + second;
    (is_date && is_time).then(|| Timestamp::from_secs_nanos(seconds, 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(text: &str) -> Option<i64> {
        date(text.as_bytes()).map(|time| time.nanos() / 1_000_000_000)
    }

    #[test]
    fn dates_are_read_to_the_second_and_nothing_else_is_one() {
        // The example of RFC 9110, 5.6.7.
        assert_eq!(seconds("Sun, 06 Nov 1994 08:49:37 GMT"), Some(784_111_777));
        assert_eq!(seconds("Thu, 29 Feb 2024 23:59:59 GMT  "), Some(1_709_251_199));
        for wrong in [
            "",
            "Sun, 06 Nov 1994 08:49:37",
            "Sun, 06 Nov 1994 08:49:37 CET",
            "Sun, 06 Now 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 28:49:37 GMT",
            "Sun, 00 Nov 1994 08:49:37 GMT",
            "Sun, +6 Nov 1994 08:49:37 GMT",
            "Sunday, 06-Nov-94 08:49:37 GMT",
        ] {
            assert_eq!(seconds(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn what_a_cache_may_have_kept_has_no_time() {
        let of = |headers: &[&str]| {
            let mut dated = Dated::default();
            headers.iter().for_each(|it| dated.field(&Field::parse(it.as_bytes()).unwrap()));
            dated.time()
        };
        let date = "Date: Sun, 06 Nov 1994 08:49:37 GMT";
        assert!(of(&["Server: x", date]).is_some());
        for kept in ["age: 0", "Via: 1.1 proxy", "X-Cache: HIT"] {
            assert_eq!(of(&[date, kept]), None, "{kept}");
        }
    }
}
