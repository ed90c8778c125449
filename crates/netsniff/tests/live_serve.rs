//! How `netsniff serve -i` ends, on a veth pair of this machine: nothing that it began goes on, and what it recorded is whole.
//! Needs root; says so where it is missing.

mod live_bed;

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use live_bed::{Bed, Sent};
use netsniff_testing::print_uncaptured;

/// How soon an analysis ends whose server was killed.
const SOON: Duration = Duration::from_secs(2);
/// How long anything else may take.
const PATIENCE: Duration = Duration::from_secs(20);
const PAUSE: Duration = Duration::from_millis(20);

/// `netsniff serve` on `rx0`, in the namespace of the thread that starts it. Directory and process go with this value.
struct Served {
    child: Child,
    address: String,
    directory: PathBuf,
    /// What it says behind its address.
    said: Option<JoinHandle<Vec<String>>>,
}

impl Served {
    fn start(name: &str, arguments: &[&str]) -> Self {
        let directory =
            std::env::temp_dir().join(format!("netsniff-live-serve-{name}-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o777)).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_netsniff"));
        command.args(["serve", "-i", "rx0", "--listen", "127.0.0.1:0"]).args(arguments);
        command.current_dir(&directory).env("TMPDIR", &directory).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let address = lines.find_map(|line| {
            let line = line.unwrap();
            Some(line.strip_prefix("netsniff: open http://")?.trim_end_matches('/').to_owned())
        });
        // Who writes must not wait.
        let said = thread::spawn(move || lines.map_while(Result::ok).collect());
        Self { child, address: address.expect("an address"), directory, said: Some(said) }
    }

    /// The one process that it has started of this subcommand.
    fn started(&self, subcommand: &str) -> PathBuf {
        let is_it = |process: &PathBuf| {
            let words = fs::read(process.join("cmdline")).unwrap_or_default();
            parent(process) == Some(self.child.id())
                && words.split(|byte| *byte == 0).nth(1) == Some(subcommand.as_bytes())
        };
        let begin = Instant::now();
        loop {
            let all = fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().path());
            if let [one] = all.filter(is_it).collect::<Vec<_>>().as_slice() {
                return one.clone();
            }
            assert!(begin.elapsed() < PATIENCE, "no {subcommand} was started");
            thread::sleep(PAUSE);
        }
    }

    /// Sends a request, and returns the whole answer.
    fn ask(&self, request: &str, body: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let head = format!("Host: {}\r\nConnection: close\r\n", self.address);
        let kind = "Content-Type: application/x-www-form-urlencoded\r\n";
        let length = body.len();
        write!(stream, "{request} HTTP/1.1\r\n{head}{kind}Content-Length: {length}\r\n\r\n{body}")
            .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    fn await_text(&self, page: &str, text: &str) {
        let begin = Instant::now();
        loop {
            let answer = self.ask(&format!("GET {page}"), "");
            if answer.contains(text) {
                return;
            }
            assert!(begin.elapsed() < PATIENCE, "{page} has no {text}: {answer}");
            thread::sleep(5 * PAUSE);
        }
    }

    fn signal(&self, signal: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// A field of `/proc/PID/stat` behind the name; `None` where there is no such process.
fn field(process: &Path, at: usize) -> Option<String> {
    let text = fs::read_to_string(process.join("stat")).ok()?;
    let (_, rest) = text.rsplit_once(')')?;
    rest.split_whitespace().nth(at).map(str::to_owned)
}

fn parent(process: &Path) -> Option<u32> {
    field(process, 1)?.parse().ok()
}

/// Whether it runs: one that nobody has waited for yet does not.
fn runs(process: &Path) -> bool {
    field(process, 0).is_some_and(|state| state != "Z" && state != "X")
}

/// Waits until it runs no more, and tells how long that took.
fn await_end(process: &Path, limit: Duration) -> Duration {
    let begin = Instant::now();
    while runs(process) {
        assert!(begin.elapsed() < limit, "{} still runs after {limit:?}", process.display());
        thread::sleep(PAUSE);
    }
    begin.elapsed()
}

#[test]
fn an_analysis_ends_when_its_server_is_killed() {
    let Some(bed) = Bed::up("served") else { return };
    bed.ip(&["link", "set", "lo", "up"]);
    bed.in_receiver(|| {
        let served = Served::start("killed", &["--interval", "200ms", "-o", "logs"]);
        let analysis = served.started("analyze");
        // It shows nothing before it captures.
        let begin = Instant::now();
        while !served.ask("GET /", "").contains("up to ") {
            assert!(begin.elapsed() < PATIENCE, "nothing is captured");
            bed.send(&Sent { count: 50, size: 200, rate: 5_000 });
            thread::sleep(10 * PAUSE);
        }
        bed.send(&Sent { count: 500, size: 200, rate: 5_000 });
        thread::sleep(Duration::from_millis(500));
        assert!(runs(&analysis));
        served.signal("-KILL");
        let took = await_end(&analysis, SOON);
        print_uncaptured(&format!(
            "live_serve: the analysis ended {took:?} after its server was killed"
        ));
        // It ended in good order.
        let conn = fs::read_to_string(served.directory.join("logs/conn.log")).unwrap();
        assert!(conn.lines().last().unwrap().starts_with("#close"), "{conn}");
        assert_eq!(conn.lines().filter(|line| !line.starts_with('#')).count(), 256);
    });
}

#[test]
fn a_recording_of_a_browser_ends_whole_with_its_server() {
    let Some(bed) = Bed::up("recorded") else { return };
    bed.ip(&["link", "set", "lo", "up"]);
    bed.in_receiver(|| {
        let mut served = Served::start("ended", &["--control"]);
        let answer = served.ask("POST /control/record", "action=begin");
        assert!(answer.starts_with("HTTP/1.1 303 "), "{answer}");
        let recording = served.started("record");
        served.await_text("/", "recording to");
        // Its socket is there a moment later.
        thread::sleep(Duration::from_secs(2));
        bed.send(&Sent { count: 300, size: 200, rate: 5_000 });
        thread::sleep(Duration::from_secs(1));
        assert!(runs(&recording));
        served.signal("-TERM");
        let status = served.child.wait().unwrap();
        assert_eq!(status.code(), Some(0));
        assert!(!runs(&recording), "it goes on without its server");
        let said = served.said.take().unwrap().join().unwrap();
        assert!(said.iter().any(|line| line.contains("recorded to ")), "{said:?}");
        let files: Vec<_> = fs::read_dir(&served.directory)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|end| end == "pcapng"))
            .collect();
        let [file] = files.as_slice() else { panic!("{files:?}") };
        let told = Command::new(env!("CARGO_BIN_EXE_netsniff"))
            .args(["info", "--json"])
            .arg(file)
            .output()
            .unwrap();
        // A damaged file has another exit code.
        assert_eq!(told.status.code(), Some(0), "{}", String::from_utf8_lossy(&told.stderr));
        let facts: serde_json::Value = serde_json::from_slice(&told.stdout).unwrap();
        assert_eq!(facts["packets"].as_u64(), Some(300), "{facts}");
        // What the interface counted stands at the end of the file.
        assert_eq!(facts["interfaces"][0]["received"].as_u64(), Some(300), "{facts}");
    });
}
