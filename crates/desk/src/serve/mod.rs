//! `netsniff serve`: traffic in a browser. It reads logs, as the view in the terminal does, and sees no packet of what it shows.
//!
//! | module | concern |
//! |---|---|
//! | `args` | the arguments |
//! | `control` | what a browser may do, where it is let |
//! | `guard` | where it listens, and who may look |
//! | `analysis` | the analysis whose logs are shown, a process of its own |
//! | `watched` | what rows of intervals have told so far |
//! | `rows` | rows of logs by a condition, in order, a page at a time |
//! | `packets` | the packets of a connection, by `netsniff extract` |
//! | `site`, `answer`, `body` | what pages have in common, what is shown in place of one, and answers that are made while they are sent |
//! | `renewed` | what is made once for all who look, after each change |
//! | `pages`, `routes` | the pages, and where they are |

mod analysis;
mod answer;
mod args;
mod body;
mod control;
mod guard;
mod packets;
mod pages;
mod renewed;
mod routes;
mod rows;
mod site;
mod watched;

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Context as _;
use netsniff_console::unfinished::Unfinished;
use netsniff_console::{DONE, UsageError};
use rustix::fs::Mode;
use rustix::process::umask;
use tokio::signal::unix::{SignalKind, signal};

use self::analysis::Analysis;
use self::args::Kind;
pub use self::args::ServeArgs;
use self::guard::Guard;
use self::site::Site;
use self::watched::Watched;
use crate::logs::Folder;

/// Runs the command and returns its exit code.
///
/// # Errors
///
/// [`UsageError`], and what keeps it from showing anything.
pub fn run(args: &ServeArgs) -> anyhow::Result<u8> {
    let kind = args.kind()?;
    let scratch = match (&kind, &args.output) {
        (Kind::Logs, _) | (_, Some(_)) => None,
        _ => Some(scratch()?),
    };
    let directory = match (&scratch, &args.output, args.inputs.as_slice()) {
        (Some(scratch), ..) => scratch.path().join("logs"),
        (None, Some(output), _) => output.clone(),
        (None, None, [directory, ..]) => directory.clone(),
        (None, None, []) => anyhow::bail!("there is nothing to show"),
    };
    if kind == Kind::Logs && Folder::open(&directory)?.is_empty() {
        let said = format!("{} has no logs in lines of columns or JSON", directory.display());
        return Err(UsageError(said).into());
    }
    if kind == Kind::Captures && !files_of(&directory).is_empty() {
        let said = format!(
            "{} has logs: show them by netsniff serve {0}, or name another directory",
            directory.display()
        );
        return Err(UsageError(said).into());
    }
    let guard = args.listening.open()?;
    let watched = Watched::start(&directory).context("cannot start a thread")?;
    let site = Arc::new(Site::new(args, kind, directory.clone(), Arc::clone(&watched))?);
    // Started by the first thread: it ends with the one that started it.
    let analysis = match site.kind {
        Kind::Logs => None,
        Kind::Captures | Kind::Live => Some(analyse(args, &directory, watched)?),
    };
    let runtime = tokio::runtime::Runtime::new().context("cannot start threads")?;
    let result = runtime.block_on(serve(guard, Arc::clone(&site)));
    // Streams of events have no end of their own.
    runtime.shutdown_background();
    site.end();
    drop(analysis);
    result.map(|()| DONE)
}

fn analyse(args: &ServeArgs, directory: &Path, watched: Arc<Watched>) -> anyhow::Result<Analysis> {
    if args.output.is_none() {
        // The analysis makes the directory for the user that it becomes; nobody else is to read there.
        umask(Mode::RWXG | Mode::RWXO);
    }
    let words = args.analysis(directory);
    let (logs, before) = (directory.to_owned(), files_of(directory));
    let ended = move |is_good: bool, how| {
        // Logs of a run before are no logs of this one, whatever their names are now.
        let has_logs = !files_of(&logs).is_subset(&before);
        watched.end_analysis(how, is_good || has_logs);
    };
    Analysis::start(&words, directory, ended)
}

/// The files of logs in a directory, by device and inode.
fn files_of(directory: &Path) -> BTreeSet<(u64, u64)> {
    let Ok(folder) = Folder::open(directory) else { return BTreeSet::new() };
    let files = folder.logs().flat_map(|(_, files)| files);
    let data = files.filter_map(|file| fs::metadata(&file.path).ok());
    data.map(|data| (data.dev(), data.ino())).collect()
}

async fn serve(guard: Guard, site: Arc<Site>) -> anyhow::Result<()> {
    let mut term = signal(SignalKind::terminate()).context("cannot listen for signals")?;
    let mut int = signal(SignalKind::interrupt()).context("cannot listen for signals")?;
    let end = async move {
        tokio::select! { _ = term.recv() => {}, _ = int.recv() => {} }
    };
    let watched = Arc::clone(&site.watched);
    pages::dashboard::renew(&site);
    tokio::select! {
        result = guard.serve(routes::router(site), end) => result,
        how = watched.failure() => Err(anyhow::anyhow!("there is nothing to show: {how}")),
    }
}

/// A new directory, in which the analysis makes that of the logs for the user that it becomes.
fn scratch() -> anyhow::Result<Unfinished> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
    let name = format!("netsniff-serve-{}-{now}", std::process::id());
    let directory: PathBuf = std::env::temp_dir().join(name);
    let made = DirBuilder::new().mode(0o711).create(&directory);
    made.with_context(|| format!("cannot make the directory {}", directory.display()))?;
    Ok(Unfinished::new(directory))
}
