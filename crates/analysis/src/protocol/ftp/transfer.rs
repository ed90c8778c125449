//! What is known of files that go over data connections until the next command is told.

use std::collections::VecDeque;
use std::sync::Arc;

use netsniff_packet::Timestamp;

use crate::protocol::ExpectedTransfer;

/// Data connections that may still tell kinds of files.
const MAX_ANNOUNCED: usize = 8;

/// What is known of a transfer until the next command is told.
#[derive(Debug)]
pub(super) struct Transfer {
    pub(super) file_size: Option<u64>,
    /// The last data connection that was announced, until a file came of it.
    errand: Option<Arc<ExpectedTransfer>>,
    /// All that were announced and may still tell kinds of files, and when a command was last told.
    announced: VecDeque<Arc<ExpectedTransfer>>,
    told: Timestamp,
}

impl Transfer {
    pub(super) const fn none() -> Self {
        let announced = VecDeque::new();
        Self { file_size: None, errand: None, announced, told: Timestamp::MIN }
    }

    /// Awaits another data connection.
    pub(super) fn announce(&mut self, errand: &Arc<ExpectedTransfer>) {
        self.errand = Some(Arc::clone(errand));
        if self.announced.len() >= MAX_ANNOUNCED {
            self.announced.pop_front();
        }
        self.announced.push_back(Arc::clone(errand));
    }

    /// What is known as a command is told: of which data connection there is a file by now, and whether Zeek
    /// learnt the kind of any file since the last command.
    pub(super) fn known_by(&mut self, now: Timestamp) -> (Option<Arc<ExpectedTransfer>>, bool) {
        let told = core::mem::replace(&mut self.told, now);
        let is_sniffed =
            self.announced.iter().any(|errand| errand.mime_type.was_published_within(told, now));
        (self.errand.take_if(|errand| errand.fuid.get().is_some()), is_sniffed)
    }

    /// Bytes that it holds outside itself.
    pub(super) fn heap_bytes(&self) -> usize {
        self.announced.len() * (size_of::<ExpectedTransfer>() + size_of::<Arc<ExpectedTransfer>>())
    }
}
