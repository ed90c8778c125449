//! Whatever somebody has put into traffic, a page shows it as text and runs nothing of it.

use std::fs;

use netsniff_analysis::record::{Scalar, Shape};
use netsniff_analysis::rows::LOGS;
use netsniff_testing::{Need, folder};

use crate::browser_bed::{Chromium, Folder, Page, Server, netsniff};

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
    let (foreign, scripts, handlers): (usize, Vec<String>, usize) = page.value(
        "[document.querySelectorAll('main img, main script, main iframe, main object, svg[onload], main link, main base').length, \
         Array.from(document.scripts, (it) => it.getAttribute('src')), \
         Array.from(document.querySelectorAll('*')).filter((it) => \
         it.getAttributeNames().some((name) => name.startsWith('on'))).length]",
    );
    assert_eq!((foreign, handlers), (0, 0), "{path}");
    assert!(
        scripts.iter().all(|it| it == "/static/tables.js" || it == "/static/serve.js"),
        "{path}: {scripts:?}"
    );
    let turned: bool = page.value(
        "/[\\u202a-\\u202e\\u2066-\\u2069\\u0000-\\u0008\\u001b\\u0080-\\u009f]/.test(document.body.textContent + document.title)",
    );
    assert!(!turned, "{path} has signs that steer or turn text");
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
