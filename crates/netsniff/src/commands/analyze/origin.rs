//! What a summary must know of where the packets came from.

use super::report::Analysis;
use crate::summary::{CaptureBooks, Input, Part};

/// Files, or live rings.
pub(super) trait Origin {
    /// Packets that came in.
    fn packets(&self) -> u64;

    /// Whether packets had to pass a filter in user space.
    fn has_filter(&self) -> bool;

    fn input(&self, analysis: &Analysis<'_>) -> Input;

    /// Where packets went that came in and were not analysed, besides those that the filter refused.
    fn parts(&self) -> Vec<Part>;

    /// Packets that never came in, by where they were lost.
    fn lost(&self) -> Vec<Part>;

    /// Packets known to be lost; `None` where nothing tells.
    fn known_lost(&self) -> Option<u64>;

    /// The books of a live capture.
    fn capture(&self) -> Vec<CaptureBooks> {
        Vec::new()
    }

    /// What must be known of it to believe the logs.
    fn notes(&self, analysis: &Analysis<'_>) -> Vec<String>;
}
