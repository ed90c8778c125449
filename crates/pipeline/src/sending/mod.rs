//! Sending frames to a plan, and telling how well it was kept.
//!
//! | module | concern |
//! |---|---|
//! | [`wire`] | the interface, the way to send on it, and what it counts |
//! | [`drive`] | frames to the wire, each when it is due |
//! | [`mod@file`] | frames into a capture file instead |
//! | `gaps` | by how much gaps between frames differ from the planned ones |
//! | [`report`] | what was sent, and how well |

pub mod drive;
pub mod file;
mod gaps;
pub mod report;
pub mod wire;
