//! The logs: one file each, and the list of all.

pub mod capture;
pub mod conn;
pub mod dhcp;
pub mod dhcpv6;
pub mod dns;
pub mod files;
pub mod ftp;
pub mod gaps;
pub mod http;
pub mod imap;
pub mod irc;
pub mod ntp;
pub mod ocsp;
pub mod pe;
pub mod pop3;
pub mod quic;
pub mod rtt;
pub mod smtp;
pub mod socks;
pub mod ssh;
pub mod ssl;
pub mod tcp;
pub mod tunnel;
pub mod websocket;
pub mod weird;
pub mod x509;

pub use capture::Capture;
pub use conn::Conn;
pub use dhcp::Dhcp;
pub use dhcpv6::Dhcpv6;
pub use dns::Dns;
pub use files::Files;
pub use ftp::Ftp;
pub use gaps::Gaps;
pub use http::Http;
pub use imap::Imap;
pub use irc::Irc;
pub use ntp::Ntp;
pub use ocsp::Ocsp;
pub use pe::Pe;
pub use pop3::Pop3;
pub use quic::Quic;
pub use rtt::Rtt;
pub use smtp::Smtp;
pub use socks::Socks;
pub use ssh::Ssh;
pub use ssl::Ssl;
pub use tcp::Tcp;
pub use tunnel::Tunnel;
pub use websocket::WebSocket;
pub use weird::Weird;
pub use x509::X509;

use crate::record::{LogType, Record};

/// Every log, in the order in which the schema and the documentation list them.
pub const LOGS: &[&LogType] = &[
    Conn::LOG,
    Tcp::LOG,
    Rtt::LOG,
    Gaps::LOG,
    Capture::LOG,
    Dns::LOG,
    Ntp::LOG,
    Dhcp::LOG,
    Dhcpv6::LOG,
    Http::LOG,
    WebSocket::LOG,
    Socks::LOG,
    Smtp::LOG,
    Pop3::LOG,
    Imap::LOG,
    Ssl::LOG,
    X509::LOG,
    Ocsp::LOG,
    Quic::LOG,
    Ftp::LOG,
    Irc::LOG,
    Ssh::LOG,
    Files::LOG,
    Pe::LOG,
    Weird::LOG,
    Tunnel::LOG,
];

/// Where the log of `R` stands in [`LOGS`].
///
/// # Panics
///
/// When the list lacks it; evaluated in a `const`, that is an error of the compiler.
#[must_use]
pub const fn index_of<R: Record>() -> usize {
    let mut index = 0;
    while index < LOGS.len() {
        if same(LOGS[index].path, R::LOG.path) {
            return index;
        }
        index += 1;
    }
    panic!("this record's log is not in the list LOGS in crates/analysis/src/log/mod.rs");
}

const fn same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    if a.len() != b.len() {
        return false;
    }
    let mut index = 0;
    while index < a.len() {
        if a[index] != b[index] {
            return false;
        }
        index += 1;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Scalar;

    #[test]
    fn names_are_unique_and_described() {
        for (index, log) in LOGS.iter().enumerate() {
            assert!(!LOGS[..index].iter().any(|other| other.path == log.path), "{}", log.path);
            assert!(log.doc.ends_with('.'), "{} lacks a sentence", log.path);
            for (at, field) in log.fields.iter().enumerate() {
                let twice = log.fields[..at].iter().any(|other| other.name == field.name);
                assert!(!twice, "{}.{} is there twice", log.path, field.name);
                assert!(field.doc.ends_with('.'), "{}.{} lacks a sentence", log.path, field.name);
            }
        }
    }

    #[test]
    fn addresses_are_of_the_class_address() {
        for log in LOGS {
            for field in log.fields.iter().filter(|f| f.zeek_type.scalar == Scalar::Addr) {
                let class = field.privacy.name();
                assert_eq!(class, "address", "{}.{}", log.path, field.name);
            }
        }
    }

    #[test]
    fn the_list_tells_where_a_log_stands() {
        assert_eq!(LOGS[const { index_of::<Conn<'static>>() }].path, "conn");
        assert_eq!(LOGS[const { index_of::<Weird<'static>>() }].path, "weird");
        assert_eq!(LOGS[const { index_of::<Tunnel>() }].path, "tunnel");
        assert_eq!(LOGS[const { index_of::<Tcp>() }].path, "tcp");
        assert_eq!(LOGS[const { index_of::<Rtt>() }].path, "rtt");
    }
}
