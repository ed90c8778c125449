//! Sums that know what they do not know.

/// A sum over rows, of which some may not tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sum {
    total: u128,
    told: u64,
    untold: u64,
}

impl Sum {
    /// Takes the value of one row.
    pub(crate) fn add(&mut self, value: Option<u64>) {
        match value {
            Some(value) => {
                self.total = self.total.saturating_add(value.into());
                self.told = self.told.saturating_add(1);
            }
            None => self.untold = self.untold.saturating_add(1),
        }
    }

    /// Takes what another sum has.
    pub(crate) fn merge(&mut self, other: Self) {
        self.total = self.total.saturating_add(other.total);
        self.told = self.told.saturating_add(other.told);
        self.untold = self.untold.saturating_add(other.untold);
    }

    /// The values that are set, added up; `None` where rows are there and none has one.
    #[must_use]
    pub(crate) const fn told(&self) -> Option<u128> {
        if self.told == 0 && self.untold > 0 { None } else { Some(self.total) }
    }

    /// The same as an order: what nobody tells is the least.
    #[must_use]
    pub(crate) const fn rank(&self) -> u128 {
        self.total
    }

    /// Rows that do not tell.
    #[must_use]
    pub(crate) const fn untold(&self) -> u64 {
        self.untold
    }

    /// All rows.
    #[must_use]
    pub(crate) const fn rows(&self) -> u64 {
        self.told.saturating_add(self.untold)
    }
}

/// Spans of time: the least, the mean and the most of those that are set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Times {
    number: u64,
    total: i128,
    ends: Option<(i64, i64)>,
}

impl Times {
    /// Takes a span in nanoseconds.
    pub(crate) fn add(&mut self, nanos: Option<i64>) {
        let Some(nanos) = nanos else { return };
        self.number = self.number.saturating_add(1);
        self.total = self.total.saturating_add(nanos.into());
        let (low, high) = self.ends.unwrap_or((nanos, nanos));
        self.ends = Some((low.min(nanos), high.max(nanos)));
    }

    /// Takes what another has.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.number = self.number.saturating_add(other.number);
        self.total = self.total.saturating_add(other.total);
        self.ends = match (self.ends, other.ends) {
            (Some((low, high)), Some((least, most))) => Some((low.min(least), high.max(most))),
            (one, other) => one.or(other),
        };
    }

    /// How many were set.
    #[must_use]
    pub(crate) const fn number(&self) -> u64 {
        self.number
    }

    /// Their mean, cut to a whole nanosecond.
    #[must_use]
    pub(crate) fn mean(&self) -> Option<i64> {
        let mean = self.total.checked_div(self.number.into())?;
        i64::try_from(mean).ok()
    }

    /// The shortest.
    #[must_use]
    pub(crate) fn least(&self) -> Option<i64> {
        self.ends.map(|(low, _)| low)
    }

    /// The longest.
    #[must_use]
    pub(crate) fn most(&self) -> Option<i64> {
        self.ends.map(|(_, high)| high)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_set_is_not_zero() {
        let mut sum = Sum::default();
        assert_eq!(sum.told(), Some(0), "a sum of nothing");
        sum.add(None);
        assert_eq!((sum.told(), sum.untold()), (None, 1));
        sum.add(Some(0));
        assert_eq!((sum.told(), sum.untold(), sum.rows()), (Some(0), 1, 2));
        let mut all = Sum::default();
        all.add(Some(u64::MAX));
        all.merge(sum);
        all.add(Some(u64::MAX));
        assert_eq!((all.told(), all.untold()), (Some(u128::from(u64::MAX) * 2), 1));
    }

    #[test]
    fn times_have_a_mean_of_those_that_are_set() {
        let mut times = Times::default();
        assert_eq!((times.mean(), times.least(), times.most()), (None, None, None));
        [Some(1), None, Some(4), Some(-2)].into_iter().for_each(|nanos| times.add(nanos));
        let mut all = Times::default();
        all.merge(&times);
        assert_eq!((all.mean(), all.least(), all.most()), (Some(1), Some(-2), Some(4)));
        assert_eq!(all.number(), 3);
    }
}
