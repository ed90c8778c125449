//! Whatever somebody has put into traffic, a page shows it as text and runs nothing of it.

use std::fs;

use netsniff_analysis::record::{Scalar, Shape};
use netsniff_analysis::rows::LOGS;
use netsniff_testing::{Need, folder};

use crate::browser_bed::{Chromium, Folder, Page, Server, netsniff};

/// A capture whose names and texts are hostile, which `make.py` beside it makes.
const NAMES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/hostile/names.pcap");

/// Markup, ends of attributes and of scripts, a template, and a sign that turns text.
const EVIL: &str = "</td></pre></script><script>alert(1)</script><img src=x onerror=alert(2)>\
    <svg onload=alert(3)>\"' onmouseover=alert(4) x={{7*7}}<!--\u{202e}evil";

/// A row for every log, in which each column that holds text holds this.
fn logs(to: &Folder) -> Vec<&'static str> {
    let value = |shape: Shape, scalar: Scalar| match (shape, scalar) {
        (_, Scalar::Bool) => "T",
        (_, Scalar::Count | Scalar::Int | Scalar::Port) => "7",
        (_, Scalar::Double | Scalar::Time | Scalar::Interval) => "1.5",
        (_, Scalar::Addr) => "192.0.2.7",
        (_, Scalar::Enum | Scalar::String) => EVIL,
    };
    let mut written = Vec::new();
    for log in LOGS.iter() {
        let fields: Vec<_> = log.fields.iter().map(|field| (field.name, field.zeek_type)).collect();
        let names: Vec<_> = fields.iter().map(|field| field.0).collect();
        let values: Vec<_> = fields
            .iter()
            .map(|(name, its)| match *name {
                "uid" if log.path != "weird" => "CEvil1",
                _ => value(its.shape, its.scalar),
            })
            .collect();
        let text = format!(
            "#separator \\x09\n#set_separator\t,\n#empty_field\t(empty)\n#unset_field\t-\n#path\t{}\n#fields\t{}\n{}\n#close\t2026-01-01-00-00-00\n",
            log.path,
            names.join("\t"),
            values.join("\t")
        );
        fs::write(to.0.join(format!("{}.log", log.path)), text).unwrap();
        written.push(log.path);
    }
    written
}

/// Fails where anything of the page was made by text of packets.
fn is_text(page: &Page, path: &str) {
    has_only(page, path, &["/static/tables.js", "/static/serve.js"]);
}

/// Fails where the page has another script than these, or elements or signs that are not its own.
fn has_only(page: &Page, path: &str, scripts: &[&str]) {
    let (foreign, own, handlers): (usize, Vec<String>, usize) = page.value(
        "[document.querySelectorAll('main img, main script, main iframe, main object, svg[onload], main link, main base').length, \
         Array.from(document.scripts, (it) => it.getAttribute('src') ?? ''), \
         Array.from(document.querySelectorAll('*')).filter((it) => \
         it.getAttributeNames().some((name) => name.startsWith('on'))).length]",
    );
    assert_eq!((foreign, handlers), (0, 0), "{path}");
    assert_eq!(own, scripts, "{path}");
    let turned: Vec<String> = page.value(
        "[document.documentElement.outerHTML, document.title].flatMap((text) => text.match( \
         /[\\u202a-\\u202e\\u2066-\\u2069\\u200e\\u200f\\u061c\\u2028\\u2029\\u0000-\\u0008\\u001b\\u007f-\\u009f]/g) ?? [])",
    );
    assert!(turned.is_empty(), "{path} has signs that steer or turn text: {turned:?}");
}

#[test]
fn text_of_every_log_is_text() {
    let Some(chromium) = Chromium::start("no hostile text was shown") else { return };
    let folder = Folder::new("hostile");
    let logs = logs(&folder);
    let server = Server::start(&[folder.text()]);
    let page = chromium.page();
    let mut shown = 0;
    let fixed = ["/", "/connections", "/findings", "/health", "/logs", "/connections/CEvil1"];
    let fixed = fixed.into_iter().map(str::to_owned);
    let of_logs = logs.iter().map(|log| format!("/logs/{log}"));
    for path in fixed.chain(of_logs) {
        page.go(&format!("{}{path}", server.url));
        is_text(&page, &path);
        let complaints = page.complaints();
        assert!(complaints.is_empty(), "{path}: {complaints:#?}");
        let text: String = page.value("document.querySelector('main').textContent");
        shown += text.matches("<script>alert(1)</script>").count();
    }
    assert!(shown > 100, "{shown} hostile texts were shown");
    for asked in [EVIL, "x' OR <img src=x onerror=alert(5)>"] {
        page.go(&format!("{}/connections", server.url));
        page.type_into("#where", &asked.replace('\u{202e}', ""));
        page.press("Enter");
        page.await_true("location.search.includes('where')");
        page.settle();
        is_text(&page, asked);
    }
    page.go(&format!("{}/connections", server.url));
    page.shoot("hostile");
    page.is_clean(&server.url);
}

#[test]
fn names_of_hostile_captures_are_text() {
    let Some(captures) = folder(Need::Hostile, "no hostile capture was shown") else { return };
    let Some(chromium) = Chromium::start("no hostile capture was shown") else { return };
    for name in ["m5-names.pcapng", "m5-controls.pcap"] {
        let folder = Folder::new("hostile-capture");
        let capture = captures.join(name);
        netsniff(&[
            "analyze",
            "-q",
            "--notices",
            "--series",
            "1s",
            capture.to_str().unwrap(),
            "-o",
            folder.text(),
        ]);
        let server = Server::start(&[folder.text()]);
        let page = chromium.page();
        let logs = fs::read_dir(&folder.0).unwrap().map(|entry| entry.unwrap().file_name());
        let logs = logs
            .filter_map(|name| name.into_string().ok()?.strip_suffix(".log").map(str::to_owned));
        let mut looked = 0;
        for path in logs.map(|log| format!("/logs/{log}")).chain(["/".to_owned()]) {
            page.go(&format!("{}{path}", server.url));
            is_text(&page, &format!("{name}: {path}"));
            looked += 1;
        }
        assert!(looked > 2, "{name}: {looked} pages");
        page.is_clean(&server.url);
    }
}

/// What has to be seen of the texts of the capture: markup as it is, and other signs as their escapes.
const SEEN: [&str; 6] = [
    "<script>alert(1)</script>",
    "\"' onmouseover=alert(3) x={{7*7}}<!--",
    "\\x1b]0;title\\x07\\x1b[2",
    "\\xc2\\x9b31m\\xc2\\x85",
    "\\xe2\\x80\\xaegpj.exe\\xe2\\x81\\xa6",
    "caf\\xe9",
];

#[test]
fn hostile_names_of_our_own_capture_are_text() {
    let Some(chromium) = Chromium::start("no hostile name was shown") else { return };
    let folder = Folder::new("hostile-names");
    // The name of the file is shown, too.
    let capture = folder.0.join("<img src=x onerror=alert(6)>\u{1b}[31m\u{202e}.pcap");
    fs::copy(NAMES, &capture).unwrap();
    let logs = folder.0.join("logs");
    let server = Server::start(&[capture.to_str().unwrap(), "-o", logs.to_str().unwrap()]);
    let page = chromium.open(&server.url);
    page.await_true("document.body.innerText.includes('read to its end')");
    let mut paths: Vec<_> = ["/", "/connections?rows=500", "/findings", "/health", "/logs"]
        .into_iter()
        .map(str::to_owned)
        .collect();
    let with_text = ["dns", "http", "ssl", "ftp", "smtp", "files"];
    for log in with_text.into_iter().chain(["conn", "weird", "notice"]) {
        paths.push(format!("/logs/{log}"));
    }
    // Of each protocol the connection that has the markup.
    let mut markup = 0;
    for log in ["dns", "http", "ssl", "ftp", "smtp"] {
        let rows = netsniff_testing::log::read(&logs.join(format!("{log}.log"))).unwrap();
        let row = rows.iter().find(|row| row.values().any(|text| text.contains("alert(1)")));
        let uid = &row.unwrap()["uid"];
        markup += 1;
        for part in ["", "/packets", "/sequence"] {
            paths.push(format!("/connections/{uid}{part}"));
        }
    }
    assert_eq!(markup, 5);
    for path in &paths {
        page.go(&format!("{}{path}", server.url));
        if path.starts_with("/connections/C") && path.matches('/').count() == 2 {
            page.await_true("document.querySelector('[data-part] svg') !== null");
        }
        is_text(&page, path);
        let complaints = page.complaints();
        assert!(complaints.is_empty(), "{path}: {complaints:#?}");
        // A word without end does not make the page wide.
        for width in [1280, 420] {
            page.look(width, 900, false);
            let wide: u32 = page.value("document.documentElement.scrollWidth");
            assert!(wide <= width, "{path} is {wide} wide in a window of {width}");
        }
        page.look(1280, 900, false);
        if with_text.iter().any(|log| *path == format!("/logs/{log}")) {
            let text: String = page.value("document.querySelector('main').textContent");
            for seen in SEEN {
                // A file's name has no quotes.
                let seen = if path == "/logs/files" { seen.trim_start_matches('"') } else { seen };
                assert!(text.contains(seen), "{path} does not show {seen}: {text}");
            }
        }
    }
    page.go(&format!("{}/logs/http", server.url));
    page.shoot("hostile-names");
    page.is_clean(&server.url);
}

#[test]
fn hostile_names_in_a_report_are_text() {
    let Some(chromium) = Chromium::start("no report of hostile names was shown") else { return };
    let folder = Folder::new("hostile-report");
    let file = folder.0.join("report.html");
    netsniff(&["report", NAMES, "-o", file.to_str().unwrap()]);
    let url = format!("file://{}", file.display());
    let page = chromium.open(&url);
    has_only(&page, "the report", &[""]);
    let text: String = page.value("document.body.textContent");
    assert!(text.contains("<script>alert(1)</script>"), "{text}");
    page.shoot("hostile-report");
    page.is_clean(&url);
}

#[test]
fn the_hostile_capture_is_what_its_script_makes() {
    if !netsniff_testing::has_program("python3", "no hostile capture was made anew") {
        return;
    }
    let folder = Folder::new("hostile-made");
    let made = folder.0.join("names.pcap");
    let script = std::path::Path::new(NAMES).with_file_name("make.py");
    let done = std::process::Command::new("python3").arg(script).arg(&made).status().unwrap();
    assert!(done.success());
    assert!(fs::read(&made).unwrap() == fs::read(NAMES).unwrap(), "the script makes another file");
}
