//! Namespaces for tests of live commands: a veth pair, a sender at one end, netsniff at the other.
#![allow(dead_code, reason = "each test uses a part of it")]

pub(crate) mod hosts;

use std::fs::{self, OpenOptions};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use netsniff_capture::interface::LinkReader;
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

    /// Adds a second pair, tx1 and rx1.
    pub(crate) fn add_pair(&self) {
        let script = format!(
            "ip link add name tx1 netns {0}-tx type veth peer name rx1 netns {0}-rx && \
             ip -n {0}-tx link set dev tx1 arp off up && ip -n {0}-rx link set dev rx1 arp off up",
            self.name
        );
        let out = Command::new("bash").args(["-c", &script]).output().unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    }

    /// Chooses who pays for receiving, as `testbed.sh` has it.
    pub(crate) fn place(&self, mode: &str) {
        let out = Command::new("bash").args([SCRIPT, "place", &self.name, mode]).output().unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    }

    /// Sends so many small frames as fast as possible by an XDP socket, and returns how many of them the
    /// sender's end of the pair dropped.
    pub(crate) fn send_fast(&self, count: u64) -> u64 {
        self.in_sender(|| {
            // Beside the processor that receives, where `place` chose that.
            netsniff_capture::pin(0).unwrap();
            let interface = Interface::find("tx0").unwrap();
            let mut reader = LinkReader::new(interface.index).unwrap();
            let before = reader.counters().unwrap().unwrap();
            let mut transmitter = WAYS[0].open(&interface, 0).unwrap();
            let frame = probe::frame(64, 0).unwrap();
            let mut sent = 0;
            while sent < count {
                // As many as there is room for, which the kernel then takes at one go.
                while sent < count
                    && let Some((_, room)) = transmitter.room()
                {
                    room[..frame.len()].copy_from_slice(&frame);
                    transmitter.fill(frame.len());
                    sent += 1;
                }
                transmitter.flush().unwrap();
            }
            while transmitter.pending() > 0 {
                transmitter.flush().unwrap();
            }
            let after = reader.counters().unwrap().unwrap();
            after.tx_dropped - before.tx_dropped
        })
    }

    /// Sends so many frames with a VLAN tag.
    pub(crate) fn send_tagged(&self, count: u64) {
        self.in_sender(|| {
            let interface = Interface::find("tx0").unwrap();
            let way = WAYS.iter().find(|way| way.name == "sendmmsg").unwrap();
            let mut transmitter = way.open(&interface, 0).unwrap();
            for sequence in 0..count {
                let plain = probe::frame(200, sequence as u32 % 16).unwrap();
                let frame = [&plain[..12], &[0x81, 0, 0, 5], &plain[12..]].concat();
                transmitter.room().unwrap().1[..frame.len()].copy_from_slice(&frame);
                transmitter.fill(frame.len());
                while transmitter.pending() > 0 {
                    transmitter.flush().unwrap();
                }
            }
        });
    }

    /// Sends these frames, one by one.
    pub(crate) fn send_frames(&self, frames: &[Vec<u8>]) {
        self.in_sender(|| {
            let interface = Interface::find("tx0").unwrap();
            let way = WAYS.iter().find(|way| way.name == "sendmmsg").unwrap();
            let mut transmitter = way.open(&interface, 0).unwrap();
            for frame in frames {
                transmitter.room().unwrap().1[..frame.len()].copy_from_slice(frame);
                transmitter.fill(frame.len());
                while transmitter.pending() > 0 {
                    transmitter.flush().unwrap();
                }
            }
        });
    }

    /// Runs something in a thread of the sending namespace.
    pub(crate) fn in_sender<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        let namespace = format!("{}-tx", self.name);
        thread::scope(|scope| {
            let sender = scope.spawn(|| {
                enter_namespace(&namespace).unwrap();
                work()
            });
            sender.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
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
        self.send_on("tx0", what);
    }

    /// The same at this end of a pair.
    pub(crate) fn send_on(&self, interface: &str, what: &Sent) {
        self.in_sender(|| send(interface, what));
    }
}

fn send(interface: &str, what: &Sent) {
    let interface = Interface::find(interface).unwrap();
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

    fn launch(
        bed: &Bed,
        name: &str,
        command: &str,
        output: &[&str; 2],
        arguments: &[&str],
    ) -> Self {
        Self::launch_with(bed, name, command, output, arguments, Ends::Read)
    }

    fn launch_with(
        bed: &Bed,
        name: &str,
        command: &str,
        output: &[&str; 2],
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
            .args([command, "-i", "rx0", output[0]])
            .arg(if output[1] == "-" { "-".into() } else { directory.join(output[1]) })
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

/// The last row of the log `capture` for the interface, or for the host.
pub(crate) struct Last(Log, usize);

impl Last {
    pub(crate) fn read(logs: &Path, scope: &str) -> Self {
        let log = Log::read(&logs.join("capture.log"));
        let rows = log.of(&[("final", "T"), ("scope", scope)]);
        assert_eq!(rows.len(), 1, "one last row for {scope}");
        Self(log, rows[0])
    }

    pub(crate) fn text(&self, column: &str) -> &str {
        self.0.value(self.1, column)
    }

    pub(crate) fn number(&self, column: &str) -> u64 {
        self.text(column).parse().unwrap_or_else(|_| panic!("{column} is {}", self.text(column)))
    }

    /// All that arrived went somewhere, and what was delivered, too.
    pub(crate) fn closes(&self) {
        assert_eq!(self.text("unexplained"), "0");
        let parts = ["lost_interface", "filtered", "ring_dropped", "delivered"];
        let sum: u64 = parts.iter().map(|column| self.number(column)).sum();
        assert_eq!(sum, self.number("arrived"));
        let parts = ["analysed", "refused", "filtered_late", "beyond_end", "in_flight"];
        let sum: u64 = parts.iter().map(|column| self.number(column)).sum();
        assert_eq!(sum, self.number("delivered"));
    }
}
