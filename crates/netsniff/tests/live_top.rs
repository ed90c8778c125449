//! `netsniff top -i` in a terminal, on a veth pair of this machine. Needs root and tmux; says so where they are missing.

mod live_bed;

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use live_bed::{Bed, Sent};
use netsniff_packet::{Batch, Progress, Source as _};
use netsniff_pcapfile::Reader;
use netsniff_testing::{Need, skip};

/// A terminal in which the view of the receiving interface runs.
struct View {
    directory: PathBuf,
}

impl View {
    fn start(bed: &Bed, options: &str) -> Option<Self> {
        if Command::new("tmux").arg("-V").output().is_err() {
            skip(Need::Program("tmux"), "keys and screens in a terminal");
            return None;
        }
        let directory = std::env::temp_dir().join(bed.receiver());
        fs::create_dir_all(&directory).unwrap();
        // Whoever records goes on as nobody.
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o777)).unwrap();
        let view = Self { directory };
        let command = format!(
            "cd {}; ip netns exec {} {} top -i rx0 {options}; echo ended $?; stty -a | grep -ow -e '-*icanon'; sleep 100",
            view.directory.display(),
            bed.receiver(),
            env!("CARGO_BIN_EXE_netsniff"),
        );
        view.call(&["new-session", "-d", "-x", "80", "-y", "24", &command]);
        Some(view)
    }

    fn call(&self, arguments: &[&str]) -> String {
        let mut command = Command::new("tmux");
        command.arg("-S").arg(self.directory.join("socket")).args(["-f", "/dev/null"]);
        let out = command.args(arguments).env("LC_ALL", "C.UTF-8").output().unwrap();
        String::from_utf8_lossy(&out.stdout).into_owned()
    }

    fn keys(&self, keys: &[&str]) {
        for key in keys {
            self.call(&["send-keys", key]);
        }
    }

    /// Waits until the analysis has begun.
    fn await_analysis(&self, bed: &Bed) {
        self.await_screen("view", |screen| screen.contains("1 Hosts"));
        let begin = Instant::now();
        while processes(&bed.receiver(), "analyze").is_empty() {
            assert!(begin.elapsed() < Duration::from_secs(10), "no analysis");
            thread::sleep(Duration::from_millis(50));
        }
        thread::sleep(Duration::from_millis(700));
    }

    /// Records to a file while something is sent.
    fn record(&self, send: impl FnOnce()) {
        self.keys(&["R", "Enter"]);
        self.await_screen("recording", |screen| screen.contains("RECORDING top.pcapng"));
        thread::sleep(Duration::from_millis(1_000));
        send();
        thread::sleep(Duration::from_millis(500));
        self.keys(&["R"]);
        let end = "recorded to top.pcapng";
        self.await_screen("end of the recording", |screen| screen.contains(end));
    }

    /// The lengths of the frames in that file.
    fn recorded(&self) -> Vec<u32> {
        let file = fs::File::open(self.directory.join("top.pcapng")).unwrap();
        let mut reader = Reader::new(file).unwrap();
        let (mut batch, mut lengths) = (Batch::default(), Vec::new());
        loop {
            let progress = reader.read_batch(&mut batch).unwrap();
            lengths.extend(batch.iter().map(|packet| packet.wire_len));
            if progress == Progress::End {
                return lengths;
            }
        }
    }

    /// Waits for a screen of which this holds.
    fn await_screen(&self, what: &str, holds: impl Fn(&str) -> bool) -> String {
        let begin = Instant::now();
        loop {
            let screen = self.call(&["capture-pane", "-p"]);
            if holds(&screen) {
                return screen;
            }
            assert!(begin.elapsed() < Duration::from_secs(20), "no {what} in\n{screen}");
            thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for View {
    fn drop(&mut self) {
        self.call(&["kill-server"]);
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// The numbers of the line with this name.
fn numbers(screen: &str, name: &str) -> Option<Vec<i64>> {
    let line = screen.lines().find_map(|line| line.trim_start().strip_prefix(name))?;
    let cells = line.split_whitespace().map(|cell| cell.replace(',', ""));
    Some(cells.filter_map(|cell| cell.parse().ok()).collect())
}

/// The programs of a namespace whose command line has this word.
fn processes(namespace: &str, word: &str) -> Vec<String> {
    let out = Command::new("ip").args(["netns", "pids", namespace]).output().unwrap();
    let pids = String::from_utf8_lossy(&out.stdout).into_owned();
    let has_word = |pid: &&str| {
        let line = fs::read(Path::new("/proc").join(pid).join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).into_owned();
        line.contains("netsniff") && line.split('\0').any(|part| part == word)
    };
    pids.split_whitespace().filter(has_word).map(str::to_owned).collect()
}

#[test]
fn what_was_sent_is_on_the_screen_and_nothing_is_left_behind() {
    let Some(bed) = Bed::up("top") else { return };
    // Room for all of them in each interval: how many packets each has in one depends on where it begins.
    let Some(view) = View::start(&bed, "--conns 256 --hosts 256") else { return };
    view.await_analysis(&bed);
    view.keys(&["w", "w"]);
    bed.send(&Sent { count: 4096, size: 200, rate: 2_000 });
    // Frames of 200 bytes have 196 without their check sequence.
    let head = format!("verdict good: 4096 packets, {} kB", (4096 * 196 + 500) / 1000);
    view.await_screen(&head, |screen| screen.contains(&head));
    view.keys(&["3"]);
    view.await_screen("256 connections", |screen| screen.contains("256 connections"));
    view.keys(&["4"]);
    let losses = view.await_screen("4096 delivered", |screen| {
        numbers(screen, "delivered").is_some_and(|numbers| numbers.first() == Some(&4096))
    });
    assert_eq!(numbers(&losses, "arrived at the interface").unwrap()[0], 4096, "{losses}");
    assert_eq!(numbers(&losses, "dropped at the ring").unwrap()[0], 0, "{losses}");
    assert_eq!(numbers(&losses, "unexplained").unwrap()[0], 0, "{losses}");
    view.record(|| bed.send(&Sent { count: 300, size: 200, rate: 2_000 }));
    assert_eq!(view.recorded(), [196; 300]);
    let own = processes(&bed.receiver(), "top");
    for pid in &own {
        Command::new("kill").args(["-TERM", pid]).status().unwrap();
    }
    let last = view.await_screen("end", |screen| screen.contains("ended 0"));
    assert!(last.contains("icanon") && !last.contains("-icanon"), "{last}");
    assert!(!own.is_empty());
    assert_eq!(processes(&bed.receiver(), "analyze"), [""; 0], "the analysis goes on");
}

/// What the filter does not take is neither on the screen nor in the recording; one that goes on ends with the view.
#[test]
fn a_recording_has_what_the_filter_takes() {
    let Some(bed) = Bed::up("top-filter") else { return };
    let Some(view) = View::start(&bed, "-f 'udp and greater 500'") else { return };
    view.await_analysis(&bed);
    view.keys(&["w", "w"]);
    let send = || {
        bed.send(&Sent { count: 300, size: 200, rate: 2_000 });
        bed.send(&Sent { count: 90, size: 600, rate: 2_000 });
        bed.send(&Sent { count: 10, size: 200, rate: 2_000 });
    };
    view.record(send);
    assert_eq!(view.recorded(), [596; 90]);
    view.await_screen("90 packets", |screen| screen.contains("verdict good: 90 packets, "));
    fs::remove_file(view.directory.join("top.pcapng")).unwrap();
    view.keys(&["R", "Enter"]);
    view.await_screen("recording", |screen| screen.contains("RECORDING top.pcapng"));
    thread::sleep(Duration::from_millis(1_000));
    send();
    thread::sleep(Duration::from_millis(500));
    view.keys(&["q"]);
    let last = view.await_screen("end", |screen| screen.contains("ended 0"));
    assert!(last.contains("netsniff: recorded to top.pcapng"), "{last}");
    assert_eq!(view.recorded(), [596; 90]);
    assert_eq!(processes(&bed.receiver(), "record"), [""; 0], "the recording goes on");
}

/// What the ring has no room for is told where it was lost, and the verdict is not good.
#[test]
fn drops_are_on_the_screen_at_their_stage() {
    let Some(bed) = Bed::up("top-drops") else { return };
    let Some(view) = View::start(&bed, "-- --ring 128K --block 16K") else { return };
    view.await_analysis(&bed);
    bed.send(&Sent { count: 200, size: 200, rate: 1_000 });
    let signal = |signal: &str| {
        for pid in processes(&bed.receiver(), "analyze") {
            Command::new("kill").args([signal, &pid]).status().unwrap();
        }
    };
    signal("-STOP");
    bed.send(&Sent { count: 5000, size: 200, rate: 50_000 });
    signal("-CONT");
    thread::sleep(Duration::from_millis(300));
    bed.send(&Sent { count: 200, size: 200, rate: 1_000 });
    view.keys(&["4"]);
    let losses = view.await_screen("5400 arrived", |screen| {
        numbers(screen, "arrived at the interface").is_some_and(|it| it.first() == Some(&5400))
    });
    let stage = |name: &str| numbers(&losses, name).unwrap()[0];
    let dropped = stage("dropped at the ring");
    assert!(dropped > 1_000, "{losses}");
    assert_eq!(stage("delivered") + dropped + stage("unexplained"), 5400, "{losses}");
    assert!(losses.contains("rx0: bad"), "{losses}");
    // The interval is told behind its end.
    view.await_screen("bad verdict", |screen| screen.contains("verdict bad: "));
}

/// A process with a name that would clear the screen talks to a host on the wire.
#[test]
fn the_process_that_has_a_socket_is_on_the_screen() {
    let Some(bed) = Bed::up("top-processes") else { return };
    bed.address();
    let Some(view) = View::start(&bed, "") else { return };
    view.await_screen("view", |screen| screen.contains("5 Processes"));
    let name = "ev\x1b[2Jil";
    fs::copy("/bin/bash", view.directory.join(name)).unwrap();
    let listener = bed.in_sender(|| TcpListener::bind("192.0.2.1:80").unwrap());
    let talk = "exec 3<>/dev/tcp/192.0.2.1/80; while :; do echo hello >&3; read -t 0.2; done";
    let mut client = Command::new("ip")
        .args(["netns", "exec", &bed.receiver()])
        .arg(view.directory.join(name))
        .args(["-c", talk])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let stream = listener.accept().unwrap();
    view.keys(&["5"]);
    let row = format!(r"ev\x1b[2Jil {} ", client.id());
    let screen = view.await_screen("process", |screen| screen.contains(&row));
    assert!(screen.contains("1 process\n"), "{screen}");
    // In the order of names; where there is none, that comes last.
    view.keys(&["S", "S", "S", "r", "Enter"]);
    let screen = view.await_screen("connections of the process", |screen| {
        screen.contains(&format!("1 connection of {}\n", row.trim_end()))
    });
    assert!(screen.contains("192.0.2.1:80"), "{screen}");
    view.keys(&["Enter"]);
    view.await_screen("rows", |screen| screen.contains(" port 80\n"));
    view.keys(&["Escape"]);
    view.await_screen("connections again", |screen| screen.contains("1 connection of "));
    view.keys(&["Escape"]);
    view.await_screen("processes again", |screen| screen.contains("1 process\n"));
    let once = "top -i rx0 --once --duration 5s --view processes --size 100x30";
    let out = Command::new("ip")
        .args(["netns", "exec", &bed.receiver(), env!("CARGO_BIN_EXE_netsniff")])
        .args(once.split(' '))
        .output()
        .unwrap();
    let text = String::from_utf8(out.stdout).unwrap();
    assert!(text.contains(&row) && text.contains("1 process\n"), "{text}");
    // It stays with its connection when it has gone.
    client.kill().unwrap();
    client.wait().unwrap();
    drop(stream);
    view.keys(&["3"]);
    view.call(&["resize-window", "-x", "200", "-y", "24"]);
    view.await_screen("end of the connection", |screen| {
        screen.lines().any(|line| line.contains(row.trim_end()) && !line.contains(" open "))
    });
}
