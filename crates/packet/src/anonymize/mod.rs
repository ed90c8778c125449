//! Anonymisation: a keyed, pure function from addresses, names and texts to pseudonyms.
//!
//! The same key gives the same pseudonyms everywhere, in logs and in packets, so that what was equal
//! stays equal and joins survive. `docs/anonymisation.md` says what is mapped how, and what a
//! pseudonym still tells.
//!
//! | module | concern |
//! |---|---|
//! | `prf` | AES and AES-CMAC, the functions below |
//! | `cryptopan` | Crypto-PAn as published |
//! | `ranges` | [`Keep`]: ranges of addresses that stay |
//! | `address` | IP and MAC addresses, and [`AddressCache`] |
//! | `name` | host names, label by label, and names that are addresses |
//! | `text` | URLs, mail addresses, distinguished names, free text |
//! | [`frame`] | packets |
//! | `key` | [`Key`] |

mod address;
mod cryptopan;
pub mod frame;
mod key;
mod name;
mod prf;
mod ranges;
mod text;

use core::fmt;

pub use address::AddressCache;
pub use key::{Key, KeyError};
pub use ranges::{Cidr, Keep, NoCidr};

use cryptopan::CryptoPan;
use prf::{Domain, Prf};
use ranges::Ranges;

/// What becomes of IP addresses. Names are mapped alike in all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Crypto-PAn, prefix-preserving: the same key gives the same pseudonyms in every run.
    CryptoPan,
    /// All of them are 0.0.0.0 or ::.
    NullIp,
    /// As [`Self::CryptoPan`], by a key that is drawn for each run; named after tcpdpriv, whose `-A50`
    /// does so.
    TcpDriv,
}

/// Maps by one key.
#[derive(Clone)]
pub struct Anonymizer {
    method: Method,
    pan: CryptoPan,
    names: Prf,
    v4: Ranges,
    v6: Ranges,
}

impl Anonymizer {
    /// Maps by `key`; the addresses that `keep` names stay. [`Method::NullIp`] keeps none of the special
    /// ranges, as NetSniff had it.
    #[must_use]
    pub fn new(method: Method, key: &Key, keep: &Keep) -> Self {
        let keep = Keep { special: keep.special && method != Method::NullIp, ..keep.clone() };
        // All keys but Crypto-PAn's own come from the half that its cipher does not use.
        let derived = Prf::new(&key.pad).of(Domain::Key, b"netsniff names");
        Self {
            method,
            pan: CryptoPan::new(&key.cipher, &key.pad),
            names: Prf::new(&derived.to_be_bytes()),
            v4: Ranges::v4(&keep),
            v6: Ranges::v6(&keep),
        }
    }

    /// A name of the key by which to tell whether two outputs have the same one, which tells nothing
    /// else of it.
    #[must_use]
    pub fn key_id(&self) -> u32 {
        let block = self.pan.flips_v6(u128::MAX).to_be_bytes();
        (self.names.of(Domain::KeyId, &block) >> 96) as u32
    }
}

/// Shows nothing of the keys.
impl fmt::Debug for Anonymizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Anonymizer").field("method", &self.method).finish_non_exhaustive()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Crypto-PAn with the special ranges kept.
    pub(crate) fn anonymizer() -> Anonymizer {
        let key = Key::new(core::array::from_fn(|i| i as u8 * 5 + 3));
        Anonymizer::new(Method::CryptoPan, &key, &Keep::default())
    }

    #[test]
    fn keys_have_names_that_differ_and_nothing_prints_a_key() {
        let of = |byte| Anonymizer::new(Method::CryptoPan, &Key::new([byte; 32]), &Keep::default());
        assert_ne!(of(1).key_id(), of(2).key_id());
        assert_eq!(of(1).key_id(), of(1).key_id());
        assert_eq!(format!("{:?}", of(1)), "Anonymizer { method: CryptoPan, .. }");
    }
}
