//! `netsniff lab`: what this machine captures without loss, measured.

mod campaign;
mod certify;
mod common;
mod compare;
mod comparison;
mod csv;
mod damage;
mod journal;
mod lossless;
mod paper;
mod predict;
mod question;
mod reports;
mod scale;
mod sweep;
mod table;
mod wire;
mod work;

use anyhow::Context as _;
use netsniff_console::DONE;
use netsniff_lab::bed;

use self::certify::CertifyArgs;
use self::compare::CompareArgs;
use self::damage::DamageArgs;
use self::lossless::LosslessArgs;
use self::paper::PaperArgs;
use self::predict::PredictArgs;
use self::sweep::SweepArgs;
use self::work::WorkArgs;

/// Measure what this machine captures without loss, in network namespaces of its own
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    netsniff lab lossless --sizes 64,512,1518 -o r             netsniff beside tcpdump\n  \
    netsniff lab sweep --rates 100k:500k:50k -o s              losses at rates\n  \
    netsniff lab compare s:tcpdump-default s:record            two tools of a report\n  \
    netsniff lab paper all --short -o p                        five papers, repeated here\n  \
    netsniff lab predict -o m --rate 100k,300k --zip 6         what will be lost, said before\n  \
    netsniff lab damage --replay web.pcapng --simulate         how many flows a loss damages\n  \
    netsniff lab certify --key key.pem -o c                    a signed statement\n\n\
    Measuring needs root, two processors, and ip (of iproute2). Nothing outside the namespaces\n\
    is sent to, and nothing is changed there but settings of the kernel that --host names, which\n\
    are put back. Everything is removed however it ends. Where --sender names another machine, it\n\
    sends from there, and nothing is changed on either.")]
pub struct LabArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    Lossless(LosslessArgs),
    Sweep(SweepArgs),
    Compare(CompareArgs),
    Damage(DamageArgs),
    Paper(PaperArgs),
    Predict(Box<PredictArgs>),
    Certify(CertifyArgs),
    Work(WorkArgs),
    /// Waits until standard input is closed, and removes a testbed
    #[command(hide = true)]
    Warden {
        /// Its name
        name: String,
    },
}

/// Runs the command and returns its exit code.
///
/// # Errors
///
/// [`UsageError`](netsniff_console::UsageError), and whatever prevents a testbed or a run.
pub fn run(args: &LabArgs) -> anyhow::Result<u8> {
    match &args.what {
        What::Certify(args) => certify::run(args),
        What::Lossless(args) => lossless::run(args),
        What::Paper(args) => paper::run(args),
        What::Predict(args) => predict::run(args),
        What::Sweep(args) => sweep::run(args),
        What::Work(args) => work::run(args),
        What::Compare(args) => compare::run(args),
        What::Damage(args) => damage::run(args),
        What::Warden { name } => bed::watch(name).map(|()| DONE),
    }
}

/// This program, and how it removes testbeds.
fn programs() -> anyhow::Result<(std::path::PathBuf, Vec<String>)> {
    let program = std::env::current_exe().context("cannot tell where this program is")?;
    let words = [&program.display().to_string(), "lab", "warden"].map(str::to_owned);
    Ok((program, words.to_vec()))
}
