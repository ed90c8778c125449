//! IP and MAC addresses.

use std::sync::Arc;

use super::prf::Domain;
use super::{Anonymizer, Method};
use crate::Address;

impl Anonymizer {
    /// The pseudonym of an address, of the same IP version.
    ///
    /// One to one, but for [`Method::NullIp`]. Two addresses with n leading bits in common have
    /// pseudonyms with n leading bits in common. [`AddressCache`] saves most of the time.
    #[must_use]
    pub fn address(&self, address: Address) -> Address {
        let [high, low] = address.words();
        if address.is_v4() {
            Address::from_v4(self.v4(low as u32).to_be_bytes())
        } else {
            let bits = self.v6(u128::from(high) << 64 | u128::from(low));
            Address::from_v6(bits.to_be_bytes())
        }
    }

    fn v4(&self, bits: u32) -> u32 {
        let block = u128::from(bits) << 96;
        if self.method == Method::NullIp {
            return if self.v4.contain(block) { bits } else { 0 };
        }
        match u32::MAX.checked_shr(self.v4.kept_bits(block)) {
            Some(changed) => bits ^ (self.pan.flips_v4(bits) & changed),
            None => bits,
        }
    }

    fn v6(&self, bits: u128) -> u128 {
        if self.method == Method::NullIp {
            return if self.v6.contain(bits) { bits } else { 0 };
        }
        match u128::MAX.checked_shr(self.v6.kept_bits(bits)) {
            Some(changed) => bits ^ (self.pan.flips_v6(bits) & changed),
            None => bits,
        }
    }

    /// The pseudonym of a MAC address: a locally administered one, so that no vendor is told.
    ///
    /// Broadcast and the groups of protocols stay, as do the addresses of IP groups as far as the IP
    /// address does (RFC 1112, 6.4; RFC 2464, 7): the last bytes of a solicited-node group become
    /// those of its pseudonym.
    #[must_use]
    pub fn mac(&self, mac: [u8; 6]) -> [u8; 6] {
        match mac {
            [0, 0, 0, 0, 0, 0] => mac,
            [0x33, 0x33, 0xff, a, b, c] => {
                let group = super::ranges::SOLICITED_NODE.to_bits();
                let bits = group | u128::from(u32::from_be_bytes([0, a, b, c]));
                let [.., a, b, c] = self.v6(bits).to_be_bytes();
                [0x33, 0x33, 0xff, a, b, c]
            }
            // Groups that are chosen at will (RFC 3307, section 4.3).
            [0x33, 0x33, a, ..] if a & 0x80 != 0 => {
                let [b, c, d, ..] = self.names.of(Domain::Mac, &mac).to_be_bytes();
                [0x33, 0x33, 0x80, b, c, d]
            }
            [first, ..] if first & GROUP != 0 => mac,
            _ if self.method == Method::NullIp => [0; 6],
            _ => {
                let [a, b, c, d, e, f, ..] = self.names.of(Domain::Mac, &mac).to_be_bytes();
                [a & !GROUP | LOCAL, b, c, d, e, f]
            }
        }
    }

    /// The pseudonym of a MAC address that stands where a sender does.
    ///
    /// No group sends: there the bit of groups says that the field has more to tell (a route, by IEEE
    /// 802.5; the bandwidth, by IEEE 802.11-2020, 9.2.4.3.8) or that it is none. The other bits are
    /// those of a host, whose pseudonym is the same with the bit and without.
    #[must_use]
    pub fn sender_mac(&self, mac: [u8; 6]) -> [u8; 6] {
        let [first, b, c, d, e, f] = mac;
        let [mapped, b, c, d, e, f] = self.mac([first & !GROUP, b, c, d, e, f]);
        [mapped | first & GROUP, b, c, d, e, f]
    }
}

/// The bit of a MAC address that makes it that of a group.
const GROUP: u8 = 1;
/// The bit of a MAC address that says that no vendor gave it.
const LOCAL: u8 = 2;

/// Addresses whose pseudonyms are remembered: as many as fill a processor's second-level cache.
const REMEMBERED: usize = 1 << 12;

/// A bounded memory of addresses in front of an [`Anonymizer`].
///
/// Each address has one place; whichever came last is there.
#[derive(Clone)]
pub struct AddressCache {
    anonymizer: Arc<Anonymizer>,
    places: Vec<(Address, Address)>,
}

impl AddressCache {
    /// A cache that has mapped no address.
    #[must_use]
    pub fn new(anonymizer: Arc<Anonymizer>) -> Self {
        // Filled with what is true.
        let any = Address::default();
        let places = vec![(any, anonymizer.address(any)); REMEMBERED];
        Self { anonymizer, places }
    }

    /// The pseudonym of an address.
    #[inline]
    pub fn address(&mut self, address: Address) -> Address {
        let [high, low] = address.words();
        let mixed = (high ^ low.rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let at = (mixed >> (64 - REMEMBERED.ilog2())) as usize;
        let Some(place) = self.places.get_mut(at) else { return self.anonymizer.address(address) };
        if place.0 != address {
            *place = (address, self.anonymizer.address(address));
        }
        place.1
    }

    /// The anonymizer that maps the addresses.
    #[must_use]
    pub fn anonymizer(&self) -> &Anonymizer {
        &self.anonymizer
    }
}

/// Shows none of the addresses.
impl core::fmt::Debug for AddressCache {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("AddressCache")
    }
}

#[cfg(test)]
mod tests {
    use core::net::{IpAddr, Ipv6Addr};
    use std::collections::BTreeSet;

    use super::*;
    use crate::anonymize::tests::anonymizer;
    use crate::anonymize::{Keep, Key};
    use crate::wire::random::cases;

    fn address(text: &str) -> Address {
        text.parse::<IpAddr>().unwrap().into()
    }

    /// Leading bits that two addresses of one version have in common.
    fn common(a: Address, b: Address) -> u32 {
        let ([a, b], [c, d]) = (a.words(), b.words());
        if a == c { 64 + (b ^ d).leading_zeros() } else { (a ^ c).leading_zeros() }
    }

    #[test]
    fn prefixes_are_preserved_and_nothing_meets() {
        for keep in [Keep::default(), Keep { special: false, ranges: Vec::new() }] {
            let anonymizer = Anonymizer::new(Method::CryptoPan, &Key::new([9; 32]), &keep);
            cases(|random| {
                let bytes: [u8; 16] = random.bytes(16).try_into().unwrap();
                let mut near = bytes;
                // Differs in one bit, and in all behind it by chance.
                let bit = random.below(128);
                near[bit / 8] ^= 0x80 >> (bit % 8);
                let pairs = [
                    (Address::from_v6(bytes), Address::from_v6(near)),
                    (
                        Address::from_v4(*bytes.first_chunk().unwrap()),
                        Address::from_v4(*near.first_chunk().unwrap()),
                    ),
                ];
                for (a, b) in pairs {
                    let mapped = (anonymizer.address(a), anonymizer.address(b));
                    assert_eq!(common(mapped.0, mapped.1), common(a, b), "{a} {b}");
                    assert_eq!(mapped.0.is_v4(), a.is_v4());
                }
            });
        }
    }

    /// What is kept of `::` and `::1` leaves addresses close to the IPv4-mapped ones.
    #[test]
    fn no_address_of_ipv6_becomes_one_of_ipv4() {
        for special in [true, false] {
            let keep = Keep { special, ranges: Vec::new() };
            for key in 0..32 {
                let anonymizer = Anonymizer::new(Method::CryptoPan, &Key::new([key; 32]), &keep);
                for text in ["::80f8:0:0", "::fffe:0:0", "::7fff:c000:201", "::1:0:0:0"] {
                    let mapped = anonymizer.address(address(text));
                    assert!(!mapped.is_v4(), "{text} became {mapped}");
                }
            }
        }
    }

    /// All addresses around the special ranges, which a mapping could push into one another.
    #[test]
    fn special_ranges_stay_and_take_nobody_in() {
        let anonymizer = anonymizer();
        for text in [
            "0.0.0.0",
            "127.0.0.1",
            "127.255.255.255",
            "224.0.0.251",
            "239.255.255.250",
            "255.255.255.255",
            "::",
            "::1",
            "ff02::1",
            "ff02::fb",
            "ff05::1:3",
        ] {
            assert_eq!(anonymizer.address(address(text)), address(text));
        }
        let mut seen = BTreeSet::new();
        for top in 0..=u16::MAX {
            let [a, b] = top.to_be_bytes();
            let mapped = anonymizer.address(Address::from_v4([a, b, 7, 7]));
            assert!(seen.insert(mapped), "two addresses became {mapped}");
            let special = |first: u8| first == 127 || first >> 4 == 0xe;
            let IpAddr::V4(v4) = mapped.to_ip() else { panic!("{mapped} is IPv6") };
            assert_eq!(special(v4.octets()[0]), special(a), "{a}.{b}.7.7 became {mapped}");
        }
        assert_eq!(seen.len(), 1 << 16);
    }

    #[test]
    fn what_special_addresses_tell_of_a_host_is_mapped() {
        let anonymizer = anonymizer();
        for (text, kept) in [
            ("fe80::211:22ff:fe33:4455", 64),
            ("ff02::1:ff33:4455", 104),
            ("ff3e:20:2001:db8::1", 16),
            ("169.254.33.44", 64 + 32 + 16),
            ("233.33.44.55", 64 + 32 + 8),
            ("2001:0:c000:201:8000:63bf:3fff:fdd2", 32),
        ] {
            let mapped = anonymizer.address(address(text));
            assert_ne!(mapped, address(text));
            assert!(common(mapped, address(text)) >= kept, "{text} became {mapped}");
        }
    }

    #[test]
    fn without_special_ranges_it_is_the_published_construction() {
        let keep = Keep { special: false, ranges: vec!["192.0.2.0/24".parse().unwrap()] };
        let none = Keep { special: false, ranges: Vec::new() };
        let key = Key::new(*b"32-char-str-for-AES-key-and-pad.");
        let anonymizer = |keep| Anonymizer::new(Method::CryptoPan, &key, keep);
        // The example in the documentation of yacryptopan.
        assert_eq!(anonymizer(&none).address(address("192.0.2.1")), address("192.0.125.244"));
        let v6 = anonymizer(&none).address(address("2001:db8::1"));
        assert_eq!(v6, address("27fe:8bc7:fee:1e:1e1f:f0fe:f0e1:83fd"));
        assert_eq!(anonymizer(&keep).address(address("192.0.2.1")), address("192.0.2.1"));
    }

    #[test]
    fn null_is_all_zeros_but_for_what_is_to_be_kept() {
        let ranges = ["10.0.0.0/8", "192.0.2.7/32"].map(|range| range.parse().unwrap());
        let keep = Keep { special: true, ranges: ranges.to_vec() };
        let anonymizer = Anonymizer::new(Method::NullIp, &Key::new([1; 32]), &keep);
        assert_eq!(anonymizer.address(address("127.0.0.1")), address("0.0.0.0"));
        assert_eq!(anonymizer.address(address("192.0.2.6")), address("0.0.0.0"));
        assert_eq!(anonymizer.address(address("192.0.2.7")), address("192.0.2.7"));
        assert_eq!(anonymizer.address(address("192.0.2.1")), address("0.0.0.0"));
        assert_eq!(anonymizer.address(address("2001:db8::1")), address("::"));
        assert_eq!(anonymizer.address(address("10.1.2.3")), address("10.1.2.3"));
    }

    #[test]
    fn macs_tell_no_vendor_and_groups_fit_their_addresses() {
        let anonymizer = anonymizer();
        let mapped = anonymizer.mac([0, 0x1b, 0x21, 1, 2, 3]);
        assert_ne!(mapped, [0, 0x1b, 0x21, 1, 2, 3]);
        assert_eq!(mapped[0] & 3, 2, "one host, locally administered");
        assert_eq!(mapped, anonymizer.mac([0, 0x1b, 0x21, 1, 2, 3]));
        for group in [[0xff; 6], [0; 6], [1, 0x80, 0xc2, 0, 0, 0], [0x33, 0x33, 0, 0, 0, 0xfb]] {
            assert_eq!(anonymizer.mac(group), group);
        }
        let IpAddr::V6(group) = anonymizer.address(address("ff02::1:ff33:4455")).to_ip() else {
            panic!("IPv6 stays IPv6")
        };
        let [.., a, b, c, d] = Ipv6Addr::octets(&group);
        assert_eq!(anonymizer.mac([0x33, 0x33, 0xff, 0x33, 0x44, 0x55]), [0x33, 0x33, a, b, c, d]);
    }

    #[test]
    fn who_sends_is_mapped_whatever_the_bit_of_groups_says() {
        let anonymizer = anonymizer();
        for mac in [[0, 0x1b, 0x21, 1, 2, 3], [0x32, 0x33, 0, 0, 0, 0xfb], [0xfe; 6]] {
            let [first, rest @ ..] = mac;
            let mapped = anonymizer.sender_mac(mac);
            assert_eq!(mapped, anonymizer.mac(mac));
            let [b, c, d, e, f] = rest;
            let [again, others @ ..] = anonymizer.sender_mac([first | 1, b, c, d, e, f]);
            assert_eq!(again, mapped[0] | 1);
            assert_eq!(others, mapped[1..]);
            assert_ne!(others, rest);
        }
        assert_eq!(anonymizer.sender_mac([0; 6]), [0; 6]);
    }

    #[test]
    fn the_cache_changes_nothing() {
        let anonymizer = Arc::new(anonymizer());
        let mut cache = AddressCache::new(Arc::clone(&anonymizer));
        cases(|random| {
            for _ in 0..40 {
                let address =
                    Address::from_v4([10, random.byte() & 3, random.byte(), random.byte()]);
                assert_eq!(cache.address(address), anonymizer.address(address));
            }
        });
        assert_eq!(cache.address(Address::default()), anonymizer.address(Address::default()));
    }
}
