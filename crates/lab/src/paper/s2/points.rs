//! The nine key points that S2 sums itself up in (PAPERS C20), each with the claim that it is judged by.
//!
//! PAPERS counts the points and does not quote them, so they are derived from its rows of S2: a point for each figure, where
//! figures 7 and 8 are one comparison of analyses with and without parsers, and the two findings that it cites from the text
//! beside the figures as conclusions (X7, X8): the cost of anonymisation, and the order of packets on Linux.

use super::super::Score;

/// Where the claim of each point stands, in the order of the points.
const SOURCES: [&str; 9] = [
    "S2 fig. 1; C6",
    "S2 fig. 2; A6, C7",
    "S2 fig. 3; C8",
    "S2 fig. 4; C9",
    "S2 fig. 5; C10",
    "S2 fig. 6; C11",
    "S2 fig. 7; C12",
    "S2; A15",
    "S2; C15",
];

/// Gives the claims of key points their numbers, from 1.
pub(super) fn number(scores: &mut [Score]) {
    for score in scores {
        let at = SOURCES.iter().position(|source| *source == score.source);
        score.point = at.and_then(|at| u32::try_from(at + 1).ok());
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::{Results, tests};

    #[test]
    fn every_key_point_has_one_claim() {
        let scores = super::super::judge(&Results::default(), &tests::scale(true));
        let mut points: Vec<_> = scores.iter().filter_map(|score| score.point).collect();
        points.sort_unstable();
        assert_eq!(points, (1..=9).collect::<Vec<_>>());
        assert!(scores.len() > points.len(), "other claims have no number");
    }
}
