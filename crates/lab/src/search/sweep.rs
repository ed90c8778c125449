//! Runs over all combinations of values: sizes, rates, and whatever options tools, generator and testbed have.

use std::path::Path;
use std::time::Duration;

use crate::load::Load;
use crate::stop::{Stop, Why};
use crate::testbed::Testbed;
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
    /// The values that it takes.
    pub values: Vec<String>,
}

/// How fast frames are sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// So many a second.
    Rate(f64),
    /// As fast as possible.
    Top,
    /// With so many bytes between them, on a link of so many bits a second (PAPERS E-10).
    Gap {
        /// Bytes between two frames.
        bytes: f64,
        /// Bits a second of the link.
        link: f64,
    },
}

/// Bytes of preamble and start delimiter before each frame (IEEE 802.3).
const PREAMBLE: f64 = 8.0;

impl Pace {
    /// Frames of so many bytes a second; `None` for as fast as possible.
    #[must_use]
    pub fn rate(self, size: u32) -> Option<f64> {
        match self {
            Self::Top => None,
            Self::Rate(rate) => Some(rate),
            Self::Gap { bytes, link } => Some(link / 8.0 / (f64::from(size) + PREAMBLE + bytes)),
        }
    }
}

/// One combination of tool, load and settings.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Point {
    /// Other values of the testbed.
    #[serde(default)]
    pub host: Vec<Setting>,
    /// Name of the tool that captures.
    pub tool: String,
    /// Other values of its options.
    pub settings: Vec<Setting>,
    /// The load that is sent.
    pub load: Load,
    /// Which of its repetitions it is, from 0.
    pub repetition: u32,
}

/// A run of a point.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Run {
    /// The combination that was run.
    pub point: Point,
    /// What was counted in the run.
    pub trial: Trial,
}

/// What is to be tried.
#[derive(Clone, Debug)]
pub struct Plan<'a> {
    /// The tools that capture.
    pub tools: &'a [Tool],
    /// Frame sizes in bytes.
    pub sizes: &'a [u32],
    /// How fast they are sent.
    pub paces: &'a [Pace],
    /// The capture that is sent, where it is not stamped frames.
    pub capture: Option<&'a Path>,
    /// Settings of the tools, with the values that they take.
    pub axes: &'a [Axis],
    /// Options of the generator.
    pub send: &'a [Axis],
    /// Values of the testbed.
    pub host: &'a [Axis],
    /// How long runs send.
    pub times: &'a [Duration],
    /// How often each combination is run.
    pub repetitions: u32,
}

/// All combinations of the values of some options.
fn combinations(axes: &[Axis]) -> Vec<Vec<Setting>> {
    let mut all = vec![Vec::new()];
    for Axis { name, values } in axes {
        let with = |before: &Vec<Setting>, value: &String| {
            let setting = Setting { name: name.clone(), value: value.clone() };
            before.iter().cloned().chain([setting]).collect()
        };
        all = all
            .iter()
            .flat_map(|before| values.iter().map(move |value| with(before, value)))
            .collect();
    }
    all
}

impl Plan<'_> {
    /// How many points there are; `None` for more than any computer counts.
    #[must_use]
    pub fn number(&self) -> Option<usize> {
        let axes = [self.axes, self.send, self.host].into_iter().flatten();
        let values = axes.map(|axis| axis.values.len());
        let lists = [self.tools.len(), self.sizes.len(), self.paces.len(), self.times.len()];
        let lists = lists.into_iter().chain([self.repetitions as usize]);
        lists.chain(values).try_fold(1, usize::checked_mul)
    }

    /// All points. Repetitions are rounds over all others, so that a disturbance does not meet all runs of a point;
    /// the testbed changes least often.
    #[must_use]
    pub fn points(&self) -> Vec<Point> {
        let [settings, sends, hosts] = [self.axes, self.send, self.host].map(combinations);
        let mut points = Vec::new();
        for repetition in 0..self.repetitions {
            for host in &hosts {
                for tool in self.tools {
                    for settings in &settings {
                        for send in &sends {
                            let loads = self.loads(send);
                            points.extend(loads.map(|load| Point {
                                host: host.clone(),
                                tool: tool.name.clone(),
                                settings: settings.clone(),
                                load,
                                repetition,
                            }));
                        }
                    }
                }
            }
        }
        points
    }

    fn loads(&self, send: &[Setting]) -> impl Iterator<Item = Load> {
        let pairs =
            self.sizes.iter().flat_map(|size| self.paces.iter().map(move |pace| (*size, pace)));
        let all = pairs.flat_map(|pair| self.times.iter().map(move |time| (pair, *time)));
        all.map(move |((size, pace), time)| Load {
            size,
            rate: pace.rate(size),
            time,
            options: send.to_vec(),
            capture: self.capture.map(Path::to_path_buf),
        })
    }
}

/// The options of a point that have numbers or sizes as values.
pub fn numbers(point: &Point) -> impl Iterator<Item = (&str, f64)> {
    let all = [&point.settings, &point.load.options, &point.host].into_iter().flatten();
    all.filter_map(|it| Some((it.name.as_str(), number(&it.value)?)))
}

/// A number, or a size as `64M` or `32K`, in bytes.
#[must_use]
pub fn number(text: &str) -> Option<f64> {
    let digits = text.trim_end_matches(char::is_alphabetic);
    let unit = match &text[digits.len()..] {
        "" => 1.0,
        "K" => 1024.0,
        "M" => 1_048_576.0,
        "G" => 1_073_741_824.0,
        _ => return None,
    };
    digits.parse::<f64>().ok().map(|value| value * unit)
}

/// How long points take, where nothing is repeated.
#[must_use]
pub fn duration(points: &[Point]) -> Duration {
    let times = points.iter().map(|point| point.load.time + AROUND);
    times.fold(Duration::ZERO, Duration::saturating_add)
}

/// Runs a point until a run proves something, three times at most; `report` hears of each run. A tool that does not begin, or has
/// no such option, is not tried again.
///
/// # Errors
///
/// Where no tool can be run on the testbed.
pub fn run(
    bed: &Testbed,
    netsniff: &Path,
    (tools, point): (&[Tool], &Point),
    stop: &Stop<'_>,
    report: &mut dyn FnMut(Run) -> anyhow::Result<()>,
) -> anyhow::Result<Option<Why>> {
    let tool = tools.iter().find(|tool| tool.name == point.tool);
    let tool = tool.ok_or_else(|| anyhow::anyhow!("there is no tool {}", point.tool))?;
    let tool = match tool.with(&point.settings) {
        Ok(tool) => tool,
        Err(why) => {
            let trial = Trial::unable(tool, &point.load, why);
            report(Run { point: point.clone(), trial })?;
            return Ok(None);
        }
    };
    for _ in 0..TRIED {
        if let Some(why) = stop.before(point.load.time + AROUND) {
            return Ok(Some(why));
        }
        let trial = match trial::attempt(bed, netsniff, &tool, &point.load) {
            // A signal of the terminal reaches tool and generator, too.
            _ if stop.is_set() => return Ok(Some(Why::Signal)),
            result => result?,
        };
        let is_final = trial.is_final();
        report(Run { point: point.clone(), trial })?;
        if is_final {
            break;
        }
    }
    Ok(None)
}

/// The points of a plan that have no run that proves something yet, nor one that cannot begin, nor three that prove nothing.
#[must_use]
pub fn left(points: Vec<Point>, runs: &[Run]) -> Vec<Point> {
    let is_done = |point: &Point| {
        let mut tried = 0;
        runs.iter().filter(|run| run.point == *point).any(|run| {
            tried += 1;
            run.trial.is_final() || tried >= TRIED
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
    fn sizes_are_numbers() {
        for (text, value) in [("32K", Some(32768.0)), ("9", Some(9.0)), ("1M", Some(1_048_576.0))] {
            assert_eq!(number(text), value);
        }
        assert_eq!((number("poll"), number("")), (None, None));
    }

    #[test]
    fn every_combination_comes_once_in_every_round() {
        let plan = Plan {
            tools: &Tool::all()[..2],
            sizes: &[64, 128, 512],
            paces: &[Pace::Rate(1e5), Pace::Top],
            capture: None,
            axes: &[axis("ring", ["2M", "64M"])],
            send: &[axis("burst", ["1", "32"])],
            host: &[],
            times: &[Duration::from_secs(10)],
            repetitions: 2,
        };
        let points = plan.points();
        assert_eq!(points.len(), 2 * 3 * 2 * 4 * 2);
        assert_eq!(plan.number(), Some(points.len()));
        for (number, point) in points.iter().enumerate() {
            assert_eq!(points.iter().position(|other| other == point), Some(number), "{point:?}");
            assert_eq!(point.repetition as usize, number / 48);
        }
        assert_eq!(duration(&points), Duration::from_secs(96 * 13));
        let json = serde_json::to_string(&points).unwrap();
        assert_eq!(serde_json::from_str::<Vec<Point>>(&json).unwrap(), points);
    }

    #[test]
    fn a_gap_on_a_link_is_a_rate() {
        // RFC 2544 appendix B: 14,880 frames of 64 bytes a second on a link of 10 Mbit/s, and 812 of 1518.
        let full = Pace::Gap { bytes: 12.0, link: 10e6 };
        assert_eq!(full.rate(64).map(f64::floor), Some(14_880.0));
        assert_eq!(full.rate(1518).map(f64::floor), Some(812.0));
    }

    #[test]
    fn the_testbed_changes_least_often() {
        let plan = Plan {
            tools: &Tool::all()[..2],
            sizes: &[64, 128],
            paces: &[Pace::Top],
            capture: None,
            axes: &[],
            send: &[],
            host: &[axis("placement", ["rps", "none"])],
            times: &[Duration::from_secs(1)],
            repetitions: 2,
        };
        let points = plan.points();
        assert_eq!(points.chunk_by(|one, other| one.host == other.host).count(), 4);
    }

    #[test]
    fn what_was_proved_is_not_run_again() {
        let plan = Plan {
            tools: &Tool::all()[..1],
            sizes: &[64],
            paces: &[Pace::Rate(1e5), Pace::Rate(2e5), Pace::Rate(3e5)],
            capture: None,
            axes: &[],
            send: &[],
            host: &[],
            times: &[Duration::from_secs(1)],
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
        let unable = [&runs[..2], &[run(1, &[Fault::Unable])]].concat();
        assert_eq!(left(points.clone(), &unable), points[2..], "it would not begin again");
        let failed = [&runs[..1], &[run(1, &[Fault::Failed])]].concat();
        assert_eq!(left(points.clone(), &failed), points, "it may not fail again");
    }
}
