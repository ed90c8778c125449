//! Composition: threads, commands and outputs around the crates that do the work.
//!
//! | module | concern |
//! |---|---|
//! | [`cli`] | arguments and exit codes |
//! | [`commands`] | what each command does |
//! | [`pipeline`] | threads: reading, sharing out, analysing, merging |
//! | [`output`] | logs on their way out |

pub mod cli;
pub mod commands;
pub mod output;
pub mod pipeline;
