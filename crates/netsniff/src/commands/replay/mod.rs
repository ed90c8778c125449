//! `netsniff replay`: captures onto a wire, at a pace, with a report of how well it was kept.

mod args;
mod edit;
mod frames;
mod judge;
mod store;

use std::io::stdout;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::{Context as _, bail};
use signal_hook::consts::{SIGINT, SIGTERM};

pub use self::args::ReplayArgs;
use netsniff_console::number::exact;
use netsniff_console::{BELOW_QUALITY, DAMAGED, DONE, FAILED, print, say};
use netsniff_pipeline::sending::drive::{Orders, SendOutcome, drive};
use netsniff_pipeline::sending::report::{Report, UnsentFrames};
use netsniff_pipeline::sending::wire::Wire;

use self::frames::{Clocks, Replay};
use self::judge::{Cut, Judge, Reason, ReplayWire};
use self::store::Store;
use super::interrupted;

/// Runs the command and returns its exit code.
///
/// # Errors
///
/// [`UsageError`](netsniff_console::UsageError), a capture that cannot be read, and an interface that cannot be sent on.
pub fn run(args: &ReplayArgs) -> anyhow::Result<u8> {
    // The interfaces first: reading a large capture for nothing is annoying.
    let mut wires = args.wire.options().open(&args.interface, args.server_interface.as_deref())?;
    let store = Store::open(&args.files, args.span.span()?, args.memory, args.quiet)?;
    let lane = |wire: &Wire| ReplayWire {
        interface: wire.interface.clone(),
        longest: wire.transmitter.longest(),
    };
    let lanes: Vec<_> = wires.iter().map(lane).collect();
    let sides = if wires.len() > 1 { Some(store.sides()?) } else { None };
    let judge = Judge { lanes, sides, cut: args.cut, edit: args.edit.edit() };
    refuse_cut(args, &store)?;
    let copies = args.copies(&store, &judge)?;
    let (plan, timing) = args.plan(&store, &judge, &copies)?;
    let orders = Orders {
        plan,
        late: args.late(),
        most: args.limit.unwrap_or(u64::MAX),
        duration: args.duration,
    };
    let mut frames = Replay::new(&store, judge, copies)?;
    // Until now they end it at once.
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop)).context("cannot catch signals")?;
        interrupted::leave(signal);
    }
    let sent = drive(&mut frames, orders, &mut wires, &stop)?;
    if sent.frames == 0 && sent.failure.is_none() && !sent.is_interrupted {
        bail!("{}", nothing(&frames));
    }
    let left = left(&frames, &sent);
    let report = Report::new(&sent, &mut wires, timing, args.late(), left);
    let text = if args.json { report.json()? } else { report.text() };
    if !args.quiet {
        print(stdout(), &text).context("cannot print the report")?;
    }
    Ok(code(
        args,
        &report,
        &sent,
        store.is_damaged || frames.is_damaged(),
        frames.exceptions().left_out(),
    ))
}

fn code(
    args: &ReplayArgs,
    report: &Report,
    sent: &SendOutcome,
    is_damaged: bool,
    left_out: u64,
) -> u8 {
    if let Some(failure) = &sent.failure {
        say(&format!("{failure:#}"));
        return FAILED;
    }
    if let Some(shortfall) = report.shortfall(args.tolerance) {
        say(&shortfall);
        return BELOW_QUALITY;
    }
    if is_damaged || left_out > 0 { DAMAGED } else { DONE }
}

/// Refuses captures with packets that were not captured whole, where that was asked for.
fn refuse_cut(args: &ReplayArgs, store: &Store) -> anyhow::Result<()> {
    if args.cut == Cut::Refuse
        && let Some(number) = store.find(|packet| packet.wire_len as usize > packet.data.len())?
    {
        let number = exact(number.into());
        bail!(
            "packet {number} was not captured whole, and nothing was sent: --cut pad sends it with zeroes"
        );
    }
    Ok(())
}

/// Why nothing was sent.
fn nothing(frames: &Replay<'_>) -> String {
    let told = frames.exceptions().unsent_frames(&frames.judge().lanes);
    let mut reasons = told.iter().filter(|left| left.frames > 0);
    match reasons.next() {
        None => "there is no packet to be sent".to_owned(),
        Some(_) if frames.exceptions().of(Reason::LinkType) > 0 => {
            "no packet could be sent: they have no Ethernet header".to_owned()
        }
        Some(left) => format!("no packet could be sent: {}", left.what),
    }
}

/// Everything that was not sent as it is.
fn left(frames: &Replay<'_>, sent: &SendOutcome) -> Vec<UnsentFrames> {
    let mut left = frames.exceptions().unsent_frames(&frames.judge().lanes);
    if let Some(plan) = sent.plan.as_ref().and_then(|plan| plan.as_recorded()) {
        let Clocks { backwards, is_set_back } = frames.clocks();
        let why = if is_set_back { "; the clock of the capture was set back" } else { "" };
        let what =
            format!("with a time before that of an earlier one, sent behind it at once{why}");
        left.push(UnsentFrames { frames: backwards, what });
        let what = "with a shorter gap before them than recorded (--max-gap)";
        left.push(UnsentFrames { frames: plan.shortened(), what: what.to_owned() });
    }
    left
}
