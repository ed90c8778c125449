//! The commands: arguments in, exit code out.

pub mod analyze;
pub mod info;
pub mod schema;
