//! Numbers as they are written, in billionths: no column tells more digits behind the point.

/// A number in billionths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Number(pub(super) i128);

/// Billionths of one.
pub(super) const ONE: i128 = 1_000_000_000;

impl Number {
    /// Reads `12`, `-1.5` and `2e6`. `None` for what is no number, has more than nine digits behind the point, or is
    /// larger than any column can be.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (digits, exponent) = match text.split_once(['e', 'E']) {
            Some((digits, exponent)) => (digits, exponent.parse::<i32>().ok()?),
            None => (text, 0),
        };
        let (is_negative, digits) = match digits.strip_prefix('-') {
            Some(digits) => (true, digits),
            None => (false, digits),
        };
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let fraction = fraction.trim_end_matches('0');
        let all = [whole, fraction].concat();
        if whole.is_empty() || all.len() > 28 || !all.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let shift =
            9_i32.checked_add(exponent)?.checked_sub(i32::try_from(fraction.len()).ok()?)?;
        let digits: i128 = all.parse().ok()?;
        let scaled = if digits == 0 {
            0
        } else if shift >= 0 {
            digits.checked_mul(10_i128.checked_pow(shift.unsigned_abs())?)?
        } else {
            let divisor = 10_i128.checked_pow(shift.unsigned_abs())?;
            (digits % divisor == 0).then_some(digits / divisor)?
        };
        Some(Self(if is_negative { -scaled } else { scaled }))
    }

    pub(super) const fn of_nanos(nanos: i64) -> Self {
        Self(nanos as i128)
    }

    pub(super) const fn of_count(count: u64) -> Self {
        Self(count as i128 * ONE)
    }

    pub(super) const fn of_int(int: i64) -> Self {
        Self(int as i128 * ONE)
    }

    /// The nearest one; `None` of infinity and what is no number.
    pub(super) fn of_double(double: f64) -> Option<Self> {
        let scaled = double * ONE as f64;
        // Beyond 2^126 a cast would saturate.
        (scaled.abs() < 8.5e37).then_some(Self(scaled.round() as i128))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_exact_or_none() {
        let parsed = |text| Number::parse(text).map(|number| number.0);
        for (text, number) in [
            ("0", 0),
            ("12", 12 * ONE),
            ("-1.5", -3 * ONE / 2),
            ("1e6", 1_000_000 * ONE),
            ("2.5E3", 2500 * ONE),
            ("15e-1", 3 * ONE / 2),
            ("0.000000001", 1),
            ("1.50000000000000", 3 * ONE / 2),
            ("18446744073709551615", i128::from(u64::MAX) * ONE),
            ("1795325705.022279882", 1_795_325_705_022_279_882),
        ] {
            assert_eq!(parsed(text), Some(number), "{text}");
        }
        for text in [
            "",
            "-",
            ".",
            ".5",
            "1.2.3",
            "0.0000000001",
            "1e",
            "1e99",
            "1e99999999999",
            "x",
            "--1",
            "1e-99",
        ] {
            assert_eq!(parsed(text), None, "{text}");
        }
        assert_eq!(Number::of_double(f64::NAN), None);
        assert_eq!(Number::of_double(1.5), Some(Number(3 * ONE / 2)));
    }
}
