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
//! That program is what [`Filter::matches`] runs, and it has the shape of classic BPF, which
//! [`classic`] makes of it for the kernel; `simplify` leaves out the tests whose outcome is known.
//!
//! The meaning is that of libpcap 1.10 reading a file: a load outside the captured bytes rejects
//! the packet even under `not`; `vlan`, `mpls` and `pppoes` move the headers for the rest of the
//! text; ports are not looked for in later fragments, nor behind IPv6 extension headers. libpcap's
//! optimiser reorders tests in other ways than `simplify`, so a packet that the capture cut inside a
//! header may be rejected here and accepted there, or the reverse, in filters such as `host A or B`; for
//! whole packets the verdicts are the same unless a filter loads bytes that they do not have.
//!
//! What is not supported is refused with a sentence that says so, never guessed: names of hosts and
//! networks (nothing is looked up), `protochain`, `gateway`, `geneve`, `byte N & M`, and the words
//! for ATM, SS7, 802.11 and pf. With `ip broadcast` only 0.0.0.0 and 255.255.255.255 count.

mod bind;
pub mod classic;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Timestamp;

    fn packet(data: &[u8], link_type: LinkType) -> Packet<'_> {
        let wire_len = 1500;
        Packet { timestamp: Timestamp::EPOCH, data, wire_len, link_type, interface: 0 }
    }

    /// An IPv4 packet of TCP from port 80, behind Ethernet.
    fn frame() -> [u8; 54] {
        let mut frame = [0; 54];
        frame[12] = 8;
        frame[14] = 0x45;
        frame[23] = 6;
        frame[35] = 80;
        frame
    }

    #[test]
    fn a_load_outside_the_packet_rejects_it_even_under_not() {
        let frame = frame();
        let matches = |text: &str, length: usize| {
            Filter::parse(text).unwrap().matches(&packet(&frame[..length], LinkType::ETHERNET))
        };
        assert!(matches("tcp port 80", 54) && matches("not tcp port 81", 54));
        for length in 0..36 {
            assert!(!matches("tcp port 80", length), "{length}");
        }
        assert!(!matches("not tcp port 81", 35) && !matches("ip[40] = 0", 54));
        assert!(!matches("not ip[40] = 0", 54) && !matches("not ether[4294967295] = 0", 54));
        assert!(matches("", 0) && matches("len = 1500", 0) && matches("not less 1499", 0));
    }

    #[test]
    fn division_by_what_is_zero_in_the_packet_rejects_it() {
        let frame = frame();
        let ethernet = packet(&frame, LinkType::ETHERNET);
        for text in ["ip[8] / ip[1] = 0", "not ip[8] / ip[1] = 0", "ip[8] % ip[1] != 1"] {
            assert!(!Filter::parse(text).unwrap().matches(&ethernet), "{text}");
        }
        assert!(Filter::parse("ip[1] / ip[9] = 0").unwrap().matches(&ethernet));
    }

    #[test]
    fn one_filter_serves_every_link_type() {
        let filter = Filter::parse("tcp src port 80").unwrap();
        let frame = frame();
        assert!(filter.matches(&packet(&frame, LinkType::ETHERNET)));
        assert!(filter.matches(&packet(&frame[14..], LinkType::RAW)));
        assert!(filter.matches(&packet(&frame[14..], LinkType::IPV4)));
        assert!(!filter.matches(&packet(&frame[14..], LinkType::IPV6)));
        for family in [[2, 0, 0, 0], [0, 0, 0, 2]] {
            let null = [&family[..], &frame[14..]].concat();
            assert!(filter.matches(&packet(&null, LinkType::NULL)));
        }
    }

    #[test]
    fn a_condition_without_meaning_is_named_and_matches_nothing() {
        let filter = Filter::parse("tcp or not ether src 2:0:0:0:0:1").unwrap();
        assert_eq!(filter.check(LinkType::ETHERNET), Ok(()));
        let error = filter.check(LinkType::RAW).unwrap_err();
        let sentence = "a MAC address has no meaning for packets of link type RAW at column 22";
        assert_eq!(error.to_string(), sentence);
        assert!(!filter.matches(&packet(&frame()[14..], LinkType::RAW)));
        let error = Filter::parse("mpls and arp").unwrap().check(LinkType::ETHERNET).unwrap_err();
        assert_eq!(error.column(), 10);
    }

    #[test]
    fn steps_only_go_forward() {
        let expressions = include_str!("../../tests/filter/expressions.txt");
        for text in expressions.lines().filter(|line| !line.starts_with('#')) {
            let tree = parser::parse(text).unwrap();
            for number in 0..300 {
                let Ok(program) = bind::bind(&tree, text, LinkType(number)) else {
                    continue;
                };
                for (at, step) in program.steps.iter().enumerate() {
                    let last = program.steps.len() as u32;
                    for exit in [step.on_true, step.on_false] {
                        assert!(exit > at as u32, "{text}");
                        assert!(exit < last || exit >= program::REJECT, "{text}");
                    }
                }
            }
        }
    }

    #[test]
    fn known_outcomes_are_not_asked_again() {
        let tree = parser::parse("tcp port 80").unwrap();
        let program = bind::bind(&tree, "", LinkType::ETHERNET).unwrap();
        // EtherType of IPv6, next header, two ports; EtherType of IPv4, protocol, fragment, two ports.
        assert_eq!(program.steps.len(), 9);
        let tree = parser::parse("ip or not ip").unwrap();
        assert!(bind::bind(&tree, "", LinkType::ETHERNET).unwrap().accepts(&[], 0));
    }

    #[test]
    fn equal_ends_are_one_and_tests_of_one_field_stand_together() {
        let tree = parser::parse("host 192.0.2.1 or 192.0.2.2").unwrap();
        let program = bind::bind(&tree, "", LinkType::ETHERNET).unwrap();
        let offset = |step: &program::Step| match step.test {
            program::Test::Field { field, .. } => field.offset,
            _ => 0,
        };
        // ARP and RARP have their addresses at the same places.
        let offsets: Vec<_> = program.steps.iter().map(offset).collect();
        assert_eq!(offsets, [12, 26, 26, 12, 12, 28, 28, 30, 30, 38, 38]);
    }

    #[test]
    fn a_filter_that_would_grow_without_bound_is_refused() {
        let text = "1||2||".repeat(10_000) + "3";
        let filter =
            Filter::parse(&format!("portrange 1-9 or {}", &text[..text.len().min(65_000)]));
        let filter = filter.unwrap_or_else(|error| panic!("{error}"));
        let error = filter.check(LinkType::ETHERNET).unwrap_err();
        assert_eq!(error.sentence(), "the filter is too large from here on");
        assert!(!filter.matches(&packet(&frame(), LinkType::ETHERNET)));
    }
}
