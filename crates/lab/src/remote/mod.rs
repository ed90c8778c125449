//! Another machine, which the user's own ssh(1) reaches: with their configuration, agent and known hosts.
//!
//! One connection has one shell there (sh, as POSIX has it), whose standard input lines are written to. So no word goes
//! through a login shell, nothing of ssh takes time while frames are sent, and everything ends with the connection: at
//! the end of its input the shell kills what it has started and removes its files. Its input ends however we end.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow, bail, ensure};

use crate::host::process;

mod destination;

pub use self::destination::Destination;

/// How long a connection may take, and an answer.
const PATIENCE: Duration = Duration::from_secs(20);

/// What ssh(1) is told beside the user's configuration: it asks nothing, gives up, and notices a dead connection. It does not
/// become the master of others, which would outlive it.
const OPTIONS: [&str; 11] = [
    "-T",
    "-o",
    "BatchMode=yes",
    "-o",
    "ConnectTimeout=10",
    "-o",
    "ServerAliveInterval=5",
    "-o",
    "ServerAliveCountMax=3",
    "-o",
    "ControlMaster=no",
];

/// What the shell does first: a directory of its own, and the end of everything. `$g` is the command that runs.
const PROLOGUE: &str = r#"LC_ALL=C; export LC_ALL; umask 077; g=
d=$(mktemp -d "${TMPDIR:-/tmp}/netsniff-XXXXXX") || exit 1
trap '[ -z "$g" ] || kill -KILL $g; rm -rf "$d"' EXIT
trap 'exit 1' HUP INT TERM PIPE
mkfifo "$d/report" || exit 1
"#;

/// How another machine is reached.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RemoteAccess<'a> {
    /// The words of the program that does: ssh(1), or what takes its arguments.
    pub(crate) ssh: &'a [String],
    pub(crate) destination: &'a Destination,
    /// The environment of the program, by which it is known to be ours.
    pub(crate) mark: &'a (&'static str, String),
}

impl RemoteAccess<'_> {
    /// The program, with what is to be done there.
    fn command(&self, what: &str) -> anyhow::Result<Command> {
        let (program, arguments) = self.ssh.split_first().context("--ssh has no program")?;
        let mut command = Command::new(program);
        command.args(arguments).args(OPTIONS).args(self.destination.words()).arg(what);
        command.env(self.mark.0, &self.mark.1);
        Ok(command)
    }

    fn start(&self, command: &mut Command) -> anyhow::Result<Child> {
        let started = command.spawn();
        started.with_context(|| format!("cannot run {}, which reaches the sender", self.ssh[0]))
    }

    /// Writes a file there, whose name is one that [`Shell::directory`] begins.
    pub(crate) fn copy(&self, from: &Path, to: &str) -> anyhow::Result<()> {
        let file = File::open(from).with_context(|| format!("cannot read {}", from.display()))?;
        let mut command = self.command(&format!("cat >{to}"))?;
        let out = self.start(command.stdin(file).stdout(Stdio::piped()).stderr(Stdio::piped()))?;
        let out = out.wait_with_output().context("cannot wait for a copy")?;
        let said = String::from_utf8_lossy(&out.stderr).trim().to_owned();
        ensure!(
            out.status.success(),
            "cannot copy {} to {}: {said}",
            from.display(),
            self.destination
        );
        Ok(())
    }
}

/// A shell on the other machine.
#[derive(Debug)]
pub(crate) struct Shell {
    destination: Destination,
    ssh: Child,
    /// Ends everything there once it is closed.
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    errors: Arc<Mutex<String>>,
    /// What no command says by chance.
    token: String,
    asked: u64,
}

/// What a command said, on both outputs, and its status.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: i32,
    pub(crate) said: String,
}

impl Shell {
    /// Connects.
    ///
    /// # Errors
    ///
    /// Where there is no such machine, or it does not let us in, with what ssh says.
    pub(crate) fn connect(way: RemoteAccess<'_>) -> anyhow::Result<Self> {
        let mut command = way.command("exec sh")?;
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut ssh = way.start(&mut command)?;
        let streams = (ssh.stdin.take(), ssh.stdout.take(), ssh.stderr.take());
        let (input, Some(output), Some(stderr)) = streams else { bail!("pipes were asked for") };
        let lines = lines_of(output);
        let errors = Arc::new(Mutex::new(String::new()));
        hear(stderr, Arc::clone(&errors));
        let token = format!("netsniff-{}", process::Identity::of_self()?);
        let destination = way.destination.clone();
        let mut shell = Self { destination, ssh, input, lines, errors, token, asked: 0 };
        shell.write(PROLOGUE)?;
        let answer = shell.ask("test -p \"$d/report\"")?;
        ensure!(
            answer.status == 0,
            "{} has no room for temporary files: {}",
            shell.destination,
            answer.said
        );
        Ok(shell)
    }

    /// Lets the shell do a line, and waits for what it says.
    ///
    /// # Errors
    ///
    /// Where the connection has ended, or nothing comes.
    pub(crate) fn ask(&mut self, line: &str) -> anyhow::Result<Answer> {
        self.asked += 1;
        let mark = format!("{}-{}", self.token, self.asked);
        self.write(&format!("{{ {line}\n}} </dev/null 2>&1; printf '\\n%s %s\\n' {mark} $?\n"))?;
        let end = Instant::now() + PATIENCE;
        let mut said = String::new();
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let line = self.line(left)?;
            let line = line.with_context(|| format!("{} does not answer", self.destination))?;
            let status = line.strip_prefix(&mark).and_then(|status| status.trim().parse().ok());
            match status {
                Some(status) => return Ok(Answer { status, said: said.trim().to_owned() }),
                None => writeln!(said, "{line}")?,
            }
        }
    }

    /// The directory of the shell, which goes with it.
    ///
    /// # Errors
    ///
    /// As [`Self::ask`], and where its name is not one that needs no quotes.
    pub(crate) fn directory(&mut self) -> anyhow::Result<String> {
        let path = self.ask("printf %s \"$d\"")?.said;
        let is_fine = |letter: char| letter.is_ascii_alphanumeric() || "/._-".contains(letter);
        ensure!(
            path.starts_with('/') && path.chars().all(is_fine),
            "{} has its temporary files at {path:?}, a name that nothing is copied to",
            self.destination
        );
        Ok(path)
    }

    /// Runs a command there, which ends with the connection; `meanwhile` is called again and again.
    ///
    /// # Errors
    ///
    /// As [`Self::ask`], where it takes longer than it may, and what `meanwhile` fails with; either ends the connection.
    pub(crate) fn run(
        &mut self,
        words: &[String],
        patience: Duration,
        (tick, meanwhile): (Duration, &mut dyn FnMut() -> anyhow::Result<()>),
    ) -> anyhow::Result<(String, Answer)> {
        self.asked += 1;
        let mark = format!("{}-{}", self.token, self.asked);
        let words: Vec<_> = words.iter().map(|word| quoted(word)).collect();
        self.write(&format!(
            "{{ cat \"$d/report\"; printf '\\n%s\\n' {mark}; }} </dev/null &\n\
             {} >\"$d/report\" 2>\"$d/errors\" </dev/null & g=$!\n",
            words.join(" ")
        ))?;
        let end = Instant::now() + patience;
        let mut report = String::new();
        loop {
            match self.line(tick)? {
                Some(line) if line == mark => break,
                Some(line) => writeln!(report, "{line}")?,
                None => {
                    if let Err(why) = meanwhile() {
                        self.close();
                        return Err(why);
                    }
                }
            }
            if Instant::now() >= end {
                self.close();
                bail!("the generator on {} does not end", self.destination);
            }
        }
        let answer = self.ask("wait $g; s=$?; g=; cat \"$d/errors\"; (exit $s)")?;
        Ok((report, answer))
    }

    fn write(&mut self, text: &str) -> anyhow::Result<()> {
        let written = self.input.as_mut().map(|input| {
            input.write_all(text.as_bytes())?;
            input.flush()
        });
        match written {
            Some(Ok(())) => Ok(()),
            _ => Err(self.ended()),
        }
    }

    /// The next line; `None` where none comes for so long.
    fn line(&mut self, time: Duration) -> anyhow::Result<Option<String>> {
        match self.lines.recv_timeout(time) {
            Ok(line) => Ok(Some(line)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(self.ended()),
        }
    }

    /// Why there is no connection.
    fn ended(&mut self) -> anyhow::Error {
        self.close();
        // Its last words may still be on their way.
        thread::sleep(Duration::from_millis(50));
        let errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        let said = errors.trim();
        let said = if said.is_empty() { "it says nothing" } else { said };
        let what = if self.asked > 1 { "the connection ended" } else { "cannot be reached by ssh" };
        anyhow!("{}: {what}: {said}", self.destination)
    }

    /// Ends everything there, and waits until that is done.
    fn close(&mut self) {
        drop(self.input.take());
        if !matches!(process::wait(&mut self.ssh, PATIENCE), Ok(Some(_))) {
            let _ = self.ssh.kill();
            let _ = self.ssh.wait();
        }
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        self.close();
    }
}

/// The lines of an output as they come.
fn lines_of(output: ChildStdout) -> Receiver<String> {
    let (to, lines) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(output).split(b'\n').map_while(Result::ok) {
            if to.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                break;
            }
        }
    });
    lines
}

/// Adds what comes to a text. Nobody waits for the end: a master of other connections may keep this open.
fn hear(mut output: ChildStderr, text: Arc<Mutex<String>>) {
    thread::spawn(move || {
        let mut piece = [0; 1024];
        while let Ok(len @ 1..) = output.read(&mut piece) {
            let mut text = text.lock().unwrap_or_else(PoisonError::into_inner);
            *text += &String::from_utf8_lossy(&piece[..len]);
        }
    });
}

/// A word as a shell takes it.
pub(crate) fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stand-in for ssh, which runs what is to be done on this machine.
    fn stand_in(name: &str, script: &str) -> (std::path::PathBuf, Vec<String>) {
        let path = std::env::temp_dir().join(format!("netsniff-{name}-{}", std::process::id()));
        std::fs::write(&path, script).unwrap();
        let words = vec!["sh".to_owned(), path.display().to_string()];
        (path, words)
    }

    /// Runs the last argument.
    const LAST: &str = "for last; do :; done; exec sh -c \"$last\"";

    fn with<T>(name: &str, script: &str, what: impl FnOnce(RemoteAccess<'_>) -> T) -> T {
        let (path, ssh) = stand_in(name, script);
        let destination = Destination::parse("ssh://there").unwrap();
        let mark = ("NETSNIFF_LAB", "nslab-test".to_owned());
        let result = what(RemoteAccess { ssh: &ssh, destination: &destination, mark: &mark });
        std::fs::remove_file(path).unwrap();
        result
    }

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn words_come_as_they_are() {
        let odd = ["a b", "it's", "$HOME `id` \"x\" \\ ; & | > * ! #", "", "-n", "two\nlines"];
        with("odd", LAST, |way| {
            let mut shell = Shell::connect(way).unwrap();
            let command = [&["printf", "<%s>"][..], &odd].concat();
            let mut ticks = 0;
            let mut tick = || {
                ticks += 1;
                Ok(())
            };
            let second = Duration::from_secs(1);
            let (said, answer) = shell.run(&words(&command), second, (second, &mut tick)).unwrap();
            let expected: String = odd.map(|word| format!("<{word}>")).concat();
            assert_eq!((said.trim(), answer.status), (expected.as_str(), 0));
            let failing = words(&["sh", "-c", "echo out; echo err >&2; exit 3"]);
            let (said, answer) = shell.run(&failing, second, (second, &mut tick)).unwrap();
            assert_eq!((said.trim(), answer.said.as_str(), answer.status), ("out", "err", 3));
            let (_, answer) =
                shell.run(&words(&["/no/such"]), second, (second, &mut tick)).unwrap();
            assert_eq!(answer.status, 127, "{answer:?}");
        });
    }

    #[test]
    fn everything_ends_with_the_connection() {
        with("end", LAST, |way| {
            let mut shell = Shell::connect(way).unwrap();
            let directory = shell.directory().unwrap();
            assert!(Path::new(&directory).is_dir());
            let file = std::env::temp_dir().join(format!("netsniff-pid-{}", std::process::id()));
            let sleep = format!("echo $$ >{}; exec sleep 60", file.display());
            let time = Duration::from_millis(500);
            let error = shell.run(&words(&["sh", "-c", &sleep]), time, (time, &mut || Ok(())));
            assert!(error.unwrap_err().to_string().contains("does not end"));
            let pid = std::fs::read_to_string(&file).unwrap();
            std::fs::remove_file(file).unwrap();
            let process = Path::new("/proc").join(pid.trim());
            let end = Instant::now() + Duration::from_secs(5);
            let stands = |path: &Path| {
                let stat = std::fs::read_to_string(path.join("stat")).unwrap_or_default();
                !stat.is_empty() && !stat.contains(") Z ")
            };
            while stands(&process) || Path::new(&directory).exists() {
                assert!(Instant::now() < end, "something stays");
                thread::sleep(Duration::from_millis(20));
            }
            assert!(shell.ask("true").is_err());
        });
    }

    #[test]
    fn what_ssh_says_is_told() {
        with("refused", "echo 'there: Permission denied (publickey).' >&2; exit 255", |way| {
            let error = Shell::connect(way).unwrap_err().to_string();
            assert_eq!(
                error,
                "ssh://there: cannot be reached by ssh: there: Permission denied (publickey)."
            );
        });
        let ssh = words(&["/no/such/ssh"]);
        let destination = Destination::parse("ssh://there").unwrap();
        let way = RemoteAccess {
            ssh: &ssh,
            destination: &destination,
            mark: &("NETSNIFF_LAB", String::new()),
        };
        let error = Shell::connect(way).unwrap_err().to_string();
        assert_eq!(error, "cannot run /no/such/ssh, which reaches the sender");
    }

    #[test]
    fn files_are_copied_whole() {
        with("copy", LAST, |way| {
            let mut shell = Shell::connect(way).unwrap();
            let to = shell.directory().unwrap() + "/capture";
            let from = std::env::temp_dir().join(format!("netsniff-from-{}", std::process::id()));
            let content: Vec<u8> = (0..200_000_u32).map(|byte| byte as u8).collect();
            std::fs::write(&from, &content).unwrap();
            way.copy(&from, &to).unwrap();
            assert!(std::fs::read(&to).unwrap() == content);
            let error = way.copy(&from, "/no/such/directory/x").unwrap_err().to_string();
            assert!(error.starts_with("cannot copy ") && error.contains("ssh://there"), "{error}");
            std::fs::remove_file(from).unwrap();
        });
    }
}
