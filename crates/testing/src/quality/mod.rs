//! What was lost of TCP connections, what of it a capture can show, and whether the logs tell it.
//!
//! The truth comes from outside: from interfaces where lost frames were recorded, or from the script of a dialogue.
//! This judges the logs by it, and knows nothing of how they were made.

#![allow(missing_docs, reason = "fields and methods of tests are named for what they are")]

pub mod evidence;
pub mod logged;
pub mod play;
pub mod recording;
pub mod score;
pub mod segment;
pub mod trace;

use std::collections::BTreeSet;

/// Where a frame was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// Between its sender and the tap.
    Before,
    /// It passed the tap, and the receiver got it if nothing else happened to it.
    Capture,
    /// Between the tap and its receiver.
    Behind,
}

impl Place {
    pub const ALL: [Self; 3] = [Self::Before, Self::Capture, Self::Behind];

    /// As the logs and the tables name it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Before => "network_before",
            Self::Capture => "capture",
            Self::Behind => "network_behind",
        }
    }
}

/// Places in the order of their numbers.
pub type Places = BTreeSet<Place>;
