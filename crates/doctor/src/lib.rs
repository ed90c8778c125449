//! The way of packets into this host, stage by stage: what each has counted, which setting rules it, what loses now, and
//! what to change.
//!
//! | module | concern |
//! |---|---|
//! | [`kernel`] | the border to the kernel, and recorded answers in its place |
//! | [`setting`] | THE list of what may be changed |
//! | [`stage`] | what a stage of the way is: counters, settings, advice |
//! | [`look`] | the stages of a host, in the order of the way |
//! | [`arithmetic`] | buffers in bytes, packets and milliseconds |
//! | [`watch`] | what changes in some time |
//! | [`diagnosis`] | which stage loses, and why |
//! | [`change`] | changes, their journal, and how they outlive a restart |
//! | [`text`] | a diagnosis for people |

pub mod arithmetic;
pub mod change;
pub mod diagnosis;
pub mod kernel;
pub mod look;
pub mod setting;
pub mod stage;
pub mod text;
pub mod watch;
