//! `netsniff serve` without a browser: pages have the numbers of the logs, packets are those of `netsniff extract`, and nothing
//! stays behind.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use netsniff_testing::log::read;

use crate::zeek::corpus::Scratch;

const OFFICE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/recorded/office.pcapng");

const NO_CAPTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");

/// The program as a server, which ends with this value.
struct Server {
    child: Child,
    address: String,
    /// Where it makes directories.
    place: Scratch,
}

impl Server {
    fn start(name: &str, arguments: &[&str]) -> Self {
        let place = Scratch::new(name);
        fs::create_dir_all(place.path()).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_netsniff"));
        command.args(["serve", "--listen", "127.0.0.1:0"]).args(arguments);
        command.env("TMPDIR", place.path()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let told = lines.find_map(|line| {
            let line = line.unwrap();
            Some(line.strip_prefix("netsniff: open http://")?.trim_end_matches('/').to_owned())
        });
        // Who writes must not wait.
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
        Self { child, address: told.expect("an address"), place }
    }

    /// Asks for a page: its status and what follows the head.
    fn get(&self, path: &str, head: &str) -> (u16, Vec<u8>) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        // In this version an answer ends with the connection.
        let request = format!("GET {path} HTTP/1.0\r\nHost: {}\r\n{head}\r\n", self.address);
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let end = answer.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
        let status = String::from_utf8_lossy(&answer[9..12]).parse().unwrap();
        (status, answer.split_off(end + 4))
    }

    fn page(&self, path: &str) -> String {
        let (status, body) = self.get(path, "");
        let body = String::from_utf8(body).unwrap();
        assert_eq!(status, 200, "{path}: {body}");
        body
    }

    /// A page once its text is there.
    fn await_text(&self, path: &str, text: &str) -> String {
        let begin = Instant::now();
        loop {
            let page = self.page(path);
            if page.contains(text) {
                return page;
            }
            assert!(begin.elapsed() < Duration::from_secs(60), "{path} has no {text}: {page}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    fn end(&mut self) -> Option<i32> {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").arg(pid).status().unwrap().success());
        self.child.wait().unwrap().code()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The uids that a page links to.
fn uids(page: &str) -> BTreeSet<String> {
    let page = page.replace("&#x2f;", "/");
    let links = page.split("href=\"/connections/").skip(1);
    links.map(|rest| rest.split(['"', '/']).next().unwrap().to_owned()).collect()
}

fn netsniff(arguments: &[&str]) -> std::process::Output {
    Command::new(env!("CARGO_BIN_EXE_netsniff")).args(arguments).output().unwrap()
}

fn logs(to: &Path) {
    let to = to.to_str().unwrap();
    let words = ["analyze", OFFICE, "-q", "--notices", "--series", "1s", "-o", to];
    assert!(netsniff(&words).status.success());
}

#[test]
fn a_capture_is_shown_with_its_packets_and_leaves_nothing() {
    let mut server = Server::start("serve-capture", &[OFFICE]);
    let overview = server.await_text("/?span=all", "read to its end");
    for head in ["bytes on the wire\">sent<", "bytes of IP\">orig<", "TCP payload lost\">network<"]
    {
        assert!(overview.contains(head), "no {head} in {overview}");
    }
    let scratch = Scratch::new("serve-capture-logs");
    logs(scratch.path());
    let conn = read(&scratch.path().join("conn.log")).unwrap();
    let wanted = "/connections?where=service+%3D+%27http%27&rows=500";
    let http = conn.iter().filter(|row| row["service"] == "http");
    let http: BTreeSet<_> = http.map(|row| row["uid"].clone()).collect();
    assert!(!http.is_empty());
    assert_eq!(uids(&server.page(wanted)), http);
    let said = format!(
        "{} of {} rows that meet the condition, of {} rows.",
        http.len(),
        http.len(),
        conn.len()
    );
    assert!(server.page(wanted).contains(&said), "{said}");

    let uid = http.first().unwrap();
    let (status, packets) = server.get(&format!("/connections/{uid}/packets.pcapng"), "");
    let extracted = netsniff(&["extract", "-q", "--uid", uid, "-w", "-", OFFICE]).stdout;
    assert_eq!((status, packets.len()), (200, extracted.len()));
    assert!(packets == extracted, "other packets than those of extract");
    let page = server.page(&format!("/connections/{uid}"));
    assert!(page.contains(">http</h2>") || page.contains("id=\"http\""), "its rows: {page}");
    assert!(server.page(&format!("/connections/{uid}/sequence")).contains("<svg"));
    assert!(server.page(&format!("/connections/{uid}/packets")).contains("packet 1 "));

    let there = || fs::read_dir(server.place.path()).unwrap().count();
    assert_eq!(there(), 1);
    assert_eq!(server.end(), Some(0));
    assert_eq!(fs::read_dir(server.place.path()).unwrap().count(), 0);
}

#[test]
fn what_cannot_be_shown_is_told() {
    let scratch = Scratch::new("serve-logs");
    logs(scratch.path());
    fs::write(scratch.path().join("known_hosts.log"), "#fields\tts\n1\n").unwrap();
    // Whoever packs old logs changes no page.
    let conn = scratch.path().join("conn.log");
    let packed = zstd::encode_all(&*fs::read(&conn).unwrap(), 3).unwrap();
    fs::write(conn.with_extension("log.zst"), packed).unwrap();
    fs::remove_file(&conn).unwrap();
    let server = Server::start("serve-refusals", &[scratch.path().to_str().unwrap()]);
    assert!(server.page("/logs").contains("known_hosts.log is of a log that is not known here"));
    assert!(server.page("/connections?where=color+%3D+1").contains("conn has no column"));
    assert!(server.page("/connections?where=id.resp_p+%3D+1").contains("None of "));
    assert!(server.page("/connections?page=90").contains("This page is behind the last of "));
    // What is asked for is shown, and an absent log has no row.
    assert!(server.page("/connections?where=orig_pkts+%3E+0").contains(">orig_pkts</a>"));
    fs::write(scratch.path().join("tunnel.log"), "#fields\tts\nbro\tken\n").unwrap();
    assert!(server.page("/logs/tunnel").contains("No row could be read."));
    assert!(server.page("/logs/intel").contains("The log has no row."));
    assert!(
        server.page("/connections?page=400").contains("only the first 10000 rows are in order")
    );
    let uid = uids(&server.page("/connections")).pop_first().unwrap();
    assert!(server.page(&format!("/connections/{uid}")).contains("name them with --captures"));
    for missing in ["/connections/Cnothing", "/connections/..%2f..", "/logs/nothing", "/nothing"] {
        let (status, body) = server.get(missing, "");
        assert_eq!(status, 404, "{missing}");
        assert!(!String::from_utf8(body).unwrap().contains("<nav"), "a script wants text");
        let (status, body) =
            server.get(missing, "Sec-Fetch-Dest: document\r\nSec-Fetch-Site: none\r\n");
        assert_eq!(status, 404, "{missing}");
        assert!(String::from_utf8(body).unwrap().contains("<nav"), "{missing} has no way on");
    }
    let (status, _) = server.get(&format!("/connections/{uid}/packets.pcapng"), "");
    assert_eq!(status, 404);
    assert_eq!(server.get("/events", "Host: evil.example\r\n").0 / 100, 4, "two hosts");
    let mut stream = TcpStream::connect(&server.address).unwrap();
    let form = "action=begin";
    let head = "Content-Type: application/x-www-form-urlencoded\r\nConnection: close\r\n";
    let request = format!(
        "POST /control/record HTTP/1.1\r\nHost: {}\r\n{head}Content-Length: {}\r\n\r\n{form}",
        server.address,
        form.len()
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 403 ") && answer.contains("it only shows"), "{answer}");
}

#[test]
fn wrong_usage_is_told() {
    let scratch = Scratch::new("serve-usage");
    logs(scratch.path());
    let directory = scratch.path().to_str().unwrap();
    for (arguments, code, text) in [
        (vec!["serve", OFFICE, "-o", directory], 2, "has logs"),
        (vec!["serve", "nothing.pcap"], 2, "does not exist"),
        (vec!["serve", directory, OFFICE], 2, "stands alone"),
        (vec!["serve", directory, "-f", "tcp"], 2, "read as they are"),
        (vec!["serve", directory, "--conns", "5"], 2, "so name captures or -i"),
        (vec!["serve", directory, "-o", "elsewhere"], 2, "-o is for captures and -i"),
        (vec!["serve", directory, "--control"], 2, "'[FILES]...' cannot be used with '--control'"),
        (vec!["serve", OFFICE, "--control"], 2, "'[FILES]...' cannot be used with '--control'"),
        (
            vec!["serve", OFFICE, "--record-to", directory],
            2,
            "cannot be used with '--record-to <DIR>'",
        ),
        (vec!["serve", directory, "--listen", "0.0.0.0:0"], 2, "TLS"),
        (vec!["serve", "--listen", "127.0.0.1:0", NO_CAPTURE], 1, "nothing to show"),
    ] {
        let output = netsniff(&arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
        assert!(said.contains(text), "{arguments:?}: {said}");
    }
}

#[test]
fn a_failed_extraction_is_no_missing_page() {
    let scratch = Scratch::new("serve-extraction");
    logs(scratch.path());
    let capture = scratch.path().join("copy.pcapng");
    fs::copy(OFFICE, &capture).unwrap();
    let words = [scratch.path().to_str().unwrap(), "--captures", capture.to_str().unwrap()];
    let server = Server::start("serve-extracts", &words);
    let uid = uids(&server.page("/connections")).pop_first().unwrap();
    let pages = ["packets", "packets.pcapng", "sequence"];
    let ask = |uid: &str, page: &str| {
        let head = "Sec-Fetch-Dest: document\r\nSec-Fetch-Site: none\r\n";
        let (status, body) = server.get(&format!("/connections/{uid}/{page}"), head);
        (status, String::from_utf8_lossy(&body).into_owned())
    };
    for page in pages {
        assert_eq!(ask(&uid, page).0, 200, "{page}");
        // A connection that the capture does not have.
        let (status, said) = ask("C0AAAAAAAAAAAAAAAA", page);
        assert!(
            status == 404 && said.contains("it is not in the input"),
            "{page}: {status}: {said}"
        );
    }
    for fault in [&b"no capture"[..], b""] {
        fs::write(&capture, fault).unwrap();
        for page in pages {
            let (status, said) = ask(&uid, page);
            assert!(status == 500 && said.contains("copy.pcapng"), "{page}: {status}: {said}");
            assert!(said.contains("<nav"), "{page} has no way on: {said}");
        }
    }
    fs::remove_file(&capture).unwrap();
    for page in pages {
        let (status, said) = ask(&uid, page);
        assert!(status == 500 && said.contains("No such file"), "{page}: {status}: {said}");
    }
}
