//! What tests of the lab have in common.
#![allow(dead_code, reason = "no test needs all of it")]

use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use netsniff_lab::bed::{Bed, Layout};

/// There is one testbed at a time on a machine.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether this machine has what a testbed needs: the right to make namespaces, and two processors. A test that is skipped
/// where it has proves nothing.
pub(crate) fn is_able() -> bool {
    let name = format!("netsniff-probe-{}", std::process::id());
    let ip = |what| Command::new("ip").args(["netns", what, &name]).output();
    let is_made = ip("add").is_ok_and(|out| out.status.success());
    // Where it was not made it cannot be removed, either.
    let _ = ip("del");
    is_made && thread::available_parallelism().is_ok_and(|processors| processors.get() > 1)
}

/// A sweep that ran as it should: on a busy machine the code tells of points that no run proves, and the words why.
#[track_caller]
pub(crate) fn assert_swept(code: Option<i32>, errors: &str) {
    let is_busy = errors.contains("held up") || errors.contains("too slow");
    assert!(code == Some(0) || (code == Some(1) && is_busy), "{errors}");
}

/// A testbed; `None`, said loudly, where this machine can have none.
pub(crate) fn make(test: &str, layout: &Layout) -> Option<Bed> {
    let warden = [env!("CARGO_BIN_EXE_netsniff"), "lab", "warden"].map(str::to_owned);
    match Bed::make(&warden, layout) {
        Ok(bed) => Some(bed),
        Err(why) => {
            assert!(!is_able(), "a namespace can be made here: {why:#}");
            eprintln!("SKIPPED: {test} needs a testbed, which cannot be made here: {why:#}");
            None
        }
    }
}
