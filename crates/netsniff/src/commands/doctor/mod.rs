//! `netsniff doctor`: why this host loses packets, and what to change.

mod args;
mod changes;
mod report;
mod saved;

use std::fs;
use std::io::stdout;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context as _, bail};
use netsniff_console::{BELOW_QUALITY, DONE, UsageError, print, say};
use netsniff_doctor::diagnosis::Diagnosis;
use netsniff_doctor::kernel::{Here, Kernel, Recorded, Recorder};
use netsniff_doctor::look::Look;
use netsniff_doctor::text;
use netsniff_doctor::watch::{Depth, Watched, watch};
use netsniff_lab::commands::Program;
use signal_hook::consts::{SIGINT, SIGTERM};

pub use self::args::DoctorArgs;
use self::args::DoctorCommand;
use self::saved::Saved;

/// Runs the command and returns its exit code.
///
/// # Errors
///
/// [`UsageError`], an interface that is not there, and whatever prevents a change.
pub fn run(args: &DoctorArgs, program: Program) -> anyhow::Result<u8> {
    if let Some(DoctorCommand::Tune(args)) = &args.command {
        return netsniff_lab::commands::tune(args, program);
    }
    if args.buffers {
        print(stdout().lock(), &text::buffers()).context("cannot write to standard output")?;
        return Ok(DONE);
    }
    if args.revert {
        return changes::revert(args);
    }
    if args.persist && !args.apply {
        return changes::persist(args);
    }
    if args.dry_run && !args.apply {
        let said = "--dry-run says what --apply, --persist or --revert would do";
        return Err(UsageError(said.to_owned()).into());
    }
    let diagnosis = match &args.from {
        Some(file) => saved::diagnose(&Saved::read(file)?),
        None => here(args)?,
    };
    show(args, &diagnosis, program)?;
    if args.apply {
        return changes::apply(args, &diagnosis);
    }
    Ok(if diagnosis.worst().is_some() { BELOW_QUALITY } else { DONE })
}

/// Watches an interface of this machine.
fn here(args: &DoctorArgs) -> anyhow::Result<Diagnosis> {
    let kernel = Here::open()?;
    let interface = match &args.interface {
        Some(name) => name.clone(),
        None => choose(&kernel)?,
    };
    if kernel.read(&format!("/sys/class/net/{interface}/ifindex")).is_err() {
        bail!("there is no interface {interface}; `ip link` lists them");
    }
    let is_over = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&is_over))
            .context("cannot wait for signals")?;
    }
    let is_over = || is_over.load(Ordering::Relaxed);
    let depth =
        if args.no_packets { Depth::Counters } else { Depth::Packets { is_promiscuous: false } };
    let watched = |kernel: &dyn Kernel| -> anyhow::Result<(Watched, Option<u64>)> {
        let look = Look { kernel, interface: &interface };
        let watched = watch(&look, args.time, depth, &is_over, &mut |line| say(&line));
        Ok((
            watched.with_context(|| format!("the interface {interface} is gone"))?,
            look.megabits(),
        ))
    };
    let Some(file) = &args.save else {
        let (watched, megabits) = watched(&kernel)?;
        return Ok(Diagnosis::of(&interface, megabits, watched));
    };
    let recorder = Recorder::new(&kernel);
    let (watched, megabits) = watched(&recorder)?;
    let saved = Saved::new(&interface, &watched, recorder.answers());
    let text = serde_json::to_string(&saved)? + "\n";
    fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))?;
    Ok(Diagnosis::of(&interface, megabits, watched))
}

/// The interface on which packets are captured, else the one that received most.
fn choose(kernel: &dyn Kernel) -> anyhow::Result<String> {
    let mut names = kernel.list("/sys/class/net").context("cannot list interfaces")?;
    names.retain(|name| {
        name != "lo" && kernel.read(&format!("/sys/class/net/{name}/ifindex")).is_ok()
    });
    let received =
        |name: &String| kernel.number(&format!("/sys/class/net/{name}/statistics/rx_packets"));
    let is_captured = |name: &String| {
        let look = Look { kernel, interface: name };
        !netsniff_doctor::look::captures(&look).is_empty()
    };
    let chosen = names.iter().max_by_key(|name| (is_captured(name), received(name)));
    let chosen = chosen.context("there is no interface but lo: name one with -i")?;
    say(&format!("looking at {chosen}; -i chooses another interface"));
    Ok(chosen.clone())
}

fn show(args: &DoctorArgs, diagnosis: &Diagnosis, program: Program) -> anyhow::Result<()> {
    if let Some(file) = &args.html {
        let page = report::page(diagnosis, program).html();
        fs::write(file, page).with_context(|| format!("cannot write {}", file.display()))?;
    }
    let text = if args.json {
        serde_json::to_string_pretty(diagnosis)? + "\n"
    } else {
        text::page(diagnosis, args.all)
    };
    print(stdout().lock(), &text).context("cannot write to standard output")
}

/// What was recorded, as a kernel.
fn replayed(saved: &Saved) -> Recorded {
    Recorded::new(saved.answers.clone())
}
