//! `netsniff report`: every number of its page is that of the logs, what is not known is not 0, and text from packets
//! is text.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::zeek::corpus::Scratch;
use crate::zeek::log::{self, Row};

const RECORDED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/recorded");

fn netsniff(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_netsniff")).args(arguments).output().unwrap()
}

/// The logs of a capture in a directory, in a format.
fn analysed(capture: &str, to: &Path, format: &str) {
    let capture = Path::new(RECORDED).join(capture);
    let arguments = [
        "analyze",
        capture.to_str().unwrap(),
        "-q",
        "--notices",
        "--series",
        "200ms",
        "--format",
        format,
        "-o",
        to.to_str().unwrap(),
    ];
    assert!(netsniff(&arguments).status.success());
}

/// The page of a directory or of captures, and the exit code.
fn page(inputs: &[&Path], options: &[&str]) -> (String, i32) {
    let inputs = inputs.iter().map(|input| input.to_str().unwrap());
    let arguments: Vec<_> =
        ["report"].into_iter().chain(inputs).chain(options.iter().copied()).collect();
    let output = netsniff(&[&arguments[..], &["-o", "-"]].concat());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let page = String::from_utf8(output.stdout).unwrap();
    assert!(page.ends_with("</html>") || page.is_empty(), "{said}");
    (page, output.status.code().unwrap())
}

/// A cell: its text, and the number behind it.
#[derive(Clone, Debug, PartialEq)]
struct Cell {
    text: String,
    value: Option<i128>,
}

/// A table of a page: the rows of its body, and those of its foot.
fn table(page: &str, id: &str) -> (Vec<Vec<Cell>>, Vec<Vec<Cell>>) {
    let begin = page.find(&format!("<table id=\"t-{id}\"")).unwrap_or_else(|| panic!("no {id}"));
    let whole = page[begin..].split("</table>").next().unwrap();
    let body = whole.split("<tbody>").nth(1).unwrap().split("</tbody>").next().unwrap();
    let foot = whole.split("<tfoot>").nth(1).unwrap_or_default();
    let rows = |part: &str| part.split("<tr>").skip(1).map(cells).collect();
    (rows(body), rows(foot))
}

fn cells(row: &str) -> Vec<Cell> {
    let row = row.split("</tr>").next().unwrap();
    let begins = row.match_indices("<td ").chain(row.match_indices("<th "));
    let mut begins: Vec<_> = begins.map(|(at, _)| at).collect();
    begins.sort_unstable();
    let cell = |at: usize| {
        let (tag, rest) = row[at..].split_once('>').unwrap();
        let value = tag.split("data-value=\"").nth(1).and_then(|it| it.split('"').next());
        let text = unescaped(rest.split('<').next().unwrap());
        Cell { text, value: value.map(|value| value.parse().unwrap()) }
    };
    begins.into_iter().map(cell).collect()
}

fn unescaped(text: &str) -> String {
    let marks = [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&#x27;", "'"),
        ("&#x2f;", "/"),
        ("&amp;", "&"),
    ];
    marks.iter().fold(text.to_owned(), |text, (escaped, mark)| text.replace(escaped, mark))
}

/// What a column sums up: rows of a log, and a value of each that may not be set.
type Column<'a> = (&'a [Row], &'a dyn Fn(&Row) -> bool, &'a [&'a str]);

/// Checks a table against the logs: each row is the sum over the rows of its key, and all rows with the foot are the sum
/// over everything. So many columns are the key; those with numbers begin at `first`.
fn check_table(
    page: &str,
    id: &str,
    (keys, first): (usize, usize),
    key: &dyn Fn(&Row) -> String,
    columns: &[Column<'_>],
) {
    let (body, foot) = table(page, id);
    assert!(!body.is_empty(), "{id}");
    for (number, (rows, is_counted, names)) in columns.iter().enumerate() {
        let at = first + number;
        let mut sums: BTreeMap<String, (i128, u64, u64)> = BTreeMap::new();
        for row in rows.iter() {
            let sum = sums.entry(key(row)).or_default();
            if names.is_empty() {
                sum.0 += i128::from(is_counted(row));
                sum.1 += 1;
            } else if is_counted(row) {
                for name in *names {
                    match row[*name].parse::<i128>() {
                        Ok(value) => (sum.0, sum.1) = (sum.0 + value, sum.1 + 1),
                        Err(_) => sum.2 += 1,
                    }
                }
            }
        }
        let all: i128 = sums.values().map(|sum| sum.0).sum();
        let shown = body.iter().chain(&foot).filter_map(|row| row[at].value);
        assert_eq!(shown.sum::<i128>(), all, "{id}, column {at}: all together");
        for row in &body {
            let name = row[..keys].iter().map(|it| it.text.as_str()).collect::<Vec<_>>().join("|");
            let (sum, told, untold) = sums.get(&name).copied().unwrap_or_default();
            let cell = &row[at];
            let place = format!("{id}, column {at}, {name}: {cell:?} for {sum} {told} {untold}");
            match (told, untold) {
                (0, _) if !names.is_empty() => assert_eq!(cell.text, "\u{2013}", "{place}"),
                (_, 0) => assert!(!cell.text.starts_with('\u{2265}'), "{place}"),
                _ => assert!(cell.text.starts_with('\u{2265}'), "{place}"),
            }
            if told > 0 || names.is_empty() {
                assert_eq!(cell.value, Some(sum), "{place}");
            }
        }
    }
}

fn server(row: &Row) -> String {
    let (host, port) = (&row["id.resp_h"], &row["id.resp_p"]);
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

/// The tables whose rows have a key each.
fn check_sums(page: &str, logs: &Path) {
    let read = |log: &str| log::read(&logs.join(format!("{log}.log"))).unwrap();
    let (conn, dns, ssl, files) = (read("conn"), read("dns"), read("ssl"), read("files"));
    let all = |_: &Row| true;
    let has = |name: &'static str, word: &'static str| move |row: &Row| row[name] == word;
    let service = |row: &Row| match row["service"].as_str() {
        "-" => format!("not recognised, {}", row["proto"]),
        service => service.to_owned(),
    };
    check_table(
        page,
        "services",
        (1, 1),
        &service,
        &[
            (&conn, &all, &[]),
            (&conn, &all, &["orig_ip_bytes"]),
            (&conn, &all, &["resp_ip_bytes"]),
            (&conn, &all, &["orig_pkts", "resp_pkts"]),
            (&conn, &has("quality", "clean"), &[]),
            (&conn, &has("quality", "touched"), &[]),
            (&conn, &has("quality", "suspect"), &[]),
            (&conn, &has("quality", "unknown"), &[]),
        ],
    );
    let code = |code: &'static str| has("rcode_name", code);
    check_table(
        page,
        "dns",
        (1, 1),
        &server,
        &[
            (&dns, &all, &[]),
            (&dns, &code("NOERROR"), &[]),
            (&dns, &code("NXDOMAIN"), &[]),
            (&dns, &code("SERVFAIL"), &[]),
            (&dns, &code("REFUSED"), &[]),
        ],
    );
    check_table(
        page,
        "tls-versions",
        (1, 1),
        &|row| match row["version"].as_str() {
            "-" => "no version was chosen".to_owned(),
            version => version.to_owned(),
        },
        &[
            (&ssl, &all, &[]),
            (&ssl, &has("established", "T"), &[]),
            (&ssl, &has("established", "F"), &[]),
            (&ssl, &has("resumed", "T"), &[]),
        ],
    );
    let kind = |row: &Row| {
        let text = |name: &str| if row[name] == "-" { "not known" } else { &row[name] }.to_owned();
        format!("{}|{}", text("mime_type"), text("source"))
    };
    check_table(
        page,
        "file-kinds",
        (2, 2),
        &kind,
        &[
            (&files, &all, &[]),
            (&files, &all, &["seen_bytes"]),
            (&files, &all, &["missing_bytes"]),
            (&files, &has("timedout", "T"), &[]),
        ],
    );
}

/// Hosts, each of which has both sides of its connections.
fn check_hosts(page: &str, logs: &Path) {
    let conn = log::read(&logs.join("conn.log")).unwrap();
    let mut sides = Vec::new();
    for row in &conn {
        for (host, sent, received) in [("orig", "orig", "resp"), ("resp", "resp", "orig")] {
            let mut side = Row::new();
            side.insert("host".to_owned(), row[&format!("id.{host}_h")].clone());
            side.insert("side".to_owned(), host.to_owned());
            side.insert("sent".to_owned(), row[&format!("{sent}_ip_bytes")].clone());
            side.insert("received".to_owned(), row[&format!("{received}_ip_bytes")].clone());
            sides.push(side);
        }
    }
    let is = |side: &'static str| move |row: &Row| row["side"] == side;
    check_table(
        page,
        "hosts",
        (1, 1),
        &|row| row["host"].clone(),
        &[
            (&sides, &is("orig"), &[]),
            (&sides, &is("resp"), &[]),
            (&sides, &|_| true, &["sent"]),
            (&sides, &|_| true, &["received"]),
        ],
    );
}

/// Servers of TCP, of which `conn` and `tcp` tell.
fn check_servers(page: &str, logs: &Path) {
    let mut conn = log::read(&logs.join("conn.log")).unwrap();
    conn.retain(|row| row["proto"] == "tcp");
    let tcp = log::read(&logs.join("tcp.log")).unwrap();
    let all = |_: &Row| true;
    let state = |state: &'static str| move |row: &Row| row["conn_state"] == state;
    let counts: [Column<'_>; 3] =
        [(&conn, &all, &[]), (&conn, &state("S0"), &[]), (&conn, &state("REJ"), &[])];
    check_table(page, "tcp", (1, 1), &server, &counts);
    let again = [
        "orig_retx_rto",
        "orig_retx_fast",
        "orig_retx_spurious",
        "resp_retx_rto",
        "resp_retx_fast",
        "resp_retx_spurious",
    ];
    let sums: [Column<'_>; 7] = [
        (&tcp, &all, &["orig_data_segments", "resp_data_segments"]),
        (&tcp, &all, &again),
        (&tcp, &all, &["resp_lost_before", "orig_lost_behind"]),
        (&tcp, &all, &["orig_lost_before", "resp_lost_behind"]),
        (&conn, &all, &["capture_missed_bytes"]),
        (&tcp, &all, &["resp_zero_windows"]),
        (&tcp, &all, &["orig_zero_windows"]),
    ];
    check_table(page, "tcp", (1, 7), &server, &sums);
    let nanos = |row: &Row, name: &str| {
        let (whole, part) = row[name].split_once('.')?;
        let whole = whole.parse::<i128>().ok()? * 1_000_000_000;
        Some(whole + part.parse::<i128>().ok()? * 1000)
    };
    for row in table(page, "tcp").0 {
        let of = tcp.iter().filter(|it| server(it) == row[0].text);
        let rows: Vec<_> = of.collect();
        let times: Vec<_> =
            rows.iter().filter_map(|row| nanos(row, "resp_handshake_rtt")).collect();
        let mean = times.iter().sum::<i128>().checked_div(times.len() as i128);
        assert_eq!(row[4].value, mean, "{row:?}");
        assert_eq!(row[5].value, rows.iter().filter_map(|row| nanos(row, "orig_rtt_min")).min());
        assert_eq!(row[6].value, rows.iter().filter_map(|row| nanos(row, "orig_rtt_max")).max());
    }
}

/// The connections that are shown are those with the most bytes, and the others are counted.
fn check_connections(page: &str, logs: &Path, most: usize) {
    let mut conn = log::read(&logs.join("conn.log")).unwrap();
    let bytes = |row: &Row| -> i128 {
        ["orig_ip_bytes", "resp_ip_bytes"]
            .iter()
            .filter_map(|name| row[*name].parse::<i128>().ok())
            .sum()
    };
    conn.sort_by_key(|row| (-bytes(row), row["ts"].clone(), row["uid"].clone()));
    let (body, foot) = table(page, "connections");
    let shown: Vec<_> = body.iter().map(|row| row[10].text.as_str()).collect();
    let expected: Vec<_> = conn.iter().take(most).map(|row| row["uid"].as_str()).collect();
    assert_eq!(shown, expected);
    for (row, cells) in conn.iter().zip(&body) {
        for (at, name) in [(3, "proto"), (4, "service"), (5, "conn_state"), (9, "quality")] {
            assert_eq!(
                cells[at].text,
                row[name].replace('-', "\u{2013}").replace("ftp\u{2013}", "ftp-")
            );
        }
        assert_eq!(cells[7].value, row["orig_ip_bytes"].parse().ok());
        assert_eq!(cells[8].value, row["resp_ip_bytes"].parse().ok());
    }
    if conn.len() > most {
        let rest: i128 = conn.iter().skip(most).map(bytes).sum();
        let foot = &foot[0];
        assert!(foot[0].text.starts_with(&format!("{} other", conn.len() - most)), "{foot:?}");
        assert_eq!(foot[7].value.unwrap() + foot[8].value.unwrap(), rest);
    }
}

/// Bytes of the picture's table are those of the rows of services in `series`.
fn check_series(page: &str, logs: &Path) {
    let series = log::read(&logs.join("series.log")).unwrap();
    let services = series.iter().filter(|row| row["kind"] == "service");
    let bytes =
        services.flat_map(|row| ["orig_ip_bytes", "resp_ip_bytes"].map(|name| row[name].clone()));
    let all: i128 = bytes.filter_map(|bytes| bytes.parse::<i128>().ok()).sum();
    let (body, foot) = table(page, "time");
    let sum = |row: &Vec<Cell>| -> i128 { row[1..].iter().filter_map(|cell| cell.value).sum() };
    assert!(all > 0);
    assert_eq!(body.iter().map(sum).sum::<i128>(), all);
    assert_eq!(sum(&foot[0]), all);
}

#[test]
fn every_number_is_that_of_the_logs() {
    for capture in ["office.pcapng", "protocols.pcapng"] {
        let scratch = Scratch::new("report-sums");
        analysed(capture, scratch.path(), "tsv");
        for (rows, connections) in [("3", 5), ("100", 2000)] {
            let number = connections.to_string();
            let options = ["--rows", rows, "--connections", number.as_str()];
            let (page, code) = page(&[scratch.path()], &options);
            assert_eq!(code, 0);
            check_sums(&page, scratch.path());
            check_hosts(&page, scratch.path());
            check_servers(&page, scratch.path());
            check_connections(&page, scratch.path(), connections);
            check_series(&page, scratch.path());
        }
    }
}

/// What is said of logs in JSON alone.
const ENDLESS: &str = "have no line that closes a log: nobody can tell whether rows are missing";

/// Without the lines that tell where it comes from.
fn comparable(page: &str) -> String {
    let is_name = |line: &&str| {
        !["<title>", "<h1>", "made of", ENDLESS].iter().any(|name| line.contains(name))
    };
    page.lines().filter(is_name).collect::<Vec<_>>().join("\n")
}

#[test]
fn logs_in_json_make_the_same_page() {
    let (columns, objects) = (Scratch::new("report-tsv"), Scratch::new("report-json"));
    analysed("protocols.pcapng", columns.path(), "tsv");
    analysed("protocols.pcapng", objects.path(), "json");
    let [one, other] = [&columns, &objects].map(|scratch| page(&[scratch.path()], &[]));
    assert_eq!((one.1, other.1), (0, 0));
    assert!(!one.0.contains(ENDLESS) && other.0.contains(ENDLESS));
    assert_eq!(comparable(&one.0), comparable(&other.0));
}

#[test]
fn a_capture_makes_the_page_of_its_logs_with_its_books() {
    let capture = Path::new(RECORDED).join("office.pcapng");
    let scratch = Scratch::new("report-capture");
    analysed("office.pcapng", scratch.path(), "tsv");
    let (of_capture, code) = page(&[&capture], &[]);
    let (of_logs, _) = page(&[scratch.path()], &[]);
    assert_eq!(code, 0);
    for id in ["services", "hosts", "tcp", "dns", "connections", "files", "findings", "time"] {
        assert_eq!(table(&of_capture, id), table(&of_logs, id), "{id}");
    }
    let (books, _) = table(&of_capture, "books-of-files");
    assert_eq!((books[0][0].text.as_str(), books[0][1].value), ("read", Some(4090)));
    let lost = books.last().unwrap();
    assert_eq!((lost[1].text.as_str(), lost[1].value), ("\u{2013}", None), "{lost:?}");
    assert!(
        of_capture.contains("does not tell how many packets were lost by the capturing system")
    );
    assert!(of_logs.contains("No books are among the logs"));
    for page in [&of_capture, &of_logs] {
        assert!(page.contains("class=\"verdict unknown\""), "what nobody tells is not good");
    }
}

const EVIL: &str =
    "</td></script><script>alert(1)</script><img src=x onerror=alert(2)>\" onmouseover=\"x\u{202e}";

/// Logs in which everything that somebody may write is hostile.
fn hostile(to: &Path) {
    let log = |name: &str, columns: &[(&str, &str)]| {
        let names: Vec<_> = columns.iter().map(|it| it.0).collect();
        let values: Vec<_> = columns.iter().map(|it| it.1).collect();
        let text = format!(
            "#separator \\x09\n#set_separator\t,\n#empty_field\t(empty)\n#unset_field\t-\n#fields\t{}\n{}\n",
            names.join("\t"),
            values.join("\t")
        );
        fs::write(to.join(name), text).unwrap();
    };
    let all = |names: &[&'static str]| -> Vec<(&'static str, &'static str)> {
        names.iter().map(|name| (*name, EVIL)).collect()
    };
    log(
        "conn.log",
        &all(&[
            "uid",
            "id.orig_h",
            "id.resp_h",
            "proto",
            "service",
            "conn_state",
            "quality",
            "depth",
        ]),
    );
    log("dns.log", &all(&["id.resp_h", "id.resp_p", "query", "rcode_name"]));
    let mut ssl = all(&["version", "server_name", "last_alert", "id.resp_h"]);
    ssl.push(("established", "F"));
    log("ssl.log", &ssl);
    log("x509.log", &all(&["fingerprint", "certificate.subject", "certificate.issuer", "san.dns"]));
    log("files.log", &all(&["filename", "mime_type", "source", "sha256", "uid"]));
    log("notice.log", &all(&["note", "msg", "sub", "src", "dst", "advice", "confidence"]));
    log("weird.log", &all(&["name"]));
    let mut capture = all(&["interface", "verdict"]);
    capture.push(("scope", "interface"));
    log("capture.log", &capture);
    let mut series = all(&["service"]);
    series.extend([
        ("kind", "service"),
        ("ts", "1.0"),
        ("interval", "1.0"),
        ("orig_ip_bytes", "5"),
    ]);
    log("series.log", &series);
    let source = format!(
        "{{\"name\":{0:?},\"damage_count\":1,\"damage\":[{0:?}]}}",
        EVIL.replace('\u{202e}', "")
    );
    let summary = format!("{{\"input\":{{\"sources\":[{source}]}},\"notes\":[{:?}]}}", "<script>");
    fs::write(to.join("summary.json"), summary).unwrap();
}

#[test]
fn text_from_packets_is_text() {
    let scratch = Scratch::new("report-hostile");
    fs::create_dir(scratch.path()).unwrap();
    hostile(scratch.path());
    let (page, _) = page(&[scratch.path()], &["--title", EVIL]);
    assert!(page.matches("alert(1)").count() > 30, "each of them is shown");
    // One script, that of the page, and nothing that a page could be asked for.
    assert_eq!(page.matches("<script").count(), 1);
    assert_eq!(page.matches("<img").count(), 0);
    assert_eq!(page.matches("</script>").count(), 1);
    for (at, _) in page.match_indices("onmouseover=") {
        let before = &page[..at];
        assert!(before.ends_with("&quot; "), "{}", &before[before.len().saturating_sub(40)..]);
    }
    assert!(!page.contains('\u{202e}'), "signs that turn text show as escapes");
    for asked in ["src=\"", "href=\"http", "url(", "@import"] {
        assert!(!page.contains(asked), "{asked}");
    }
}

#[test]
fn a_page_asks_for_nothing_and_runs_its_own_script_alone() {
    let (page, _) = page(&[&Path::new(RECORDED).join("office.pcapng")], &[]);
    let policy = page.split("Content-Security-Policy\" content=\"").nth(1).unwrap();
    let policy = unescaped(policy.split("\">").next().unwrap());
    assert!(policy.starts_with("default-src 'none'; style-src 'sha256-"), "{policy}");
    assert!(policy.contains("script-src 'sha256-") && !policy.contains("unsafe"), "{policy}");
    assert!(!page.contains(" style=\"") && !page.contains(" onclick"), "the policy allows neither");
}

#[test]
fn what_is_wrong_with_logs_is_said() {
    let scratch = Scratch::new("report-damaged");
    analysed("office.pcapng", scratch.path(), "tsv");
    let path = scratch.path().join("conn.log");
    let text = fs::read_to_string(&path).unwrap();
    let cut = text.split_once("#close").unwrap().0;
    fs::write(&path, format!("{}\nC1\tx\n{}", cut.trim_end(), "half a line")).unwrap();
    let (page, code) = page(&[scratch.path()], &[]);
    assert_eq!(code, 3);
    assert!(page.contains("2 lines of conn.log are no rows: sums are too low."));
    assert!(page.contains("conn.log do not end with the line that closes a log"));
    assert!(page.contains("Some of it is incomplete"));
    check_hosts_count(&page, 193);
}

fn check_hosts_count(page: &str, connections: i128) {
    let (body, foot) = table(page, "services");
    let all: i128 = body.iter().chain(&foot).filter_map(|row| row[1].value).sum();
    assert_eq!(all, connections);
}

#[test]
fn what_cannot_be_a_report_is_refused() {
    let scratch = Scratch::new("report-refused");
    fs::create_dir(scratch.path()).unwrap();
    let capture = Path::new(RECORDED).join("office.pcapng");
    let none = PathBuf::from("/nonexistent");
    for inputs in [vec![scratch.path()], vec![scratch.path(), &capture], vec![none.as_path()]] {
        let (page, code) = page(&inputs, &[]);
        assert_eq!((page.as_str(), code), ("", 2), "{inputs:?}");
    }
}

#[test]
fn two_runs_stand_side_by_side() {
    let logs = ["office.pcapng", "protocols.pcapng"].map(|capture| {
        let scratch = Scratch::new(&format!("report-compare-{capture}"));
        analysed(capture, scratch.path(), "tsv");
        scratch
    });
    let paths = [logs[0].path(), logs[1].path()];
    let (page, code) = page(&paths, &["--compare"]);
    assert_eq!(code, 0);
    assert_eq!(page.matches("class=\"verdict ").count(), 2);
    let conn = paths.map(|path| log::read(&path.join("conn.log")).unwrap());
    let (totals, _) = table(&page, "totals");
    assert_eq!(totals[0][1].value, Some(conn[0].len() as i128));
    assert_eq!(totals[0][2].value, Some(conn[1].len() as i128));
    let count = |side: usize, service: &str| {
        conn[side].iter().filter(|row| row["service"] == service).count() as i128
    };
    let (services, _) = table(&page, "services");
    let mut told = 0;
    for row in services.iter().filter(|row| row[1].text == "connections") {
        if row[0].text.starts_with("not recognised") {
            continue;
        }
        for side in [0, 1] {
            let cell = &row[2 + side];
            let number = count(side, &row[0].text);
            assert_eq!(cell.value.unwrap_or(0), number, "{row:?}");
            assert_eq!(cell.text == "none", number == 0, "{row:?}");
        }
        told += 1;
    }
    assert!(told > 5, "{services:?}");
    let (of_one, code) = self::page(&paths[..1], &["--compare"]);
    assert_eq!((of_one.as_str(), code), ("", 2));
}

#[test]
fn what_a_log_does_not_have_is_not_zero() {
    let scratch = Scratch::new("report-zeek");
    fs::create_dir(scratch.path()).unwrap();
    // As Zeek writes it by default, without the columns of this program.
    let text = "#separator \\x09\n#set_separator\t,\n#empty_field\t(empty)\n#unset_field\t-\n#path\tconn\n\
        #fields\tts\tuid\tid.orig_h\tid.orig_p\tid.resp_h\tid.resp_p\tproto\tservice\tconn_state\torig_ip_bytes\tresp_ip_bytes\n\
        1.5\tC1\t192.0.2.1\t1\t192.0.2.2\t80\ttcp\thttp\tSF\t100\t-\n\
        2.5\tC2\t192.0.2.1\t2\t192.0.2.2\t80\ttcp\thttp\tSF\t100\t50\n#close\tx\n";
    fs::write(scratch.path().join("conn.log"), text).unwrap();
    let (page, code) = page(&[scratch.path()], &[]);
    assert_eq!(code, 0);
    let row = &table(&page, "services").0[0];
    let texts: Vec<_> = row.iter().map(|cell| cell.text.as_str()).collect();
    let none = "\u{2013}";
    assert_eq!(texts, ["http", "2", "200 B", "\u{2265} 50 B", none, none, none, none, none]);
    for (what, id) in
        [("lost by the capture", "missing"), ("missing, for whatever cause", "missing")]
    {
        let rows = table(&page, id).0;
        let row = rows.iter().find(|row| row[0].text == what).unwrap();
        assert_eq!((row[1].text.as_str(), row[1].value), (none, None), "{row:?}");
    }
    let server = &table(&page, "tcp").0[0];
    assert!(server[4..].iter().all(|cell| cell.text == none), "{server:?}");
    assert!(page.contains("does not tell the quality of connections"));
    assert!(!page.contains("were not looked at with all protocols"));
    assert!(page.contains("There is no log series"));
}
