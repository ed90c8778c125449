//! TLS that is too old or too weak.

use netsniff_packet::Timestamp;

use crate::log::Confidence;
use crate::notice::finding::{Finding, FindingType, Found, Note};
use crate::notice::sighting::Sighting;

static VERSION: Note = Note {
    name: "SSL::Old_Version",
    doc: "A connection was established with SSL 2 or 3, TLS 1.0 or TLS 1.1.",
    confidence: "High for SSL (RFC 6176, RFC 7568), medium for TLS 1.0 and 1.1, which are only deprecated (RFC 8996).",
    advice: "Turn the old versions off in the server, or update the client that needs them.",
};
static CIPHER: Note = Note {
    name: "SSL::Weak_Cipher",
    doc: "A connection was established with a cipher suite without encryption or authentication, for export, or with \
          RC4, DES or triple DES.",
    confidence: "High; medium for triple DES.",
    advice: "Remove these suites from the server's list.",
};

pub(in crate::notice::findings) const TYPE: FindingType = FindingType {
    notes: &[&VERSION, &CIPHER],
    reads: &[("ssl", &["version", "cipher", "established", "server_name"])],
    thresholds: &[],
    make: |_| Box::new(WeakTls),
};

/// Judges each connection for itself.
#[derive(Debug)]
struct WeakTls;

fn old_version(version: &str) -> Option<Confidence> {
    match version {
        "SSLv2" | "SSLv3" => Some(Confidence::High),
        "TLSv10" | "TLSv11" => Some(Confidence::Medium),
        _ => None,
    }
}

fn weak_cipher(cipher: &str) -> Option<Confidence> {
    let has = |word: &str| cipher.split('_').any(|part| part == word);
    // Names of SSL 2 (draft-hickman-netscape-ssl): DES_192_EDE3 is triple DES.
    if has("EDE3") {
        return Some(Confidence::Medium);
    }
    // The signalling value of RFC 5746 is no suite, and nothing is established with it.
    if has("NULL")
        || has("EXPORT")
        || has("EXPORT40")
        || has("EXPORT1024")
        || has("anon")
        || has("RC4")
        || has("DES")
    {
        Some(Confidence::High)
    } else if has("3DES") {
        Some(Confidence::Medium)
    } else {
        None
    }
}

impl Finding for WeakTls {
    fn sighted(&mut self, _: Timestamp, sighting: &Sighting, out: &mut Vec<Found>) {
        if sighting.flag("established") != Some(true) {
            return;
        }
        let mut tell = |note, confidence: Option<Confidence>, word: &str| {
            let Some(confidence) = confidence else { return };
            let said = format!("the connection was established with {word}");
            let found = Found::new(note, confidence, sighting, said);
            out.push(found.saying(sighting.text("server_name")));
        };
        let version = sighting.word("version").unwrap_or_default();
        tell(&VERSION, old_version(version), version);
        let cipher = sighting.word("cipher").unwrap_or_default();
        tell(&CIPHER, weak_cipher(cipher), cipher);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_and_suites_are_judged_by_their_words() {
        assert_eq!(old_version("SSLv3"), Some(Confidence::High));
        assert_eq!(old_version("TLSv11"), Some(Confidence::Medium));
        assert_eq!(old_version("TLSv12"), None);
        for (cipher, expected) in [
            ("TLS_RSA_WITH_RC4_128_SHA", Some(Confidence::High)),
            ("TLS_RSA_WITH_3DES_EDE_CBC_SHA", Some(Confidence::Medium)),
            ("TLS_RSA_EXPORT_WITH_DES40_CBC_SHA", Some(Confidence::High)),
            ("TLS_DH_anon_WITH_AES_128_CBC_SHA", Some(Confidence::High)),
            ("TLS_RSA_WITH_NULL_SHA", Some(Confidence::High)),
            ("SSLv20_CK_DES_192_EDE3_CBC_WITH_MD5", Some(Confidence::Medium)),
            ("SSLv20_CK_RC2_128_CBC_EXPORT40_WITH_MD5", Some(Confidence::High)),
            ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", None),
            ("TLS_CHACHA20_POLY1305_SHA256", None),
        ] {
            assert_eq!(weak_cipher(cipher), expected, "{cipher}");
        }
    }
}
