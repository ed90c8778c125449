//! Other addresses for each round over a capture that is sent again and again, so that its flows are new ones.

use crate::rewrite::AddressMap;

/// The addresses of one round: the number of the round is added to the second byte of each, modulo 256, so that both
/// directions of a flow stay together and what has the prefix of a network keeps one. Multicast, broadcast and
/// unspecified addresses stay what they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Round(pub u8);

impl Round {
    /// The addresses of the round after this one; the 256th has those of the first.
    #[must_use]
    pub const fn following(self) -> Self {
        Self(self.0.wrapping_add(1))
    }
}

impl AddressMap for Round {
    fn map_v4(&mut self, mut address: [u8; 4]) -> [u8; 4] {
        if !matches!(address[0], 0 | 224..=255) {
            address[1] = address[1].wrapping_add(self.0);
        }
        address
    }

    fn map_v6(&mut self, mut address: [u8; 16]) -> [u8; 16] {
        if !matches!(address[0], 0 | 0xff) {
            address[1] = address[1].wrapping_add(self.0);
        }
        address
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_round_has_addresses_of_its_own() {
        let (mut v4, mut v6, mut round) = (BTreeSet::new(), BTreeSet::new(), Round(0));
        assert_eq!(
            round.map_v4([10, 255, 2, 3]),
            [10, 255, 2, 3],
            "the first are those of the file"
        );
        for _ in 0..256 {
            v4.insert(round.map_v4([10, 255, 2, 3]));
            v6.insert(round.map_v6([0x20, 1, 13, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9]));
            round = round.following();
        }
        assert_eq!((v4.len(), v6.len(), round), (256, 256, Round(0)));
    }

    #[test]
    fn addresses_that_mean_more_than_one_host_stay() {
        let mut all_nodes = [0; 16];
        all_nodes[..2].copy_from_slice(&[0xff, 2]);
        all_nodes[15] = 1;
        let mut round = Round(7);
        for address in [[0; 4], [255; 4], [224, 0, 0, 251], [239, 255, 255, 250]] {
            assert_eq!(round.map_v4(address), address);
        }
        for address in [[0; 16], all_nodes] {
            assert_eq!(round.map_v6(address), address);
        }
    }
}
