//! The logs of HTTP and files over the recorded office, whose clients and server say what was sent:
//! `fixtures/recorded/record.sh` has the commands of curl and the files that nginx serves.

use std::path::Path;

use crate::zeek::corpus::{Scratch, analyze};
use crate::zeek::log;

const OFFICE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/recorded/office.pcapng");

/// What a desk asks of the web server, with the status, and the lengths of both bodies.
const ASKED: [&str; 12] = [
    "GET / 200 0 74",
    "GET /docs/page1.html 200 0 1888",
    "GET /docs/page2.html 200 0 3769",
    "GET /docs/page2.html 200 0 3769",
    "GET /docs/page3.html 200 0 5689",
    "GET /docs/page4.html 200 0 7609",
    "GET /missing.html 404 0 153",
    "GET /old 301 0 169",
    "GET /slides.bin 206 0 20001",
    "HEAD /report.bin 200 0 0",
    "POST /form 204 21 0",
    "POST /form 204 24000 0",
];

#[test]
fn the_log_has_what_the_desks_asked() {
    let scratch = Scratch::new("office-http");
    analyze(Path::new(OFFICE), scratch.path(), &["--workers", "1"]);
    let rows = log::read(&scratch.path().join("http.log")).unwrap();
    for (desk, before_losses) in [("192.0.2.11", "1795298950"), ("2001:db8:1::12", "1795298950")] {
        let of_desk = rows.iter().filter(|row| row["id.orig_h"] == desk);
        let mut asked: Vec<String> = of_desk
            .filter(|row| row["ts"].as_str() < before_losses)
            .map(|row| {
                let words =
                    ["method", "uri", "status_code", "request_body_len", "response_body_len"];
                words.map(|column| row[column].as_str()).join(" ")
            })
            .collect();
        asked.sort();
        assert_eq!(asked, ASKED, "{desk}");
    }
    let is_own = |row: &&log::Row| row["host"] == "www.example.org" && row["version"] == "1.1";
    assert_eq!(
        rows.iter().filter(is_own).count(),
        rows.len(),
        "a row lacks its request or response"
    );
    let continued = rows.iter().filter(|row| row["info_code"] == "100");
    assert_eq!(continued.count(), 2, "uploads that waited for 100 Continue");
}

#[test]
fn every_body_is_a_file_of_its_length() {
    let scratch = Scratch::new("office-files");
    analyze(Path::new(OFFICE), scratch.path(), &["--workers", "1", "--hashes", "sha256"]);
    let rows = log::read(&scratch.path().join("http.log")).unwrap();
    let files = log::read(&scratch.path().join("files.log")).unwrap();
    let mut bodies = 0;
    for row in &rows {
        for (fuids, length) in
            [("orig_fuids", "request_body_len"), ("resp_fuids", "response_body_len")]
        {
            assert_eq!(row[fuids] == "-", row[length] == "0", "{row:?}");
            let Some(file) = files.iter().find(|file| file["fuid"] == row[fuids]) else { continue };
            bodies += 1;
            // nginx compresses the pages: what counts is what they are without that.
            assert_eq!(file["seen_bytes"], row[length], "{file:?}");
        }
    }
    assert!(bodies >= 25, "{bodies} bodies");
    // Both desks got the same page, so its hash is the same.
    let of = |desk: &str| {
        let row =
            rows.iter().find(|row| row["id.orig_h"] == desk && row["uri"] == "/docs/page4.html")?;
        let file = files.iter().find(|file| file["fuid"] == row["resp_fuids"])?;
        Some(file["sha256"].clone())
    };
    assert!(of("192.0.2.11").is_some_and(|hash| hash.len() == 64));
    assert_eq!(of("192.0.2.11"), of("2001:db8:1::12"));
}
