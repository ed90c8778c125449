//! What happens to a plan where frames could not leave in time.

/// What to do about frames that are late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Late {
    /// Send them as fast as possible: the mean rate stays exact, bursts follow stalls.
    CatchUp,
    /// Move the rest of the plan: no bursts, and each move is counted as a slip.
    Slip,
}

/// Frames that are later than this had to wait for a stall, in nanoseconds.
pub const STALL: u64 = 500_000;

/// A plan on a clock: when it began, and how well it is kept.
#[derive(Clone, Debug)]
pub struct Pacer {
    late: Late,
    /// The time of the clock at which the plan began, with all that it was moved by.
    start: u64,
    last: Option<DepartedFrame>,
    is_behind: bool,
    stalls: u64,
    frames_behind: u64,
    slipped: u64,
    latest: u64,
}

/// A frame that has left.
#[derive(Clone, Copy, Debug)]
struct DepartedFrame {
    /// When it was due, after the start of the plan.
    planned: u64,
    /// When it left, by the clock.
    at: u64,
    /// How much later that was than it could have been.
    late: u64,
}

impl Pacer {
    /// A plan that begins at `start`, in nanoseconds of any clock.
    #[must_use]
    pub const fn new(start: u64, late: Late) -> Self {
        Self {
            late,
            start,
            last: None,
            is_behind: false,
            stalls: 0,
            frames_behind: 0,
            slipped: 0,
            latest: 0,
        }
    }

    /// The same plan, of which nothing was kept yet, begun at another time.
    #[must_use]
    pub const fn begun_at(&self, start: u64) -> Self {
        Self::new(start, self.late)
    }

    /// When a frame is due that is due so many nanoseconds after the start of its plan.
    #[must_use]
    pub const fn due(&self, planned: u64) -> u64 {
        self.start.saturating_add(planned)
    }

    /// Tells that a frame leaves at `now`, not before it was due.
    ///
    /// Frames that are due together leave one after another, and none of them is late for that: how long a burst takes is
    /// no stall, but a wait in the middle of it is one.
    pub const fn leaves(&mut self, planned: u64, now: u64) {
        let late = match self.last {
            Some(last) if last.planned == planned => {
                let since = now.saturating_sub(last.at);
                last.late + if since > STALL { since } else { 0 }
            }
            _ => now.saturating_sub(self.due(planned)),
        };
        self.last = Some(DepartedFrame { planned, at: now, late });
        if late > self.latest {
            self.latest = late;
        }
        if late <= STALL {
            self.is_behind = false;
            return;
        }
        self.frames_behind += 1;
        self.stalls += !self.is_behind as u64;
        match self.late {
            Late::CatchUp => self.is_behind = true,
            Late::Slip => {
                self.slipped += late;
                self.start += late;
                self.last = Some(DepartedFrame { planned, at: now, late: 0 });
            }
        }
    }

    /// How often frames became more than half a millisecond late. Where the plan is moved, each is a slip.
    #[must_use]
    pub const fn stalls(&self) -> u64 {
        self.stalls
    }

    /// Frames that left more than half a millisecond late.
    #[must_use]
    pub const fn frames_behind(&self) -> u64 {
        self.frames_behind
    }

    /// By how many nanoseconds the plan was moved in all.
    #[must_use]
    pub const fn slipped(&self) -> u64 {
        self.slipped
    }

    /// By how many nanoseconds the latest frame was late.
    #[must_use]
    pub const fn latest(&self) -> u64 {
        self.latest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_slip_moves_the_plan() {
        let mut pacer = Pacer::new(7, Late::Slip);
        pacer.leaves(0, 7 + 400_000);
        assert_eq!((pacer.stalls(), pacer.due(MS)), (0, 7 + MS), "half a millisecond is no slip");
        pacer.leaves(MS, 7 + 6 * MS);
        assert_eq!((pacer.stalls(), pacer.slipped(), pacer.due(2 * MS)), (1, 5 * MS, 7 + 7 * MS));
        pacer.leaves(2 * MS, 7 + 8 * MS);
        assert_eq!((pacer.stalls(), pacer.frames_behind(), pacer.slipped()), (2, 2, 6 * MS));
        assert_eq!(pacer.latest(), 5 * MS);
    }

    #[test]
    fn how_long_a_burst_takes_is_no_stall() {
        for late in [Late::Slip, Late::CatchUp] {
            let mut pacer = Pacer::new(0, late);
            // 1500 frames that are due together, a microsecond each.
            (0..1500).for_each(|frame| pacer.leaves(0, frame * 1000));
            assert_eq!((pacer.stalls(), pacer.slipped(), pacer.latest()), (0, 0, 0));
            // One that waits for 2 ms in the next burst, and the rest of that.
            pacer.leaves(20 * MS, 20 * MS);
            (0..10).for_each(|frame| pacer.leaves(20 * MS, 22 * MS + frame * 1000));
            assert_eq!(pacer.stalls(), 1);
            let (behind, slipped) = if late == Late::Slip { (1, 2 * MS) } else { (10, 0) };
            assert_eq!((pacer.frames_behind(), pacer.slipped()), (behind, slipped));
            // A burst that begins late is.
            pacer.leaves(30 * MS, pacer.due(30 * MS));
            let due = pacer.due(40 * MS);
            (0..10).for_each(|frame| pacer.leaves(40 * MS, due + 3 * MS + frame * 1000));
            assert_eq!((pacer.stalls(), pacer.latest()), (2, 3 * MS));
        }
    }

    #[test]
    fn catching_up_leaves_the_plan_and_counts_a_stall_once() {
        let mut pacer = Pacer::new(0, Late::CatchUp);
        // The first of ten frames at a millisecond each is held up for five.
        for frame in 0..10 {
            pacer.leaves(frame * MS, (frame * MS).max(5 * MS));
        }
        assert_eq!((pacer.stalls(), pacer.frames_behind(), pacer.slipped()), (1, 5, 0));
        assert_eq!(pacer.due(2 * MS), 2 * MS);
        pacer.leaves(20 * MS, 21 * MS);
        assert_eq!((pacer.stalls(), pacer.latest()), (2, 5 * MS));
    }
}
