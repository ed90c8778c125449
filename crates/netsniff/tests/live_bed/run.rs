//! A command at the receiver's end, from its start to what came of it.

use std::fs::{self, OpenOptions};
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use super::Bed;

/// No run takes longer, whatever goes wrong.
const LIMIT: Duration = Duration::from_secs(30);

/// A running `netsniff analyze -i rx0 -o …`.
pub(crate) struct Run {
    child: Child,
    directory: PathBuf,
    errors: Receiver<String>,
    output: Receiver<String>,
    begin: Instant,
    /// The end of a pipe that nobody reads.
    _fifo: Option<fs::File>,
    /// What lets the output be read, once it is dropped.
    _go: Sender<()>,
}

/// Which of the ends of a run somebody reads.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ends {
    Read,
    FifoUnread,
    OutputUnread,
    /// All of them, and EXTRACTED is on a disk of 64 KiB.
    SmallDisk,
}

/// What came of it.
pub(crate) struct Done {
    pub(crate) code: i32,
    pub(crate) output: String,
    pub(crate) errors: String,
    pub(crate) logs: PathBuf,
    pub(crate) elapsed: Duration,
    pub(crate) end_took: Duration,
    directory: PathBuf,
}

impl Done {
    /// Where everything was written.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// A file beside the logs.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }
}

impl Drop for Done {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}

impl Run {
    /// Starts it and waits until it captures. The words PIDFILE, RECORDING and EXTRACTED among the arguments become
    /// paths.
    pub(crate) fn start(bed: &Bed, name: &str, arguments: &[&str]) -> Self {
        Self::launch(bed, name, "analyze", &["-o", "logs"], arguments)
    }

    /// Starts `netsniff record -i rx0 -w file`.
    pub(crate) fn record(bed: &Bed, name: &str, file: &str, arguments: &[&str]) -> Self {
        Self::launch(bed, name, "record", &["-w", file], arguments)
    }

    /// [`Self::start`] with a pipe that nobody reads in place of RECORDING.
    pub(crate) fn start_with_fifo(bed: &Bed, name: &str, arguments: &[&str]) -> Self {
        Self::launch_with(bed, name, "analyze", &["-o", "logs"], arguments, Ends::FifoUnread)
    }

    /// `netsniff analyze -i rx0 -o -`, whose output nobody reads.
    pub(crate) fn start_without_reader(bed: &Bed, name: &str, arguments: &[&str]) -> Self {
        Self::launch_with(bed, name, "analyze", &["-o", "-"], arguments, Ends::OutputUnread)
    }

    /// [`Self::start`] with little room for EXTRACTED.
    pub(crate) fn start_on_small_disk(bed: &Bed, name: &str, arguments: &[&str]) -> Self {
        Self::launch_with(bed, name, "analyze", &["-o", "logs"], arguments, Ends::SmallDisk)
    }

    /// Starts `netsniff receive -i rx0`.
    pub(crate) fn receive(bed: &Bed, name: &str, arguments: &[&str]) -> Self {
        Self::launch(bed, name, "receive", &[], arguments)
    }

    fn launch(bed: &Bed, name: &str, command: &str, output: &[&str], arguments: &[&str]) -> Self {
        Self::launch_with(bed, name, command, output, arguments, Ends::Read)
    }

    fn launch_with(
        bed: &Bed,
        name: &str,
        command: &str,
        output: &[&str],
        arguments: &[&str],
        ends: Ends,
    ) -> Self {
        let directory =
            std::env::temp_dir().join(format!("netsniff-live-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir_all(&directory).unwrap();
        // Also where the command gives its rights up.
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o777)).unwrap();
        let arguments = arguments.iter().map(|word| match *word {
            "PIDFILE" | "RECORDING" | "EXTRACTED" => directory.join(word).into_os_string(),
            word => word.into(),
        });
        let fifo = (ends == Ends::FifoUnread).then(|| {
            let path = directory.join("RECORDING");
            assert!(
                Command::new("mkfifo").args(["-m", "666"]).arg(&path).status().unwrap().success()
            );
            // Held open for reading, so that whoever writes need not wait for one who reads.
            OpenOptions::new().read(true).write(true).open(path).unwrap()
        });
        let begin = Instant::now();
        let mut ip = Command::new("ip");
        ip.args(["netns", "exec", &bed.receiver()]);
        if ends == Ends::SmallDisk {
            // Mounts of such a process are its own.
            let mount =
                "mkdir \"$0\" && mount -t tmpfs -o size=64k,mode=777 none \"$0\" && exec \"$@\"";
            ip.args(["sh", "-c", mount]).arg(directory.join("EXTRACTED"));
        }
        let mut child = ip
            .arg(env!("CARGO_BIN_EXE_netsniff"))
            .args([command, "-i", "rx0"])
            .args(output.iter().map(|word| match *word {
                option if option.starts_with('-') => option.into(),
                file => directory.join(file),
            }))
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (ready, is_ready) = channel();
        let (said, errors) = channel();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        thread::spawn(move || {
            let mut all = String::new();
            for line in stderr.lines().map_while(Result::ok) {
                if line.contains("capturing;") {
                    let _ = ready.send(());
                }
                all += &line;
                all += "\n";
            }
            let _ = said.send(all);
        });
        let (printed, output) = channel();
        let mut stdout = child.stdout.take().unwrap();
        let (go, may_go) = channel::<()>();
        if ends != Ends::OutputUnread {
            let _ = go.send(());
        }
        thread::spawn(move || {
            // Until the run is over, where nobody is to read.
            let _ = may_go.recv();
            let mut all = String::new();
            let _ = stdout.read_to_string(&mut all);
            let _ = printed.send(all);
        });
        let run = Self { child, directory, errors, output, begin, _fifo: fifo, _go: go };
        assert!(
            is_ready.recv_timeout(LIMIT).is_ok(),
            "it does not capture: {:?}",
            run.errors.try_recv()
        );
        run
    }

    pub(crate) fn logs(&self) -> PathBuf {
        self.directory.join("logs")
    }

    /// `ip netns exec` becomes the command, so that this is its number.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, name: &str) {
        let status =
            Command::new("kill").arg(format!("-{name}")).arg(self.pid().to_string()).status();
        assert!(status.unwrap().success());
    }

    /// Stops the process, as a machine under load does. Its threads stop one by one, each once it has a processor.
    pub(crate) fn pause(&self) {
        thread::sleep(Duration::from_millis(200));
        self.signal("STOP");
        let end = Instant::now() + Duration::from_secs(5);
        while !self.is_stopped() {
            assert!(Instant::now() < end, "it does not stop");
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Whether all of its threads are: the state stands behind the name in brackets (proc(5)).
    fn is_stopped(&self) -> bool {
        let threads = fs::read_dir(format!("/proc/{}/task", self.pid())).unwrap();
        let stats = threads.flatten().map(|of| fs::read_to_string(of.path().join("stat")));
        let is_stopped = |stat: String| stat.rsplit(')').next().unwrap().trim().starts_with('T');
        stats.flatten().all(is_stopped)
    }

    pub(crate) fn resume(&self) {
        self.signal("CONT");
    }

    /// Ends it by a signal, once what was sent has had time to arrive.
    pub(crate) fn end(self) -> Done {
        thread::sleep(Duration::from_millis(200));
        self.signal("INT");
        self.wait()
    }

    /// Ends it by a signal at once.
    pub(crate) fn end_now(self) -> Done {
        self.signal("INT");
        self.wait()
    }

    /// Waits until it ends by itself.
    pub(crate) fn wait(mut self) -> Done {
        let begin = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            if begin.elapsed() > LIMIT {
                let _ = self.child.kill();
                panic!("it does not end: {:?}", self.errors.recv_timeout(LIMIT));
            }
            thread::sleep(Duration::from_millis(5));
        };
        drop(self._go);
        Done {
            code: status.code().unwrap_or(-1),
            output: self.output.recv_timeout(LIMIT).unwrap(),
            errors: self.errors.recv_timeout(LIMIT).unwrap(),
            logs: self.directory.join("logs"),
            elapsed: self.begin.elapsed(),
            end_took: begin.elapsed(),
            directory: self.directory,
        }
    }
}
