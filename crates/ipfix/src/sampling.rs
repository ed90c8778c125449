//! Which share of the packets an exporter looked at.

use std::collections::BTreeMap;

/// What is known of a share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sampling {
    /// Nobody told.
    #[default]
    Untold,
    /// Every packet counts.
    All,
    /// One packet of so many, at least two.
    OneOf(u64),
    /// Some packets; how many cannot be told as one of so many.
    Some,
}

impl Sampling {
    /// One packet of `interval`, where 0 is what exporters write that do not sample.
    pub(crate) const fn one_of(interval: u64) -> Self {
        match interval {
            0 | 1 => Self::All,
            interval => Self::OneOf(interval),
        }
    }

    /// `chosen` packets, and then `left_out` others (RFC 5477).
    pub(crate) fn chosen(chosen: u64, left_out: u64) -> Self {
        let all = chosen.checked_add(left_out);
        match all.filter(|_| chosen > 0) {
            Some(all) if all % chosen == 0 => Self::one_of(all / chosen),
            _ => Self::Some,
        }
    }

    /// Whether counts of packets are those of a sample.
    #[must_use]
    pub const fn is_sampled(self) -> bool {
        matches!(self, Self::OneOf(_) | Self::Some)
    }
}

/// What a record says of sampling, in its fields.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SamplingFields {
    /// `samplerId` or `selectorId`.
    pub(crate) sampler: Option<u64>,
    /// `samplingInterval` or `samplerRandomInterval`.
    pub(crate) interval: Option<u64>,
    /// `samplingPacketInterval`, or `samplingSize`.
    pub(crate) chosen: Option<u64>,
    /// `samplingPacketSpace`.
    pub(crate) space: Option<u64>,
    /// `samplingPopulation`.
    pub(crate) population: Option<u64>,
    /// `samplingProbability`.
    pub(crate) probability: Option<f64>,
}

impl SamplingFields {
    /// What they say together.
    pub(crate) fn told(&self) -> Option<Sampling> {
        if let Some(interval) = self.interval {
            return Some(Sampling::one_of(interval));
        }
        if let (Some(chosen), Some(space)) = (self.chosen, self.space) {
            return Some(Sampling::chosen(chosen, space));
        }
        if let (Some(chosen), Some(all)) = (self.chosen, self.population) {
            return Some(Sampling::chosen(chosen, all.saturating_sub(chosen)));
        }
        self.probability.map(|probability| match probability {
            1.0 => Sampling::All,
            _ => Sampling::Some,
        })
    }
}

/// What an exporter told of its samplers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Samplers(BTreeMap<u64, Sampling>);

impl Samplers {
    /// Takes note of a sampler. Returns whether there is room, of `most`.
    pub(crate) fn note(&mut self, fields: &SamplingFields, most: usize) -> bool {
        let Some(told) = fields.told() else { return true };
        let id = fields.sampler.unwrap_or(0);
        if self.0.len() >= most && !self.0.contains_key(&id) {
            return false;
        }
        self.0.insert(id, told);
        true
    }

    /// What holds for a record with these fields. One that names no sampler had the only one, if there is one.
    pub(crate) fn of(&self, fields: &SamplingFields) -> Sampling {
        if let Some(told) = fields.told() {
            return told;
        }
        let named = fields.sampler.and_then(|id| self.0.get(&id));
        let all_the_same = || {
            let mut told = self.0.values();
            let first = told.next()?;
            Some(if told.all(|other| other == first) { *first } else { Sampling::Some })
        };
        match fields.sampler {
            Some(0) | None => named.copied().or_else(all_the_same).unwrap_or_default(),
            // A sampler of which nothing was told yet: that there is one is all that is known.
            Some(_) => named.copied().unwrap_or(Sampling::Some),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_whole_or_unknown() {
        assert_eq!(Sampling::one_of(0), Sampling::All);
        assert_eq!(Sampling::one_of(100), Sampling::OneOf(100));
        assert_eq!(Sampling::chosen(1, 99), Sampling::OneOf(100));
        assert_eq!(Sampling::chosen(2, 98), Sampling::OneOf(50));
        assert_eq!(Sampling::chosen(3, 97), Sampling::Some);
        assert_eq!(Sampling::chosen(0, 97), Sampling::Some);
        assert_eq!(Sampling::chosen(1, u64::MAX), Sampling::Some);
    }

    #[test]
    fn records_have_the_sampling_of_their_sampler() {
        let mut samplers = Samplers::default();
        let fields = |sampler, interval| SamplingFields { sampler, interval, ..Default::default() };
        assert_eq!(samplers.of(&fields(None, None)), Sampling::Untold);
        assert_eq!(samplers.of(&fields(Some(7), None)), Sampling::Some);
        assert!(samplers.note(&fields(Some(7), Some(100)), 2));
        assert_eq!(samplers.of(&fields(Some(7), None)), Sampling::OneOf(100));
        assert_eq!(samplers.of(&fields(None, None)), Sampling::OneOf(100), "it is the only one");
        assert!(samplers.note(&fields(Some(8), Some(10)), 2));
        assert_eq!(samplers.of(&fields(None, None)), Sampling::Some);
        assert!(!samplers.note(&fields(Some(9), Some(10)), 2), "no room");
        assert!(samplers.note(&fields(Some(8), Some(20)), 2), "told anew");
        assert_eq!(samplers.of(&fields(Some(8), None)), Sampling::OneOf(20));
    }
}
