//! Numbers as people read them.

/// Every digit, in groups of three: `1,730,112`.
#[must_use]
pub fn exact(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number of whole things, rounded: `612,345`.
#[must_use]
pub fn whole(value: f64) -> String {
    let rounded = value.round();
    let sign = if rounded < 0.0 { "-" } else { "" };
    // A float is cut to what fits.
    sign.to_owned() + &exact(rounded.abs() as u64)
}

/// A share in percent, with three digits behind the point and no unit: `12.345`.
#[must_use]
pub fn percent(share: f64) -> String {
    format!("{:.3}", share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_apart() {
        let told = [0, 999, 1000, 1_730_112].map(exact);
        assert_eq!(told, ["0", "999", "1,000", "1,730,112"]);
        assert_eq!([999.6, -1234.4, -0.4].map(whole), ["1,000", "-1,234", "0"]);
        assert_eq!(percent(0.123_456), "12.346");
    }
}
