//! What a browser may do, where it is let: record live traffic, by `netsniff record`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use netsniff_console::calendar::Date;
use netsniff_packet::Timestamp;
use rustix::process::{Pid, Signal, kill_process};

use crate::watch::source::child::listen;

/// How long a recording may take to end.
const PATIENCE: Duration = Duration::from_secs(15);
/// How often it is asked whether it has.
const PAUSE: Duration = Duration::from_millis(20);

/// Recordings that a browser begins and ends. One that runs ends with this value.
#[derive(Debug)]
pub(super) struct Control {
    program: PathBuf,
    /// The words of a recording, but for where to write.
    words: Vec<OsString>,
    /// Where recordings go.
    directory: PathBuf,
    running: Mutex<Option<Running>>,
}

/// A recording.
#[derive(Debug)]
struct Running {
    child: Child,
    file: PathBuf,
    said: Option<JoinHandle<Vec<String>>>,
}

impl Control {
    pub(super) fn new(program: PathBuf, words: Vec<OsString>, directory: PathBuf) -> Self {
        Self { program, words, directory, running: Mutex::new(None) }
    }

    fn running(&self) -> MutexGuard<'_, Option<Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The file that is recorded to; `None` where nothing is.
    pub(super) fn recording(&self) -> Option<String> {
        let mut running = self.running();
        let has_ended = |it: &mut Running| !matches!(it.child.try_wait(), Ok(None));
        if running.as_mut().is_some_and(has_ended) {
            return None;
        }
        running.as_ref().map(|it| it.file.display().to_string())
    }

    /// Begins to record, to a file whose name is the time.
    ///
    /// # Errors
    ///
    /// Why it cannot be begun.
    pub(super) fn begin(&self) -> Result<String, String> {
        let mut running = self.running();
        if running.is_some() {
            return Err("a recording is running already".to_owned());
        }
        let file = self.directory.join(name());
        if file.exists() {
            return Err(format!("{} exists", file.display()));
        }
        let mut command = Command::new(&self.program);
        command.args(&self.words).arg("-w").arg(&file);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| format!("cannot record: {error}"))?;
        let said = child.stderr.take().map(listen);
        let told = format!("recording to {}", file.display());
        *running = Some(Running { child, file, said });
        Ok(told)
    }

    /// Ends the recording in good order; its file and what there is to say.
    ///
    /// # Errors
    ///
    /// Why there is none.
    pub(super) fn end(&self) -> Result<(PathBuf, String), String> {
        let mut recording = self.running().take().ok_or("nothing is recorded")?;
        let status = recording.end();
        let said = recording.said.take().and_then(|said| said.join().ok()).unwrap_or_default();
        match status {
            Some(0) => {
                let told = format!("recorded to {}", recording.file.display());
                Ok((recording.file.clone(), told))
            }
            _ if said.is_empty() => Err("the recording failed".to_owned()),
            _ => Err(said.join("; ")),
        }
    }
}

impl Running {
    /// Lets it write what it has. Its exit code, where it has one.
    fn end(&mut self) -> Option<i32> {
        self.signal(Signal::INT);
        let begin = Instant::now();
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return status.code(),
                Ok(None) if begin.elapsed() < PATIENCE => thread::sleep(PAUSE),
                _ => {
                    let _ = self.child.kill();
                    let _ = self.child.wait();
                    return None;
                }
            }
        }
    }

    fn signal(&mut self, signal: Signal) {
        // Until it was waited for its number is nobody else's.
        if let (Ok(None), Some(pid)) =
            (self.child.try_wait(), i32::try_from(self.child.id()).ok().and_then(Pid::from_raw))
        {
            let _ = kill_process(pid, signal);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}

/// The name of a recording that begins now, in UTC.
fn name() -> PathBuf {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
    let now = Timestamp::from_nanos(i64::try_from(now).unwrap_or(i64::MAX));
    let Date { year, month, day, hour, minute, second } = Date::of(now);
    let text = format!("{year:04}-{month:02}-{day:02}-{hour:02}-{minute:02}-{second:02}");
    Path::new(&format!("netsniff-{text}.pcapng")).to_owned()
}
