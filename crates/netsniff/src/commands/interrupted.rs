//! What is not whole goes where a signal ends the process.

use std::io::Read as _;
use std::os::unix::net::UnixStream;
use std::sync::Once;
use std::thread;

use anyhow::Context as _;
use netsniff_console::unfinished;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::low_level::{emulate_default_handler, pipe};

/// Lets signals that end the process remove its unfinished files first.
///
/// # Errors
///
/// Where signals cannot be listened for.
pub(super) fn remove_unfinished() -> anyhow::Result<()> {
    static DONE: Once = Once::new();
    let mut result = Ok(());
    DONE.call_once(|| result = [SIGINT, SIGTERM].into_iter().try_for_each(listen));
    result
}

fn listen(signal: i32) -> anyhow::Result<()> {
    let failed = "cannot listen for signals";
    let (mut told, tells) = UnixStream::pair().context(failed)?;
    pipe::register(signal, tells).context(failed)?;
    let wait = move || {
        if told.read_exact(&mut [0]).is_ok() {
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
