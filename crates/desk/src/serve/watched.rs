//! What rows of intervals have told so far, shared by all who look.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use tokio::sync::watch::{Receiver, Sender};

use crate::logs::Folder;
use crate::watch::data::Data;
use crate::watch::source::{Ending, Listener, Told, folder};

/// How often it is looked whether there are logs.
const PAUSE: Duration = Duration::from_millis(200);

/// What is known of traffic, and who wants to know of changes.
#[derive(Debug)]
pub(super) struct Watched {
    state: Mutex<State>,
    changes: Sender<u64>,
}

/// What is known.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) data: Data,
    /// How rows ended, once they have.
    pub(super) ended: Option<Ending>,
    /// How the analysis ended, once it has.
    pub(super) analysis: Option<String>,
    /// Whether it left nothing to be shown.
    has_failed: bool,
    /// What was said last.
    pub(super) said: Option<String>,
}

impl Watched {
    /// Watches a directory of logs: once there is a log of intervals, it is read.
    ///
    /// # Errors
    ///
    /// When no thread can be started.
    pub(super) fn start(directory: &Path) -> std::io::Result<Arc<Self>> {
        let watched = Arc::new(Self { state: Mutex::default(), changes: Sender::new(0) });
        let (hears, directory) = (Arc::downgrade(&watched), directory.to_owned());
        let listen = move || {
            while !has_series(&directory) {
                if hears.strong_count() == 0 {
                    return;
                }
                thread::sleep(PAUSE);
            }
            let said = hears.clone();
            let listener: Listener = Box::new(move |told| {
                hears.upgrade()?.hear(told);
                Some(())
            });
            if let Err(error) = folder::start(&directory, true, listener)
                && let Some(watched) = said.upgrade()
            {
                watched.hear(Told::Said(format!("{error:#}")));
            }
        };
        thread::Builder::new().name("watch".to_owned()).spawn(listen)?;
        Ok(watched)
    }

    /// Says something to all who look.
    pub(super) fn say(&self, text: String) {
        self.hear(Told::Said(text));
    }

    /// What is known now.
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells of changes.
    pub(super) fn changes(&self) -> Receiver<u64> {
        self.changes.subscribe()
    }

    /// The analysis has ended, and may have left nothing to be shown.
    pub(super) fn end_analysis(&self, how: String, is_of_use: bool) {
        let mut state = self.state();
        state.has_failed = !is_of_use;
        state.analysis = Some(how);
        drop(state);
        self.changes.send_modify(|changes| *changes += 1);
    }

    /// Waits until there is nothing to be shown, and never will be; why.
    pub(super) async fn failure(&self) -> String {
        let mut changes = self.changes();
        loop {
            if let State { has_failed: true, analysis: Some(how), .. } = &*self.state() {
                return how.clone();
            }
            if changes.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    fn hear(&self, told: Told) {
        let mut state = self.state();
        match told {
            Told::Rows(rows) => {
                state.ended = None;
                rows.into_iter().for_each(|row| state.data.take(row));
            }
            Told::Ended(ending) => state.ended = Some(ending),
            Told::Anew => (state.data, state.ended) = (Data::default(), None),
            Told::Said(text) => state.said = Some(text),
        }
        drop(state);
        self.changes.send_modify(|changes| *changes += 1);
    }
}

fn has_series(directory: &Path) -> bool {
    Folder::open(directory).is_ok_and(|folder| folder.has("series"))
}
