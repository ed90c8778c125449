//! Composition: threads, commands and outputs around the crates that do the work.

pub mod commands;
pub mod output;
