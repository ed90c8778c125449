//! What was lost of TCP connections, what of it a capture can show, and whether the logs tell it.
//!
//! The truth comes from outside: from interfaces where lost frames were recorded, or from the script of a dialogue.
//! This judges the logs by it, and knows nothing of how they were made.

// Tests and the example `quality` share it, and none needs all of it.
#![allow(dead_code)]

pub(crate) mod evidence;
pub(crate) mod play;
pub(crate) mod recording;
pub(crate) mod score;
pub(crate) mod segment;
pub(crate) mod told;
pub(crate) mod trace;

use std::collections::BTreeSet;

/// Where a frame was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Place {
    /// Between its sender and the tap.
    Before,
    /// It passed the tap, and the receiver got it if nothing else happened to it.
    Capture,
    /// Between the tap and its receiver.
    Behind,
}

impl Place {
    pub(crate) const ALL: [Self; 3] = [Self::Before, Self::Capture, Self::Behind];

    /// As the logs and the tables name it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Before => "network_before",
            Self::Capture => "capture",
            Self::Behind => "network_behind",
        }
    }
}

/// Several places.
pub(crate) type Places = BTreeSet<Place>;
