//! Whether a run was in a steady state: what a tool does at the beginning, before rings and caches are as they will be, is not
//! what it does in the long run (PAPERS D4).

/// Shorter parts of a run tell nothing, in seconds.
const LEAST: f64 = 2.0;

/// The time whose share of a processor is a peak, in seconds: less is a few ticks of the scheduler.
const MOMENT: f64 = 0.2;

/// The processor's time of a tool, looked at again and again.
#[derive(Clone, Debug, Default)]
pub(crate) struct CpuTime {
    /// Seconds from some time on, and nanoseconds of its threads on processors so far.
    samples: Vec<(f64, u64)>,
}

impl CpuTime {
    pub(crate) fn add(&mut self, seconds: f64, cpu_ns: u64) {
        self.samples.push((seconds, cpu_ns));
    }

    /// The greatest share of a processor in any fifth of a second (1 for all of one); `None` for shorter runs.
    pub(crate) fn peak(&self) -> Option<f64> {
        let share = |(at, (begin, before)): (usize, &(f64, u64))| {
            let after = self.samples[at..].iter().find(|(end, _)| end - begin >= MOMENT);
            after.map(|(end, cpu_ns)| cpu_ns.saturating_sub(*before) as f64 / 1e9 / (end - begin))
        };
        self.samples.iter().enumerate().filter_map(share).reduce(f64::max)
    }

    /// The difference of the shares of a processor that it took in the third and in the last quarter of the time; `None`
    /// where these are too short to tell.
    pub(crate) fn drift(&self) -> Option<f64> {
        let (first, last) = (self.samples.first()?.0, self.samples.last()?.0);
        let quarter = (last - first) / 4.0;
        if quarter < LEAST {
            return None;
        }
        let at = |quarters: f64| {
            let after = self.samples.partition_point(|(at, _)| *at < first + quarters * quarter);
            self.samples.get(after.min(self.samples.len() - 1))
        };
        let share = |from: f64, to: f64| {
            let ((begin, before), (end, after)) = (at(from)?, at(to)?);
            Some(after.saturating_sub(*before) as f64 / 1e9 / (end - begin))
        };
        Some((share(3.0, 4.0)? - share(2.0, 3.0)?).abs())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work(seconds: f64, cpu_ns: impl Fn(f64) -> f64) -> CpuTime {
        let mut work = CpuTime::default();
        for tenth in 0..=(seconds * 10.0) as u32 {
            let at = 7.0 + f64::from(tenth) / 10.0;
            work.add(at, cpu_ns(at - 7.0) as u64);
        }
        work
    }

    #[test]
    fn a_peak_is_of_a_moment() {
        // A tenth of a processor, and all of it for half a second.
        let busy = |at: f64| at * 0.1e9 + (at - 4.0).clamp(0.0, 0.5) * 0.9e9;
        let peak = work(10.0, busy).peak().unwrap();
        assert!((peak - 1.0).abs() < 1e-6, "{peak}");
        let even = work(10.0, |at| at * 0.3e9).peak().unwrap();
        assert!((even - 0.3).abs() < 1e-6, "{even}");
        assert_eq!((work(0.1, |at| at).peak(), CpuTime::default().peak()), (None, None));
    }

    #[test]
    fn what_is_done_in_the_long_run_is_steady() {
        let even = work(10.0, |at| at * 0.6e9).drift().unwrap();
        assert!(even < 1e-6, "{even}");
        // A beginning that is another matter is none of it.
        let late = work(10.0, |at| if at < 5.0 { 0.0 } else { (at - 5.0) * 0.6e9 });
        assert!(late.drift().unwrap() < 1e-6);
        let rising =
            work(
                12.0,
                |at| if at < 9.0 { at * 0.3e9 } else { (9.0 * 0.3 + (at - 9.0) * 0.9) * 1e9 },
            );
        assert!((rising.drift().unwrap() - 0.6).abs() < 0.01, "{rising:?}");
        assert_eq!((work(7.9, |at| at).drift(), CpuTime::default().drift()), (None, None));
    }
}
