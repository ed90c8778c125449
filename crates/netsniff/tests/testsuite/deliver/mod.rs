//! `--deliver`: rows come to their receivers, whatever these do, and the books tell where each is.

mod forms;
mod ipfix;
mod receiver;

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use self::receiver::{Act, Logs, Receiver, parts};
use crate::generated::Folder;

const OFFICE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/recorded/office.pcapng");

fn netsniff(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_netsniff")).args(arguments).output().unwrap()
}

/// Analyses the office, and delivers its rows to some URLs. Returns the exit code and the books.
fn deliver(folder: &Folder, urls: &[String], more: &[&str]) -> (i32, Vec<Value>) {
    let spool = folder.path("spool");
    let mut arguments = vec!["analyze", OFFICE, "--json", "--spool", spool.to_str().unwrap()];
    arguments.extend(["--sensor", "s", "--run-id", "r"]);
    urls.iter().for_each(|url| arguments.extend(["--deliver", url.as_str()]));
    arguments.extend(more);
    let out = netsniff(&arguments);
    let said = String::from_utf8_lossy(&out.stderr);
    let summary: Value = serde_json::from_slice(&out.stdout).unwrap_or_else(|_| panic!("{said}"));
    let books = summary["delivery"].as_array().unwrap().clone();
    books.iter().for_each(balanced);
    (out.status.code().unwrap(), books)
}

/// Delivers what is left, and returns the exit code and the books.
fn deliver_rest(folder: &Folder) -> (i32, Vec<Value>) {
    let out = netsniff(&[
        "deliver",
        folder.path("spool").to_str().unwrap(),
        "--json",
        "--deliver-wait",
        "2s",
    ]);
    let said = String::from_utf8_lossy(&out.stderr);
    let books: Vec<Value> =
        serde_json::from_slice(&out.stdout).unwrap_or_else(|_| panic!("{said}"));
    books.iter().for_each(balanced);
    (out.status.code().unwrap(), books)
}

fn number(books: &Value, name: &str) -> u64 {
    books[name].as_u64().unwrap_or_else(|| panic!("{name} in {books}"))
}

fn balanced(books: &Value) {
    let sum = |names: &[&str]| names.iter().map(|name| number(books, name)).sum::<u64>();
    let parts = ["delivered", "spooled", "refused_full", "refused_by_receiver", "lost"];
    assert_eq!(sum(&["found", "made"]), sum(&parts), "{books}");
}

/// The rows of the logs of a directory, which are JSON.
fn written(directory: &Path) -> Logs {
    let mut logs = Logs::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "log") {
            let rows = fs::read_to_string(&path).unwrap();
            let rows = rows.lines().map(str::to_owned).enumerate();
            let rows = rows.map(|(seq, row)| (seq as u64, row)).collect();
            logs.insert(path.file_stem().unwrap().to_str().unwrap().to_owned(), rows);
        }
    }
    logs
}

/// The rows of the office.
fn office(folder: &Folder) -> Logs {
    let logs = folder.path("logs");
    let out =
        netsniff(&["analyze", OFFICE, "-q", "-o", logs.to_str().unwrap(), "--format", "json"]);
    assert!(out.status.success());
    written(&logs)
}

/// What a run delivers of some rows: them, and how many of each log there are.
fn with_end(logs: &Logs) -> Logs {
    let end =
        logs.iter().map(|(log, rows)| format!("{{\"of\":\"{log}\",\"rows\":{}}}", rows.len()));
    // They come in the order of the list of logs.
    let by_number = BTreeMap::from_iter(end.enumerate().map(|(at, row)| (at as u64, row)));
    let mut all = logs.clone();
    all.insert("run_end".to_owned(), by_number);
    all
}

/// The same with the rows of the end by their text, since their order is that of the list of logs.
fn by_text(mut logs: Logs) -> Logs {
    if let Some(end) = logs.get_mut("run_end") {
        let mut rows: Vec<_> = end.values().cloned().collect();
        rows.sort();
        *end = rows.into_iter().enumerate().map(|(at, row)| (at as u64, row)).collect();
    }
    logs
}

fn all_of(logs: &Logs) -> u64 {
    logs.values().map(|rows| rows.len() as u64).sum()
}

fn is_all(receiver: &Receiver, logs: &Logs) -> bool {
    by_text(receiver.logs()) == by_text(with_end(logs))
}

#[test]
fn rows_come_as_the_logs_have_them_for_any_number_of_workers() {
    let folder = Folder::new("deliver-plain");
    let logs = office(&folder);
    let mut before = None;
    for workers in ["1", "2", "3"] {
        let receiver = Receiver::start(|_| Act::Take);
        let url = format!("http://127.0.0.1:{}/rows?batch=7", receiver.port);
        let beside = folder.path(&format!("beside-{workers}"));
        let (code, books) =
            deliver(&folder, &[url], &["--workers", workers, "-o", beside.to_str().unwrap()]);
        assert_eq!((code, number(&books[0], "spooled")), (0, 0));
        assert_eq!(number(&books[0], "delivered"), all_of(&with_end(&logs)));
        assert!(is_all(&receiver, &logs));
        assert_eq!(written(&beside), logs);
        let taken = receiver.taken();
        assert!(before.replace(taken.clone()).is_none_or(|before| before == taken), "{workers}");
    }
}

/// What exporters told goes the same way as what was analysed.
#[test]
fn rows_of_flow_exports_are_delivered() {
    const FLOWS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/flows/netflow9.pcap");
    let folder = Folder::new("deliver-flows");
    let (logs, spool) = (folder.path("logs"), folder.path("spool"));
    let (logs, spool) = (logs.to_str().unwrap(), spool.to_str().unwrap());
    let receiver = Receiver::start(|_| Act::Take);
    let url = format!("http://127.0.0.1:{}/rows", receiver.port);
    let sent = ["--spool", spool, "--sensor", "s", "--run-id", "r"];
    let out = netsniff(&[&["collect", FLOWS, "-o", logs, "--deliver", &url], &sent[..]].concat());
    let summary = String::from_utf8_lossy(&out.stdout);
    assert_eq!(out.status.code(), Some(0), "{summary}");
    let logs = written(Path::new(logs));
    assert!(logs["conn"].len() > 100 && is_all(&receiver, &logs));
    let all = all_of(&with_end(&logs));
    assert!(summary.contains(&format!("{all} of {all} rows to ")), "{summary}");

    // Nobody takes them: they stay, and the exit code tells.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let away = format!("http://127.0.0.1:{port}/rows");
    let wait = ["--deliver-wait", "100ms"];
    let out = netsniff(&[&["collect", FLOWS, "--deliver", &away], &sent[..], &wait[..]].concat());
    let said = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(5), "{said}");
    assert!(said.contains("not all was delivered to "), "{said}");
}

#[test]
fn a_receiver_that_fails_in_every_way_gets_all_in_the_end() {
    let folder = Folder::new("deliver-faults");
    let logs = office(&folder);
    let receiver = Receiver::start(|request| match request.number {
        0 => Act::Refuse(500, "", "oops"),
        1 => Act::Refuse(429, "retry-after: 1\r\n", ""),
        2 => Act::Hang(Duration::from_secs(3)),
        3 => Act::Cut,
        4 => Act::TakeAndCut,
        6 => Act::TakeAndCut,
        8 => Act::Refuse(403, "", "who are you?"),
        10 => Act::Refuse(302, "location: http://127.0.0.1:1/\r\n", ""),
        _ => Act::Take,
    });
    let url = format!("http://127.0.0.1:{}/?batch=9&timeout=1s", receiver.port);
    let (code, books) = deliver(&folder, &[url], &[]);
    assert_eq!((code, number(&books[0], "retried")), (0, 8), "{books:?}");
    assert!(is_all(&receiver, &logs));
    let twice = receiver.taken().len() as u64 - number(&books[0], "delivered");
    assert_eq!(twice, 18, "batches whose answers were cut come again");
}

#[test]
fn a_bad_row_alone_is_refused_and_kept_with_the_reason() {
    let folder = Folder::new("deliver-bad");
    let logs = office(&folder);
    let receiver = Receiver::start(|request| {
        let is_bad = |row: &String| matches!(parts(row), (log, 3, _) if log == "conn");
        if request.rows().iter().any(is_bad) {
            Act::Refuse(400, "", "cannot parse \u{1b}[2J")
        } else if request.body.len() > 20_000 {
            Act::Refuse(413, "", "")
        } else {
            Act::Take
        }
    });
    let (code, books) = deliver(&folder, &[format!("http://127.0.0.1:{}", receiver.port)], &[]);
    assert_eq!((code, number(&books[0], "refused_by_receiver")), (5, 1), "{books:?}");
    assert_eq!((number(&books[0], "refused_kept"), number(&books[0], "spooled")), (1, 0));
    let mut expected = with_end(&logs);
    let bad = expected.get_mut("conn").unwrap().remove(&3).unwrap();
    assert_eq!(by_text(receiver.logs()), by_text(expected));
    let spool = fs::read_dir(folder.path("spool")).unwrap().next().unwrap().unwrap().path();
    let kept = fs::read_to_string(spool.join("refused.json")).unwrap();
    let kept: Value = serde_json::from_str(&kept).unwrap();
    assert!(kept["reason"].as_str().unwrap().starts_with("HTTP 400 cannot parse"), "{kept}");
    assert!(!kept["reason"].as_str().unwrap().contains('\u{1b}'));
    let bad: Value = serde_json::from_str(&bad).unwrap();
    assert_eq!((&kept["row"]["uid"], &kept["row"]["seq"]), (&bad["uid"], &Value::from(3)));
}

#[test]
fn without_a_receiver_rows_stay_and_are_delivered_later() {
    let folder = Folder::new("deliver-later");
    let logs = office(&folder);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let all = all_of(&with_end(&logs));
    let (code, books) = deliver(&folder, std::slice::from_ref(&url), &["--deliver-wait", "300ms"]);
    assert_eq!((code, number(&books[0], "spooled")), (5, all), "{books:?}");
    assert_eq!(deliver_rest(&folder).0, 5);
    let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
    let receiver = Receiver::listen(listener, |_| Act::Take);
    let (code, books) = deliver_rest(&folder);
    assert_eq!((code, number(&books[0], "found"), number(&books[0], "delivered")), (0, all, all));
    assert!(is_all(&receiver, &logs));
    let (code, books) = deliver_rest(&folder);
    assert_eq!((code, number(&books[0], "found")), (0, 0), "nothing is there twice");
}

/// One receiver of whom the secret is gone keeps nobody else from getting what is left.
#[test]
fn what_is_left_goes_to_those_that_can_be_reached() {
    let folder = Folder::new("deliver-secret");
    let spool = folder.path("spool");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let plain = format!("http://127.0.0.1:{port}/plain");
    let secret = folder.path("secret");
    fs::write(&secret, "hidden").unwrap();
    let guarded =
        format!("http://127.0.0.1:{port}/guarded?user=u&password=file:{}", secret.display());
    let (code, _) = deliver(&folder, &[plain, guarded], &["--deliver-wait", "100ms"]);
    assert_eq!(code, 5);
    fs::remove_file(&secret).unwrap();
    let receiver = Receiver::listen(TcpListener::bind(("127.0.0.1", port)).unwrap(), |_| Act::Take);
    let out = netsniff(&["deliver", spool.to_str().unwrap(), "--deliver-wait", "2s"]);
    let said = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(5), "{said}");
    assert!(said.contains("/guarded") && said.contains("password=file:"), "{said}");
    assert!(is_all(&receiver, &office(&folder)));
}

#[test]
fn a_run_that_is_killed_loses_nothing_that_its_spool_took() {
    let folder = Folder::new("deliver-killed");
    let logs = office(&folder);
    let office = fs::read(OFFICE).unwrap();
    let (hangs, hung) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let (tells, is_over) = (Arc::clone(&hangs), Arc::clone(&hung));
    let receiver = Receiver::start(move |request| match request.number {
        5 => Act::TakeAndCut,
        6.. if !is_over.load(Ordering::Relaxed) => {
            tells.store(true, Ordering::Relaxed);
            Act::Hang(Duration::from_secs(60))
        }
        _ => Act::Take,
    });
    let (spool, beside) = (folder.path("spool"), folder.path("beside"));
    let url = format!("http://127.0.0.1:{}/?batch=5", receiver.port);
    let mut child = Command::new(env!("CARGO_BIN_EXE_netsniff"))
        .args([
            "analyze",
            "-q",
            "-",
            "--deliver",
            &url,
            "--sensor",
            "s",
            "--run-id",
            "r",
            "--spool",
        ])
        .arg(&spool)
        .arg("-o")
        .arg(&beside)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut pipe = child.stdin.take().unwrap();
    // The pipe stays open: the run waits for more.
    pipe.write_all(&office[..office.len() * 9 / 10]).unwrap();
    let begun = Instant::now();
    while !hangs.load(Ordering::Relaxed) || written(&beside).is_empty() {
        assert!(begun.elapsed() < Duration::from_secs(20), "{} rows", receiver.taken().len());
        thread::sleep(Duration::from_millis(20));
    }
    // What the log files have by now, the spool has taken.
    let promised = written(&beside);
    child.kill().unwrap();
    child.wait().unwrap();
    hung.store(true, Ordering::Relaxed);
    let before = receiver.logs();
    assert!(all_of(&before) < all_of(&promised), "it was killed too late");
    let (code, books) = deliver_rest(&folder);
    assert_eq!((code, number(&books[0], "damaged_bytes")), (0, 0), "{books:?}");
    for (log, rows) in receiver.logs() {
        let whole = &logs[&log];
        for (at, (seq, row)) in rows.iter().enumerate() {
            assert_eq!(*seq, at as u64, "{log} has a gap");
            assert_eq!(Some(row), whole.get(seq), "{log} {seq}");
        }
        let least = promised.get(&log).map_or(0, BTreeMap::len);
        assert!(rows.len() >= least, "{log}: {} of {least} rows", rows.len());
    }
}

#[test]
fn bulk_requests_refuse_row_by_row() {
    let folder = Folder::new("deliver-bulk");
    let logs = office(&folder);
    let mut seen = BTreeMap::new();
    let receiver = Receiver::start(move |request| {
        assert!(request.line.starts_with("POST /_bulk "), "{}", request.line);
        assert!(request.header.contains("authorization: basic bwu6c2vjcmv0"), "{}", request.header);
        let lines = request.rows();
        let (mut taken, mut items) = (Vec::new(), Vec::new());
        for (at, pair) in lines.chunks(2).enumerate() {
            let [create, document] = pair else { panic!("{pair:?}") };
            let create: Value = serde_json::from_str(create).unwrap();
            let name = create["create"]["_id"].as_str().unwrap().to_owned();
            let (stamp, row) =
                document.strip_prefix("{\"@timestamp\":\"").unwrap().split_once("\",").unwrap();
            assert!(stamp.ends_with('Z'));
            let row = format!("{{{row}");
            let (log, seq, _) = parts(&row);
            assert_eq!(name, format!("s:r:{log}:{seq}"));
            let times = seen.entry(name).or_insert(0);
            *times += 1;
            let status = match (log.as_str(), seq) {
                ("dns", 2) => 400,
                // Each third row does not fit in at first, and each fifth is taken while its answer says no.
                _ if at % 3 == 0 && *times == 1 => 429,
                _ => 201,
            };
            if status == 201 {
                taken.push(row);
            }
            items.push(format!(
                "{{\"create\":{{\"status\":{status},\"error\":{{\"type\":\"t\"}}}}}}"
            ));
        }
        let body = format!("{{\"errors\":true,\"items\":[{}]}}", items.join(","));
        Act::TakeOnly(taken, body)
    });
    let password = folder.path("password");
    fs::write(&password, "secret\n").unwrap();
    let url = format!(
        "http://127.0.0.1:{}?as=bulk&batch=20&user=me&password=file:{}",
        receiver.port,
        password.display()
    );
    let (code, books) = deliver(&folder, &[url], &[]);
    assert_eq!((code, number(&books[0], "refused_by_receiver")), (5, 1), "{books:?}");
    let mut expected = with_end(&logs);
    expected.get_mut("dns").unwrap().remove(&2).unwrap();
    assert_eq!(by_text(receiver.logs()), by_text(expected));
    assert_eq!(receiver.taken().len() as u64, number(&books[0], "delivered"), "no row came twice");
}

#[test]
fn several_receivers_get_what_they_want_and_do_not_hold_up_each_other() {
    let folder = Folder::new("deliver-several");
    let logs = office(&folder);
    let socket = folder.path("rows.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    let local = thread::spawn(move || {
        let mut text = String::new();
        listener.accept().unwrap().0.read_to_string(&mut text).unwrap();
        text
    });
    let urls = [
        format!("unix://{}?log=dns", socket.display()),
        // Nobody listens there.
        "http://127.0.0.1:9/".to_owned(),
    ];
    let (code, books) = deliver(&folder, &urls, &["--deliver-wait", "300ms"]);
    assert_eq!(code, 5);
    let dns = logs["dns"].len() as u64 + 1;
    assert_eq!((number(&books[0], "made"), number(&books[0], "delivered")), (dns, dns));
    assert_eq!(number(&books[1], "spooled"), all_of(&with_end(&logs)));
    let text = local.join().unwrap();
    let rows: Vec<_> = text.lines().map(parts).collect();
    assert!(rows.iter().take(logs["dns"].len()).enumerate().all(|(at, (log, seq, row))| {
        log == "dns" && *seq == at as u64 && *row == logs["dns"][seq]
    }));
    assert_eq!(
        rows.last().unwrap().2,
        format!("{{\"of\":\"dns\",\"rows\":{}}}", logs["dns"].len())
    );
}

#[test]
fn what_makes_no_sense_is_refused_before_anything_is_read() {
    let folder = Folder::new("deliver-usage");
    let spool = folder.path("spool");
    for (url, more, said) in [
        ("ftp://host/", &[][..], "no way to send"),
        ("http://a:hidden@127.0.0.1/", &[], "env:NAME"),
        ("http://127.0.0.1/?password=hidden&user=a", &[], "env:NAME"),
        ("http://127.0.0.1/?as=carrier-pigeon", &[], "carrier-pigeon"),
        ("http://127.0.0.1/?log=nothing", &[], "is no log"),
        ("unix:///tmp/x?colour=red", &[], "no parameter"),
        ("https://127.0.0.1/?ca=/nowhere", &[], "ca=/nowhere"),
        ("http://127.0.0.1/?batch=0", &[], "batch"),
        ("http://127.0.0.1/", &["--sensor", "a b"], "name of a sensor"),
        ("http://127.0.0.1/", &["-o", "logs", "--format", "tsv"], "--deliver and --format"),
        ("http://127.0.0.1/", &["--spool-size", "1000"], "are the least"),
    ] {
        let mut arguments =
            vec!["analyze", OFFICE, "--deliver", url, "--spool", spool.to_str().unwrap()];
        arguments.extend(more);
        let out = netsniff(&arguments);
        let text = String::from_utf8_lossy(&out.stderr);
        assert!(out.status.code() == Some(2) && text.contains(said), "{url} {more:?}: {text}");
        assert!(!text.contains("hidden"), "{text}");
        assert!(!spool.exists(), "{url}");
    }
}
