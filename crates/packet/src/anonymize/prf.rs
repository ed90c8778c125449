//! The keyed functions below all mappings: AES-128 as a block function, and AES-CMAC over bytes.

use core::fmt;

use aes::Aes128Enc;
use aes::cipher::{Array, BlockCipherEncrypt as _, KeyInit as _};

/// A block of AES.
pub(super) const BLOCK: usize = 16;

/// AES-128 under one key, and the subkeys that AES-CMAC needs (RFC 4493, section 2.3).
#[derive(Clone)]
pub(super) struct Prf {
    cipher: Aes128Enc,
    subkeys: [u128; 2],
}

/// What a mapping is of, so that equal bytes of different kinds have pseudonyms that differ.
#[derive(Clone, Copy, Debug)]
pub(super) enum Domain {
    /// A label of a host name, in lower case.
    Label = 1,
    /// Any other text.
    Text = 2,
    /// A MAC address.
    Mac = 3,
    /// A hash of content.
    Hash = 4,
    /// The identifier of the key.
    KeyId = 5,
    /// A key that is derived from another.
    Key = 6,
    /// Bytes of a packet's payload.
    Payload = 7,
}

impl Prf {
    pub(super) fn new(key: &[u8; BLOCK]) -> Self {
        let cipher = Aes128Enc::new(&Array::from(*key));
        let mut zero = Array::from([0; BLOCK]);
        cipher.encrypt_block(&mut zero);
        let first = double(u128::from_be_bytes(zero.into()));
        Self { cipher, subkeys: [first, double(first)] }
    }

    pub(super) fn block(&self, input: u128) -> u128 {
        let mut block = Array::from(input.to_be_bytes());
        self.cipher.encrypt_block(&mut block);
        u128::from_be_bytes(block.into())
    }

    /// Several blocks at once, which a processor overlaps.
    pub(super) fn blocks<const N: usize>(&self, inputs: [u128; N]) -> [u128; N] {
        let mut blocks = inputs.map(|input| Array::from(input.to_be_bytes()));
        self.cipher.encrypt_blocks(&mut blocks);
        blocks.map(|block| u128::from_be_bytes(block.into()))
    }

    /// AES-CMAC of the domain's byte and `bytes`, which is a pseudo-random function of them.
    pub(super) fn of(&self, domain: Domain, bytes: &[u8]) -> u128 {
        let Some(room) = bytes.get(..BLOCK - 1) else { return self.cmac(&[domain as u8], bytes) };
        let mut head = [0; BLOCK];
        head[0] = domain as u8;
        head[1..].copy_from_slice(room);
        self.cmac(&head, bytes.get(BLOCK - 1..).unwrap_or_default())
    }

    /// AES-CMAC, RFC 4493, section 2.4, of `head` and `rest`. Where there is a rest, `head` must be a
    /// whole block or have room for all of it.
    fn cmac(&self, head: &[u8], rest: &[u8]) -> u128 {
        if head.len() == BLOCK && !rest.is_empty() {
            let state = self.block(word(head));
            return self.tail(state, rest);
        }
        let mut block = [0; BLOCK];
        let mut len = 0;
        for (to, from) in block.iter_mut().zip(head.iter().chain(rest)) {
            *to = *from;
            len += 1;
        }
        self.tail(0, &block[..len])
    }

    /// The blocks from a state on, the last one masked by a subkey.
    fn tail(&self, mut state: u128, bytes: &[u8]) -> u128 {
        let last = bytes.len().saturating_sub(1) / BLOCK * BLOCK;
        let (whole, last) = bytes.split_at(last);
        for block in whole.chunks_exact(BLOCK) {
            state = self.block(state ^ word(block));
        }
        let [whole_key, padded_key] = self.subkeys;
        let masked = if last.len() == BLOCK {
            word(last) ^ whole_key
        } else {
            let mut padded = [0; BLOCK];
            padded[..last.len()].copy_from_slice(last);
            padded[last.len()] = 0x80;
            word(&padded) ^ padded_key
        };
        self.block(state ^ masked)
    }
}

/// A block as a number; zeros behind what is shorter.
fn word(bytes: &[u8]) -> u128 {
    let mut block = [0; BLOCK];
    block.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
    u128::from_be_bytes(block)
}

/// Doubling in the field of AES-CMAC.
const fn double(value: u128) -> u128 {
    (value << 1) ^ if value >> 127 == 1 { 0x87 } else { 0 }
}

/// Shows nothing of the key.
impl fmt::Debug for Prf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Prf")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: [u8; 16] = 0x2b7e_1516_28ae_d2a6_abf7_1588_09cf_4f3c_u128.to_be_bytes();
    const MESSAGE: [u8; 64] = {
        let words: [u128; 4] = [
            0x6bc1_bee2_2e40_9f96_e93d_7e11_7393_172a,
            0xae2d_8a57_1e03_ac9c_9eb7_6fac_45af_8e51,
            0x30c8_1c46_a35c_e411_e5fb_c119_1a0a_52ef,
            0xf69f_2445_df4f_9b17_ad2b_417b_e66c_3710,
        ];
        let mut bytes = [0; 64];
        let mut at = 0;
        while at < 64 {
            bytes[at] = words[at / 16].to_be_bytes()[at % 16];
            at += 1;
        }
        bytes
    };

    /// The vectors of RFC 4493, section 4.
    #[test]
    fn cmac_is_that_of_the_rfc() {
        let prf = Prf::new(&KEY);
        assert_eq!(prf.subkeys[0], 0xfbee_d618_3571_3366_7c85_e08f_7236_a8de);
        for (len, expected) in [
            (0, 0xbb1d_6929_e959_3728_7fa3_7d12_9b75_6746_u128),
            (16, 0x070a_16b4_6b4d_4144_f79b_dd9d_d04a_287c),
            (40, 0xdfa6_6747_de9a_e630_30ca_3261_1497_c827),
            (64, 0x51f0_bebf_7e3b_9d92_fc49_7417_7936_3cfe),
        ] {
            let message = &MESSAGE[..len];
            let (head, rest) = message.split_at(len.min(BLOCK));
            assert_eq!(prf.cmac(head, rest), expected, "{len} bytes");
        }
    }

    #[test]
    fn domains_and_lengths_are_told_apart() {
        let prf = Prf::new(&KEY);
        let mut seen = std::collections::BTreeSet::new();
        for len in 0..=64 {
            for domain in [Domain::Label, Domain::Text] {
                assert!(seen.insert(prf.of(domain, &MESSAGE[..len])), "{domain:?} {len}");
                assert!(seen.insert(prf.of(domain, &[0; 64][..len])) || len == 0);
            }
        }
        // What is hashed is the domain's byte before the bytes.
        let message = [&[Domain::Text as u8], &MESSAGE[..40]].concat();
        let (head, rest) = message.split_at(BLOCK);
        assert_eq!(prf.of(Domain::Text, &MESSAGE[..40]), prf.cmac(head, rest));
    }
}
