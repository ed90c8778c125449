//! Changes that are made, kept, and taken back.

use std::io::stdout;
use std::path::Path;

use anyhow::Context as _;
use netsniff_console::{DONE, FAILED, print, say};
use netsniff_doctor::change::journal::{self, Journal};
use netsniff_doctor::change::{self, Change, Reverted, persist as files};
use netsniff_doctor::diagnosis::Diagnosis;
use netsniff_doctor::kernel::Here;

use super::DoctorArgs;

/// Where files are that outlive a restart.
const ROOT: &str = "/";

fn told(line: &str) -> anyhow::Result<()> {
    print(stdout().lock(), &format!("{line}\n")).context("cannot write to standard output")
}

/// Makes what is advised.
pub(super) fn apply(args: &DoctorArgs, diagnosis: &Diagnosis) -> anyhow::Result<u8> {
    let changes = change::advised(diagnosis, &args.only);
    if changes.is_empty() {
        told("nothing is changed: nothing is advised")?;
    }
    if args.dry_run {
        for Change { setting, before, after } in &changes {
            told(&format!("would change ({before}): {}", setting.command(after)))?;
        }
        if args.persist {
            would_keep(args, &changes)?;
        }
        return Ok(DONE);
    }
    if changes.is_empty() && !args.persist {
        return Ok(DONE);
    }
    let mut journal = Journal::open(&args.state)?;
    let failed = make(&mut journal, &changes, args)?;
    if args.persist {
        keep(&journal)?;
    }
    Ok(if failed > 0 { FAILED } else { DONE })
}

/// Makes changes, and counts those that failed.
fn make(journal: &mut Journal, changes: &[Change], args: &DoctorArgs) -> anyhow::Result<usize> {
    let kernel = Here::open()?;
    let noted = journal.entries().len();
    let mut failed = 0;
    for change in changes {
        let Change { setting, before, after } = change;
        match change::apply(&kernel, journal, change) {
            Ok(()) => told(&format!("changed ({before}): {}", setting.command(after)))?,
            Err(why) => {
                failed += 1;
                say(&format!("{}: {why:#}", setting.command(after)));
            }
        }
    }
    if journal.entries().len() > noted {
        let state = match args.state.as_path() {
            usual if usual == Path::new(journal::FOLDER) => String::new(),
            state => format!(" --state {}", state.display()),
        };
        let path = journal.path().display();
        told(&format!("netsniff doctor --revert{state} takes it back ({path})"))?;
    }
    Ok(failed)
}

/// Keeps what was changed before.
pub(super) fn persist(args: &DoctorArgs) -> anyhow::Result<u8> {
    if args.dry_run {
        would_keep(args, &[])?;
    } else {
        keep(&Journal::open(&args.state)?)?;
    }
    Ok(DONE)
}

/// Says so where there is nothing to be kept.
fn is_anything(changes: &[Change]) -> anyhow::Result<bool> {
    if changes.is_empty() {
        told("nothing is kept: nothing was changed by netsniff doctor --apply")?;
    }
    Ok(!changes.is_empty())
}

/// Tells what would be kept with these changes more.
fn would_keep(args: &DoctorArgs, more: &[Change]) -> anyhow::Result<()> {
    let stored = journal::stored(&args.state)?.into_iter().map(|entry| entry.change);
    let changes: Vec<_> = stored.chain(more.iter().cloned()).collect();
    if !is_anything(&changes)? {
        return Ok(());
    }
    for (path, text) in files::files(Path::new(ROOT), &changes)? {
        told(&format!("would write /{path}:\n{text}"))?;
    }
    not_kept(&changes)
}

fn keep(journal: &Journal) -> anyhow::Result<()> {
    let changes = journal.changes();
    if !is_anything(&changes)? {
        return Ok(());
    }
    for path in files::write(Path::new(ROOT), &changes)? {
        told(&format!("wrote {}", path.display()))?;
    }
    not_kept(&changes)
}

fn not_kept(changes: &[Change]) -> anyhow::Result<()> {
    for Change { setting, .. } in changes.iter().filter(|it| !files::is_kept(&it.setting)) {
        told(&format!("not kept after a restart, when interrupts have other numbers: {setting}"))?;
    }
    Ok(())
}

/// Takes everything back, also what a search has tried and was killed with.
pub(super) fn revert(args: &DoctorArgs) -> anyhow::Result<u8> {
    let kernel = Here::open()?;
    let tried = args.state.join(journal::TRIED);
    let folders = [tried.is_dir().then_some(tried), Some(args.state.clone())];
    let folders = folders.into_iter().flatten();
    if args.dry_run {
        for folder in folders {
            let stored = journal::stored(&folder)?;
            for (change, outcome) in change::preview(&kernel, &stored, args.force) {
                told(&match outcome {
                    Some(outcome) => words(&change, &outcome),
                    None => format!("would change: {}", change.setting.command(&change.before)),
                })?;
            }
        }
        return Ok(DONE);
    }
    let mut left = 0;
    for folder in folders {
        let mut journal = Journal::open(&folder)?;
        for (change, outcome) in change::revert(&kernel, &mut journal, args.force)? {
            left += u32::from(outcome.is_left());
            told(&words(&change, &outcome))?;
        }
    }
    let removed = files::remove(Path::new(ROOT))?;
    removed.iter().try_for_each(|path| told(&format!("removed {}", path.display())))?;
    if left > 0 {
        return Ok(FAILED);
    }
    told("everything is as it was before netsniff doctor")?;
    Ok(DONE)
}

/// What became of a change.
fn words(Change { setting, before, after }: &Change, outcome: &Reverted) -> String {
    match outcome {
        Reverted::Restored => format!("taken back: {}", setting.command(before)),
        Reverted::AsBefore => format!("is as before: {setting} = {before}"),
        Reverted::Restarted => {
            format!("was undone by a restart, after which another device may have it: {setting}")
        }
        Reverted::Elsewhere => format!(
            "left alone: {setting} was changed in another network namespace: run --revert there (a restart undoes it, too)"
        ),
        Reverted::Gone => format!("is gone: {setting}"),
        Reverted::Foreign(now) => format!(
            "left alone: {setting} is {now}, which is neither {after} nor {before}: somebody else has changed it (--force sets {before})"
        ),
        Reverted::Failed(why) => format!("not taken back: {setting}: {why}"),
    }
}
