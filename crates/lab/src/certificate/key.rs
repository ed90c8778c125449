//! Keys that certificates are signed with: Ed25519 (RFC 8032), in PEM files as openssl(1) writes them (RFC 8410).

use ed25519_dalek::pkcs8::spki::{self, DecodePublicKey as _, EncodePublicKey as _};
use ed25519_dalek::pkcs8::{self, DecodePrivateKey as _};
use ed25519_dalek::{Signature, Signer as _, SigningKey, VerifyingKey};
use sha2::{Digest as _, Sha256};

/// Bytes of a signature.
pub const SIGNATURE_LEN: usize = Signature::BYTE_SIZE;

const MAKE_ONE: &str = "openssl genpkey -algorithm ed25519 makes one";
const MAKE_PUBLIC: &str = "openssl pkey -in KEY -pubout makes one";

/// Labels of other PEM files, and what they are.
const OTHERS: [(&str, &str); 7] = [
    ("PRIVATE KEY", "a private key"),
    ("ENCRYPTED PRIVATE KEY", "a private key under a password; openssl pkey takes that off"),
    ("OPENSSH PRIVATE KEY", "a private key in the form of ssh-keygen(1)"),
    ("RSA PRIVATE KEY", "an RSA key"),
    ("EC PRIVATE KEY", "a key of an elliptic curve"),
    ("PUBLIC KEY", "a public key"),
    ("CERTIFICATE", "a certificate of X.509"),
];

/// Algorithms of keys that look alike (RFC 8410, 5480, 8017).
const ALGORITHMS: [(&str, &str); 5] = [
    ("1.3.101.110", "X25519, which does not sign"),
    ("1.3.101.111", "X448, which does not sign"),
    ("1.3.101.113", "Ed448"),
    ("1.2.840.10045.2.1", "an elliptic curve that is not Ed25519"),
    ("1.2.840.113549.1.1.1", "RSA"),
];

/// A key that signs.
#[derive(Debug)]
pub struct PrivateKey(SigningKey);

impl PrivateKey {
    /// The key of a PEM file: PKCS#8.
    ///
    /// # Errors
    ///
    /// A sentence, with what it is instead and how to make one.
    pub fn of_pem(text: &str) -> Result<Self, String> {
        let pem = block(text, "PRIVATE KEY", MAKE_ONE)?;
        let key = SigningKey::from_pkcs8_pem(pem).map_err(|error| match error {
            pkcs8::Error::PublicKey(spki::Error::OidUnknown { oid }) => {
                algorithm(&oid.to_string(), MAKE_ONE)
            }
            error => format!("no Ed25519 key can be read from it: {error}; {MAKE_ONE}"),
        })?;
        Ok(Self(key))
    }

    /// The key that verifies.
    #[must_use]
    pub fn public(&self) -> PublicKey {
        PublicKey(self.0.verifying_key())
    }

    /// Signs a message (RFC 8032).
    #[must_use]
    pub fn sign(&self, message: &[u8]) -> [u8; SIGNATURE_LEN] {
        self.0.sign(message).to_bytes()
    }
}

/// A key that verifies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicKey(VerifyingKey);

impl PublicKey {
    /// The key of a PEM file: SubjectPublicKeyInfo.
    ///
    /// # Errors
    ///
    /// A sentence, with what it is instead and how to make one.
    pub fn of_pem(text: &str) -> Result<Self, String> {
        let pem = block(text, "PUBLIC KEY", MAKE_PUBLIC)?;
        let key = VerifyingKey::from_public_key_pem(pem).map_err(|error| match error {
            spki::Error::OidUnknown { oid } => algorithm(&oid.to_string(), MAKE_PUBLIC),
            error => format!("no Ed25519 key can be read from it: {error}; {MAKE_PUBLIC}"),
        })?;
        Ok(Self(key))
    }

    /// The PEM file of it.
    ///
    /// # Errors
    ///
    /// A sentence, where it cannot be encoded.
    pub fn to_pem(&self) -> Result<String, String> {
        let pem = self.0.to_public_key_pem(spki::der::pem::LineEnding::LF);
        pem.map_err(|error| format!("the public key cannot be encoded: {error}"))
    }

    /// What people compare: SHA-256 over the key in DER, as `openssl pkey -pubin -outform DER | sha256sum` tells it.
    ///
    /// # Errors
    ///
    /// A sentence, where it cannot be encoded.
    pub fn fingerprint(&self) -> Result<String, String> {
        let der = self.0.to_public_key_der();
        let der = der.map_err(|error| format!("the public key cannot be encoded: {error}"))?;
        Ok(Sha256::digest(der.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// Whether a signature is of this key, over this message. Keys and signatures that verify more than one message are
    /// refused.
    #[must_use]
    pub fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        Signature::from_slice(signature)
            .is_ok_and(|signature| self.0.verify_strict(message, &signature).is_ok())
    }
}

/// The PEM block with this label, from its first line on; there may be other text before it (RFC 7468).
fn block<'a>(text: &'a str, label: &str, advice: &str) -> Result<&'a str, String> {
    let begin = format!("-----BEGIN {label}-----");
    if let Some(at) = text.find(&begin) {
        return Ok(&text[at..]);
    }
    let other = |(label, _): &&(&str, &str)| text.contains(&format!("-----BEGIN {label}-----"));
    Err(match OTHERS.iter().find(other) {
        Some((_, what)) => {
            format!("that is {what}, where a PEM file with {label} is needed; {advice}")
        }
        None => format!("that is no PEM file with {label}; {advice}"),
    })
}

fn algorithm(oid: &str, advice: &str) -> String {
    let known = ALGORITHMS.iter().find(|(number, _)| *number == oid);
    let what = known.map_or(oid, |(_, what)| what);
    format!("the key is of another algorithm than Ed25519: {what}; {advice}")
}

#[cfg(test)]
pub(super) mod tests {
    use base64ct::{Base64, Encoding as _};

    use super::*;

    /// Made by openssl genpkey -algorithm ed25519.
    pub(in crate::certificate) const PRIVATE: &str = "-----BEGIN PRIVATE KEY-----\n\
        MC4CAQAwBQYDK2VwBCIEIIDpecF2fQOdPfFuDnm9y+y7/lG60z/o+pp5iB2zJTiw\n\
        -----END PRIVATE KEY-----\n";

    /// By openssl pkey -pubout.
    pub(in crate::certificate) const PUBLIC: &str = "-----BEGIN PUBLIC KEY-----\n\
        MCowBQYDK2VwAyEAO0fbpw7KH/LDMLBKdXYOphxXhZQ+nbeNWeKp4Ak53fg=\n\
        -----END PUBLIC KEY-----\n";

    /// By openssl pkey -pubout -outform DER | sha256sum.
    const FINGERPRINT: &str = "786cd67be18cffc702fad3ed0146581a4e190ef4f3e7e34f38eccc8f7c10ea72";

    fn bytes(hex: &str) -> Vec<u8> {
        let byte = |at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
        (0..hex.len()).step_by(2).map(byte).collect()
    }

    fn pem(label: &str, prefix: &str, key: &str) -> String {
        let base64 = Base64::encode_string(&bytes(&[prefix, key].concat()));
        let lines: Vec<_> = base64.as_bytes().chunks(64).map(String::from_utf8_lossy).collect();
        format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
    }

    /// RFC 8032, section 7.1: secret key, public key, message, signature.
    const VECTORS: [[&str; 4]; 4] = [
        [
            "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
            "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
            "",
            "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24\
             655141438e7a100b",
        ],
        [
            "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
            "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
            "72",
            "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aee\
             b00d291612bb0c00",
        ],
        [
            "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
            "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
            "af82",
            "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28d\
             c027beceea1ec40a",
        ],
        [
            "833fe62409237b9d62ec77587520911e9a759cec1d19755b7da901b96dca3d42",
            "ec172b93ad5e563bf4932c70e1245034c35467ef2efd4d64ebf819683467e2bf",
            "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e\
             2a9ac94fa54ca49f",
            "dc2a4459e7369633a52b1bf277839a00201009a3efbf3ecb69bea2186c26b58909351fc9ac90b3ecfdfbc7c66431e0303dca179c138ac17a\
             d9bef1177331a704",
        ],
    ];

    #[test]
    fn signatures_are_those_of_rfc_8032() {
        for [secret, public, message, signature] in VECTORS {
            let private = pem("PRIVATE KEY", "302e020100300506032b657004220420", secret);
            let private = PrivateKey::of_pem(&private).unwrap();
            let public = pem("PUBLIC KEY", "302a300506032b6570032100", public);
            let public = PublicKey::of_pem(&public).unwrap();
            assert_eq!(private.public(), public);
            let (message, signature) = (bytes(message), bytes(signature));
            assert_eq!(private.sign(&message)[..], signature);
            assert!(public.verifies(&message, &signature));
            assert!(!public.verifies(&[&message[..], b"x"].concat(), &signature));
            assert!(!public.verifies(&message, &signature[1..]));
        }
    }

    #[test]
    fn keys_of_openssl_are_read() {
        let private = PrivateKey::of_pem(PRIVATE).unwrap();
        let public = PublicKey::of_pem(PUBLIC).unwrap();
        assert_eq!(private.public(), public);
        assert_eq!(public.to_pem().unwrap(), PUBLIC);
        assert_eq!(public.fingerprint().unwrap(), FINGERPRINT);
        let before = format!("my key\n{}", PRIVATE.replace('\n', "\r\n"));
        assert_eq!(PrivateKey::of_pem(&before).unwrap().public(), public);
    }

    /// The neutral element verifies any message with some signature.
    #[test]
    fn a_weak_key_verifies_nothing() {
        let neutral = "01".to_owned() + &"00".repeat(31);
        let weak = pem("PUBLIC KEY", "302a300506032b6570032100", &neutral);
        let weak = PublicKey::of_pem(&weak).unwrap();
        let signature = [bytes(&neutral), vec![0; 32]].concat();
        assert!(!weak.verifies(b"anything", &signature));
    }

    #[test]
    fn other_keys_are_told_apart() {
        // By openssl genpkey -algorithm X25519, EC, ED448, and with -aes256.
        let x25519 = "-----BEGIN PRIVATE KEY-----\n\
            MC4CAQAwBQYDK2VuBCIEIHiuOojjuXYke/PvW07KDxSl2mqdUqE9bl1KAbgLt/5u\n-----END PRIVATE KEY-----\n";
        let ec = "-----BEGIN PRIVATE KEY-----\n\
            MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg6w4c3repd4DXs+d4\n\
            jhQc4TfTcjKoUCVmLvcJQftrAvShRANCAARpGutS2MUGerUcZZjRN6HYfsiyNMcZ\n\
            Qa9LLXHpXk4+7hiXUReCwV4xiSJ6GVhmtPizMF2A59WURq7TnF2n+I5X\n-----END PRIVATE KEY-----\n";
        let ed448 = "-----BEGIN PRIVATE KEY-----\n\
            MEcCAQAwBQYDK2VxBDsEOWEwu6BbJq+JkG6xPUNFqT1cbCDZIgvkK3EcKWPcFoXv\n\
            yp3Z/cF2wRvpFYXO/0cDtOeVT7pP/+3hlA==\n-----END PRIVATE KEY-----\n";
        let cut = PRIVATE.replace("MC4C", "MC4");
        let label = |label: &str| format!("-----BEGIN {label}-----\nAAAA\n-----END {label}-----\n");
        for (text, words) in [
            (x25519, "X25519, which does not sign; openssl genpkey -algorithm ed25519 makes one"),
            (ec, "an elliptic curve that is not Ed25519"),
            (ed448, "Ed448"),
            (PUBLIC, "that is a public key, where a PEM file with PRIVATE KEY is needed"),
            (&label("ENCRYPTED PRIVATE KEY"), "a private key under a password"),
            (&label("OPENSSH PRIVATE KEY"), "ssh-keygen(1)"),
            (&label("RSA PRIVATE KEY"), "an RSA key"),
            (&cut, "no Ed25519 key can be read from it"),
            ("", "that is no PEM file with PRIVATE KEY; openssl genpkey"),
        ] {
            let error = PrivateKey::of_pem(text).unwrap_err();
            assert!(error.contains(words), "{error}");
        }
        let error = PublicKey::of_pem(PRIVATE).unwrap_err();
        assert!(
            error.starts_with("that is a private key, where a PEM file with PUBLIC"),
            "{error}"
        );
        let ed448 = pem("PUBLIC KEY", "3043300506032b6571033a00", &"11".repeat(57));
        let error = PublicKey::of_pem(&ed448).unwrap_err();
        assert!(error.contains("Ed448; openssl pkey -in KEY -pubout"), "{error}");
    }
}
