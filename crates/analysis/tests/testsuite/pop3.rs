//! Conversations in POP3 that the corpus of captures lacks.

use crate::conversations;
use netsniff_analysis::protocol::Role;

use crate::conversations::{Outcome, Turn};
use crate::support::script::{client, column, gap, mutate, outcome_of, server};

fn pop3(outcome: &Outcome, name: &str) -> Vec<String> {
    column(outcome, "pop3", name)
}

fn logged_in() -> Vec<Turn> {
    vec![
        server("+OK ready\r\n"),
        client("USER alice\r\n"),
        server("+OK\r\n"),
        client("PASS sesame\r\n"),
        server("+OK 2 mails\r\n"),
        client("STAT\r\n"),
        server("+OK 2 320\r\n"),
    ]
}

fn with(mut begin: Vec<Turn>, rest: Vec<Turn>) -> Vec<Turn> {
    begin.extend(rest);
    begin
}

#[test]
fn a_session_is_a_row() {
    let mail = "Subject: a\r\nContent-Type: multipart/mixed; boundary=x\r\n\r\n--x\r\n\r\none\r\n--x\r\n\r\n..two\r\n--x--\r\n";
    let rest = vec![
        client("LIST\r\nRETR 1\r\nRETR 9\r\n"),
        server(&format!("+OK\r\n1 160\r\n2 160\r\n.\r\n+OK\r\n{mail}.\r\n-ERR no such mail\r\n")),
        client("DELE 1\r\nQUIT\r\n"),
        server("+OK\r\n+OK bye\r\n"),
    ];
    let outcome = outcome_of(110, &with(logged_in(), rest));
    for (name, expected) in [
        ("greeting", "ready"),
        ("user", "alice"),
        ("auth_mechanism", "USER"),
        ("auth_success", "true"),
        ("auth_failures", "0"),
        ("mailbox_messages", "2"),
        ("mailbox_bytes", "320"),
        ("retrieved", "1"),
        ("deleted", "1"),
        ("errors", "1"),
        ("quit", "true"),
        ("tls", "false"),
    ] {
        assert_eq!(pop3(&outcome, name), [expected], "{name}");
    }
    assert_eq!(pop3(&outcome, "retrieved_bytes"), [(mail.len() - 1).to_string()]);
    assert_eq!(column(&outcome, "files", "seen_bytes"), ["3", "4"]);
    assert_eq!(column(&outcome, "files", "source"), ["POP3", "POP3"]);
    assert_eq!(outcome.services.as_deref(), Some("pop3"));
    assert!(!outcome.lines.join("\n").contains("sesame"));
}

#[test]
fn attempts_to_log_in_are_counted() {
    let turns = [
        server("+OK\r\n"),
        client("USER alice\r\nPASS one\r\n"),
        server("+OK\r\n-ERR no\r\n"),
        client("AUTH\r\n"),
        server("-ERR 1 argument required\r\n"),
        client("AUTH PLAIN\r\n"),
        server("+ \r\n"),
        client("AGJvYgBzZXNhbWU=\r\n"),
        server("-ERR no\r\n"),
        client("APOP carol c4c9334bac560ecc979e58001b3e22fb\r\n"),
        server("+OK\r\n"),
    ];
    let outcome = outcome_of(1100, &turns);
    assert_eq!(pop3(&outcome, "auth_failures"), ["2"]);
    assert_eq!(pop3(&outcome, "user"), ["carol"]);
    assert_eq!(pop3(&outcome, "auth_mechanism"), ["APOP"]);
    assert_eq!(pop3(&outcome, "auth_success"), ["true"]);
    let all = outcome.lines.join("\n");
    assert!(!all.contains("c4c9334b") && !all.contains("AGJvYgB"), "{all}");
}

#[test]
fn what_follows_stls_is_handed_over() {
    let begin = || vec![server("+OK\r\n"), client("CAPA\r\n"), server("+OK\r\nSTLS\r\n.\r\n")];
    let rest = vec![client("STLS\r\n\x16\x03\x01"), server("+OK go\r\n")];
    assert_eq!(pop3(&outcome_of(110, &with(begin(), rest)), "tls"), ["true"]);
    let rest = vec![client("STLS\r\nUSER a\r\n"), server("-ERR no\r\n+OK\r\n")];
    let outcome = outcome_of(110, &with(begin(), rest));
    assert_eq!(pop3(&outcome, "tls"), ["false"]);
    assert_eq!(pop3(&outcome, "user"), ["a"]);
}

#[test]
fn a_gap_in_a_mail_leaves_the_rest() {
    let rest = vec![
        client("RETR 1\r\n"),
        server("+OK\r\nSubject: a\r\n\r\nabc"),
        gap(Role::Responder, 70),
        server("def\r\n.\r\n"),
        client("DELE 1\r\n"),
        server("+OK\r\n"),
    ];
    let outcome = outcome_of(110, &with(logged_in(), rest));
    assert_eq!(column(&outcome, "files", "missing_bytes"), ["70"]);
    assert_eq!(column(&outcome, "files", "seen_bytes"), ["8"]);
    assert_eq!(pop3(&outcome, "deleted"), ["1"]);
}

/// What a Redis server hears and says, on the port of POP3.
fn redis(commands: usize) -> Vec<Turn> {
    let mut turns = vec![client("AUTH sesame\r\n"), server("+OK\r\n")];
    for number in 0..commands {
        turns.push(client(&format!("*3\r\n$3\r\nSET\r\n$3\r\nkey\r\n$4\r\n{number:04}\r\n")));
        turns.push(server("+OK\r\n"));
        turns.push(client("*2\r\n$3\r\nGET\r\n$3\r\nkey\r\n"));
        turns.push(server(&format!("$4\r\n{number:04}\r\n")));
    }
    turns
}

#[test]
fn redis_on_its_port_is_let_go() {
    let outcome = outcome_of(110, &redis(20));
    assert_eq!(outcome.services, None);
    assert_eq!(outcome.lines, [""; 0]);
    assert_eq!(outcome.oddities, ["POP3: pop3_client_speaks_first"]);
}

#[test]
fn redis_behind_a_greeting_is_let_go_as_well() {
    // `play` bounds what may be held.
    let mut turns = redis(2_000);
    turns.insert(0, server("+OK\r\n"));
    let flow = conversations::Flow::at(110);
    let outcome = conversations::play(&turns, flow, conversations::Cuts::None);
    assert_eq!(outcome.services, None);
    let expected = ["POP3: pop3_client_command_unknown", "POP3: pop3_client_too_many_bad_commands"];
    assert_eq!(outcome.oddities, expected);
    assert_eq!(outcome.lines, [""; 0]);
}

#[test]
fn changed_at_random_it_never_fails() {
    let rest = vec![
        client("TOP 1 0\r\nAUTH\r\n"),
        server("+OK\r\nSubject: a\r\n\r\n.\r\n+OK\r\nPLAIN\r\n.\r\n"),
        client("RETR 1\r\n"),
        server("+OK\r\nContent-Transfer-Encoding: base64\r\n\r\nYWJj\r\nZA\r\n.\r\n"),
        client("STLS\r\nQUIT\r\n"),
        server("-ERR\r\n+OK\r\n"),
    ];
    mutate(110, &with(logged_in(), rest), 500);
}
