//! `netsniff report`: a page of logs or captures.

use netsniff_desk::report;
pub use netsniff_desk::report::ReportArgs;

use super::interrupted;

/// Runs the command and returns its exit code.
///
/// # Errors
///
/// [`UsageError`](netsniff_console::UsageError), inputs that cannot be read, and a page that cannot be written.
pub fn run(args: &ReportArgs) -> anyhow::Result<u8> {
    // Logs of captures do not stay where a signal ends the process.
    interrupted::remove_unfinished()?;
    report::run(args)
}
