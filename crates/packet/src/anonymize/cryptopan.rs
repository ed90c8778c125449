//! Crypto-PAn: J. Xu, J. Fan, M. H. Ammar, S. B. Moon, "Prefix-Preserving IP Address Anonymization:
//! Measurement-Based Security Evaluation and a New Cryptography-Based Scheme", ICNP 2002.
//!
//! Two addresses with n leading bits in common have pseudonyms with n leading bits in common. Bit i
//! of a pseudonym is bit i of the address, turned over where a keyed function of the i bits before it
//! says so.

use super::prf::Prf;

/// The mapping under one key.
#[derive(Clone, Debug)]
pub(super) struct CryptoPan {
    cipher: Prf,
    pad: u128,
}

/// Blocks that are encrypted together.
const AT_ONCE: u32 = 32;

impl CryptoPan {
    /// The key as the authors' implementation takes it: 16 bytes for the cipher, 16 for the pad.
    pub(super) fn new(cipher: &[u8; 16], pad: &[u8; 16]) -> Self {
        let cipher = Prf::new(cipher);
        let pad = cipher.block(u128::from_be_bytes(*pad));
        Self { cipher, pad }
    }

    /// The bits of an IPv4 address that are turned over.
    pub(super) fn flips_v4(&self, address: u32) -> u32 {
        self.flips(u128::from(address) << 96, 0)
    }

    /// The same for IPv6: the construction over 128 bits instead of 32.
    pub(super) fn flips_v6(&self, address: u128) -> u128 {
        (0..128)
            .step_by(AT_ONCE as usize)
            .fold(0, |flips, from| flips << AT_ONCE | u128::from(self.flips(address, from)))
    }

    /// The flips of the 32 bits of an address, at the upper end of a block, from bit `from` on.
    fn flips(&self, address: u128, from: u32) -> u32 {
        let mut at = from;
        let inputs = [(); AT_ONCE as usize].map(|()| {
            // The first `at` bits are the address's, the others the pad's.
            let tail = u128::MAX.checked_shr(at).unwrap_or(0);
            at += 1;
            (address & !tail) | (self.pad & tail)
        });
        let outputs = self.cipher.blocks(inputs);
        outputs.iter().fold(0, |flips, output| flips << 1 | (output >> 127) as u32)
    }
}

#[cfg(test)]
mod tests {
    use core::net::{Ipv4Addr, Ipv6Addr};

    use super::*;

    /// The key of the authors' distribution.
    const KEY: [u8; 32] = [
        21, 34, 23, 141, 51, 164, 207, 128, 19, 10, 91, 22, 73, 144, 125, 16, 216, 152, 143, 131,
        121, 121, 101, 39, 98, 87, 76, 45, 42, 132, 34, 2,
    ];

    fn cryptopan() -> CryptoPan {
        let (cipher, pad) = KEY.split_first_chunk().unwrap();
        CryptoPan::new(cipher, pad.try_into().unwrap())
    }

    /// Pairs of `sample_trace_raw.dat` and `sample_trace_sanitized.dat` of the authors' distribution.
    #[test]
    fn ipv4_is_as_the_authors_have_it() {
        let vectors = "128.11.68.132 135.242.180.132 129.118.74.4 134.136.186.123 \
            130.132.252.244 133.68.164.234 141.223.7.43 141.167.8.160 141.233.145.108 141.129.237.235 \
            152.163.225.39 151.140.114.167 156.29.3.236 147.225.12.42 165.247.96.84 162.9.99.234 \
            166.107.77.190 160.132.178.185 192.102.249.13 252.138.62.131 192.215.32.125 252.43.47.189 \
            192.233.80.103 252.25.108.8 192.41.57.43 252.222.221.184 193.150.244.223 253.169.52.216 \
            195.205.63.100 255.186.223.5 198.200.171.101 249.199.68.213 198.26.132.101 249.36.123.202 \
            198.36.213.5 249.7.21.132 198.51.77.238 249.18.186.254 199.217.79.101 248.38.184.213 \
            202.49.198.20 245.206.7.234 203.12.160.252 244.248.163.4 204.184.162.189 243.192.77.90 \
            204.202.136.230 243.178.4.198 204.29.20.4 243.33.20.123 205.178.38.67 242.108.198.51 \
            205.188.147.153 242.96.16.101 207.105.49.5 241.118.205.138 207.188.7.45 241.255.249.220 \
            208.147.89.59 227.237.98.191 209.12.231.7 226.243.167.8 212.120.124.31 228.135.163.231 \
            216.148.237.145 235.84.194.111 24.0.250.221 100.15.198.226 24.13.62.231 100.2.192.247 \
            38.15.67.68 64.3.66.187 4.3.88.225 124.60.155.63 63.14.55.111 95.9.215.7 \
            64.14.118.196 0.255.183.58 64.39.15.238 0.219.7.41 10.185.25.118 117.161.29.118";
        let words: Vec<Ipv4Addr> =
            vectors.split_whitespace().map(|word| word.parse().unwrap()).collect();
        let (pairs, []) = words.as_chunks::<2>() else { panic!("pairs") };
        assert_eq!(pairs.len(), 41);
        let cryptopan = cryptopan();
        for [raw, sanitized] in pairs {
            let bits = raw.to_bits();
            assert_eq!(Ipv4Addr::from_bits(bits ^ cryptopan.flips_v4(bits)), *sanitized, "{raw}");
        }
    }

    /// The vectors of the implementation in Go by Yawning Angel, which others share.
    #[test]
    fn ipv6_is_as_others_have_it() {
        let cryptopan = cryptopan();
        for (raw, sanitized) in [
            ("::1", "78ff:f001:9fc0:20df:8380:b1f1:704:ed"),
            ("::2", "78ff:f001:9fc0:20df:8380:b1f1:704:ef"),
            ("::ffff", "78ff:f001:9fc0:20df:8380:b1f1:704:f838"),
            ("2001:db8::1", "4401:2bc:603f:d91d:27f:ff8e:e6f1:dc1e"),
            ("2001:db8::2", "4401:2bc:603f:d91d:27f:ff8e:e6f1:dc1c"),
        ] {
            let bits = raw.parse::<Ipv6Addr>().unwrap().to_bits();
            let mapped = Ipv6Addr::from_bits(bits ^ cryptopan.flips_v6(bits));
            assert_eq!(mapped, sanitized.parse::<Ipv6Addr>().unwrap(), "{raw}");
        }
    }
}
