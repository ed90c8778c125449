//! A claim of a paper, and what was seen of it here.

use serde::Serialize;

/// Whether a claim holds here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClaimVerdict {
    /// The results agree with the claim.
    Holds,
    /// The results contradict the claim.
    Fails,
    /// What would tell was not measured, or does not tell.
    Unavailable,
}

impl ClaimVerdict {
    /// The word for it in reports.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Fails => "does not hold",
            Self::Unavailable => "unavailable",
        }
    }
}

/// A claim and its verdict.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Score {
    /// What the paper says.
    pub claim: &'static str,
    /// Where, and under which number it stands in our list of requirements.
    pub source: &'static str,
    /// Its number among the key points that the paper sums itself up in, from 1; `None` where it is none of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub point: Option<u32>,
    /// What was seen here, in figures.
    pub seen: String,
    /// Whether the results agree with the claim.
    pub verdict: ClaimVerdict,
    /// What is missing of the experiments that it rests on, where something is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub coarse: Option<String>,
}

/// What was seen of a claim, in words, and whether it holds; `None` where what was seen does not tell. `None` altogether
/// where nothing was seen.
pub(super) type Seen = Option<(Option<bool>, String)>;

impl Score {
    /// A score of what was seen.
    pub(super) fn of(claim: &'static str, source: &'static str, seen: Seen) -> Self {
        let (holds, seen) =
            seen.unwrap_or_else(|| (None, "no run that proves something tells".to_owned()));
        let verdict = match holds {
            Some(true) => ClaimVerdict::Holds,
            Some(false) => ClaimVerdict::Fails,
            None => ClaimVerdict::Unavailable,
        };
        Self { claim, source, point: None, seen, verdict, coarse: None }
    }

    /// The verdict in words, and whether it rests on a part of the points.
    #[must_use]
    pub fn verdict_words(&self) -> String {
        let is_told = self.verdict != ClaimVerdict::Unavailable;
        let coarsely = if is_told && self.coarse.is_some() { ", coarsely" } else { "" };
        format!("{}{coarsely}", self.verdict.words())
    }

    /// What was seen, and what is missing of the experiments.
    #[must_use]
    pub fn seen_words(&self) -> String {
        match &self.coarse {
            Some(missing) => format!("{} (coarse: {missing})", self.seen),
            None => self.seen.clone(),
        }
    }
}

/// A share in percent.
pub(super) fn percent(share: f64) -> String {
    format!("{:.2} %", share * 100.0)
}

pub(super) fn rate(rate: f64) -> String {
    match rate {
        _ if rate >= 99_950.0 => format!("{:.0} k/s", rate / 1e3),
        _ if rate >= 1e3 => format!("{:.1} k/s", rate / 1e3),
        _ => format!("{rate:.0}/s"),
    }
}

pub(super) fn megabytes(bytes: f64) -> String {
    format!("{:.1} MB", bytes / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_seen_is_no_verdict() {
        assert_eq!(Score::of("x", "y", None).verdict, ClaimVerdict::Unavailable);
        let of = |holds| Score::of("x", "y", Some((holds, "seen".to_owned())));
        assert_eq!(of(Some(true)).verdict, ClaimVerdict::Holds);
        assert_eq!(of(Some(false)).verdict, ClaimVerdict::Fails);
        assert_eq!((of(None).verdict, of(None).seen.as_str()), (ClaimVerdict::Unavailable, "seen"));
        assert_eq!((rate(999.0), rate(12_340.0)), ("999/s".to_owned(), "12.3 k/s".to_owned()));
        assert_eq!((rate(123_400.0), percent(0.0123)), ("123 k/s".to_owned(), "1.23 %".to_owned()));
    }
}
