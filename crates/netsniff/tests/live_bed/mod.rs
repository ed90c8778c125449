//! Namespaces for tests of live commands: a veth pair, a sender at one end, netsniff at the other.
#![allow(dead_code, reason = "each test uses a part of it")]

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use netsniff_capture::transmit::WAYS;
use netsniff_capture::{Interface, enter_namespace, monotonic};
use netsniff_traffic::pace::{Late, Pacer};
use netsniff_traffic::probe;
use netsniff_traffic::stamp::Stamp;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../benches/live/testbed.sh");

/// No run takes longer, whatever goes wrong.
const LIMIT: Duration = Duration::from_secs(30);

/// The namespaces, which go with this value.
pub(crate) struct Bed {
    name: String,
}

/// Frames to send.
pub(crate) struct Sent {
    pub(crate) count: u64,
    /// Bytes with frame check sequence.
    pub(crate) size: usize,
    /// Frames a second.
    pub(crate) rate: u32,
}

impl Bed {
    /// Makes them; `None`, said loudly, where this machine cannot.
    pub(crate) fn up(test: &str) -> Option<Self> {
        let name = format!("nsl-{test}-{}", std::process::id());
        match Command::new("bash").args([SCRIPT, "up", &name]).output() {
            Ok(up) if up.status.success() => Some(Self { name }),
            Ok(up) => {
                let why = String::from_utf8_lossy(&up.stderr).trim().to_owned();
                eprintln!("SKIPPED: {test} needs namespaces, which cannot be made here: {why}");
                None
            }
            Err(error) => {
                eprintln!("SKIPPED: {test} needs bash: {error}");
                None
            }
        }
    }

    /// The receiving namespace.
    pub(crate) fn receiver(&self) -> String {
        format!("{}-rx", self.name)
    }

    /// Calls ip(8) in the receiving namespace.
    pub(crate) fn ip(&self, arguments: &[&str]) {
        let out =
            Command::new("ip").args(["-n", &self.receiver()]).args(arguments).output().unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    }

    /// Removes the pair and makes another one of the same names.
    pub(crate) fn renew(&self) {
        self.ip(&["link", "del", "rx0"]);
        thread::sleep(Duration::from_millis(300));
        let script = format!(
            "ip link add name tx0 netns {0}-tx type veth peer name rx0 netns {0}-rx && \
             ip -n {0}-tx link set dev tx0 arp off up && ip -n {0}-rx link set dev rx0 arp off up",
            self.name
        );
        let out = Command::new("bash").args(["-c", &script]).output().unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    }

    /// Asks a server in the receiving namespace for a page.
    pub(crate) fn fetch(&self, address: &str, path: &str) -> String {
        let namespace = self.receiver();
        thread::scope(|scope| {
            let asking = scope.spawn(|| {
                enter_namespace(&namespace).unwrap();
                let mut stream = TcpStream::connect(address).unwrap();
                write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
                let mut page = String::new();
                stream.read_to_string(&mut page).unwrap();
                page
            });
            asking.join().unwrap()
        })
    }

    /// Sends stamped frames of 256 flows, paced.
    pub(crate) fn send(&self, what: &Sent) {
        let namespace = format!("{}-tx", self.name);
        thread::scope(|scope| {
            let sender = scope.spawn(|| {
                enter_namespace(&namespace).unwrap();
                send(what);
            });
            sender.join().unwrap();
        });
    }
}

fn send(what: &Sent) {
    let interface = Interface::find("tx0").unwrap();
    let way = WAYS.iter().find(|way| way.name == "sendmmsg").unwrap();
    let mut transmitter = way.open(&interface, 0).unwrap();
    let mut pacer = Pacer::new(monotonic(), f64::from(what.rate), Late::Slip).unwrap();
    for sequence in 0..what.count {
        while monotonic() < pacer.due(sequence) {
            thread::yield_now();
        }
        pacer.leaves(sequence, monotonic());
        let mut frame = probe::frame(what.size, sequence as u32 % 256).unwrap();
        let stamp = Stamp { run: 1, stream: 0, sequence, sent: 0 };
        assert!(stamp.emit(&mut frame[probe::STAMP_AT..]));
        transmitter.room().unwrap().1[..frame.len()].copy_from_slice(&frame);
        transmitter.fill(frame.len());
        while transmitter.pending() > 0 {
            transmitter.flush().unwrap();
        }
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        let _ = Command::new("bash").args([SCRIPT, "down", &self.name]).output();
    }
}

/// A running `netsniff analyze -i rx0 -o …`.
pub(crate) struct Run {
    child: Child,
    directory: PathBuf,
    errors: Receiver<String>,
    output: Receiver<String>,
    begin: Instant,
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
    /// Starts it and waits until it captures. The words PIDFILE and RECORDING among the arguments become
    /// paths.
    pub(crate) fn start(bed: &Bed, name: &str, arguments: &[&str]) -> Self {
        Self::launch(bed, name, "analyze", &["-o", "logs"], arguments)
    }

    /// Starts `netsniff record -i rx0 -w file`.
    pub(crate) fn record(bed: &Bed, name: &str, file: &str, arguments: &[&str]) -> Self {
        Self::launch(bed, name, "record", &["-w", file], arguments)
    }

    fn launch(
        bed: &Bed,
        name: &str,
        command: &str,
        output: &[&str; 2],
        arguments: &[&str],
    ) -> Self {
        let directory =
            std::env::temp_dir().join(format!("netsniff-live-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir_all(&directory).unwrap();
        // Also where the command gives its rights up.
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o777)).unwrap();
        let arguments = arguments.iter().map(|word| match *word {
            "PIDFILE" | "RECORDING" => directory.join(word).into_os_string(),
            word => word.into(),
        });
        let begin = Instant::now();
        let mut child = Command::new("ip")
            .args(["netns", "exec", &bed.receiver(), env!("CARGO_BIN_EXE_netsniff")])
            .args([command, "-i", "rx0", output[0]])
            .arg(directory.join(output[1]))
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
        thread::spawn(move || {
            let mut all = String::new();
            let _ = stdout.read_to_string(&mut all);
            let _ = printed.send(all);
        });
        let run = Self { child, directory, errors, output, begin };
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

    /// Stops the process, as a machine under load does.
    pub(crate) fn pause(&self) {
        thread::sleep(Duration::from_millis(200));
        self.signal("STOP");
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
        Done {
            code: status.code().unwrap_or(-1),
            output: self.output.recv_timeout(LIMIT).unwrap(),
            errors: self.errors.recv_timeout(LIMIT).unwrap(),
            logs: self.logs(),
            elapsed: self.begin.elapsed(),
            end_took: begin.elapsed(),
            directory: self.directory,
        }
    }
}

/// A log in Zeek's format.
pub(crate) struct Log {
    columns: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Log {
    pub(crate) fn read(path: &Path) -> Self {
        let text =
            fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let fields = text.lines().find_map(|line| line.strip_prefix("#fields\t")).unwrap();
        assert!(text.lines().last().unwrap().starts_with("#close"), "{} is whole", path.display());
        let split = |line: &str| line.split('\t').map(str::to_owned).collect::<Vec<_>>();
        Self {
            columns: split(fields),
            rows: text.lines().filter(|line| !line.starts_with('#')).map(split).collect(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(crate) fn value(&self, row: usize, column: &str) -> &str {
        let at = self.columns.iter().position(|name| name == column).unwrap();
        &self.rows[row][at]
    }

    /// The rows that have these values.
    pub(crate) fn of(&self, values: &[(&str, &str)]) -> Vec<usize> {
        let has = |row: usize| values.iter().all(|(name, value)| self.value(row, name) == *value);
        (0..self.len()).filter(|row| has(*row)).collect()
    }
}
