//! Passwords that went over the wire in clear text. They are never told.

use netsniff_packet::Timestamp;

use crate::log::Confidence;
use crate::notice::finding::{Finding, FindingType, Found, Note, identifier};
use crate::notice::sighting::Sighting;

static CLEAR_TEXT: Note = Note {
    name: "Netsniff::Clear_Text_Password",
    doc: "Somebody sent a password in clear text: by HTTP, FTP, SMTP, POP3, IMAP or SOCKS. Guests of FTP do \
          not count. For FTP it shows with the first command that `ftp` has.",
    confidence: "High: it was seen in traffic that is not encrypted, whatever the server answered.",
    advice: "Change the password, and let the service take it only by TLS.",
};

pub(super) const TYPE: FindingType = FindingType {
    notes: &[&CLEAR_TEXT],
    reads: &[
        ("http", &["username"]),
        ("ftp", &["user", "password"]),
        ("smtp", &["auth_mechanism", "auth_user", "tls"]),
        ("pop3", &["auth_mechanism", "user", "tls"]),
        ("imap", &["auth_mechanism", "user", "tls"]),
        ("socks", &["password", "user"]),
    ],
    thresholds: &[],
    make: |_| Box::new(ClearText),
};

/// Judges each log-in for itself.
#[derive(Debug)]
struct ClearText;

/// The user who logged in with a password in clear text.
fn user(sighting: &Sighting) -> Option<&[u8]> {
    let is_clear = || {
        let mechanism = sighting.text("auth_mechanism").unwrap_or_default();
        [&b"PLAIN"[..], b"LOGIN", b"USER"].iter().any(|it| mechanism.eq_ignore_ascii_case(it))
            && sighting.flag("tls") != Some(true)
    };
    match sighting.log.path {
        "http" => sighting.text("username"),
        "ftp" => sighting.text("user").filter(|_| sighting.text("password") == Some(b"<hidden>")),
        "socks" => sighting.text("user").filter(|_| sighting.get("password").is_some()),
        "smtp" => sighting.text("auth_user").filter(|_| is_clear()),
        _ => sighting.text("user").filter(|_| is_clear()),
    }
}

impl Finding for ClearText {
    fn sighted(&mut self, _: Timestamp, sighting: &Sighting, out: &mut Vec<Found>) {
        let log = sighting.log.path;
        let sent = |user: &&[u8]| !user.is_empty() && *user != b"<problem-decoding>";
        let Some(user) = user(sighting).filter(sent) else { return };
        let said = format!("somebody sent a password by {log} in clear text");
        let found = Found::new(&CLEAR_TEXT, Confidence::High, sighting, said);
        let hosts = identifier(&[found.row.src, found.row.dst], found.row.p);
        out.push(found.told_by([&hosts, user].concat()));
    }
}
