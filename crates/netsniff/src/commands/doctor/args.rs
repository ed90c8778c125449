//! The arguments of `netsniff doctor`.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::PossibleValuesParser;
use clap::builder::TypedValueParser as _;
use netsniff_console::quantity::interval;
use netsniff_doctor::change::journal;
use netsniff_doctor::stage::StageId;
use netsniff_lab::commands::TuneArgs;

/// Why this host loses packets, and what to change: the way of a packet, stage by stage
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    netsniff doctor -i eth0                        watch for 5 s: what loses, what rules it, what to change\n  \
    netsniff doctor -i eth0 --apply --dry-run      the commands that an administrator would type\n  \
    netsniff doctor -i eth0 --apply --only backlog change what is advised for one stage\n  \
    netsniff doctor -i eth0 --apply --persist      likewise, and again after each start\n  \
    netsniff doctor --revert                       take everything back\n  \
    netsniff doctor -i eth0 --save facts.json      all that was read, for somebody else to look at\n  \
    netsniff doctor tune --goal 300k               search for settings by measuring, in namespaces\n  \
    netsniff doctor --buffers                      which knob rules which buffer\n\n\
    Exit code: 0 no counter that can be read shows a loss; 1 failed; 2 wrong usage; 4 packets were lost while it was watched")]
#[command(args_conflicts_with_subcommands = true)]
pub struct DoctorArgs {
    #[command(subcommand)]
    pub(super) command: Option<DoctorCommand>,
    /// The interface; unless told, the one on which packets are captured, else the one that received most
    #[arg(short, long, value_name = "IFACE", conflicts_with_all = ["from", "revert", "buffers"])]
    pub(super) interface: Option<String>,
    /// Watch for so long, as 10s
    #[arg(short, long, value_name = "TIME", default_value = "5s", value_parser = interval, conflicts_with_all = ["from", "revert", "buffers"])]
    pub(super) time: Duration,
    /// Do not look at packets: no elephants and no bursts are found, and no capture takes time of a processor
    #[arg(long)]
    pub(super) no_packets: bool,
    /// Print all counters and settings, also those of which there is nothing to say
    #[arg(long)]
    pub(super) all: bool,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
    /// Write a page with pictures to this file, too
    #[arg(long, value_name = "FILE", conflicts_with_all = ["revert", "buffers"])]
    pub(super) html: Option<PathBuf>,
    /// Write all that was read of the kernel and of drivers to this file, too
    #[arg(long, value_name = "FILE", conflicts_with_all = ["from", "revert", "buffers", "apply"])]
    pub(super) save: Option<PathBuf>,
    /// Diagnose what was saved, perhaps on another machine
    #[arg(long, value_name = "FILE", conflicts_with_all = ["apply", "revert", "buffers"])]
    pub(super) from: Option<PathBuf>,
    /// Make the changes that are advised, each with the command that an administrator would type
    #[arg(long, conflicts_with_all = ["revert", "buffers", "json"])]
    pub(super) apply: bool,
    /// Change settings of these stages alone, with commas between
    #[arg(long, value_name = "STAGES", requires = "apply", value_delimiter = ',', value_parser = stages())]
    pub(super) only: Vec<StageId>,
    /// Print what would be changed, and change nothing
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Keep what --apply has changed after a restart: files of sysctl.d, udev or systemd
    #[arg(long, conflicts_with_all = ["from", "revert", "buffers"])]
    pub(super) persist: bool,
    /// Take back everything that --apply and --persist have done
    #[arg(long, conflicts_with = "buffers")]
    pub(super) revert: bool,
    /// Take back also what somebody else has changed since
    #[arg(long, requires = "revert")]
    pub(super) force: bool,
    /// Where the journal of changes is
    #[arg(long, value_name = "DIR", default_value = journal::FOLDER)]
    pub(super) state: PathBuf,
    /// Print which knob rules which buffer
    #[arg(long)]
    pub(super) buffers: bool,
}

/// What else a doctor does.
#[derive(Debug, clap::Subcommand)]
pub(super) enum DoctorCommand {
    Tune(Box<TuneArgs>),
}

fn stages() -> impl clap::builder::TypedValueParser<Value = StageId> {
    let names = PossibleValuesParser::new(StageId::ALL.map(StageId::id));
    names.map(|name| *StageId::ALL.iter().find(|id| id.id() == name).unwrap_or(&StageId::Wire))
}
