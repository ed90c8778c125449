//! How many files a process may have open.

/// Allows as many as the process may allow itself. Systems begin with few (1,024 on many), since old programs go wrong with
/// more; here none does.
#[cfg(unix)]
pub fn allow_all() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum {
        // Where it is refused, the file that is too much is told.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    }
}

/// Elsewhere there is no such bound.
#[cfg(not(unix))]
pub const fn allow_all() {}
