//! Indexes of the files of a recording, written by a thread of their own while it goes on.
//!
//! The thread reads each file that has ended, as `netsniff index` would, so that capturing and writing have nothing to
//! do with it. A file that is removed before its turn leaves the rest without names: then indexing ends.

use std::hash::{BuildHasher as _, RandomState};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::Context as _;
use netsniff_console::say;

use crate::carving::index::series::{Naming, Outcome, Series};

/// Files that may wait for their turn: more than any ring keeps that is read in time.
const MOST_WAITING: usize = 4096;

/// Between two looks of whoever waits.
const LOOK: Duration = Duration::from_millis(50);

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
pub(super) struct Ended {
    files: SyncSender<PathBuf>,
    advance: Arc<Advance>,
}

/// The thread that indexes.
#[derive(Debug)]
pub struct Indexing {
    thread: JoinHandle<Indexed>,
    advance: Arc<Advance>,
}

/// How far the thread is.
#[derive(Debug, Default)]
struct Advance {
    /// Bytes of the files that have ended.
    ended: AtomicU64,
    /// Bytes of files that are indexed, and packets in them.
    bytes: AtomicU64,
    packets: AtomicU64,
}

/// How far indexing is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Indexedness {
    /// Bytes of all files that have ended.
    pub ended: u64,
    /// How many of these bytes were read.
    pub bytes: u64,
    /// Packets in these.
    pub packets: u64,
}

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
    let advance = Arc::<Advance>::default();
    let ended = Ended { files: send, advance: Arc::clone(&advance) };
    let told = Arc::clone(&advance);
    let thread = thread.spawn(move || index(series, &receive, &told));
    Ok((ended, Indexing { thread: thread.context("cannot start the indexing thread")?, advance }))
}

impl Ended {
    /// Tells that a file of so many bytes has ended. Returns whether it will be indexed.
    pub(super) fn tell(&self, path: &Path, bytes: u64) -> bool {
        self.advance.ended.fetch_add(bytes, Ordering::Relaxed);
        match self.files.try_send(path.to_owned()) {
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
    /// How far it is.
    #[must_use]
    pub fn advance(&self) -> Indexedness {
        let Advance { ended, bytes, packets } = &*self.advance;
        let [ended, bytes, packets] = [ended, bytes, packets].map(|it| it.load(Ordering::Relaxed));
        Indexedness { ended, bytes, packets }
    }

    /// Waits until all files are indexed; `look` is told how far it is, several times a second.
    #[must_use]
    pub fn wait(self, mut look: impl FnMut(Indexedness)) -> Indexed {
        while !self.thread.is_finished() {
            look(self.advance());
            thread::sleep(LOOK);
        }
        let failure = Some("the indexing thread has panicked".to_owned());
        self.thread.join().unwrap_or(Indexed { failure, ..Indexed::default() })
    }
}

fn index(mut series: Series, ended: &Receiver<PathBuf>, advance: &Advance) -> Indexed {
    let mut indexed = Indexed::default();
    while let Ok(path) = ended.recv() {
        let [bytes, packets] =
            [&advance.bytes, &advance.packets].map(|it| it.load(Ordering::Relaxed));
        let added = series.add(&path, |more_bytes, more_packets| {
            advance.bytes.store(bytes + more_bytes, Ordering::Relaxed);
            advance.packets.store(packets + more_packets, Ordering::Relaxed);
        });
        if let Err(error) = added.map(|outcome| indexed.add(&outcome)) {
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
