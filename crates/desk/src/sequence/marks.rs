//! Marks of a picture, in bounded memory: where there are too many, neighbours become one.

/// Marks of one class that are kept.
pub(super) const MOST: usize = 5_000;
/// Neighbours become one if less than this part of the time so far lies between them.
const NEAR: i64 = 400;

/// What a mark stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Data that is seen for the first time.
    Data,
    /// Data sent again, by the timer or because it was asked for: `retx_rto` and `retx_fast` of `tcp`.
    Again,
    /// Data sent again that the receiver had: `retx_spurious`.
    Needless,
    /// Data that came late: `out_of_order`.
    Late,
    /// The same packet twice: `duplicates`.
    Doubled,
    /// One byte or none that asks for an answer: `keep_alives` and `window_probes`.
    Probe,
    /// Data that no host accepts, and the analysis neither.
    Refused,
    /// Ranges that the other side reports to have by SACK.
    Sack,
}

impl Class {
    /// All, in the order in which they are drawn: what is rare lies on top.
    pub const ALL: [Self; 8] = [
        Self::Data,
        Self::Sack,
        Self::Refused,
        Self::Doubled,
        Self::Probe,
        Self::Late,
        Self::Needless,
        Self::Again,
    ];
}

/// A range of sequence numbers at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stroke {
    /// Nanoseconds from the first packet to its first segment.
    pub at: i64,
    /// The same to its last segment.
    pub until: i64,
    /// Its first number.
    pub low: i64,
    /// One past its last number.
    pub high: i64,
    /// How many segments it stands for.
    pub segments: u64,
}

/// Strokes of one class.
#[derive(Clone, Debug)]
pub struct Strokes {
    /// The strokes that are kept, in order of their packets.
    pub list: Vec<Stroke>,
    /// Segments in all.
    pub segments: u64,
    /// Segments for which there is no stroke.
    pub left_out: u64,
    most: usize,
    /// One of so many segments has a stroke from now on.
    stride: u64,
}

impl Default for Strokes {
    fn default() -> Self {
        Self::bounded(MOST)
    }
}

impl Strokes {
    pub(super) const fn bounded(most: usize) -> Self {
        Self { list: Vec::new(), segments: 0, left_out: 0, most, stride: 1 }
    }

    /// The most segments that a stroke stands for.
    #[must_use]
    pub fn most_segments(&self) -> u64 {
        self.list.iter().map(|stroke| stroke.segments).max().unwrap_or(0)
    }

    /// Adds the stroke of one segment.
    pub(super) fn push(&mut self, stroke: Stroke) {
        let number = self.segments;
        self.segments += 1;
        if !number.is_multiple_of(self.stride) {
            self.left_out += 1;
            return;
        }
        self.list.push(stroke);
        if self.list.len() > self.most {
            self.join_neighbours();
            if self.list.len() > self.most * 3 / 4 {
                self.thin_out();
            }
        }
    }

    /// Takes the last stroke away, if it stands for one segment.
    pub(super) fn take_last(&mut self) -> Option<Stroke> {
        let last = self.list.pop_if(|stroke| stroke.segments == 1)?;
        self.segments -= 1;
        Some(last)
    }

    fn join_neighbours(&mut self) {
        let begin = self.list.first().map_or(0, |stroke| stroke.at);
        let end = self.list.last().map_or(0, |stroke| stroke.until);
        let near = end.saturating_sub(begin).max(0) / NEAR;
        let mut joined: Vec<Stroke> = Vec::with_capacity(self.most);
        let mut may_join = true;
        for stroke in self.list.drain(..) {
            let before = joined.last_mut().filter(|_| may_join);
            match before.filter(|before| is_next(before, &stroke, near)) {
                Some(before) => {
                    before.until = stroke.until;
                    before.high = stroke.high;
                    before.segments += stroke.segments;
                    // Pairs at most, so that all strokes stand for about as many segments.
                    may_join = false;
                }
                None => {
                    joined.push(stroke);
                    may_join = true;
                }
            }
        }
        self.list = joined;
    }

    fn thin_out(&mut self) {
        let mut number = 0_u64;
        let left_out = &mut self.left_out;
        self.list.retain(|stroke| {
            number += 1;
            let stays = number % 2 == 1;
            *left_out += if stays { 0 } else { stroke.segments };
            stays
        });
        self.stride = self.stride.saturating_mul(2);
    }
}

/// Whether a stroke goes on where and when the one before it ends.
const fn is_next(before: &Stroke, next: &Stroke, near: i64) -> bool {
    let pause = next.at.saturating_sub(before.until);
    before.high == next.low && pause >= 0 && pause <= near
}

/// A value that holds until the next one.
#[derive(Clone, Debug)]
pub struct Stairs {
    /// Nanoseconds from the first packet, and the value from there on; `None` where it is not known.
    pub points: Vec<(i64, Option<i64>)>,
    /// A point is kept for every so many changes at least.
    pub stride: u64,
    last: Option<(i64, Option<i64>)>,
    changes: u64,
    most: usize,
}

impl Default for Stairs {
    fn default() -> Self {
        Self::bounded(MOST)
    }
}

impl Stairs {
    pub(super) const fn bounded(most: usize) -> Self {
        Self { points: Vec::new(), stride: 1, last: None, changes: 0, most }
    }

    /// The value is this from now on.
    pub(super) fn push(&mut self, at: i64, value: Option<i64>) {
        if self.last.is_some_and(|(_, last)| last == value) {
            return;
        }
        self.last = Some((at, value));
        let number = self.changes;
        self.changes += 1;
        if !number.is_multiple_of(self.stride) {
            return;
        }
        self.points.push((at, value));
        if self.points.len() > self.most {
            let mut number = 0;
            self.points.retain(|_| {
                number += 1;
                number % 2 == 1
            });
            self.stride *= 2;
        }
    }

    /// The last value is kept, too.
    pub(super) fn finish(&mut self) {
        if let Some(last) = self.last
            && self.points.last() != Some(&last)
        {
            self.points.push(last);
        }
    }

    /// The highest value.
    #[must_use]
    pub fn highest(&self) -> Option<i64> {
        self.points.iter().filter_map(|(_, value)| *value).max()
    }

    /// All values are less by this.
    pub(super) fn lower(&mut self, by: i64) {
        for (_, value) in &mut self.points {
            *value = value.map(|value| value.saturating_sub(by));
        }
    }
}
