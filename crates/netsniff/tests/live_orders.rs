//! `netsniff generate --listen` and `generate ask`. Needs root; says so where it is missing.

mod live_bed;

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::UdpSocket;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use live_bed::commands::{Ended, Scratch, json_of, netsniff};
use live_bed::{Bed, Run};

/// A generator that waits for orders, which ends with it.
struct Listener(Child, Receiver<Vec<String>>);

impl Listener {
    fn start(bed: &Bed, arguments: &[&str]) -> Self {
        Self::start_at(bed, PLACE, arguments)
    }

    fn start_at(bed: &Bed, place: &str, arguments: &[&str]) -> Self {
        let mut child = Command::new("ip")
            .args(["netns", "exec", &bed.sender(), env!("CARGO_BIN_EXE_netsniff")])
            .args(["generate", "-i", "tx0", "--listen", place])
            .args(arguments)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let (said, errors) = channel();
        let place = format!("listening at {place}");
        let mut before = Vec::new();
        loop {
            let line = lines.next().unwrap_or_else(|| panic!("{before:?}")).unwrap();
            if line.contains(&place) {
                break;
            }
            before.push(line);
        }
        assert!(before[0].starts_with("netsniff: safety: user nobody"), "{before:?}");
        std::thread::spawn(move || {
            let _ = said.send(lines.map_while(Result::ok).collect());
        });
        Self(child, errors)
    }

    /// What stands in the state of each of its threads.
    fn threads(&self, field: &str) -> Vec<String> {
        let of = |task: fs::DirEntry| fs::read_to_string(task.path().join("status")).unwrap();
        let tasks = fs::read_dir(format!("/proc/{}/task", self.0.id())).unwrap();
        let line = |text: String| {
            text.lines().find_map(|line| line.strip_prefix(field).map(str::to_owned))
        };
        tasks
            .filter_map(|task| line(of(task.unwrap())))
            .map(|value| value.trim().to_owned())
            .collect()
    }

    /// Ends it, and returns what it said meanwhile.
    fn end(mut self) -> Vec<String> {
        let pid = self.0.id().to_string();
        assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
        assert_eq!(self.0.wait().unwrap().code(), Some(0));
        self.1.recv().unwrap()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Where a listener is in its namespace.
const PLACE: &str = "127.0.0.1:7000";

fn ask(bed: &Bed, arguments: &[&str]) -> Ended {
    netsniff(bed, &[&["generate", "ask", PLACE], arguments].concat())
}

#[test]
fn frames_are_sent_to_the_order_of_who_has_the_key() {
    let Some(bed) = Bed::up("order") else { return };
    let scratch = Scratch::new("order");
    let keys = ["mine", "other"].map(|name| scratch.path(name));
    for key in &keys {
        fs::write(key, format!("{key} which nobody knows")).unwrap();
        fs::set_permissions(key, fs::Permissions::from_mode(0o600)).unwrap();
    }
    let listener = Listener::start(&bed, &["--key", &keys[0], "--most-frames", "5000"]);
    let order = ["--size", "76:1204:8", "--count", "1000", "--ifg", "12", "--link", "100m"];
    let run = Run::receive(&bed, "order", &["--json", "--expect", "1000"]);
    let sent = ask(&bed, &[&["--key", keys[0].as_str()], &order[..]].concat());
    let done = run.wait();
    assert_eq!((sent.code, done.code), (Some(0), 0), "{}{}", sent.errors, done.errors);
    assert_eq!(sent.json()["frames"], 1000);
    assert_eq!(json_of(&done)["streams"][0]["run"], sent.json()["run"]);
    let with = |arguments: &[&str]| ask(&bed, &[&["--key", keys[0].as_str()], arguments].concat());
    for (arguments, words) in [
        (&["--size", "64", "--rate", "1k", "--count", "5001"][..], "may ask for 5,000 frames"),
        (&["--rate", "1k", "--duration", "2min"], "an order may take 60 s"),
        (&["--rate", "1k"], "an order needs --count or --duration"),
        (&["--size", "10", "--rate", "1k", "--count", "1"], "have at least 64 bytes"),
        (&["--write", "/tmp/stolen", "--count", "1"], "unexpected argument '--write'"),
    ] {
        let refused = with(arguments);
        assert_eq!(refused.code, Some(2), "{}", refused.errors);
        assert!(refused.errors.contains(words), "{}", refused.errors);
    }
    // Nobody is answered who has another key, or none.
    for key in [&["--key", keys[1].as_str()][..], &[]] {
        let begin = Instant::now();
        let nothing = ask(&bed, &[key, &order].concat());
        assert_eq!(nothing.code, Some(1), "{}", nothing.errors);
        assert!(nothing.errors.contains("no answer came"), "{}", nothing.errors);
        assert!(nothing.errors.contains("key"), "it says what may be wrong: {}", nothing.errors);
        assert!(begin.elapsed() < Duration::from_secs(5), "{:?}", begin.elapsed());
    }
    let warned = listener.end();
    let warned = warned.iter().filter(|line| line.contains("not of who has the key"));
    assert_eq!(warned.count(), 1, "once for eight datagrams");
    let nobody = ask(&bed, &order);
    assert!(nobody.errors.contains("nobody listens at 127.0.0.1:7000"), "{}", nobody.errors);
}

/// Says something to a listener, and returns its answer in lines of parts, if it has one.
fn say(place: &str, datagram: &str) -> Option<String> {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let wait = if datagram.contains("-order/1 ") { 20_000 } else { 1_000 };
    socket.set_read_timeout(Some(Duration::from_millis(wait))).unwrap();
    socket.send_to(datagram.as_bytes(), place).unwrap();
    let mut room = [0; 8192];
    let len = socket.recv(&mut room).ok()?;
    Some(String::from_utf8_lossy(&room[..len]).into_owned())
}

/// An order that a listener takes next.
fn order(place: &str) -> String {
    let ticket = say(place, r#"netsniff-hello/1 0 - {"asker":"me"}"#).unwrap();
    let parts: Vec<_> = ticket.splitn(4, ' ').collect();
    assert_eq!(parts[0], "netsniff-ticket/1");
    let json: serde_json::Value = serde_json::from_str(parts[3]).unwrap();
    assert_eq!(json["asker"], "me");
    let (number, listener) = (parts[1], &json["listener"]);
    format!(
        r#"netsniff-order/1 {number} - {{"listener":{listener},"options":["--rate","1k","--count","3"]}}"#
    )
}

/// An order that was recorded and is sent again is refused: there, by another listener, and by the same one after it
/// was started again.
#[test]
fn orders_count_once() {
    let Some(bed) = Bed::up("once") else { return };
    let (here, there) = (PLACE, "127.0.0.1:7001");
    let listener = Listener::start(&bed, &[]);
    let other = Listener::start_at(&bed, there, &["--way", "sendmmsg"]);
    let recorded = bed.in_sender(|| {
        let order = order(here);
        let elsewhere = say(there, &order).unwrap();
        assert!(elsewhere.contains("the order is for another listener"), "{elsewhere}");
        let sent = say(here, &order).unwrap();
        assert!(
            sent.starts_with("netsniff-answer/1 1 - {") && sent.contains("\"frames\":3"),
            "{sent}"
        );
        for none in ["", "netsniff-order/2 1 - {}", "netsniff-order/1 x - {}"] {
            assert_eq!(say(here, none), None, "{none}");
        }
        let ahead = order.replace("/1 1 -", "/1 3 -");
        for stale in [&order, &ahead] {
            let refused = say(here, stale).unwrap();
            assert!(refused.contains("another order came first"), "{refused}");
        }
        order
    });
    other.end();
    listener.end();
    let listener = Listener::start(&bed, &[]);
    let answer = bed.in_sender(|| say(here, &recorded).unwrap());
    assert!(answer.contains("the order is for another listener, or for one before"), "{answer}");
    listener.end();
    for (arguments, words) in [
        (&["--listen", "0.0.0.0:7000"][..], "give a --key"),
        (&["--key", "/dev/null", "--rate", "1", "--count", "1"], "are for --listen"),
    ] {
        let refused = netsniff(&bed, &[&["generate", "-i", "tx0"], arguments].concat());
        assert_eq!(refused.code, Some(2));
        assert!(refused.errors.contains(words), "{}", refused.errors);
    }
}

/// It goes on as nobody, and one thread alone can open the interface again.
#[test]
fn a_listener_gives_up_its_rights() {
    let Some(bed) = Bed::up("rights") else { return };
    let listener = Listener::start(&bed, &["--way", "tx-ring"]);
    let users = listener.threads("Uid:");
    assert!(
        users.len() > 1 && users.iter().all(|user| user.starts_with("65534\t65534\t65534")),
        "{users:?}"
    );
    let rights = listener.threads("CapEff:");
    let none = rights.iter().filter(|of| *of == "0000000000000000").count();
    // CAP_NET_RAW is the thirteenth.
    let raw = rights.iter().filter(|of| *of == "0000000000002000").count();
    assert_eq!((none, raw), (rights.len() - 1, 1), "{rights:?}");
    assert!(listener.threads("Seccomp:").iter().all(|of| of == "2"));
    let sent = ask(&bed, &["--rate", "10k", "--count", "10"]);
    assert_eq!(sent.code, Some(0), "{}", sent.errors);
    listener.end();
}

/// Who asks while frames are being sent is answered at once, and gets a turn after that.
#[test]
fn an_order_waits_for_the_one_before() {
    let Some(bed) = Bed::up("turns") else { return };
    let listener = Listener::start(&bed, &[]);
    std::thread::scope(|scope| {
        let first = scope.spawn(|| ask(&bed, &["--rate", "1k", "--duration", "4s"]));
        pause(1000);
        let begin = Instant::now();
        let second = ask(&bed, &["--rate", "1k", "--count", "10"]);
        assert_eq!(second.code, Some(0), "{}", second.errors);
        assert!(
            begin.elapsed() > Duration::from_secs(2),
            "not before its turn: {:?}",
            begin.elapsed()
        );
        assert_eq!(first.join().unwrap().code, Some(0));
    });
    listener.end();
}

fn pause(millis: u64) -> bool {
    std::thread::sleep(Duration::from_millis(millis));
    false
}

/// A listener outlives what happens to its interface, and frames that were not taken are not part of another order.
#[test]
fn an_order_after_a_failure_is_sent_whole() {
    let Some(bed) = Bed::up("outlive") else { return };
    let listener = Listener::start(&bed, &["--way", "tx-ring"]);
    let link = |state| {
        let set = ["-n", &bed.sender(), "link", "set", "tx0", state];
        assert!(Command::new("ip").args(set).status().unwrap().success());
    };
    let failed = std::thread::scope(|scope| {
        let failed = scope.spawn(|| ask(&bed, &["--rate", "10k", "--duration", "10s"]));
        pause(1000);
        link("down");
        failed.join().unwrap()
    });
    assert_eq!(failed.code, Some(1), "{}", failed.errors);
    let down = ask(&bed, &["--rate", "10k", "--count", "10"]);
    assert_eq!(down.code, Some(1), "{}", down.errors);
    assert!(down.errors.contains("tx0 is down"), "{}", down.errors);
    link("up");
    // The carrier needs a moment.
    let one = || ask(&bed, &["--rate", "10k", "--count", "1"]);
    let is_up = || (0..50).any(|_| one().code == Some(0) || pause(100));
    assert!(is_up(), "{}", one().errors);
    let run = Run::receive(&bed, "outlive", &["--json", "--expect", "100"]);
    let sent = ask(&bed, &["--rate", "10k", "--count", "100"]);
    let done = run.wait();
    assert_eq!((sent.code, done.code), (Some(0), 0), "{}{}", sent.errors, done.errors);
    let streams = &json_of(&done)["streams"];
    assert_eq!((streams.as_array().unwrap().len(), &streams[0]["run"]), (1, &sent.json()["run"]));
    listener.end();
}
