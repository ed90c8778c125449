//! Engine time, and which stamps it believes.
//!
//! One packet with a wrong stamp of the far future would end every flow, and all that come after it would
//! be late. So time goes on over a gap only if the next packet agrees, or one that was ahead before.

use netsniff_packet::Timestamp;

/// Further ahead than this a stamp needs another that agrees; nanoseconds. It is the shortest of the
/// time-outs, so that less ends nothing.
const AHEAD: i64 = 5_000_000_000;

/// The latest stamp that is believed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    now: Timestamp,
    /// The stamp of the packet after the next one, where it is known.
    next: Option<Timestamp>,
    /// The last stamp that was ahead alone, and what time it was then.
    alone: Option<(Timestamp, Timestamp)>,
}

impl Default for Clock {
    fn default() -> Self {
        Self { now: Timestamp::MIN, next: None, alone: None }
    }
}

impl Clock {
    #[inline]
    pub(super) const fn now(&self) -> Timestamp {
        self.now
    }

    /// Whether a stamp lies so far ahead of all before it that it needs another one that agrees.
    #[inline]
    pub(super) const fn is_ahead(&self, time: Timestamp) -> bool {
        time.nanos_since(self.now) > AHEAD && self.now.nanos() != Timestamp::MIN.nanos()
    }

    /// Whether a stamp that was ahead alone may still turn out to be right.
    pub(super) const fn has_doubt(&self) -> bool {
        self.alone.is_some()
    }

    pub(super) const fn foresee(&mut self, next: Option<Timestamp>) {
        self.next = next;
    }

    /// Time goes on to `now`; it never goes back.
    #[inline]
    pub(super) fn advance(&mut self, now: Timestamp) -> Timestamp {
        self.now = self.now.max(now);
        self.now
    }

    /// By how many nanoseconds a stamp is ahead, if it is so alone: the next packet goes on with
    /// those before.
    #[inline]
    pub(super) fn alone_ahead(&mut self, time: Timestamp) -> Option<i64> {
        self.next?;
        self.judge(time)
    }

    #[cold]
    fn judge(&mut self, time: Timestamp) -> Option<i64> {
        let next = self.next.take()?;
        let ahead = time.nanos_since(self.now);
        let behind = self.now.nanos_since(next);
        // One that is far back itself says nothing of this one: another recording begins there.
        if !self.is_ahead(time)
            || behind > AHEAD
            || behind.saturating_neg() >= time.nanos_since(next)
        {
            return None;
        }
        // Where packets of two clocks alternate, each of the later one is ahead.
        let agrees = self.alone.is_some_and(|(stamp, then)| {
            let since = time.nanos_since(stamp);
            (0..=AHEAD.saturating_add(self.now.nanos_since(then))).contains(&since)
        });
        if agrees {
            self.alone = None;
            return None;
        }
        self.alone = Some((time, self.now));
        Some(ahead)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The engine times at packets that come at some seconds, and which are ahead alone.
    fn times(seconds: &[i64]) -> (Vec<i64>, Vec<i64>) {
        let at = |second: i64| Timestamp::from_secs_nanos(1_000 + second, 0);
        let (mut clock, mut alone) = (Clock::default(), Vec::new());
        let now = seconds.iter().enumerate().map(|(number, &second)| {
            if clock.is_ahead(at(second)) {
                clock.foresee(seconds.get(number + 1).map(|&next| at(next)));
            }
            match clock.alone_ahead(at(second)) {
                Some(_) => alone.push(second),
                None => drop(clock.advance(at(second))),
            }
            clock.now().nanos_since(at(0)) / 1_000_000_000
        });
        (now.collect(), alone)
    }

    #[test]
    fn one_stamp_of_the_future_moves_nothing() {
        assert_eq!(times(&[0, 1, 900_000, 2, 3]), (vec![0, 1, 1, 2, 3], vec![900_000]));
        assert_eq!(times(&[0, 6, 1, 2]), (vec![0, 0, 1, 2], vec![6]));
        // Two that have nothing to do with each other.
        assert_eq!(times(&[0, 500, 1, 900, 2]), (vec![0, 0, 1, 1, 2], vec![500, 900]));
    }

    #[test]
    fn a_pause_moves_it_at_once() {
        assert_eq!(times(&[100, 115, 0]), (vec![100, 115, 115], vec![]), "another recording");
        assert_eq!(times(&[0, 1, 400, 401]), (vec![0, 1, 400, 401], vec![]));
        assert_eq!(times(&[0, 1, 400, 390]), (vec![0, 1, 400, 400], vec![]));
        assert_eq!(
            times(&[0, 1, 400]),
            (vec![0, 1, 400], vec![]),
            "nobody contradicts the last one"
        );
        assert_eq!(times(&[0, 5, 0]), (vec![0, 5, 5], vec![]), "so little ends nothing");
    }

    #[test]
    fn a_clock_that_is_ahead_for_good_is_believed() {
        assert_eq!(times(&[0, 20, 1, 21, 2, 22]), (vec![0, 0, 1, 21, 21, 22], vec![20]));
    }

    #[test]
    fn the_first_stamp_is_believed() {
        assert_eq!(times(&[900, 1, 2]), (vec![900, 900, 900], vec![]));
    }
}
