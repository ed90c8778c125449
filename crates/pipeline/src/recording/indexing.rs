//! Indexes of the files of a recording, written by a thread of their own while it goes on.
//!
//! The thread reads each file that has ended, as `netsniff index` would, so that capturing and writing have nothing to
//! do with it. A file that is removed before its turn leaves the rest without names: then indexing ends.

use std::hash::{BuildHasher as _, RandomState};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::{self, JoinHandle};

use anyhow::Context as _;
use netsniff_console::say;

use crate::carving::index::series::{Naming, Outcome, Series};

/// Files that may wait for their turn: more than any ring keeps that is read in time.
const MOST_WAITING: usize = 4096;

/// What became of the indexes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Indexed {
    /// Indexes that were written.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The bytes of their captures.
    pub capture_bytes: u64,
    /// Captures that have none since it would lack packets, which was said of each.
    pub left_out: u64,
    /// Why indexing ended early, if it did.
    pub failure: Option<String>,
}

/// The end to which files are told.
#[derive(Debug)]
pub(super) struct Ended(SyncSender<PathBuf>);

/// The thread that indexes.
#[derive(Debug)]
pub struct Indexing(JoinHandle<Indexed>);

/// Starts the thread. It ends once the other end is dropped.
///
/// # Errors
///
/// Where there can be no thread.
pub(super) fn start(naming: Naming, seed: u64) -> anyhow::Result<(Ended, Indexing)> {
    let (send, receive) = sync_channel(MOST_WAITING);
    // What the files tell of the recording must not be the secret of its table of flows.
    let number = RandomState::new().hash_one(seed);
    let series = Series::new(number, naming, seed);
    let thread = thread::Builder::new().name("indexer".to_owned());
    let thread = thread.spawn(move || index(series, &receive));
    Ok((Ended(send), Indexing(thread.context("cannot start the indexing thread")?)))
}

impl Ended {
    /// Tells that a file has ended. Returns whether it will be indexed.
    pub(super) fn tell(&self, path: &Path) -> bool {
        match self.0.try_send(path.to_owned()) {
            Ok(()) => true,
            Err(TrySendError::Full(_)) => {
                say(&format!("indexing is {MOST_WAITING} files behind, and ends"));
                false
            }
            // It failed, which was said.
            Err(TrySendError::Disconnected(_)) => false,
        }
    }
}

impl Indexing {
    /// Waits until all files are indexed.
    #[must_use]
    pub fn wait(self) -> Indexed {
        let failure = Some("the indexing thread has panicked".to_owned());
        self.0.join().unwrap_or(Indexed { failure, ..Indexed::default() })
    }
}

fn index(mut series: Series, ended: &Receiver<PathBuf>) -> Indexed {
    let mut indexed = Indexed::default();
    while let Ok(path) = ended.recv() {
        if let Err(error) = series.add(&path).map(|outcome| indexed.add(&outcome)) {
            return indexed.failed(&error);
        }
    }
    match series.finish().map(|outcome| indexed.add(&outcome)) {
        Ok(()) => indexed,
        Err(error) => indexed.failed(&error),
    }
}

impl Indexed {
    fn add(&mut self, outcome: &Outcome) {
        outcome.left_out.iter().for_each(|said| say(said));
        self.left_out += outcome.left_out.len() as u64;
        for index in &outcome.written {
            self.files += 1;
            self.bytes += index.bytes;
            self.capture_bytes += index.capture_bytes;
        }
    }

    fn failed(mut self, error: &anyhow::Error) -> Self {
        let said = format!("{error:#}; the recording goes on without indexes");
        say(&said);
        self.failure = Some(said);
        self
    }
}
