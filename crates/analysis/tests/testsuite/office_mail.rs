//! Mail in the recorded office: what Postfix, Dovecot, swaks and curl did by `record.sh`.

use std::collections::BTreeMap;
use std::path::Path;

use crate::support::{Row, Rows, analyse_file};

fn office() -> Rows {
    let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/recorded");
    analyse_file(&recorded.join("office.pcapng"))
}

/// How often each combination of values of some columns is there.
fn counted<'a>(rows: &[&'a Row], names: &[&str]) -> BTreeMap<Vec<&'a str>, usize> {
    let mut counted = BTreeMap::new();
    for row in rows {
        let values = names.iter().map(|name| row[*name].as_str()).collect();
        *counted.entry(values).or_default() += 1;
    }
    counted
}

/// `minutes.txt`, which the clients send.
fn minutes() -> String {
    (1..=250).map(|line| format!("Line {line} of the minutes of the meeting.\n")).collect()
}

#[test]
fn mails_are_sent() {
    let rows = office();
    let smtp = rows.log("smtp");
    let told = counted(&smtp, &["mailfrom", "rcptto", "subject", "part_names", "tls"]);
    let (alice, bob) = ("alice@example.org", "bob@example.org");
    let elsewhere = "someone@elsewhere.example";
    let expected = BTreeMap::from([
        (vec!["-", "-", "-", "-", "T"], 2),
        (vec![alice, elsewhere, "-", "-", "F"], 2),
        (vec![alice, bob, "Attached", "minutes.txt", "F"], 2),
        (vec![alice, bob, "Minutes", "(empty)", "F"], 2),
    ]);
    assert_eq!(told, expected);
    let denied = smtp.iter().filter(|row| row["rcptto"] == elsewhere);
    assert!(denied.clone().all(|row| row["last_reply"] == "221 2.0.0 Bye"));
    let queued = smtp.iter().filter(|row| row["rcptto"] == bob);
    assert!(queued.clone().all(|row| row["last_reply"].starts_with("221 ")
        || row["last_reply"].starts_with("250 2.0.0 Ok: queued as ")));
}

#[test]
fn what_is_attached_is_what_was_sent() {
    let rows = office();
    let files: Vec<_> =
        rows.log("files").into_iter().filter(|row| row["source"] == "SMTP").collect();
    let attached = files.iter().filter(|row| row["filename"] == "minutes.txt");
    let sizes: Vec<_> = attached.map(|row| row["seen_bytes"].clone()).collect();
    assert_eq!(sizes, [minutes().len().to_string(), minutes().len().to_string()]);
    // As a body it has the line ends of mail, and swaks ends it with two more.
    let size = (minutes() + "\n\n").replace('\n', "\r\n").len().to_string();
    let bodies = files.iter().filter(|row| row["filename"] == "-" && row["seen_bytes"].len() > 3);
    assert_eq!(bodies.filter(|row| row["seen_bytes"] == size).count(), 2);
}

#[test]
fn mailboxes_are_read() {
    let rows = office();
    let imap = rows.log("imap");
    let told = counted(&imap, &["mailbox", "user", "auth_success", "tls", "fetches", "exists"]);
    let expected = BTreeMap::from([
        (vec!["-", "-", "-", "T", "0", "-"], 1),
        (vec!["-", "alice", "T", "F", "0", "-"], 2),
        (vec!["INBOX", "alice", "T", "F", "1", "3"], 2),
    ]);
    assert_eq!(told, expected);
    let fetched = counted(&imap, &["fetched_bytes"]);
    assert_eq!(fetched[&vec!["649"]], 1, "the second letter, as its size says");
    let secret = "plenty-of-paper";
    assert!(imap.iter().all(|row| row.values().all(|value| !value.contains(secret))));
}
