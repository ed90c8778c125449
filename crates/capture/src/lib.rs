//! The kernel's side of netsniff: rings that packets are captured in, ways to send frames, interfaces and
//! their counters.
//!
//! This crate knows the kernel and nothing of files or protocols. Its unsafe code is in `sys/` alone.
//!
//! | module | concern |
//! |---|---|
//! | [`interface`] | what an interface is and has counted |
//! | [`transmit`] | sending frames |
//! | [`error`] | what can go wrong |

pub mod error;
pub mod interface;
mod ring;
mod sys;
pub mod transmit;

pub use error::{Error, Result};
pub use interface::Interface;
pub use sys::clock::{monotonic, realtime};
pub use sys::scheduling::{pin, set_nice};
