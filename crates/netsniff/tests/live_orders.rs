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
        let mut child = Command::new("ip")
            .args(["netns", "exec", &bed.sender(), env!("CARGO_BIN_EXE_netsniff")])
            .args(["generate", "-i", "tx0", "--listen", "127.0.0.1:7000"])
            .args(arguments)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let listener = Self(child);
        let first = lines.next().unwrap().unwrap();
        assert!(first.contains("listening at 127.0.0.1:7000"), "{first}");
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

fn ask(bed: &Bed, arguments: &[&str]) -> Ended {
    netsniff(bed, &[&["generate", "ask", "127.0.0.1:7000"], arguments].concat())
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

/// An order that was recorded and sent again is refused, and so are addresses that others reach where there is no key.
#[test]
fn orders_count_once() {
    let Some(bed) = Bed::up("once") else { return };
    let listener = Listener::start(&bed, &[]);
    let counter = std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos() + 1;
    let options = r#"{"options":["--rate","1k","--count","3"]}"#;
    let order = format!("netsniff-order/1 {counter} - {options}");
    let answers = bed.in_sender(|| {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let mut room = [0; 8192];
        [order.as_str(), order.as_str(), "", "netsniff-order/1 x - {}", &order].map(|datagram| {
            socket.send_to(datagram.as_bytes(), "127.0.0.1:7000").unwrap();
            if !datagram.starts_with("netsniff-order/1 1") {
                return String::new();
            }
            let len = socket.recv(&mut room).unwrap();
            String::from_utf8_lossy(&room[..len]).into_owned()
        })
    });
    let head = format!("netsniff-answer/1 {counter} - {{");
    assert!(answers[0].starts_with(&head) && answers[0].contains("\"frames\":3"), "{answers:?}");
    for again in [&answers[1], &answers[4]] {
        assert!(again.contains("an order with this counter or a later one came before"), "{again}");
    }
    listener.end();
    let open = netsniff(&bed, &["generate", "-i", "tx0", "--listen", "0.0.0.0:7000"]);
    assert_eq!(open.code, Some(2));
    assert!(open.errors.contains("give a --key"), "{}", open.errors);
}
