//! One stream of stamped frames.

use hdrhistogram::Histogram;
use netsniff_packet::Timestamp;
use netsniff_traffic::ledger::Ledger;
use netsniff_traffic::stamp::Stamp;
use serde::Serialize;

const NANOS_PER_MILLI: i128 = 1_000_000;

/// The longest delay that is believed, in nanoseconds: beyond that the frames were recorded before, or the clocks of
/// sender and receiver have nothing to do with each other.
const LONGEST_DELAY: i128 = 3_600_000_000_000;

/// The largest value that quantiles tell apart, in nanoseconds.
const LARGEST: u64 = LONGEST_DELAY as u64;

/// What arrived of one stream.
#[derive(Debug)]
pub struct Stream {
    ledger: Ledger,
    /// Bytes on the wire, without frame check sequences.
    bytes: u64,
    first: Timestamp,
    last: Timestamp,
    before: Option<Before>,
    /// Nanoseconds between the frames of the rate that gaps are judged by.
    usual_gap: Option<f64>,
    gaps: Histogram<u64>,
    largest_gap_error: u64,
    delays: Histogram<u64>,
    delay: Delays,
}

/// The frame that came before.
#[derive(Clone, Copy, Debug)]
struct Before {
    sequence: u64,
    sent: u64,
    arrived: Timestamp,
}

/// What the histogram of delays does not tell.
#[derive(Clone, Copy, Debug, Default)]
struct Delays {
    least: u64,
    most: u64,
    /// Frames that came before they were sent, by the clocks.
    negative: u64,
    /// Frames whose delay cannot be true.
    unknown: u64,
}

/// Some quantiles, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Spread {
    /// The least of the delays; nanoseconds.
    pub min_ns: u64,
    /// Half are at most this.
    pub median_ns: u64,
    /// 99 of 100 are at most this.
    pub p99_ns: u64,
    /// The largest of the delays; nanoseconds.
    pub max_ns: u64,
}

/// What came of a stream.
#[derive(Clone, Debug, Serialize)]
pub struct StreamOutcome {
    /// The stamps' run and stream.
    pub run: u32,
    /// Number of the stream.
    pub stream: u16,
    /// Frames that arrived, doubles included.
    pub received: u64,
    /// Their bytes, without frame check sequences.
    pub bytes: u64,
    /// From the first to the last that arrived.
    pub seconds: f64,
    /// Frames a second over that time.
    pub frames_per_second: Option<f64>,
    /// Bits a second over that time.
    pub bits_per_second: Option<f64>,
    /// Frames that were sent, as far as is known: what the user said, or one more than the highest number.
    pub expected: u64,
    /// Frames that did not arrive; `None` where that is not known.
    pub missing: Option<u64>,
    /// How many ranges of numbers they are.
    pub holes: Option<u64>,
    /// The first of these, from begin to end (inclusive).
    pub missing_ranges: Vec<(u64, u64)>,
    /// Frames that had arrived before.
    pub duplicates: u64,
    /// Frames that came after one with a higher number.
    pub out_of_order: u64,
    /// Frames that came so late that nobody knows whether they had arrived before.
    pub too_late: u64,
    /// Different frames with numbers beyond what was expected.
    pub unexpected: u64,
    /// From the stamp of a frame to that of the capture; `None` where clocks cannot tell.
    pub one_way_delay: Option<Spread>,
    /// Frames that came before they were sent, so that the clocks differ.
    pub negative_delays: u64,
    /// Frames that came more than an hour after they were sent or before: those of a replayed capture, say.
    pub unknown_delays: u64,
    /// By how much gaps between frames with successive numbers differ from what they should be: by the given rate, or
    /// else by their stamps.
    pub gap_errors: Option<Spread>,
}

impl Stream {
    /// Nothing yet; gaps are judged by a rate, or else by stamps.
    ///
    /// # Errors
    ///
    /// None but for lack of memory.
    pub fn new(rate: Option<f64>) -> anyhow::Result<Self> {
        Ok(Self {
            ledger: Ledger::default(),
            bytes: 0,
            first: Timestamp::MAX,
            last: Timestamp::MIN,
            before: None,
            usual_gap: rate.map(|rate| 1e9 / rate),
            gaps: Histogram::new_with_bounds(1, LARGEST, 3)?,
            largest_gap_error: 0,
            delays: Histogram::new_with_bounds(1, LARGEST, 3)?,
            delay: Delays { least: u64::MAX, ..Delays::default() },
        })
    }

    /// Whether so many frames arrived, the last of them among these.
    #[must_use]
    pub fn has(&self, expected: u64) -> bool {
        self.ledger.received() >= expected && self.ledger.next() >= expected
    }

    /// Notes a frame that arrived.
    pub fn frame(&mut self, stamp: &Stamp, arrived: Timestamp, wire_len: u32) {
        self.ledger.note(stamp.sequence);
        self.bytes += u64::from(wire_len);
        self.first = self.first.min(arrived);
        self.last = self.last.max(arrived);
        self.note_delay(stamp, arrived);
        self.note_gap(stamp, arrived);
    }

    fn note_delay(&mut self, stamp: &Stamp, arrived: Timestamp) {
        let nanos = i128::from(arrived.nanos());
        // The run is the millisecond that it began in, of which 32 bits are known: the nearest one is meant.
        let about = (nanos - i128::from(stamp.sent)).div_euclid(NANOS_PER_MILLI);
        let off = stamp.run.wrapping_sub(about as u32).cast_signed();
        let begun = (about + i128::from(off)) * NANOS_PER_MILLI;
        let delay = nanos - begun - i128::from(stamp.sent);
        match delay {
            0..=LONGEST_DELAY => {
                let delay = delay as u64;
                self.delays.saturating_record(delay);
                self.delay.least = self.delay.least.min(delay);
                self.delay.most = self.delay.most.max(delay);
            }
            _ if delay < 0 && -delay <= LONGEST_DELAY => self.delay.negative += 1,
            _ => self.delay.unknown += 1,
        }
    }

    fn note_gap(&mut self, stamp: &Stamp, arrived: Timestamp) {
        let now = Before { sequence: stamp.sequence, sent: stamp.sent, arrived };
        let Some(before) = self.before.replace(now) else { return };
        if stamp.sequence != before.sequence + 1 {
            return;
        }
        let gap = arrived.nanos_since(before.arrived);
        let wanted = match self.usual_gap {
            Some(usual) => usual.round() as i64,
            None => stamp.sent.wrapping_sub(before.sent).cast_signed(),
        };
        let error = gap.abs_diff(wanted);
        // Larger ones count as the largest.
        self.gaps.saturating_record(error);
        self.largest_gap_error = self.largest_gap_error.max(error);
    }

    /// What came of it, if so many frames were sent; as many as the highest number tells where nobody says.
    #[must_use]
    pub fn close(self, (run, stream): (u32, u16), expected: Option<u64>) -> StreamOutcome {
        let expected = expected.unwrap_or_else(|| self.ledger.next());
        let span = self.last.nanos_since(self.first).max(0) as f64 / 1e9;
        let received = self.ledger.received();
        let gaps = received.saturating_sub(1) as f64;
        let rate = (span > 0.0).then(|| gaps / span);
        let mean_len = self.bytes as f64 / received.max(1) as f64;
        let one_way_delay = spread(&self.delays, self.delay.least, self.delay.most);
        let least_error = self.gaps.min();
        let gap_errors = spread(&self.gaps, least_error, self.largest_gap_error);
        let arrivals = self.ledger.close(expected);
        let of = |what: fn(&netsniff_traffic::ledger::Arrivals) -> u64| arrivals.as_ref().map(what);
        StreamOutcome {
            run,
            stream,
            received,
            bytes: self.bytes,
            seconds: span,
            frames_per_second: rate,
            bits_per_second: rate.map(|rate| rate * mean_len * 8.0),
            expected,
            missing: of(|arrivals| arrivals.lost),
            holes: of(|arrivals| arrivals.holes),
            duplicates: of(|arrivals| arrivals.duplicates).unwrap_or(0),
            out_of_order: of(|arrivals| arrivals.out_of_order).unwrap_or(0),
            too_late: of(|arrivals| arrivals.too_late).unwrap_or(0),
            unexpected: of(|arrivals| arrivals.unexpected).unwrap_or(0),
            missing_ranges: arrivals.map_or_else(Vec::new, |arrivals| {
                arrivals.missing.iter().map(|(begin, end)| (*begin, end - 1)).collect()
            }),
            one_way_delay,
            negative_delays: self.delay.negative,
            unknown_delays: self.delay.unknown,
            gap_errors,
        }
    }
}

fn spread(values: &Histogram<u64>, least: u64, most: u64) -> Option<Spread> {
    (!values.is_empty()).then(|| Spread {
        min_ns: least,
        median_ns: values.value_at_quantile(0.5).clamp(least, most),
        p99_ns: values.value_at_quantile(0.99).clamp(least, most),
        max_ns: most,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: i64 = 1_700_000_000_250_000_000;

    fn stamp(sequence: u64, sent: u64) -> Stamp {
        Stamp { run: (START / 1_000_000) as u32, stream: 1, sequence, sent }
    }

    fn at(nanos: u64) -> Timestamp {
        Timestamp::from_nanos(START).offset(nanos.cast_signed())
    }

    #[test]
    fn delays_and_gaps_are_those_of_the_stamps() {
        let mut stream = Stream::new(None).unwrap();
        // A frame each 1000 ns, 300 on the way; one takes 40 longer, one is lost, one comes twice.
        for sequence in (0..50).chain(51..100) {
            let late = if sequence == 70 { 40 } else { 0 };
            let sent = sequence * 1000;
            stream.frame(&stamp(sequence, sent), at(sent + 300 + late), 60);
        }
        stream.frame(&stamp(99, 99_000), at(99_400), 60);
        let outcome = stream.close((7, 1), None);
        assert_eq!((outcome.received, outcome.missing, outcome.duplicates), (100, Some(1), 1));
        assert_eq!((outcome.expected, outcome.missing_ranges), (100, vec![(50, 50)]));
        let delay = outcome.one_way_delay.unwrap();
        assert_eq!((delay.min_ns, delay.median_ns, delay.max_ns), (300, 300, 400));
        let gaps = outcome.gap_errors.unwrap();
        assert_eq!((gaps.min_ns, gaps.median_ns, gaps.p99_ns, gaps.max_ns), (0, 0, 40, 40));
        assert_eq!((outcome.negative_delays, outcome.unknown_delays), (0, 0));
        let rate = outcome.frames_per_second.unwrap();
        assert!((rate / (99.0 / 99.1e-6) - 1.0).abs() < 1e-9, "{rate}");
    }

    #[test]
    fn quantiles_are_right_whatever_the_size() {
        let mut stream = Stream::new(Some(1e6)).unwrap();
        let mut now = 0;
        for sequence in 0..1001 {
            // Gaps that are 0 to 10 ms too long, delays of 1 ms for each frame before.
            now += 1000 + sequence * 10_000;
            stream.frame(&stamp(sequence, now - sequence * 1000), at(now), 60);
        }
        let outcome = stream.close((7, 1), None);
        let is_near = |value: u64, wanted: u64| value.abs_diff(wanted) * 500 < wanted;
        let (gaps, delay) = (outcome.gap_errors.unwrap(), outcome.one_way_delay.unwrap());
        assert!(is_near(gaps.median_ns, 5_000_000) && is_near(gaps.p99_ns, 9_900_000), "{gaps:?}");
        assert!(is_near(delay.median_ns, 500_000) && is_near(delay.p99_ns, 990_000), "{delay:?}");
        assert_eq!((gaps.min_ns / 10, gaps.max_ns, delay.max_ns), (1000, 10_000_000, 1_000_000));
    }

    #[test]
    fn gaps_may_be_judged_by_a_rate() {
        let mut stream = Stream::new(Some(1e6)).unwrap();
        for sequence in 0..10 {
            // The stamps say nothing of the gaps.
            stream.frame(&stamp(sequence, 5), at(sequence * 1200), 60);
        }
        let gaps = stream.close((7, 1), None).gap_errors.unwrap();
        assert_eq!((gaps.min_ns, gaps.max_ns), (200, 200));
    }

    #[test]
    fn clocks_that_cannot_be_true_give_no_delay() {
        let close = |offset: i64| {
            let mut stream = Stream::new(None).unwrap();
            let arrived = Timestamp::from_nanos(START).offset(offset);
            stream.frame(&stamp(0, 0), arrived, 60);
            stream.close((7, 1), Some(5))
        };
        assert_eq!(close(2_000_000_000).one_way_delay.unwrap().median_ns, 2_000_000_000);
        let early = close(-5);
        assert_eq!((early.one_way_delay, early.negative_delays), (None, 1));
        for hours in [-3, 2, 48] {
            let outcome = close(hours * 3_600_000_000_000);
            assert_eq!((outcome.one_way_delay, outcome.unknown_delays), (None, 1), "{hours} h");
            assert_eq!((outcome.missing, outcome.frames_per_second), (Some(4), None));
        }
    }
}
