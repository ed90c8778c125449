//! Replies of OCSP, RFC 6960 section 4.2: what the log `ocsp` tells of them.

use netsniff_packet::Timestamp;

pub(crate) use super::ocsp_log::Ocsp;
use super::{serial, time};
use crate::file::digest::hex;
use crate::key::uid::Uid;
use crate::protocol::syntax::der::{
    Elements, INTEGER, OBJECT, OCTET_STRING, SEQUENCE, context, dotted,
};

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
    /// One status for each certificate that was asked for.
    pub(crate) statuses: Vec<Ocsp>,
    /// Whether there were more than are told.
    pub(crate) has_more: bool,
}

impl Reply {
    /// The reply in `bytes`, which is the file `id` that began at `ts`; `None` where it is none. One that tells
    /// an error has no statuses.
    pub(crate) fn of(ts: Timestamp, id: Uid, bytes: &[u8]) -> Option<Self> {
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
            reply.statuses.push(status(ts, id, single.content)?);
        }
        Some(reply)
    }
}

/// The row of one status.
fn status(ts: Timestamp, id: Uid, single: &[u8]) -> Option<Ocsp> {
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
    Some(Ocsp {
        ts,
        id,
        hash_algorithm: algorithm_name(algorithm),
        issuer_name_hash: name_hash,
        issuer_key_hash: key_hash,
        serial_number: serial,
        cert_status: status,
        revoketime: revoked,
        revokereason: reason,
        this_update,
        next_update: next_update.and_then(time::time),
    })
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
    use super::*;
    use crate::protocol::syntax::der::tests::element;
    use crate::record::Seconds;

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

    fn read(bytes: &[u8]) -> Option<Reply> {
        Reply::of(Timestamp::EPOCH, Uid::NONE, bytes)
    }

    fn rows(bytes: &[u8]) -> Vec<Ocsp> {
        read(bytes).unwrap().statuses
    }

    #[test]
    fn statuses_are_read() {
        let reason = element(context(0), &element(ENUMERATED, &[1]));
        let revoked = element(0xa1, &[time("19700101000005Z"), reason].concat());
        let plain = element(0xa1, &time("19700101000005Z"));
        let sha256 = &[0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2, 1];
        let told = rows(&reply_of(&[
            single(SHA1, &[0x12, 0x34], &[0x80, 0], Some("19700101000020Z")),
            single(sha256, &[0], &revoked, None),
            single(&[0x2a, 3], &[0xff], &plain, None),
            single(SHA1, &[1], &[0x82, 0], None),
        ]));
        let seconds = |it: Option<Seconds>| it.map(|it| it.0);
        let row = |it: &Ocsp| {
            let times = [it.revoketime, it.this_update, it.next_update].map(seconds);
            let words = (it.cert_status, it.revokereason);
            (it.hash_algorithm.clone(), it.serial_number.clone(), words.0, words.1, times)
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
        assert_eq!((told[0].issuer_name_hash.len(), &told[0].issuer_key_hash[..4]), (40, "CDCD"));
    }

    #[test]
    fn errors_have_no_status_and_what_is_cut_is_none() {
        assert_eq!(rows(&element(SEQUENCE, &element(ENUMERATED, &[6]))).len(), 0);
        let whole = reply();
        for cut in 0..whole.len() {
            assert!(read(&whole[..cut]).is_none(), "{cut}");
        }
        for at in 0..whole.len() {
            let mut other = whole.clone();
            other[at] ^= 0x81;
            let _ = read(&other);
        }
    }

    #[test]
    fn statuses_are_bounded() {
        let many = vec![single(SHA1, &[1], &[0x80, 0], None); MAX_STATUSES + 1];
        let reply = read(&reply_of(&many)).unwrap();
        assert_eq!((reply.statuses.len(), reply.has_more), (MAX_STATUSES, true));
        let reply = read(&reply_of(&many[1..])).unwrap();
        assert_eq!((reply.statuses.len(), reply.has_more), (MAX_STATUSES, false));
    }
}
