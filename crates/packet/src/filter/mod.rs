//! Packet filters in the language of pcap-filter(7), as tcpdump, dumpcap and Zeek have it.
//!
//! ```
//! use netsniff_packet::filter::Filter;
//!
//! let filter = Filter::parse("tcp port 80 or host 192.0.2.1").unwrap();
//! let error = Filter::parse("udp and tpc port 80").unwrap_err();
//! assert_eq!(error.to_string(), "unknown word \"tpc\" at column 9");
//! ```
//!
//! A text becomes a tree (`parser`) that knows nothing of link types. For each link type that it
//! meets, the tree is bound (`bind`) to a program: tests of bytes at offsets, each with two exits.
//! That program is what [`Filter::matches`] runs, and it has the shape of classic BPF.
//!
//! The meaning is that of libpcap 1.10 reading a file: a load outside the captured bytes rejects
//! the packet even under `not`; `vlan`, `mpls` and `pppoes` move the headers for the rest of the
//! text; ports are not looked for in later fragments, nor behind IPv6 extension headers. What
//! differs is refused with a sentence that says so, never guessed: names of hosts and networks
//! (nothing is looked up), `protochain`, `gateway`, `geneve`, `byte N & M`, and the words for ATM,
//! SS7, 802.11 and pf. With `ip broadcast` only 0.0.0.0 and 255.255.255.255 count.

mod bind;
mod display;
mod error;
mod lexer;
mod names;
mod parser;
mod program;
mod qualified;
mod simplify;
mod tree;
mod words;

use std::sync::OnceLock;

use crate::{LinkType, Packet};

pub use error::{Caret, FilterError};
use program::Program;
use tree::Tree;

/// A compiled filter.
///
/// Its `Display` is the filter in full: every parenthesis and every qualifier written out.
#[derive(Clone, Debug)]
pub struct Filter {
    text: Box<str>,
    tree: Tree,
    /// Filled when the first packet of a link type is seen; `None` where there is no meaning.
    programs: [OnceLock<Option<Program>>; SLOTS],
}

/// One slot for each link type with headers of its own, and one for all others.
const SLOTS: usize = 14;

impl Filter {
    /// Parses a filter. The empty text matches every packet.
    ///
    /// # Errors
    ///
    /// Where the text is not a filter, or uses a part of the language that is not supported.
    pub fn parse(text: &str) -> Result<Self, FilterError> {
        let tree = parser::parse(text)?;
        Ok(Self { text: text.into(), tree, programs: [const { OnceLock::new() }; SLOTS] })
    }

    /// The text as it was given.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether every part of the filter has a meaning for packets of this link type.
    ///
    /// # Errors
    ///
    /// Names the first part that has none, such as `ether host` on raw IP. [`matches`](Self::matches)
    /// then rejects all packets of this link type.
    pub fn check(&self, link_type: LinkType) -> Result<(), FilterError> {
        bind::bind(&self.tree, &self.text, link_type).map(drop)
    }

    /// Whether the packet passes the filter.
    ///
    /// Allocates only for the first packet of each link type.
    #[must_use]
    #[inline]
    pub fn matches(&self, packet: &Packet<'_>) -> bool {
        let program = self.programs[slot(packet.link_type)]
            .get_or_init(|| bind::bind(&self.tree, &self.text, packet.link_type).ok());
        program.as_ref().is_some_and(|program| program.accepts(packet.data, packet.wire_len))
    }
}

#[inline]
const fn slot(link_type: LinkType) -> usize {
    match link_type {
        LinkType::ETHERNET => 0,
        LinkType::RAW => 1,
        LinkType::IPV4 => 2,
        LinkType::IPV6 => 3,
        LinkType::LINUX_SLL => 4,
        LinkType::LINUX_SLL2 => 5,
        LinkType::NULL => 6,
        LinkType::LOOP => 7,
        LinkType::PPP => 8,
        LinkType::PPP_HDLC => 9,
        LinkType::PPP_ETHER => 10,
        LinkType::IEEE802_11 => 11,
        LinkType::IEEE802_11_RADIOTAP => 12,
        _ => 13,
    }
}
