//! The Internet checksum, RFC 1071: computing it and judging it.

use crate::Address;
use crate::decode::{Decoded, Ip, Transport, TunnelPorts, tunnel};
use crate::wire::ipv4::{Ipv4View, protocol};
use crate::wire::tcp::TcpView;
use crate::wire::udp::UdpView;

/// What a checksum says about the bytes that it covers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChecksumVerdict {
    /// The checksum fits.
    Good,
    /// It does not fit: the bytes were damaged, or the sender's card has yet to fill it in and
    /// nothing tells.
    Bad,
    /// It was left to the network card: the field holds the sum of the pseudo-header, not inverted,
    /// which is what Linux leaves there for a card that adds the rest (`CHECKSUM_PARTIAL` in the
    /// kernel's `include/linux/skbuff.h`). So look segments that were captured on their sender. Of
    /// damaged ones, 1 in 65,536 looks so by chance.
    Partial,
    /// There is none: UDP whose sender left it out, or a protocol that has none.
    Absent,
    /// It cannot be told: bytes are missing, or the algorithm is another (SCTP).
    #[default]
    Unknown,
}

impl ChecksumVerdict {
    /// Every verdict, in the order of its numbers.
    pub const ALL: &[Self] = &[Self::Good, Self::Bad, Self::Partial, Self::Absent, Self::Unknown];

    /// Whether it is wrong, for whatever reason.
    #[must_use]
    #[inline]
    pub const fn is_wrong(self) -> bool {
        matches!(self, Self::Bad | Self::Partial)
    }

    const fn from_sum(sum: u16) -> Self {
        if sum == 0xffff { Self::Good } else { Self::Bad }
    }
}

/// A one's complement sum in progress.
///
/// The sum does not depend on the width of the words, nor on their byte order but for a final swap
/// (RFC 1071, section 2): 64 bits at a time, the first byte the lowest, with the carry added at the
/// other end.
#[derive(Clone, Copy, Debug, Default)]
struct Sum(u64);

impl Sum {
    /// Adds the header of IPv4 without options.
    #[inline(always)]
    fn ipv4_header(header: &[u8; Ipv4View::LEN]) -> Self {
        // Five words of 32 bits cannot overflow the sum.
        header
            .as_chunks::<4>()
            .0
            .iter()
            .fold(Self(0), |sum, word| Self(sum.0 + u64::from(u32::from_le_bytes(*word))))
    }

    /// Adds bytes; all but the last run must have an even length.
    #[inline]
    fn bytes(self, data: &[u8]) -> Self {
        // Runs of a length that the compiler knows become one addition for each word.
        let (long, rest) = data.as_chunks::<64>();
        let (short, rest) = rest.as_chunks::<32>();
        let (words, rest) = rest.as_chunks::<8>();
        let sum = long.iter().fold(self, |sum, run| sum.run(run.as_chunks().0));
        let sum = short.iter().fold(sum, |sum, run| sum.run(run.as_chunks().0));
        let sum = words.iter().fold(sum, |sum, word| sum.word(u64::from_le_bytes(*word)));
        sum.word(last_word(rest))
    }

    /// Adds words with one chain of carries.
    #[inline(always)]
    fn run(self, words: &[[u8; 8]]) -> Self {
        let (mut sum, mut carry) = (self.0, false);
        for word in words {
            (sum, carry) = sum.carrying_add(u64::from_le_bytes(*word), carry);
        }
        Self(sum).word(u64::from(carry))
    }

    /// Adds 8 bytes, the first of which is the lowest.
    #[inline]
    const fn word(self, word: u64) -> Self {
        // A sum that has overflowed leaves room for the carry.
        let (sum, carry) = self.0.overflowing_add(word);
        Self(sum + carry as u64)
    }

    #[inline]
    fn pseudo_header(source: Address, destination: Address, number: u8, len: u32) -> Self {
        // All of it begins at even offsets, whose order is of no consequence.
        let sum = Self(u64::from(number) << 8).word(u64::from(len.swap_bytes()));
        // An address of IPv4 is its last 4 bytes; the mapping prefix before them adds 0xffff, which is 0 to a sum that is
        // not 0 without it.
        let add = |sum: Self, address: Address| {
            let [high, low] = address.words();
            sum.word(high.swap_bytes()).word(low.swap_bytes())
        };
        add(add(sum, source), destination)
    }

    /// The sum as 16 bits in network byte order.
    #[inline]
    const fn fold(self) -> u16 {
        let sum = (self.0 >> 32) + (self.0 & 0xffff_ffff);
        let sum = (sum >> 32) + (sum & 0xffff_ffff);
        let sum = (sum >> 16) + (sum & 0xffff);
        let sum = (sum >> 16) + (sum & 0xffff);
        ((sum >> 16) as u16 + sum as u16).swap_bytes()
    }
}

/// Fewer than 8 bytes as one word, zeros behind them.
#[inline]
fn last_word(rest: &[u8]) -> u64 {
    let (mut word, mut shift) = (0, 0);
    let mut rest = rest;
    if let Some((four, behind)) = rest.split_first_chunk::<4>() {
        (word, shift, rest) = (u64::from(u32::from_le_bytes(*four)), 32, behind);
    }
    if let Some((two, behind)) = rest.split_first_chunk::<2>() {
        word |= u64::from(u16::from_le_bytes(*two)) << shift;
        (shift, rest) = (shift + 16, behind);
    }
    if let [byte, ..] = rest {
        word |= u64::from(*byte) << shift;
    }
    word
}

/// The checksum of bytes whose checksum field is zero, as for IPv4 headers and ICMP.
#[must_use]
pub fn compute(data: &[u8]) -> u16 {
    !Sum::default().bytes(data).fold()
}

/// The checksum of TCP, UDP or ICMPv6, with the pseudo-header of RFC 9293 or RFC 8200, section 8.1.
///
/// `segment` is header and payload with a checksum field of zero; `destination` is the final one.
/// For UDP a result of 0 is returned as 0xffff, since 0 means that there is none.
#[must_use]
pub fn compute_with_pseudo_header(
    source: Address,
    destination: Address,
    number: u8,
    segment: &[u8],
) -> u16 {
    let len = u32::try_from(segment.len()).unwrap_or(u32::MAX);
    let sum = Sum::pseudo_header(source, destination, number, len).bytes(segment).fold();
    if number == protocol::UDP && sum == 0xffff { 0xffff } else { !sum }
}

/// Judges the header of IPv4 that starts `data`; absent for IPv6.
#[must_use]
#[inline]
pub fn ip_header(data: &[u8]) -> ChecksumVerdict {
    if let Some(header @ [0x45, ..]) = data.first_chunk::<{ Ipv4View::LEN }>() {
        // No options, as nearly always.
        return ChecksumVerdict::from_sum(Sum::ipv4_header(header).fold());
    }
    any_ip_header(data)
}

fn any_ip_header(data: &[u8]) -> ChecksumVerdict {
    let Some(view) = Ipv4View::parse(data) else { return ChecksumVerdict::Unknown };
    if view.version() != 4 {
        return ChecksumVerdict::Absent;
    }
    match data.get(..view.header_len()) {
        Some(header) if header.len() >= Ipv4View::LEN => {
            ChecksumVerdict::from_sum(Sum::default().bytes(header).fold())
        }
        _ => ChecksumVerdict::Unknown,
    }
}

/// Judges the transport checksum of a packet that was decoded from `data`.
///
/// Unknown for fragments, where the capture cut the packet, and where UDP's length field does not
/// fit its datagram. The pseudo-header has the final destination, which a routing header may name,
/// and the home address where there is one (RFC 8200, section 8.1; RFC 6275, section 11.3.1).
///
/// UDP over IPv6 must have a checksum (RFC 8200, section 8.1), so that 0 is bad there, unless the
/// datagram carries a tunnel (RFC 6935, section 5): then it is absent, as it is over IPv4.
#[must_use]
#[inline]
pub fn transport(decoded: &Decoded, data: &[u8]) -> ChecksumVerdict {
    let Some(ip) = &decoded.ip else { return ChecksumVerdict::Unknown };
    let start = ip.payload_offset as usize;
    let end = start.saturating_add(ip.payload_len as usize);
    let Some(segment) = data.get(start..end).filter(|_| ip.fragment.is_none()) else {
        return ChecksumVerdict::Unknown;
    };
    match &decoded.transport {
        Transport::Tcp(_) => judge(ip, segment, || TcpView::parse(segment).map(TcpView::checksum)),
        Transport::Udp(udp) if udp.checksum == 0 => without_checksum(ip, decoded, data),
        Transport::Udp(udp) => {
            // The length field, not that of IP, tells what the checksum covers.
            let len = match udp.len as usize {
                // A jumbogram, RFC 2675, section 4.
                0 if !ip.is_v4() => segment.len(),
                len => len,
            };
            match segment.get(..len) {
                Some(segment) if len >= UdpView::LEN => judge(ip, segment, || Some(udp.checksum)),
                _ => ChecksumVerdict::Unknown,
            }
        }
        Transport::Icmp(_) if ip.protocol == protocol::ICMPV6 => {
            let len = segment.len() as u32;
            let sum = Sum::pseudo_header(ip.source, ip.destination, ip.protocol, len);
            ChecksumVerdict::from_sum(sum.bytes(segment).fold())
        }
        Transport::Icmp(_) => ChecksumVerdict::from_sum(Sum::default().bytes(segment).fold()),
        Transport::Other | Transport::Sctp(_) | Transport::None => ChecksumVerdict::Unknown,
    }
}

/// Judges a segment whose sender may have left its checksum `field` to the card.
#[inline]
fn judge(ip: &Ip, segment: &[u8], field: impl FnOnce() -> Option<u16>) -> ChecksumVerdict {
    let len = segment.len() as u32;
    let pseudo_header = Sum::pseudo_header(ip.source, ip.destination, ip.protocol, len);
    if pseudo_header.bytes(segment).fold() == 0xffff {
        ChecksumVerdict::Good
    } else if field() == Some(pseudo_header.fold()) {
        ChecksumVerdict::Partial
    } else {
        ChecksumVerdict::Bad
    }
}

#[cold]
fn without_checksum(ip: &Ip, decoded: &Decoded, data: &[u8]) -> ChecksumVerdict {
    if ip.is_v4() || matches!(tunnel::find(decoded, data, TunnelPorts::KNOWN), Some(Ok(_))) {
        ChecksumVerdict::Absent
    } else {
        ChecksumVerdict::Bad
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::random::cases;

    /// The sum as RFC 1071 defines it, word by word.
    fn reference(data: &[u8]) -> u16 {
        let mut sum = 0u32;
        for pair in data.chunks(2) {
            let word = u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)]);
            sum += u32::from(word);
            sum = (sum & 0xffff) + (sum >> 16);
        }
        !(sum as u16)
    }

    #[test]
    fn fits_the_definition_for_all_lengths() {
        // The example of RFC 1071, section 3.
        assert_eq!(compute(&[0, 1, 0xf2, 3, 0xf4, 0xf5, 0xf6, 0xf7]), !0xddf2);
        let mut value = 7u8;
        let mut data = Vec::new();
        for _ in 0..600 {
            assert_eq!(compute(&data), reference(&data), "{} bytes", data.len());
            value = value.wrapping_mul(61).wrapping_add(113);
            data.push(value);
        }
        assert_eq!(compute(&[0xff; 65535]), reference(&[0xff; 65535]));
    }

    /// Lengths around each step of the sum, at each alignment, of bytes that make carries at every
    /// place.
    #[test]
    fn fits_the_definition_for_any_bytes_at_any_alignment() {
        cases(|random| {
            let len = random.below(400);
            let mut data = random.bytes(len + 16);
            if random.flag() {
                // Carries run through long runs of ones.
                data.iter_mut().filter(|byte| **byte > 20).for_each(|byte| *byte = 0xff);
            }
            for start in 0..16 {
                let data = &data[start..start + len];
                assert_eq!(compute(data), reference(data), "{data:x?}");
                let split = len / 2 / 2 * 2;
                let parts = Sum::default().bytes(&data[..split]).bytes(&data[split..]);
                assert_eq!(!parts.fold(), reference(data), "{data:x?} split at {split}");
            }
        });
    }

    #[test]
    fn a_computed_checksum_is_good_and_a_flipped_bit_is_bad() {
        let mut segment = [0u8; 31];
        segment[30] = 9;
        for (source, destination) in [("192.0.2.1", "198.51.100.7"), ("2001:db8::1", "fe80::2")] {
            let address = |text: &str| Address::from(text.parse::<core::net::IpAddr>().unwrap());
            let (source, destination) = (address(source), address(destination));
            segment[16..18].fill(0);
            let sum = compute_with_pseudo_header(source, destination, protocol::TCP, &segment);
            segment[16..18].copy_from_slice(&sum.to_be_bytes());
            let judged = |segment: &[u8]| {
                let pseudo = Sum::pseudo_header(source, destination, protocol::TCP, 31);
                ChecksumVerdict::from_sum(pseudo.bytes(segment).fold())
            };
            assert_eq!(judged(&segment), ChecksumVerdict::Good);
            segment[3] ^= 4;
            assert_eq!(judged(&segment), ChecksumVerdict::Bad);
            segment[3] ^= 4;
        }
    }
}
