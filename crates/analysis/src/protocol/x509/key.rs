//! Public keys, RFC 3279 and RFC 5480: what algorithm, how long, on which curve. Algorithms have the
//! long names that OpenSSL gives them, as in Zeek.

use crate::protocol::syntax::der::{
    self, BIT_STRING, Element, Elements, INTEGER, OBJECT, OCTET_STRING, SEQUENCE,
};

/// `rsaEncryption` (1.2.840.113549.1.1.1).
const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 1];
/// `md5WithRSAEncryption`, which servers of RDP give as the algorithm of their RSA keys.
const RSA_OF_RDP: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 4];
/// `id-dsa` (1.2.840.10040.4.1).
const DSA: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x38, 4, 1];
/// `id-ecPublicKey` (1.2.840.10045.2.1).
const EC: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1];

/// The part of 1.2.840.10045.3.1 that names curves over prime fields.
const ANSI_PRIME_CURVES: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1];
/// 1.3.132.0: the curves of SECG.
const SECG_CURVES: &[u8] = &[0x2b, 0x81, 4, 0];
/// 1.3.36.3.3.2.8.1.1: the curves of Brainpool.
const BRAINPOOL_CURVES: &[u8] = &[0x2b, 0x24, 3, 3, 2, 8, 1, 1];

/// What a `SubjectPublicKeyInfo` says.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) algorithm: String,
    /// `rsa`, `dsa` or `ecdsa`.
    pub(super) kind: Option<&'static str>,
    /// Its length in bits: of the modulus, the prime, or the order of the curve.
    pub(super) length: Option<u32>,
    /// The exponent of RSA.
    pub(super) exponent: Option<String>,
    pub(super) curve: Option<&'static str>,
}

impl Key {
    /// The key in the content of a `SubjectPublicKeyInfo`.
    pub(super) fn of(info: &[u8]) -> Option<Self> {
        let mut fields = Elements::new(info);
        let algorithm = fields.content(SEQUENCE)?;
        let key = fields.content(BIT_STRING)?;
        // The octet in front tells how many bits of the last one are not used.
        let key = key.split_first().map_or(key, |(_, key)| key);
        let mut fields = Elements::new(algorithm);
        let object = fields.content(OBJECT)?;
        let unread = Self { algorithm: algorithm_name(object), ..Self::default() };
        let read = match object {
            RSA | RSA_OF_RDP => rsa(key),
            DSA => dsa(fields.content(SEQUENCE)),
            EC => fields.next().and_then(ec),
            _ => None,
        };
        Some(match read {
            Some(read) => Self { algorithm: unread.algorithm, ..read },
            None => unread,
        })
    }
}

fn rsa(key: &[u8]) -> Option<Key> {
    let mut numbers = Elements::new(Elements::new(key).content(SEQUENCE)?);
    let modulus = numbers.content(INTEGER)?;
    let exponent = numbers.content(INTEGER)?;
    Some(Key {
        kind: Some("rsa"),
        length: Some(bits(modulus)),
        // None has more than 128 bits.
        exponent: der::unsigned_wide(exponent).map(|exponent| exponent.to_string()),
        ..Key::default()
    })
}

fn dsa(parameters: Option<&[u8]>) -> Option<Key> {
    let prime = Elements::new(parameters?).content(INTEGER)?;
    Some(Key { kind: Some("dsa"), length: Some(bits(prime)), ..Key::default() })
}

/// A key on a curve that is named, or given by its parameters (RFC 3279, 2.3.5).
fn ec(curve: Element<'_>) -> Option<Key> {
    let kind = Some("ecdsa");
    if curve.tag == SEQUENCE {
        let mut parameters = Elements::new(curve.content);
        parameters.content(INTEGER)?;
        // The field, the curve, its base.
        parameters.content(SEQUENCE)?;
        parameters.content(SEQUENCE)?;
        parameters.content(OCTET_STRING)?;
        let order = parameters.content(INTEGER)?;
        return Some(Key { kind, length: Some(bits(order)), ..Key::default() });
    }
    let (name, order) = named_curve(Some(curve).filter(|it| it.tag == OBJECT)?.content)?;
    Some(Key { kind, length: Some(order), curve: Some(name), ..Key::default() })
}

/// The length of an unsigned number in bits.
fn bits(number: &[u8]) -> u32 {
    let Some((first, rest)) = der::magnitude(number).split_first() else { return 0 };
    u32::try_from(rest.len())
        .unwrap_or(u32::MAX)
        .saturating_mul(8)
        .saturating_add(8 - first.leading_zeros())
}

/// A curve's name with the length of its order in bits.
fn named_curve(object: &[u8]) -> Option<(&'static str, u32)> {
    if let Some([arc]) = object.strip_prefix(ANSI_PRIME_CURVES) {
        return Some(match arc {
            1 => ("prime192v1", 192),
            2 => ("prime192v2", 192),
            3 => ("prime192v3", 192),
            4 => ("prime239v1", 239),
            5 => ("prime239v2", 239),
            6 => ("prime239v3", 239),
            7 => ("prime256v1", 256),
            _ => return None,
        });
    }
    if let Some([arc]) = object.strip_prefix(SECG_CURVES) {
        return Some(match arc {
            1 => ("sect163k1", 163),
            2 => ("sect163r1", 162),
            8 => ("secp160r1", 161),
            9 => ("secp160k1", 161),
            10 => ("secp256k1", 256),
            15 => ("sect163r2", 163),
            16 => ("sect283k1", 281),
            17 => ("sect283r1", 282),
            26 => ("sect233k1", 232),
            27 => ("sect233r1", 233),
            30 => ("secp160r2", 161),
            31 => ("secp192k1", 192),
            32 => ("secp224k1", 225),
            33 => ("secp224r1", 224),
            34 => ("secp384r1", 384),
            35 => ("secp521r1", 521),
            36 => ("sect409k1", 407),
            37 => ("sect409r1", 409),
            38 => ("sect571k1", 570),
            39 => ("sect571r1", 570),
            _ => return None,
        });
    }
    let [arc] = object.strip_prefix(BRAINPOOL_CURVES)? else { return None };
    Some(match arc {
        1 => ("brainpoolP160r1", 160),
        2 => ("brainpoolP160t1", 160),
        3 => ("brainpoolP192r1", 192),
        4 => ("brainpoolP192t1", 192),
        5 => ("brainpoolP224r1", 224),
        6 => ("brainpoolP224t1", 224),
        7 => ("brainpoolP256r1", 256),
        8 => ("brainpoolP256t1", 256),
        9 => ("brainpoolP320r1", 320),
        10 => ("brainpoolP320t1", 320),
        11 => ("brainpoolP384r1", 384),
        12 => ("brainpoolP384t1", 384),
        13 => ("brainpoolP512r1", 512),
        14 => ("brainpoolP512t1", 512),
        _ => return None,
    })
}

/// The name of an algorithm; its dotted form where it has none.
pub(super) fn algorithm_name(object: &[u8]) -> String {
    signature_name(object).map_or_else(|| der::dotted(object).unwrap_or_default(), str::to_owned)
}

/// The name of an algorithm, if it has one.
pub(super) fn signature_name(object: &[u8]) -> Option<&'static str> {
    Some(match object {
        // 1.2.840.113549.1.1: PKCS #1.
        [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, arc] => match arc {
            1 => "rsaEncryption",
            2 => "md2WithRSAEncryption",
            3 => "md4WithRSAEncryption",
            4 => "md5WithRSAEncryption",
            5 => "sha1WithRSAEncryption",
            7 => "rsaesOaep",
            10 => "rsassaPss",
            11 => "sha256WithRSAEncryption",
            12 => "sha384WithRSAEncryption",
            13 => "sha512WithRSAEncryption",
            14 => "sha224WithRSAEncryption",
            _ => return None,
        },
        [0x2a, 0x86, 0x48, 0xce, 0x38, 4, 1] => "dsaEncryption",
        [0x2a, 0x86, 0x48, 0xce, 0x38, 4, 3] => "dsaWithSHA1",
        [0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1] => "id-ecPublicKey",
        [0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 1] => "ecdsa-with-SHA1",
        [0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, arc] => match arc {
            1 => "ecdsa-with-SHA224",
            2 => "ecdsa-with-SHA256",
            3 => "ecdsa-with-SHA384",
            4 => "ecdsa-with-SHA512",
            _ => return None,
        },
        // 2.16.840.1.101.3.4.3: NIST.
        [0x60, 0x86, 0x48, 1, 0x65, 3, 4, 3, arc] => match arc {
            1 => "dsa_with_SHA224",
            2 => "dsa_with_SHA256",
            _ => return None,
        },
        // 1.3.14.3.2: the Open Systems Interworking.
        [0x2b, 0x0e, 3, 2, 0x1d] => "sha1WithRSA",
        [0x2b, 0x0e, 3, 2, 0x1b] => "dsaWithSHA1-old",
        // 1.3.101: RFC 8410.
        [0x2b, 0x65, arc] => match arc {
            110 => "X25519",
            111 => "X448",
            112 => "ED25519",
            113 => "ED448",
            _ => return None,
        },
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::syntax::der::tests::element;

    fn info(object: &[u8], parameters: &[u8], key: &[u8]) -> Vec<u8> {
        let algorithm = element(SEQUENCE, &[element(OBJECT, object), parameters.to_vec()].concat());
        [algorithm, element(BIT_STRING, &[&[0], key].concat())].concat()
    }

    #[test]
    fn keys_of_rsa_are_read() {
        let numbers =
            [element(INTEGER, &[&[0, 0x80][..], &[1; 255]].concat()), element(INTEGER, &[1, 0, 1])];
        let key = Key::of(&info(RSA, &[5, 0], &element(SEQUENCE, &numbers.concat()))).unwrap();
        assert_eq!((key.algorithm.as_str(), key.kind), ("rsaEncryption", Some("rsa")));
        assert_eq!((key.length, key.exponent.as_deref()), (Some(2048), Some("65537")));
        let key =
            Key::of(&info(RSA_OF_RDP, &[5, 0], &element(SEQUENCE, &numbers.concat()))).unwrap();
        assert_eq!((key.algorithm.as_str(), key.kind), ("md5WithRSAEncryption", Some("rsa")));
    }

    #[test]
    fn keys_on_curves_are_read() {
        let curve = element(OBJECT, &[0x2b, 0x81, 4, 0, 34]);
        let key = Key::of(&info(EC, &curve, &[4])).unwrap();
        assert_eq!(
            (key.kind, key.curve, key.length),
            (Some("ecdsa"), Some("secp384r1"), Some(384))
        );
    }

    #[test]
    fn other_keys_have_the_name_of_their_algorithm() {
        let prime = element(SEQUENCE, &element(INTEGER, &[3, 0xff]));
        let key = Key::of(&info(DSA, &prime, &[1])).unwrap();
        assert_eq!((key.kind, key.length), (Some("dsa"), Some(10)));
        let key = Key::of(&info(&[0x2b, 0x65, 112], &[], &[1])).unwrap();
        assert_eq!((key.algorithm.as_str(), key.kind, key.length), ("ED25519", None, None));
        assert_eq!(Key::of(&info(&[0x2a, 3], &[], &[1])).unwrap().algorithm, "1.2.3");
        assert_eq!(Key::of(&[]), None);
    }

    #[test]
    fn numbers_have_their_length_in_bits() {
        assert_eq!([bits(&[]), bits(&[0]), bits(&[0, 1]), bits(&[0xff, 0])], [0, 0, 1, 16]);
    }
}
