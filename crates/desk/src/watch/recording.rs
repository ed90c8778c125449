//! A recording of live traffic beside the view of it, by `netsniff record`: a process of its own.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::source::child::listen;

/// How long it may take to end.
const PATIENCE: Duration = Duration::from_secs(15);
/// How often it is asked whether it has ended, once it has nothing more to say.
const PAUSE: Duration = Duration::from_millis(20);

/// A recording, which ends in good order with this value.
#[derive(Debug)]
pub(crate) struct Recording {
    child: Arc<Mutex<Child>>,
    file: PathBuf,
    outcome: Receiver<Outcome>,
}

/// How it ended, in words: with a file, or without one that is whole.
pub(crate) type Outcome = Result<String, String>;

impl Recording {
    /// Begins to record to a file that is not there yet. `ended` is told how it ended, whoever ended it.
    ///
    /// # Errors
    ///
    /// Why it cannot be begun.
    pub(crate) fn begin(
        program: &Path,
        words: &[OsString],
        file: &Path,
        ended: impl FnOnce(&Outcome) + Send + 'static,
    ) -> Result<Self, String> {
        let name = file.display().to_string();
        if file.exists() {
            return Err(format!("{name} exists: name another file"));
        }
        let mut command = Command::new(program);
        // A name that begins with a dash is neither an option nor standard output.
        command.args(words).arg("-w").arg(Path::new(".").join(file));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let cannot = |error: std::io::Error| format!("cannot record: {error}");
        let mut child = command.spawn().map_err(cannot)?;
        let said = child.stderr.take().map(listen);
        let child = Arc::new(Mutex::new(child));
        let (tell, outcome) = channel();
        let recording = Self { child: Arc::clone(&child), file: file.to_owned(), outcome };
        let wait = move || {
            // It closes its output when it ends.
            let said = said.and_then(|said| said.join().ok()).unwrap_or_default();
            let how = match wait(&child) {
                Ok(status) if status.success() => Ok(format!("recorded to {name}")),
                _ if said.is_empty() => Err("the recording failed".to_owned()),
                _ => Err(said.join("; ")),
            };
            // Where nobody waits for it, nobody asks. Whoever is told below may wait for something else.
            let _ = tell.send(how.clone());
            ended(&how);
        };
        thread::Builder::new().name("recording".to_owned()).spawn(wait).map_err(cannot)?;
        Ok(recording)
    }

    /// Where it goes.
    pub(crate) fn file(&self) -> &Path {
        &self.file
    }

    /// Whether it has ended, maybe by itself.
    pub(crate) fn has_ended(&self) -> bool {
        !matches!(locked(&self.child).try_wait(), Ok(None))
    }

    /// Asks it to write what it has, and to end.
    pub(crate) fn ask_to_end(&self) {
        let mut child = locked(&self.child);
        // Until it was waited for its number is nobody else's.
        if let (Ok(None), Some(pid)) =
            (child.try_wait(), i32::try_from(child.id()).ok().and_then(Pid::from_raw))
        {
            let _ = kill_process(pid, Signal::INT);
        }
    }

    /// Ends it in good order, and waits for that.
    pub(crate) fn end(self) -> Outcome {
        self.finish()
    }

    fn finish(&self) -> Outcome {
        self.ask_to_end();
        self.outcome.recv_timeout(PATIENCE).unwrap_or_else(|_| {
            let mut child = locked(&self.child);
            let _ = child.kill();
            let _ = child.wait();
            Err(format!("the recording to {} did not end", self.file.display()))
        })
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        if !self.has_ended() {
            let _ = self.finish();
        }
    }
}

fn locked(child: &Mutex<Child>) -> MutexGuard<'_, Child> {
    child.lock().unwrap_or_else(PoisonError::into_inner)
}

fn wait(child: &Mutex<Child>) -> std::io::Result<ExitStatus> {
    loop {
        let status = locked(child).try_wait();
        match status {
            Ok(None) => thread::sleep(PAUSE),
            Ok(Some(status)) => return Ok(status),
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::mpsc::sync_channel;

    use super::*;

    /// A program in place of this one: a script that gets the words of a recording.
    fn begin(name: &str, script: &str) -> (PathBuf, Recording) {
        let file = std::env::temp_dir().join(format!("ns-{name}-{}", std::process::id()));
        let _ = fs::remove_file(&file);
        let words = ["-c", script, "sh"].map(OsString::from);
        // A queue that nobody empties: who is told waits for ever.
        let (sender, receiver) = sync_channel(0);
        std::mem::forget(receiver);
        let told = move |how: &Outcome| drop(sender.send(how.clone()));
        let recording = Recording::begin(Path::new("/bin/sh"), &words, &file, told).unwrap();
        (file, recording)
    }

    /// Waits until it has written to its file, so that it is ready.
    fn await_file(file: &Path) {
        while fs::read(file).map_or(0, |it| it.len()) == 0 {
            thread::sleep(PAUSE);
        }
    }

    #[test]
    fn it_ends_in_good_order() {
        let script = "trap 'echo end >> \"$2\"; exit 0' INT; echo begin > \"$2\"; while :; do sleep 0.01; done";
        let (file, recording) = begin("good", script);
        await_file(&file);
        assert!(!recording.has_ended());
        assert_eq!(recording.end(), Ok(format!("recorded to {}", file.display())));
        assert_eq!(fs::read_to_string(&file).unwrap(), "begin\nend\n");
        let again = Recording::begin(Path::new("/bin/sh"), &[], &file, |_| {}).unwrap_err();
        assert!(again.ends_with("exists: name another file"), "{again}");
        // So it does where nobody ends it.
        let (file, recording) = begin("dropped", script);
        await_file(&file);
        drop(recording);
        assert_eq!(fs::read_to_string(&file).unwrap(), "begin\nend\n");
        let _ = fs::remove_file(file);
    }

    #[test]
    fn what_ended_by_itself_says_why() {
        let (_, recording) = begin("full", "echo 'netsniff: the disk is full' >&2; exit 1");
        while !recording.has_ended() {
            thread::sleep(PAUSE);
        }
        assert_eq!(recording.end(), Err("the disk is full".to_owned()));
        let (_, silent) = begin("silent", "exit 1");
        assert_eq!(silent.end(), Err("the recording failed".to_owned()));
    }
}
