//! The packets of a connection, as `netsniff extract` finds them in the captures.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use axum::body::{Body, Bytes};
use tokio::io::AsyncReadExt as _;
use tokio::process::Command;
use tokio::sync::Semaphore;
use tokio_stream::wrappers::ReceiverStream;

use super::answer::Failure;
use super::args::ServeArgs;
use crate::watch::source::child::listen;

/// Where packets come from.
#[derive(Debug)]
pub(super) struct Packets {
    program: PathBuf,
    files: Mutex<Vec<PathBuf>>,
    filter: Option<String>,
    /// Why there are none, unless a recording comes.
    kept_back: Option<&'static str>,
    /// Those that are read here.
    running: Mutex<Vec<Arc<Mutex<Child>>>>,
    /// How many extractions there may be at once.
    extractions: Arc<Semaphore>,
}

/// How often it is asked whether anybody waits.
const PAUSE: Duration = Duration::from_millis(100);
/// Extractions at once: each may read all captures.
const EXTRACTIONS: usize = 2;
/// Bytes that are passed on at once.
const PIECE: usize = 64 << 10;

impl Packets {
    /// Those of the captures that the arguments name.
    ///
    /// # Errors
    ///
    /// When this program cannot be found.
    pub(super) fn of(args: &ServeArgs) -> anyhow::Result<Self> {
        Ok(Self {
            program: std::env::current_exe().context("cannot find this program")?,
            files: Mutex::new(args.files().to_vec()),
            filter: args.traffic.filter.clone(),
            kept_back: args.keeps_packets_back(),
            running: Mutex::default(),
            extractions: Arc::new(Semaphore::new(EXTRACTIONS)),
        })
    }

    /// Reads the packets of a connection here.
    ///
    /// # Errors
    ///
    /// Why there are none.
    pub(super) fn read<T>(
        &self,
        uid: &str,
        given_up: &Arc<AtomicBool>,
        read: impl FnOnce(std::process::ChildStdout) -> Result<T, String>,
    ) -> Result<T, String> {
        if let Some(why) = self.kept_back() {
            return Err(why.to_owned());
        }
        let mut command = self.command(uid).into_std();
        let mut child = command.spawn().map_err(|error| format!("cannot extract: {error}"))?;
        let said = child.stderr.take().map(listen);
        let output = child.stdout.take().ok_or("the extraction has no output")?;
        let child = Arc::new(Mutex::new(child));
        locked(&self.running).push(Arc::clone(&child));
        // Where nobody waits any more it is not to read all captures.
        let (watched, given_up) = (Arc::downgrade(&child), Arc::clone(given_up));
        std::thread::spawn(move || {
            while let Some(child) = watched.upgrade() {
                if given_up.load(Ordering::Relaxed) {
                    let _ = locked(&child).kill();
                    return;
                }
                drop(child);
                std::thread::sleep(PAUSE);
            }
        });
        let value = read(output);
        // Its output is closed now, so that it ends whatever is left.
        let status = loop {
            match locked(&child).try_wait() {
                Ok(Some(status)) => break status,
                Ok(None) => {}
                Err(error) => return Err(error.to_string()),
            }
            std::thread::sleep(PAUSE / 10);
        };
        locked(&self.running).retain(|one| !Arc::ptr_eq(one, &child));
        let said = said.and_then(|said| said.join().ok()).unwrap_or_default();
        match value {
            Err(_) if !said.is_empty() && !status.success() => Err(said.join("; ")),
            value => value,
        }
    }

    /// Why packets of connections cannot be had.
    pub(super) fn kept_back(&self) -> Option<&'static str> {
        self.kept_back.filter(|_| locked(&self.files).is_empty())
    }

    /// Packets are in this file, too.
    pub(super) fn add(&self, file: PathBuf) {
        locked(&self.files).push(file);
    }

    /// Ends what goes on.
    pub(super) fn end(&self) {
        for child in locked(&self.running).drain(..) {
            let _ = locked(&child).kill();
        }
    }

    fn command(&self, uid: &str) -> Command {
        let mut words: Vec<OsString> = vec!["extract".into(), "-q".into()];
        if let Some(filter) = &self.filter {
            words.extend(["-f".into(), filter.into()]);
        }
        words.extend(["--uid".into(), uid.into(), "-w".into(), "-".into(), "--".into()]);
        let mut command = Command::new(&self.program);
        command.args(words).args(&*locked(&self.files)).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        command
    }

    /// The packets of a connection as a pcapng file, which is made while it is sent.
    ///
    /// # Errors
    ///
    /// Why there are none.
    pub(super) async fn of_connection(&self, uid: &str) -> Result<Body, Failure> {
        if let Some(why) = self.kept_back() {
            return Err(Failure::missing(why));
        }
        let permit = Arc::clone(&self.extractions).acquire_owned().await;
        let permit = permit.map_err(|_| Failure::inside("it ends"))?;
        let child = self.command(uid).spawn();
        let mut child =
            child.map_err(|error| Failure::inside(&format!("cannot extract: {error}")))?;
        let (Some(mut output), Some(said)) = (child.stdout.take(), child.stderr.take()) else {
            return Err(Failure::inside("the extraction has no output"));
        };
        // Read all along: a process whose pipe is full would wait.
        let said = tokio::spawn(beginning(said));
        let first = piece(&mut output).await;
        let Some(first) = first else {
            let text = said.await.unwrap_or_default();
            let text = text.trim().trim_start_matches("netsniff: ");
            let text = if text.is_empty() { "no packet was found" } else { text };
            return Err(Failure::missing(text));
        };
        let (sender, pieces) = tokio::sync::mpsc::channel::<std::io::Result<Bytes>>(4);
        tokio::spawn(async move {
            let _permit = permit;
            let mut next = Some(first);
            while let Some(bytes) = next {
                if sender.send(Ok(bytes)).await.is_err() {
                    // Whoever asked has gone; the process goes with its handle.
                    return;
                }
                next = piece(&mut output).await;
            }
            let is_good = child.wait().await.is_ok_and(|status| {
                status
                    .code()
                    .is_some_and(|code| code == 0 || code == i32::from(netsniff_console::DAMAGED))
            });
            if !is_good {
                // A download that ends like this shows as one that failed.
                let _ = sender.send(Err(std::io::Error::other("the extraction failed"))).await;
            }
        });
        Ok(Body::from_stream(ReceiverStream::new(pieces)))
    }
}

/// The first of what it says, after all of that was read.
async fn beginning(mut said: tokio::process::ChildStderr) -> String {
    let mut text = Vec::new();
    let _ = (&mut said).take(4096).read_to_end(&mut text).await;
    let _ = tokio::io::copy(&mut said, &mut tokio::io::sink()).await;
    String::from_utf8_lossy(&text).into_owned()
}

/// The next bytes; `None` at the end.
async fn piece(output: &mut tokio::process::ChildStdout) -> Option<Bytes> {
    let mut bytes = Vec::with_capacity(PIECE);
    while bytes.len() < PIECE {
        match output.read_buf(&mut bytes).await {
            Ok(0) | Err(_) => break,
            Ok(_) => {}
        }
    }
    (!bytes.is_empty()).then(|| Bytes::from(bytes))
}

fn locked<T>(it: &Mutex<T>) -> MutexGuard<'_, T> {
    it.lock().unwrap_or_else(PoisonError::into_inner)
}
