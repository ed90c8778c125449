//! The experiments of the five papers that this project carries on, at the scale of this machine: each paper is a list of
//! sweeps and searches, of pictures of them, and of its claims, which are judged by what was seen here (PAPERS 1.1).
//!
//! Everything here is pure: from what the sender reaches to what is to be run, and from runs to scores.

mod coverage;
mod figure;
mod options;
mod picture;
mod results;
mod s0;
mod s1;
mod s2;
mod s3;
mod s4;
mod score;

use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use self::coverage::Coverage;
pub use self::figure::{Across, Figure, Quantity};
pub use self::options::quantity;
pub use self::picture::Picture;
pub use self::results::{Asked, Results, Selection};
pub use self::score::{ClaimVerdict, Score};
use crate::compare::rates::Group;
use crate::load::FCS_LEN;
use crate::offline::subject::Variant;
use crate::search::Goal;
use crate::search::lossless::Cell;
use crate::search::sweep::{Axis, Pace, Plan};
use crate::tools::{Setting, Tool};

/// A paper whose experiments can be repeated.
#[derive(Clone, Debug)]
pub struct Paper {
    /// The name that `lab paper` takes.
    pub name: &'static str,
    /// Who wrote it, what, and when.
    pub citation: &'static str,
    /// What it is about, and what was changed to repeat it here.
    pub about: &'static str,
    /// The experiments that are run.
    pub experiments: Vec<Experiment>,
    /// The figures that are drawn from them.
    pub figures: Vec<Figure>,
    /// Other pictures of them.
    pub pictures: Vec<Picture>,
    /// Judges the paper's claims by the results.
    pub judge: fn(&Results, &Scale) -> Vec<Score>,
}

/// Something that is run.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// Its name, also of its directory.
    pub name: &'static str,
    /// The figure or table of the paper that it repeats.
    pub title: &'static str,
    /// The tools that capture.
    pub tools: Vec<Tool>,
    /// Bytes of frames; of a trace its own are.
    pub sizes: Vec<u32>,
    /// What is done with them.
    pub kind: Kind,
}

/// How something is run.
#[derive(Clone, Debug)]
pub enum Kind {
    /// Runs over all combinations.
    Sweep(Sweep),
    /// Searches for the highest rate without loss.
    Search {
        /// How exact the rate must be.
        goal: Goal,
        /// The share that may be lost.
        tolerated: f64,
    },
    /// Analyses of sessions in a file, without and with other options in the same rounds.
    Offline {
        /// The options whose cost is asked for.
        variants: Vec<Variant>,
        /// Rounds that count.
        rounds: u32,
    },
}

/// The combinations of values that an experiment runs.
#[derive(Clone, Debug, Default)]
pub struct Sweep {
    /// How fast frames are sent.
    pub paces: Vec<Pace>,
    /// How long frames are sent in each run.
    pub times: Vec<Duration>,
    /// How often each combination is run.
    pub repetitions: u32,
    /// Whether the trace of sessions is sent instead of stamped frames.
    pub is_trace: bool,
    /// Options of the tools.
    pub axes: Vec<Axis>,
    /// Options of the sender.
    pub send: Vec<Axis>,
    /// Values of the testbed.
    pub host: Vec<Axis>,
}

impl Sweep {
    /// It as a plan; `trace` is the capture of sessions.
    #[must_use]
    pub fn plan<'a>(&'a self, of: &'a Experiment, trace: &'a Path) -> Plan<'a> {
        Plan {
            tools: &of.tools,
            sizes: &of.sizes,
            paces: &self.paces,
            capture: self.is_trace.then_some(trace),
            axes: &self.axes,
            send: &self.send,
            host: &self.host,
            times: &self.times,
            repetitions: self.repetitions,
        }
    }
}

/// What experiments are scaled by: the speed of the sender on this machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scale {
    /// Whether few and short runs are made.
    pub is_short: bool,
    /// Bytes of a frame, and how many a second the sender makes at most while something captures.
    pub frames: Vec<(u32, f64)>,
    /// Likewise of the trace's frames.
    pub trace: f64,
    /// Bytes of the trace's frames on average, frame check sequence included.
    pub trace_size: u32,
    /// Packets a second that `netsniff analyze` reads the trace with; `None` where that could not be measured.
    pub offline: Option<f64>,
    /// Runs of every point of a sweep; `None` for as many as the form has. Of one directory it may be raised.
    #[serde(skip)]
    pub repeat: Option<u32>,
}

impl Scale {
    /// Sizes of frames whose rates are needed.
    pub const SIZES: [u32; 4] = [SMALLEST, 256, 512, 1518];

    /// The sender's highest rate of frames of a size: of the nearest one that was measured.
    #[must_use]
    pub fn top(&self, size: u32) -> f64 {
        let nearest = self.frames.iter().min_by_key(|(known, _)| known.abs_diff(size));
        nearest.map_or(0.0, |(_, rate)| *rate)
    }

    /// Runs of a point.
    fn repetitions(&self) -> u32 {
        self.repeated(if self.is_short { 1 } else { 3 })
    }

    /// Runs of a point that has so many in either form.
    fn repeated(&self, usual: u32) -> u32 {
        self.repeat.unwrap_or(usual)
    }

    /// How long a run sends.
    fn times(&self) -> Vec<Duration> {
        vec![Duration::from_secs(if self.is_short { 2 } else { 10 })]
    }

    /// One list for the short form, another else.
    fn either<'a, T>(&self, short: &'a [T], all: &'a [T]) -> &'a [T] {
        if self.is_short { short } else { all }
    }

    /// Rates: parts of a highest one.
    fn parts(top: f64, parts: &[f64]) -> Vec<Pace> {
        parts.iter().map(|part| Pace::Rate((top * part).round())).collect()
    }
}

/// The smallest frame that any of the papers sends on a link with gaps (S3).
const SMALLEST: u32 = 72 + FCS_LEN;

/// What a threshold may lose: what a hundredth of it disturbs is no limit of a capture.
const TOLERATED: f64 = 0.001;

/// By how much the highest rates of the second tool are above those of the first; `None` where they have no size in common.
#[must_use]
pub fn improvement(cells: &[Cell], tools: [&str; 2]) -> Option<Group> {
    s4::improved(cells, tools)
}

/// THE list of papers.
#[must_use]
pub fn papers(scale: &Scale) -> Vec<Paper> {
    vec![s0::paper(scale), s1::paper(scale), s2::paper(scale), s3::paper(scale), s4::paper(scale)]
}

/// The names of papers that `lab paper` takes.
pub const NAMES: [&str; 5] = ["s0", "s1", "s2", "s3", "s4"];

/// Tools of THE list.
fn tools(names: &[&str]) -> Vec<Tool> {
    let all = Tool::all();
    names.iter().filter_map(|name| all.iter().find(|tool| tool.name == *name).cloned()).collect()
}

fn axis(name: &str, values: &[&str]) -> Axis {
    Axis { name: name.to_owned(), values: values.iter().map(|&value| value.to_owned()).collect() }
}

fn setting(name: &str, value: &str) -> Setting {
    Setting { name: name.to_owned(), value: value.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn scale(is_short: bool) -> Scale {
        let frames = Scale::SIZES.map(|size| (size, 1e6 - f64::from(size) * 100.0)).to_vec();
        Scale { is_short, frames, trace: 6e5, trace_size: 315, offline: Some(1e6), repeat: None }
    }

    /// Two rings that are one and the same in truth, since a ring has two blocks at least.
    fn rings_alike(points: &[crate::search::sweep::Point]) -> Option<(String, String)> {
        let bytes = |text: &str| crate::search::sweep::number(text).unwrap() as u64;
        let mut blocks = std::collections::BTreeMap::new();
        for point in points {
            let of = |name: &str| {
                point.settings.iter().find(|it| it.name == name).map(|it| it.value.clone())
            };
            let Some(ring) = of("ring").filter(|_| !point.tool.starts_with("dumpcap")) else {
                continue;
            };
            let block = bytes(&of("block").unwrap_or_else(|| "1M".to_owned()));
            let before = blocks.insert((bytes(&ring) / block).max(2), ring.clone());
            if let Some(before) = before.filter(|before| *before != ring) {
                return Some((before, ring));
            }
        }
        None
    }

    #[test]
    fn repetitions_are_of_every_sweep() {
        let numbers = |repeat| -> Vec<u32> {
            let papers = papers(&Scale { repeat, ..scale(true) });
            let experiments = papers.iter().flat_map(|paper| &paper.experiments);
            let of = |experiment: &Experiment| match &experiment.kind {
                Kind::Sweep(sweep) => Some(sweep.repetitions),
                Kind::Search { .. } | Kind::Offline { .. } => None,
            };
            experiments.filter_map(of).collect()
        };
        assert!(numbers(Some(5)).iter().all(|number| *number == 5) && numbers(None).contains(&1));
    }

    #[test]
    fn every_paper_can_be_planned_and_judged() {
        for is_short in [true, false] {
            let papers = papers(&scale(is_short));
            assert_eq!(papers.iter().map(|paper| paper.name).collect::<Vec<_>>(), NAMES);
            for paper in papers {
                for experiment in &paper.experiments {
                    assert!(!experiment.tools.is_empty(), "{}", experiment.name);
                    let Kind::Sweep(sweep) = &experiment.kind else { continue };
                    let plan = sweep.plan(experiment, Path::new("t"));
                    let points = plan.points();
                    assert!(plan.number() == Some(points.len()) && !points.is_empty());
                    assert!(!is_short || points.len() <= 90, "{} is not short", experiment.name);
                    assert_eq!(rings_alike(&points), None, "{}", experiment.name);
                    for point in points {
                        let tool = experiment.tools.iter().find(|it| it.name == point.tool);
                        tool.unwrap().with(&point.settings).unwrap();
                        crate::testbed::Layout::default().with(&point.host).unwrap();
                    }
                }
                for figure in &paper.figures {
                    for of in &figure.of {
                        let is_there = |it: &Experiment| it.name == *of;
                        assert!(paper.experiments.iter().any(is_there), "{of}");
                    }
                }
                let scores = (paper.judge)(&Results::default(), &scale(is_short));
                assert!(scores.len() >= 3, "{} claims something", paper.name);
                for score in scores {
                    assert_eq!(
                        score.verdict,
                        ClaimVerdict::Unavailable,
                        "nothing was seen: {score:?}"
                    );
                }
            }
        }
    }
}
