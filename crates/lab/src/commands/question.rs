//! What `netsniff lab predict` is asked: all combinations of some values.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use clap::builder::PossibleValuesParser;
use netsniff_analysis::Depth;
use netsniff_console::number::exact;
use netsniff_console::sizes::Sizes;
use netsniff_console::{UsageError, quantity, say};

use super::csv::words;
use crate::model::Model;
use crate::model::predict::Question;
use crate::model::traffic::Traffic;
use crate::tools::Setting;
use crate::work::{Cost, MOST_LEVEL};

/// What is asked: all combinations.
#[derive(Debug, clap::Args)]
pub(super) struct QuestionArgs {
    /// Frames a second; several with commas between them
    #[arg(long, value_name = "RATES", value_delimiter = ',', value_parser = quantity::rate)]
    pub(super) rate: Vec<f64>,
    /// Bytes of frames, frame check sequence included
    #[arg(long, value_name = "BYTES", default_value = "512")]
    pub(super) size: Sizes,
    /// Frames that leave together, as fast as the sender can
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "32",
          value_parser = clap::value_parser!(u32).range(1..))]
    burst: Vec<u32>,
    /// Bytes of the ring
    #[arg(long = "ring", visible_alias = "buffer", value_name = "SIZES", value_delimiter = ',',
          default_value = "64M", value_parser = quantity::size)]
    rings: Vec<usize>,
    /// What `lab work` does for each packet: compress it with this level of zlib
    #[arg(long, visible_alias = "load", value_name = "LEVELS", value_delimiter = ',',
          value_parser = clap::value_parser!(u32).range(..=i64::from(MOST_LEVEL)))]
    pub(super) zip: Vec<u32>,
    /// What `lab work` does for each packet: take so long
    #[arg(long, value_name = "TIME", conflicts_with = "zip", value_parser = quantity::interval)]
    pub(super) delay: Option<Duration>,
    /// How deep `analyze` goes, as its --depth has it; several with commas between them. Each that is asked has costs of
    /// its own in the model
    #[arg(long, value_name = "DEPTHS", value_delimiter = ',', value_parser = depths(), conflicts_with = "plan")]
    pub(super) depth: Vec<String>,
    /// How long frames are sent
    #[arg(long, value_name = "TIME", value_parser = quantity::interval, default_value = "3s")]
    pub(super) time: Duration,
    /// The traffic is this capture, again and again, instead of stamped frames: as it was recorded, where --rate does not
    /// say how fast
    #[arg(long, value_name = "FILE", conflicts_with_all = ["size", "plan"])]
    pub(super) replay: Option<PathBuf>,
    /// Keep the recorded gaps, scaled to the rates of --rate, instead of even ones
    #[arg(long, conflicts_with = "burst")]
    pub(super) keep_gaps: bool,
}

/// What `analyze --depth` takes.
fn depths() -> PossibleValuesParser {
    PossibleValuesParser::new(Depth::ALL.iter().map(|depth| depth.name()))
}

impl QuestionArgs {
    /// Sizes and rates, and whether recorded gaps are kept: of the capture, where there is one.
    fn paces(&self, traffic: Option<&Traffic>) -> (Vec<usize>, Vec<f64>, bool) {
        match traffic {
            None => (self.size.as_slice().to_vec(), self.rate.clone(), false),
            Some(traffic) => {
                let rates =
                    if self.rate.is_empty() { vec![traffic.rate()] } else { self.rate.clone() };
                let keeps_gaps = self.keep_gaps || self.rate.is_empty();
                (vec![traffic.size() as usize], rates, keeps_gaps)
            }
        }
    }

    /// Settings of the tool that its cost depends on: all that are asked for; none where it is as it comes.
    pub(super) fn variants(&self) -> Vec<Vec<Setting>> {
        let mut variants: Vec<Vec<Setting>> = Vec::new();
        for depth in &self.depth {
            let variant = vec![Setting { name: "depth".to_owned(), value: depth.clone() }];
            if !variants.contains(&variant) {
                variants.push(variant);
            }
        }
        if variants.is_empty() {
            variants.push(Vec::new());
        }
        variants
    }

    pub(super) fn questions(&self, traffic: Option<&Traffic>) -> Vec<Question> {
        let (sizes, rates, keeps_gaps) = self.paces(traffic);
        let mut costs: Vec<_> =
            self.zip.iter().map(|&zip| Cost { zip: Some(zip), delay: None }).collect();
        if costs.is_empty() {
            costs.push(Cost { zip: None, delay: self.delay });
        }
        let variants = self.variants();
        let applications =
            variants.iter().flat_map(|variant| costs.iter().map(move |cost| (variant, cost)));
        let mut questions = Vec::new();
        for (settings, &cost) in applications {
            for &ring in &self.rings {
                for &burst in &self.burst {
                    for &size in &sizes {
                        questions.extend(rates.iter().map(|&rate| Question {
                            size: u32::try_from(size).unwrap_or(u32::MAX),
                            rate,
                            burst,
                            keeps_gaps,
                            ring: ring as u64,
                            cost,
                            settings: settings.clone(),
                            seconds: self.time.as_secs_f64(),
                        }));
                    }
                }
            }
        }
        questions
    }
}

/// Frames of a question at most: more take too long to simulate.
const MOST_FRAMES: f64 = 5e7;

pub(super) const MOST_QUESTIONS: usize = 10_000;

/// What is said of a question about settings that a model was not tried with.
pub(super) fn unknown(question: &Question) -> String {
    let asked = match &question.settings[..] {
        [] => "the tool as it comes".to_owned(),
        settings => words(settings),
    };
    format!(
        "the model of the ledger does not know {asked}: it was not tried so, or lost nothing that the sender can send; \
         --calibrate makes a new one"
    )
}

/// Whether a question can be tried, and answered.
pub(super) fn fits(model: &Model, question: &Question) -> Result<(), UsageError> {
    if model.fit_with(&question.settings).is_none() {
        return Err(UsageError(unknown(question)));
    }
    let most = 1e9 / model.gap(question.size);
    if question.rate > most {
        let [rate, most] = [question.rate, most].map(|rate| exact(rate.round() as i128));
        let said = format!(
            "{rate} frames/s of {} bytes are more than the sender can send here, {most}",
            question.size
        );
        return Err(UsageError(said));
    }
    let due = match &model.traffic {
        Some(traffic) if question.keeps_gaps => traffic.due(question.rate, question.seconds),
        _ => question.rate * question.seconds,
    };
    if due > MOST_FRAMES {
        let said = format!(
            "more than {} frames in --time are too many to simulate",
            exact(MOST_FRAMES as i128)
        );
        return Err(UsageError(said));
    }
    Ok(())
}

/// Tells what of a capture is not as it was recorded.
pub(super) fn print_traffic(traffic: &Traffic) {
    let (path, all) = (traffic.path.display(), exact(traffic.packets.into()));
    if traffic.is_cut() {
        say(&format!(
            "{path} has {all} frames; predictions are of the first of them, again and again"
        ));
    }
    if traffic.left_out > 0 {
        let left_out = exact(traffic.left_out.into());
        say(&format!("{left_out} frames of {path} are too long to be sent, and are left out"));
    }
}

pub(super) fn seconds(question: &Question) -> anyhow::Result<Duration> {
    let time = Duration::try_from_secs_f64(question.seconds);
    time.with_context(|| format!("{} s of a prediction are no time", question.seconds))
}
