//! Runs over all combinations of values: tools, sizes, rates, and whatever options a tool has.

use std::path::Path;
use std::time::Duration;

use crate::bed::Bed;
use crate::load::Load;
use crate::stop::{Stop, Why};
use crate::tools::{Setting, Tool};
use crate::trial::{self, Trial};

/// What a run takes beside the time that frames are sent.
const AROUND: Duration = Duration::from_secs(3);

/// A run that proves nothing is repeated so often.
const TRIED: u32 = 3;

/// Values of an option that are to be tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axis {
    /// The option's long name.
    pub name: String,
    /// Its values.
    pub values: Vec<String>,
}

/// One combination.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Point {
    /// The tool's name.
    pub tool: String,
    /// Other values of its options.
    pub settings: Vec<Setting>,
    /// What is sent.
    pub load: Load,
    /// Which of its repetitions it is, from 0.
    pub repetition: u32,
}

/// A run of a point.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Run {
    /// The point.
    pub point: Point,
    /// What was counted.
    pub trial: Trial,
}

/// What is to be tried.
#[derive(Clone, Debug)]
pub struct Plan<'a> {
    /// What captures.
    pub tools: &'a [Tool],
    /// Bytes of frames.
    pub sizes: &'a [u32],
    /// Frames a second; `None` for as fast as possible.
    pub rates: &'a [Option<f64>],
    /// Options of tools.
    pub axes: &'a [Axis],
    /// How long each run sends.
    pub time: Duration,
    /// How often each combination is run.
    pub repetitions: u32,
}

impl Plan<'_> {
    /// How many points there are; `None` for more than any computer counts.
    #[must_use]
    pub fn number(&self) -> Option<usize> {
        let values = self.axes.iter().map(|axis| axis.values.len());
        let lists =
            [self.tools.len(), self.sizes.len(), self.rates.len(), self.repetitions as usize];
        lists.into_iter().chain(values).try_fold(1, usize::checked_mul)
    }

    /// All points. Repetitions are rounds over all others, so that a disturbance does not meet all runs of a point.
    #[must_use]
    pub fn points(&self) -> Vec<Point> {
        let mut settings = vec![Vec::new()];
        for Axis { name, values } in self.axes {
            let with = |before: &Vec<Setting>, value: &String| {
                let setting = Setting { name: name.clone(), value: value.clone() };
                before.iter().cloned().chain([setting]).collect()
            };
            settings = settings
                .iter()
                .flat_map(|before| values.iter().map(move |value| with(before, value)))
                .collect();
        }
        let mut points = Vec::new();
        for repetition in 0..self.repetitions {
            for tool in self.tools {
                for settings in &settings {
                    for &size in self.sizes {
                        points.extend(self.rates.iter().map(|&rate| Point {
                            tool: tool.name.clone(),
                            settings: settings.clone(),
                            load: Load { size, rate, time: self.time },
                            repetition,
                        }));
                    }
                }
            }
        }
        points
    }

    /// How long so many points take, where nothing is repeated.
    #[must_use]
    pub fn duration(&self, points: usize) -> Duration {
        (self.time + AROUND) * u32::try_from(points).unwrap_or(u32::MAX)
    }
}

/// Runs a point until a run proves something, three times at most; `tell` hears of each run.
///
/// # Errors
///
/// Where the tool or the generator cannot be run, or the tool has no such option.
pub fn run(
    bed: &Bed,
    netsniff: &Path,
    (tools, point): (&[Tool], &Point),
    stop: &Stop<'_>,
    tell: &mut dyn FnMut(Run) -> anyhow::Result<()>,
) -> anyhow::Result<Option<Why>> {
    let tool = tools.iter().find(|tool| tool.name == point.tool);
    let tool = tool.ok_or_else(|| anyhow::anyhow!("there is no tool {}", point.tool))?;
    let tool = tool.with(&point.settings).map_err(anyhow::Error::msg)?;
    for _ in 0..TRIED {
        if let Some(why) = stop.before(point.load.time + AROUND) {
            return Ok(Some(why));
        }
        let trial = match trial::run(bed, netsniff, &tool, &point.load) {
            // A signal of the terminal reaches tool and generator, too.
            _ if stop.is_set() => return Ok(Some(Why::Signal)),
            result => result?,
        };
        let is_valid = trial.is_valid();
        tell(Run { point: point.clone(), trial })?;
        if is_valid {
            break;
        }
    }
    Ok(None)
}

/// The points of a plan that have no run that proves something yet, nor three that do not.
#[must_use]
pub fn left(points: Vec<Point>, runs: &[Run]) -> Vec<Point> {
    let is_done = |point: &Point| {
        let mut tried = 0;
        runs.iter().filter(|run| run.point == *point).any(|run| {
            tried += 1;
            run.trial.is_valid() || tried >= TRIED
        })
    };
    points.into_iter().filter(|point| !is_done(point)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::Fault;

    fn axis(name: &str, values: [&str; 2]) -> Axis {
        Axis { name: name.to_owned(), values: values.map(str::to_owned).to_vec() }
    }

    #[test]
    fn every_combination_comes_once_in_every_round() {
        let plan = Plan {
            tools: &Tool::all()[..2],
            sizes: &[64, 128, 512],
            rates: &[Some(1e5), None],
            axes: &[axis("ring", ["2M", "64M"]), axis("snaplen", ["96", "65535"])],
            time: Duration::from_secs(10),
            repetitions: 2,
        };
        let points = plan.points();
        assert_eq!(points.len(), 2 * 3 * 2 * 4 * 2);
        assert_eq!(plan.number(), Some(points.len()));
        for (number, point) in points.iter().enumerate() {
            assert_eq!(points.iter().position(|other| other == point), Some(number), "{point:?}");
            assert_eq!(point.repetition as usize, number / 48);
        }
        assert_eq!(plan.duration(points.len()), Duration::from_secs(96 * 13));
        let json = serde_json::to_string(&points).unwrap();
        assert_eq!(serde_json::from_str::<Vec<Point>>(&json).unwrap(), points);
    }

    #[test]
    fn what_was_proved_is_not_run_again() {
        let plan = Plan {
            tools: &Tool::all()[..1],
            sizes: &[64],
            rates: &[Some(1e5), Some(2e5), Some(3e5)],
            axes: &[],
            time: Duration::from_secs(1),
            repetitions: 1,
        };
        let points = plan.points();
        let run = |at: usize, faults: &[Fault]| {
            let trial = Trial { faults: faults.to_vec(), ..Trial::default() };
            Run { point: points[at].clone(), trial }
        };
        let (good, bad) = (run(0, &[]), run(1, &[Fault::Rate]));
        let runs = [bad.clone(), good, bad.clone()];
        assert_eq!(left(points.clone(), &runs), points[1..]);
        let thrice = [&runs[..], &[bad]].concat();
        assert_eq!(left(points.clone(), &thrice), points[2..]);
    }
}
