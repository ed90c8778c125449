//! What a browser may do, where it is let: record live traffic, by `netsniff record`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use netsniff_console::calendar::Date;
use netsniff_packet::Timestamp;

use crate::watch::recording::Recording;

/// Recordings that a browser begins and ends. One that runs ends with this value.
#[derive(Debug)]
pub(super) struct Control {
    program: PathBuf,
    /// The words of a recording, but for where to write.
    words: Vec<OsString>,
    /// Where recordings go.
    directory: PathBuf,
    running: Mutex<Option<Recording>>,
}

impl Control {
    pub(super) fn new(program: PathBuf, words: Vec<OsString>, directory: PathBuf) -> Self {
        Self { program, words, directory, running: Mutex::new(None) }
    }

    fn running(&self) -> MutexGuard<'_, Option<Recording>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The file that is recorded to; `None` where nothing is. A recording that ended by itself is told of until somebody
    /// ends it, which tells why.
    pub(super) fn recording(&self) -> Option<String> {
        let running = self.running();
        let recording = running.as_ref()?;
        let ended = if recording.has_ended() { ", which has ended by itself" } else { "" };
        Some(format!("{}{ended}", recording.file().display()))
    }

    /// Begins to record, to a file whose name is the time.
    ///
    /// # Errors
    ///
    /// Why it cannot be begun.
    pub(super) fn begin(&self) -> Result<String, String> {
        let mut running = self.running();
        if running.is_some() {
            return Err("a recording is there already: end it first".to_owned());
        }
        let file = self.directory.join(name());
        *running = Some(Recording::begin(&self.program, &self.words, &file, |_| {})?);
        Ok(format!("recording to {}", file.display()))
    }

    /// Ends the recording in good order; its file and what there is to say.
    ///
    /// # Errors
    ///
    /// Why there is none.
    pub(super) fn end(&self) -> Result<(PathBuf, String), String> {
        let recording = self.running().take().ok_or("nothing is recorded")?;
        let file = recording.file().to_owned();
        recording.end().map(|told| (file, told))
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

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::Duration;

    use super::*;

    #[test]
    fn one_that_ended_by_itself_keeps_no_other_from_beginning() {
        let words = ["-c", "echo 'netsniff: the disk is full' >&2; exit 1", "sh"];
        let words = words.map(OsString::from).to_vec();
        let control = Control::new("/bin/sh".into(), words, std::env::temp_dir());
        assert_eq!(control.recording(), None);
        assert!(control.begin().unwrap().starts_with("recording to "));
        let has_ended = || control.recording().unwrap().ends_with(", which has ended by itself");
        while !has_ended() {
            thread::sleep(Duration::from_millis(20));
        }
        assert!(control.begin().unwrap_err().ends_with("end it first"));
        assert_eq!(control.end().unwrap_err(), "the disk is full");
        assert_eq!(control.recording(), None);
        assert!(control.begin().is_ok());
    }
}
