//! How many files a process may have open.

/// Files that a process may surely open beside the others that it has.
const FEW: usize = 32;

/// Allows so many to be open at once, as far as the process may allow that itself. Systems begin with few (1,024 on many), since
/// old programs go wrong with more; here none does.
#[cfg(unix)]
pub(crate) fn allow_files(count: usize) {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if count > FEW && current != maximum {
        // Where it is refused, the file that is too much is told.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    }
}

/// Elsewhere there is no such bound.
#[cfg(not(unix))]
pub(crate) const fn allow_files(_: usize) {}
