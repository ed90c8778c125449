//! Certificates of servers whose keys or signatures are too weak.

use netsniff_packet::Timestamp;

use super::certificate::FINGERPRINT_BYTES;
use crate::log::Confidence;
use crate::notice::bounded::Bounded;
use crate::notice::finding::{Finding, FindingType, Found, Note};
use crate::notice::setting::Setting;
use crate::notice::sighting::{Seen, Sighting};
use crate::notice::threshold::Threshold;

static KEY: Note = Note {
    name: "SSL::Weak_Key",
    doc: "A server sent a certificate with a key of RSA below `rsa_bits`, a key of DSA, or one on a curve below 224 bits.",
    confidence: "High for RSA below 1024 bits and for curves below 224 bits; medium for the others, which NIST SP \
                 800-131A and FIPS 186-5 only disallow.",
    advice: "Make a new key of RSA with 2048 bits or more, or on the curve P-256, and have it certified.",
};
static SIGNATURE: Note = Note {
    name: "Netsniff::Weak_Signature",
    doc: "A server sent a certificate that was signed with MD2, MD4, MD5 or SHA-1. Those that name themselves as their \
          issuer do not count, because nobody verifies their signature.",
    confidence: "High for MD2, MD4 and MD5, with which certificates were forged; medium for SHA-1.",
    advice: "Have the certificate signed with SHA-256 or better.",
};

const RSA_BITS: Threshold =
    Threshold { name: "rsa_bits", doc: "Bits below which a key of RSA is weak.", default: 2048 };

pub(in crate::notice::findings) const TYPE: FindingType = FindingType {
    notes: &[&KEY, &SIGNATURE],
    reads: &[
        (
            "x509",
            &[
                "fingerprint",
                "certificate.subject",
                "certificate.issuer",
                "certificate.sig_alg",
                "certificate.key_type",
                "certificate.key_length",
            ],
        ),
        ("ssl", &["cert_chain_fps"]),
    ],
    thresholds: &[RSA_BITS],
    make: |setting: &Setting<'_>| {
        Box::new(WeakKeys {
            known: setting.table(2 * FINGERPRINT_BYTES + WEAKNESSES_BYTES),
            rsa_bits: setting.get(&RSA_BITS).into(),
        })
    },
};

/// Bytes of what is wrong with a certificate: its key, its signature, or both.
const WEAKNESSES_BYTES: usize = 4 * (size_of::<Weakness>() + 128);

/// What is wrong with a certificate.
type Weakness = (&'static Note, Confidence, String);

/// The weak certificates by their fingerprints. Rows of `x509` come once for each, those of `ssl` with each connection.
#[derive(Debug)]
struct WeakKeys {
    known: Bounded<Box<[u8]>, Vec<Weakness>>,
    rsa_bits: i128,
}

fn weak_key(kind: &str, bits: i128, rsa_bits: i128) -> Option<Confidence> {
    match kind {
        "rsa" if bits < rsa_bits.min(1024) => Some(Confidence::High),
        "rsa" if bits < rsa_bits => Some(Confidence::Medium),
        "dsa" => Some(Confidence::Medium),
        "ecdsa" if bits < 224 => Some(Confidence::High),
        _ => None,
    }
}

/// The names are those of OpenSSL, as `sha1WithRSAEncryption` and `ecdsa-with-SHA1`.
fn weak_signature(algorithm: &str) -> Option<Confidence> {
    let algorithm = algorithm.to_ascii_lowercase();
    if ["md2with", "md4with", "md5with"].iter().any(|weak| algorithm.starts_with(weak)) {
        return Some(Confidence::High);
    }
    let is_sha1 = algorithm.starts_with("sha1with")
        || algorithm.ends_with("withsha1")
        || algorithm.ends_with("withsha1-old")
        || algorithm.ends_with("with-sha1");
    is_sha1.then_some(Confidence::Medium)
}

/// What is wrong with the certificate of a row of `x509`.
fn weaknesses(sighting: &Sighting, rsa_bits: i128) -> Vec<Weakness> {
    let kind = sighting.word("certificate.key_type").unwrap_or_default();
    let mut found = Vec::new();
    if let Some(bits) = sighting.number("certificate.key_length")
        && let Some(confidence) = weak_key(kind, bits, rsa_bits)
    {
        let said = format!("the certificate has a key of the kind {kind} with {bits} bits");
        found.push((&KEY, confidence, said));
    }
    let signed = sighting.word("certificate.sig_alg").unwrap_or_default();
    let is_own_issuer = sighting.text("certificate.issuer") == sighting.text("certificate.subject");
    if let Some(confidence) = weak_signature(signed).filter(|_| !is_own_issuer) {
        found.push((&SIGNATURE, confidence, format!("the certificate is signed by {signed}")));
    }
    found
}

impl Finding for WeakKeys {
    fn sighted(&mut self, _: Timestamp, sighting: &Sighting, out: &mut Vec<Found>) {
        if sighting.log.path == "x509" {
            let Some(fingerprint) = sighting.text("fingerprint") else { return };
            let weaknesses = weaknesses(sighting, self.rsa_bits);
            if !weaknesses.is_empty() {
                self.known.entry(&fingerprint.into(), || weaknesses);
            }
            return;
        }
        let Some(Seen::Text(first)) = sighting.values("cert_chain_fps").first() else { return };
        for (note, confidence, said) in self.known.get(first).into_iter().flatten() {
            let found = Found::new(note, *confidence, sighting, said.clone());
            let host = crate::notice::finding::identifier(&[found.row.dst], None);
            out.push(found.told_by([&**first, &host].concat()));
        }
    }

    fn given_up(&self) -> u64 {
        self.known.given_up()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_judged_by_kind_and_bits() {
        for (kind, bits, expected) in [
            ("rsa", 512, Some(Confidence::High)),
            ("rsa", 1024, Some(Confidence::Medium)),
            ("rsa", 2047, Some(Confidence::Medium)),
            ("rsa", 2048, None),
            ("dsa", 3072, Some(Confidence::Medium)),
            ("ecdsa", 192, Some(Confidence::High)),
            ("ecdsa", 224, None),
            ("", 100, None),
        ] {
            assert_eq!(weak_key(kind, bits, 2048), expected, "{kind} {bits}");
        }
        assert_eq!(weak_key("rsa", 600, 512), None, "the threshold counts");
    }

    #[test]
    fn signatures_are_judged_by_their_hash() {
        for (name, expected) in [
            ("md5WithRSAEncryption", Some(Confidence::High)),
            ("sha1WithRSAEncryption", Some(Confidence::Medium)),
            ("sha1WithRSA", Some(Confidence::Medium)),
            ("ecdsa-with-SHA1", Some(Confidence::Medium)),
            ("dsaWithSHA1", Some(Confidence::Medium)),
            ("sha256WithRSAEncryption", None),
            ("ecdsa-with-SHA384", None),
            ("", None),
        ] {
            assert_eq!(weak_signature(name), expected, "{name}");
        }
    }
}
