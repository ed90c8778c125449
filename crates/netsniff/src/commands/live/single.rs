//! A run of one ring on one interface, for commands that only look at its packets.

use netsniff_console::UsageError;
use netsniff_console::pidfile::PidFile;
use netsniff_packet::Timestamp;
use netsniff_pipeline::books::BooksLine;
use netsniff_pipeline::live::Consumer;

use super::{CaptureArgs, MonitorParts, Opening, ReportedLine, RunHooks, Session, Signals, Wanted};
use super::{confine, print_rings, warn};
use crate::sandbox::Outputs;

/// Warns of losses, and asks whether the run is to end.
struct Watch<'a> {
    told: Vec<ReportedLine>,
    end: &'a mut dyn FnMut() -> Option<String>,
}

impl RunHooks for Watch<'_> {
    fn books(&mut self, entries: &mut [BooksLine], _: Timestamp, _: Timestamp, _: bool) {
        warn(entries, &mut self.told);
    }

    fn roll(&mut self) {}

    fn failure(&mut self) -> Option<String> {
        (self.end)()
    }
}

/// Captures until the run ends, or until `end` says why it is to end; returns the books, and failures.
///
/// # Errors
///
/// [`UsageError`] where there is not one interface; an interface that cannot be captured on; a ring whose thread
/// panicked.
pub fn one_ring<C: Consumer>(
    capture: &CaptureArgs,
    is_quiet: bool,
    consumer: impl Fn() -> C,
    end: &mut dyn FnMut() -> Option<String>,
) -> anyhow::Result<(Vec<BooksLine>, Vec<String>)> {
    if capture.interfaces.len() != 1 {
        let said = "-i says on which interface, and there is one; for example: -i eth0";
        return Err(UsageError(said.to_owned()).into());
    }
    let wanted = Wanted::new(&[], capture.sample())?;
    let signals = Signals::listen()?;
    let _pidfile = capture.pidfile.as_deref().map(PidFile::create).transpose()?;
    let opening = Opening {
        backend: capture.backend()?,
        options: capture.options(1)?,
        wanted: &wanted,
        rings: 1,
        cpus: capture.cpus(),
        group: capture.fanout_group(),
    };
    let rings = opening.open(&capture.interfaces)?;
    if !is_quiet {
        print_rings(&rings, &wanted, capture.cpus());
    }
    let monitor = MonitorParts::open(capture)?;
    let reopener = confine(capture, Outputs::default(), is_quiet)?;
    let monitor = monitor.start()?;
    let mut watch = Watch { told: Vec::new(), end };
    let session = Session {
        capture,
        wanted: &wanted,
        signals: &signals,
        reopener: reopener.as_ref(),
        monitor: &monitor,
        is_quiet,
    };
    session.run(rings, |_| consumer(), &mut watch)
}
