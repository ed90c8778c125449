//! Certificates of servers that are not valid, or not for long.

use std::sync::Arc;

use netsniff_packet::Timestamp;

use crate::log::Confidence;
use crate::notice::bounded::Bounded;
use crate::notice::finding::{Finding, FindingType, Found, Note};
use crate::notice::setting::Setting;
use crate::notice::sighting::Sighting;
use crate::notice::threshold::Threshold;

static EXPIRED: Note = Note {
    name: "SSL::Certificate_Expired",
    doc: "A server sent a certificate whose time had passed when the capture was taken.",
    confidence: "High. It rests on the clock of the capture.",
    advice: "Renew the certificate. If many expired at once, look at the clock of the capture.",
};
static FUTURE: Note = Note {
    name: "SSL::Certificate_Not_Valid_Yet",
    doc: "A server sent a certificate whose time had not come when the capture was taken.",
    confidence: "Medium. A wrong clock of the capture looks the same.",
    advice: "Compare the clocks of the server and of the capture.",
};
static SOON: Note = Note {
    name: "SSL::Certificate_Expires_Soon",
    doc: "A server sent a certificate that is valid for less than `certificate_days` more.",
    confidence: "Medium. It is true, but certificates with short lives are renewed late on purpose.",
    advice: "Renew the certificate, or see that its renewal is automatic.",
};
static SELF_SIGNED: Note = Note {
    name: "SSL::Invalid_Server_Cert",
    doc: "A server sent a single certificate whose issuer is its own subject. The signature was not verified.",
    confidence: "Medium. A root that is trusted on purpose, or a private CA, looks the same.",
    advice: "Find out whether clients know this certificate; if not, somebody can stand between.",
};

const DAYS: Threshold = Threshold {
    name: "certificate_days",
    doc: "Days of validity below which a certificate ends soon.",
    default: 30,
};

pub(in crate::notice::findings) const TYPE: FindingType = FindingType {
    notes: &[&EXPIRED, &FUTURE, &SOON, &SELF_SIGNED],
    reads: &[
        (
            "x509",
            &[
                "fingerprint",
                "certificate.subject",
                "certificate.issuer",
                "certificate.not_valid_before",
                "certificate.not_valid_after",
            ],
        ),
        ("ssl", &["cert_chain_fps"]),
    ],
    thresholds: &[DAYS],
    make: |setting: &Setting<'_>| {
        Box::new(Certificates {
            known: setting.table(2 * FINGERPRINT_BYTES + MOST_SUBJECT),
            soon: setting.get(&DAYS).saturating_mul(NANOS_OF_DAY),
        })
    },
};

/// Bytes of a fingerprint as it is written, with what the allocator needs.
pub(super) const FINGERPRINT_BYTES: usize = 80;

const NANOS_OF_DAY: u64 = 86_400 * 1_000_000_000;

/// What findings need of a certificate.
#[derive(Debug)]
struct Certificate {
    subject: Arc<[u8]>,
    is_own_issuer: bool,
    not_before: Option<i64>,
    not_after: Option<i64>,
}

/// Bytes of a subject that are kept.
const MOST_SUBJECT: usize = 256;

/// Certificates by their fingerprints. Rows of `x509` come once for each, those of `ssl` with each connection.
#[derive(Debug)]
struct Certificates {
    known: Bounded<Box<[u8]>, Certificate>,
    /// Nanoseconds before its end from which on a certificate ends soon.
    soon: u64,
}

/// What is wrong with the validity at a time, with how many days before or behind.
fn validity(
    certificate: &Certificate,
    now: Timestamp,
    soon: u64,
) -> Option<(&'static Note, Confidence, String)> {
    let now = now.nanos();
    let days = |span: i64| span.unsigned_abs() / NANOS_OF_DAY;
    if let Some(end) = certificate.not_after.filter(|end| *end < now) {
        let said = format!("the certificate expired {} days ago", days(now.saturating_sub(end)));
        return Some((&EXPIRED, Confidence::High, said));
    }
    if let Some(begin) = certificate.not_before.filter(|begin| *begin > now) {
        let said =
            format!("the certificate becomes valid in {} days", days(begin.saturating_sub(now)));
        return Some((&FUTURE, Confidence::Medium, said));
    }
    let left = certificate.not_after?.saturating_sub(now);
    (left.unsigned_abs() < soon).then(|| {
        (&SOON, Confidence::Medium, format!("the certificate expires in {} days", days(left)))
    })
}

impl Finding for Certificates {
    fn sighted(&mut self, now: Timestamp, sighting: &Sighting, out: &mut Vec<Found>) {
        if sighting.log.path == "x509" {
            let Some(fingerprint) = sighting.text("fingerprint") else { return };
            let subject = sighting.text("certificate.subject").unwrap_or_default();
            let is_own_issuer = sighting.text("certificate.issuer") == Some(subject);
            self.known.entry(&fingerprint.into(), || Certificate {
                subject: subject.get(..MOST_SUBJECT).unwrap_or(subject).into(),
                is_own_issuer,
                not_before: sighting.nanos("certificate.not_valid_before"),
                not_after: sighting.nanos("certificate.not_valid_after"),
            });
            return;
        }
        let chain = sighting.values("cert_chain_fps");
        let Some(crate::notice::sighting::Seen::Text(first)) = chain.first() else { return };
        let Some(certificate) = self.known.get(first) else { return };
        let mut tell = |note, confidence, said| {
            let found = Found::new(note, confidence, sighting, said);
            let identifier = [
                &**first,
                &found
                    .row
                    .dst
                    .map_or([0; 2], netsniff_packet::Address::words)
                    .map(u64::to_be_bytes)
                    .concat(),
            ]
            .concat();
            out.push(found.saying(Some(&certificate.subject)).told_by(identifier));
        };
        if let Some((note, confidence, said)) = validity(certificate, now, self.soon) {
            tell(note, confidence, said);
        }
        if certificate.is_own_issuer && chain.len() == 1 {
            let said = "the certificate names itself as its issuer".to_owned();
            tell(&SELF_SIGNED, Confidence::Medium, said);
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
    fn validity_is_judged_to_the_day() {
        let certificate = Certificate {
            subject: Arc::from(&b"CN=a"[..]),
            is_own_issuer: false,
            not_before: Some(10 * NANOS_OF_DAY as i64),
            not_after: Some(100 * NANOS_OF_DAY as i64),
        };
        let at = |day: i64| {
            let now = Timestamp::from_nanos(day * NANOS_OF_DAY as i64);
            validity(&certificate, now, 30 * NANOS_OF_DAY).map(|(note, _, said)| (note.name, said))
        };
        let expected = |note, said: &str| Some((note, said.to_owned()));
        assert_eq!(
            at(9),
            expected("SSL::Certificate_Not_Valid_Yet", "the certificate becomes valid in 1 days")
        );
        assert_eq!(at(10), None);
        assert_eq!(at(70), None);
        assert_eq!(
            at(71),
            expected("SSL::Certificate_Expires_Soon", "the certificate expires in 29 days")
        );
        assert_eq!(
            at(100),
            expected("SSL::Certificate_Expires_Soon", "the certificate expires in 0 days")
        );
        assert_eq!(
            at(103),
            expected("SSL::Certificate_Expired", "the certificate expired 3 days ago")
        );
    }
}
