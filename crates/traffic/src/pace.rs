//! When each frame of a steady stream is due, and what happens to a schedule that slipped.

/// What to do about frames that could not leave in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Late {
    /// Send them as fast as possible: the mean rate stays exact, bursts follow stalls.
    CatchUp,
    /// Move the rest of the schedule: no bursts, and each move is counted as a slip.
    Slip,
}

/// A schedule that is later than this is moved, where it is to be moved; in nanoseconds.
const SLIP: u64 = 500_000;

const NANOS_PER_SEC: u128 = 1_000_000_000;

/// The schedule of a stream at a fixed rate.
///
/// Frame n is due at exactly n / rate after the start, whatever came before, so that it never drifts.
#[derive(Clone, Debug)]
pub struct Pacer {
    /// Frames a second, in thousandths.
    millirate: u64,
    late: Late,
    /// When the frame number `counted_from` is due.
    base: u64,
    counted_from: u64,
    slips: u64,
    slipped: u64,
}

impl Pacer {
    /// A schedule that begins at `start`, in nanoseconds of any clock; `None` for a rate of 0.
    #[must_use]
    pub fn new(start: u64, frames_per_second: f64, late: Late) -> Option<Self> {
        let millirate = (frames_per_second * 1000.0).round() as u64;
        (millirate > 0).then_some(Self {
            millirate,
            late,
            base: start,
            counted_from: 0,
            slips: 0,
            slipped: 0,
        })
    }

    /// When the frame of this number, from 0, is due.
    #[must_use]
    pub fn due(&self, frame: u64) -> u64 {
        let frames = u128::from(frame.saturating_sub(self.counted_from));
        let nanos = frames * NANOS_PER_SEC * 1000 / u128::from(self.millirate);
        self.base.saturating_add(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// Tells that the frame of this number leaves at `now`, not before it was due.
    pub fn leaves(&mut self, frame: u64, now: u64) {
        let late = now.saturating_sub(self.due(frame));
        if late > SLIP {
            self.slips += 1;
            if self.late == Late::Slip {
                self.slipped += late;
                self.base = now;
                self.counted_from = frame;
            }
        }
    }

    /// How often a frame was more than half a millisecond late.
    #[must_use]
    pub const fn slips(&self) -> u64 {
        self.slips
    }

    /// By how many nanoseconds the schedule was moved in all.
    #[must_use]
    pub const fn slipped(&self) -> u64 {
        self.slipped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schedule_never_drifts() {
        // A third of a microsecond is no whole number of nanoseconds.
        let pacer = Pacer::new(1000, 3_000_000.0, Late::CatchUp).unwrap();
        assert_eq!([0, 1, 2, 3].map(|n| pacer.due(n)), [1000, 1333, 1666, 2000]);
        assert_eq!(pacer.due(3_000_000 * 86_400), 1000 + 86_400_000_000_000);
        assert_eq!(Pacer::new(0, 0.5, Late::Slip).unwrap().due(1), 2_000_000_000);
        assert!(Pacer::new(0, 0.0, Late::Slip).is_none());
    }

    #[test]
    fn a_slip_moves_the_schedule_or_makes_a_burst() {
        let late = 5_000_000;
        let mut slip = Pacer::new(0, 1000.0, Late::Slip).unwrap();
        slip.leaves(0, 400_000);
        assert_eq!((slip.slips(), slip.due(1)), (0, 1_000_000), "half a millisecond is no slip");
        slip.leaves(1, 1_000_000 + late);
        assert_eq!((slip.slips(), slip.slipped(), slip.due(2)), (1, late, 7_000_000));

        let mut burst = Pacer::new(0, 1000.0, Late::CatchUp).unwrap();
        burst.leaves(1, 1_000_000 + late);
        assert_eq!((burst.slips(), burst.slipped(), burst.due(2)), (1, 0, 2_000_000));
    }
}
