//! `netsniff lab offline`: how fast capture files are analysed, by stage, by option and beside other programs.

mod text;

use std::fs;
use std::io::stdout;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Context as _;
use netsniff_console::{DONE, FAILED, UsageError, print, quantity, say};
use serde::{Deserialize, Serialize};

use super::Program;
use super::common::{self, Head};
use crate::host::storage::Storage;
use crate::offline::figures::{Change, Figures, StageCost};
use crate::offline::peers::{PEERS, Peer};
use crate::offline::rounds::{Rounds, usual_scratch};
use crate::offline::subject::{OfflineSubject, Stage, Variant};
use crate::offline::{StoredCapture, StoredOutcome};
use crate::report::sections;
use crate::stop::Stop;

/// How fast capture files are analysed here: by stage, by option, and beside other programs
///
/// Nothing is captured, and no root is needed. Every run is a process of its own on one processor; rounds have each of them
/// once, and the first round counts for nothing.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    netsniff lab offline web.pcapng -o offline\n  \
    netsniff lab offline web.pcapng --workers 1,2,4\n  \
    netsniff lab offline web.pcapng --with 'prefix-preserving=-a' --with 'full=-a -m nullip'\n  \
    netsniff lab offline web.pcapng --peers tcpdump,softflowd --json\n\n\
    -o makes the directory, with offline.html, a report with plots, and offline.json and offline.csv, which have every\n\
    run.\n\n\
    Exit code: 0 fine; 1 failed, or ended before all was measured; 2 wrong usage")]
pub struct OfflineArgs {
    /// Capture files, pcap or pcapng, also packed; each is measured by itself
    #[arg(required = true, value_name = "FILE")]
    captures: Vec<PathBuf>,
    /// Rounds that count, behind one that does not
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000), default_value = "5")]
    rounds: u32,
    /// Numbers of workers that netsniff is also measured with, on as many processors; stages have one
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', value_parser = quantity::at_least_one, default_values = ["1"])]
    workers: Vec<usize>,
    /// Options of netsniff analyze whose cost is measured, with a name for them. OUT in them is a directory of scratch files;
    /// may be repeated
    #[arg(long, value_name = "NAME=OPTIONS", allow_hyphen_values = true, value_parser = Variant::parse)]
    with: Vec<Variant>,
    /// Other programs to measure: names with commas between, or none; all unless told. Those that are not installed are left
    /// out, which is said
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    peers: Vec<String>,
    /// A directory for what programs write, instead of memory: a disk is measured, too; nothing stays in it
    #[arg(long, value_name = "DIR", value_parser = common::directory)]
    files: Option<PathBuf>,
    /// Time that all of it may take; a round that would exceed it is not begun
    #[arg(long, value_name = "TIME", value_parser = quantity::interval)]
    budget: Option<Duration>,
    /// Print everything as JSON
    #[arg(long)]
    json: bool,
    /// A directory for the report
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Print nothing but the tables
    #[arg(short, long)]
    quiet: bool,
}

/// The file of everything that was measured.
pub(super) const OFFLINE: &str = "offline.json";

/// A build for debugging is slower by a factor that says nothing.
const DEBUG: &str =
    "this netsniff is a build without optimisation: its figures tell nothing of one that is used";

/// All that was measured.
#[derive(Debug, Serialize)]
struct Report<'a> {
    #[serde(flatten)]
    head: &'a Head<'a>,
    /// Seconds since 1970 when it began.
    began: u64,
    notes: &'a [String],
    files: Vec<OfFile<'a>>,
}

/// It as far as it is read again.
#[derive(Deserialize)]
struct StoredReport {
    files: Vec<StoredOutcome>,
}

/// What was measured of a file: figures, and the runs that they are from.
#[derive(Debug, Serialize)]
struct OfFile<'a> {
    figures: Vec<Figures>,
    stages: Vec<StageCost>,
    changes: Vec<Change>,
    #[serde(flatten)]
    outcome: &'a StoredOutcome,
}

impl<'a> OfFile<'a> {
    fn new(outcome: &'a StoredOutcome) -> Self {
        let figures = outcome.subjects.iter().filter_map(|subject| outcome.figures(subject));
        Self {
            figures: figures.collect(),
            stages: outcome.stages(),
            changes: outcome.changes(),
            outcome,
        }
    }
}

/// The content of `offline.json`.
///
/// # Errors
///
/// Where it has no form as JSON.
pub(super) fn json(
    head: &Head<'_>,
    began: u64,
    notes: &[String],
    outcomes: &[StoredOutcome],
) -> anyhow::Result<String> {
    let files = outcomes.iter().map(OfFile::new).collect();
    Ok(serde_json::to_string_pretty(&Report { head, began, notes, files })? + "\n")
}

/// What `offline.json` of a directory has of its first file.
///
/// # Errors
///
/// Where it cannot be read, with its name.
pub(super) fn read(directory: &Path) -> anyhow::Result<StoredOutcome> {
    let path = directory.join(OFFLINE);
    let name = path.display();
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {name}"))?;
    let StoredReport { files } = serde_json::from_str(&text)
        .with_context(|| format!("{name} is no report of this version"))?;
    files.into_iter().next().with_context(|| format!("{name} has no file"))
}

/// Seconds since 1970.
///
/// # Errors
///
/// Where the clock is before that.
pub(super) fn now() -> anyhow::Result<u64> {
    Ok(SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs())
}

/// Runs the command and returns its exit code.
///
/// # Errors
///
/// [`UsageError`], a file that cannot be measured, and whatever prevents runs.
pub(super) fn run(args: &OfflineArgs, program: Program) -> anyhow::Result<u8> {
    let (peers, left_out) = args.chosen()?;
    let subjects = args.subjects(&peers, program)?;
    let captures = args.captures.iter().map(|path| StoredCapture::read(path));
    let captures = captures.collect::<anyhow::Result<Vec<_>>>()?;
    let signal = common::signal()?;
    if let Some(directory) = &args.output {
        fs::create_dir(directory)
            .with_context(|| format!("cannot make {}", directory.display()))?;
    }
    let began = now()?;
    let head = args.head(&peers, &left_out, program);
    let stop = Stop::new(&signal, args.budget);
    let notes = args.notes(&captures);
    if !args.quiet {
        left_out.iter().for_each(|what| say(&format!("left out: {what}")));
        notes.iter().for_each(|note| say(note));
    }
    let scratch = args.scratch();
    let rounds =
        Rounds { number: args.rounds, subjects: &subjects, scratch: &scratch, stop: &stop };
    let mut outcomes = Vec::new();
    for capture in captures {
        let name = capture.path.display().to_string();
        let mut tell = |round: u32, took: Duration| {
            if !args.quiet {
                let took = common::in_words(took);
                say(&format!("{name}: round {round} of {} done in {took}", args.rounds));
            }
        };
        outcomes.push(rounds.measure(capture, &mut tell)?);
    }
    args.tell((&head, began, &notes), &outcomes)?;
    let is_whole = |outcome: &StoredOutcome| {
        outcome.ended.is_none() && subjects.iter().all(|it| outcome.failure(it).is_none())
    };
    Ok(if outcomes.iter().all(is_whole) { DONE } else { FAILED })
}

impl OfflineArgs {
    /// The other programs, and what is said of those that are not here.
    ///
    /// # Errors
    ///
    /// [`UsageError`] for an unknown one.
    fn chosen(&self) -> Result<(Vec<&'static Peer>, Vec<String>), UsageError> {
        let wanted: Vec<&'static Peer> = match &self.peers[..] {
            [] => PEERS.iter().collect(),
            [word] if word == "none" => Vec::new(),
            names => names
                .iter()
                .map(|name| {
                    let all = PEERS.map(|peer| peer.name).join(", ");
                    let unknown = format!("--peers: there is no {name}; there are {all}, or none");
                    Peer::of(name).ok_or(UsageError(unknown))
                })
                .collect::<Result<_, _>>()?,
        };
        let (here, missing): (Vec<&'static Peer>, Vec<&'static Peer>) =
            wanted.into_iter().partition(|it| it.is_here());
        let missing = missing.iter().map(|peer| format!("{}: not installed", peer.name));
        Ok((here, missing.collect()))
    }

    /// What is run.
    ///
    /// # Errors
    ///
    /// [`UsageError`] for options that netsniff does not take, and names that are the same.
    fn subjects(&self, peers: &[&Peer], program: Program) -> anyhow::Result<Vec<OfflineSubject>> {
        let (path, _) = super::programs()?;
        let path = path.display().to_string();
        let mut subjects = Stage::ALL.map(|stage| OfflineSubject::stage(stage, &path)).to_vec();
        let more = self.workers.iter().filter(|number| **number > 1);
        subjects.extend(more.map(|number| OfflineSubject::workers(*number, &path)));
        for variant in &self.with {
            if let Some(said) = (program.refusal)(&variant.trial_words()) {
                return Err(UsageError(format!("--with {}: {said}", variant.name)).into());
            }
            subjects.push(OfflineSubject::variant(variant, &path));
        }
        subjects.extend(peers.iter().map(|peer| OfflineSubject::peer(peer)));
        for (at, subject) in subjects.iter().enumerate() {
            if subjects[..at].iter().any(|other| other.name == subject.name) {
                let said = format!("{} is the name of two things: rename one", subject.name);
                return Err(UsageError(said).into());
            }
        }
        Ok(subjects)
    }

    fn scratch(&self) -> PathBuf {
        self.files.clone().unwrap_or_else(usual_scratch)
    }

    fn head<'a>(&self, peers: &[&Peer], left_out: &'a [String], program: Program) -> Head<'a> {
        let version = |peer: &&Peer| {
            let version = peer.version().unwrap_or_else(|| "version unavailable".to_owned());
            (peer.name.to_owned(), version)
        };
        let files = self.files.as_deref().map(Storage::of);
        common::head((&[], left_out), None, program)
            .with_programs(peers.iter().map(version).collect(), files)
    }

    /// What makes figures mean less than they seem to.
    fn notes(&self, captures: &[StoredCapture]) -> Vec<String> {
        let mut notes = Vec::new();
        if cfg!(debug_assertions) {
            notes.push(DEBUG.to_owned());
        }
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        if let Some(most) = self.workers.iter().max().filter(|most| **most > processors) {
            notes.push(format!("{most} workers share {processors} processors"));
        }
        let memory = crate::host::machine::Machine::here(&[]).memory.unwrap_or(u64::MAX);
        for capture in captures.iter().filter(|capture| capture.file_bytes > memory / 2) {
            let name = capture.path.display();
            notes
                .push(format!("{name} may not fit into the page cache: its disk is measured, too"));
        }
        notes
    }

    /// Prints what was measured, and writes it to the directory of -o.
    fn tell(
        &self,
        (head, began, notes): (&Head<'_>, u64, &[String]),
        outcomes: &[StoredOutcome],
    ) -> anyhow::Result<()> {
        let json = json(head, began, notes, outcomes)?;
        let sections: Vec<_> = outcomes.iter().flat_map(sections::offline).collect();
        let text = if self.json { json.clone() } else { text::text(&sections, head.left_out()) };
        if let Some(directory) = &self.output {
            common::write(directory, OFFLINE, &json)?;
            common::write(directory, "offline.csv", &text::csv(outcomes))?;
            let lead = format!(
                "How fast stored packets are processed on this machine, without a live capture, on {}.",
                text::day(began)
            );
            let mut page = head.page("Offline analysis", &lead, sections);
            page.lead.extend(notes.iter().cloned());
            common::write_page(directory, "offline", &page)?;
        }
        print(stdout(), &text).context("cannot print the tables")
    }
}
