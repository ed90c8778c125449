//! Flows that a loss damages (PAPERS A9): a flow misses a packet, and its statistics are wrong, where any of its packets is
//! lost. Of flows of *n* packets, of which each is lost with the probability *p*, that is the share 1 - (1 - p)^n.
//!
//! Everything here is pure: shares from 0 to 1, flows and packets as numbers.

use std::collections::BTreeMap;

use netsniff_traffic::random::Random;

/// The share of damaged ones among flows of so many packets, where each packet is lost with this probability.
#[must_use]
pub fn damaged(loss: f64, packets: u64) -> f64 {
    // Where a loss is tiny, 1 - (1 - p)^n would be what is left of two numbers that are nearly the same.
    -(packets as f64 * (-loss).ln_1p()).exp_m1()
}

/// How many flows there are of how many packets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mix(BTreeMap<u64, u64>);

/// What is expected of a loss.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct Expected {
    /// Number of flows, on average.
    pub flows: f64,
    /// The standard deviation of their number: flows are damaged independently of each other.
    pub deviation: f64,
}

impl Mix {
    /// Of flows with so many packets each. A flow has a packet.
    #[must_use]
    pub fn of(packets: impl IntoIterator<Item = u64>) -> Self {
        let mut mix = Self::default();
        for packets in packets.into_iter().filter(|packets| *packets > 0) {
            *mix.0.entry(packets).or_default() += 1;
        }
        mix
    }

    /// So many flows of as many packets each.
    #[must_use]
    pub fn same(flows: u64, packets: u64) -> Self {
        Self((flows > 0 && packets > 0).then_some((packets, flows)).into_iter().collect())
    }

    /// How many flows there are.
    #[must_use]
    pub fn flows(&self) -> u64 {
        self.0.values().sum()
    }

    /// How many packets they have.
    #[must_use]
    pub fn packets(&self) -> u64 {
        self.0.iter().map(|(packets, flows)| packets * flows).sum()
    }

    /// Packets of the shortest, of the middle (the upper one of two) and of the longest; `None` where there is no flow.
    #[must_use]
    pub fn lengths(&self) -> Option<[u64; 3]> {
        let (shortest, longest) = (self.0.first_key_value()?.0, self.0.last_key_value()?.0);
        let (half, mut seen) = (self.flows() / 2, 0);
        let middle = self.0.iter().find(|(_, flows)| {
            seen += **flows;
            seen > half
        });
        Some([*shortest, *middle?.0, *longest])
    }

    /// How many flows a loss is expected to damage.
    #[must_use]
    pub fn expected(&self, loss: f64) -> Expected {
        let shares = self.0.iter().map(|(packets, flows)| (damaged(loss, *packets), *flows as f64));
        let (flows, variance) = shares.fold((0.0, 0.0), |(sum, variance), (share, flows)| {
            (share.mul_add(flows, sum), (share * (1.0 - share)).mul_add(flows, variance))
        });
        Expected { flows, deviation: variance.sqrt() }
    }

    /// The highest loss that is expected to damage at most this share of the flows; `None` where there is no flow.
    #[must_use]
    pub fn tolerable(&self, share: f64) -> Option<f64> {
        let [shortest, _, longest] = self.lengths()?;
        if share >= 1.0 {
            return Some(1.0);
        }
        let flows = self.flows() as f64;
        // With the rate h = -ln(1 - p) a flow of n packets is damaged with 1 - exp(-n h): the share of all grows with h, and
        // all flows as short as the shortest, or as long as the longest, are the two ends.
        let rate = |packets: u64| -(-share.max(0.0)).ln_1p() / packets as f64;
        let (mut low, mut high) = (rate(longest), rate(shortest));
        loop {
            let middle = f64::midpoint(low, high);
            if middle <= low || middle >= high {
                return Some(-(-low).exp_m1());
            }
            let of = self
                .0
                .iter()
                .map(|(packets, flows)| -(-middle * *packets as f64).exp_m1() * *flows as f64);
            if of.sum::<f64>() / flows > share { high = middle } else { low = middle }
        }
    }

    /// The flows by classes of their length: 1 packet, 2 and 3, 4 to 7, and so on.
    #[must_use]
    pub fn classes(&self) -> Vec<(u32, Self)> {
        let mut classes: BTreeMap<u32, Self> = BTreeMap::new();
        for (packets, flows) in &self.0 {
            classes.entry(class(*packets)).or_default().0.insert(*packets, *flows);
        }
        classes.into_iter().collect()
    }
}

/// A number with five digits that tell something, as people are shown it.
#[must_use]
pub fn shown(value: f64) -> f64 {
    let digits = 4.0 - value.abs().log10().floor();
    let scale = 10_f64.powf(digits);
    if scale.is_finite() { (value * scale).round() / scale } else { value }
}

/// The class of flows with so many packets: that number has so many binary digits behind its first one.
#[must_use]
pub fn class(packets: u64) -> u32 {
    packets.max(1).ilog2()
}

/// The packets of a capture, each with the number of its flow from 0, if it has one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flows {
    flows: Vec<Option<u32>>,
    /// Packets of each flow.
    lengths: Vec<u64>,
}

/// What a loss did to a capture.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Damage {
    /// Packets that were lost, whether of a flow or not.
    pub lost: u64,
    /// Flows that miss at least one.
    pub flows: u64,
    /// Number of these flows by [`class`].
    pub classes: BTreeMap<u32, u64>,
}

impl Flows {
    /// Of the flow of each packet, in order; flows are numbered from 0 as they begin.
    #[must_use]
    pub fn of(flows: Vec<Option<u32>>) -> Self {
        let number = flows.iter().flatten().max().map_or(0, |last| *last as usize + 1);
        let mut lengths = vec![0; number];
        flows.iter().flatten().for_each(|flow| lengths[*flow as usize] += 1);
        Self { flows, lengths }
    }

    /// Packets, whether of a flow or not.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.flows.len()
    }

    /// Whether there is no packet.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.flows.is_empty()
    }

    /// Packets that belong to no flow.
    #[must_use]
    pub fn without_flow(&self) -> usize {
        self.flows.iter().filter(|flow| flow.is_none()).count()
    }

    /// How many flows there are of how many packets.
    #[must_use]
    pub fn mix(&self) -> Mix {
        Mix::of(self.lengths.iter().copied())
    }

    /// What it does to lose some packets: those at places for which `is_lost` holds, which is asked in order.
    pub fn damage(&self, mut is_lost: impl FnMut(usize) -> bool) -> Damage {
        let (mut damage, mut is_damaged) = (Damage::default(), vec![false; self.lengths.len()]);
        for (at, flow) in self.flows.iter().enumerate() {
            if !is_lost(at) {
                continue;
            }
            damage.lost += 1;
            if let Some(flow) = flow.map(|flow| flow as usize).filter(|flow| !is_damaged[*flow]) {
                is_damaged[flow] = true;
                damage.flows += 1;
                *damage.classes.entry(class(self.lengths[flow])).or_default() += 1;
            }
        }
        damage
    }

    /// What chance does, that comes from a seed, where each packet is lost with a probability.
    #[must_use]
    pub fn simulate(&self, loss: f64, random: &mut Random) -> Damage {
        self.damage(|_| random.chance(loss))
    }
}

/// A loss, what is expected of it, and what came.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct DamageOutcome {
    /// The probability that a packet is lost.
    pub loss: f64,
    /// The damage that is expected at that loss.
    pub expected: Expected,
    /// By how many standard deviations the mean of what came is off that; `None` where nothing was counted, or where nothing
    /// can be off.
    pub sigmas: Option<f64>,
    /// What came, in each round.
    pub rounds: Vec<Damage>,
}

impl DamageOutcome {
    /// Of flows like these.
    #[must_use]
    pub fn new(mix: &Mix, loss: f64, rounds: Vec<Damage>) -> Self {
        let expected = mix.expected(loss);
        let counts: Vec<_> = rounds.iter().map(|damage| damage.flows).collect();
        Self { loss, expected, sigmas: sigmas(&expected, &counts), rounds }
    }

    /// The least, the mean and the most that a round has of something.
    #[must_use]
    pub fn counted(&self, of: impl Fn(&Damage) -> u64) -> Option<[f64; 3]> {
        let counts: Vec<_> = self.rounds.iter().map(of).collect();
        let (least, most) = (counts.iter().min()?, counts.iter().max()?);
        Some([*least as f64, mean(&counts)?, *most as f64])
    }
}

/// Which of what was sent did not come, where the rest came in the same order: both as digests of the frames. `None` where
/// something came that was not sent, or not in this order.
#[must_use]
pub fn missing(sent: &[u64], came: &[u64]) -> Option<Vec<bool>> {
    let mut rest = came.iter().peekable();
    // The first frame that fits is taken. Where several are the same, they are of one flow.
    let missing = sent.iter().map(|digest| rest.next_if_eq(&digest).is_none()).collect();
    rest.next().is_none().then_some(missing)
}

/// By how many standard deviations the mean of some counts is off what is expected; `None` where nothing was counted, or
/// where nothing can be off.
fn sigmas(expected: &Expected, counts: &[u64]) -> Option<f64> {
    let off = mean(counts)? - expected.flows;
    let deviation = expected.deviation / (counts.len() as f64).sqrt();
    (deviation > 0.0).then(|| off / deviation)
}

/// The mean of some counts.
fn mean(counts: &[u64]) -> Option<f64> {
    let sum = counts.iter().sum::<u64>() as f64;
    (!counts.is_empty()).then(|| sum / counts.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(value: f64, expected: f64) {
        assert!((value / expected - 1.0).abs() < 1e-12, "{value} {expected}");
    }

    #[test]
    fn a_share_is_exact_at_its_ends() {
        near(damaged(0.01, 1), 0.01);
        near(damaged(0.5, 2), 0.75);
        near(damaged(0.01, 100), 1.0 - 0.99_f64.powi(100));
        // Tiny losses: n p, where 1 - (1 - p)^n would be 0.
        near(damaged(1e-18, 1000), 1e-15);
        near(damaged(1e-12, 1_000_000), -(-1e-6_f64).exp_m1());
        assert_eq!((damaged(0.0, 1000), damaged(1.0, 1)), (0.0, 1.0));
        assert_eq!(damaged(0.1, u64::MAX), 1.0);
    }

    #[test]
    fn flows_are_independent() {
        let mix = Mix::of([1, 1, 2, 0]);
        assert_eq!((mix.flows(), mix.packets(), mix.lengths()), (3, 4, Some([1, 1, 2])));
        let Expected { flows, deviation } = mix.expected(0.5);
        near(flows, 0.5 + 0.5 + 0.75);
        near(deviation * deviation, 0.25 + 0.25 + 0.1875);
        assert_eq!(Mix::same(5, 4), Mix::of([4; 5]));
        assert_eq!((Mix::default().lengths(), Mix::same(0, 4).flows()), (None, 0));
    }

    #[test]
    fn what_is_tolerable_damages_just_so_many() {
        // Flows of one length: 1 - (1 - x)^(1/n).
        near(Mix::same(1000, 1).tolerable(0.01).unwrap(), 0.01);
        near(Mix::same(1000, 20).tolerable(0.01).unwrap(), -((-0.01_f64).ln_1p() / 20.0).exp_m1());
        let mix = Mix::of([1, 3, 10, 500, 100_000]);
        for share in [1e-9, 0.001, 0.2, 0.5, 0.999] {
            let loss = mix.tolerable(share).unwrap();
            let flows = mix.expected(loss).flows / 5.0;
            assert!((flows / share - 1.0).abs() < 1e-9, "{share} {loss} {flows}");
            assert!(mix.expected(loss * 1.001).flows / 5.0 > share);
        }
        assert_eq!((mix.tolerable(0.0), mix.tolerable(1.0)), (Some(0.0), Some(1.0)));
        assert_eq!(Mix::default().tolerable(0.1), None);
    }

    #[test]
    fn numbers_are_shown_short() {
        let shown = |value| shown(value).to_string();
        assert_eq!([7.000_000_000_000_001, 0.032_083_512, 0.0].map(shown), ["7", "0.032084", "0"]);
        assert_eq!([123_456.0, 1.234_567e-9].map(shown), ["123460", "0.0000000012346"]);
    }

    #[test]
    fn damage_is_counted_once_for_a_flow() {
        let flows = Flows::of(vec![Some(0), Some(1), None, Some(1), Some(1), Some(2)]);
        assert_eq!((flows.len(), flows.without_flow()), (6, 1));
        assert_eq!(flows.mix(), Mix::of([1, 3, 1]));
        let damage = flows.damage(|at| [1, 2, 4].contains(&at));
        assert_eq!((damage.lost, damage.flows), (3, 1));
        assert_eq!(damage.classes, BTreeMap::from([(1, 1)]));
        assert_eq!(flows.damage(|_| true).classes, BTreeMap::from([(0, 2), (1, 1)]));
        let classes: Vec<_> =
            flows.mix().classes().iter().map(|(class, mix)| (*class, mix.flows())).collect();
        assert_eq!(classes, [(0, 2), (1, 1)]);
        assert_eq!([1, 2, 3, 4, 7, 8].map(class), [0, 1, 1, 2, 2, 3]);
    }

    /// Chance agrees with arithmetic: within four standard deviations of the mean of 200 rounds.
    #[test]
    fn simulated_losses_damage_what_is_expected() {
        let lengths = [1, 2, 5, 30, 400];
        let of = lengths.iter().cycle().take(500).zip(0..);
        let flows = of.flat_map(|(length, flow)| std::iter::repeat_n(Some(flow), *length));
        let flows = Flows::of(flows.collect());
        for loss in [0.0001, 0.01, 0.3] {
            let mut random = Random::new(7);
            let rounds: Vec<_> =
                (0..200).map(|_| flows.simulate(loss, &mut random).flows).collect();
            let off = sigmas(&flows.mix().expected(loss), &rounds).unwrap();
            assert!(off.abs() < 4.0, "{loss}: {off}");
        }
        assert_eq!(flows.simulate(0.0, &mut Random::new(1)), Damage::default());
        let all = flows.simulate(1.0, &mut Random::new(1));
        assert_eq!((all.lost, all.flows), (flows.len() as u64, 500));
        let rounds = vec![all, Damage::default()];
        let outcome = DamageOutcome::new(&flows.mix(), 0.5, rounds);
        assert_eq!(outcome.counted(|damage| damage.flows), Some([0.0, 250.0, 500.0]));
        assert!(outcome.sigmas.unwrap() < -10.0);
        assert_eq!(sigmas(&flows.mix().expected(0.0), &[0]), None);
        assert_eq!(sigmas(&flows.mix().expected(0.1), &[]), None);
    }

    #[test]
    fn what_did_not_come_is_found_by_order() {
        let sent = [1, 2, 2, 3, 4];
        let none = vec![false; 5];
        assert_eq!(missing(&sent, &sent), Some(none));
        assert_eq!(missing(&sent, &[2, 4]), Some(vec![true, false, true, true, false]));
        assert_eq!(missing(&sent, &[]), Some(vec![true; 5]));
        assert_eq!(missing(&sent, &[4, 3]), None);
        assert_eq!(missing(&sent, &[1, 1]), None);
        assert_eq!(missing(&sent, &[5]), None);
    }
}
