//! The kernel's side of netsniff: rings that packets are captured in, ways to send frames, interfaces and
//! their counters.
//!
//! This crate knows the kernel and nothing of files or protocols. Its unsafe code is in `sys/` alone.
//!
//! | module | concern |
//! |---|---|
//! | [`backend`] | rings: THE list of ways to capture |
//! | [`options`] | how to capture |
//! | [`counters`] | what a ring has counted |
//! | [`negotiate`] | how much memory the kernel grants |
//! | [`host`] | what all interfaces share |
//! | [`ethtool`] | what a driver tells and takes |
//! | [`interface`] | what an interface is and has counted |
//! | [`transmit`] | sending frames |
//! | [`error`] | what can go wrong |

pub mod backend;
pub mod counters;
mod ebpf;
pub mod error;
pub mod ethtool;
pub mod host;
pub mod interface;
pub mod negotiate;
pub mod options;
mod ring;
mod sys;
pub mod transmit;
mod wait;
mod xdp_socket;

pub use backend::{BACKENDS, Lent, Received, Receiver};
pub use error::{Error, Result};
pub use interface::Interface;
pub use options::Options;
pub use sys::clock::{monotonic, realtime};
pub use sys::namespace::{in_namespace, in_namespace_of};
pub use sys::prefetch::prefetch;
pub use sys::process::{Ended, wait_for};
pub use sys::scheduling::{pin, set_nice, unpin};
