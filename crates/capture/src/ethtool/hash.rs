//! How an interface spreads packets over its queues (receive-side scaling).

use std::io;

use super::Ethtool;

/// Its function, `struct ethtool_rxfh`.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ReceiveHash {
    /// The key of the hash, as the interface has it.
    pub key: Vec<u8>,
    /// The queue of each remainder of the hash.
    pub queues: Vec<u32>,
    /// Which function it is, as `ETH_RSS_HASH_TOP` (1) for Toeplitz; 0 where the kernel does not tell.
    pub function: u8,
    /// What is done with the fields of a packet before, as `RXH_XFRM_SYM_XOR` (1); 0 for nothing.
    pub transformation: u8,
}

impl ReceiveHash {
    /// Whether both directions of a connection have the same hash: the Toeplitz function does so where its key repeats every
    /// two bytes (Woo and Park, 2012). `None` without a key, and where another function or a transformation of the fields
    /// makes the key tell nothing.
    #[must_use]
    pub fn is_symmetric(&self) -> Option<bool> {
        if (self.function, self.transformation) != (TOEPLITZ, 0) {
            return None;
        }
        let first = self.key.first_chunk::<2>()?;
        let is_repeated = |at: usize, byte: u8| byte == first[at % 2];
        Some(self.key.iter().enumerate().all(|(at, byte)| is_repeated(at, *byte)))
    }
}

/// `ETH_RSS_HASH_TOP` of <linux/ethtool.h>.
const TOEPLITZ: u8 = 1;

const GET_HASH: u32 = 0x46;
const GET_FIELDS: u32 = 0x29;

/// Words before the table: command, context, length of the table, length of the key, function and the like.
const HEAD: usize = 6;

/// Entries and bytes at most, so that no answer takes memory without bound.
const MOST: u32 = 1 << 16;

/// The function of an interface.
///
/// # Errors
///
/// As [`Ethtool::ask`].
pub fn receive_hash(of: &dyn Ethtool, interface: &str) -> io::Result<ReceiveHash> {
    let mut sizes = [0; HEAD];
    sizes[0] = GET_HASH;
    of.ask(interface, &mut sizes)?;
    let (queues, key) = (sizes[2].min(MOST), sizes[3].min(MOST));
    let mut words = vec![0; HEAD + queues as usize + (key as usize).div_ceil(4)];
    (words[0], words[2], words[3]) = (GET_HASH, queues, key);
    of.ask(interface, &mut words)?;
    let (table, rest) = words[HEAD..].split_at(queues as usize);
    let bytes = rest.iter().flat_map(|word| word.to_ne_bytes());
    // A byte each for the function and the transformation.
    let [function, transformation, ..] = words[4].to_ne_bytes();
    let key = bytes.take(key as usize).collect();
    Ok(ReceiveHash { queues: table.to_vec(), key, function, transformation })
}

/// What of a packet goes into the hash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct HashFields {
    /// Both addresses.
    pub has_addresses: bool,
    /// Both ports.
    pub has_ports: bool,
}

impl HashFields {
    /// TCP over IPv4, `TCP_V4_FLOW` of <linux/ethtool.h>.
    pub const TCP_IPV4: u32 = 1;
    /// UDP over IPv4.
    pub const UDP_IPV4: u32 = 2;
}

/// What of packets of a kind goes into the hash.
///
/// # Errors
///
/// As [`Ethtool::ask`].
pub fn hash_fields(of: &dyn Ethtool, interface: &str, kind: u32) -> io::Result<HashFields> {
    // `struct ethtool_rxnfc`: command, kind, and 64 bits of fields.
    let mut words = [0; 64];
    (words[0], words[1]) = (GET_FIELDS, kind);
    of.ask(interface, &mut words)?;
    let fields = super::join([words[2], words[3]]);
    let has = |bits: u64| fields & bits == bits;
    // `RXH_IP_SRC` and `RXH_IP_DST`; `RXH_L4_B_0_1` and `RXH_L4_B_2_3`.
    Ok(HashFields { has_addresses: has(3 << 4), has_ports: has(3 << 6) })
}
