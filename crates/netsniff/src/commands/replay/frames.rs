//! The packets of captures as frames: of several hosts at once, and round after round.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

use netsniff_packet::{Batch, Packet, Timestamp};
use netsniff_pipeline::sending::drive::{Frames, SendStep};
use netsniff_traffic::addresses::Clones;
use netsniff_traffic::plan::Outgoing;
use netsniff_traffic::rewrite::rewrite_addresses;
use netsniff_traffic::steady::Steady;

use super::judge::{Exceptions, Judge, PacketVerdict};
use super::store::{Batches, Next, Store};

/// How often everything is sent, and as whose.
#[derive(Clone, Debug)]
pub(super) struct Copies {
    pub(super) hosts: u64,
    /// By how many nanoseconds each begins after the one before.
    pub(super) stagger: i64,
    /// Rounds; `None` for no end.
    pub(super) rounds: Option<u64>,
    /// Addresses of copies; `None` where all have those of the capture.
    pub(super) clones: Option<Clones>,
    /// Whether each round has other addresses.
    pub(super) is_unique: bool,
}

#[derive(Debug)]
pub(super) struct Replay<'s> {
    store: &'s Store,
    judge: Judge,
    copies: Copies,
    /// One for each host.
    cursors: Vec<Cursor<'s>>,
    /// When the next packet of a host was recorded, moved by its start, and the host.
    turns: BinaryHeap<Reverse<(Timestamp, usize)>>,
    /// The host whose packet was advanced to, and the wire that this leaves on.
    host: Option<usize>,
    wire: usize,
    round: u64,
    /// Frames of this round that were sent.
    sent: u64,
    exceptions: Exceptions,
    /// Those of rounds before.
    clocks: Clocks,
    /// For frames that fit into the room of a buffer only once they are changed.
    scratch: Vec<u8>,
    is_damaged: bool,
}

/// What was odd about the times of packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Clocks {
    /// Packets with a time before that of an earlier one.
    pub(super) backwards: u64,
    /// Whether the clock of the capture was set back.
    pub(super) is_set_back: bool,
}

/// Where a host is in the captures.
#[derive(Debug)]
struct Cursor<'s> {
    batches: Batches<'s>,
    batch: Cow<'s, Batch>,
    /// The packet of the batch that is its next one.
    at: usize,
    steady: Steady,
}

impl<'s> Cursor<'s> {
    fn new(store: &'s Store) -> anyhow::Result<Self> {
        let batch = Cow::Owned(Batch::default());
        Ok(Self { batches: store.begin()?, batch, at: 0, steady: Steady::default() })
    }

    /// The time of the next packet, by a clock that never goes back; an error at the end, with whether something was
    /// wrong.
    fn look(&mut self) -> Result<Timestamp, bool> {
        loop {
            if let Some(record) = self.batch.packets.get(self.at) {
                return Ok(self.steady.at(record.timestamp));
            }
            match self.batches.next() {
                Next::Batch(batch) => (self.batch, self.at) = (batch, 0),
                Next::End(is_damaged) => return Err(is_damaged),
            }
        }
    }

    /// Whether the next packet is in memory.
    fn is_ready(&self) -> bool {
        self.at + 1 < self.batch.packets.len() || matches!(self.batches, Batches::Held(_))
    }

    fn packet(&self) -> Option<Packet<'_>> {
        self.batch.packets.get(self.at).map(|record| self.batch.packet(record))
    }
}

impl<'s> Replay<'s> {
    /// All packets of captures.
    ///
    /// # Errors
    ///
    /// Where they cannot be read again.
    pub(super) fn new(store: &'s Store, judge: Judge, copies: Copies) -> anyhow::Result<Self> {
        let mut replay = Self {
            store,
            judge,
            copies,
            cursors: Vec::new(),
            turns: BinaryHeap::new(),
            host: None,
            wire: 0,
            round: 0,
            sent: 0,
            exceptions: Exceptions::default(),
            clocks: Clocks::default(),
            scratch: Vec::new(),
            is_damaged: false,
        };
        replay.begin()?;
        Ok(replay)
    }

    /// What decides about packets.
    #[must_use]
    pub(super) const fn judge(&self) -> &Judge {
        &self.judge
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

    /// What was odd about the times of packets.
    #[must_use]
    pub(super) fn clocks(&self) -> Clocks {
        self.cursors.iter().fold(self.clocks, |sum, Cursor { steady, .. }| Clocks {
            backwards: sum.backwards + steady.backwards(),
            is_set_back: sum.is_set_back || steady.set_back() > 0,
        })
    }

    fn begin(&mut self) -> anyhow::Result<()> {
        self.clocks = self.clocks();
        let hosts = 0..self.copies.hosts.max(1);
        self.cursors = hosts.map(|_| Cursor::new(self.store)).collect::<Result<_, _>>()?;
        (self.sent, self.host) = (0, None);
        (0..self.cursors.len()).for_each(|host| self.line_up(host));
        Ok(())
    }

    /// Puts a host among those that have a packet, if it has one.
    fn line_up(&mut self, host: usize) {
        let start = self.copies.stagger.saturating_mul(host as i64);
        match self.cursors[host].look() {
            Ok(time) => self.turns.push(Reverse((time.offset(start), host))),
            Err(is_damaged) => self.is_damaged |= is_damaged,
        }
    }

    fn next_round(&mut self) -> anyhow::Result<SendStep> {
        self.round += 1;
        // A round without frames would be followed by others for ever.
        if self.sent == 0 || self.copies.rounds.is_some_and(|rounds| self.round >= rounds) {
            return Ok(SendStep::End);
        }
        self.begin()?;
        Ok(SendStep::Again)
    }

    /// Makes the frame of the packet at hand, which has `len` bytes, and returns its length as it is sent.
    fn fill(&mut self, room: &mut [u8], len: usize) -> usize {
        let Some(host) = self.host else { return 0 };
        let Some(packet) = self.cursors[host].packet() else { return 0 };
        let Some((captured, missing)) =
            room.get_mut(..len).map(|it| it.split_at_mut(packet.data.len()))
        else {
            return 0;
        };
        captured.copy_from_slice(packet.data);
        if !missing.is_empty() {
            missing.fill(0);
            self.exceptions.pad();
        }
        let clone = self.clone_number(host);
        let len = self.judge.edit.apply(room, len);
        if let Some(clones) = self.copies.clones.as_ref().filter(|_| clone > 0)
            && let Some(frame) = room.get_mut(..len)
        {
            rewrite_addresses(frame, &mut clones.of(clone));
        }
        len
    }

    /// The number of the copy that a host is.
    fn clone_number(&self, host: usize) -> u64 {
        let before = if self.copies.is_unique { self.round } else { 0 };
        before.wrapping_mul(self.copies.hosts.max(1)).wrapping_add(host as u64)
    }
}

impl Frames for Replay<'_> {
    fn advance(&mut self) -> anyhow::Result<SendStep> {
        loop {
            // Until now its packet was needed.
            if let Some(host) = self.host.take() {
                self.cursors[host].at += 1;
                self.line_up(host);
            }
            let Some(Reverse((recorded, host))) = self.turns.pop() else {
                return self.next_round();
            };
            self.host = Some(host);
            let Some(packet) = self.cursors[host].packet() else { continue };
            match self.judge.judge(&packet) {
                PacketVerdict::Send(len) => {
                    self.sent += 1;
                    self.wire = self.judge.wire(&packet);
                    return Ok(SendStep::Frame(Outgoing { recorded, len }));
                }
                PacketVerdict::LeaveOut(reason) => self.exceptions.leave_out(reason),
            }
        }
    }

    fn write(&mut self, _buffer: usize, room: &mut [u8], _sent: u64) -> usize {
        let Some(packet) = self.host.and_then(|host| self.cursors[host].packet()) else { return 0 };
        let len = packet.data.len().max(packet.wire_len as usize);
        if len <= room.len() {
            return self.fill(room, len);
        }
        let mut scratch = core::mem::take(&mut self.scratch);
        scratch.resize(len, 0);
        let len = self.fill(&mut scratch, len);
        let fits = room.get_mut(..len).zip(scratch.get(..len));
        let written = fits.map_or(0, |(room, frame)| {
            room.copy_from_slice(frame);
            len
        });
        self.scratch = scratch;
        written
    }

    fn is_ready(&self) -> bool {
        self.host.is_none_or(|host| self.cursors[host].is_ready())
    }

    fn wire(&self) -> usize {
        self.wire
    }
}
