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
        return Ok(DONE);
    }
    if args.dry_run {
        for Change { setting, before, after } in &changes {
            told(&format!("would change ({before}): {}", setting.command(after)))?;
        }
        return Ok(DONE);
    }
    let kernel = Here::open()?;
    let mut journal = Journal::open(&args.state)?;
    let mut failed = 0;
    for change in &changes {
        let Change { setting, before, after } = change;
        match change::apply(&kernel, &mut journal, change) {
            Ok(()) => told(&format!("changed ({before}): {}", setting.command(after)))?,
            Err(why) => {
                failed += 1;
                say(&format!("{}: {why:#}", setting.command(after)));
            }
        }
    }
    told(&format!("netsniff doctor --revert takes it back ({})", journal.path().display()))?;
    if args.persist {
        keep(&journal)?;
    }
    Ok(if failed > 0 { FAILED } else { DONE })
}

/// Keeps what was changed before.
pub(super) fn persist(args: &DoctorArgs) -> anyhow::Result<u8> {
    let journal = Journal::open(&args.state)?;
    if journal.changes().is_empty() {
        told("nothing is kept: nothing was changed by netsniff doctor --apply")?;
        return Ok(DONE);
    }
    if args.dry_run {
        for (path, text) in files::files(Path::new(ROOT), &journal.changes())? {
            told(&format!("would write /{path}:\n{text}"))?;
        }
        return Ok(DONE);
    }
    keep(&journal)?;
    Ok(DONE)
}

fn keep(journal: &Journal) -> anyhow::Result<()> {
    let changes = journal.changes();
    for path in files::write(Path::new(ROOT), &changes)? {
        told(&format!("wrote {}", path.display()))?;
    }
    for Change { setting, .. } in changes.iter().filter(|it| !files::is_kept(&it.setting)) {
        told(&format!("not kept after a restart, when interrupts have other numbers: {setting}"))?;
    }
    Ok(())
}

/// Takes everything back, also what a search has tried and was killed with.
pub(super) fn revert(args: &DoctorArgs) -> anyhow::Result<u8> {
    let kernel = Here::open()?;
    let mut left = 0;
    let tried = args.state.join(journal::TRIED);
    let folders = [tried.is_dir().then_some(tried), Some(args.state.clone())];
    for folder in folders.into_iter().flatten() {
        let mut journal = Journal::open(&folder)?;
        if args.dry_run {
            for (change, outcome) in change::preview(&kernel, journal.entries(), args.force) {
                told(&match outcome {
                    Some(outcome) => words(&change, &outcome),
                    None => format!("would change: {}", change.setting.command(&change.before)),
                })?;
            }
            continue;
        }
        for (change, outcome) in change::revert(&kernel, &mut journal, args.force)? {
            left += u32::from(outcome.is_left());
            told(&words(&change, &outcome))?;
        }
    }
    if args.dry_run {
        return Ok(DONE);
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
