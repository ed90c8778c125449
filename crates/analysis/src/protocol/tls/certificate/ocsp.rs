//! Replies of OCSP, RFC 6960 section 4.2: what the log `ocsp` tells of them.

use netsniff_packet::Timestamp;

use super::der::{Elements, INTEGER, OBJECT, OCTET_STRING, SEQUENCE, context, dotted};
use super::{serial, time};
use crate::log::Ocsp;
use crate::protocol::tls::fingerprint::hex;
use crate::record::Seconds;
use crate::uid::Uid;

/// `ENUMERATED`, ITU-T X.690 section 8.4.
const ENUMERATED: u8 = 0x0a;
/// `GeneralizedTime`.
const GENERALIZED_TIME: u8 = 0x18;
/// `id-pkix-ocsp-basic`.
const BASIC: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 0x30, 1, 1];

/// Statuses of one reply that are told. A server answers for the certificates that it was asked for,
/// of which clients have one.
const MAX_STATUSES: usize = 100;

/// Octets of the longest reply that is read.
pub(crate) const MAX_REPLY: usize = 64 << 10;

/// What a reply says.
#[derive(Debug, Default)]
pub(crate) struct Reply {
    /// Statuses of certificates.
    pub(crate) statuses: Vec<Status>,
    /// Whether there were more than are told.
    pub(crate) has_more: bool,
}

/// The status of a certificate.
#[derive(Debug)]
pub(crate) struct Status {
    algorithm: String,
    name_hash: String,
    key_hash: String,
    serial: String,
    status: &'static str,
    revoked: Option<Seconds>,
    reason: Option<&'static str>,
    this_update: Option<Seconds>,
    next_update: Option<Seconds>,
}

/// A status with where it was found.
#[derive(Debug)]
pub struct Told {
    /// Time of the reply's first bytes.
    pub(crate) ts: Timestamp,
    /// The reply as a file.
    pub(crate) fuid: Uid,
    /// It.
    pub(crate) status: Status,
}

impl Reply {
    /// The reply in `bytes`; `None` where it is none. One that tells an error has no statuses.
    pub(crate) fn of(bytes: &[u8]) -> Option<Self> {
        let mut response = Elements::new(Elements::new(bytes).content(SEQUENCE)?);
        response.content(ENUMERATED)?;
        let Some(content) = response.content(context(0)) else { return Some(Self::default()) };
        let mut content = Elements::new(Elements::new(content).content(SEQUENCE)?);
        if content.content(OBJECT)? != BASIC {
            return Some(Self::default());
        }
        let basic = Elements::new(content.content(OCTET_STRING)?).content(SEQUENCE)?;
        let mut data = Elements::new(Elements::new(basic).content(SEQUENCE)?);
        data.content(context(0));
        // Who answers, by name or key.
        data.next()?;
        data.content(GENERALIZED_TIME)?;
        let mut reply = Self::default();
        for single in Elements::new(data.content(SEQUENCE)?) {
            if reply.statuses.len() >= MAX_STATUSES {
                reply.has_more = true;
                break;
            }
            reply.statuses.push(Status::of(single.content)?);
        }
        Some(reply)
    }
}

impl Status {
    fn of(single: &[u8]) -> Option<Self> {
        let mut fields = Elements::new(single);
        let mut certificate = Elements::new(fields.content(SEQUENCE)?);
        let algorithm = Elements::new(certificate.content(SEQUENCE)?).content(OBJECT)?;
        let name_hash = digits(certificate.content(OCTET_STRING)?);
        let key_hash = digits(certificate.content(OCTET_STRING)?);
        let serial = serial(certificate.content(INTEGER)?);
        let status = fields.next()?;
        let (status, revoked, reason) = match status.tag {
            0x80 => ("good", None, None),
            0xa1 => {
                let mut revocation = Elements::new(status.content);
                let revoked = revocation.next_if(GENERALIZED_TIME).and_then(time::time);
                let reason = revocation.content(context(0));
                let reason = reason.and_then(|it| Elements::new(it).content(ENUMERATED));
                ("revoked", revoked, reason.map(reason_name))
            }
            _ => ("unknown", None, None),
        };
        let this_update = fields.next_if(GENERALIZED_TIME).and_then(time::time);
        let next_update = fields.content(context(0));
        let next_update = next_update.and_then(|it| Elements::new(it).next_if(GENERALIZED_TIME));
        Some(Self {
            algorithm: algorithm_name(algorithm),
            name_hash,
            key_hash,
            serial,
            status,
            revoked,
            reason,
            this_update,
            next_update: next_update.and_then(time::time),
        })
    }
}

impl Told {
    /// Hands the row of the log to `take`.
    pub fn report<T>(&self, take: impl FnOnce(&Ocsp<'_>) -> T) -> T {
        let it = &self.status;
        take(&Ocsp {
            ts: self.ts,
            id: self.fuid,
            hash_algorithm: &it.algorithm,
            issuer_name_hash: &it.name_hash,
            issuer_key_hash: &it.key_hash,
            serial_number: &it.serial,
            cert_status: it.status,
            revoketime: it.revoked,
            revokereason: it.reason,
            this_update: it.this_update,
            next_update: it.next_update,
        })
    }
}

fn digits(hash: &[u8]) -> String {
    hex(hash).to_ascii_uppercase()
}

/// A hash as OpenSSL calls it, or its dotted identifier.
fn algorithm_name(object: &[u8]) -> String {
    let name = match object {
        [0x2b, 0x0e, 3, 2, 0x1a] => "sha1",
        [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 2, 5] => "md5",
        [0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2, number @ 1..=4] => {
            ["sha256", "sha384", "sha512", "sha224"][usize::from(*number) - 1]
        }
        _ => return dotted(object).unwrap_or_default(),
    };
    name.to_owned()
}

/// A reason as OpenSSL's `OCSP_crl_reason_str` has it, RFC 5280 section 5.3.1.
fn reason_name(reason: &[u8]) -> &'static str {
    match reason {
        [0] => "unspecified",
        [1] => "keyCompromise",
        [2] => "cACompromise",
        [3] => "affiliationChanged",
        [4] => "superseded",
        [5] => "cessationOfOperation",
        [6] => "certificateHold",
        [8] => "removeFromCRL",
        [9] => "privilegeWithdrawn",
        [10] => "aACompromise",
        _ => "(UNKNOWN)",
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::super::der::tests::element;
    use super::*;

    const SHA1: &[u8] = &[0x2b, 0x0e, 3, 2, 0x1a];

    fn time(text: &str) -> Vec<u8> {
        element(GENERALIZED_TIME, text.as_bytes())
    }

    fn single(algorithm: &[u8], serial: &[u8], status: &[u8], next: Option<&str>) -> Vec<u8> {
        let algorithm = element(SEQUENCE, &[element(OBJECT, algorithm), vec![5, 0]].concat());
        let hashes = [element(OCTET_STRING, &[0xab; 20]), element(OCTET_STRING, &[0xcd; 20])];
        let id = [algorithm, hashes.concat(), element(INTEGER, serial)].concat();
        let next = next.map_or_else(Vec::new, |next| element(context(0), &time(next)));
        let this = time("19700101000010Z");
        element(SEQUENCE, &[element(SEQUENCE, &id), status.to_vec(), this, next].concat())
    }

    fn reply_of(singles: &[Vec<u8>]) -> Vec<u8> {
        let answers = element(SEQUENCE, &singles.concat());
        let who = element(context(2), &element(OCTET_STRING, &[7; 20]));
        let data = element(SEQUENCE, &[who, time("19700101000000Z"), answers].concat());
        let basic = element(SEQUENCE, &[data, element(SEQUENCE, &[]), vec![3, 1, 0]].concat());
        let bytes = [element(OBJECT, BASIC), element(OCTET_STRING, &basic)].concat();
        let bytes = element(context(0), &element(SEQUENCE, &bytes));
        element(SEQUENCE, &[element(ENUMERATED, &[0]), bytes].concat())
    }

    /// A reply that tells that a certificate is good.
    pub(crate) fn reply() -> Vec<u8> {
        reply_of(&[single(SHA1, &[0x12, 0x34], &[0x80, 0], Some("19700101000020Z"))])
    }

    fn told(bytes: &[u8]) -> Vec<Status> {
        Reply::of(bytes).unwrap().statuses
    }

    #[test]
    fn statuses_are_read() {
        let reason = element(context(0), &element(ENUMERATED, &[1]));
        let revoked = element(0xa1, &[time("19700101000005Z"), reason].concat());
        let plain = element(0xa1, &time("19700101000005Z"));
        let sha256 = &[0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2, 1];
        let told = told(&reply_of(&[
            single(SHA1, &[0x12, 0x34], &[0x80, 0], Some("19700101000020Z")),
            single(sha256, &[0], &revoked, None),
            single(&[0x2a, 3], &[0xff], &plain, None),
            single(SHA1, &[1], &[0x82, 0], None),
        ]));
        let seconds = |it: Option<Seconds>| it.map(|it| it.0);
        let row = |it: &Status| {
            let times = [it.revoked, it.this_update, it.next_update].map(seconds);
            (it.algorithm.clone(), it.serial.clone(), it.status, it.reason, times)
        };
        let expected = [
            ("sha1", "1234", "good", None, [None, Some(10), Some(20)]),
            ("sha256", "00", "revoked", Some("keyCompromise"), [Some(5), Some(10), None]),
            ("1.2.3", "-01", "revoked", None, [Some(5), Some(10), None]),
            ("sha1", "01", "unknown", None, [None, Some(10), None]),
        ]
        .map(|(algorithm, serial, status, reason, times)| {
            (algorithm.to_owned(), serial.to_owned(), status, reason, times)
        });
        assert_eq!(told.iter().map(row).collect::<Vec<_>>(), expected);
        assert_eq!((told[0].name_hash.len(), &told[0].key_hash[..4]), (40, "CDCD"));
    }

    #[test]
    fn errors_have_no_status_and_what_is_cut_is_none() {
        assert_eq!(told(&element(SEQUENCE, &element(ENUMERATED, &[6]))).len(), 0);
        let whole = reply();
        for cut in 0..whole.len() {
            assert!(Reply::of(&whole[..cut]).is_none(), "{cut}");
        }
        for at in 0..whole.len() {
            let mut other = whole.clone();
            other[at] ^= 0x81;
            let _ = Reply::of(&other);
        }
    }

    #[test]
    fn statuses_are_bounded() {
        let many = vec![single(SHA1, &[1], &[0x80, 0], None); MAX_STATUSES + 1];
        let reply = Reply::of(&reply_of(&many)).unwrap();
        assert_eq!((reply.statuses.len(), reply.has_more), (MAX_STATUSES, true));
        let reply = Reply::of(&reply_of(&many[1..])).unwrap();
        assert_eq!((reply.statuses.len(), reply.has_more), (MAX_STATUSES, false));
    }
}
