//! Captures whose rows differ by which protocol is in them.
//!
//! `service`: netsniff names protocols that Zeek does not know, or names only later in a conversation.
//!
//! `rtsp`: Zeek takes RTSP for HTTP 0.9, whose request line has no version.

use std::collections::BTreeSet;

use super::super::compare::{Columns, Difference};
use super::{Ends, Group};

/// Protocols of which Zeek has no analyser in the runs compared with, or one that confirms them later.
const FURTHER: [&str; 7] = ["dhcpv6", "imap", "mysql", "pop3", "quic", "rdp", "telnet"];

/// The column of `conn` that names protocols.
const SERVICE: &str = "service";

/// Whether a row of `conn` differs only by protocols that netsniff names besides those that Zeek does.
pub(super) fn is_further(difference: &Difference) -> bool {
    let Difference::Cells(cells) = difference else { return false };
    let [(SERVICE, theirs, ours)] = cells.as_slice() else { return false };
    let names = |cell: &str| -> BTreeSet<String> {
        cell.split(',').filter(|name| *name != "-").map(str::to_owned).collect()
    };
    let (theirs, ours) = (names(theirs), names(ours));
    theirs.is_subset(&ours) && ours.difference(&theirs).all(|name| FURTHER.contains(&name.as_str()))
}

/// Connections in which RTSP is spoken.
#[derive(Clone, Debug, Default)]
pub(super) struct Rtsp(Group);

impl Rtsp {
    /// Takes a segment, which mostly begins with a message where RTSP is spoken.
    pub(super) fn segment(&mut self, ends: &Ends, payload: &[u8]) {
        let line = payload.split(|&byte| byte == b'\r').next().unwrap_or_default();
        if line.ends_with(b" RTSP/1.0") {
            self.0.ends.insert(ends.clone());
        }
    }

    /// Whether a row is of such a connection, and of what only Zeek reads in it.
    pub(super) fn is_http(&self, columns: Columns, key: &str, difference: &Difference) -> bool {
        let is_theirs = match difference {
            Difference::Missing => true,
            Difference::Extra => false,
            Difference::Cells(cells) => {
                matches!(cells.as_slice(), [(SERVICE, theirs, ours)] if theirs == "http" && ours == "-")
            }
        };
        is_theirs && self.0.has(columns, key)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::compare::CONN;
    use super::*;

    fn services(theirs: &str, ours: &str) -> Difference {
        Difference::Cells(vec![(SERVICE, theirs.to_owned(), ours.to_owned())])
    }

    #[test]
    fn only_what_zeek_lacks_is_further() {
        for (theirs, ours, expected) in [
            ("-", "dhcpv6", true),
            ("ssl", "rdp,ssl", true),
            ("-", "ssl", false),
            ("ssl", "rdp", false),
            ("ssl", "-", false),
        ] {
            assert_eq!(is_further(&services(theirs, ours)), expected, "{theirs} {ours}");
        }
        assert!(!is_further(&Difference::Extra) && !is_further(&Difference::Missing));
    }

    #[test]
    fn only_what_zeek_takes_for_http_is_left_out_of_rtsp() {
        let ends = |port: u16| ["a 554".to_owned(), format!("b {port}")];
        let mut rtsp = Rtsp::default();
        rtsp.segment(&ends(1), b"OPTIONS rtsp://a/ RTSP/1.0\r\nCSeq: 2\r\n\r\n");
        rtsp.segment(&ends(2), b"OPTIONS / HTTP/1.0\r\n\r\n");
        let key = |port: u16| format!("1.0 b {port} a 554 tcp");
        assert!(rtsp.is_http(CONN, &key(1), &services("http", "-")));
        assert!(rtsp.is_http(CONN, &key(1), &Difference::Missing));
        assert!(!rtsp.is_http(CONN, &key(1), &services("-", "http")));
        assert!(!rtsp.is_http(CONN, &key(1), &Difference::Extra));
        assert!(!rtsp.is_http(CONN, &key(2), &services("http", "-")));
    }
}
