//! `netsniff lab certify`: a signed statement of what is captured without loss, and whether it still holds.

mod keys;
mod make;
mod text;
mod verify;

use std::path::PathBuf;
use std::time::Duration;

use netsniff_console::sizes::Sizes;
use netsniff_console::{UsageError, quantity};

use super::common::{Quota, directory, quota};
use super::wire::WireArgs;
use crate::certificate::facts::{Capture, Configuration};
use crate::host::machine::Machine;
use crate::host::nic::Nic;
use crate::host::storage::Storage;
use crate::testbed::{self, Layout, Placement, Sender, Wire};
use crate::tools::{Setting, Tool};

/// A signed statement of what this host captures without loss, and whether one still holds
///
/// Searches as `lab lossless` does, for one tool. What was confirmed is written down with the machine and the settings,
/// and signed with a key of yours. --verify looks at all of that again.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    openssl genpkey -algorithm ed25519 -out key.pem && chmod 600 key.pem\n  \
    openssl pkey -in key.pem -pubout -out key.pub.pem\n  \
    netsniff lab certify --key key.pem --sizes 64,512,1518 -o certificate\n  \
    netsniff lab certify --verify certificate/certificate.html --public key.pub.pem\n\n\
    -o makes the directory, with certificate.json, and certificate.html, which says the same to people; --verify takes\n\
    both, and no page that was altered.\n\n\
    Exit code: 0 all sizes are certified, or it holds; 1 not all are, or it does not hold; 2 wrong usage")]
pub struct CertifyArgs {
    /// A file with the key that signs: Ed25519, PKCS#8 in PEM, which nobody else can read
    #[arg(
        long,
        value_name = "FILE",
        required_unless_present = "verify",
        conflicts_with = "verify"
    )]
    key: Option<PathBuf>,
    /// What captures, of the list that `lab lossless --tools list` prints [default: record]
    #[arg(long, visible_alias = "tools", value_name = "NAME", conflicts_with_all = ["verify", "command"])]
    tool: Option<String>,
    /// Another tool: its name, and its command with IFACE and FILE in it, a capture file that it writes; --verify runs no
    /// command that a certificate names, but this one
    #[arg(long, value_name = "NAME=COMMAND", value_parser = Tool::of_command)]
    command: Option<Tool>,
    /// Another value of an option of the tool, by its long name, as ring=16M; may be repeated
    #[arg(long, value_name = "OPTION=VALUE", value_parser = setting)]
    set: Vec<Setting>,
    /// Bytes of frames, frame check sequence included [default: 64,512,1518]
    #[arg(long, value_name = "BYTES", conflicts_with = "verify")]
    sizes: Option<Sizes>,
    /// Who pays for receiving [default: rps, or as certified]
    #[arg(long, value_name = "WHERE", value_parser = Placement::parse)]
    placement: Option<Placement>,
    /// The share of its processor that a capture gets, as a slower host has it [default: all, or as certified]
    #[arg(long, value_name = "PERCENT", value_parser = quota)]
    quota: Option<Quota>,
    /// A directory for what the tool writes, instead of memory: a disk is certified, too; nothing stays in it
    #[arg(long, value_name = "DIR", value_parser = directory)]
    files: Option<PathBuf>,
    #[command(flatten)]
    wire: WireArgs,
    /// Time that all of it may take; what would exceed it is not begun
    #[arg(long, value_name = "TIME", value_parser = quantity::interval)]
    budget: Option<Duration>,
    /// A directory for the certificate
    #[arg(
        short,
        long,
        value_name = "DIR",
        required_unless_present = "verify",
        conflicts_with = "verify"
    )]
    output: Option<PathBuf>,
    /// Whether a certificate holds here and now: certificate.json, or its page, which must say what was signed
    #[arg(long, value_name = "CERTIFICATE")]
    verify: Option<PathBuf>,
    /// The public key that is trusted, in PEM; without it the certificate only agrees with the key that it names itself
    #[arg(long, value_name = "FILE", conflicts_with = "key")]
    public: Option<PathBuf>,
    /// Time of the runs at the certified rates, about
    #[arg(long, value_name = "TIME", value_parser = quantity::interval, conflicts_with = "key", default_value = "20s")]
    check: Duration,
    /// Look at the signature and at the machine alone
    #[arg(long, conflicts_with_all = ["key", "check"])]
    no_check: bool,
    /// Print what --verify found as JSON
    #[arg(long, conflicts_with = "key")]
    json: bool,
    /// Do not tell of runs
    #[arg(short, long)]
    quiet: bool,
}

/// `ring=16M`.
fn setting(text: &str) -> Result<Setting, String> {
    let (name, value) = text.split_once('=').ok_or("expected OPTION=VALUE")?;
    Ok(Setting { name: name.trim_start_matches('-').to_owned(), value: value.to_owned() })
}

/// Runs the command and returns its exit code.
///
/// # Errors
///
/// [`UsageError`], keys and certificates that cannot be read, and whatever prevents a testbed or a run.
pub(super) fn run(args: &CertifyArgs) -> anyhow::Result<u8> {
    match &args.verify {
        None => make::run(args),
        Some(path) => verify::run(args, path),
    }
}

impl CertifyArgs {
    /// The tool of this name, unless a command is given, with its settings.
    ///
    /// # Errors
    ///
    /// [`UsageError`] where there is none, or it has no such setting.
    fn tool(&self, name: &str) -> anyhow::Result<Tool> {
        let tool = match &self.command {
            Some(tool) => tool.clone(),
            None => named(name)?,
        };
        Ok(tool.with(&self.set).map_err(UsageError)?)
    }

    /// The testbed, where none of it is certified yet.
    ///
    /// # Errors
    ///
    /// [`UsageError`] for what is no matter of a wire between two machines.
    fn layout(&self) -> Result<Layout, UsageError> {
        let made = Layout { placement: self.placement.unwrap_or_default(), ..Layout::default() };
        let layout = self.wire.layout(self.placement.is_some())?.unwrap_or(made);
        Ok(Layout { quota: self.share(None), files: self.files.clone(), ..layout })
    }

    /// The share of a processor that is given, or else this one; `None` for all of it.
    fn share(&self, otherwise: Option<f64>) -> Option<f64> {
        self.quota.map_or(otherwise, |Quota(share)| share)
    }
}

/// A tool of the list.
fn named(name: &str) -> Result<Tool, UsageError> {
    let mut all = Tool::all();
    let Some(at) = all.iter().position(|tool| tool.name == name) else {
        let names: Vec<_> = all.iter().map(|tool| tool.name.as_str()).collect();
        let names = names.join(", ");
        let said = format!(
            "there is no tool {name}; there are {names}, and --command takes any other, as '{name}=PROGRAM -i IFACE -w FILE'"
        );
        return Err(UsageError(said));
    };
    Ok(all.swap_remove(at))
}

/// What else a rate depends on, which cannot always be looked at.
#[derive(Clone, Debug, Default)]
struct Environment {
    interfaces: Vec<Nic>,
    sender: Option<Sender>,
}

impl Environment {
    /// Those of a testbed.
    ///
    /// # Errors
    ///
    /// Where it cannot be made, or the other machine cannot send.
    fn of(warden: &[String], layout: &Layout) -> anyhow::Result<Self> {
        let sender = layout.wire.as_ref().map(Wire::look).transpose()?;
        Ok(Self { interfaces: testbed::interfaces(warden, layout)?, sender })
    }
}

/// Everything that a rate depends on, as it is now.
fn configuration(tool: &Tool, testbed: Layout, around: Environment) -> Configuration {
    let programs: Vec<_> = tool.program.iter().cloned().collect();
    let files = testbed.files.as_deref().map(Storage::of);
    let Environment { interfaces, sender } = around;
    Configuration {
        netsniff: env!("CARGO_PKG_VERSION").to_owned(),
        machine: Machine { files, interfaces, ..Machine::here(&programs) },
        testbed,
        sender,
        tool: Capture::of(tool),
    }
}
