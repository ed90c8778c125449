//! Where rows come from: an analysis of captures or of live traffic, which is a process of its own, or a directory of logs.
//!
//! | module | concern |
//! |---|---|
//! | `child` | an analysis |
//! | `folder` | a directory of logs |
//! | `growing` | a log file that may grow while it is read |
//! | `tsv` | rows in Zeek's own format |

pub(super) mod child;
pub(super) mod folder;
mod growing;
mod tsv;

/// Rows that are handed over at once.
const BATCH: usize = 512;
