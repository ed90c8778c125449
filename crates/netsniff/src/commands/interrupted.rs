//! Where a signal ends the process, files that are not whole go, and so does progress from the terminal.

use std::io::Read as _;
use std::os::unix::net::UnixStream;
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use std::thread;

use anyhow::Context as _;
use netsniff_console::terminal::progress::{self, ProgressLine};
use netsniff_console::unfinished;
use signal_hook::SigId;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::low_level::{emulate_default_handler, pipe, unregister};

/// The signals that are listened for.
static HEARD: Mutex<Vec<(i32, SigId)>> = Mutex::new(Vec::new());

fn heard() -> MutexGuard<'static, Vec<(i32, SigId)>> {
    HEARD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Lets signals that end the process remove its unfinished files first.
///
/// # Errors
///
/// Where signals cannot be listened for.
pub(super) fn remove_unfinished() -> anyhow::Result<()> {
    static DONE: Once = Once::new();
    let mut result = Ok(());
    let ignored = std::fs::read_to_string("/proc/self/status").map_or(0, |text| ignored(&text));
    // What the one who started us lets us ignore, as nohup does, stays so.
    let is_heard = |signal: &i32| ignored >> (signal - 1) & 1 == 0;
    let signals = [SIGHUP, SIGINT, SIGTERM].into_iter().filter(is_heard);
    DONE.call_once(|| result = signals.into_iter().try_for_each(listen));
    result
}

/// Leaves a signal to others, who have begun to listen for it.
pub(super) fn leave(signal: i32) {
    for (_, id) in heard().extract_if(.., |(heard, _)| *heard == signal) {
        unregister(id);
    }
}

/// A line that tells how far work on `total` bytes is, and that no signal leaves on the terminal.
///
/// # Errors
///
/// Where signals cannot be listened for.
pub(super) fn progress_line(total: Option<u64>, is_quiet: bool) -> anyhow::Result<ProgressLine> {
    let line = ProgressLine::new(total, is_quiet);
    // Who sees none has no threads for it.
    if line.is_wanted() {
        remove_unfinished()?;
    }
    Ok(line)
}

/// The signals that a process ignores, by bits from 1 on, as proc(5) tells them of it.
fn ignored(status: &str) -> u64 {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

fn listen(signal: i32) -> anyhow::Result<()> {
    let failed = "cannot listen for signals";
    let (mut told, tells) = UnixStream::pair().context(failed)?;
    heard().push((signal, pipe::register(signal, tells).context(failed)?));
    let wait = move || {
        if told.read_exact(&mut [0]).is_ok() {
            progress::remove();
            unfinished::remove_all(|| {
                // It ends the process; where it cannot, the exit code says as much.
                let _ = emulate_default_handler(signal);
                std::process::exit(128 + signal);
            });
        }
    };
    thread::Builder::new().name("signals".to_owned()).spawn(wait).context(failed)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_signals_are_those_of_the_mask() {
        let status = "Name:\tnetsniff\nSigBlk:\t0000000000000002\nSigIgn:\t0000000000001003\n";
        assert_eq!(ignored(status), 1 << (SIGHUP - 1) | 1 << (SIGINT - 1) | 1 << 12);
        assert_eq!((ignored(""), ignored("SigIgn:\tx\n")), (0, 0));
    }
}
