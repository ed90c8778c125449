//! What an answer tells of addresses, for whoever wants to know why a connection went to one.

use netsniff_packet::{Address, Timestamp};

use crate::protocol::Role;
use crate::record::{Fact, Interval};

/// The addresses of a name, as an answer without an error told them.
#[derive(Clone, Debug)]
pub struct Resolution {
    /// Time of the answer.
    pub time: Timestamp,
    /// Who got the answer.
    pub client: Role,
    /// The name that was asked about, in lower case.
    pub name: Box<[u8]>,
    /// Its addresses, also those of other names that it stands for (CNAME).
    pub addresses: Vec<Address>,
    /// How long the answer may be kept: as long as each of its records (RFC 1035, section 3.2.1).
    pub lifetime: Interval,
    /// Time from the query to the answer, where both were seen.
    pub rtt: Option<Interval>,
}

impl Fact for Resolution {
    fn heap_bytes(&self) -> usize {
        self.name.len() + self.addresses.capacity() * size_of::<Address>()
    }
}
