//! Quantities with units and addresses, as they are given in arguments. The errors are sentences.

use std::time::Duration;

use netsniff_packet::Timestamp;

/// Bytes: `500M` and `500MiB` are binary, `500MB` is decimal.
pub fn size(text: &str) -> Result<usize, String> {
    let (value, unit) = number(text)?;
    let decimal = |power| 1000_f64.powi(power);
    let binary = |power| 1024_f64.powi(power);
    let factor = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "kb" => decimal(1),
        "mb" => decimal(2),
        "gb" => decimal(3),
        "tb" => decimal(4),
        "k" | "kib" => binary(1),
        "m" | "mib" => binary(2),
        "g" | "gib" => binary(3),
        "t" | "tib" => binary(4),
        _ => return Err(format!("unknown unit {unit:?}; there are K, M, G, T and kB, MB, GB, TB")),
    };
    // A float saturates where it exceeds an integer.
    Ok((value * factor) as usize)
}

/// The longest span of time: a hundred years.
const LONGEST: Duration = Duration::from_secs(100 * 366 * 86_400);

/// A span of time that is not 0: seconds, or with a unit.
pub fn interval(text: &str) -> Result<Duration, String> {
    let (value, unit) = number(text)?;
    let seconds = match unit {
        "" | "s" | "sec" => 1.0,
        "ms" | "msec" => 1e-3,
        "us" | "µs" | "usec" => 1e-6,
        "m" | "min" => 60.0,
        "h" | "hr" => 3600.0,
        "d" | "day" | "days" => 86_400.0,
        _ => return Err(format!("unknown unit {unit:?}; there are us, ms, s, min, h and d")),
    };
    let interval = Duration::try_from_secs_f64(value * seconds).map_err(|e| e.to_string())?;
    if interval.is_zero() {
        return Err("0 is no span of time".to_owned());
    }
    // Clocks end somewhere.
    if interval > LONGEST {
        return Err("a hundred years are the most".to_owned());
    }
    Ok(interval)
}

/// From 0 to 100.
pub fn percentage(text: &str) -> Result<f64, String> {
    match number(text)? {
        (value, "" | "%") if value <= 100.0 => Ok(value),
        _ => Err("expected a percentage from 0 to 100".to_owned()),
    }
}

/// A whole number from 1.
pub fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("1 is the least".to_owned()),
        Ok(number) => Ok(number),
        Err(_) => Err("expected a whole number".to_owned()),
    }
}

/// A number of threads, each of which has buffers of its own.
pub fn threads(text: &str) -> Result<usize, String> {
    match at_least_one(text)? {
        number @ ..=1024 => Ok(number),
        _ => Err("1024 is the most".to_owned()),
    }
}

/// A whole number from 1, or with k, M or G for thousands, millions and thousands of them.
pub fn count(text: &str) -> Result<u64, String> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    let value: u64 = digits.parse().map_err(|_| "expected a whole number".to_owned())?;
    let factor = match unit {
        "" => 1,
        "k" => 1000,
        "M" => 1_000_000,
        "G" => 1_000_000_000,
        _ => return Err(format!("unknown unit {unit:?}; there are k, M and G")),
    };
    let count = value.checked_mul(factor).ok_or("too many")?;
    if count > 0 { Ok(count) } else { Err("1 is the least".to_owned()) }
}

/// A rate: a number, or with k or M for thousands and millions.
pub fn rate(text: &str) -> Result<f64, String> {
    let (value, unit) = number(text)?;
    let factor = match unit {
        "" => 1.0,
        "k" => 1e3,
        "M" => 1e6,
        _ => return Err(format!("unknown unit {unit:?}; there are k and M")),
    };
    let rate = value * factor;
    if rate.is_finite() && rate >= 0.001 { Ok(rate) } else { Err("0.001 is the least".to_owned()) }
}

/// A time in seconds since 1970, to the nanosecond.
pub fn time(text: &str) -> Result<Timestamp, String> {
    let parsed = || {
        let (seconds, fraction) = text.split_once('.').unwrap_or((text, ""));
        let is_fraction =
            fraction.len() <= 9 && fraction.bytes().all(|digit| digit.is_ascii_digit());
        let nanos: u32 = format!("{fraction:0<9}").parse().ok().filter(|_| is_fraction)?;
        let seconds = seconds.parse::<u32>().ok()?;
        Some(Timestamp::from_secs_nanos(seconds.into(), nanos.into()))
    };
    parsed().ok_or_else(|| "expected seconds since 1970, as 1767225600.5".to_owned())
}

/// Bits a second of a link, as 100m, 1g or 2.5g.
pub fn link(text: &str) -> Result<f64, String> {
    let (value, unit) = number(text)?;
    let factor = match unit.to_ascii_lowercase().as_str() {
        "m" | "mbit" => 1e6,
        "g" | "gbit" => 1e9,
        _ => return Err("expected the speed of a link, as 100m, 1g or 2.5g".to_owned()),
    };
    let bits = value * factor;
    if bits > 0.0 && bits <= 1e13 { Ok(bits) } else { Err("no link is so fast".to_owned()) }
}

/// Reads an Ethernet address, such as `02:00:00:00:00:01`.
pub fn mac(text: &str) -> Result<[u8; 6], String> {
    let parts = text.split([':', '-']).map(|part| u8::from_str_radix(part, 16).ok());
    let bytes: Option<Vec<u8>> = parts.collect();
    let bytes = bytes.and_then(|bytes| bytes.try_into().ok());
    bytes.ok_or_else(|| "expected an Ethernet address, as 02:00:00:00:00:01".to_owned())
}

/// A number and what follows it.
fn number(text: &str) -> Result<(f64, &str), String> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    let value = digits.parse().map_err(|_| "expected a number, maybe with a unit".to_owned())?;
    Ok((value, unit.trim_start()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_binary_with_one_letter_and_decimal_with_two() {
        assert_eq!(size("500M"), Ok(500 << 20));
        assert_eq!(size("1.5GB"), Ok(1_500_000_000));
        assert_eq!(size("2GiB"), Ok(2 << 30));
        assert_eq!(size(&format!("{}T", "9".repeat(30))), Ok(usize::MAX));
        assert!(size("M").is_err() && size("5 apples").is_err());
    }

    #[test]
    fn intervals_are_seconds_unless_told() {
        assert_eq!(interval("0.5"), Ok(Duration::from_millis(500)));
        assert_eq!(interval("100ms"), Ok(Duration::from_millis(100)));
        assert_eq!(interval("2 min"), Ok(Duration::from_secs(120)));
        assert_eq!(interval("1d"), Ok(Duration::from_secs(86_400)));
        assert!(interval("0").is_err() && interval("-1").is_err() && interval("1 year").is_err());
        assert!(interval("36500d").is_ok() && interval("36700d").is_err());
        assert!(interval("1e400").is_err() && interval(&"9".repeat(400)).is_err());
    }

    #[test]
    fn times_are_exact() {
        let nanos = |text| time(text).map(Timestamp::nanos);
        assert_eq!(nanos("1767225600"), Ok(1_767_225_600_000_000_000));
        assert_eq!(nanos("1.000000007"), Ok(1_000_000_007));
        assert_eq!(nanos("1.5"), Ok(1_500_000_000));
        for wrong in ["", "-1", "1.0000000001", "1.x", "5000000000", "now"] {
            assert!(time(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn threads_are_bounded() {
        assert_eq!((threads("1"), threads("1024")), (Ok(1), Ok(1024)));
        for wrong in ["0", "1025", "100000", "x", "-1"] {
            assert!(threads(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn counts_are_whole_numbers() {
        assert_eq!((count("7"), count("10M"), count("2k")), (Ok(7), Ok(10_000_000), Ok(2000)));
        for wrong in ["0", "1.5k", "-1", "", "5x", "99999999999999999999", "99999999999G"] {
            assert!(count(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn rates_and_links_have_decimal_units() {
        assert_eq!((rate("0.5"), rate("300k"), rate("1.5M")), (Ok(0.5), Ok(3e5), Ok(1.5e6)));
        assert!(rate("0").is_err() && rate("1 apple").is_err() && rate(&"9".repeat(400)).is_err());
        assert_eq!((link("1g"), link("100M"), link("2.5G")), (Ok(1e9), Ok(1e8), Ok(2.5e9)));
        assert!(link("0g").is_err() && link("10").is_err() && link("99999g").is_err());
    }

    #[test]
    fn ethernet_addresses_have_six_bytes() {
        assert_eq!(mac("02:00:00:00:0a:FF"), Ok([2, 0, 0, 0, 10, 255]));
        for wrong in ["", "02:00:00:00:00", "02:00:00:00:00:00:00", "02:00:00:00:00:0g"] {
            assert!(mac(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn percentages_end_at_100() {
        assert_eq!((percentage("99.9"), percentage("100%")), (Ok(99.9), Ok(100.0)));
        assert!(percentage("101").is_err() && percentage("-3").is_err());
    }
}
