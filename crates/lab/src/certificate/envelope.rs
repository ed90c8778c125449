//! What a statement is signed in: the envelope of DSSE 1.0 (<https://github.com/secure-systems-lab/dsse>). It holds the
//! bytes of the statement themselves, so that nothing depends on how JSON is written, and the signature covers their
//! type.

use std::fmt;

use base64ct::{Base64, Base64Url, Encoding as _};
use serde::{Deserialize, Serialize};

use super::key::{PrivateKey, PublicKey};

/// The type of what is signed.
pub const PAYLOAD_TYPE: &str = "application/vnd.netsniff.certificate+json";

/// Why a certificate is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EnvelopeError {
    /// It is no envelope; why not.
    Form(String),
    /// What is signed is of another type.
    Type(String),
    /// No signature is of this key over these bytes.
    Signature,
    /// What is signed is no statement; why not.
    Statement(String),
}

impl fmt::Display for EnvelopeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Form(why) => write!(f, "it is no certificate: {why}"),
            Self::Type(what) => write!(f, "what is signed is {what}, not {PAYLOAD_TYPE}"),
            Self::Signature => f.write_str(
                "the signature is not valid: the statement was changed, or another key signed it",
            ),
            Self::Statement(why) => write!(f, "what is signed is no statement: {why}"),
        }
    }
}

impl std::error::Error for EnvelopeError {}

/// A signed envelope (DSSE 1.0).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Envelope {
    payload_type: String,
    payload: String,
    signatures: Vec<Signed>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Signed {
    /// A hint alone, which nothing is decided by.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    keyid: String,
    sig: String,
}

impl Envelope {
    /// Signs a payload; `keyid` tells people which key it was.
    #[must_use]
    pub fn seal(payload: &[u8], key: &PrivateKey, keyid: String) -> Self {
        let signature = key.sign(&encoding(PAYLOAD_TYPE, payload));
        Self {
            payload_type: PAYLOAD_TYPE.to_owned(),
            payload: Base64::encode_string(payload),
            signatures: vec![Signed { keyid, sig: Base64::encode_string(&signature) }],
        }
    }

    /// The envelope of a file.
    ///
    /// # Errors
    ///
    /// Where it is none.
    pub fn parse(text: &str) -> Result<Self, EnvelopeError> {
        serde_json::from_str(text).map_err(|error| EnvelopeError::Form(error.to_string()))
    }

    /// The payload, whoever signed it.
    ///
    /// # Errors
    ///
    /// Where it is no base64.
    pub fn unverified(&self) -> Result<Vec<u8>, EnvelopeError> {
        decode(&self.payload)
            .ok_or_else(|| EnvelopeError::Form("its payload is no base64".to_owned()))
    }

    /// The payload, if it was signed with this key: the very bytes that the signature covers.
    ///
    /// # Errors
    ///
    /// Where it was not, or is of another type.
    pub fn open(&self, key: &PublicKey) -> Result<Vec<u8>, EnvelopeError> {
        let payload = self.unverified()?;
        let message = encoding(&self.payload_type, &payload);
        let is_of_key = |signed: &Signed| {
            decode(&signed.sig).is_some_and(|signature| key.verifies(&message, &signature))
        };
        if !self.signatures.iter().any(is_of_key) {
            return Err(EnvelopeError::Signature);
        }
        if self.payload_type != PAYLOAD_TYPE {
            return Err(EnvelopeError::Type(self.payload_type.clone()));
        }
        Ok(payload)
    }
}

/// What is signed: DSSE's pre-authentication encoding, PAE.
fn encoding(kind: &str, payload: &[u8]) -> Vec<u8> {
    let head = format!("DSSEv1 {} {kind} {} ", kind.len(), payload.len());
    [head.as_bytes(), payload].concat()
}

/// Both alphabets of base64 are to be taken.
fn decode(text: &str) -> Option<Vec<u8>> {
    Base64::decode_vec(text).or_else(|_| Base64Url::decode_vec(text)).ok()
}

#[cfg(test)]
mod tests {
    use super::super::key::tests::{PRIVATE, PUBLIC};
    use super::*;

    fn keys() -> (PrivateKey, PublicKey) {
        (PrivateKey::of_pem(PRIVATE).unwrap(), PublicKey::of_pem(PUBLIC).unwrap())
    }

    #[test]
    fn what_is_signed_is_encoded_as_dsse_says() {
        assert_eq!(
            encoding("http://example.com/HelloWorld", b"hello world"),
            b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
        );
        assert_eq!(encoding("", b""), b"DSSEv1 0  0 ");
        assert_eq!(encoding("\u{e9}", b"x"), "DSSEv1 2 \u{e9} 1 x".as_bytes());
    }

    #[test]
    fn every_flipped_bit_is_refused() {
        let (private, public) = keys();
        let payload = b"{\"rate\": 400000}";
        let whole = Envelope::seal(payload, &private, String::new());
        assert_eq!(whole.open(&public).unwrap(), payload);
        for bit in 0..payload.len() * 8 {
            let mut changed = payload.to_vec();
            changed[bit / 8] ^= 1 << (bit % 8);
            let envelope = Envelope { payload: Base64::encode_string(&changed), ..whole.clone() };
            assert_eq!(envelope.open(&public), Err(EnvelopeError::Signature), "bit {bit}");
        }
        let signature = decode(&whole.signatures[0].sig).unwrap();
        for bit in 0..signature.len() * 8 {
            let mut changed = signature.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            let mut envelope = whole.clone();
            envelope.signatures[0].sig = Base64::encode_string(&changed);
            assert_eq!(envelope.open(&public), Err(EnvelopeError::Signature), "bit {bit}");
        }
    }

    /// Of the file itself, only the hint of which key it was is not covered, nor how JSON is written.
    #[test]
    fn every_flipped_bit_of_the_file_is_refused() {
        let (private, public) = keys();
        let payload = b"{\"rate\": 400000}";
        let text =
            serde_json::to_string(&Envelope::seal(payload, &private, "k".to_owned())).unwrap();
        let (mut taken, mut refused) = (Vec::new(), 0);
        for bit in 0..text.len() * 8 {
            let mut changed = text.clone().into_bytes();
            changed[bit / 8] ^= 1 << (bit % 8);
            let Ok(changed) = String::from_utf8(changed) else { continue };
            match Envelope::parse(&changed).and_then(|envelope| envelope.open(&public)) {
                Ok(opened) => {
                    assert_eq!(opened, payload, "{changed}");
                    taken.push(bit / 8);
                }
                Err(_) => refused += 1,
            }
        }
        let hint = text.find("\"keyid\":\"k\"").unwrap();
        assert!(taken.iter().all(|at| (hint..hint + 11).contains(at)), "{taken:?}");
        assert!(refused > 1000, "{refused}");
    }

    #[test]
    fn other_keys_types_and_forms_are_refused() {
        let (private, public) = keys();
        let whole = Envelope::seal(b"x", &private, String::new());
        let other = PRIVATE.replace("IIDpecF2", "IIDpecF3");
        let other = PrivateKey::of_pem(&other).unwrap();
        assert_eq!(whole.open(&other.public()), Err(EnvelopeError::Signature));
        // A valid signature over something else.
        let sig = Base64::encode_string(&private.sign(&encoding("text/plain", b"x")));
        let mut plain = Envelope { payload_type: "text/plain".to_owned(), ..whole.clone() };
        assert_eq!(plain.open(&public), Err(EnvelopeError::Signature));
        plain.signatures[0].sig = sig;
        assert_eq!(plain.open(&public), Err(EnvelopeError::Type("text/plain".to_owned())));
        plain.payload_type = PAYLOAD_TYPE.to_owned();
        assert_eq!(plain.open(&public), Err(EnvelopeError::Signature));
        let none = Envelope { signatures: Vec::new(), ..whole.clone() };
        assert_eq!(none.open(&public), Err(EnvelopeError::Signature));
        // One of several is enough, in either alphabet.
        let mut two = whole.clone();
        two.signatures.insert(0, Signed { keyid: String::new(), sig: "AAAA".to_owned() });
        two.signatures[1].sig = two.signatures[1].sig.replace('+', "-").replace('/', "_");
        assert_eq!(two.open(&public).unwrap(), b"x");
        let bad = Envelope { payload: "eA=".to_owned(), ..whole };
        assert!(matches!(bad.open(&public), Err(EnvelopeError::Form(_))));
        for text in ["", "{}", "[1]", "{\"payload\":\"eA==\",\"payloadType\":\"x\"}"] {
            assert!(matches!(Envelope::parse(text), Err(EnvelopeError::Form(_))), "{text}");
        }
    }
}
