//! Round-trip times of one direction by interval.

use netsniff_packet::Timestamp;

use super::rtt::Jitter;

/// The samples of one interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IntervalRtt {
    /// Whose data was timed: 0 the originator's, 1 the responder's.
    pub direction: usize,
    /// When the interval began: a multiple of its length since the epoch.
    pub start: Timestamp,
    /// Number of samples in the interval.
    pub samples: u32,
    /// The shortest, in nanoseconds.
    pub min: u64,
    /// The mean of the samples; nanoseconds.
    pub average: u64,
    /// The longest sample; nanoseconds.
    pub max: u64,
    /// The jitter after the interval's last sample; `None` before the second of the connection.
    pub jitter: Option<u64>,
}

/// The interval in progress.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RttSeries {
    start: i64,
    samples: u32,
    /// Whether there was a sample before this interval.
    continued: bool,
    min: u64,
    max: u64,
    sum: u64,
    jitter: Jitter,
}

impl RttSeries {
    /// Adds a sample. Returns the interval before, if the sample lies in another one.
    pub(super) fn add(
        &mut self,
        direction: usize,
        time: Timestamp,
        rtt: u64,
        interval: i64,
    ) -> Option<IntervalRtt> {
        let interval = interval.max(1);
        let start = time.nanos().saturating_sub(time.nanos().rem_euclid(interval));
        let mut ended = None;
        // A clock that goes back brings no new interval: every interval has one row at most.
        if self.samples == 0 || start > self.start {
            ended = self.open(direction);
            self.continued |= self.samples > 0;
            (self.start, self.samples, self.min, self.max, self.sum) = (start, 0, rtt, rtt, 0);
        }
        self.samples = self.samples.saturating_add(1);
        self.min = self.min.min(rtt);
        self.max = self.max.max(rtt);
        self.sum = self.sum.saturating_add(rtt);
        self.jitter.add(rtt);
        ended
    }

    /// The interval in progress, if it has samples.
    pub(super) fn open(&self, direction: usize) -> Option<IntervalRtt> {
        Some(IntervalRtt {
            direction,
            start: Timestamp::from_nanos(self.start),
            samples: self.samples,
            min: self.min,
            average: self.sum.checked_div(self.samples.into())?,
            max: self.max,
            jitter: (self.continued || self.samples > 1).then(|| self.jitter.value()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_past_the_end_closes_the_interval() {
        let mut series = RttSeries::default();
        assert_eq!(series.open(0), None);
        assert_eq!(series.add(0, Timestamp::from_nanos(1_010), 5, 100), None);
        assert_eq!(series.add(0, Timestamp::from_nanos(1_099), 7, 100), None);
        let ended = series.add(0, Timestamp::from_nanos(1_350), 9, 100).unwrap();
        assert_eq!(ended.start, Timestamp::from_nanos(1_000));
        assert_eq!((ended.samples, ended.min, ended.average, ended.max), (2, 5, 6, 7));
        let open = series.open(0).unwrap();
        assert_eq!((open.start.nanos(), open.samples, open.jitter), (1_300, 1, Some(0)));
    }

    #[test]
    fn a_clock_that_goes_back_stays_in_its_interval() {
        let mut series = RttSeries::default();
        series.add(1, Timestamp::from_nanos(-150), 5, 100);
        assert_eq!(series.add(1, Timestamp::from_nanos(-1_000), 5, 100), None);
        let open = series.open(1).unwrap();
        assert_eq!((open.start.nanos(), open.samples), (-200, 2));
        assert_eq!(series.add(1, Timestamp::MIN, 5, i64::MAX), None);
    }
}
