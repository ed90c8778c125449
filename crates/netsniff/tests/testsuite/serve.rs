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

    /// Asks for a page: its head, and what follows that.
    fn ask(&self, path: &str, version: &str, head: &str) -> (String, Vec<u8>) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let request = format!("GET {path} HTTP/{version}\r\nHost: {}\r\n{head}\r\n", self.address);
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let end = answer.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
        let body = answer.split_off(end + 4);
        (String::from_utf8(answer).unwrap(), body)
    }

    /// Asks for a page: its status and what follows the head.
    fn get(&self, path: &str, head: &str) -> (u16, Vec<u8>) {
        let (answer, body) = self.ask(path, "1.1", &format!("Connection: close\r\n{head}"));
        let is_chunked = answer.to_ascii_lowercase().contains("transfer-encoding: chunked");
        let body = if is_chunked { unchunked(&body).0 } else { body };
        (answer[9..12].parse().unwrap(), body)
    }

    /// The same in chunks, with what stands behind the last one; nothing where it breaks off.
    fn chunks(&self, path: &str) -> (String, Vec<u8>, Option<String>) {
        let head = "TE: trailers\r\nConnection: TE, close\r\n";
        let (head, body) = self.ask(path, "1.1", head);
        let (whole, behind) = unchunked(&body);
        (head, whole, behind)
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
    analyze(to, "tsv");
}

fn analyze(to: &Path, format: &str) {
    let to = to.to_str().unwrap();
    let words =
        ["analyze", OFFICE, "-q", "--notices", "--series", "1s", "--format", format, "-o", to];
    assert!(netsniff(&words).status.success());
}

/// What chunks have, and what stands behind the last one; nothing where they break off.
fn unchunked(chunks: &[u8]) -> (Vec<u8>, Option<String>) {
    let (mut rest, mut whole) = (chunks, Vec::new());
    while let Some(at) = rest.windows(2).position(|two| two == b"\r\n") {
        let length = usize::from_str_radix(str::from_utf8(&rest[..at]).unwrap(), 16).unwrap();
        rest = &rest[at + 2..];
        if length == 0 {
            return (whole, Some(String::from_utf8(rest.to_vec()).unwrap()));
        }
        let Some((chunk, behind)) = rest.split_at_checked(length) else { break };
        whole.extend_from_slice(chunk);
        rest = behind.strip_prefix(b"\r\n").unwrap_or_default();
    }
    (whole, None)
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
    // Its hosts lead to their connections.
    let row = conn.iter().find(|row| row["uid"] == *uid).unwrap();
    for host in [&row["id.orig_h"], &row["id.resp_h"]] {
        let has = |name: &str| format!("{name}+%3D+%27{host}%27");
        let at = format!("/connections?where={}+OR+{}", has("id.orig_h"), has("id.resp_h"));
        let link = format!("<a href=\"{}\">{host}</a>", at.replace('/', "&#x2f;"));
        assert!(page.contains(&link), "no {link} in {page}");
        let is_its = |row: &&netsniff_testing::log::Row| {
            row["id.orig_h"] == *host || row["id.resp_h"] == *host
        };
        let its: BTreeSet<_> = conn.iter().filter(is_its).map(|row| row["uid"].clone()).collect();
        assert_eq!(uids(&server.page(&format!("{at}&rows=500"))), its);
    }
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

/// The lines of a log, without those that are no rows.
fn lines(text: &[u8]) -> Vec<String> {
    let text = str::from_utf8(text).unwrap();
    text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
}

/// Whether rows have the same members in the same order, but for digits of fractions.
fn is_near(row: &str, other: &str) -> bool {
    let values = |text| serde_json::from_str::<serde_json::Value>(text).unwrap();
    let (row, other) = (values(row), values(other));
    let (row, other) = (row.as_object().unwrap(), other.as_object().unwrap());
    row.len() == other.len()
        && row.iter().zip(other).all(|(one, other)| match (one.1.as_f64(), other.1.as_f64()) {
            (Some(number), Some(near)) if one.1.is_f64() => {
                one.0 == other.0 && (number - near).abs() < 1e-6
            }
            _ => one == other,
        })
}

#[test]
fn rows_are_downloaded_as_the_formats_write_them() {
    let (tsv, json) = (Scratch::new("serve-rows-tsv"), Scratch::new("serve-rows-json"));
    analyze(tsv.path(), "tsv");
    analyze(json.path(), "json");
    let of_tsv = Server::start("serve-of-tsv", &[tsv.path().to_str().unwrap()]);
    let of_json = Server::start("serve-of-json", &[json.path().to_str().unwrap()]);
    let mut seen = 0;
    for entry in fs::read_dir(tsv.path()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let Some(log) = name.strip_suffix(".log") else { continue };
        let written = |folder: &Scratch| lines(&fs::read(folder.path().join(&name)).unwrap());
        for (server, file, wanted) in [
            (&of_tsv, "rows.tsv", written(&tsv)),
            (&of_json, "rows.json", written(&json)),
            (&of_json, "rows.tsv", written(&tsv)),
            (&of_tsv, "rows.json", written(&json)),
        ] {
            let (head, body, behind) = server.chunks(&format!("/logs/{log}/{file}"));
            let end = file.strip_prefix("rows.").unwrap();
            assert!(head.contains(&format!("filename=\"{log}.{end}\"")), "{head}");
            let rows = lines(&body);
            assert_eq!(rows.len(), wanted.len(), "{log}: {file}");
            for (row, wanted) in rows.iter().zip(&wanted) {
                // Columns have six digits of a fraction, where JSON has all.
                let is_rounded = core::ptr::eq(server, &of_tsv) && end == "json";
                assert!(
                    row == wanted || is_rounded && is_near(row, wanted),
                    "{log}: {file}: {row}\n{wanted}"
                );
            }
            let behind = behind.expect("it breaks off");
            assert!(behind.contains(&format!("netsniff-rows: {}\r\n", wanted.len())), "{behind}");
            assert!(behind.contains("netsniff-lines-left-out: 0\r\n"), "{behind}");
            assert!(behind.contains("netsniff-values-left-out: 0\r\n"), "{behind}");
            if end == "tsv" {
                assert!(body.starts_with(b"#separator \\x09\n"));
                let body = String::from_utf8(body).unwrap();
                assert!(body.lines().last().unwrap().starts_with("#close\t"), "{body}");
            }
            seen += wanted.len();
        }
    }
    assert!(seen > 2_000, "{seen} rows");
}

#[test]
fn a_file_of_unknown_length_is_not_sent_where_its_end_cannot_be_told() {
    let scratch = Scratch::new("serve-old");
    analyze(scratch.path(), "json");
    let server = Server::start("serve-old-server", &[scratch.path().to_str().unwrap()]);
    let uid = "CHhAvVGS1DHFjwGM9";
    for (path, old) in [
        ("/logs/conn/rows.json".to_owned(), 505),
        ("/logs/conn/rows.tsv?sort=ts".to_owned(), 505),
        (format!("/connections/{uid}/packets.pcapng"), 505),
        ("/logs/conn".to_owned(), 200),
    ] {
        let (answer, body) = server.ask(&path, "1.0", "");
        assert_eq!(answer[9..12], old.to_string(), "{path}");
        let said = String::from_utf8(body).unwrap();
        assert_eq!(said.contains("HTTP/1.1"), old == 505, "{path}: {said}");
    }
}

#[test]
fn a_condition_and_an_order_choose_the_rows_of_a_download() {
    let scratch = Scratch::new("serve-chosen");
    analyze(scratch.path(), "json");
    let conn = fs::read_to_string(scratch.path().join("conn.log")).unwrap();
    let server = Server::start("serve-download", &[scratch.path().to_str().unwrap()]);
    let http = "where=service+%3D+%27http%27";
    let wanted: Vec<_> = conn.lines().filter(|row| row.contains("\"service\":\"http\"")).collect();
    let (_, body) = server.get(&format!("/logs/conn/rows.json?{http}"), "");
    assert!(wanted.len() > 3 && lines(&body) == wanted);
    let bytes = |row: &str| -> Option<u64> {
        serde_json::from_str::<serde_json::Value>(row).unwrap()["orig_ip_bytes"].as_u64()
    };
    let mut ordered = wanted.clone();
    // What is not known comes last.
    ordered.sort_by_key(|row| (bytes(row).is_none(), core::cmp::Reverse(bytes(row))));
    let (head, body, _) =
        server.chunks(&format!("/logs/conn/rows.json?{http}&sort=-orig_ip_bytes"));
    assert_eq!(lines(&body), ordered);
    assert!(head.contains(&format!("netsniff-rows: {}\r\n", wanted.len())), "{head}");
    assert!(!head.contains("netsniff-cut"), "{head}");
    // The table leads to both.
    let page =
        server.page(&format!("/connections?{http}&sort=-orig_ip_bytes")).replace("&#x2f;", "/");
    for link in [http.to_owned(), format!("{http}&amp;sort=-orig_ip_bytes")] {
        let link = format!("href=\"/logs/conn/rows.json?{link}\" download");
        assert!(page.contains(&link), "no {link} in {page}");
    }
    for (path, status) in [
        ("/logs/conn/rows.json?where=color+%3D+1", 400),
        ("/logs/conn/rows.json?sort=color", 400),
        ("/logs/conn/rows.xml", 404),
        ("/logs/nothing/rows.json", 404),
        ("/logs/intel/rows.json", 200),
    ] {
        assert_eq!(server.get(path, "").0, status, "{path}");
    }
}

#[test]
fn a_download_tells_what_it_lacks() {
    let scratch = Scratch::new("serve-lacks");
    fs::create_dir_all(scratch.path()).unwrap();
    let row = |number: u32| format!("{{\"ts\":{number}.0,\"uid\":\"C{number}\"}}\n");
    let rows: String = (0..10_050).map(row).collect();
    let rest = "broken\n{\"ts\":0.5,\"orig_bytes\":5.0}\n";
    fs::write(scratch.path().join("conn.2026-01-01-00-00-00.log"), rows + rest).unwrap();
    fs::write(scratch.path().join("conn.msgpack"), "").unwrap();
    fs::write(scratch.path().join("conn.2026-01-01-00-00-00.json"), row(1)).unwrap();
    let server = Server::start("serve-cut", &[scratch.path().to_str().unwrap()]);
    let (head, body, behind) = server.chunks("/logs/conn/rows.json");
    assert_eq!(lines(&body).len(), 10_051);
    let behind = behind.unwrap();
    for field in ["netsniff-lines-left-out: 1\r\n", "netsniff-values-left-out: 1\r\n"] {
        assert!(behind.contains(field), "{behind}");
    }
    let left_out = "netsniff-left-out: conn.msgpack conn.2026-01-01-00-00-00.json\r\n";
    assert!(head.contains(left_out), "{head}");
    let (head, body, _) = server.chunks("/logs/conn/rows.json?sort=-ts");
    assert_eq!(lines(&body).len(), 10_000);
    assert!(body.starts_with(b"{\"ts\":10049.0,"));
    assert!(head.contains("netsniff-cut: the first 10000 of 10051 rows\r\n"), "{head}");
    let page = server.page("/logs/conn?sort=-ts");
    assert!(page.contains("10,051 rows in the order of the log"), "{page}");
    assert!(page.contains("the first 10,000 rows in this order"), "{page}");

    // A file that cannot be read to its end is no end of the log.
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    (0..200_000).for_each(|number| packed.write_all(row(number).as_bytes()).unwrap());
    let packed = packed.finish().unwrap();
    fs::write(scratch.path().join("conn.log.gz"), &packed[..packed.len() / 2]).unwrap();
    let (_, body, behind) = server.chunks("/logs/conn/rows.json");
    assert!(!body.is_empty());
    assert_eq!(behind, None, "a part is taken for all");
    let (status, said) = server.get("/logs/conn/rows.json?sort=-ts", "");
    let said = String::from_utf8(said).unwrap();
    assert!(status == 500 && said.contains("could not be read to its end"), "{status}: {said}");
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
