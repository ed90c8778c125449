//! TLS: versions, failures in words, and certificates by the end of their validity.

use super::{About, Extent, Gather, endpoint, ranked};
use crate::logs::Row;
use crate::page::table::{Cell, Column, Table};
use crate::page::{Part, Section};
use crate::report::top::{Tally, Top};

/// Handshakes and certificates.
pub(super) struct Tls {
    rows: usize,
    versions: Top<String, Handshakes>,
    /// What went wrong, and with whom.
    failures: Top<(String, String), Handshakes>,
    certificates: Top<Identity, Certificate>,
    /// Rows that tell nothing by which a certificate is known.
    nameless: u64,
}

/// Handshakes, those that were completed, and those with keys of an earlier connection.
#[derive(Debug, Default)]
struct Handshakes {
    all: u64,
    established: u64,
    resumed: u64,
}

/// What a certificate is known by.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Identity {
    Fingerprint(String),
    /// Issuer and serial number, which are of one certificate (RFC 5280, 4.1.2.2).
    Serial(String, String),
    /// The row's own name, in logs of Zeek before its version 5.
    File(String),
    /// Nothing: each row counts for itself.
    Row(u64),
}

/// A certificate; those that end soonest come first.
#[derive(Debug, Default)]
struct Certificate {
    rows: u64,
    until: Option<i64>,
    /// The last time that it was seen.
    seen: Option<i64>,
    subject: String,
    issuer: String,
    names: String,
    key: String,
}

/// Nanoseconds of a day.
const DAY: i64 = 86_400_000_000_000;
/// Letters of a list of names that are kept.
const NAMES: usize = 200;

impl Tally for Handshakes {
    fn merge(&mut self, other: Self) {
        self.all += other.all;
        self.established += other.established;
        self.resumed += other.resumed;
    }

    fn rank(&self) -> u128 {
        self.all.into()
    }
}

impl Tally for Certificate {
    fn merge(&mut self, other: Self) {
        self.rows += other.rows;
    }

    fn rank(&self) -> u128 {
        // A certificate without an end comes last.
        self.until.map_or(0, |until| (i128::from(i64::MAX) - i128::from(until) + 1) as u128)
    }
}

impl Tls {
    pub(super) fn new(extent: Extent) -> Self {
        Self {
            rows: extent.rows,
            versions: Top::default(),
            failures: Top::default(),
            certificates: Top::default(),
            nameless: 0,
        }
    }

    fn handshake(&mut self, row: &Row<'_>) {
        let version = row.text("version").unwrap_or_else(|| "no version was chosen".into());
        let is_established = row.flag("established").unwrap_or(false);
        let count = |of: &mut Handshakes| {
            of.all += 1;
            of.established += u64::from(is_established);
            of.resumed += u64::from(row.flag("resumed").unwrap_or(false));
        };
        count(self.versions.of(version.into_owned()));
        let server = row.text("server_name").filter(|name| !name.is_empty());
        let server = server.map(std::borrow::Cow::into_owned);
        let server = server.or_else(|| endpoint(row, "id.resp_h", "id.resp_p"));
        let server = server.unwrap_or_else(|| "not told".to_owned());
        let alert = row.text("last_alert");
        if row.flag("established") == Some(false) {
            count(self.failures.of((failure(alert.as_deref()), server.clone())));
        }
        if row.flag("sni_matches_cert") == Some(false) {
            let said = "the certificate is not for the name that the client asked for";
            count(self.failures.of((said.to_owned(), server)));
        }
    }

    fn identity(&mut self, row: &Row<'_>) -> Identity {
        let text = |name: &str| row.text(name).filter(|it| !it.is_empty()).map(Into::into);
        if let Some(fingerprint) = text("fingerprint") {
            return Identity::Fingerprint(fingerprint);
        }
        if let Some((issuer, serial)) = text("certificate.issuer").zip(text("certificate.serial")) {
            return Identity::Serial(issuer, serial);
        }
        text("id").map_or_else(
            || {
                self.nameless += 1;
                Identity::Row(self.nameless)
            },
            Identity::File,
        )
    }

    fn certificate(&mut self, row: &Row<'_>) {
        let text = |name: &str| row.text(name).unwrap_or_default().into_owned();
        let identity = self.identity(row);
        let of = self.certificates.of(identity);
        of.rows += 1;
        of.seen = of.seen.max(row.nanos("ts"));
        if of.rows > 1 {
            return;
        }
        of.until = row.nanos("certificate.not_valid_after");
        of.subject = text("certificate.subject");
        of.issuer = text("certificate.issuer");
        let mut names = row.list("san.dns").unwrap_or_default().join(", ");
        if let Some((at, _)) = names.char_indices().nth(NAMES) {
            names.truncate(at);
            names.push('\u{2026}');
        }
        of.names = names;
        let key = [text("certificate.key_type"), text("certificate.key_length")];
        of.key = key.join(" ").trim().to_owned();
    }
}

impl Gather for Tls {
    fn logs(&self) -> &'static [&'static str] {
        &["ssl", "x509"]
    }

    fn row(&mut self, log: &str, row: &Row<'_>) {
        match log {
            "ssl" => self.handshake(row),
            _ => self.certificate(row),
        }
    }

    fn section(self: Box<Self>, _: &About<'_>) -> Option<Section> {
        let versions = self.versions.ranked(self.rows);
        let failures = self.failures.ranked(self.rows);
        let certificates = self.certificates.ranked(self.rows);
        let mut parts = Vec::new();
        if !versions.shown.is_empty() {
            parts.push(ranked(versions_table(), &versions, ("version", "versions"), |name, of| {
                vec![
                    Cell::text(name.map_or("", String::as_str)),
                    Cell::count(of.all),
                    Cell::count(of.established),
                    Cell::count(of.all - of.established).alarming("warn"),
                    Cell::count(of.resumed),
                ]
            }));
        }
        if !failures.shown.is_empty() {
            parts.push(ranked(failures_table(), &failures, ("failure", "failures"), |key, of| {
                let (why, server) = key.map_or(("", ""), |(why, server)| (why, server));
                vec![Cell::text(why), Cell::text(server), Cell::count(of.all)]
            }));
        }
        if !certificates.shown.is_empty() {
            let names = ("certificate", "certificates");
            parts.push(ranked(certificates_table(), &certificates, names, certificate_cells));
        }
        if parts.is_empty() {
            return None;
        }
        Some(Section {
            id: "tls",
            title: "TLS and certificates".to_owned(),
            lead: Vec::new(),
            parts: parts.into_iter().map(Part::Table).collect(),
        })
    }
}

fn versions_table() -> Table {
    Table {
        id: "tls-versions".to_owned(),
        caption: "Handshakes by version".to_owned(),
        columns: vec![
            Column::text("version", "that the server chose"),
            Column::number("handshakes", "rows of ssl"),
            Column::number("completed", "established is T"),
            Column::number("not completed", "established is F, or not set"),
            Column::number("resumed", "with keys of an earlier connection"),
        ],
        ..Table::default()
    }
}

fn failures_table() -> Table {
    Table {
        id: "tls-failures".to_owned(),
        caption: "What went wrong in handshakes".to_owned(),
        columns: vec![
            Column::text("what", "by the last alert that was not encrypted"),
            Column::text("server", "the name that the client asked for, or else its address"),
            Column::number("handshakes", "rows of ssl"),
        ],
        ..Table::default()
    }
}

fn certificates_table() -> Table {
    Table {
        id: "certificates".to_owned(),
        caption: "Certificates, those that end soonest first".to_owned(),
        columns: vec![
            Column::text("subject", "whose it is"),
            Column::text("names", "hosts that it is for"),
            Column::text("issuer", "who signed it"),
            Column::text("valid until", "UTC"),
            Column::number("days left", "whole days, when it was last seen in the traffic"),
            Column::text("key", ""),
            Column::number("seen", "rows of x509"),
            Column::text("fingerprint", "SHA-256, its begin"),
        ],
        ..Table::default()
    }
}

fn certificate_cells(key: Option<&Identity>, of: &Certificate) -> Vec<Cell> {
    let Some(identity) = key else {
        let mut cells = vec![Cell::default(); 8];
        cells[6] = Cell::count(of.rows);
        return cells;
    };
    let left = of.until.zip(of.seen).and_then(|(until, seen)| until.checked_sub(seen));
    let days = left.map(|left| left.div_euclid(DAY));
    let look = days.and_then(|days| match days {
        ..0 => Some("bad"),
        0..30 => Some("warn"),
        _ => None,
    });
    let days = days.map_or_else(
        || Cell::unset("its end is not told"),
        |days| Cell {
            text: if days < 0 {
                format!("ended {} ago", netsniff_console::number::exact((-days).into()))
            } else {
                netsniff_console::number::exact(days.into())
            },
            value: Some(days.to_string()),
            ..Cell::default()
        },
    );
    let fingerprint = match identity {
        Identity::Fingerprint(whole) => {
            let begin: String = whole.chars().take(16).collect();
            Cell { title: Some(whole.clone()), ..Cell::text(begin) }
        }
        _ => Cell::unset("not set in the logs"),
    };
    vec![
        Cell::text(&of.subject),
        Cell::text(&of.names),
        Cell::text(&of.issuer),
        Cell::time(of.until),
        days.looking(look),
        Cell::text(&of.key),
        Cell::count(of.rows),
        fingerprint,
    ]
}

/// Why a handshake was not completed, by its last alert (RFC 8446, 6).
fn failure(alert: Option<&str>) -> String {
    let Some(alert) = alert else {
        return "it was given up without an alert that could be read".to_owned();
    };
    let meaning = match alert {
        "close_notify" => "a side closed before the handshake was done",
        "unexpected_message" => "a message came that had no place there",
        "handshake_failure" => "the sides found nothing that both speak",
        "bad_certificate" => "a certificate was corrupt, or its signature wrong",
        "unsupported_certificate" => "a certificate was of a kind that is not supported",
        "certificate_revoked" => "a certificate had been revoked",
        "certificate_expired" => "a certificate had expired, or was not valid yet",
        "certificate_unknown" => "a certificate was not accepted",
        "illegal_parameter" => "a value of the handshake was not allowed",
        "unknown_ca" => "the authority that signed the certificate is not trusted",
        "access_denied" => "the certificate is valid, but has no access",
        "decode_error" => "a message could not be read",
        "decrypt_error" => "a signature or key was wrong",
        "protocol_version" => "the sides have no version in common",
        "insufficient_security" => "the client offers too little security",
        "internal_error" => "a side failed by itself",
        "inappropriate_fallback" => "the client fell back to an old version without need",
        "user_canceled" => "a user ended it",
        "missing_extension" => "a needed extension was not there",
        "unrecognized_name" => "the server does not know the name",
        "certificate_required" => "the client sent no certificate, and the server wants one",
        "no_application_protocol" => "the sides have no application protocol in common",
        _ => return alert.to_owned(),
    };
    format!("{meaning} ({alert})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificates_that_end_soonest_come_first() {
        let of = |until| Certificate { until, ..Certificate::default() }.rank();
        assert!(of(Some(i64::MIN)) > of(Some(0)));
        assert!(of(Some(0)) > of(Some(1)));
        assert!(of(Some(i64::MAX)) > of(None));
    }
}
