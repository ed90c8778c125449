//! Community ID version 1: a hash of a flow that is equal in other tools,
//! <https://github.com/corelight/community-id-spec>.

use core::net::IpAddr;

use sha1::{Digest, Sha1};

use super::{FlowKey, ICMP, ICMPV6, TCP, UDP};

/// Version prefix and 28 characters of base 64.
const LEN: usize = 30;

/// A Community ID as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommunityId([u8; LEN]);

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

impl CommunityId {
    /// The ID of a flow with seed 0. Its key is ordered as the specification orders endpoints.
    #[must_use]
    pub fn of(key: &FlowKey) -> Self {
        let mut input = [0; 40];
        // The first two bytes are the seed.
        let mut len = 2;
        let mut put = |bytes: &[u8]| {
            input[len..len + bytes.len()].copy_from_slice(bytes);
            len += bytes.len();
        };
        for end in [key.low(), key.high()] {
            match end.address.to_ip() {
                IpAddr::V4(v4) => put(&v4.octets()),
                IpAddr::V6(v6) => put(&v6.octets()),
            }
        }
        put(&[key.protocol, 0]);
        if matches!(key.protocol, TCP | UDP | ICMP | ICMPV6) {
            put(&key.low().port.to_be_bytes());
            put(&key.high().port.to_be_bytes());
        }
        Self(encode(&Sha1::digest(&input[..len]).into()))
    }

    /// An ID from its text; `None` where that is no ID of version 1.
    #[must_use]
    pub fn from_text(text: &str) -> Option<Self> {
        let digits = text.strip_prefix("1:")?.strip_suffix('=')?;
        let is_base64 = digits.bytes().all(|byte| BASE64.contains(&byte));
        text.as_bytes().try_into().ok().filter(|_| is_base64).map(Self)
    }

    /// The text as ASCII.
    #[must_use]
    #[inline]
    pub const fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The text, `1:` and base 64.
    #[must_use]
    pub fn as_str(&self) -> &str {
        core::str::from_utf8(&self.0).unwrap_or_default()
    }
}

fn encode(digest: &[u8; 20]) -> [u8; LEN] {
    let mut text = [b'='; LEN];
    text[..2].copy_from_slice(b"1:");
    let mut at = 2;
    for group in digest.chunks(3) {
        let byte = |i: usize| u32::from(group.get(i).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        // A last group of two bytes fills three characters; the fourth stays padding.
        for i in 0..=group.len() {
            text[at + i] = BASE64[(bits >> (18 - 6 * i)) as usize & 63];
        }
        at += 4;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::Endpoint;
    use super::*;

    fn id(source: &str, from: u16, destination: &str, to: u16, protocol: u8) -> CommunityId {
        let end = |text: &str, port| {
            let ip: IpAddr = text.parse().unwrap();
            Endpoint { address: ip.into(), port }
        };
        CommunityId::of(&FlowKey::new(end(source, from), end(destination, to), protocol, false).0)
    }

    /// Vectors of the specification's baseline.
    #[test]
    fn matches_the_specification() {
        let tcp = id("128.232.110.120", 34855, "66.35.250.204", 80, TCP);
        assert_eq!(tcp.as_str(), "1:LQU9qZlK+B5F3KDmev6m5PMibrg=");
        assert_eq!(id("66.35.250.204", 80, "128.232.110.120", 34855, TCP), tcp);
        let udp = id("192.168.1.52", 54585, "8.8.8.8", 53, UDP);
        assert_eq!(udp.as_str(), "1:d/FP5EW3wiY1vCndhwleRRKHowQ=");
        let icmp = id("192.168.0.89", 8, "192.168.0.1", 0, ICMP);
        assert_eq!(icmp.as_str(), "1:X0snYXpgwiv9TZtqg64sgzUn6Dk=");
        assert_eq!(CommunityId::from_text(icmp.as_str()), Some(icmp));
        assert_eq!(CommunityId::from_text("2:X0snYXpgwiv9TZtqg64sgzUn6Dk="), None);
    }
}
