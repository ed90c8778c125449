//! Where indicators are looked for.

use core::net::IpAddr;

use netsniff_packet::Address;

use super::{IndicatorType, bytes_of};
use crate::notice::sighting::{Seen, Sighting};

/// A column in which indicators of a type are looked for.
#[derive(Debug)]
pub(in crate::notice) struct Place {
    /// The log.
    pub(in crate::notice) log: &'static str,
    /// The column.
    pub(in crate::notice) column: &'static str,
    /// Zeek's name of the place.
    pub(super) name: &'static str,
    kind: Kind,
}

/// What a column has.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// Indicators of this type.
    Is(IndicatorType),
    /// The name of a host, or its address.
    Host,
    /// Addresses among texts, as in `X-FORWARDED-FOR -> 192.0.2.1`.
    Forwarded,
    /// What follows the host of a URL, unless it is a whole one.
    Path,
    /// A URL with its scheme.
    WholeUrl,
    /// A mail address, maybe with a name before it and in angle brackets.
    Mail,
}

const fn is(
    log: &'static str,
    column: &'static str,
    name: &'static str,
    kind: IndicatorType,
) -> Place {
    Place { log, column, name, kind: Kind::Is(kind) }
}

const fn of(log: &'static str, column: &'static str, name: &'static str, kind: Kind) -> Place {
    Place { log, column, name, kind }
}

/// THE list.
pub(in crate::notice) const PLACES: &[Place] = &[
    is("conn", "id.orig_h", "Conn::IN_ORIG", IndicatorType::Addr),
    is("conn", "id.resp_h", "Conn::IN_RESP", IndicatorType::Addr),
    is("dns", "query", "DNS::IN_REQUEST", IndicatorType::Domain),
    of("dns", "answers", "DNS::IN_RESPONSE", Kind::Host),
    of("http", "host", "HTTP::IN_HOST_HEADER", Kind::Host),
    of("http", "uri", "HTTP::IN_URL", Kind::Path),
    of("http", "referrer", "HTTP::IN_REFERRER_HEADER", Kind::WholeUrl),
    is("http", "user_agent", "HTTP::IN_USER_AGENT_HEADER", IndicatorType::Software),
    of("http", "proxied", "HTTP::IN_X_FORWARDED_FOR_HEADER", Kind::Forwarded),
    is("http", "username", "HTTP::IN_USER_NAME", IndicatorType::UserName),
    is("ftp", "user", "FTP::IN_USER", IndicatorType::UserName),
    of("ssl", "server_name", "SSL::IN_SERVER_NAME", Kind::Host),
    is("ssl", "ja3", "SSL::IN_JA3", IndicatorType::Ja3),
    is("ssl", "ja3s", "SSL::IN_JA3S", IndicatorType::Ja3),
    is("ssl", "ja4", "SSL::IN_JA4", IndicatorType::Ja4),
    is("ssl", "cert_chain_fps", "X509::IN_CERT", IndicatorType::CertHash),
    of("quic", "server_name", "SSL::IN_SERVER_NAME", Kind::Host),
    is("quic", "ja4", "SSL::IN_JA4", IndicatorType::Ja4),
    is("x509", "sha1", "X509::IN_CERT", IndicatorType::CertHash),
    is("x509", "san.dns", "X509::IN_CERT", IndicatorType::Domain),
    is("x509", "san.email", "X509::IN_CERT", IndicatorType::Email),
    is("files", "md5", "Files::IN_HASH", IndicatorType::FileHash),
    is("files", "sha1", "Files::IN_HASH", IndicatorType::FileHash),
    is("files", "sha256", "Files::IN_HASH", IndicatorType::FileHash),
    is("files", "filename", "Files::IN_NAME", IndicatorType::FileName),
    is("ssh", "host_key_fingerprint", "SSH::IN_SERVER_HOST_KEY", IndicatorType::PubkeyHash),
    of("smtp", "mailfrom", "SMTP::IN_MAIL_FROM", Kind::Mail),
    of("smtp", "rcptto", "SMTP::IN_RCPT_TO", Kind::Mail),
    of("smtp", "from", "SMTP::IN_FROM", Kind::Mail),
    of("smtp", "to", "SMTP::IN_TO", Kind::Mail),
    of("smtp", "cc", "SMTP::IN_CC", Kind::Mail),
    of("smtp", "reply_to", "SMTP::IN_REPLY_TO", Kind::Mail),
    is("smtp", "x_originating_ip", "SMTP::IN_X_ORIGINATING_IP_HEADER", IndicatorType::Addr),
    is("smtp", "path", "SMTP::IN_RECEIVED_HEADER", IndicatorType::Addr),
    is("smtp", "user_agent", "SMTP::IN_HEADER", IndicatorType::Software),
];

impl Place {
    /// The indicator that a value of the column is, with its type.
    pub(super) fn indicator(
        &self,
        sighting: &Sighting,
        seen: &Seen,
    ) -> Option<(IndicatorType, Vec<u8>)> {
        let bytes = bytes_of(seen)?;
        Some(match self.kind {
            Kind::Is(kind) => (kind, bytes),
            Kind::Host => host(bytes),
            Kind::Forwarded => {
                let at = bytes.iter().rposition(|byte| *byte == b' ').map_or(0, |at| at + 1);
                address(&bytes[at..]).map(|found| (IndicatorType::Addr, text_of(found)))?
            }
            Kind::Path => (IndicatorType::Url, url(sighting, bytes)),
            Kind::WholeUrl => (IndicatorType::Url, without_scheme(&bytes).to_vec()),
            Kind::Mail => (IndicatorType::Email, mail(&bytes).to_vec()),
        })
    }
}

/// The address that is written as `text`.
pub(super) fn address(text: &[u8]) -> Option<Address> {
    let text = core::str::from_utf8(text).ok()?;
    text.parse::<IpAddr>().ok().map(Address::from)
}

fn text_of(address: Address) -> Vec<u8> {
    address.to_string().into_bytes()
}

/// An address, or the name of a host without its port.
fn host(bytes: Vec<u8>) -> (IndicatorType, Vec<u8>) {
    if let Some(address) = address(&bytes) {
        return (IndicatorType::Addr, text_of(address));
    }
    let end = bytes.iter().rposition(|byte| *byte == b':').unwrap_or(bytes.len());
    let is_port = bytes[end..].iter().skip(1).all(u8::is_ascii_digit);
    let name = if is_port { &bytes[..end] } else { &bytes[..] };
    match address(name) {
        Some(address) => (IndicatorType::Addr, text_of(address)),
        None => (IndicatorType::Domain, name.to_vec()),
    }
}

/// `host/path`, as Zeek's `HTTP::build_url` makes it.
fn url(sighting: &Sighting, path: Vec<u8>) -> Vec<u8> {
    if !path.starts_with(b"/") {
        return without_scheme(&path).to_vec();
    }
    [sighting.text("host").unwrap_or_default(), &path].concat()
}

fn without_scheme(url: &[u8]) -> &[u8] {
    let at = url.windows(3).position(|part| part == b"://");
    at.and_then(|at| url.get(at + 3..)).unwrap_or(url)
}

/// What stands in the last angle brackets, or everything.
fn mail(text: &[u8]) -> &[u8] {
    let start = text.iter().rposition(|byte| *byte == b'<').map_or(0, |at| at + 1);
    let inside = text.get(start..).unwrap_or_default();
    let end = inside.iter().position(|byte| *byte == b'>').unwrap_or(inside.len());
    inside[..end].trim_ascii()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_lose_their_ports_and_addresses_are_told_from_names() {
        let of = |text: &str| {
            let (kind, bytes) = host(text.as_bytes().to_vec());
            format!("{} {}", kind.name(), String::from_utf8(bytes).unwrap())
        };
        assert_eq!(of("example.com:8080"), "Intel::DOMAIN example.com");
        assert_eq!(of("192.0.2.1:80"), "Intel::ADDR 192.0.2.1");
        assert_eq!(of("2001:db8::1"), "Intel::ADDR 2001:db8::1");
        assert_eq!(of("a:b"), "Intel::DOMAIN a:b");
    }

    #[test]
    fn urls_and_mail_addresses_are_bare() {
        assert_eq!(without_scheme(b"https://example.com/x"), b"example.com/x");
        assert_eq!(without_scheme(b"example.com/x"), b"example.com/x");
        assert_eq!(mail(b"Alice <alice@example.com>"), b"alice@example.com");
        assert_eq!(mail(b"alice@example.com"), b"alice@example.com");
    }
}
