//! `netsniff generate --listen` and `generate ask`. Needs root; says so where it is missing.

mod live_bed;

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::UdpSocket;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use live_bed::commands::{Ended, Scratch, json_of, netsniff};
use live_bed::{Bed, Run};

/// A generator that waits for orders, which ends with it.
struct Listener(Child);

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
        let listener = Self(child);
        let first = lines.next().unwrap().unwrap();
        assert!(first.contains(&format!("listening at {place}")), "{first}");
        std::thread::spawn(move || lines.for_each(drop));
        listener
    }

    fn end(mut self) {
        let pid = self.0.id().to_string();
        assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
        assert_eq!(self.0.wait().unwrap().code(), Some(0));
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
        let nothing = ask(&bed, &[&["--wait", "300ms"], key, &order].concat());
        assert_eq!(nothing.code, Some(1), "{}", nothing.errors);
        assert!(nothing.errors.contains("no answer came"), "{}", nothing.errors);
    }
    listener.end();
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
