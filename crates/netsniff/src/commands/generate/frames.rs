//! The stamped frames of a run, as they are sent.

use netsniff_packet::Timestamp;
use netsniff_pipeline::sending::drive::{Frames, SendStep};
use netsniff_traffic::plan::Outgoing;
use netsniff_traffic::probe::{Made, Probes};
use netsniff_traffic::stamp::Stamp;

const NANOS_PER_MILLI: i64 = 1_000_000;

/// Stamped frames, numbered from 0.
#[derive(Debug)]
pub(super) struct Stamped {
    probes: Probes,
    /// What each buffer holds.
    made: Vec<Option<Made>>,
    stream: u16,
    /// Frames that were made, and those that are to be.
    number: u64,
    most: u64,
    /// The millisecond that the run began in, of the time since 1970, and nanoseconds from there to its start.
    run: u32,
    begun: u64,
}

impl Stamped {
    pub(super) const fn new(probes: Probes, stream: u16, most: u64) -> Self {
        Self { probes, made: Vec::new(), stream, number: 0, most, run: 0, begun: 0 }
    }

    /// What all stamps carry.
    #[must_use]
    pub(super) const fn run(&self) -> u32 {
        self.run
    }
}

impl Frames for Stamped {
    fn begin(&mut self, start: Timestamp) {
        // A receiver knows by these when each frame was sent.
        self.run = start.nanos().div_euclid(NANOS_PER_MILLI) as u32;
        self.begun = start.nanos().rem_euclid(NANOS_PER_MILLI).unsigned_abs();
    }

    fn advance(&mut self) -> anyhow::Result<SendStep> {
        if self.number >= self.most {
            return Ok(SendStep::End);
        }
        let len = self.probes.len_of(self.number);
        Ok(SendStep::Frame(Outgoing { recorded: Timestamp::EPOCH, len }))
    }

    fn write(&mut self, buffer: usize, room: &mut [u8], sent: u64) -> usize {
        if self.made.len() <= buffer {
            self.made.resize(buffer + 1, None);
        }
        let stamp = Stamp {
            run: self.run,
            stream: self.stream,
            sequence: self.number,
            sent: self.begun + sent,
        };
        self.number += 1;
        // The interface was asked whether it takes the longest of them.
        self.probes.write(&mut self.made[buffer], room, &stamp).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use netsniff_traffic::probe::{STAMP_AT, Settings, Shape};

    use super::*;

    #[test]
    fn stamps_tell_when_a_frame_was_sent_by_the_time_of_day() {
        let probes = Probes::new(&Settings::new(Shape::Udp4), &[64, 100]).unwrap();
        let mut frames = Stamped::new(probes, 5, 2);
        frames.begin(Timestamp::from_nanos(1_700_000_000_123_456_789));
        let mut lens = Vec::new();
        while let SendStep::Frame(frame) = frames.advance().unwrap() {
            let mut room = [0; 100];
            assert_eq!(frames.write(3, &mut room, 1000), frame.len);
            lens.push(frame.len);
            let stamp = Stamp::parse(&room[STAMP_AT..]).unwrap();
            assert_eq!((stamp.stream, stamp.sequence), (5, lens.len() as u64 - 1));
            assert_eq!(stamp.run, 1_700_000_000_123_u64 as u32);
            assert_eq!(stamp.sent, 456_789 + 1000);
        }
        assert_eq!(lens, [60, 96]);
    }
}
