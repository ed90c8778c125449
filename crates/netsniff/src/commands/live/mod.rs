//! What commands that capture have in common: their arguments, opening, and the ruling thread.

mod args;
mod open;
mod rule;

pub use args::CaptureArgs;
pub use open::{Rings, open, reopen, tell};
pub use rule::{Attendant, Rule, Signals};
