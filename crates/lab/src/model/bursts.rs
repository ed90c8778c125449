//! The longest burst without loss, tried on a machine: bursts that know nothing of each other.

use super::Model;
use super::predict::{Prediction, Question};
use super::simulate::{Queues, RETIRE};

/// How long a pause is beside what it takes to send a burst, and to read what the ring holds of it: as long as blocks stay
/// open, and as much as that may take longer than it is thought to.
const PAUSE: f64 = 4.0 * RETIRE;
const LONGER: f64 = 1.5;

impl Model {
    /// A load of so many bursts of so many frames, at the sender's full speed and so far apart that the ring is empty when
    /// the next one begins, for the frames, the buffer and the application of a prediction.
    #[must_use]
    pub fn spaced(
        &self,
        (question, prediction): (&Question, &Prediction),
        frames: f64,
        bursts: u32,
    ) -> Question {
        let frames = frames.round().clamp(1.0, f64::from(u32::MAX));
        let held =
            Queues::new(question.ring, self.backlog, self.clock).frames(question.size).min(frames);
        let each = 1e9 / prediction.costs.knee(super::TOGETHER);
        let period = frames * self.gap(question.size) + LONGER * held * each + PAUSE;
        Question {
            rate: frames * 1e9 / period,
            burst: frames as u32,
            keeps_gaps: false,
            // The last one is over long before, and the next one is not begun.
            seconds: (f64::from(bursts) - 0.5) * period / 1e9
                + frames * self.gap(question.size) / 2e9,
            ..question.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::model::fit::Fit;
    use crate::model::stalls::Stalls;
    use crate::model::wakes::Wakes;
    use crate::testbed::Layout;
    use crate::work::Cost;

    use super::*;

    #[test]
    fn bursts_are_so_far_apart_that_each_meets_an_empty_ring() {
        let fit = Fit {
            slower: 1.0,
            cold: 0.0,
            kept: [12_000.0, 0.0],
            frame: [1000.0, 0.0],
            wake: 0.0,
            share: 1.0,
            spread: 1e-6,
        };
        let model = Model {
            tool: "record".to_owned(),
            layout: Layout::default(),
            traffic: None,
            fit,
            variants: Vec::new(),
            gaps: vec![(512, 1500.0)],
            stalls: Stalls { watched: 1, lengths: Vec::new() },
            wakes: Wakes::default(),
            backlog: 1000,
            clock: crate::model::Clock::default(),
            services: Vec::new(),
            observations: Vec::new(),
            left_out: 0,
            seconds: 0.0,
        };
        let question = Question {
            size: 512,
            rate: 50e3,
            burst: 32,
            keeps_gaps: true,
            ring: 8 << 20,
            cost: Cost::default(),
            settings: Vec::new(),
            seconds: 3.0,
        };
        let prediction = model.predict(&question, None).unwrap();
        let survived = prediction.survived.unwrap();
        let lost = |frames: f64, bursts| {
            let spaced = model.spaced((&question, &prediction), frames, bursts);
            assert!((spaced.burst, spaced.ring) == (frames.round() as u32, 8 << 20));
            let sent = (spaced.rate * spaced.seconds / frames).ceil() as u32;
            assert_eq!(sent, bursts, "{spaced:?}");
            model.predict(&spaced, None).unwrap().total.value
        };
        // Ten that fit one by one fit one after the other.
        for frames in [100.0, survived * 0.9] {
            assert_eq!((lost(frames, 1), lost(frames, 10)), (0.0, 0.0), "{frames}");
        }
        assert!(lost(survived * 1.2, 3) > 0.0);
    }
}
