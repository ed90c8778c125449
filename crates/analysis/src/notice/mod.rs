//! Findings: what deserves a look, and indicators that somebody listed.
//!
//! Both are made of records, behind whoever merges these. So they are the same for any number of workers, and
//! no protocol knows of them. Where a [`Watch`] is set, each record that a finding reads leaves a copy of the
//! wanted columns, a [`Sighting`], which travels with the facts of joins. [`Notices`] is the join that takes them.
//!
//! | module | concern |
//! |---|---|
//! | `binding` | what ARP tells, which no log has |
//! | `clocks` | what packets show of clocks, which no log has |
//! | [`finding`] | what a finding is, and what it says |
//! | [`findings`] | one file for each, and the list |
//! | [`intel`] | indicators, and where they are looked for |
//! | [`rules`] | findings of the user's own |
//! | `setting` | thresholds, and room for what findings remember |
//! | [`sighting`] | copies of records |
//! | [`threshold`] | numbers from which on something is found |

pub(crate) mod binding;
mod bounded;
pub(crate) mod clocks;
pub mod finding;
pub mod findings;
pub mod intel;
mod notices;
pub mod rules;
mod setting;
pub mod sighting;
pub mod threshold;
mod watch;

use crate::record::LogType;

pub use notices::Notices;
pub use setting::Setting;
pub use sighting::Sighting;
pub use watch::Watch;

/// Records that findings read, and that no log has.
pub static UNWRITTEN: [&LogType; 4] =
    [binding::Binding::LOG, clocks::Step::LOG, clocks::Disorder::LOG, clocks::HttpDate::LOG];
