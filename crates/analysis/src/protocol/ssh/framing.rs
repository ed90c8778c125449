//! How long what is encrypted is: where packets tell their lengths, and which lengths packets have.

/// Octets of a packet whose framing is not known, at least (RFC 4253, section 6).
const MIN_PACKET: u64 = 16;
/// Octets of a packet by its length field, at least: a block.
const MIN_LENGTH: u64 = 8;
/// Octets of the length before a packet.
const LENGTH: u64 = 4;
/// Octets of a packet by its length field, beyond which it is none (OpenSSH's `PACKET_MAX_SIZE`).
const MAX_PACKET: u32 = 256 << 10;
/// Packets in one message, beyond which any number of octets could be some.
const MAX_PACKETS: u64 = 4;

/// How one direction's packets are encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// Each packet begins with its length in the clear: with AES-GCM (RFC 5647, section 7.2) and with
    /// encrypt-then-MAC. So many octets of a code stand behind it.
    Clear { code: u64 },
    /// Lengths are encrypted. A packet has blocks of this size, and so many octets beside them.
    Hidden { block: u64, beside: u64 },
    /// A cipher or a code that is not known.
    Unknown,
}

impl Framing {
    /// The framing of a cipher and a MAC.
    pub(super) fn of(cipher: &[u8], mac: &[u8]) -> Self {
        match cipher {
            b"chacha20-poly1305@openssh.com" | b"chacha20-poly1305" => {
                Self::Hidden { block: 8, beside: LENGTH + 16 }
            }
            b"aes128-gcm@openssh.com"
            | b"aes256-gcm@openssh.com"
            | b"AEAD_AES_128_GCM"
            | b"AEAD_AES_256_GCM" => Self::Clear { code: 16 },
            _ => match (code_len(mac), mac.ends_with(b"-etm@openssh.com"), block_len(cipher)) {
                (Some(code), true, _) => Self::Clear { code },
                (Some(code), false, Some(block)) => Self::Hidden { block, beside: code },
                _ => Self::Unknown,
            },
        }
    }

    /// Whether so many octets can be whole packets.
    pub(super) fn can_be_whole(self, len: u64) -> bool {
        match self {
            Self::Hidden { block, beside } => (1..=MAX_PACKETS).any(|packets| {
                let blocks = len.checked_sub(packets * beside);
                blocks.is_some_and(|it| it % block == 0 && it >= packets * block)
            }),
            Self::Clear { .. } | Self::Unknown => len >= MIN_PACKET,
        }
    }
}

/// Octets of a MAC's code.
fn code_len(mac: &[u8]) -> Option<u64> {
    let name = mac.strip_suffix(b"-etm@openssh.com").unwrap_or(mac);
    let name = name.strip_suffix(b"@openssh.com").unwrap_or(name);
    Some(match name {
        b"umac-64" => 8,
        b"hmac-md5-96" | b"hmac-sha1-96" | b"hmac-sha2-256-96" | b"hmac-sha2-512-96" => 12,
        b"hmac-md5" | b"umac-128" => 16,
        b"hmac-sha1" | b"hmac-ripemd160" | b"hmac-ripemd" => 20,
        b"hmac-sha2-256" => 32,
        b"hmac-sha2-512" => 64,
        _ => return None,
    })
}

/// Octets of a cipher's block; 8 for those of streams (RFC 4253, section 6).
fn block_len(cipher: &[u8]) -> Option<u64> {
    let begins = |names: &[&[u8]]| names.iter().any(|name| cipher.starts_with(name));
    if begins(&[b"aes", b"rijndael", b"twofish", b"serpent", b"camellia"]) {
        Some(16)
    } else if begins(&[b"3des", b"blowfish", b"cast128", b"idea", b"des", b"arcfour"]) {
        Some(8)
    } else {
        None
    }
}

/// Lengths in the clear, from whatever pieces they come in.
#[derive(Debug, Default)]
pub(super) struct Lengths {
    header: [u8; 4],
    have: u8,
    /// Octets of the packet that are to come, behind its length.
    left: u64,
    /// Octets of the packet.
    len: u64,
}

/// What is none of a packet's lengths.
#[derive(Debug)]
pub(super) struct NoLength;

impl Lengths {
    /// Takes a piece, and hands the length of each packet that it completes to `take`.
    pub(super) fn push(
        &mut self,
        mut piece: &[u8],
        code: u64,
        mut take: impl FnMut(u64),
    ) -> Result<(), NoLength> {
        while let Some((&first, rest)) = piece.split_first() {
            if let Some(octet) = self.header.get_mut(usize::from(self.have)) {
                *octet = first;
                self.have += 1;
                piece = rest;
                if self.have == 4 {
                    let len = u32::from_be_bytes(self.header);
                    if len > MAX_PACKET || u64::from(len) < MIN_LENGTH {
                        return Err(NoLength);
                    }
                    self.left = u64::from(len) + code;
                    self.len = LENGTH + self.left;
                }
                continue;
            }
            let now = usize::try_from(self.left).unwrap_or(usize::MAX).min(piece.len());
            self.left -= now as u64;
            piece = piece.get(now..).unwrap_or_default();
            if self.left == 0 {
                self.have = 0;
                take(self.len);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CTR: Framing = Framing::Hidden { block: 16, beside: 32 };

    #[test]
    fn ciphers_and_codes_tell_the_framing() {
        let of = |cipher: &str, mac: &str| Framing::of(cipher.as_bytes(), mac.as_bytes());
        assert_eq!(of("aes128-ctr", "hmac-sha2-256"), CTR);
        let clear = Framing::Clear { code: 32 };
        assert_eq!(of("aes128-ctr", "hmac-sha2-256-etm@openssh.com"), clear);
        assert_eq!(of("aes256-gcm@openssh.com", "hmac-sha1"), Framing::Clear { code: 16 });
        let chacha = Framing::Hidden { block: 8, beside: 20 };
        assert_eq!(of("chacha20-poly1305@openssh.com", "umac-64-etm@openssh.com"), chacha);
        assert_eq!(of("3des-cbc", "hmac-md5-96"), Framing::Hidden { block: 8, beside: 12 });
        assert_eq!(of("aes128-ctr", "hmac-new"), Framing::Unknown);
        assert_eq!(of("new", "hmac-sha1"), Framing::Unknown);
    }

    #[test]
    fn packets_have_blocks_and_a_code() {
        let whole = |len| CTR.can_be_whole(len);
        assert_eq!([48, 64, 96, 112].map(whole), [true; 4]);
        assert_eq!([1, 32, 47, 49, 63].map(whole), [false; 5]);
    }

    #[test]
    fn lengths_are_the_same_however_they_are_cut() {
        let packet = |len: u8| [&[0, 0, 0, len][..], &vec![9; usize::from(len) + 16]].concat();
        let all = [packet(32), packet(16), packet(200)].concat();
        let lengths = |size: usize| {
            let (mut lengths, mut found) = (Lengths::default(), vec![]);
            for piece in all.chunks(size) {
                lengths.push(piece, 16, |len| found.push(len)).unwrap();
            }
            found
        };
        for size in 1..=all.len() {
            assert_eq!(lengths(size), [52, 36, 220], "{size}");
        }
        assert!(Lengths::default().push(&[0xff; 4], 16, |_| ()).is_err());
        assert!(Lengths::default().push(&[0, 0, 0, 1], 16, |_| ()).is_err());
    }
}
