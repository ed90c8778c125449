//! Where rows come from: an analysis of captures or of live traffic, which is a process of its own, or a directory of logs.
//!
//! | module | concern |
//! |---|---|
//! | `child` | an analysis |
//! | `folder` | a directory of logs |
//! | `growing` | a log file that may grow while it is read |
//! | `processes` | the processes of this host that have sockets |
//! | `tsv` | rows in Zeek's own format |

pub(crate) mod child;
pub(crate) mod folder;
mod growing;
#[cfg(target_os = "linux")]
pub(crate) mod processes;
mod tsv;

/// Rows that are handed over at once.
const BATCH: usize = 512;

/// What a source tells whoever listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    /// Rows came.
    Rows(Vec<String>),
    /// No more rows come for now; why.
    Ended(Ending),
    /// The logs are written anew: what was known is not any more.
    Anew,
    /// Something is to be said.
    Said(String),
}

/// How rows ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ending {
    /// In words.
    pub(crate) how: String,
    /// The exit code for that.
    pub(crate) code: u8,
}

/// Whoever listens. `None` where it wants no more.
pub(crate) type Listener = Box<dyn Fn(Told) -> Option<()> + Send>;
