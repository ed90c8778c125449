//! Packets that are really lost: a capture is sent to a tap of the testbed, and what comes through is recorded.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use netsniff_console::{UsageError, say};

use super::capture::{self, Capture};
use crate::commands::{common, programs, table};
use crate::damage::{Damage, missing};
use crate::load::{FCS_LEN, Load};
use crate::stop::Stop;
use crate::testbed::tap::Tap;
use crate::testbed::{Layout, Testbed};
use crate::tools::{Setting, Tool};
use crate::trial::{self, Trial};

/// A run that proves nothing is repeated, so that there are at most so many.
const TRIED: u32 = 5;

/// What a run takes beside the time that frames are sent, and how much longer that may take.
const AROUND: Duration = Duration::from_secs(3);
const SPARE: Duration = Duration::from_secs(10);

pub(super) struct Lost<'a> {
    pub(super) capture: &'a Capture,
    pub(super) path: &'a Path,
    pub(super) rate: f64,
    pub(super) stop: &'a Stop<'a>,
    pub(super) is_quiet: bool,
}

pub(super) fn layout(tap: Tap) -> Layout {
    Layout { tap: Some(tap), ..Layout::default() }
}

impl Lost<'_> {
    /// So many rounds of each loss, or fewer where it ends before.
    ///
    /// # Errors
    ///
    /// [`UsageError`] for a capture that cannot be sent as it is, and whatever prevents a testbed or a run.
    pub(super) fn rounds(&self, losses: &[f64], repeat: u32) -> anyhow::Result<Vec<Vec<Damage>>> {
        self.fits()?;
        let number = losses.len() * repeat as usize;
        self.say(&format!(
            "{number} runs, about {} in all where nothing is repeated",
            common::in_words((self.time()? + AROUND) * u32::try_from(number).unwrap_or(u32::MAX))
        ));
        let record = Tool::all().into_iter().find(|tool| tool.name == "record");
        let record = record.context("there is no tool record")?;
        let (program, warden) = programs()?;
        let mut all = vec![Vec::new(); losses.len()];
        for (loss, rounds) in losses.iter().zip(&mut all) {
            let layout = layout(Tap { at: *loss, ..Tap::default() });
            let bed = Testbed::make(&warden, &layout)?.until(self.stop);
            for _ in 0..repeat {
                if let Some(damage) = self.round(&bed, &program, &record)? {
                    rounds.push(damage);
                } else if self.stop.before(self.time()? + AROUND).is_some() {
                    return Ok(all);
                }
            }
        }
        Ok(all)
    }

    /// Whether what is sent is what is in the file.
    fn fits(&self) -> Result<(), UsageError> {
        let Capture { has_more, cut, .. } = self.capture;
        let why = match (has_more, cut) {
            (false, 0) => return Ok(()),
            (true, _) => "it has more packets than are followed".to_owned(),
            (false, cut) => format!("{cut} of its packets were not captured whole"),
        };
        Err(UsageError(format!(
            "the capture cannot be lost from behind a tap: {why}; --simulate can"
        )))
    }

    fn time(&self) -> anyhow::Result<Duration> {
        let seconds = self.capture.digests.len() as f64 / self.rate;
        Duration::try_from_secs_f64(seconds).context("at this rate it takes for ever")
    }

    fn load(&self) -> anyhow::Result<Load> {
        let number = self.capture.digests.len().max(1) as u64;
        let size = u32::try_from(self.capture.bytes / number).unwrap_or(u32::MAX);
        let once = Setting { name: "loop".to_owned(), value: "1".to_owned() };
        let load = Load {
            size: size.saturating_add(FCS_LEN),
            rate: Some(self.rate),
            // Its last frame ends it.
            time: self.time()? * 2 + SPARE,
            capture: Some(self.path.to_owned()),
            ..Load::default()
        };
        Ok(load.with(&[once]))
    }

    /// One round; `None` where no run proves anything, or it is to end.
    fn round(
        &self,
        bed: &Testbed,
        program: &Path,
        record: &Tool,
    ) -> anyhow::Result<Option<Damage>> {
        let load = self.load()?;
        for _ in 0..TRIED {
            if self.stop.before(self.time()? + AROUND).is_some() {
                return Ok(None);
            }
            let mut came = Vec::new();
            let mut look = |file: &Path| {
                came = capture::digests(file)?;
                Ok(())
            };
            let trial = match trial::run_and(bed, program, record, &load, &mut look) {
                Ok(trial) => trial,
                // The signal of a terminal reaches the programs, too.
                Err(_) if self.stop.is_set() => return Ok(None),
                Err(error) => return Err(error),
            };
            self.say(&table::trial(&trial));
            self.is_all(&trial)?;
            // How even frames came does not matter, but that the tool lost none does.
            if trial.is_true_at_reached() && trial.is_lossless() {
                return self.damage(&trial, &came).map(Some);
            }
        }
        Ok(None)
    }

    fn is_all(&self, trial: &Trial) -> anyhow::Result<()> {
        let (sent, all) = (trial.sent, self.capture.digests.len());
        ensure!(
            sent == all as u64,
            "of the {all} packets of the capture {sent} could be sent; --simulate needs to send none"
        );
        Ok(())
    }

    fn damage(&self, trial: &Trial, came: &[u64]) -> anyhow::Result<Damage> {
        let missing = missing(&self.capture.digests, came);
        let missing = missing.context("frames came that were not sent, or in another order")?;
        let damage = self.capture.flows.damage(|at| missing[at]);
        let planted = trial.planted.map(|planted| planted.lost());
        ensure!(
            Some(damage.lost) == planted,
            "{} packets are missing, and the tap has lost {planted:?}",
            damage.lost
        );
        Ok(damage)
    }

    fn say(&self, text: &str) {
        if !self.is_quiet {
            say(text);
        }
    }
}
