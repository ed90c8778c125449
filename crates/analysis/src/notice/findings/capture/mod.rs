//! What is wrong with the capture itself, as its records show.

pub(super) mod clock;
pub(super) mod doubled;
pub(super) mod one_way;
pub(in crate::notice) mod stamps;
