//! The pages of `netsniff serve`: each loads, numbers are those of the logs, conditions, order and paging work.

use std::collections::{BTreeSet, VecDeque};

use netsniff_testing::log::{self, Row};

use crate::browser_bed::{Chromium, Folder, Page, Server, recorded};

/// Serves a capture whose logs are kept, once it is read.
fn serve(chromium: &Chromium, folder: &Folder) -> (Server, Page) {
    let capture = recorded("office.pcapng");
    let server = Server::start(&[capture.to_str().unwrap(), "-o", folder.text()]);
    let page = chromium.open(&server.url);
    page.await_true("document.body.innerText.includes('read to its end')");
    (server, page)
}

fn column(page: &Page, name: &str) -> Vec<String> {
    page.value(&format!(
        "(() => {{ const table = document.querySelector('main table'); \
         const at = Array.from(table.tHead.rows[0].cells).findIndex((it) => it.textContent.trim() === '{name}'); \
         return Array.from(table.tBodies[0].rows, (row) => row.cells[at].textContent.trim()); }})()"
    ))
}

#[test]
fn every_page_loads_without_a_complaint_and_asks_nobody_else() {
    let Some(chromium) = Chromium::start("no page was loaded") else { return };
    let folder = Folder::new("pages");
    let (server, page) = serve(&chromium, &folder);
    let mut open = VecDeque::from(["/".to_owned()]);
    let (mut seen, mut downloads) = (BTreeSet::new(), BTreeSet::new());
    // Of pages of one kind, such as those of connections, some will do.
    let kind = |path: &str| {
        let bare = path.split('?').next().unwrap();
        bare.split('/')
            .map(|part| if part.starts_with('C') { "C" } else { part })
            .collect::<Vec<_>>()
            .join("/")
    };
    let mut kinds: Vec<String> = Vec::new();
    while let Some(path) = open.pop_front() {
        if kinds.iter().filter(|it| **it == kind(&path)).count() >= 2 || !seen.insert(path.clone())
        {
            continue;
        }
        kinds.push(kind(&path));
        page.go(&format!("{}{path}", server.url));
        let title: String = page.value("document.title");
        assert!(title.contains("office.pcapng"), "{path}: {title}");
        page.is_clean(&server.url);
        let links: Vec<(String, bool)> = page.value(
            "Array.from(document.querySelectorAll('a[href]'), (it) => [it.getAttribute('href'), it.hasAttribute('download')])",
        );
        for (link, is_download) in links {
            if is_download {
                downloads.insert(link);
            } else if link.starts_with('/') {
                open.push_back(link);
            } else {
                assert!(link.starts_with('#'), "{path} leads to {link}");
            }
        }
    }
    for kind in [
        "/",
        "/connections",
        "/connections/C",
        "/connections/C/packets",
        "/findings",
        "/health",
        "/logs",
        "/logs/dns",
    ] {
        assert!(kinds.iter().any(|it| it == kind), "no {kind} among {kinds:?}");
    }
    assert!(downloads.contains("/report.html") && downloads.len() > 1, "{downloads:?}");
    for path in downloads.iter().take(4) {
        let (status, length): (u16, usize) = page.value(&format!(
            "await fetch('{path}').then(async (it) => [it.status, (await it.blob()).size])"
        ));
        assert!(status == 200 && length > 200, "{path}: {status}, {length} bytes");
    }
    page.is_clean(&server.url);
    for (path, name) in [
        ("/", "overview"),
        ("/connections", "connections"),
        ("/findings", "findings"),
        ("/health", "health"),
        ("/logs", "logs"),
        ("/logs/dns", "dns"),
    ] {
        page.go(&format!("{}{path}", server.url));
        page.shoot(name);
    }
    let one = seen.iter().find(|path| kind(path) == "/connections/C").unwrap();
    page.go(&format!("{}{one}", server.url));
    page.shoot("connection");
    page.go(&format!("{}{one}/packets", server.url));
    page.shoot("packets");
    page.go(&format!("{}/connections?where=id.resp_p+%3D+%27", server.url));
    page.shoot("wrong-condition");
}

#[test]
fn tiles_and_tables_show_the_numbers_of_the_logs() {
    let Some(chromium) = Chromium::start("no number was compared") else { return };
    let folder = Folder::new("numbers");
    let (server, page) = serve(&chromium, &folder);
    page.go(&format!("{}/?span=all", server.url));
    let series = log::read(&folder.0.join("series.log")).unwrap();
    let sum = |name: &str| -> u64 {
        let all = series.iter().filter(|row| row["kind"] == "total");
        all.map(|row| row[name].parse::<u64>().unwrap()).sum()
    };
    let tile = |name: &str| -> Option<String> {
        page.value(&format!(
            "(Array.from(document.querySelectorAll('.tiles div')).find((it) => \
             it.querySelector('dt').textContent === '{name}')?.querySelector('dd').dataset.value) ?? null"
        ))
    };
    for (name, value) in [
        ("packets", sum("packets")),
        ("bytes of frames", sum("bytes")),
        ("new connections", sum("new_flows")),
    ] {
        assert_eq!(tile(name), Some(value.to_string()), "{name}");
    }
    page.is_clean(&server.url);
}

#[test]
fn conditions_order_and_paging_show_the_rows_of_the_log() {
    let Some(chromium) = Chromium::start("no row was looked for") else { return };
    let folder = Folder::new("rows");
    let (server, page) = serve(&chromium, &folder);
    let conn = log::read(&folder.0.join("conn.log")).unwrap();
    let ts = |row: &Row| row["ts"].parse::<f64>().unwrap();
    let time = |uid: &String| ts(conn.iter().find(|row| row["uid"] == *uid).unwrap());

    // All pages, the latest rows first.
    page.go(&format!("{}/connections", server.url));
    let mut uids = Vec::new();
    loop {
        uids.extend(column(&page, "uid"));
        let has_more: bool = page.value("document.querySelector('a[rel=next]') !== null");
        if !has_more {
            break;
        }
        let before: String = page.value("location.href");
        page.click("a[rel=next]");
        page.await_true(&format!("location.href !== '{before}'"));
        page.settle();
    }
    assert!(uids.len() > 100);
    assert!(uids.windows(2).all(|pair| time(&pair[0]) >= time(&pair[1])));
    let all: BTreeSet<_> = conn.iter().map(|row| row["uid"].clone()).collect();
    assert_eq!((uids.len(), uids.into_iter().collect::<BTreeSet<_>>()), (conn.len(), all));

    // A condition that is typed.
    page.go(&format!("{}/connections", server.url));
    page.type_into("#where", "service = 'dns' AND id.orig_p < 40000");
    page.press("Enter");
    page.await_true("location.search.includes('dns')");
    page.settle();
    let is_dns =
        |row: &&Row| row["service"] == "dns" && row["id.orig_p"].parse::<u32>().unwrap() < 40_000;
    let dns: BTreeSet<_> = conn.iter().filter(is_dns).map(|row| row["uid"].clone()).collect();
    assert!(dns.len() > 3 && dns.len() <= 50, "{}", dns.len());
    assert_eq!(column(&page, "uid").into_iter().collect::<BTreeSet<_>>(), dns);
    let said: String = page.value("document.querySelector('[role=status]').textContent");
    assert!(
        said.contains(&format!(
            "of {} rows that meet the condition, of {} rows",
            dns.len(),
            conn.len()
        )),
        "{said}"
    );

    // Another order, by the head of a column, which keeps the condition.
    page.click("thead th a[href*='orig_ip_bytes']");
    page.await_true("location.search.includes('sort=')");
    page.settle();
    let sent = |uid: &String| -> Option<u64> {
        conn.iter().find(|row| row["uid"] == *uid).unwrap()["orig_ip_bytes"].parse().ok()
    };
    let order = column(&page, "uid");
    assert_eq!(order.iter().cloned().collect::<BTreeSet<_>>(), dns);
    assert!(order.windows(2).all(|pair| sent(&pair[0]) >= sent(&pair[1])));

    // One that is no condition is told where it goes wrong, and kept.
    page.go(&format!("{}/connections", server.url));
    page.type_into("#where", "service == <b>");
    page.press("Enter");
    page.await_true("document.querySelector('[role=alert]') !== null");
    let kept: String = page.value("document.querySelector('#where').value");
    assert_eq!(kept, "service == <b>");
    page.is_clean(&server.url);

    // A connection leads to its rows.
    page.go(&format!("{}/connections", server.url));
    let uid = column(&page, "uid")[0].clone();
    page.click(&format!("a[href='/connections/{uid}']"));
    page.await_true(&format!("location.pathname === '/connections/{uid}'"));
    page.settle();
    let text: String = page.value("document.querySelector('main').innerText");
    let row = conn.iter().find(|row| row["uid"] == uid).unwrap();
    for name in ["id.orig_h", "id.resp_h", "conn_state", "history"] {
        assert!(text.contains(&row[name]), "{name}: {}", row[name]);
    }
    page.is_clean(&server.url);

    // A host of it leads to its connections, and these are there as a file.
    let host = &row["id.resp_h"];
    page.value::<()>(&format!(
        "(Array.from(document.querySelectorAll('dd a')).find((it) => it.textContent === '{host}').id = 'host', null)"
    ));
    page.click("#host");
    page.await_true("location.pathname === '/connections' && location.search.includes('where')");
    page.settle();
    let is_its = |row: &&Row| row["id.orig_h"] == *host || row["id.resp_h"] == *host;
    let its: BTreeSet<_> = conn.iter().filter(is_its).map(|row| row["uid"].clone()).collect();
    let shown: BTreeSet<_> = column(&page, "uid").into_iter().collect();
    assert!(!shown.is_empty() && shown.is_subset(&its));
    let file: String = page.value(
        "await fetch(document.querySelector('a[download][href*=\"rows.json\"]').href).then((it) => it.text())",
    );
    let uid = |line: &str| {
        let row: serde_json::Value = serde_json::from_str(line).unwrap();
        row["uid"].as_str().unwrap().to_owned()
    };
    assert_eq!(file.lines().map(uid).collect::<BTreeSet<_>>(), its);
    page.is_clean(&server.url);
}
