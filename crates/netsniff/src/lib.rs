//! Composition: threads, commands and outputs around the crates that do the work.
//!
//! | module | concern |
//! |---|---|
//! | [`cli`] | arguments and exit codes |
//! | [`commands`] | what each command does |
//! | [`pipeline`] | threads: reading, sharing out, analysing, merging |
//! | [`output`] | logs on their way out |
//! | [`pidfile`] | the file with the number of the process |
//! | [`recording`] | packets on their way to files |
//! | [`progress`] | how far long work is, on a terminal |
//! | [`summary`] | what an analysis found, for people and scripts |
//! | [`sandbox`] | what a process that captures gives up |
//! | [`printable`] | text from outside, without signs that control, hide, turn or separate |
//! | [`receiving`] | which stamped frames arrived |
//! | [`sending`] | frames on their way to a wire, and how well they kept their time |
//! | [`books`] | where every packet of a live capture went |
//! | [`calendar`] | dates in UTC |
//! | [`clock`] | the time of day |

pub mod books;
pub mod calendar;
pub mod cli;
pub mod clock;
pub mod commands;
pub mod output;
pub mod pidfile;
pub mod pipeline;
pub mod printable;
pub mod progress;
pub mod receiving;
pub mod recording;
pub mod sandbox;
pub mod sending;
pub mod summary;
