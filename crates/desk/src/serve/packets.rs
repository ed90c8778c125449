//! The packets of a connection, as `netsniff extract` finds them in the captures.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Child, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use axum::body::{Body, Bytes};
use axum::http::HeaderMap;
use netsniff_analysis::Uid;
use serde::Deserialize;
use tokio::io::AsyncReadExt as _;
use tokio::process::Command;
use tokio::sync::Semaphore;

use super::answer::Failure;
use super::args::ServeArgs;
use super::body::{PIECE, answer};
use crate::watch::source::child::listen;

/// Where packets come from.
#[derive(Debug)]
pub(super) struct Packets {
    program: PathBuf,
    files: Mutex<Vec<PathBuf>>,
    /// The arguments of an extraction, but for the connection, the captures and where to write.
    extraction: Vec<OsString>,
    /// Why there are none, whatever files there are.
    kept_back: Option<&'static str>,
    /// Why there are none while there are no files.
    lacks_files: &'static str,
    /// Those that are read here.
    running: Mutex<Vec<Arc<Mutex<Child>>>>,
    /// How many extractions there may be at once.
    extractions: Arc<Semaphore>,
}

/// How often it is asked whether anybody waits.
const PAUSE: Duration = Duration::from_millis(100);
/// Extractions at once: each may read all captures.
const EXTRACTIONS: usize = 2;
/// The last bytes of what an extraction says, which are kept.
const SAID: usize = 4096;

/// What an extraction tells of itself at its end (`--json`).
#[derive(Deserialize)]
struct Report {
    /// What was asked for and is not in the captures.
    missing: Vec<String>,
}

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
            extraction: args.traffic.extraction("--json"),
            kept_back: args.keeps_packets_back(),
            lacks_files: args.lacks_captures(),
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
    ) -> Result<T, Failure> {
        self.may_have(uid)?;
        let wrong =
            |said: &dyn std::fmt::Display| Failure::inside(&format!("cannot extract: {said}"));
        let mut child = self.command(uid).into_std().spawn().map_err(|error| wrong(&error))?;
        let said = child.stderr.take().map(listen);
        let output = child.stdout.take().ok_or_else(|| wrong(&"it has no output"))?;
        let child = Arc::new(Mutex::new(child));
        locked(&self.running).push(Arc::clone(&child));
        end_where_given_up(&child, given_up);
        let value = read(output);
        // Its output is closed now, so that it ends whatever is left.
        let status = loop {
            match locked(&child).try_wait() {
                Ok(Some(status)) => break status,
                Ok(None) => {}
                Err(error) => return Err(wrong(&error)),
            }
            std::thread::sleep(PAUSE / 10);
        };
        locked(&self.running).retain(|one| !Arc::ptr_eq(one, &child));
        let said = said.and_then(|said| said.join().ok()).unwrap_or_default();
        if !is_good(status) {
            return Err(failure(&said));
        }
        value.map_err(|error| wrong(&error))
    }

    /// Whether the captures may have packets of this name: logs of other programs have other names.
    fn may_have(&self, uid: &str) -> Result<(), Failure> {
        if let Some(why) = self.kept_back() {
            return Err(Failure::missing(why));
        }
        let is_ours = uid.parse::<Uid>();
        is_ours
            .map(drop)
            .map_err(|error| Failure::missing(&format!("no packet is found by {uid}: {error}")))
    }

    /// Why packets of connections cannot be had.
    pub(super) fn kept_back(&self) -> Option<&'static str> {
        self.kept_back.or_else(|| locked(&self.files).is_empty().then_some(self.lacks_files))
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
        let mut command = Command::new(&self.program);
        command.args(&self.extraction).args(["--uid", uid, "-w", "-", "--"]);
        command.args(&*locked(&self.files)).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        command
    }

    /// The packets of a connection as a pcapng file, which is made while it is sent.
    ///
    /// # Errors
    ///
    /// Why there are none.
    pub(super) async fn of_connection(&self, uid: &str) -> Result<Body, Failure> {
        self.may_have(uid)?;
        let permit = Arc::clone(&self.extractions).acquire_owned().await;
        let permit = permit.map_err(|_| Failure::inside("it ends"))?;
        let child = self.command(uid).spawn();
        let mut child =
            child.map_err(|error| Failure::inside(&format!("cannot extract: {error}")))?;
        let (Some(mut output), Some(said)) = (child.stdout.take(), child.stderr.take()) else {
            return Err(Failure::inside("the extraction has no output"));
        };
        // Read all along: a process whose pipe is full would wait.
        let said = tokio::spawn(ending(said));
        let first = piece(&mut output).await;
        // A shorter one is the last, too: then it is known how it ended before there is an answer.
        if first.as_ref().is_none_or(|first| first.len() < PIECE)
            && !child.wait().await.is_ok_and(is_good)
        {
            return Err(failure(&said.await.unwrap_or_default()));
        }
        let (pieces, body) = answer();
        tokio::spawn(async move {
            let _permit = permit;
            let mut next = first;
            while let Some(bytes) = next {
                if !pieces.send(bytes).await {
                    // Whoever asked has gone; the process goes with its handle.
                    return;
                }
                next = piece(&mut output).await;
            }
            // Otherwise the download shows as one that failed.
            if child.wait().await.is_ok_and(is_good) {
                pieces.finish(HeaderMap::new());
            }
        });
        Ok(body)
    }
}

/// Where nobody waits any more, an extraction is not to read all captures.
fn end_where_given_up(child: &Arc<Mutex<Child>>, given_up: &Arc<AtomicBool>) {
    let (watched, given_up) = (Arc::downgrade(child), Arc::clone(given_up));
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
}

/// Whether all is there that the captures have.
fn is_good(status: ExitStatus) -> bool {
    status.code().is_some_and(|code| code == 0 || code == i32::from(netsniff_console::DAMAGED))
}

/// Why an extraction failed, by what it said: where the captures lack the connection, its report names that.
fn failure(said: &[String]) -> Failure {
    let report = |line: &String| serde_json::from_str::<Report>(line).ok();
    let is_missing = said.iter().filter_map(report).any(|report| !report.missing.is_empty());
    let words: Vec<_> =
        said.iter().filter(|line| report(line).is_none()).map(String::as_str).collect();
    let words = words.join("; ");
    match (is_missing, words.is_empty()) {
        (true, true) => Failure::missing("no packet was found"),
        (true, false) => Failure::missing(&words),
        (false, true) => Failure::inside("the extraction failed"),
        (false, false) => Failure::inside(&format!("the extraction failed: {words}")),
    }
}

/// The last lines of what it says.
async fn ending(mut said: tokio::process::ChildStderr) -> Vec<String> {
    let mut text = Vec::new();
    while said.read_buf(&mut text).await.is_ok_and(|read| read > 0) {
        text.drain(..text.len().saturating_sub(SAID));
    }
    let lines = String::from_utf8_lossy(&text);
    let lines = lines.lines().map(|line| line.trim_start_matches("netsniff: ").trim_end());
    lines.map(str::to_owned).collect()
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

#[cfg(test)]
mod tests {
    use axum::http::StatusCode;
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Words {
        #[command(flatten)]
        args: ServeArgs,
    }

    fn packets(words: &[&str]) -> Packets {
        let words = ["serve"].iter().chain(words);
        Packets::of(&Words::try_parse_from(words).unwrap().args).unwrap()
    }

    #[test]
    fn options_keep_packets_back_also_where_there_are_captures() {
        let options = Some("options behind --");
        let is = |packets: &Packets, why: Option<&str>| {
            let found = packets.kept_back();
            assert_eq!(found.is_some(), why.is_some(), "{found:?}");
            assert!(found.zip(why).is_none_or(|(found, why)| found.contains(why)), "{found:?}");
            let refused = packets.may_have("C0AAAAAAAAAAAAAAAA").err().map(|it| it.said);
            assert_eq!(refused.as_deref(), found);
        };
        for (words, before, recorded) in [
            (&["a.pcap"][..], None, None),
            (&["a.pcap", "--", "--timeout", "udp=1ms"], options, options),
            // A recording that has ended is a capture as well.
            (&["-i", "eth0"], Some("netsniff record"), None),
            (&["-i", "eth0", "--", "--timeout", "udp=1ms"], options, options),
        ] {
            let packets = packets(words);
            is(&packets, before);
            packets.add("b.pcapng".into());
            is(&packets, recorded);
        }
    }

    #[test]
    fn an_extraction_reads_captures_by_the_filter_of_the_analysis() {
        let packets = packets(&["-i", "eth0", "-f", "udp port 53"]);
        packets.add("-x.pcapng".into());
        let command = packets.command("C1");
        let words: Vec<_> = command.as_std().get_args().map(|it| it.to_str().unwrap()).collect();
        let expected = "extract,--json,--filter,udp port 53,--uid,C1,-w,-,--,-x.pcapng";
        assert_eq!(words.join(","), expected);
    }

    #[test]
    fn what_was_not_found_is_no_fault_of_the_server() {
        let said = |lines: &[&str]| {
            let lines: Vec<_> = lines.iter().map(|line| (*line).to_owned()).collect();
            let Failure { status, said } = failure(&lines);
            (status, said)
        };
        let report = |missing: &str| {
            format!(
                "{{\"packets_read\":9,\"packets_written\":0,\"packets_hurried\":0,\"missing\":[{missing}]}}"
            )
        };
        let (missing, inside) = (StatusCode::NOT_FOUND, StatusCode::INTERNAL_SERVER_ERROR);
        assert_eq!(
            said(&["Cx: it is not in the input", &report("\"Cx\"")]),
            (missing, "Cx: it is not in the input".to_owned())
        );
        for (lines, told) in [
            (&["a.pcap: No such file"][..], "the extraction failed: a.pcap: No such file"),
            (&[], "the extraction failed"),
            (&["cannot write -", &report("")], "the extraction failed: cannot write -"),
        ] {
            assert_eq!(said(lines), (inside, told.to_owned()));
        }
    }
}
