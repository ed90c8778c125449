//! The packets of the captures: in memory where they fit, else read ahead by a thread of its own.

use std::borrow::Cow;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use anyhow::Context as _;
use netsniff_capture::{set_nice, unpin};
use netsniff_packet::{Batch, LinkType, Packet, Progress, Source as _};
use netsniff_traffic::addresses::Numbered;
use netsniff_traffic::edit::Edit;
use netsniff_traffic::plan::{Outgoing, Recorded};
use netsniff_traffic::rewrite::rewrite_addresses;
use netsniff_traffic::sides::Sides;
use netsniff_traffic::steady::Steady;

use super::judge::{Judge, PacketVerdict};
use crate::commands::inputs::Inputs;
use crate::commands::inputs::span::Span;
use crate::commands::interrupted;

/// Bytes read at once.
const READ_SIZE: usize = 256 << 10;

/// The longest frame that any interface takes.
const LONGEST: usize = 65_536 + 18;

/// Bytes of a VLAN tag.
const TAG: usize = 4;

/// Batches that are read ahead.
const AHEAD: usize = 16;

/// Captures to be sent.
#[derive(Debug)]
pub(super) struct Store {
    paths: Vec<PathBuf>,
    /// The packets that are sent of them; `None` for all.
    span: Option<Span>,
    /// All packets, where they fit.
    held: Option<Vec<Batch>>,
    /// Something was wrong with a capture that is held.
    pub(super) is_damaged: bool,
    /// Whether it was told what is wrong with captures that are read anew for each host and each round.
    has_told: Arc<AtomicBool>,
    /// Whether nothing comes to the terminal while they are read.
    is_quiet: bool,
}

/// What is known of all packets that can be sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Facts {
    pub(super) packets: u64,
    pub(super) bytes: u64,
    /// The time from the first to the last, where longer gaps are cut.
    pub(super) span: Duration,
}

/// Batches, one after the other.
#[derive(Debug)]
pub(super) enum Batches<'s> {
    /// Batches that are held in memory.
    Held(std::slice::Iter<'s, Batch>),
    /// From the thread that reads.
    Read(Receiver<StoreMessage>),
}

/// What the thread tells.
#[derive(Debug)]
pub(super) enum StoreMessage {
    Batch(Batch),
    /// No more; whether something was wrong.
    End(bool),
}

impl Store {
    /// Opens captures and holds their packets, if they take no more than so many bytes. How far that is comes to the
    /// terminal, unless it `is_quiet`.
    ///
    /// # Errors
    ///
    /// A file that is no capture or cannot be read at all.
    pub(super) fn open(
        paths: &[PathBuf],
        span: Option<Span>,
        memory: usize,
        is_quiet: bool,
    ) -> anyhow::Result<Self> {
        let mut inputs = open(paths, span)?;
        let (held, has_told) = (None, Arc::default());
        let (paths, is_damaged) = (paths.to_vec(), false);
        let mut store = Self { paths, span, held, is_damaged, has_told, is_quiet };
        let fits = |size| size <= memory as u64;
        if inputs.size().is_none_or(fits) {
            let is_whole = store.load(&mut inputs, memory)?;
            // A pipe comes but once: what was read of it would be missing the next time.
            anyhow::ensure!(
                is_whole || inputs.size().is_some(),
                "what comes through a pipe exceeds --memory; write it to a file, or give more memory"
            );
        }
        Ok(store)
    }

    /// Reads all into memory; `false` where it is too much.
    fn load(&mut self, inputs: &mut Inputs, memory: usize) -> anyhow::Result<bool> {
        let (mut held, mut bytes) = (Vec::new(), 0);
        let mut progress = interrupted::progress_line(inputs.size(), self.is_quiet)?;
        loop {
            let mut batch = Batch::default();
            let Ok(state) = inputs.read_batch(&mut batch);
            bytes += batch.data.capacity() + size_of_val(batch.packets.as_slice());
            if bytes > memory {
                return Ok(false);
            }
            if !batch.packets.is_empty() {
                held.push(batch);
            }
            progress.update(|| (inputs.bytes_read(), inputs.packets()));
            if state == Progress::End {
                break;
            }
        }
        self.is_damaged = inputs.report_damage();
        self.held = Some(held);
        Ok(true)
    }

    /// Whether all packets are in memory.
    pub(super) const fn is_held(&self) -> bool {
        self.held.is_some()
    }

    /// Begins with the first packet.
    ///
    /// # Errors
    ///
    /// Where the files cannot be opened again.
    pub(super) fn begin(&self) -> anyhow::Result<Batches<'_>> {
        if let Some(held) = &self.held {
            return Ok(Batches::Held(held.iter()));
        }
        let inputs = open(&self.paths, self.span)?;
        let (to, from) = sync_channel(AHEAD);
        let has_told = Arc::clone(&self.has_told);
        thread::Builder::new()
            .name("read".to_owned())
            .spawn(move || read(inputs, &to, &has_told))
            .context("cannot start a thread")?;
        Ok(Batches::Read(from))
    }

    /// Counts what can be sent, in a pass over all packets, where gaps above `longest_gap` are cut to that.
    ///
    /// # Errors
    ///
    /// As [`Self::begin`].
    pub(super) fn facts(
        &self,
        judge: &Judge,
        longest_gap: Option<Duration>,
    ) -> anyhow::Result<Facts> {
        let mut facts = Facts::default();
        let (mut recorded, mut steady) = (Recorded::new(1, 1, longest_gap), Steady::default());
        self.each(|packet| {
            let time = steady.at(packet.timestamp);
            if let PacketVerdict::Send(len) = judge.judge(packet) {
                let due = recorded.due(&Outgoing { recorded: time, len });
                facts.packets += 1;
                facts.bytes += len as u64;
                facts.span = Duration::from_nanos(due);
            }
            ControlFlow::Continue(())
        })?;
        Ok(facts)
    }

    /// The addresses of all packets as they are sent.
    ///
    /// # Errors
    ///
    /// As [`Self::begin`].
    pub(super) fn addresses(&self, edit: &Edit) -> anyhow::Result<Numbered> {
        let mut edit = edit.clone();
        let (mut numbered, mut frame) = (Numbered::default(), Vec::new());
        self.each(|packet| {
            frame.clear();
            frame.extend_from_slice(packet.data);
            // As it is sent: with zeroes for what was not captured, and room for a tag.
            let len = packet.data.len().max((packet.wire_len as usize).min(LONGEST));
            frame.resize(len + TAG, 0);
            let len = edit.apply(&mut frame, len);
            rewrite_addresses(&mut frame[..len], &mut numbered);
            ControlFlow::Continue(())
        })?;
        Ok(numbered)
    }

    /// Which hosts of all packets are clients, and which are servers.
    ///
    /// # Errors
    ///
    /// As [`Self::begin`].
    pub(super) fn sides(&self) -> anyhow::Result<Sides> {
        let mut sides = Sides::default();
        self.each(|packet| {
            if packet.link_type == LinkType::ETHERNET {
                sides.learn(packet.data, packet.wire_len);
            }
            ControlFlow::Continue(())
        })?;
        Ok(sides)
    }

    /// The first packet for which something holds, with its number, from 1.
    ///
    /// # Errors
    ///
    /// As [`Self::begin`].
    pub(super) fn find(&self, holds: impl Fn(&Packet<'_>) -> bool) -> anyhow::Result<Option<u64>> {
        let (mut number, mut found) = (0, None);
        self.each(|packet| {
            number += 1;
            found = holds(packet).then_some(number);
            found.map_or(ControlFlow::Continue(()), |_| ControlFlow::Break(()))
        })?;
        Ok(found)
    }

    /// Shows all packets before any is sent, until there are enough. How far that is comes to the terminal, where it is
    /// files that are read.
    fn each(&self, mut take: impl FnMut(&Packet<'_>) -> ControlFlow<()>) -> anyhow::Result<()> {
        if let Some(held) = &self.held {
            let _ = held.iter().flat_map(Batch::iter).try_for_each(|packet| take(&packet));
            return Ok(());
        }
        let mut inputs = open(&self.paths, self.span)?;
        let mut progress = interrupted::progress_line(inputs.size(), self.is_quiet)?;
        let mut batch = Batch::default();
        loop {
            let Ok(state) = inputs.read_batch(&mut batch);
            let is_enough = batch.iter().try_for_each(|packet| take(&packet)).is_break();
            progress.update(|| (inputs.bytes_read(), inputs.packets()));
            if is_enough {
                return Ok(());
            }
            if state == Progress::End {
                drop(progress);
                tell_damage(&inputs, &self.has_told);
                return Ok(());
            }
        }
    }
}

#[derive(Debug)]
pub(super) enum Next<'s> {
    Batch(Cow<'s, Batch>),
    /// No more; whether something was wrong.
    End(bool),
}

impl<'s> Batches<'s> {
    pub(super) fn next(&mut self) -> Next<'s> {
        match self {
            Self::Held(held) => {
                held.next().map_or(Next::End(false), |batch| Next::Batch(Cow::Borrowed(batch)))
            }
            Self::Read(from) => match from.recv() {
                Ok(StoreMessage::Batch(batch)) => Next::Batch(Cow::Owned(batch)),
                Ok(StoreMessage::End(is_damaged)) => Next::End(is_damaged),
                // The thread ended otherwise, and has told why.
                Err(_) => Next::End(true),
            },
        }
    }
}

fn read(mut inputs: Inputs, to: &SyncSender<StoreMessage>, has_told: &AtomicBool) {
    // Who sends has a processor for itself and is urgent; who reads is not. It works as well if that fails.
    let _ = unpin().and_then(|()| set_nice(0));
    loop {
        let mut batch = Batch::default();
        let Ok(state) = inputs.read_batch(&mut batch);
        if to.send(StoreMessage::Batch(batch)).is_err() {
            return;
        }
        if state == Progress::End {
            // Nobody to tell is no failure.
            let _ = to.send(StoreMessage::End(tell_damage(&inputs, has_told)));
            return;
        }
    }
}

/// Whether something is wrong with captures, which is told once.
fn tell_damage(inputs: &Inputs, has_told: &AtomicBool) -> bool {
    let is_damaged = inputs.is_damaged();
    if is_damaged && !has_told.swap(true, Ordering::Relaxed) {
        inputs.report_damage();
    }
    is_damaged
}

fn open(paths: &[PathBuf], span: Option<Span>) -> anyhow::Result<Inputs> {
    let (inputs, refused) = Inputs::open(paths, READ_SIZE);
    match refused.first() {
        Some(input) => Err(anyhow::anyhow!("{}: {}", input.path.display(), input.said)),
        None => Ok(inputs.within(span)),
    }
}
