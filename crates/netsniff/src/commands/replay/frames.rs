//! The packets of captures as frames, round after round.

use std::borrow::Cow;

use netsniff_packet::{Batch, Packet};
use netsniff_traffic::plan::Outgoing;

use super::judge::{Exceptions, Judge, Verdict};
use super::store::{Batches, Next, Store};
use crate::sending::drive::{Frames, Step};

/// Frames of captures.
#[derive(Debug)]
pub(super) struct Replay<'s> {
    store: &'s Store,
    judge: Judge,
    batches: Batches<'s>,
    batch: Cow<'s, Batch>,
    /// The packet of the batch that comes next.
    at: usize,
    /// Bytes of the frame that was advanced to.
    len: usize,
    /// Rounds that are still to begin; `None` for no end.
    rounds: Option<u64>,
    /// Frames of this round that were sent.
    sent: u64,
    exceptions: Exceptions,
    is_damaged: bool,
}

impl<'s> Replay<'s> {
    /// All packets, so many times; `None` for no end.
    ///
    /// # Errors
    ///
    /// Where they cannot be read again.
    pub(super) fn new(store: &'s Store, judge: Judge, rounds: Option<u64>) -> anyhow::Result<Self> {
        Ok(Self {
            store,
            judge,
            batches: store.begin()?,
            batch: Cow::Owned(Batch::default()),
            at: 0,
            len: 0,
            rounds: rounds.map(|rounds| rounds.saturating_sub(1)),
            sent: 0,
            exceptions: Exceptions::default(),
            is_damaged: false,
        })
    }

    /// What was not sent, or not as it is.
    #[must_use]
    pub(super) const fn exceptions(&self) -> &Exceptions {
        &self.exceptions
    }

    /// Whether something was wrong with a capture.
    #[must_use]
    pub(super) const fn is_damaged(&self) -> bool {
        self.is_damaged
    }

    fn next_round(&mut self) -> anyhow::Result<Step> {
        // A round without frames would be followed by others for ever.
        if self.sent == 0 || self.rounds == Some(0) {
            return Ok(Step::End);
        }
        self.rounds = self.rounds.map(|rounds| rounds - 1);
        self.batches = self.store.begin()?;
        self.sent = 0;
        Ok(Step::Again)
    }
}

impl Frames for Replay<'_> {
    fn advance(&mut self) -> anyhow::Result<Step> {
        loop {
            let Some(record) = self.batch.packets.get(self.at) else {
                match self.batches.next() {
                    Next::Batch(batch) => (self.batch, self.at) = (batch, 0),
                    Next::End(is_damaged) => {
                        self.is_damaged |= is_damaged;
                        return self.next_round();
                    }
                }
                continue;
            };
            self.at += 1;
            let packet = self.batch.packet(record);
            match self.judge.judge(&packet) {
                Verdict::Send(len) => {
                    self.len = len;
                    self.sent += 1;
                    return Ok(Step::Frame(Outgoing { recorded: packet.timestamp, len }));
                }
                Verdict::LeaveOut(reason) => self.exceptions.leave_out(reason),
            }
        }
    }

    fn write(&mut self, _buffer: usize, room: &mut [u8], _sent: u64) -> usize {
        let Some(packet) = self.current() else { return 0 };
        let data = packet.data;
        let (captured, missing) = room[..self.len].split_at_mut(data.len().min(self.len));
        captured.copy_from_slice(&data[..captured.len()]);
        if !missing.is_empty() {
            missing.fill(0);
            self.exceptions.pad();
        }
        self.len
    }
}

impl Replay<'_> {
    /// The packet that was advanced to.
    fn current(&self) -> Option<Packet<'_>> {
        let record = self.batch.packets.get(self.at.checked_sub(1)?)?;
        Some(self.batch.packet(record))
    }
}
