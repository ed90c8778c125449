//! The commands of `netsniff lab`: arguments, tables and files around what is measured.

mod campaign;
mod certify;
mod common;
mod compare;
mod csv;
mod damage;
mod journal;
mod lossless;
mod offline;
mod paper;
mod predict;
mod question;
mod reports;
mod scale;
mod sweep;
mod table;
mod tune;
mod wire;

use anyhow::Context as _;
use netsniff_console::DONE;

use self::certify::CertifyArgs;
use self::compare::CompareArgs;
use self::damage::DamageArgs;
use self::lossless::LosslessArgs;
use self::offline::OfflineArgs;
use self::paper::PaperArgs;
use self::predict::PredictArgs;
use self::sweep::SweepArgs;
use crate::testbed;

pub use common::check;
pub use tune::{TuneArgs, run as tune};

/// What can be measured, compared and predicted.
#[derive(Debug, clap::Subcommand)]
#[expect(missing_docs, reason = "what stands at a variant is its help, which its arguments have")]
pub enum LabCommand {
    Lossless(LosslessArgs),
    Sweep(SweepArgs),
    Compare(CompareArgs),
    Damage(DamageArgs),
    Offline(OfflineArgs),
    Paper(PaperArgs),
    Predict(Box<PredictArgs>),
    Certify(CertifyArgs),
    /// Waits until standard input is closed, and removes a testbed
    #[command(hide = true)]
    Warden {
        /// Its name
        name: String,
    },
}

/// What the lab knows of the program that it is a part of, and that it runs as a process.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    /// The revision of its source; `None` where it was built without one.
    pub revision: Option<&'static str>,
    /// What is wrong with the arguments of one of its commands, in a sentence; `None` where nothing is.
    pub refusal: fn(&[String]) -> Option<String>,
    /// The words of this run, with what configuration files set of them.
    pub words: fn() -> Vec<String>,
}

/// Runs the command and returns its exit code.
///
/// # Errors
///
/// [`UsageError`](netsniff_console::UsageError), and whatever prevents a testbed or a run.
pub fn run(command: &LabCommand, program: Program) -> anyhow::Result<u8> {
    match command {
        LabCommand::Certify(args) => certify::run(args),
        LabCommand::Lossless(args) => lossless::run(args, program),
        LabCommand::Offline(args) => offline::run(args, program),
        LabCommand::Paper(args) => paper::run(args, program),
        LabCommand::Predict(args) => predict::run(args, program),
        LabCommand::Sweep(args) => sweep::run(args, program),
        LabCommand::Compare(args) => compare::run(args, program),
        LabCommand::Damage(args) => damage::run(args, program),
        LabCommand::Warden { name } => testbed::watch(name).map(|()| DONE),
    }
}

/// This program, and how it removes testbeds.
fn programs() -> anyhow::Result<(std::path::PathBuf, Vec<String>)> {
    let program = std::env::current_exe().context("cannot tell where this program is")?;
    let words = [&program.display().to_string(), "lab", "warden"].map(str::to_owned);
    Ok((program, words.to_vec()))
}
