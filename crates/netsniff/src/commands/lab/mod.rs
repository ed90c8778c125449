//! `netsniff lab`: what this machine captures without loss, measured.

mod read;
mod work;

use netsniff_lab::commands::{LabCommand, Program};

use self::read::ReadArgs;
use self::work::WorkArgs;

/// Measure what this machine captures without loss, in network namespaces of its own, and how fast it analyses files
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    netsniff lab lossless --sizes 64,512,1518 -o r             netsniff beside tcpdump\n  \
    netsniff lab sweep --rates 100k:500k:50k -o s              losses at rates\n  \
    netsniff lab compare s:tcpdump-default s:record            two tools of a report\n  \
    netsniff lab paper all --short -o p                        five papers, repeated here\n  \
    netsniff lab offline web.pcapng -o f                       how fast a file is analysed, by stage\n  \
    netsniff lab predict -o m --rate 100k,300k --zip 6         what will be lost, said before\n  \
    netsniff lab damage --replay web.pcapng --simulate         how many flows a loss damages\n  \
    netsniff lab certify --key key.pem -o c                    a signed statement\n\n\
    Measuring live captures needs root, two processors, and ip (of iproute2). Nothing outside the namespaces\n\
    is sent to, and nothing is changed there but settings of the kernel that --host names, which\n\
    are put back. Everything is removed however it ends. Where --sender names another machine, it\n\
    sends from there, and nothing is changed on either.")]
pub struct LabArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    #[command(flatten)]
    Lab(Box<LabCommand>),
    Work(Box<WorkArgs>),
    #[command(hide = true)]
    Read(ReadArgs),
}

/// Runs the command and returns its exit code.
///
/// # Errors
///
/// [`UsageError`](netsniff_console::UsageError), and whatever prevents a testbed or a run.
pub fn run(args: &LabArgs, program: Program) -> anyhow::Result<u8> {
    match &args.command {
        Command::Lab(command) => netsniff_lab::commands::run(command, program),
        Command::Work(args) => work::run(args),
        Command::Read(args) => read::run(args),
    }
}
