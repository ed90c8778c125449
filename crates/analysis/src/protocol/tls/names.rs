//! Words for versions, alerts and groups, as Zeek's `base/protocols/ssl/consts.zeek` has them.

use std::borrow::Cow;

/// SSL 2, whose messages have a form of their own.
pub(in crate::protocol) const SSL2: u16 = 0x0002;
/// SSL 3, RFC 6101.
pub(in crate::protocol) const SSL3: u16 = 0x0300;
/// TLS 1.0, RFC 2246.
pub(in crate::protocol) const TLS10: u16 = 0x0301;
/// TLS 1.1, RFC 4346.
pub(in crate::protocol) const TLS11: u16 = 0x0302;
/// TLS 1.2, RFC 5246.
pub(in crate::protocol) const TLS12: u16 = 0x0303;
/// TLS 1.3, RFC 8446.
pub(in crate::protocol) const TLS13: u16 = 0x0304;
/// DTLS 1.0, RFC 4347.
pub(in crate::protocol) const DTLS10: u16 = 0xfeff;
/// DTLS 1.2, RFC 6347.
pub(in crate::protocol) const DTLS12: u16 = 0xfefd;
/// DTLS 1.3, RFC 9147.
pub(in crate::protocol) const DTLS13: u16 = 0xfefc;

/// Whether a version is one of the drafts of TLS 1.3, as Zeek tells them (0x7f00 and what follows).
pub(super) const fn is_tls13_draft(version: u16) -> bool {
    version / 0xff == 0x7f
}

/// The name of a version, as Zeek has it.
pub(super) fn version(version: u16) -> Cow<'static, str> {
    Cow::Borrowed(match version {
        SSL2 => "SSLv2",
        SSL3 => "SSLv3",
        TLS10 => "TLSv10",
        TLS11 => "TLSv11",
        TLS12 => "TLSv12",
        TLS13 => "TLSv13",
        DTLS10 => "DTLSv10",
        DTLS12 => "DTLSv12",
        DTLS13 => "DTLSv13",
        draft if is_tls13_draft(draft) => {
            return Cow::Owned(format!("TLSv13-draft{}", draft % 0x7f));
        }
        other => return unknown(other),
    })
}

/// The name of an alert's description, RFC 8446 section 6; SSL 2 has errors of its own.
pub(super) fn alert(description: u16) -> Cow<'static, str> {
    Cow::Borrowed(match description {
        0 => "close_notify",
        10 => "unexpected_message",
        20 => "bad_record_mac",
        21 => "decryption_failed",
        22 => "record_overflow",
        30 => "decompression_failure",
        40 => "handshake_failure",
        41 => "no_certificate",
        42 => "bad_certificate",
        43 => "unsupported_certificate",
        44 => "certificate_revoked",
        45 => "certificate_expired",
        46 => "certificate_unknown",
        47 => "illegal_parameter",
        48 => "unknown_ca",
        49 => "access_denied",
        50 => "decode_error",
        51 => "decrypt_error",
        60 => "export_restriction",
        70 => "protocol_version",
        71 => "insufficient_security",
        80 => "internal_error",
        86 => "inappropriate_fallback",
        90 => "user_canceled",
        100 => "no_renegotiation",
        110 => "unsupported_extension",
        111 => "certificate_unobtainable",
        112 => "unrecognized_name",
        113 => "bad_certificate_status_response",
        114 => "bad_certificate_hash_value",
        115 => "unknown_psk_identity",
        116 => "certificate_required",
        117 => "general_error",
        120 => "no_application_protocol",
        121 => "ech_required",
        other => return unknown(other),
    })
}

/// The name of a group for the key exchange (registry "TLS Supported Groups", a line for each entry).
pub(super) fn group(group: u16) -> Cow<'static, str> {
    const CURVES: [&str; 41] = [
        "sect163k1",
        "sect163r1",
        "sect163r2",
        "sect193r1",
        "sect193r2",
        "sect233k1",
        "sect233r1",
        "sect239k1",
        "sect283k1",
        "sect283r1",
        "sect409k1",
        "sect409r1",
        "sect571k1",
        "sect571r1",
        "secp160k1",
        "secp160r1",
        "secp160r2",
        "secp192k1",
        "secp192r1",
        "secp224k1",
        "secp224r1",
        "secp256k1",
        "secp256r1",
        "secp384r1",
        "secp521r1",
        "brainpoolP256r1",
        "brainpoolP384r1",
        "brainpoolP512r1",
        "x25519",
        "x448",
        "brainpoolP256r1tls13",
        "brainpoolP384r1tls13",
        "brainpoolP512r1tls13",
        "GC256A",
        "GC256B",
        "GC256C",
        "GC256D",
        "GC512A",
        "GC512B",
        "GC512C",
        "curveSM2",
    ];
    let curve = usize::from(group).checked_sub(1).and_then(|at| CURVES.get(at));
    Cow::Borrowed(match (curve, group) {
        (Some(curve), _) => curve,
        (_, 256) => "ffdhe2048",
        (_, 257) => "ffdhe3072",
        (_, 258) => "ffdhe4096",
        (_, 259) => "ffdhe6144",
        (_, 260) => "ffdhe8192",
        (_, 512) => "MLKEM512",
        (_, 513) => "MLKEM768",
        (_, 514) => "MLKEM1024",
        (_, 0x11eb) => "SecP256r1MLKEM768",
        (_, 0x11ec) => "X25519MLKEM768",
        (_, 0x11ed) => "SecP384r1MLKEM1024",
        (_, 0x11ee) => "curveSM2MLKEM768",
        (_, 0x4138) => "CECPQ2",
        (_, 0x6399) => "X25519Kyber768Draft00",
        (_, 0x639a) => "SecP256r1Kyber768Draft00",
        (_, 0xff01) => "arbitrary_explicit_prime_curves",
        (_, 0xff02) => "arbitrary_explicit_char2_curves",
        (_, other) => match grease(other) {
            Some(name) => name,
            None => return unknown(other),
        },
    })
}

/// The name of a value that only keeps others from being relied on, RFC 8701 section 2.
pub(super) fn grease(value: u16) -> Option<&'static str> {
    const NAMES: [&str; 16] = [
        "grease_0x0A0A",
        "grease_0x1A1A",
        "grease_0x2A2A",
        "grease_0x3A3A",
        "grease_0x4A4A",
        "grease_0x5A5A",
        "grease_0x6A6A",
        "grease_0x7A7A",
        "grease_0x8A8A",
        "grease_0x9A9A",
        "grease_0xAAAA",
        "grease_0xBABA",
        "grease_0xCACA",
        "grease_0xDADA",
        "grease_0xEAEA",
        "grease_0xFAFA",
    ];
    let [high, low] = value.to_be_bytes();
    let is_grease = high == low && low & 0x0f == 0x0a;
    if is_grease { NAMES.get(usize::from(high >> 4)).copied() } else { None }
}

/// What Zeek writes for a value that it does not know.
pub(super) fn unknown(value: u16) -> Cow<'static, str> {
    Cow::Owned(format!("unknown-{value}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_have_zeeks_names() {
        assert_eq!(version(0x0303), "TLSv12");
        assert_eq!(version(0xfefd), "DTLSv12");
        assert_eq!(version(0x7f1c), "TLSv13-draft28");
        assert_eq!(version(0x0305), "unknown-773");
    }

    #[test]
    fn groups_have_zeeks_names() {
        assert_eq!(
            [31, 41, 512, 0x4138].map(group),
            ["brainpoolP256r1tls13", "curveSM2", "MLKEM512", "CECPQ2"]
        );
        assert_eq!(group(42), "unknown-42");
        let names = [1, 23, 29, 30, 256, 0x2a2a, 0].map(group);
        let expected = ["sect163k1", "secp256r1", "x25519", "x448", "ffdhe2048"];
        assert_eq!(names[..5], expected);
        assert_eq!(names[5..], ["grease_0x2A2A", "unknown-0"]);
    }

    #[test]
    fn sixteen_values_are_grease() {
        assert_eq!((0..=u16::MAX).filter(|value| grease(*value).is_some()).count(), 16);
    }

    #[test]
    fn alerts_have_zeeks_names() {
        assert_eq!(
            [alert(0), alert(40), alert(116), alert(999)],
            ["close_notify", "handshake_failure", "certificate_required", "unknown-999"]
        );
    }
}
