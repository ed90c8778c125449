//! Conversations in SMTP that the corpus of captures lacks.

use netsniff_analysis::protocol::Role;

use crate::conversations::{Outcome, Turn};
use crate::support::script::{client, column, gap, mutate, outcome_of, server};

fn smtp(outcome: &Outcome, name: &str) -> Vec<String> {
    column(outcome, "smtp", name)
}

fn weirds(outcome: &Outcome) -> Vec<&str> {
    outcome.oddities.iter().filter_map(|line| line.strip_prefix("SMTP: ")).collect()
}

/// Up to where mails may be sent.
fn greeting() -> Vec<Turn> {
    vec![
        server("220-mail.example\r\n220 ESMTP\r\n"),
        client("EHLO a.example\r\n"),
        server("250 Ok\r\n"),
    ]
}

fn with(mut begin: Vec<Turn>, rest: Vec<Turn>) -> Vec<Turn> {
    begin.extend(rest);
    begin
}

fn mail(subject: &str) -> Vec<Turn> {
    vec![
        client("MAIL FROM:<a@a.example> SIZE=9\r\n"),
        server("250 2.1.0 Ok\r\n"),
        client("RCPT TO:<b@b.example> ORCPT=rfc822;b@b.example\r\nRCPT TO:<c@c.example>\r\n"),
        server("250 2.1.5 Ok\r\n550 5.1.1 No\r\n"),
        client("DATA\r\n"),
        server("354 Go on\r\n"),
        client(&format!("Subject: {subject}\r\nTo: b@b.example\r\n\r\n..dots\r\n.x\r\n.\r\n")),
        server("250-2.0.0\r\n250 2.0.0 Queued\r\n"),
    ]
}

#[test]
fn a_long_greeting_may_come_before_the_client() {
    let notice = "220-No mail that nobody has asked for.\r\n".repeat(99);
    let greeting = |notice: &str| {
        let greeting = server(&format!("{notice}220 ESMTP\r\n"));
        vec![greeting, client("EHLO a.example\r\n"), server("250 Ok\r\n")]
    };
    let outcome = outcome_of(25, &with(greeting(&notice), mail("x")));
    assert_eq!(smtp(&outcome, "subject"), ["x"]);
    // Elsewhere no port says that it is worth waiting, and nobody greets for so long.
    assert_eq!(outcome_of(2525, &with(greeting(&notice), mail("x"))).services, None);
    assert_eq!(outcome_of(25, &with(greeting(&notice.repeat(9)), mail("x"))).services, None);
}

#[test]
fn a_mail_is_a_row() {
    let outcome = outcome_of(25, &with(greeting(), mail("=?utf-8?q?one?=")));
    assert_eq!(smtp(&outcome, "trans_depth"), ["1"]);
    assert_eq!(smtp(&outcome, "helo"), ["a.example"]);
    assert_eq!(smtp(&outcome, "mailfrom"), ["a@a.example"]);
    assert_eq!(smtp(&outcome, "rcptto"), ["b@b.example,c@c.example,"]);
    assert_eq!(smtp(&outcome, "subject"), ["=?utf-8?q?one?="], "as Zeek has it");
    assert_eq!(smtp(&outcome, "last_reply"), ["250 2.0.0 Queued"]);
    assert_eq!(smtp(&outcome, "tls"), ["false"]);
    assert_eq!(smtp(&outcome, "path"), ["192.0.2.2,192.0.2.1,"]);
    assert_eq!(column(&outcome, "files", "seen_bytes"), [".dots\r\nx\r\n".len().to_string()]);
    assert_eq!(outcome.services.as_deref(), Some("smtp"));
    assert_eq!(weirds(&outcome), [""; 0]);
}

#[test]
fn mails_of_one_connection_are_counted() {
    let rset = vec![client("RSET\r\n"), server("250 Ok\r\n")];
    let turns = with(with(with(greeting(), mail("1")), rset), mail("2"));
    let outcome = outcome_of(25, &turns);
    assert_eq!(smtp(&outcome, "trans_depth"), ["1", "2"]);
    assert_eq!(smtp(&outcome, "subject"), ["1", "2"]);
    assert_eq!(smtp(&outcome, "helo"), ["a.example", "a.example"]);
}

#[test]
fn a_client_may_send_the_next_mail_before_the_reply() {
    let one = "MAIL FROM:<a@x>\r\nRCPT TO:<b@x>\r\nDATA\r\n";
    let two = "MAIL FROM:<c@x>\r\nRCPT TO:<d@x>\r\nDATA\r\n";
    let rest = vec![
        client(one),
        server("250 Ok\r\n250 Ok\r\n354 Go\r\n"),
        client(&format!("Subject: 1\r\n\r\n1\r\n.\r\n{two}")),
        server("250 Taken 1\r\n250 Ok\r\n250 Ok\r\n354 Go\r\n"),
        client("Subject: 2\r\n\r\n2\r\n.\r\nQUIT\r\n"),
        server("554 Not taken 2\r\n221 Bye\r\n"),
    ];
    let outcome = outcome_of(25, &with(greeting(), rest));
    assert_eq!(smtp(&outcome, "mailfrom"), ["a@x", "c@x"]);
    assert_eq!(smtp(&outcome, "subject"), ["1", "2"]);
    assert_eq!(smtp(&outcome, "last_reply"), ["250 Taken 1", "554 Not taken 2"]);
    assert_eq!(smtp(&outcome, "trans_depth"), ["1", "2"]);
}

#[test]
fn a_recipient_that_is_refused_leaves_a_row_without_content() {
    let rest = vec![
        client("MAIL FROM:<a@x>\r\nRCPT TO:<b@x>\r\nDATA\r\n"),
        server("250 Ok\r\n454 4.7.1 <b@x>: Relay access denied\r\n503 5.5.1 No\r\n"),
        client("QUIT\r\n"),
        server("221 Bye\r\n"),
    ];
    let outcome = outcome_of(25, &with(greeting(), rest));
    assert_eq!(smtp(&outcome, "last_reply"), ["221 Bye"]);
    assert_eq!(smtp(&outcome, "fuids"), [""]);
    assert_eq!(smtp(&outcome, "parts"), ["1"], "an empty one, since DATA was believed");
}

#[test]
fn chunks_are_put_together_where_lines_go_on() {
    let rest = vec![
        client("MAIL FROM:<a@x>\r\nRCPT TO:<b@x>\r\nBDAT 15\r\nSubject: hel\r\nlo"),
        server("250 Ok\r\n250 Ok\r\n250 15 octets\r\n"),
        client("BDAT 12\r\nSubject: one\r"),
        client("BDAT 10 LAST\r\n\n\r\n.\r\nbody"),
        server("250 12 octets\r\n250-10 octets\r\n250 Queued\r\n"),
    ];
    // The first chunk is one octet short of its last line, on purpose.
    let outcome = outcome_of(25, &with(greeting(), rest));
    assert_eq!(smtp(&outcome, "last_reply").last().unwrap(), "250 Queued");
    assert_eq!(smtp(&outcome, "mailfrom"), ["a@x"]);
    let rest = vec![
        client(
            "MAIL FROM:<a@x>\r\nRCPT TO:<b@x>\r\nBDAT 11\r\nSubject: heBDAT 14 LAST\r\nllo\r\n\r\n.\r\nbod\r",
        ),
        server("250 Ok\r\n250 Ok\r\n250 Ok\r\n250 Queued\r\n"),
        client("QUIT\r\n"),
    ];
    let outcome = outcome_of(25, &with(greeting(), rest));
    assert_eq!(smtp(&outcome, "subject"), ["hello"]);
    assert_eq!(column(&outcome, "files", "seen_bytes"), [".\r\nbod\r".len().to_string()]);
    assert_eq!(smtp(&outcome, "last_reply"), ["250 Queued"]);
}

#[test]
fn chunks_that_are_none_are_odd() {
    let rest = vec![
        client("MAIL FROM:<a@x>\r\nRCPT TO:<b@x>\r\nBDAT x\r\nBDAT 3\r\nabcNOOP\r\n"),
        server("250 Ok\r\n250 Ok\r\n501 No\r\n250 Ok\r\n250 Ok\r\n"),
    ];
    let outcome = outcome_of(25, &with(greeting(), rest));
    assert_eq!(weirds(&outcome), ["smtp_invalid_bdat_command", "smtp_missing_bdat_last_chunk"]);
}

#[test]
fn what_follows_starttls_is_handed_over_once_it_is_accepted() {
    let rest = vec![client("STARTTLS\r\nMAIL FROM:<a@x>\r\n"), server("454 Not now\r\n250 Ok\r\n")];
    let outcome = outcome_of(25, &with(greeting(), rest));
    assert_eq!(smtp(&outcome, "tls"), ["false"]);
    assert_eq!(smtp(&outcome, "mailfrom"), ["a@x"]);
    let rest =
        vec![client("STARTTLS\r\n\x16\x03\x01MAIL FROM:<a@x>\r\n"), server("220-Go\r\n220 on\r\n")];
    let outcome = outcome_of(25, &with(greeting(), rest));
    assert_eq!(smtp(&outcome, "tls"), ["true"]);
    assert_eq!(smtp(&outcome, "mailfrom"), ["-"]);
    assert_eq!(smtp(&outcome, "last_reply"), ["220 on"]);
}

#[test]
fn who_logs_in_is_told_and_no_secret_is() {
    let rest = vec![
        client("AUTH LOGIN\r\n"),
        server("334 VXNlcm5hbWU6\r\n"),
        client("YWxpY2U=\r\n"),
        server("334 UGFzc3dvcmQ6\r\n"),
        client("c2VzYW1l\r\n"),
        server("535 No\r\n"),
        client("AUTH PLAIN AGFsaWNlAHNlc2FtZQ==\r\n"),
        server("235 Welcome\r\n"),
    ];
    let outcome = outcome_of(587, &with(with(greeting(), rest), mail("x")));
    assert_eq!(smtp(&outcome, "auth_mechanism"), ["PLAIN"]);
    assert_eq!(smtp(&outcome, "auth_user"), ["alice"]);
    assert_eq!(smtp(&outcome, "auth_success"), ["true"]);
    let all = outcome.lines.join("\n");
    for secret in ["sesame", "c2VzYW1l", "AGFsaWNlAHNlc2FtZQ"] {
        assert!(!all.contains(secret), "{all}");
    }
}

#[test]
fn a_gap_in_a_mail_ends_it_and_the_next_reply_tells_where_commands_go_on() {
    let begin = vec![
        client("MAIL FROM:<a@x>\r\nRCPT TO:<b@x>\r\nDATA\r\n"),
        server("250 Ok\r\n250 Ok\r\n354 Go\r\n"),
        client("Subject: 1\r\n\r\nhello, wo"),
        gap(Role::Originator, 500),
        client("MAIL FROM:<no@x>\r\n.\r\n"),
        server("250 Queued\r\n"),
    ];
    let outcome = outcome_of(25, &with(with(greeting(), begin), mail("2")));
    assert_eq!(smtp(&outcome, "mailfrom"), ["a@x", "a@a.example"]);
    assert_eq!(smtp(&outcome, "subject"), ["1", "2"]);
    assert_eq!(column(&outcome, "files", "missing_bytes"), ["500", "0"]);
    assert_eq!(column(&outcome, "files", "seen_bytes")[0], "9");
}

#[test]
fn a_gap_within_a_chunk_does_not_end_the_mail() {
    let rest = vec![
        client("MAIL FROM:<a@x>\r\nRCPT TO:<b@x>\r\nBDAT 130 LAST\r\nSubject: 1\r\n\r\n0123456789"),
        gap(Role::Originator, 100),
        client("abcdefQUIT\r\n"),
        server("250 Ok\r\n250 Ok\r\n250 Queued\r\n221 Bye\r\n"),
    ];
    let outcome = outcome_of(25, &with(greeting(), rest));
    assert_eq!(smtp(&outcome, "last_reply"), ["250 Queued"]);
    assert_eq!(column(&outcome, "files", "seen_bytes"), ["16"]);
    assert_eq!(column(&outcome, "files", "missing_bytes"), ["100"]);
}

#[test]
fn one_side_alone_is_enough() {
    let said =
        "EHLO a\r\nMAIL FROM:<a@x>\r\nRCPT TO:<b@x>\r\nDATA\r\nSubject: s\r\n\r\n.\r\nQUIT\r\n";
    let outcome = outcome_of(25, &[client(said)]);
    assert_eq!(smtp(&outcome, "subject"), ["s"]);
    assert_eq!(outcome.services.as_deref(), Some("smtp"));
    let outcome = outcome_of(25, &[client("EHLO a\r\nSTARTTLS\r\n\x16\x03\x01")]);
    assert_eq!(smtp(&outcome, "tls"), ["true"]);
}

#[test]
fn it_is_found_on_other_ports() {
    let turns = with(greeting(), mail("x"));
    let outcome = outcome_of(2525, &turns);
    assert_eq!(smtp(&outcome, "subject"), ["x"]);
    // As in Zeek, which learns of it only then, it begins with the client's first command.
    assert_eq!(smtp(&outcome, "ts"), ["2000000"]);
    assert_eq!(smtp(&outcome_of(25, &turns), "ts"), ["1000000"]);
    let ftp = [server("220 FTP\r\n"), client("USER a\r\n"), server("331 Ok\r\n")];
    for port in [2525, 25] {
        assert_eq!(outcome_of(port, &ftp).lines, [""; 0]);
    }
}

#[test]
fn a_server_that_does_not_reply_in_smtp_contradicts() {
    let turns = [server("220 x\r\n"), client("HELO a\r\nMAIL FROM:<a@x>\r\n"), server("+OK\r\n")];
    let outcome = outcome_of(25, &turns);
    assert_eq!(weirds(&outcome), ["smtp_reply_code_out_of_range"]);
    assert_eq!(outcome.services, None);
    assert_eq!(smtp(&outcome, "mailfrom"), ["a@x"], "what was said is told all the same");
}

#[test]
fn commands_out_of_order_are_odd_and_too_many_end_it() {
    let rest = vec![client(&"RCPT TO:<b@x>\r\n".repeat(30)), client("MAIL FROM:<late@x>\r\n")];
    let outcome = outcome_of(25, &with(greeting(), rest));
    let expected =
        ["smtp_mail_transaction_invalid", "smtp_excessive_invalid_mail_transactions 26 > 25"];
    assert_eq!(weirds(&outcome), expected);
    assert_eq!(smtp(&outcome, "mailfrom"), ["-"]);
}

#[test]
fn lines_may_be_long_and_end_oddly() {
    let long = "x".repeat(40_000);
    let rest = vec![
        client(&format!("MAIL FROM:<a@x>\nRCPT TO:<b@x>\nDATA\nSubject: {long}\n\n{long}\n.\n")),
        server("250 Ok\n250 Ok\n354 Go\n250 Queued\n"),
    ];
    let outcome = outcome_of(25, &with(greeting(), rest));
    assert_eq!(smtp(&outcome, "subject")[0], long);
    assert_eq!(column(&outcome, "files", "seen_bytes"), ["40002"]);
}

#[test]
fn changed_at_random_it_never_fails() {
    let rest = vec![
        client("AUTH CRAM-MD5\r\n"),
        server("334 PDE4OTY=\r\n"),
        client("dGltIGI5\r\n"),
        server("235 Ok\r\n"),
        client("MAIL FROM:<a@x>\r\nRCPT TO:<b@x>\r\nBDAT 40\r\n"),
        client(
            "Content-Type: multipart/mixed; boundary=yBDAT 30 LAST\r\n\r\n\r\n--y\r\n\r\nabc\r\n--y--\r\n.....\r\n",
        ),
        server("250 Ok\r\n250 Ok\r\n250 Ok\r\n250 Ok\r\n"),
        client("STARTTLS\r\n"),
        server("502 No\r\n"),
    ];
    mutate(25, &with(with(greeting(), rest), mail("x")), 500);
}
