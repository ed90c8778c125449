//! When a ring began to lose packets.

use netsniff_packet::{Loss, Timestamp};

/// The first packet of a ring, and the first hole in what came out of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Onset {
    /// The stamp of the first packet that came out of it.
    pub first_packet: Option<Timestamp>,
    /// The first hole: the last packet before it, where there was one, and the first behind it.
    pub hole: Option<(Option<Timestamp>, Timestamp)>,
}

impl Onset {
    /// Notes what was lost, and the first of the packets that came behind it.
    pub(super) fn note(&mut self, loss: Option<&Loss>, first: Option<Timestamp>) {
        if let Some(loss) = loss {
            self.hole.get_or_insert((loss.before, loss.after));
        }
        self.first_packet = self.first_packet.or(first);
    }

    /// That of several rings: what was lost first of all lies behind the earliest begin of a hole, and before the earliest end.
    pub(super) fn add(&mut self, other: &Self) {
        self.first_packet = self.first_packet.into_iter().chain(other.first_packet).min();
        self.hole = match (self.hole, other.hole) {
            (Some((own_since, own_until)), Some((since, until))) => {
                // Without a packet before, nobody knows since when; that is earliest of all.
                Some((own_since.min(since), own_until.min(until)))
            }
            (own, other) => own.or(other),
        };
    }

    /// Nanoseconds after the first packet, between which the first packet was lost; `None` where no loss was told.
    #[must_use]
    pub fn after_first(&self) -> Option<[u64; 2]> {
        let (since, until) = self.hole?;
        let begin = self.first_packet.unwrap_or(until);
        let after = |at: Timestamp| u64::try_from(at.nanos_since(begin)).unwrap_or(0);
        Some([since.map_or(0, after), after(until)])
    }
}

#[cfg(test)]
mod tests {
    use netsniff_packet::Stage;

    use super::*;

    const fn at(nanos: i64) -> Timestamp {
        Timestamp::from_nanos(nanos)
    }

    const fn lost(before: Option<Timestamp>, after: i64) -> Loss {
        Loss { before, after: at(after), packets: 1, stage: Stage::System }
    }

    fn of(first: i64, losses: &[Loss]) -> Onset {
        let mut onset = Onset::default();
        onset.note(None, None);
        onset.note(None, Some(at(first)));
        losses.iter().for_each(|loss| onset.note(Some(loss), Some(loss.after)));
        onset
    }

    #[test]
    fn the_first_hole_counts_from_the_first_packet() {
        assert_eq!(of(100, &[]).after_first(), None);
        let onset = of(100, &[lost(Some(at(350)), 420), lost(Some(at(500)), 700)]);
        assert_eq!(onset.after_first(), Some([250, 320]));
        // It may reach back to the begin, and behind it nothing may have come.
        assert_eq!(of(100, &[lost(None, 420)]).after_first(), Some([0, 320]));
        let mut nothing = Onset::default();
        nothing.note(Some(&lost(None, 420)), None);
        assert_eq!(nothing.after_first(), Some([0, 0]));
    }

    #[test]
    fn several_rings_lose_as_early_as_the_first_of_them() {
        let rings = [
            of(120, &[lost(Some(at(400)), 900)]),
            of(100, &[lost(Some(at(600)), 700)]),
            of(130, &[]),
        ];
        for (one, other) in [(0, 1), (1, 0)] {
            let mut all = rings[one];
            all.add(&rings[other]);
            all.add(&rings[2]);
            assert_eq!(all.after_first(), Some([300, 600]));
        }
        let mut unknown = of(100, &[lost(None, 800)]);
        unknown.add(&rings[0]);
        assert_eq!(unknown.after_first(), Some([0, 700]));
        let mut late = rings[2];
        late.add(&rings[0]);
        assert_eq!(late.after_first(), Some([280, 780]));
    }
}
