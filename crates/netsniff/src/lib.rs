//! Composition: threads, commands and outputs around the crates that do the work.
//!
//! | module | concern |
//! |---|---|
//! | [`cli`] | arguments and exit codes |
//! | `meant_command` | the command that words without one are for |
//! | [`config`] | options from the file `netsniff.toml` |
//! | [`commands`] | what each command does |
//! | [`summary`] | what an analysis found, for people and scripts |
//! | [`sandbox`] | what a process that captures gives up |
//! | [`words`] | arguments out of words of another program |

pub mod cli;
pub mod commands;
pub mod config;
mod meant_command;
pub mod sandbox;
pub mod summary;
pub mod words;
