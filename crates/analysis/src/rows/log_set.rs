//! Which logs are wanted.

use super::LOGS;
use super::tally::MOST_LOGS;

/// Some of the logs in [`LOGS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogSet(u64);

/// A bit for each log.
const _: () = assert!(MOST_LOGS <= u64::BITS as usize, "a log without a bit");

impl LogSet {
    /// All logs.
    pub const ALL: Self = Self(u64::MAX);

    /// No log.
    pub const NONE: Self = Self(0);

    /// The log of a name alone; `None` where there is no such log.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let at = LOGS.iter().position(|log| log.path == name)?;
        Some(Self(1_u64.checked_shl(u32::try_from(at).ok()?)?))
    }

    /// These and others.
    #[must_use]
    pub const fn and(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    /// Whether the log that counts so in [`LOGS`] is among them.
    #[inline]
    #[must_use]
    pub const fn contains(self, log: usize) -> bool {
        // What is no log is nobody's choice.
        log >= MOST_LOGS || self.0 & (1 << log) != 0
    }

    /// The places of those that there are, in their order.
    pub fn places(self) -> impl Iterator<Item = usize> {
        (0..LOGS.len()).filter(move |&log| self.contains(log))
    }
}

impl Default for LogSet {
    fn default() -> Self {
        Self::ALL
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_are_found_by_their_names() {
        assert!(LogSet::ALL.places().eq(0..LOGS.len()));
        assert_eq!(LogSet::named("con"), None);
        for (at, log) in LOGS.iter().enumerate() {
            let one = LogSet::named(log.path).unwrap();
            assert!(one.places().eq([at]), "{}", log.path);
            assert!(!LogSet::NONE.contains(at));
        }
        let two = LogSet::named("dns").unwrap().and(LogSet::named("conn").unwrap());
        let names: Vec<_> = two.places().map(|at| LOGS[at].path).collect();
        assert_eq!(names, ["conn", "dns"]);
    }
}
