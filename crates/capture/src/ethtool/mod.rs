//! What a driver tells by ethtool, and takes: rings, coalescing, queues, offloads, statistics, and how packets are spread over
//! queues.
//!
//! Questions go through [`Ethtool`], so that recorded answers of a driver stand in for an interface that is not there.

mod calls;
mod hash;
mod settings;

use std::io;

pub use calls::Calls;
pub use hash::{HashFields, ReceiveHash, hash_fields, receive_hash};
pub use settings::{
    ChannelKind, Channels, Coalescing, Rings, channels, coalescing, rings, set_channels,
    set_coalescing, set_rings,
};

/// Who answers questions of <linux/ethtool.h>.
pub trait Ethtool {
    /// Asks about an interface with `words`, of which the first is the command, and gets as many words of the answer as there
    /// are.
    ///
    /// # Errors
    ///
    /// `EOPNOTSUPP` where the driver does not know the command, `EPERM` without the right (`CAP_NET_ADMIN`), `ENODEV`
    /// without the interface.
    fn ask(&self, interface: &str, words: &mut [u32]) -> io::Result<()>;
}

/// Numbers of commands and of sets of names.
const GET_FEATURES: u32 = 0x3a;
const SET_FEATURES: u32 = 0x3b;
const GET_STRINGS: u32 = 0x1b;
const GET_SET_SIZES: u32 = 0x37;
const GET_STATISTICS: u32 = 0x1d;
const STATISTICS: u32 = 1;
const FEATURES: u32 = 4;

/// Bytes of a name.
const NAME: usize = 32;

/// Names and numbers at most, so that no answer takes memory without bound.
const MOST: u32 = 1 << 16;

/// Names of a set.
fn names(of: &dyn Ethtool, interface: &str, set: u32) -> io::Result<Vec<String>> {
    // `struct ethtool_sset_info`: command, a reserved word, a mask of 64 bits, and a word for each bit of it.
    let mut sizes = [GET_SET_SIZES, 0, 0, 0, 0];
    sizes[2..4].copy_from_slice(&halves(1 << set));
    of.ask(interface, &mut sizes)?;
    // A set that the driver does not have leaves the mask empty.
    let count = if join([sizes[2], sizes[3]]) == 0 { 0 } else { sizes[4].min(MOST) };
    // `struct ethtool_gstrings`: command, set, count, names.
    let mut words = vec![0; 3 + count as usize * NAME / 4];
    words[..3].copy_from_slice(&[GET_STRINGS, set, count]);
    of.ask(interface, &mut words)?;
    let bytes: Vec<u8> = words[3..].iter().flat_map(|word| word.to_ne_bytes()).collect();
    let name = |bytes: &[u8]| {
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        String::from_utf8_lossy(&bytes[..end]).trim().to_owned()
    };
    Ok(bytes.chunks_exact(NAME).take(words[2].min(count) as usize).map(name).collect())
}

/// A number of 64 bits in two words of the machine's order.
fn halves(number: u64) -> [u32; 2] {
    let bytes = number.to_ne_bytes();
    let word =
        |at: usize| u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    [word(0), word(4)]
}

fn join(words: [u32; 2]) -> u64 {
    let mut bytes = [0; 8];
    bytes[..4].copy_from_slice(&words[0].to_ne_bytes());
    bytes[4..].copy_from_slice(&words[1].to_ne_bytes());
    u64::from_ne_bytes(bytes)
}

/// What the driver has counted, by its own names: they differ from driver to driver.
///
/// # Errors
///
/// As [`Ethtool::ask`]; drivers without statistics have none.
pub fn statistics(of: &dyn Ethtool, interface: &str) -> io::Result<Vec<(String, u64)>> {
    let names = names(of, interface, STATISTICS)?;
    // `struct ethtool_stats`: command, count, numbers of 64 bits.
    let mut words = vec![0; 2 + 2 * names.len()];
    words[..2].copy_from_slice(&[GET_STATISTICS, names.len() as u32]);
    of.ask(interface, &mut words)?;
    let numbers = words[2..].chunks_exact(2).map(|pair| join([pair[0], pair[1]]));
    let counted = words[1] as usize;
    Ok(names.into_iter().zip(numbers).take(counted).collect())
}

/// Something that the interface does by itself, by its name in `ethtool -k`, which is that of the kernel.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Feature {
    /// The kernel's name, as `rx-gro`.
    pub name: String,
    /// Whether it is on.
    pub is_on: bool,
    /// Whether it can be switched.
    pub is_fixed: bool,
}

/// The features of an interface.
///
/// # Errors
///
/// As [`Ethtool::ask`].
pub fn features(of: &dyn Ethtool, interface: &str) -> io::Result<Vec<Feature>> {
    let names = names(of, interface, FEATURES)?;
    let blocks = names.len().div_ceil(32);
    // `struct ethtool_gfeatures`: command, count of blocks, and for each what there is, is wanted, is on, and never changes.
    let mut words = vec![0; 2 + 4 * blocks];
    words[..2].copy_from_slice(&[GET_FEATURES, blocks as u32]);
    of.ask(interface, &mut words)?;
    let feature = |(at, name): (usize, String)| {
        let block = words.get(2 + at / 32 * 4..)?.first_chunk::<4>()?;
        let bit = |word: u32| word >> (at % 32) & 1 == 1;
        let is_fixed = !bit(block[0]) || bit(block[3]);
        (!name.is_empty()).then(|| Feature { name, is_on: bit(block[2]), is_fixed })
    };
    Ok(names.into_iter().enumerate().filter_map(feature).collect())
}

/// Switches a feature of this name.
///
/// # Errors
///
/// As [`Ethtool::ask`], and where there is none of this name.
pub fn set_feature(of: &dyn Ethtool, interface: &str, name: &str, is_on: bool) -> io::Result<()> {
    let names = names(of, interface, FEATURES)?;
    let at = names.iter().position(|of| of == name);
    let at = at.ok_or_else(|| io::Error::other(format!("the interface has no feature {name}")))?;
    let blocks = names.len().div_ceil(32);
    // `struct ethtool_sfeatures`: command, count of blocks, and for each which are meant and which of them are wanted.
    let mut words = vec![0; 2 + 2 * blocks];
    words[..2].copy_from_slice(&[SET_FEATURES, blocks as u32]);
    words[2 + at / 32 * 2] = 1 << (at % 32);
    words[3 + at / 32 * 2] = u32::from(is_on) << (at % 32);
    of.ask(interface, &mut words)
}

#[cfg(test)]
mod tests;
