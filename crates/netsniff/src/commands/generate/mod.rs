//! `netsniff generate`: stamped frames of any size at any rate, and sessions of hosts.

mod args;
mod ask;
mod frames;
mod hosts;
mod listen;
mod request;

use std::io::{stderr, stdout};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::{Context as _, ensure};
use netsniff_console::clock;
use netsniff_console::paths::is_stdin;
use netsniff_console::{BELOW_QUALITY, DONE, FAILED, UsageError, print, say};
use netsniff_packet::Timestamp;
use netsniff_pipeline::sending::drive::{Orders, SendOutcome, drive};
use netsniff_pipeline::sending::file;
use netsniff_pipeline::sending::report::Report;
use netsniff_pipeline::sending::wire::Wire;
use netsniff_traffic::probe::FCS_LEN;
use signal_hook::consts::{SIGINT, SIGTERM};

use self::args::{FrameArgs, OutputArgs};
use self::ask::AskArgs;
use self::frames::Stamped;
use self::hosts::HostsArgs;
use self::listen::ListenArgs;

/// Send frames that are made: of any size, at any rate, numbered so that `netsniff receive` proves what arrived
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    netsniff generate -i eth1 --size 64 --rate 100k --count 10M\n  \
    netsniff generate -i eth1 --size 76:1204:8 --ifg 12 --link 1g    the full speed of a link, sizes in turn\n  \
    netsniff generate -i eth1 --topspeed --flows 1000 --duration 10s\n  \
    netsniff generate -w probes.pcap --rate 10k --count 50000        a capture file instead\n  \
    netsniff generate hosts --n 30 -i eth1 --duration 1m             sessions of hosts\n  \
    netsniff generate -i eth1 --listen 127.0.0.1:7000                to the order of others\n\n\
    Sends real traffic: use an interface that leads to a testbed.\n\n\
    Exit code: 0 fine; 1 failed; 2 wrong usage; 4 the rate was off by more than --tolerance, or the interface\n\
    lost frames")]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct GenerateArgs {
    #[command(subcommand)]
    what: Option<GenerateCommand>,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    frames: FrameArgs,
    #[command(flatten)]
    listen: ListenArgs,
}

/// What else can be made.
#[derive(Debug, clap::Subcommand)]
enum GenerateCommand {
    Hosts(Box<HostsArgs>),
    Ask(AskArgs),
}

/// Runs the command and returns its exit code.
///
/// # Errors
///
/// [`UsageError`], an interface that cannot be sent on, and a file that cannot be written.
pub fn run(args: &GenerateArgs) -> anyhow::Result<u8> {
    match &args.what {
        Some(GenerateCommand::Hosts(args)) => hosts::run(args),
        Some(GenerateCommand::Ask(args)) => ask::ask(args),
        None => {
            args.output.check()?;
            args.listen.check()?;
            match args.listen.listen {
                Some(address) => listen::listen(args, address),
                None => stamped(args),
            }
        }
    }
}

/// Sends or writes stamped frames.
fn stamped(args: &GenerateArgs) -> anyhow::Result<u8> {
    let stop = stop()?;
    let output = &args.output;
    if let Some(path) = &output.to.write {
        return write(args, path, &stop);
    }
    // What is wrong with the frames is told before an interface is touched.
    args.frames.probes().and_then(|_| args.frames.plan())?;
    let interface = output.to.interface.as_deref().unwrap_or_default();
    let mut wires = output.wire.options().open(interface, None)?;
    let (sent, report) = send(&args.frames, &mut wires, &stop)?;
    finish(output, &sent, &report)
}

fn send(
    args: &FrameArgs,
    wires: &mut [Wire],
    stop: &AtomicBool,
) -> anyhow::Result<(SendOutcome, Report)> {
    // Before frames of any size are made.
    wires.iter().try_for_each(|wire| takes(wire, args.size.largest()))?;
    let (mut frames, orders, timing) = prepare(args)?;
    let sent = drive(&mut frames, orders, wires, stop)?;
    let report = Report::new(&sent, wires, timing, args.late(), Vec::new());
    Ok((sent, report.with_run(frames.run())))
}

/// Writes stamped frames to a file.
fn write(args: &GenerateArgs, path: &Path, stop: &AtomicBool) -> anyhow::Result<u8> {
    let (mut frames, orders, _) = prepare(&args.frames)?;
    if orders.plan.is_none() || orders.most == u64::MAX && orders.duration.is_none() {
        let said = "a file needs a rate, and --count or --duration";
        return Err(UsageError(said.to_owned()).into());
    }
    let output = &args.output;
    let written = file::write(&mut frames, orders, path, start_of(output), stop)?;
    let written = written.with_run(frames.run());
    print_report(output, path, &if output.json { written.json()? } else { written.text() })?;
    Ok(DONE)
}

/// The frames, when they are due, and that in words.
fn prepare(args: &FrameArgs) -> anyhow::Result<(Stamped, Orders, String)> {
    let probes = args.probes()?;
    let (plan, timing) = args.plan()?;
    let most = args.count.unwrap_or(u64::MAX);
    let orders = Orders { plan, late: args.late(), most, duration: args.duration };
    Ok((Stamped::new(probes, args.stream, most), orders, timing))
}

/// When a file begins.
fn start_of(output: &OutputArgs) -> Timestamp {
    output.start.unwrap_or_else(clock::now)
}

/// Set by a signal.
fn stop() -> anyhow::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop)).context("cannot catch signals")?;
    }
    Ok(stop)
}

/// Fails where an interface or the way to send does not take frames of a size.
fn takes(wire: &Wire, size: usize) -> anyhow::Result<()> {
    let (name, mtu) = (&wire.interface.name, wire.interface.mtu);
    let (len, longest) = (size.saturating_sub(FCS_LEN), wire.transmitter.longest());
    ensure!(
        wire.interface.takes(false, len),
        "frames of {size} bytes are longer than the MTU of {name} allows ({mtu})"
    );
    let way = wire.transmitter.way();
    ensure!(len <= longest, "{way} takes {longest} bytes of a frame, and {len} are wanted");
    Ok(())
}

/// Prints a report where it is no part of a capture.
fn print_report(output: &OutputArgs, path: &Path, report: &str) -> anyhow::Result<()> {
    if output.quiet {
        return Ok(());
    }
    let printed = if is_stdin(path) { print(stderr(), report) } else { print(stdout(), report) };
    printed.context("cannot print the report")
}

/// Prints the report of what was sent, and returns the exit code.
fn finish(output: &OutputArgs, sent: &SendOutcome, report: &Report) -> anyhow::Result<u8> {
    let text = if output.json { report.json()? } else { report.text() };
    print_report(output, Path::new(""), &text)?;
    if let Some(failure) = &sent.failure {
        say(&format!("{failure:#}"));
        return Ok(FAILED);
    }
    if let Some(shortfall) = report.shortfall(output.tolerance) {
        say(&shortfall);
        return Ok(BELOW_QUALITY);
    }
    Ok(DONE)
}
