//! The addresses of a capture, numbered, and others for clones of its hosts that nobody else has.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

use crate::rewrite::AddressMap;

/// The addresses of a capture, numbered as they first appear. Multicast, broadcast and unspecified addresses have no
/// number: they mean the same for everyone.
#[derive(Clone, Debug, Default)]
pub struct Numbered {
    v4: HashMap<[u8; 4], u32, Fixed>,
    v6: HashMap<[u8; 16], u32, Fixed>,
}

/// The standard hasher; the numbers do not depend on its keys.
type Fixed = RandomState;

impl Numbered {
    /// How many IPv4 addresses there are, and how many IPv6 addresses.
    #[must_use]
    pub fn counts(&self) -> (u32, u32) {
        (self.v4.len() as u32, self.v6.len() as u32)
    }

    /// The number of an address, if it has one.
    #[must_use]
    pub fn number_v4(&self, address: [u8; 4]) -> Option<u32> {
        self.v4.get(&address).copied()
    }

    /// The number of an address, if it has one.
    #[must_use]
    pub fn number_v6(&self, address: [u8; 16]) -> Option<u32> {
        self.v6.get(&address).copied()
    }
}

fn number<K: Eq + std::hash::Hash, S: BuildHasher>(numbers: &mut HashMap<K, u32, S>, address: K) {
    let next = numbers.len() as u32;
    numbers.entry(address).or_insert(next);
}

/// Keeps each address and numbers it.
impl AddressMap for Numbered {
    fn map_v4(&mut self, address: [u8; 4]) -> [u8; 4] {
        if !(matches!(address[0], 224..=239) || address == [255; 4] || address == [0; 4]) {
            number(&mut self.v4, address);
        }
        address
    }

    fn map_v6(&mut self, address: [u8; 16]) -> [u8; 16] {
        if address[0] != 0xff && address != [0; 16] {
            number(&mut self.v6, address);
        }
        address
    }
}

/// Addresses of clones: clone 0 has those of the capture, all others have their own, out of networks that the capture
/// has no address of. Link-local addresses stay link-local (RFC 4291, 2.5.6).
#[derive(Clone, Debug)]
pub struct Clones {
    numbered: Numbered,
    /// The first byte of IPv4 addresses of clones.
    net: u8,
    /// The bytes 6 and 7 of IPv6 addresses of clones, and 8 and 9 of link-local ones.
    tags: [[u8; 2]; 2],
}

/// Where IPv6 addresses of clones begin: a network of unique local addresses (RFC 4193).
const NET_V6: [u8; 6] = [0xfd, 0x6e, 0x73, 0x6e, 0x69, 0x66];

const LINK_LOCAL: [u8; 8] = [0xfe, 0x80, 0, 0, 0, 0, 0, 0];

impl Clones {
    /// Of the hosts with these addresses; `None` where they leave no network of IPv4 free.
    #[must_use]
    pub fn new(numbered: Numbered) -> Option<Self> {
        let is_free = |net: &u8| !numbered.v4.keys().any(|address| address[0] == *net);
        let net = (10..=223).chain(1..10).filter(|net| *net != 127).find(is_free)?;
        let free = |prefix: &[u8], at: usize| {
            (1..=u16::MAX).map(u16::to_be_bytes).find(|tag| {
                !numbered.v6.keys().any(|it| it.starts_with(prefix) && it[at..at + 2] == tag[..])
            })
        };
        let tags = [free(&NET_V6, 6)?, free(&LINK_LOCAL, 8)?];
        Some(Self { numbered, net, tags })
    }

    /// Clones that there are addresses for, the first one among them.
    #[must_use]
    pub fn most(&self) -> u64 {
        let (v4, _) = self.numbered.counts();
        1 + (1 << 24) / u64::from(v4.max(1))
    }

    /// The addresses of a clone. Beyond [`Self::most`] they come again.
    #[must_use]
    pub const fn of(&self, clone: u64) -> CloneAddresses<'_> {
        CloneAddresses { clones: self, clone }
    }
}

/// The addresses of one clone.
#[derive(Clone, Copy, Debug)]
pub struct CloneAddresses<'c> {
    clones: &'c Clones,
    clone: u64,
}

impl CloneAddresses<'_> {
    /// The number of an address among those of all clones but the first.
    fn place(&self, number: u32, count: u32) -> u64 {
        ((self.clone - 1) % (self.clones.most() - 1).max(1)) * u64::from(count) + u64::from(number)
    }
}

impl AddressMap for CloneAddresses<'_> {
    fn map_v4(&mut self, address: [u8; 4]) -> [u8; 4] {
        let numbered = &self.clones.numbered;
        match numbered.number_v4(address) {
            Some(number) if self.clone > 0 => {
                let [.., a, b, c] = self.place(number, numbered.counts().0).to_be_bytes();
                [self.clones.net, a, b, c]
            }
            _ => address,
        }
    }

    fn map_v6(&mut self, address: [u8; 16]) -> [u8; 16] {
        let numbered = &self.clones.numbered;
        let Some(number) = numbered.number_v6(address).filter(|_| self.clone > 0) else {
            return address;
        };
        let place = self.place(number, numbered.counts().1).to_be_bytes();
        let mut mapped = address;
        if address[0] == 0xfe && address[1] & 0xc0 == 0x80 {
            mapped[..8].copy_from_slice(&LINK_LOCAL);
            mapped[8..10].copy_from_slice(&self.clones.tags[1]);
            mapped[10..].copy_from_slice(&place[2..]);
        } else {
            mapped[..6].copy_from_slice(&NET_V6);
            mapped[6..8].copy_from_slice(&self.clones.tags[0]);
            mapped[8..].copy_from_slice(&place);
        }
        mapped
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn v6(first: u16, last: u8) -> [u8; 16] {
        let mut address = [0; 16];
        address[..2].copy_from_slice(&first.to_be_bytes());
        address[15] = last;
        address
    }

    #[test]
    fn no_two_clones_share_an_address() {
        let mut numbered = Numbered::default();
        let v4 = [[10, 0, 0, 1], [10, 0, 1, 1], [11, 255, 0, 1], [192, 168, 1, 255]];
        let v6 = [v6(0x2001, 1), v6(0x2001, 2), v6(0xfe80, 1), v6(0xfe80, 9)];
        v4.iter().for_each(|address| assert_eq!(numbered.map_v4(*address), *address));
        v6.iter().for_each(|address| assert_eq!(numbered.map_v6(*address), *address));
        let clones = Clones::new(numbered).unwrap();
        let (mut seen4, mut seen6) = (HashSet::new(), HashSet::new());
        for clone in 0..500 {
            let mut addresses = clones.of(clone);
            for address in v4 {
                let mapped = addresses.map_v4(address);
                assert!(seen4.insert(mapped), "{mapped:?} of clone {clone}");
                assert_eq!(clone > 0, mapped[0] == 12, "10 and 11 are in use");
            }
            for address in v6 {
                let mapped = addresses.map_v6(address);
                assert!(seen6.insert(mapped), "{mapped:?} of clone {clone}");
                assert_eq!(mapped[0] == 0xfe, address[0] == 0xfe);
            }
            assert_eq!(addresses.map_v4([224, 0, 0, 1]), [224, 0, 0, 1]);
            assert_eq!(addresses.map_v4([255; 4]), [255; 4]);
        }
        assert_eq!(clones.of(0).map_v4(v4[0]), v4[0]);
    }

    #[test]
    fn addresses_come_again_where_there_are_no_more() {
        let mut numbered = Numbered::default();
        for number in 0..1_000_u32 {
            let [_, _, a, b] = number.to_be_bytes();
            numbered.map_v4([1, 2, a, b]);
        }
        let clones = Clones::new(numbered).unwrap();
        let most = clones.most();
        assert_eq!(most, 1 + 16_777);
        let at = |clone| clones.of(clone).map_v4([1, 2, 0, 7]);
        assert_ne!(at(most - 1), at(1));
        assert_eq!(at(most), at(1));
        assert_eq!(at(u64::MAX)[0], 10);
    }
}
