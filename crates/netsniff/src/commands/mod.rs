//! The commands: arguments in, exit code out.

pub mod analyze;
pub mod anonymize;
pub mod config;
pub mod doctor;
pub mod extcap;
pub mod extract;
pub mod filters;
pub mod generate;
pub mod help;
pub mod info;
pub(crate) mod inputs;
mod interrupted;
pub mod lab;
pub mod live;
pub mod protocols;
pub mod pseudonyms;
pub mod receive;
pub mod record;
pub mod recording;
pub mod replay;
pub mod report;
pub mod rolling;
pub mod run;
pub mod selftest;
pub mod sort;
pub(crate) mod timeouts;
pub mod wire;
