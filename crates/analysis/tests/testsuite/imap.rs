//! Conversations in IMAP that the corpus of captures lacks.

use netsniff_analysis::protocol::Role;

use crate::conversations::{Outcome, Turn};
use crate::support::script::{client, column, gap, mutate, outcome_of, server};

fn imap(outcome: &Outcome, name: &str) -> Vec<String> {
    column(outcome, "imap", name)
}

fn logged_in() -> Vec<Turn> {
    vec![
        server("* OK [CAPABILITY IMAP4rev1] ready\r\n"),
        client("a1 LOGIN {5}\r\n"),
        server("+ go on\r\n"),
        client("alice {6+}\r\nsesame\r\n"),
        server("a1 OK welcome\r\n"),
    ]
}

fn selected() -> Vec<Turn> {
    let mut turns = logged_in();
    turns.push(client("a2 SELECT inbox\r\n"));
    turns.push(server("* FLAGS (\\Seen)\r\n* 3 EXISTS\r\na2 OK [READ-WRITE] done\r\n"));
    turns
}

fn with(mut begin: Vec<Turn>, rest: Vec<Turn>) -> Vec<Turn> {
    begin.extend(rest);
    begin
}

const MAIL: &str = "Subject: a\r\n\r\nhello\r\n";

#[test]
fn a_connection_and_each_of_its_mailboxes_are_rows() {
    let len = MAIL.len();
    let rest = vec![
        client("a3 UID FETCH 1:2 (FLAGS BODY.PEEK[])\r\n"),
        server(&format!(
            "* 1 FETCH (UID 7 BODY[] {{{len}}}\r\n{MAIL} FLAGS ())\r\n* 2 FETCH (RFC822.TEXT {{3}}\r\na\r\n)\r\na3 OK done\r\n"
        )),
        client("a4 STORE 1 +FLAGS (\\Deleted)\r\na5 EXPUNGE\r\na6 SEARCH ALL\r\n"),
        server("a4 OK\r\n* 1 EXPUNGE\r\na5 OK\r\n* SEARCH 1 2\r\na6 OK\r\n"),
        client(&format!("a7 APPEND \"Sent Items\" (\\Seen) {{{len}}}\r\n")),
        server("+ go on\r\n"),
        client(&format!("{MAIL}\r\n")),
        server("a7 OK\r\n"),
        client("a8 EXAMINE other\r\na9 COPY 1 x\r\nb1 CLOSE\r\nb2 LOGOUT\r\n"),
        server("a8 OK\r\na9 NO\r\nb1 OK\r\n* BYE\r\nb2 OK\r\n"),
    ];
    let outcome = outcome_of(143, &with(selected(), rest));
    assert_eq!(imap(&outcome, "mailbox"), ["-", "INBOX", "Sent Items", "other"]);
    assert_eq!(imap(&outcome, "user"), ["alice"; 4]);
    assert_eq!(imap(&outcome, "auth_mechanism"), ["LOGIN"; 4]);
    assert_eq!(imap(&outcome, "auth_success"), ["true"; 4]);
    assert_eq!(imap(&outcome, "read_only"), ["-", "false", "-", "true"]);
    assert_eq!(imap(&outcome, "exists"), ["-", "2", "-", "-"]);
    assert_eq!(imap(&outcome, "commands"), ["2", "6", "0", "2"]);
    assert_eq!(imap(&outcome, "errors"), ["0", "0", "0", "1"]);
    assert_eq!(imap(&outcome, "fetches"), ["0", "1", "0", "0"]);
    assert_eq!(imap(&outcome, "stores"), ["0", "1", "0", "0"]);
    assert_eq!(imap(&outcome, "searches"), ["0", "1", "0", "0"]);
    assert_eq!(imap(&outcome, "appends"), ["0", "0", "1", "0"]);
    assert_eq!(imap(&outcome, "expunged"), ["0", "1", "0", "0"]);
    assert_eq!(imap(&outcome, "fetched_bytes")[1], (len + 3).to_string());
    assert_eq!(column(&outcome, "files", "seen_bytes"), ["7", "7"]);
    assert_eq!(column(&outcome, "files", "is_orig"), ["false", "true"]);
    assert_eq!(outcome.services.as_deref(), Some("imap"));
    assert!(!outcome.lines.join("\n").contains("sesame"));
}

#[test]
fn attempts_to_log_in_are_counted() {
    let turns = [
        server("* OK\r\n"),
        client("1 AUTHENTICATE PLAIN\r\n"),
        server("+ \r\n"),
        client("AGJvYgBzZXNhbWU=\r\n"),
        server("1 NO no\r\n"),
        client("2 LOGIN \"al ice\" sesame\r\n"),
        server("2 NO no\r\n"),
    ];
    let outcome = outcome_of(143, &turns);
    assert_eq!(imap(&outcome, "auth_failures"), ["2"]);
    assert_eq!(imap(&outcome, "user"), ["al ice"]);
    assert_eq!(imap(&outcome, "auth_success"), ["false"]);
    assert!(!outcome.lines.join("\n").contains("sesame"));
}

#[test]
fn what_follows_starttls_is_handed_over() {
    let begin = || vec![server("* OK\r\n")];
    let rest = vec![client("1 STARTTLS\r\n\x16\x03"), server("1 OK go\r\n")];
    let outcome = outcome_of(143, &with(begin(), rest));
    assert_eq!(imap(&outcome, "tls"), ["true"]);
    let rest = vec![client("1 STARTTLS\r\n2 NOOP\r\n"), server("1 BAD no\r\n2 OK\r\n")];
    let outcome = outcome_of(143, &with(begin(), rest));
    assert_eq!(imap(&outcome, "tls"), ["false"]);
    assert_eq!(imap(&outcome, "commands"), ["1"]);
}

#[test]
fn a_literal_that_is_refused_is_none() {
    let rest = vec![
        client("a3 APPEND INBOX {9000}\r\n"),
        server("a3 NO too large\r\n"),
        client("a4 NOOP\r\n"),
        server("a4 OK\r\n"),
    ];
    let outcome = outcome_of(143, &with(selected(), rest));
    assert_eq!(imap(&outcome, "errors"), ["0", "1"]);
    assert_eq!(imap(&outcome, "commands"), ["1", "2"]);
}

#[test]
fn idling_and_compressing_are_understood() {
    let rest = vec![
        client("a3 IDLE\r\n"),
        server("+ idling\r\n* 4 EXISTS\r\n"),
        client("DONE\r\n"),
        server("a3 OK\r\n"),
        client("a4 COMPRESS DEFLATE\r\n"),
        server("a4 OK\r\n\x01\x02\x03\r\n"),
    ];
    let outcome = outcome_of(143, &with(selected(), rest));
    assert_eq!(imap(&outcome, "exists"), ["-", "4"]);
    assert_eq!(outcome.oddities, [""; 0]);
    assert_eq!(outcome.services.as_deref(), Some("imap"));
}

#[test]
fn a_gap_in_a_mail_leaves_the_rest() {
    let rest = vec![
        client("a3 FETCH 1 BODY[]\r\n"),
        server("* 1 FETCH (BODY[] {40}\r\nSubject: a\r\n\r\nabc"),
        gap(Role::Responder, 20),
        server("def)\r\na3 OK\r\n"),
    ];
    let outcome = outcome_of(143, &with(selected(), rest));
    assert_eq!(column(&outcome, "files", "seen_bytes"), ["6"]);
    assert_eq!(column(&outcome, "files", "missing_bytes"), ["20"]);
    assert_eq!(imap(&outcome, "fetches"), ["0", "1"]);
}

#[test]
fn it_is_found_on_other_ports_and_let_go_where_it_is_not() {
    let turns = [server("* OK\r\n"), client("1 NOOP\r\n"), server("1 OK\r\n")];
    assert_eq!(outcome_of(1143, &turns).services.as_deref(), Some("imap"));
    let turns = [server("* OK\r\n"), client("GET / HTTP/1.1\r\n"), server("1 OK\r\n")];
    assert_eq!(outcome_of(1143, &turns).services, None);
    let turns = [server("* OK\r\n"), client("1 NOOP\r\n"), server("$4\r\nabcd\r\n")];
    let outcome = outcome_of(143, &turns);
    assert_eq!(outcome.services, None);
    assert_eq!(outcome.oddities, ["IMAP: imap_server_response_unknown"]);
}

#[test]
fn changed_at_random_it_never_fails() {
    let rest = vec![
        client("a3 FETCH 1 (BODY[] BODY[1] {3}\r\nabc)\r\n"),
        server(
            "* 1 FETCH (BODY[] {24}\r\nSubject: a\r\n\r\nabc\r\ndef BODY[1] ~{3+}\r\n123)\r\na3 OK\r\n",
        ),
        client("a4 APPEND {5+}\r\nDraft {12+}\r\n\r\nmail\r\nmail\r\n"),
        server("a4 OK\r\n"),
        client("a5 STARTTLS\r\na6 NOOP\r\n"),
        server("a5 NO\r\na6 OK\r\n"),
    ];
    mutate(143, &with(selected(), rest), 500);
}
