//! Times of certificates, RFC 5280 section 4.1.2.5.

use netsniff_packet::calendar::days;

use crate::protocol::syntax::der::Element;
use crate::record::Seconds;

/// `UTCTime`.
const UTC_TIME: u8 = 0x17;
/// `GeneralizedTime`.
const GENERALIZED_TIME: u8 = 0x18;

/// A time; `None` where it is none.
pub(super) fn time(element: Element<'_>) -> Option<Seconds> {
    let text = element.content;
    let (year, rest) = match element.tag {
        UTC_TIME => {
            let (year, rest) = digits(text, 2)?;
            (if year < 50 { 2000 + year } else { 1900 + year }, rest)
        }
        GENERALIZED_TIME => digits(text, 4)?,
        _ => return None,
    };
    let (month, rest) = digits(rest, 2)?;
    let (day, rest) = digits(rest, 2)?;
    let (hour, rest) = digits(rest, 2)?;
    let (minute, rest) = digits(rest, 2)?;
    let (second, rest) = digits(rest, 2).unwrap_or((0, rest));
    if !(1..=12).contains(&month)
        || !(1..=31).contains(&day)
        || hour > 23
        || minute > 59
        || second > 60
    {
        return None;
    }
    let local = days(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second;
    Some(Seconds(local - offset(fraction(rest))?))
}

/// A number of `len` digits, and what follows.
fn digits(text: &[u8], len: usize) -> Option<(i64, &[u8])> {
    let (head, rest) = text.split_at_checked(len)?;
    let number = head.iter().try_fold(0, |number, digit| {
        digit.is_ascii_digit().then(|| number * 10 + i64::from(digit - b'0'))
    })?;
    Some((number, rest))
}

/// What follows the decimals of a second, which are left out.
fn fraction(text: &[u8]) -> &[u8] {
    let Some(decimals) = text.strip_prefix(b".") else { return text };
    let end = decimals.iter().position(|digit| !digit.is_ascii_digit());
    end.and_then(|end| decimals.get(end..)).unwrap_or_default()
}

/// Seconds of a time zone before UTC.
fn offset(zone: &[u8]) -> Option<i64> {
    let (sign, rest) = match zone {
        [] | [b'Z'] => return Some(0),
        [b'+', rest @ ..] => (1, rest),
        [b'-', rest @ ..] => (-1, rest),
        _ => return None,
    };
    let (hours, rest) = digits(rest, 2)?;
    let (minutes, _) = digits(rest, 2)?;
    Some(sign * (hours * 3600 + minutes * 60))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(tag: u8, text: &str) -> Option<i64> {
        let content = text.as_bytes();
        time(Element { tag, content, whole: content }).map(|time| time.0)
    }

    #[test]
    fn both_forms_are_read() {
        assert_eq!(parsed(UTC_TIME, "700101000000Z"), Some(0));
        assert_eq!(parsed(UTC_TIME, "491231235959Z"), Some(2_524_607_999));
        assert_eq!(parsed(UTC_TIME, "500101000000Z"), Some(-631_152_000));
        assert_eq!(parsed(GENERALIZED_TIME, "20000229120000Z"), Some(951_825_600));
        assert_eq!(parsed(GENERALIZED_TIME, "99991231235959Z"), Some(253_402_300_799));
    }

    #[test]
    fn zones_decimals_and_missing_seconds_are_read() {
        assert_eq!(parsed(UTC_TIME, "7001010000Z"), Some(0));
        assert_eq!(parsed(GENERALIZED_TIME, "19700101020000.25+0200"), Some(0));
        assert_eq!(parsed(GENERALIZED_TIME, "19691231233000-0030"), Some(0));
    }

    #[test]
    fn what_is_no_time_is_none() {
        for text in ["", "7001", "70010100000Z", "701301000000Z", "70a101000000Z", "700101000000X"]
        {
            assert_eq!(parsed(UTC_TIME, text), None, "{text}");
        }
        assert_eq!(parsed(2, "700101000000Z"), None);
    }
}
