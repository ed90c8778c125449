//! How a run ends before its time: by a signal, or when the time that it may take is over.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Whether to go on.
#[derive(Clone, Copy, Debug)]
pub struct Stop<'a> {
    signal: &'a Arc<AtomicBool>,
    end: Option<Instant>,
}

/// Why a command was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    /// SIGINT or SIGTERM came.
    Signal,
    /// Since what is next would take longer than there is time.
    Budget,
}

impl Why {
    /// The words for it in messages.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Signal => "a signal",
            Self::Budget => "the budget is used up",
        }
    }
}

impl<'a> Stop<'a> {
    /// Ends once the signal is set, and, with a budget, before what would exceed it.
    #[must_use]
    pub fn new(signal: &'a Arc<AtomicBool>, budget: Option<Duration>) -> Self {
        Self { signal, end: budget.and_then(|budget| Instant::now().checked_add(budget)) }
    }

    /// What ends after so long at the latest, and whenever this one does.
    #[must_use]
    pub fn within(&self, time: Duration) -> Self {
        let end = Instant::now().checked_add(time);
        Self { signal: self.signal, end: self.end.into_iter().chain(end).min() }
    }

    /// The time that is left; `None` where there is no budget.
    #[must_use]
    pub fn left(&self) -> Option<Duration> {
        self.end.map(|end| end.saturating_duration_since(Instant::now()))
    }

    /// What is set by the signal, for what ends by itself then.
    pub(crate) fn signal(&self) -> Arc<AtomicBool> {
        Arc::clone(self.signal)
    }

    /// Whether a signal came.
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.signal.load(Ordering::Relaxed)
    }

    /// Why something that takes so long is not to be begun any more.
    #[must_use]
    pub fn before(&self, time: Duration) -> Option<Why> {
        if self.is_set() {
            return Some(Why::Signal);
        }
        let end = Instant::now().checked_add(time)?;
        self.end.is_some_and(|last| end > last).then_some(Why::Budget)
    }
}
