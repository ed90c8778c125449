//! Which flows begin and end, for whoever compares the tables of several trackers.

use netsniff_packet::Timestamp;

use crate::key::FlowKey;

/// A flow that began or ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowEvent {
    /// The flow that began or ended.
    pub key: FlowKey,
    /// Engine time of the event.
    pub time: Timestamp,
    /// Whether the flow began or ended.
    pub event: FlowEventKind,
}

/// What happened to a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowEventKind {
    /// Its first packet came.
    Begin,
    /// It was closed, or timed out.
    End,
}

/// Notes them, where somebody wants to know.
#[derive(Debug, Default)]
pub(super) struct FlowEvents(Option<Vec<FlowEvent>>);

impl FlowEvents {
    pub(super) fn begin(&mut self) {
        self.0.get_or_insert_default();
    }

    #[inline]
    pub(super) fn note(&mut self, key: &FlowKey, time: Timestamp, event: FlowEventKind) {
        if let Some(turns) = &mut self.0 {
            turns.push(FlowEvent { key: *key, time, event });
        }
    }

    /// Swaps what was noted for `empty`.
    pub(super) const fn swap(&mut self, empty: &mut Vec<FlowEvent>) {
        if let Some(turns) = &mut self.0 {
            core::mem::swap(turns, empty);
        }
    }
}
