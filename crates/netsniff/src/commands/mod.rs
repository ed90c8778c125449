//! The commands: arguments in, exit code out.

pub mod analyze;
