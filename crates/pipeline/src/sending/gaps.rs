//! By how much the gaps between frames differ from the planned ones.

use hdrhistogram::Histogram;

/// The largest error that quantiles tell apart: an hour.
const LARGEST: u64 = 3_600_000_000_000;

/// Errors of gaps, in nanoseconds, to three digits.
#[derive(Debug)]
pub(super) struct GapErrors {
    errors: Histogram<u64>,
    most: u64,
    /// When the frame before was planned, and when it left.
    last: Option<(u64, u64)>,
}

/// Some quantiles of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Quantiles {
    /// Half of the errors are at most this.
    pub median_ns: u64,
    /// 99 of 100 are at most this.
    pub p99_ns: u64,
    /// The largest gap; nanoseconds.
    pub max_ns: u64,
}

impl GapErrors {
    /// None yet.
    ///
    /// # Errors
    ///
    /// None with three digits.
    pub(super) fn new() -> anyhow::Result<Self> {
        Ok(Self { errors: Histogram::new_with_bounds(1, LARGEST, 3)?, most: 0, last: None })
    }

    /// Notes a frame that was due `planned` nanoseconds after the start, and left at `now` of the clock.
    pub(super) fn note(&mut self, planned: u64, now: u64) {
        if let Some((before, left)) = self.last.replace((planned, now)) {
            let error = (now - left).abs_diff(planned - before);
            // Larger ones count as the largest.
            self.errors.saturating_record(error);
            self.most = self.most.max(error);
        }
    }

    /// The quantiles; `None` where there was no gap.
    #[must_use]
    pub(super) fn quantiles(&self) -> Option<Quantiles> {
        (!self.errors.is_empty()).then(|| Quantiles {
            median_ns: self.errors.value_at_quantile(0.5),
            p99_ns: self.errors.value_at_quantile(0.99),
            max_ns: self.most,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_of_gaps_and_not_of_times() {
        let mut gaps = GapErrors::new().unwrap();
        assert_eq!(gaps.quantiles(), None);
        // All are 500 late, and the last one 40 more.
        for frame in 0..100 {
            gaps.note(frame * 1000, 7500 + frame * 1000);
        }
        gaps.note(100_000, 107_540);
        let quantiles = gaps.quantiles().unwrap();
        assert_eq!(quantiles, Quantiles { median_ns: 0, p99_ns: 0, max_ns: 40 });
    }

    #[test]
    fn quantiles_are_right_whatever_the_size() {
        let mut gaps = GapErrors::new().unwrap();
        let mut left = 0;
        for frame in 0..1000 {
            // Errors of 1 ms to 1 s.
            left += 1000 + frame * 1_000_000;
            gaps.note(frame * 1000, left);
        }
        let quantiles = gaps.quantiles().unwrap();
        let is_near = |value: u64, wanted: u64| value.abs_diff(wanted) * 500 < wanted;
        assert!(is_near(quantiles.median_ns, 500_000_000), "{quantiles:?}");
        assert!(is_near(quantiles.p99_ns, 990_000_000), "{quantiles:?}");
        assert_eq!(quantiles.max_ns, 999_000_000);
    }
}
