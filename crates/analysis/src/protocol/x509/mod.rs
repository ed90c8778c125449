//! Certificates, RFC 5280: what the log `x509` tells of them.
//!
//! | module | concern |
//! |---|---|
//! | [`name`] | distinguished names as text |
//! | [`time`] | when a certificate is valid |
//! | [`key`] | the key and the algorithms |
//! | [`extension`] | other names and constraints |
//! | [`ocsp`] | whether it was revoked, by replies of OCSP |
//! | [`hostname`] | whether a certificate is for a host |
//! | [`log`], [`ocsp_log`] | the logs |

mod extension;
mod hostname;
mod key;
mod log;
mod name;
pub(super) mod ocsp;
mod ocsp_log;
mod time;

pub(super) use log::X509;

use core::net::IpAddr;
use core::str;
use std::sync::Arc;

use netsniff_packet::{Address, Timestamp};
use sha1::Sha1;
use sha2::{Digest as _, Sha256};

use super::syntax::der::{self, BIT_STRING, Elements, INTEGER, OBJECT, SEQUENCE, context};
use crate::file::digest::hex;
use crate::record::{Fact, UnsetIfEmpty};
use extension::Extensions;
use key::Key;

/// A certificate that one side of a handshake sent.
#[derive(Clone, Debug)]
pub(super) struct Presented {
    /// The certificate with what was read of it.
    pub(super) certificate: Arc<Certificate>,
    /// When its message was complete.
    pub(super) time: Timestamp,
    /// Whether it is the first one that its side sent: its own.
    pub(super) is_host: bool,
    /// Whether the client sent it.
    pub(super) is_client: bool,
}

/// What a certificate says.
#[derive(Debug)]
pub(super) struct Certificate {
    /// The row of the log, but for what tells of a presentation.
    row: X509,
    common_names: Vec<Box<[u8]>>,
}

impl Certificate {
    /// The certificate in `bytes`; `None` where it is none.
    pub(super) fn of(bytes: &[u8]) -> Option<Self> {
        let whole = Elements::new(bytes).next_if(SEQUENCE)?;
        let mut parts = Elements::new(whole.content);
        let body = parts.content(SEQUENCE)?;
        let signature = Elements::new(parts.content(SEQUENCE)?).content(OBJECT)?;
        parts.content(BIT_STRING)?;

        let mut fields = Elements::new(body);
        let version = fields.content(context(0)).and_then(|it| Elements::new(it).content(INTEGER));
        let version = version.map_or(Some(0), der::unsigned)?;
        let serial = serial(fields.content(INTEGER)?);
        fields.content(SEQUENCE)?;
        let issuer = fields.content(SEQUENCE)?;
        let mut validity = Elements::new(fields.content(SEQUENCE)?);
        let (not_before, not_after) = (validity.next()?, validity.next()?);
        let subject = fields.content(SEQUENCE)?;
        let key = Key::of(fields.content(SEQUENCE)?)?;
        let extensions = fields.find(|field| field.tag == context(3));
        let extensions =
            extensions.map_or_else(Extensions::default, |it| Extensions::of(it.content));
        let names = extensions.other_names;
        let row = X509 {
            ts: Timestamp::EPOCH,
            fingerprint: hex(&Sha256::digest(whole.whole)).into(),
            version: version.saturating_add(1),
            serial,
            subject: name::text(subject)?,
            issuer: name::text(issuer)?,
            not_valid_before: time::time(not_before),
            not_valid_after: time::time(not_after),
            key_alg: key.algorithm,
            sig_alg: key::signature_name(signature).unwrap_or_default(),
            key_type: key.kind,
            key_length: key.length,
            exponent: key.exponent,
            curve: key.curve,
            san_dns: UnsetIfEmpty(names.hosts),
            san_uri: UnsetIfEmpty(names.uris),
            san_email: UnsetIfEmpty(names.mails),
            san_ip: UnsetIfEmpty(names.addresses),
            basic_constraints_ca: extensions.constraints.map(|it| it.is_authority),
            basic_constraints_path_len: extensions.constraints.and_then(|it| it.path_len),
            host_cert: false,
            client_cert: false,
            sha1: hex(&Sha1::digest(whole.whole)).into(),
        };
        Some(Self { row, common_names: name::common_names(subject).map(Box::from).collect() })
    }

    /// Whether it is for a host of this name or address.
    pub(super) fn is_for(&self, host: &[u8]) -> bool {
        let address = str::from_utf8(host).ok().and_then(|text| text.parse::<IpAddr>().ok());
        if let Some(address) = address {
            return self.row.san_ip.0.contains(&Address::from(address));
        }
        let hosts = &self.row.san_dns.0;
        let own = if hosts.is_empty() { &self.common_names } else { hosts };
        own.iter().any(|name| hostname::matches(name, host))
    }

    /// SHA-256 of all of it, in digits.
    pub(super) const fn fingerprint(&self) -> &Arc<str> {
        &self.row.fingerprint
    }

    /// Bytes that it holds outside itself.
    pub(super) fn heap_bytes(&self) -> usize {
        let names = self.common_names.iter();
        self.row.heap_bytes() + names.map(|name| size_of::<Box<[u8]>>() + name.len()).sum::<usize>()
    }
}

impl Fact for Presented {
    /// Those of the certificate, which other presentations may share.
    fn heap_bytes(&self) -> usize {
        size_of::<Certificate>() + self.certificate.heap_bytes()
    }
}

impl Presented {
    /// Roles in which a certificate may be presented.
    pub(super) const ROLES: usize = 4;

    /// Its role: whether it is the host's own, and whether the client's.
    pub(super) const fn role(&self) -> usize {
        (self.is_host as usize) * 2 + self.is_client as usize
    }

    /// The day on which it was presented, counted from 1970-01-01 UTC.
    pub(super) const fn day(&self) -> i64 {
        const NANOS_A_DAY: i64 = 86_400 * 1_000_000_000;
        self.time.nanos().div_euclid(NANOS_A_DAY)
    }

    /// What the log tells it apart by within a day: the certificate and its role, as in Zeek
    /// (`X509::LogCertHash`).
    pub(super) fn index(&self) -> (Arc<str>, usize) {
        (Arc::clone(self.certificate.fingerprint()), self.role())
    }

    /// The row of the log.
    pub(super) fn row(&self) -> X509 {
        let Self { ref certificate, time, is_host, is_client } = *self;
        let row = certificate.row.clone();
        X509 { ts: time, host_cert: is_host, client_cert: is_client, ..row }
    }
}

/// A serial number in digits, as OpenSSL's `i2a_ASN1_INTEGER` writes it.
fn serial(number: &[u8]) -> String {
    let is_negative = number.first().is_some_and(|first| first & 0x80 != 0);
    let mut magnitude = number.to_vec();
    if is_negative {
        let mut carries = true;
        for octet in magnitude.iter_mut().rev() {
            let (value, overflows) = (!*octet).overflowing_add(u8::from(carries));
            (*octet, carries) = (value, overflows);
        }
    }
    let digits = Some(der::magnitude(&magnitude)).filter(|rest| !rest.is_empty()).unwrap_or(&[0]);
    let sign = if is_negative { "-" } else { "" };
    format!("{sign}{}", hex(digits).to_ascii_uppercase())
}

#[cfg(test)]
pub(crate) mod tests;
