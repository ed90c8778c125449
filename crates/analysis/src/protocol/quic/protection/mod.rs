//! The protection of Initial packets, RFC 9001 section 5, whose keys follow from the client's first
//! destination connection identifier. It keeps nothing secret from whoever sees the packets.

use core::fmt;

use aes::Aes128;
use aes::cipher::{BlockCipherEncrypt as _, KeyInit as _};
use aes_gcm::Aes128Gcm;
use aes_gcm::aead::{Aead as _, Payload};
use hkdf::Hkdf;
use sha2::Sha256;

use super::version::Version;

/// Octets of a sample for header protection.
const SAMPLE: usize = 16;
/// Octets of the longest packet number.
const MAX_NUMBER: usize = 4;

/// The keys of one side, as they are: a few packets are opened in a connection, while what a cipher makes of its
/// key takes a kilobyte, and some connections never tell that no more will come.
pub(super) struct Keys {
    key: [u8; 16],
    iv: [u8; 12],
    header: [u8; 16],
    /// The highest packet number so far.
    highest: Option<u64>,
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys").field("highest", &self.highest).finish_non_exhaustive()
    }
}

impl Keys {
    /// The keys of client and server.
    pub(super) fn of(version: Version, client_destination: &[u8]) -> Option<[Self; 2]> {
        let (_, initial) = Hkdf::<Sha256>::extract(Some(&version.salt), client_destination);
        let side = |label| {
            let secret: [u8; 32] = expand(&initial, ["", label])?;
            Self::of_secret(version, &secret)
        };
        Some([side("client in")?, side("server in")?])
    }

    fn of_secret(version: Version, secret: &[u8]) -> Option<Self> {
        let secret = Hkdf::<Sha256>::from_prk(secret).ok()?;
        let prefix = version.label();
        let key = expand(&secret, [prefix, "key"])?;
        let iv = expand(&secret, [prefix, "iv"])?;
        let header = expand(&secret, [prefix, "hp"])?;
        Some(Self { key, iv, header, highest: None })
    }

    /// What a packet, whose number begins at `number_at`, protects; `None` where it was changed or
    /// is no packet of this side.
    pub(super) fn open(&mut self, packet: &[u8], number_at: usize) -> Option<Vec<u8>> {
        let sample_at = number_at.checked_add(MAX_NUMBER)?;
        let sample: [u8; SAMPLE] = *packet.get(sample_at..)?.first_chunk()?;
        let [first_mask, masks @ ..] = self.mask(sample);
        let first = packet.first()? ^ first_mask & 0x0f;
        let number_len = usize::from(first & 3) + 1;
        let payload_at = number_at.checked_add(number_len)?;
        let mut header = packet.get(..payload_at)?.to_vec();
        *header.first_mut()? = first;
        let mut number = 0_u64;
        for (octet, mask) in header.iter_mut().skip(number_at).zip(masks) {
            *octet ^= mask;
            number = number << 8 | u64::from(*octet);
        }
        let number = self.whole_number(number, number_len);
        let payload = Payload { msg: packet.get(payload_at..)?, aad: &header };
        let cipher = Aes128Gcm::new(&self.key.into());
        let plain = cipher.decrypt(&self.nonce(number).into(), payload).ok()?;
        self.highest = Some(self.highest.map_or(number, |highest| highest.max(number)));
        Some(plain)
    }

    /// The mask of header protection, RFC 9001 section 5.4.3.
    fn mask(&self, sample: [u8; SAMPLE]) -> [u8; SAMPLE] {
        let mut block = sample.into();
        Aes128::new(&self.header.into()).encrypt_block(&mut block);
        block.into()
    }

    fn nonce(&self, number: u64) -> [u8; 12] {
        let mut nonce = self.iv;
        for (octet, number) in nonce.iter_mut().skip(4).zip(number.to_be_bytes()) {
            *octet ^= number;
        }
        nonce
    }

    /// The packet number of which a packet has the last octets, RFC 9000 section A.3.
    fn whole_number(&self, truncated: u64, len: usize) -> u64 {
        let window = 1_u64 << (len * 8).min(32);
        let expected = self.highest.map_or(0, |highest| highest.saturating_add(1));
        let candidate = expected & !(window - 1) | truncated;
        if candidate.saturating_add(window / 2) <= expected && candidate < (1 << 62) - window {
            candidate + window
        } else if candidate > expected.saturating_add(window / 2) && candidate >= window {
            candidate - window
        } else {
            candidate
        }
    }
}

/// HKDF-Expand-Label without a context, RFC 8446 section 7.1. The label is in two parts.
fn expand<const LEN: usize>(secret: &Hkdf<Sha256>, label: [&str; 2]) -> Option<[u8; LEN]> {
    const PREFIX: &str = "tls13 ";
    let [begin, end] = label.map(str::as_bytes);
    let label_len = u8::try_from(PREFIX.len() + begin.len() + end.len()).ok()?;
    let len = u16::try_from(LEN).ok()?.to_be_bytes();
    let mut output = [0; LEN];
    let info = [&len[..], &[label_len], PREFIX.as_bytes(), begin, end, &[0]];
    secret.expand_multi_info(&info, &mut output).ok()?;
    Some(output)
}

#[cfg(test)]
pub(super) mod tests;
