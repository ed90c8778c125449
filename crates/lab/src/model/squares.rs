//! Least squares without negative coefficients (Lawson and Hanson 1974), by the normal equations: there are few
//! coefficients, and all of them are near 1.

/// What counts as 0.
const NOTHING: f64 = 1e-10;

/// The sums that the coefficients follow from.
struct Sums {
    matrix: Vec<Vec<f64>>,
    right: Vec<f64>,
}

/// The coefficients, none below 0, with which the rows come nearest to the targets, each as heavy as its weight. A column
/// that is 0, or that others have the same of, gets 0.
pub(super) fn non_negative(
    rows: &[Vec<f64>],
    targets: &[f64],
    weights: &[f64],
    number: usize,
) -> Vec<f64> {
    let sums = Sums::of(rows, targets, weights, number);
    let mut found = vec![0.0; number];
    let mut used: Vec<usize> = Vec::new();
    let mut refused = vec![false; number];
    // Each round takes one more coefficient, and may give others up; it ends, but rounding is not to decide that.
    for _ in 0..10 * number {
        let gains = |at: usize| sums.right[at] - dot(&sums.matrix[at], &found);
        let free = (0..number).filter(|at| !used.contains(at) && !refused[*at]);
        let best = free.max_by(|one, other| gains(*one).total_cmp(&gains(*other)));
        let Some(best) = best.filter(|best| gains(*best) > NOTHING) else { break };
        used.push(best);
        if !sums.settle(&mut used, &mut found) {
            used.retain(|at| *at != best);
            found[best] = 0.0;
            refused[best] = true;
        }
    }
    found
}

pub(super) fn dot(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(one, other)| one * other).sum()
}

impl Sums {
    fn of(rows: &[Vec<f64>], targets: &[f64], weights: &[f64], number: usize) -> Self {
        let (mut matrix, mut right) = (vec![vec![0.0; number]; number], vec![0.0; number]);
        for ((row, target), weight) in rows.iter().zip(targets).zip(weights) {
            for at in 0..number {
                right[at] += weight * row[at] * target;
                for other in 0..number {
                    matrix[at][other] += weight * row[at] * row[other];
                }
            }
        }
        Self { matrix, right }
    }

    /// Goes to the best values of the coefficients that are used, and gives up those that would be negative; whether the
    /// equations tell them.
    fn settle(&self, used: &mut Vec<usize>, found: &mut [f64]) -> bool {
        while !used.is_empty() {
            let Some(best) = self.solved(used) else { return false };
            let step = |(at, best): (&usize, &f64)| {
                (*best <= 0.0).then(|| found[*at] / (found[*at] - best).max(f64::MIN_POSITIVE))
            };
            let Some(part) = used.iter().zip(&best).filter_map(step).reduce(f64::min) else {
                used.iter().zip(best).for_each(|(at, best)| found[*at] = best);
                return true;
            };
            for (at, best) in used.iter().zip(best) {
                found[*at] += part * (best - found[*at]);
            }
            let before = used.len();
            used.retain(|at| found[*at] > NOTHING);
            if used.len() == before {
                return true;
            }
            (0..found.len()).filter(|at| !used.contains(at)).for_each(|at| found[at] = 0.0);
        }
        true
    }

    /// The values of some coefficients where all others are 0, by elimination; `None` where they cannot be told apart.
    fn solved(&self, used: &[usize]) -> Option<Vec<f64>> {
        let row = |&at: &usize| {
            let mut row: Vec<_> = used.iter().map(|other| self.matrix[at][*other]).collect();
            row.push(self.right[at]);
            row
        };
        let mut rows: Vec<Vec<f64>> = used.iter().map(row).collect();
        for at in 0..rows.len() {
            let size = |row: &Vec<f64>| row[at].abs();
            let pivot = (at..rows.len())
                .max_by(|one, other| size(&rows[*one]).total_cmp(&size(&rows[*other])))?;
            rows.swap(at, pivot);
            let pivot = rows[at].clone();
            if pivot[at].abs() < NOTHING * self.matrix[used[at]][used[at]] {
                return None;
            }
            for (other, row) in rows.iter_mut().enumerate() {
                if other != at {
                    let times = row[at] / pivot[at];
                    row.iter_mut().zip(&pivot).for_each(|(to, from)| *to -= times * from);
                }
            }
        }
        Some(rows.iter().enumerate().map(|(at, row)| row[used.len()] / row[at]).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(rows: &[[f64; 3]], targets: &[f64]) -> Vec<f64> {
        let rows: Vec<_> = rows.iter().map(|row| row.to_vec()).collect();
        non_negative(&rows, targets, &vec![1.0; rows.len()], 3)
    }

    #[track_caller]
    fn near(found: &[f64], expected: [f64; 3]) {
        let is_near = found.iter().zip(expected).all(|(one, other)| (one - other).abs() < 1e-6);
        assert!(is_near, "{found:?}, not {expected:?}");
    }

    #[test]
    fn columns_that_are_nearly_alike_are_told_apart() {
        let rows = [[1.0, 1.001, 0.2], [1.0, 1.003, 0.1], [1.0, 0.999, 0.4], [1.0, 1.0, 0.3]];
        let planted = [0.5, 0.25, 2.0];
        let targets = rows.map(|row| dot(&row, &planted));
        near(&found(&rows, &targets), planted);
    }

    #[test]
    fn none_is_negative_and_the_rest_is_best() {
        // Without a bound the second would be -1.
        let rows = [[1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [1.0, 2.0, 0.0]];
        near(&found(&rows, &[3.0, 2.0, 1.0]), [2.0, 0.0, 0.0]);
        // The first alone is best of one, and would be negative beside the second: it is given up.
        near(&found(&[[3.0, 0.0, 0.0], [3.5, 1.0, 0.0]], &[-0.1, 1.5]), [0.0, 1.5, 0.0]);
        // Two that are the same share nothing: one has all of it.
        let rows = [[1.0, 1.0, 0.0], [2.0, 2.0, 1.0], [3.0, 3.0, 0.0]];
        let both = found(&rows, &[2.0, 5.0, 6.0]);
        assert!((both[0] + both[1] - 2.0).abs() < 1e-6 && (both[2] - 1.0).abs() < 1e-6, "{both:?}");
        near(&found(&rows, &[-1.0, -1.0, -1.0]), [0.0; 3]);
    }

    #[test]
    fn what_weighs_nothing_counts_for_nothing() {
        let rows = vec![vec![1.0], vec![1.0], vec![1.0]];
        let found = non_negative(&rows, &[2.0, 2.0, 99.0], &[1.0, 1.0, 0.0], 1);
        assert!((found[0] - 2.0).abs() < 1e-9, "{found:?}");
    }
}
