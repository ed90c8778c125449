//! A share of a processor for a capture: a slower host without another one (PAPERS C3), by a control group of the kernel.

use std::path::Path;

use super::group::{CPU, Group, Version};

/// In each period a group runs for its share of that: microseconds of the shortest period, and of the longest one that
/// the kernel takes.
const PERIOD: (f64, f64) = (10_000.0, 1_000_000.0);

/// What the kernel gives a group at least in a period, in microseconds.
const TURN: f64 = 1000.0;

/// The smallest share of a processor that the kernel gives.
pub const LEAST: f64 = TURN / PERIOD.1;

/// The share of a processor that a percentage is; `None` for all of it.
///
/// # Errors
///
/// A sentence, where the kernel does not give such a share.
pub fn parse(text: &str) -> Result<Option<f64>, String> {
    let share =
        text.strip_suffix('%').unwrap_or(text).parse::<f64>().map(|percent| percent / 100.0);
    match share {
        Ok(1.0) => Ok(None),
        Ok(share) if (LEAST..1.0).contains(&share) => Ok(Some(share)),
        _ => Err(format!(
            "{text:?} is no share of a processor from {} to 100 percent",
            LEAST * 100.0
        )),
    }
}

/// The time that a group with a share gets, and in which one, both in microseconds: a small share needs a long period.
fn period(share: f64) -> (u32, u32) {
    let period = (TURN / share).clamp(PERIOD.0, PERIOD.1).round();
    ((period * share).round() as u32, period as u32)
}

/// A group that gets a share of one processor. What is changed beside it stands in `scratch`.
///
/// # Errors
///
/// Those of [`Group::make`], and where the kernel does not take the share.
pub(crate) fn make(name: &str, share: f64, scratch: &Path) -> anyhow::Result<Group> {
    let (time, period) = period(share);
    let group = Group::make(&CPU, name, scratch)?;
    match group.version() {
        Version::First => {
            group.set("cpu.cfs_period_us", &period.to_string())?;
            group.set("cpu.cfs_quota_us", &time.to_string())?;
        }
        Version::Second => group.set("cpu.max", &format!("{time} {period}"))?,
    }
    Ok(group)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_shares_have_long_periods() {
        assert_eq!(period(0.5), (5000, 10_000));
        assert_eq!(period(0.1), (1000, 10_000));
        assert_eq!(period(0.05), (1000, 20_000));
        assert_eq!(period(LEAST), (1000, 1_000_000));
    }

    #[test]
    fn shares_are_those_that_the_kernel_gives() {
        assert_eq!((parse("100"), parse("100%")), (Ok(None), Ok(None)));
        assert_eq!((parse("25%"), parse("0.1")), (Ok(Some(0.25)), Ok(Some(0.001))));
        for wrong in ["0", "0.05", "-5", "101", "NaN", "inf", "x", ""] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
