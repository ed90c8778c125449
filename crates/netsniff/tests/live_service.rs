//! `netsniff run` as a service manager meets it: what it is told, and when it is told nothing more. Needs root; says so where
//! it is missing.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::net::UnixDatagram;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::ptrace;
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::Pid;

mod live_bed;

use live_bed::{Bed, Sent};

/// Nothing takes longer, whatever goes wrong.
const LIMIT: Duration = Duration::from_secs(30);

/// A running `netsniff run`, with the socket of its manager.
struct Service {
    child: Child,
    directory: PathBuf,
    manager: UnixDatagram,
}

impl Service {
    /// Starts it by a file with these lines in `[analyze]`.
    fn start(bed: &Bed, name: &str, lines: &str) -> Self {
        let name = format!("netsniff-service-{}-{name}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir_all(&directory).unwrap();
        let (file, socket) = (directory.join("netsniff.toml"), directory.join("manager"));
        let logs = directory.join("logs");
        let text =
            format!("[analyze]\ninterface = \"rx0\"\noutput = \"{}\"\n{lines}", logs.display());
        fs::write(&file, text).unwrap();
        let manager = UnixDatagram::bind(&socket).unwrap();
        manager.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        let mut ip = Command::new("ip");
        ip.args(["netns", "exec", &bed.receiver(), env!("CARGO_BIN_EXE_netsniff"), "run", "-c"]);
        ip.arg(&file).env("NOTIFY_SOCKET", &socket).env("WATCHDOG_USEC", "1000000");
        ip.stdout(Stdio::null()).stderr(File::create(directory.join("errors")).unwrap());
        let child = ip.spawn().unwrap();
        Self { child, directory, manager }
    }

    /// What the manager is told next, if it is within this time.
    fn next(&self, within: Duration) -> Option<String> {
        let end = Instant::now() + within;
        let mut state = [0; 4096];
        while Instant::now() < end {
            match self.manager.recv(&mut state) {
                Ok(len) => return Some(String::from_utf8(state[..len].to_vec()).unwrap()),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => panic!("{error}"),
            }
        }
        None
    }

    /// Waits for a state that is told in these words; returns all that was told up to it.
    fn await_state(&self, is_wanted: impl Fn(&str) -> bool) -> Vec<String> {
        let end = Instant::now() + LIMIT;
        let mut told = Vec::new();
        while Instant::now() < end {
            told.extend(self.next(Duration::from_secs(1)));
            if told.last().is_some_and(|state| is_wanted(state)) {
                return told;
            }
        }
        panic!("{told:?}; {}", self.errors())
    }

    fn errors(&self) -> String {
        fs::read_to_string(self.directory.join("errors")).unwrap()
    }

    fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args([name, &pid]).status().unwrap().success());
    }

    /// The thread of this name.
    fn thread(&self, name: &str) -> Pid {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap();
        let is_named = |task: &fs::DirEntry| {
            fs::read_to_string(task.path().join("comm")).is_ok_and(|found| found.trim() == name)
        };
        let task = tasks.flatten().find(is_named).expect("a thread of this name");
        Pid::from_raw(task.file_name().to_str().unwrap().parse().unwrap())
    }

    /// Ends it as a manager does; returns what it told.
    fn end(mut self) -> Vec<String> {
        self.signal("-TERM");
        let told = self.await_state(|state| state.starts_with("STOPPING=1"));
        let status = self.child.wait().unwrap();
        assert_eq!((status.code(), status.signal()), (Some(0), None), "{}", self.errors());
        told
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.directory);
    }
}

#[test]
fn a_manager_is_told_what_a_service_does() {
    let Some(bed) = Bed::up("service") else { return };
    let lines = "metrics = \"9100\"\nstats-interval = \"300ms\"\n";
    let service = Service::start(&bed, "told", lines);
    let told = service.await_state(|state| state.starts_with("READY=1"));
    assert_eq!(told, ["READY=1\nSTATUS=capturing"], "nothing is told before it captures");
    // What is sent from now on is captured; a rate needs two books.
    service.await_state(|state| state.ends_with("; 0 packets; 0 lost"));
    bed.send(&Sent { count: 700, size: 64, rate: 20_000 });
    let expected = "; 700 packets; 0 lost";
    let told = service.await_state(|state| state.ends_with(expected));
    let rate = told.last().unwrap();
    assert!(
        rate.starts_with("STATUS=capturing on rx0; ") && rate.contains(" packets/s;"),
        "{rate}"
    );
    service.await_state(|state| state == "WATCHDOG=1");
    let health = bed.fetch("127.0.0.1:9100", "/health");
    let body = r#"{"status":"healthy","phase":"capturing","ready":true,"reasons":[]}"#;
    assert!(health.starts_with("HTTP/1.1 200 ") && health.contains(body), "{health}");
    assert!(bed.fetch("127.0.0.1:9100", "/ready").starts_with("HTTP/1.1 200 "));
    let metrics = bed.fetch("127.0.0.1:9100", "/metrics");
    for begin in ["process_open_fds ", "process_resident_memory_bytes ", "netsniff_ready 1\n"] {
        assert!(metrics.contains(&format!("\n{begin}")), "{begin} in {metrics}");
    }
    let capture = service.directory.join("logs/capture.log");
    assert!(capture.exists());
    service.signal("-HUP");
    service.await_state(|state| state.starts_with("RELOADING=1\nMONOTONIC_USEC="));
    let unchanged = "the configuration was read again: nothing in it has changed";
    service.await_state(|state| state == format!("READY=1\nSTATUS={unchanged}"));
    let rolled = || {
        let names = fs::read_dir(service.directory.join("logs")).unwrap().flatten();
        names.filter(|of| of.file_name().to_str().unwrap().starts_with("capture.20")).count()
    };
    let end = Instant::now() + LIMIT;
    while rolled() == 0 {
        assert!(Instant::now() < end, "no log is rolled");
        std::thread::sleep(Duration::from_millis(20));
    }
    service.end();
}

/// What can change while it runs does, what cannot is named, and a file that is wrong changes nothing.
#[test]
fn a_configuration_that_is_read_again_is_in_force_as_far_as_it_can_be() {
    let Some(bed) = Bed::up("reload") else { return };
    let listed = std::env::temp_dir().join(format!("netsniff-reload-{}", std::process::id()));
    fs::create_dir_all(&listed).unwrap();
    let indicators = |list: &str| {
        let text = format!("#fields\tindicator\tindicator_type\tmeta.source\n{list}");
        // Another file in the place of this one, as editors have it.
        fs::write(listed.join("new"), text).unwrap();
        fs::rename(listed.join("new"), listed.join("intel")).unwrap();
    };
    indicators("192.0.2.77\tIntel::ADDR\ttest\n");
    let intel = format!("intel = \"{}\"\n", listed.join("intel").display());
    let service = Service::start(&bed, "reload", &intel);
    service.await_state(|state| state.starts_with("READY=1"));
    let file = service.directory.join("netsniff.toml");
    let first = fs::read_to_string(&file).unwrap();
    let old = service.directory.join("logs/conn.2026-01-01-00-00-00.log");
    fs::write(&old, vec![b'x'; 2 << 20]).unwrap();
    let reload = |text: &str, expected: &str| {
        let new = service.directory.join("new");
        fs::write(&new, text).unwrap();
        fs::rename(&new, &file).unwrap();
        service.signal("-HUP");
        service.await_state(|state| state.starts_with("RELOADING=1\nMONOTONIC_USEC="));
        let told = service.await_state(|state| state.starts_with("READY=1"));
        let said = told.last().unwrap().strip_prefix("READY=1\nSTATUS=").unwrap().to_owned();
        assert!(said.starts_with(expected), "{said}");
    };
    let read = "the configuration was read again: in force are ";
    reload(&first, &format!("{read}intel"));
    let wrong = "the configuration is wrong, and stays as it was: ";
    reload(&format!("{first}keep-bytes = \"1k\"\n"), wrong);
    reload(&format!("{first}no-such-option = 1\n"), wrong);
    indicators("");
    reload(&format!("{first}keep-bytes = \"1M\"\n"), wrong);
    assert!(old.exists(), "nothing of a wrong configuration is in force");
    indicators("192.0.2.78\tIntel::ADDR\ttest\n");
    let expected = format!("{read}intel, keep-bytes; a restart is needed for filter");
    reload(&format!("{first}keep-bytes = \"1M\"\nfilter = \"ip\"\n"), &expected);
    let end = Instant::now() + LIMIT;
    while old.exists() {
        assert!(Instant::now() < end, "the old log is still there: {}", service.errors());
        std::thread::sleep(Duration::from_millis(20));
    }
    // And back to the bounds of the start, which are others than those in force.
    reload(&first, &format!("{read}intel, keep-bytes"));
    reload(
        &format!("{first}filter = \"ip\"\n"),
        &format!("{read}intel; a restart is needed for filter"),
    );
    service.end();
    fs::remove_dir_all(listed).unwrap();
}

/// One thread is held, and all others go on: that is what a watchdog that only tells the time would not see.
#[test]
fn a_ring_that_hangs_ends_the_words_of_the_watchdog() {
    let Some(bed) = Bed::up("hangs") else { return };
    let lines = "metrics = \"9100\"\nworkers = 2\nstats-interval = \"500ms\"\n";
    let service = Service::start(&bed, "hangs", lines);
    service.await_state(|state| state == "WATCHDOG=1");
    let ring = service.thread("ring 1");
    ptrace::attach(ring).unwrap();
    waitpid(ring, Some(WaitPidFlag::__WALL)).unwrap();
    // What was told before it was held, and once more for what it had done until then.
    let begin = Instant::now();
    let mut said = 0;
    while begin.elapsed() < Duration::from_secs(6) {
        let state = service.next(Duration::from_millis(200));
        said += u32::from(state.is_some_and(|state| state == "WATCHDOG=1"));
    }
    assert!(said <= 2, "{said} times in {:?}", begin.elapsed());
    let health = bed.fetch("127.0.0.1:9100", "/health");
    assert!(health.starts_with("HTTP/1.1 503 "), "{health}");
    assert!(health.contains(r#""name":"thread_hangs","subject":"ring 1""#), "{health}");
    assert!(bed.fetch("127.0.0.1:9100", "/ready").starts_with("HTTP/1.1 503 "));
    ptrace::detach(ring, None).unwrap();
    service.await_state(|state| state == "WATCHDOG=1");
    assert!(bed.fetch("127.0.0.1:9100", "/health").starts_with("HTTP/1.1 200 "));
    service.end();
}
