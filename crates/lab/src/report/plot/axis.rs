//! Axes: what they have, where values lie on them, and which are told.

use std::ops::Range;

use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};

/// An axis of a plot.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Axis {
    /// What it has, with its unit.
    pub label: String,
    /// How its values are told.
    pub unit: Unit,
    /// Whether it is linear or logarithmic.
    pub scale: Scale,
}

/// How values are told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unit {
    /// As numbers, large ones with k and M.
    #[default]
    Number,
    /// Shares, labelled in percent.
    Share,
    /// Bytes in powers of 1024: an axis has a unit of them (KiB, MiB), a number alone is as options have it (512K, 64M).
    Bytes,
}

/// How values are placed on an axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scale {
    /// Equal differences are equal lengths.
    #[default]
    Linear,
    /// Equal ratios are, with powers of 10 told.
    Log10,
    /// Equal ratios are, with powers of 2 told.
    Log2,
}

impl Axis {
    /// An axis of plain numbers.
    #[must_use]
    pub fn new(label: impl Into<String>) -> Self {
        Self { label: label.into(), ..Self::default() }
    }

    /// An axis of shares, labelled in percent.
    #[must_use]
    pub fn share(label: impl Into<String>) -> Self {
        Self { unit: Unit::Share, ..Self::new(label) }
    }

    /// One of sizes, from one to the next twice as large; its label has no unit, since that depends on the values.
    #[must_use]
    pub fn bytes(label: impl Into<String>) -> Self {
        Self { unit: Unit::Bytes, scale: Scale::Log2, ..Self::new(label) }
    }

    /// It with equal ratios as equal lengths.
    #[must_use]
    pub fn logarithmic(self) -> Self {
        Self { scale: Scale::Log10, ..self }
    }

    /// What it has, with the unit that its ticks are in.
    pub(super) fn words(&self, span: &Span) -> String {
        match self.unit {
            Unit::Bytes => format!("{}, {}", self.label, span.power().0),
            Unit::Number | Unit::Share => self.label.clone(),
        }
    }

    /// Whether it has a place for a value.
    pub(super) fn has(&self, value: f64) -> bool {
        value.is_finite() && (self.scale == Scale::Linear || value > 0.0)
    }

    /// From where to where it goes for these values; those that it has no place for are left out.
    pub(super) fn span(&self, values: impl Iterator<Item = f64>) -> Span {
        let (low, high) = values
            .filter(|value| self.has(*value))
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
                (low.min(value), high.max(value))
            });
        let (low, high) = match self.scale {
            Scale::Linear => around_zero(low, high, self.unit),
            // A single value, and none, get room at both sides.
            Scale::Log10 | Scale::Log2 if low >= high => {
                let middle = if low.is_finite() { low } else { 1.0 };
                (middle / 2.0, middle * 2.0)
            }
            Scale::Log10 | Scale::Log2 => {
                let more = (high / low).powf(0.04);
                (low / more, high * more)
            }
        };
        Span { low, high, scale: self.scale, unit: self.unit }
    }
}

/// Linear axes have 0, and a little more than the values; shares end at all.
fn around_zero(low: f64, high: f64, unit: Unit) -> (f64, f64) {
    let least = if unit == Unit::Share { 0.01 } else { 1e-9 };
    let (low, high) = (low.min(0.0), high.max(0.0));
    let extent = (high - low).max(least);
    let is_in_all = unit == Unit::Share && high <= 1.0;
    let above = (low + extent).max(high + extent * 0.05);
    (
        if low < 0.0 { low - extent * 0.05 } else { 0.0 },
        if is_in_all { above.min(1.02) } else { above },
    )
}

/// The part of an axis that is drawn.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Span {
    pub(super) low: f64,
    pub(super) high: f64,
    scale: Scale,
    unit: Unit,
}

impl Span {
    /// Where a value lies: 0 at the low end, 1 at the high one.
    pub(super) fn place(&self, value: f64) -> f64 {
        let of = |value: f64| if self.scale == Scale::Linear { value } else { value.ln() };
        (of(value) - of(self.low)) / (of(self.high) - of(self.low))
    }

    /// The unit of bytes of which the lowest value has a quarter at least.
    fn power(&self) -> (&'static str, f64) {
        let all = [("GiB", 30), ("MiB", 20), ("KiB", 10)]
            .map(|(name, bits)| (name, f64::from(1 << bits)));
        // Without the room that a logarithmic axis leaves at its ends.
        let lowest = self.low * (self.high / self.low).powf(0.04 / 1.08);
        let is_fine = |(_, bytes): &(&str, f64)| lowest * 1.001 >= bytes / 4.0;
        all.into_iter().find(is_fine).unwrap_or(("bytes", 1.0))
    }

    /// A value beside the axis.
    pub(super) fn told(&self, value: f64) -> String {
        match self.unit {
            Unit::Bytes => short(value / self.power().1),
            Unit::Number | Unit::Share => tick(value, self.unit),
        }
    }

    /// Values that are told: no more than so many.
    pub(super) fn ticks(&self, most: usize) -> Vec<f64> {
        let most = most.max(2);
        match self.scale {
            Scale::Linear => self.even(most),
            Scale::Log2 => self.powers(2.0, most),
            Scale::Log10 => {
                // Between few powers of 10 others are told.
                let fine = [&[1.0, 2.0, 5.0][..], &[1.0, 3.0]];
                let fine = fine.map(|steps| self.multiples(steps));
                let fits = |ticks: &&Vec<f64>| ticks.len() <= most;
                fine.iter().find(fits).cloned().unwrap_or_else(|| self.powers(10.0, most))
            }
        }
    }

    fn even(&self, most: usize) -> Vec<f64> {
        let least = (self.high - self.low) / most as f64;
        let step = match self.unit {
            Unit::Bytes => 2_f64.powf(least.log2().ceil()),
            Unit::Number | Unit::Share => {
                let power = 10_f64.powf(least.log10().floor());
                let wide = |factor: &f64| power * factor >= least * (1.0 - 1e-9);
                power * [1.0, 2.0, 5.0].into_iter().find(wide).unwrap_or(10.0)
            }
        };
        let (first, last) = ((self.low / step).ceil() as i64, (self.high / step).floor() as i64);
        (first..=last).map(|number| number as f64 * step).collect()
    }

    fn powers(&self, base: f64, most: usize) -> Vec<f64> {
        let (first, last) = (self.low.log(base).ceil(), self.high.log(base).floor());
        let each = ((last - first + 1.0) / most as f64).ceil().max(1.0);
        // Powers of 1, 4, 16 are those that people know: what is left out depends on the power, not on the end.
        let powers = (first as i64..=last as i64).filter(|power| *power as f64 % each == 0.0);
        powers.map(|power| base.powf(power as f64)).collect()
    }

    fn multiples(&self, steps: &[f64]) -> Vec<f64> {
        let (first, last) = (self.low.log10().floor() as i32, self.high.log10().ceil() as i32);
        let all = (first..=last)
            .flat_map(|power| steps.iter().map(move |step| step * 10_f64.powi(power)));
        all.filter(|tick| (self.low..=self.high).contains(tick)).collect()
    }
}

impl Ranged for Span {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        let length = f64::from(limit.1 - limit.0);
        limit.0 + (self.place(*value) * length).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        self.ticks(hint.bold_points())
    }

    fn range(&self) -> Range<f64> {
        self.low..self.high
    }
}

impl ValueFormatter<f64> for Span {
    fn format_ext(&self, value: &f64) -> String {
        self.told(*value)
    }
}

/// A number at an axis.
pub(in crate::report) fn tick(value: f64, unit: Unit) -> String {
    const KIB: f64 = 1024.0;
    match (unit, value.abs()) {
        (Unit::Share, _) => short(value * 100.0) + " %",
        (Unit::Bytes, size) if size >= KIB * KIB * KIB => short(value / KIB / KIB / KIB) + "G",
        (Unit::Bytes, size) if size >= KIB * KIB => short(value / KIB / KIB) + "M",
        (Unit::Bytes, size) if size >= KIB => short(value / KIB) + "K",
        (Unit::Number, large) if large >= 1e9 => short(value / 1e9) + "G",
        (Unit::Number, large) if large >= 1e6 => short(value / 1e6) + "M",
        (Unit::Number, large) if large >= 1e4 => short(value / 1e3) + "k",
        (Unit::Number | Unit::Bytes, _) => short(value),
    }
}

/// Three digits, or all that are before the point.
fn short(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return "0".to_owned();
    }
    let digits = (2.0 - value.abs().log10().floor()).clamp(0.0, 12.0) as usize;
    let text = format!("{value:.digits$}");
    if digits == 0 {
        return super::super::number::whole(value);
    }
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_short() {
        for (value, unit, text) in [
            (0.0, Unit::Number, "0"),
            (0.000_25, Unit::Number, "0.00025"),
            (500.0, Unit::Number, "500"),
            (1500.0, Unit::Number, "1,500"),
            (-20.0, Unit::Number, "-20"),
            (250_000.0, Unit::Number, "250k"),
            (1_250_000.0, Unit::Number, "1.25M"),
            (0.5, Unit::Share, "50 %"),
            (0.0125, Unit::Share, "1.25 %"),
            (0.1 + 0.2, Unit::Share, "30 %"),
            (1.0, Unit::Share, "100 %"),
            (524_288.0, Unit::Bytes, "512K"),
            (67_108_864.0, Unit::Bytes, "64M"),
            (1_073_741_824.0, Unit::Bytes, "1G"),
        ] {
            assert_eq!(tick(value, unit), text);
        }
    }

    fn labels(axis: &Axis, values: &[f64], most: usize) -> Vec<String> {
        let span = axis.span(values.iter().copied());
        span.ticks(most).into_iter().map(|value| tick(value, axis.unit)).collect()
    }

    #[test]
    fn axes_tell_what_people_know() {
        let ring = Axis::bytes("ring");
        let rings = [524_288.0, 67_108_864.0];
        assert_eq!(
            labels(&ring, &rings, 10),
            ["512K", "1M", "2M", "4M", "8M", "16M", "32M", "64M"]
        );
        assert_eq!(labels(&ring, &rings, 5), ["1M", "4M", "16M", "64M"]);
        let seconds = Axis::new("s").logarithmic();
        assert_eq!(labels(&seconds, &[1.0, 50.0], 9), ["1", "2", "5", "10", "20", "50"]);
        assert_eq!(labels(&seconds, &[1e-3, 1e9], 7), ["0.01", "1", "100", "10k", "1M", "100M"]);
        assert_eq!(labels(&Axis::new("n"), &[450e3], 9), ["0", "100k", "200k", "300k", "400k"]);
        assert_eq!(
            labels(&Axis::share("loss"), &[1.0], 8),
            ["0 %", "20 %", "40 %", "60 %", "80 %", "100 %"]
        );
        assert_eq!(labels(&Axis::new("n"), &[-30.0, 50.0], 6), ["-20", "0", "20", "40"]);
    }

    #[test]
    fn sizes_are_in_the_unit_that_fits_all_of_them() {
        let words = |low: f64, high: f64| {
            let axis = Axis::bytes("capture ring");
            let span = axis.span([low, high].into_iter());
            let told: Vec<_> = span.ticks(5).into_iter().map(|value| span.told(value)).collect();
            (axis.words(&span), told.join(" "))
        };
        let (kib, mib) = (1024.0, 1_048_576.0);
        let found = words(256.0 * kib, 64.0 * mib);
        assert_eq!(found, ("capture ring, MiB".to_owned(), "0.25 1 4 16 64".to_owned()));
        assert_eq!(words(32.0 * kib, 2.0 * mib).0, "capture ring, KiB");
        assert_eq!(words(100.0, 1000.0).0, "capture ring, bytes");
        let share = Axis::share("loss");
        assert_eq!(share.words(&share.span([0.5].into_iter())), "loss");
    }

    #[test]
    fn logarithms_have_no_place_for_nothing() {
        let axis = Axis::bytes("ring");
        assert!(!axis.has(0.0) && !axis.has(-1.0) && !axis.has(f64::NAN) && axis.has(1.0));
        assert!(Axis::new("n").has(0.0) && !Axis::new("n").has(f64::INFINITY));
        let span = axis.span([0.0, 4096.0, 16384.0].into_iter());
        assert!(span.low > 3000.0 && span.high < 20000.0, "{span:?}");
        assert!((span.place(8192.0) - 0.5).abs() < 1e-9);
        for values in [vec![], vec![0.0], vec![7.0], vec![7.0, 7.0]] {
            let span = axis.span(values.into_iter());
            assert!(span.low > 0.0 && span.high > span.low, "{span:?}");
        }
    }
}
