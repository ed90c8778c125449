//! How many instances of each capture make a mix of the wanted size and shares.

use super::capture::Traits;
use super::category::{self, Category};

/// What a mix must be, as lower and upper bounds.
#[derive(Clone, Debug, PartialEq)]
pub struct Goal {
    /// Number of packets of the mix.
    pub packets: (f64, f64),
    /// Mean frame length in bytes.
    pub mean_len: (f64, f64),
    /// Number of flows of the mix, at least.
    pub flows: f64,
    /// Part of the packets that are TCP or UDP without payload, at least.
    pub empty: f64,
    /// Percent of the bytes by category, in the order of [`Category::ALL`].
    pub shares: [f64; category::COUNT],
    /// How many percent points a share may be off.
    pub share_tolerance: f64,
}

impl Goal {
    /// The mix against which netsniff and its peers are measured.
    #[must_use]
    pub const fn mix() -> Self {
        Self {
            packets: (1_600_000.0, 1_900_000.0),
            mean_len: (570.0, 660.0),
            flows: 100_000.0,
            empty: 0.40,
            shares: [37.0, 27.0, 10.0, 6.0, 5.0, 5.0, 3.0, 3.0, 4.0],
            share_tolerance: 5.0,
        }
    }

    /// The same mix with `factor` times the packets and flows.
    #[must_use]
    pub fn scaled(mut self, factor: f64) -> Self {
        self.packets = (self.packets.0 * factor, self.packets.1 * factor);
        self.flows *= factor;
        self
    }

    /// What `made` misses, a sentence each; empty where the goal is met.
    #[must_use]
    pub fn missed(&self, made: &Traits) -> Vec<String> {
        let mut missed = Vec::new();
        let mut check = |what: &str, value: f64, (low, high): (f64, f64)| {
            if !(low..=high).contains(&value) {
                missed.push(format!("{what}: {value:.2}, wanted {low:.2} to {high:.2}"));
            }
        };
        let packets = made.packets as f64;
        check("packets", packets, self.packets);
        check("mean frame length", made.bytes as f64 / packets.max(1.0), self.mean_len);
        check("flows", made.flows as f64, (self.flows, f64::INFINITY));
        check("packets without payload", made.empty as f64 / packets.max(1.0), (self.empty, 1.0));
        for category in Category::ALL {
            let wanted = self.shares[category as usize];
            let bounds = (wanted - self.share_tolerance, wanted + self.share_tolerance);
            check(&format!("percent of {}", category.name()), share(made, category), bounds);
        }
        missed
    }
}

/// Percent of the bytes that a category has.
#[must_use]
pub fn share(traits: &Traits, category: Category) -> f64 {
    100.0 * traits.by_category[category as usize] as f64 / traits.bytes.max(1) as f64
}

/// Rows of the system: one for each category, then packets, packets without payload, flows and the mean length.
const ROWS: usize = category::COUNT + 4;
const PACKETS: usize = category::COUNT;
const EMPTY: usize = PACKETS + 1;
const FLOWS: usize = PACKETS + 2;
const MEAN: usize = PACKETS + 3;
const SWEEPS: usize = 2_000;
/// How much an equal number of instances within a category counts against the goal: tried from the left.
const EVENNESS: [f64; 11] = [30.0, 10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 0.01, 1e-3, 1e-4, 1e-5];

/// The number of instances of each capture that meets `goal`, as even as possible within a category.
///
/// Where the captures cannot meet the goal, the result is near it, and [`Goal::missed`] tells what it misses.
#[must_use]
pub fn plan(captures: &[Traits], goal: &Goal) -> Vec<u32> {
    let system = System::new(goal);
    let (mut counts, mut best, mut least_missed) =
        (even_counts(captures, goal, system.bytes), Vec::new(), usize::MAX);
    for evenness in EVENNESS {
        solve(captures, &system, &even_counts(captures, goal, system.bytes), evenness, &mut counts);
        let rounded: Vec<u32> = counts.iter().map(|count| count.round() as u32).collect();
        let missed = goal.missed(&total(captures, &rounded)).len();
        if missed < least_missed {
            (best, least_missed) = (rounded, missed);
        }
        if missed == 0 {
            break;
        }
    }
    best
}

/// What so many instances of each capture have together.
#[must_use]
pub fn total(captures: &[Traits], counts: &[u32]) -> Traits {
    let mut sum = Traits::default();
    for (traits, count) in captures.iter().zip(counts) {
        let count = u64::from(*count);
        sum.packets += traits.packets * count;
        sum.bytes += traits.bytes * count;
        sum.empty += traits.empty * count;
        sum.flows += traits.flows * count;
        (0..category::COUNT).for_each(|at| sum.by_category[at] += traits.by_category[at] * count);
    }
    sum
}

/// Least squares with bounds, one capture at a time, from where `counts` stands.
fn solve(captures: &[Traits], system: &System, usual: &[f64], evenness: f64, counts: &mut [f64]) {
    let rows: Vec<[f64; ROWS]> = captures.iter().map(|traits| system.row(traits)).collect();
    let total: u64 = captures.iter().map(|traits| traits.bytes).sum();
    let least = if total as f64 * 2.0 < system.bytes { 1.0 } else { 0.0 };
    let mut sums = [0.0; ROWS];
    for (row, count) in rows.iter().zip(counts.iter()) {
        (0..ROWS).for_each(|at| sums[at] += row[at] * count);
    }
    for _ in 0..SWEEPS {
        for (at, row) in rows.iter().enumerate() {
            let pull = evenness / (usual[at] * usual[at]) / captures.len() as f64;
            let (mut slope, mut bend) = (pull * (counts[at] - usual[at]), pull);
            for line in 0..ROWS {
                let (low, high) = system.bounds[line];
                let off = sums[line] - sums[line].clamp(low, high);
                if off != 0.0 {
                    slope += row[line] * off;
                    bend += row[line] * row[line];
                }
            }
            let count = (counts[at] - slope / bend).max(least);
            (0..ROWS).for_each(|line| sums[line] += row[line] * (count - counts[at]));
            counts[at] = count;
        }
    }
}

/// Linear rows with bounds; each is divided by what the goal tolerates, so that all weigh alike.
struct System {
    /// Bytes wanted in all.
    bytes: f64,
    mean_len: f64,
    scale: [f64; ROWS],
    bounds: [(f64, f64); ROWS],
}

impl System {
    /// The bounds are well inside the goal's, so that rounding does not leave it.
    fn new(goal: &Goal) -> Self {
        let packets = f64::midpoint(goal.packets.0, goal.packets.1);
        let mean_len = f64::midpoint(goal.mean_len.0, goal.mean_len.1);
        let bytes = packets * mean_len;
        let mut scale = [1.0; ROWS];
        let mut bounds = [(0.0, 0.0); ROWS];
        let mut set = |line: usize, low: f64, high: f64, tolerated: f64| {
            scale[line] = tolerated;
            bounds[line] = (low / tolerated, high / tolerated);
        };
        let point = bytes / 100.0;
        for (line, wanted) in goal.shares.iter().enumerate() {
            let slack = (goal.share_tolerance * 0.4).min(wanted * 0.2);
            set(
                line,
                point * (wanted - slack),
                point * (wanted + slack),
                point * goal.share_tolerance,
            );
        }
        let tolerated = (goal.packets.1 - goal.packets.0) / 2.0;
        set(PACKETS, packets - tolerated * 0.4, packets + tolerated * 0.4, tolerated);
        set(EMPTY, packets * (goal.empty + 0.02), packets, packets * 0.05);
        set(FLOWS, goal.flows * 1.04, goal.flows * 1.5, goal.flows * 0.1);
        let tolerated = packets * (goal.mean_len.1 - goal.mean_len.0) / 2.0;
        set(MEAN, tolerated * -0.4, tolerated * 0.4, tolerated);
        Self { bytes, mean_len, scale, bounds }
    }

    fn row(&self, traits: &Traits) -> [f64; ROWS] {
        let mut row = [0.0; ROWS];
        for (line, bytes) in traits.by_category.iter().enumerate() {
            row[line] = *bytes as f64;
        }
        row[PACKETS] = traits.packets as f64;
        row[EMPTY] = traits.empty as f64;
        row[FLOWS] = traits.flows as f64;
        row[MEAN] = traits.bytes as f64 - self.mean_len * traits.packets as f64;
        (0..ROWS).for_each(|line| row[line] /= self.scale[line]);
        row
    }
}

/// The counts where each category has its bytes from all its captures alike. A capture belongs to the category of
/// most of its bytes.
fn even_counts(captures: &[Traits], goal: &Goal, wanted_bytes: f64) -> Vec<f64> {
    let main = |traits: &Traits| {
        (0..category::COUNT).max_by_key(|at| traits.by_category[*at]).unwrap_or(0)
    };
    let mut bytes = [0u64; category::COUNT];
    for traits in captures {
        bytes[main(traits)] += traits.bytes;
    }
    let count = |traits| {
        goal.shares[main(traits)] / 100.0 * wanted_bytes / bytes[main(traits)].max(1) as f64
    };
    captures.iter().map(|traits| count(traits).max(0.01)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn traits(category: Category, packets: u64, mean: u64, flows: u64) -> Traits {
        let mut by_category = [0; category::COUNT];
        by_category[category as usize] = packets * mean;
        Traits { packets, bytes: packets * mean, empty: packets / 2, flows, by_category }
    }

    /// A small and a large capture of each category.
    fn varied() -> Vec<Traits> {
        let both = |category| [traits(category, 12, 260, 2), traits(category, 300, 780, 9)];
        Category::ALL.into_iter().flat_map(both).collect()
    }

    #[test]
    fn a_goal_that_can_be_met_is_met() {
        let captures = varied();
        let counts = plan(&captures, &Goal::mix());
        assert_eq!(Goal::mix().missed(&total(&captures, &counts)), Vec::<String>::new());
        assert!(counts.iter().all(|count| *count >= 1), "{counts:?}");
    }

    #[test]
    fn each_bound_of_the_goal_is_checked() {
        let captures = varied();
        let good = total(&captures, &plan(&captures, &Goal::mix()));
        let missed = |change: fn(&mut Traits)| {
            let mut made = good;
            change(&mut made);
            Goal::mix().missed(&made).len()
        };
        assert_eq!(missed(|_| ()), 0);
        assert_eq!(missed(|made| made.by_category[Category::Ssh as usize] *= 3), 1, "too much SSH");
        assert_eq!(
            missed(|made| made.by_category[Category::Tls as usize] /= 2),
            1,
            "too little TLS"
        );
        assert_eq!(missed(|made| made.flows = 99_999), 1);
        assert_eq!(missed(|made| made.empty = made.packets * 39 / 100), 1);
        assert_eq!(
            missed(|made| (made.packets, made.bytes) = (2_000_000, 1_200_000_000)),
            1,
            "too many packets"
        );
    }

    #[test]
    fn a_goal_that_cannot_be_met_is_said_to_be_missed() {
        let mut captures = varied();
        captures.retain(|traits| traits.by_category[Category::Tls as usize] == 0);
        let counts = plan(&captures, &Goal::mix());
        let missed = Goal::mix().missed(&total(&captures, &counts));
        assert!(missed.iter().any(|line| line.starts_with("percent of tls: 0.00")), "{missed:?}");
        assert_eq!(plan(&[], &Goal::mix()), [0u32; 0]);
    }
}
