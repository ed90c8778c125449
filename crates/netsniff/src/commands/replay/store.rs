//! The packets of the captures: in memory where they fit, else read ahead by a thread of its own.

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use anyhow::Context as _;
use netsniff_packet::{Batch, Packet, Progress, Source as _};
use netsniff_traffic::addresses::Numbered;
use netsniff_traffic::edit::Edit;
use netsniff_traffic::plan::{Outgoing, Recorded};
use netsniff_traffic::rewrite::rewrite_addresses;

use super::judge::{Judge, Verdict};
use crate::commands::inputs::{Inputs, is_stdin};

/// Bytes read at once.
const READ_SIZE: usize = 256 << 10;

/// Batches that are read ahead.
const AHEAD: usize = 16;

/// Captures to be sent.
#[derive(Debug)]
pub(super) struct Store {
    paths: Vec<PathBuf>,
    /// All packets, where they fit.
    held: Option<Vec<Batch>>,
    /// Something was wrong with a capture.
    pub(super) is_damaged: bool,
}

/// What is known of all packets that can be sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Facts {
    /// Packets.
    pub(super) packets: u64,
    /// Their bytes.
    pub(super) bytes: u64,
    /// The time from the first to the last, where longer gaps are cut.
    pub(super) span: Duration,
}

/// Batches, one after the other.
#[derive(Debug)]
pub(super) enum Batches<'s> {
    /// From memory.
    Held(std::slice::Iter<'s, Batch>),
    /// From the thread that reads.
    Read(Receiver<Message>),
}

/// What the thread tells.
#[derive(Debug)]
pub(super) enum Message {
    /// More packets.
    Batch(Batch),
    /// No more; whether something was wrong.
    End(bool),
}

impl Store {
    /// Opens captures and holds their packets, if they take no more than so many bytes.
    ///
    /// # Errors
    ///
    /// A file that is no capture or cannot be read at all.
    pub(super) fn open(paths: &[PathBuf], memory: usize) -> anyhow::Result<Self> {
        let mut inputs = open(paths)?;
        let mut store = Self { paths: paths.to_vec(), held: None, is_damaged: false };
        if inputs.size().is_some_and(|size| size > memory as u64) {
            return Ok(store);
        }
        // Standard input comes but once: what is held of it must not be lost where it is too much.
        if paths.iter().any(|path| is_stdin(path)) && inputs.size().is_none() {
            return store.load(&mut inputs, memory).and_then(|is_whole| {
                anyhow::ensure!(
                    is_whole,
                    "what standard input holds exceeds --memory; write it to a file, or give more memory"
                );
                Ok(store)
            });
        }
        store.load(&mut inputs, memory)?;
        Ok(store)
    }

    /// Reads all into memory; `false` where it is too much.
    fn load(&mut self, inputs: &mut Inputs, memory: usize) -> anyhow::Result<bool> {
        let (mut held, mut bytes) = (Vec::new(), 0);
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
            if state == Progress::End {
                break;
            }
        }
        self.is_damaged |= inputs.tell_damage();
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
        let inputs = open(&self.paths)?;
        let (to, from) = sync_channel(AHEAD);
        thread::Builder::new()
            .name("read".to_owned())
            .spawn(move || read(inputs, &to))
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
        let (mut facts, mut batches) = (Facts::default(), self.begin()?);
        let mut recorded = Recorded::new(1, 1, longest_gap);
        while let Next::Batch(batch) = batches.next() {
            for packet in batch.iter() {
                let Verdict::Send(len) = judge.judge(&packet) else { continue };
                let due = recorded.due(&Outgoing { recorded: packet.timestamp, len });
                facts.packets += 1;
                facts.bytes += len as u64;
                facts.span = Duration::from_nanos(due);
            }
        }
        Ok(facts)
    }

    /// The addresses of all packets as they are sent.
    ///
    /// # Errors
    ///
    /// As [`Self::begin`].
    pub(super) fn addresses(&self, edit: &Edit) -> anyhow::Result<Numbered> {
        let mut edit = edit.clone();
        let (mut numbered, mut batches) = (Numbered::default(), self.begin()?);
        let mut frame = Vec::new();
        while let Next::Batch(batch) = batches.next() {
            for packet in batch.iter() {
                frame.clear();
                frame.extend_from_slice(packet.data);
                let _ = edit.apply(&mut frame, packet.data.len());
                rewrite_addresses(&mut frame, &mut numbered);
            }
        }
        Ok(numbered)
    }

    /// The first packet for which something holds, with its number, from 1.
    ///
    /// # Errors
    ///
    /// As [`Self::begin`].
    pub(super) fn find(&self, holds: impl Fn(&Packet<'_>) -> bool) -> anyhow::Result<Option<u64>> {
        let (mut number, mut batches) = (0, self.begin()?);
        while let Next::Batch(batch) = batches.next() {
            for packet in batch.iter() {
                number += 1;
                if holds(&packet) {
                    return Ok(Some(number));
                }
            }
        }
        Ok(None)
    }
}

/// What [`Batches::next`] gives.
#[derive(Debug)]
pub(super) enum Next<'s> {
    /// Packets.
    Batch(Cow<'s, Batch>),
    /// No more; whether something was wrong.
    End(bool),
}

impl<'s> Batches<'s> {
    /// The next batch.
    pub(super) fn next(&mut self) -> Next<'s> {
        match self {
            Self::Held(held) => {
                held.next().map_or(Next::End(false), |batch| Next::Batch(Cow::Borrowed(batch)))
            }
            Self::Read(from) => match from.recv() {
                Ok(Message::Batch(batch)) => Next::Batch(Cow::Owned(batch)),
                Ok(Message::End(is_damaged)) => Next::End(is_damaged),
                // The thread ended otherwise, and has told why.
                Err(_) => Next::End(true),
            },
        }
    }
}

fn read(mut inputs: Inputs, to: &SyncSender<Message>) {
    loop {
        let mut batch = Batch::default();
        let Ok(state) = inputs.read_batch(&mut batch);
        if to.send(Message::Batch(batch)).is_err() {
            return;
        }
        if state == Progress::End {
            // Nobody to tell is no failure.
            let _ = to.send(Message::End(inputs.tell_damage()));
            return;
        }
    }
}

fn open(paths: &[PathBuf]) -> anyhow::Result<Inputs> {
    let (inputs, refused) = Inputs::open(paths, READ_SIZE);
    match refused.first() {
        Some(input) => Err(anyhow::anyhow!("{}: {}", input.path.display(), input.said)),
        None => Ok(inputs),
    }
}
