//! Which hosts of a capture are clients, and which are servers, so that each side can be sent on a wire of its own.

use core::hash::Hash;
use std::collections::{HashMap, HashSet};

use netsniff_packet::decode::{self, TcpFlags, Transport};
use netsniff_packet::{Address, LinkType};

use crate::dialogue::Side;

/// Where the sender's address of an ARP message lies, behind its hardware address.
const ARP_SENDER_AT: usize = 14 + 14;

/// Connections that are remembered at least, so that each has one vote.
const REMEMBERED: usize = 1 << 19;

/// What speaks for a host being a client (positive) or a server (negative): who opens connections, and, where nobody
/// was seen to do so, who has the higher port in conversations.
#[derive(Clone, Copy, Debug, Default)]
struct Votes {
    opened: i64,
    ports: i64,
}

impl Votes {
    fn side(self) -> Option<Side> {
        match (self.opened.signum(), self.ports.signum()) {
            (1, _) | (0, 1) => Some(Side::Client),
            (-1, _) | (0, -1) => Some(Side::Server),
            _ => None,
        }
    }
}

/// The sides of the hosts of a capture. A host is on one side with all that it sends, as behind one port of
/// a device; who is both client and server is on the side that more of its connections speak for.
#[derive(Clone, Debug, Default)]
pub struct Sides {
    addresses: HashMap<Address, Votes>,
    /// Senders of frames, which tell of those without IP.
    macs: HashMap<[u8; 6], Votes>,
    voted: Remembered<Conversation>,
}

/// Who speaks with whom: source and destination of the frame at hand, and the number that a TCP connection was opened
/// with, where it is about that.
type Conversation = ([(Address, u16); 2], Option<u32>);

/// The latest of many things, a bounded number of them.
#[derive(Clone, Debug)]
struct Remembered<T> {
    latest: HashSet<T>,
    before: HashSet<T>,
}

impl<T> Default for Remembered<T> {
    fn default() -> Self {
        Self { latest: HashSet::new(), before: HashSet::new() }
    }
}

impl<T: Eq + Hash> Remembered<T> {
    /// Whether it was not remembered before.
    fn is_new(&mut self, thing: T) -> bool {
        if self.latest.len() >= REMEMBERED {
            self.before = core::mem::take(&mut self.latest);
        }
        !self.before.contains(&thing) && self.latest.insert(thing)
    }
}

impl Sides {
    /// Takes in an Ethernet frame of the capture, of so many bytes on the wire.
    pub fn learn(&mut self, frame: &[u8], wire_len: u32) {
        let decoded = decode::packet(LinkType::ETHERNET, frame, wire_len);
        let Some(ip) = decoded.ip else { return };
        let (ports, opening) = match decoded.transport {
            Transport::Tcp(tcp) => {
                let number = match (tcp.flags.any(TcpFlags::SYN), tcp.flags.any(TcpFlags::ACK)) {
                    (true, false) => Some((1, tcp.sequence)),
                    // The other side's, plus 1.
                    (true, true) => Some((-1, tcp.acknowledgement.wrapping_sub(1))),
                    (false, _) => None,
                };
                ((tcp.source_port, tcp.destination_port), number)
            }
            Transport::Udp(udp) => ((udp.source_port, udp.destination_port), None),
            _ => return,
        };
        let between = [(ip.source, ports.0), (ip.destination, ports.1)];
        // Each direction of a connection and of a conversation has one vote, however often it is opened and however
        // much is said.
        let opened = match opening {
            Some((sign, number)) if self.voted.is_new((between, Some(number))) => sign,
            _ => 0,
        };
        let is_first = self.voted.is_new((between, None));
        let higher = if is_first { higher(ports.0, ports.1) } else { 0 };
        for (address, sign) in [(ip.source, 1), (ip.destination, -1)] {
            let votes = self.addresses.entry(address).or_default();
            votes.opened += sign * opened;
            votes.ports += sign * higher;
        }
        if let Some(mac) = sender(frame) {
            let votes = self.macs.entry(mac).or_default();
            votes.opened += opened;
            votes.ports += higher;
        }
    }

    /// The side that a frame comes from: the client's where nothing tells.
    #[must_use]
    pub fn of(&self, frame: &[u8], wire_len: u32) -> Side {
        let decoded = decode::packet(LinkType::ETHERNET, frame, wire_len);
        let address = decoded.ip.map(|ip| ip.source).or_else(|| arp_sender(frame));
        let by_address = address.and_then(|address| self.addresses.get(&address)?.side());
        let by_mac = || self.macs.get(&sender(frame)?)?.side();
        by_address.or_else(by_mac).unwrap_or(Side::Client)
    }
}

const fn higher(source: u16, destination: u16) -> i64 {
    (source > destination) as i64 - (source < destination) as i64
}

fn sender(frame: &[u8]) -> Option<[u8; 6]> {
    frame.get(6..12)?.try_into().ok()
}

/// The IPv4 address of who sends an ARP message (RFC 826).
fn arp_sender(frame: &[u8]) -> Option<Address> {
    let is_arp = frame.get(12..14) == Some(&[8, 6]);
    let at = frame.get(ARP_SENDER_AT..)?.first_chunk::<4>()?;
    is_arp.then(|| Address::from_v4(*at))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialogue::{Dialogue, Seen, Setup};
    use crate::frame::{Host, udp_frame};

    fn conversation(client: &str, server: &str, ports: (u16, u16)) -> Vec<Seen> {
        let setup = Setup {
            client: Host::new(client.parse().unwrap(), ports.0),
            server: Host::new(server.parse().unwrap(), ports.1),
            ..Setup::default()
        };
        let mut dialogue = Dialogue::new(setup);
        dialogue.connect().say(Side::Client, b"hello").say(Side::Server, b"well");
        dialogue.close(Side::Client).close(Side::Server);
        dialogue.finish().seen
    }

    #[test]
    fn who_opens_is_a_client_whatever_the_ports() {
        let mut seen = conversation("192.0.2.1", "198.51.100.1", (40_000, 80));
        seen.extend(conversation("192.0.2.2", "198.51.100.2", (1000, 50_000)));
        let mut sides = Sides::default();
        seen.iter().for_each(|seen| sides.learn(&seen.frame, seen.frame.len() as u32));
        for seen in &seen {
            assert_eq!(sides.of(&seen.frame, seen.frame.len() as u32), seen.from);
        }
    }

    /// A host with one server that does not answer, and one that it serves.
    #[test]
    fn a_connection_has_one_vote_however_often_it_is_asked_for() {
        let setup = |client: &str, server: &str| Setup {
            client: Host::new(client.parse().unwrap(), 40_000),
            server: Host::new(server.parse().unwrap(), 80),
            ..Setup::default()
        };
        let mut sides = Sides::default();
        let mut seen = Vec::new();
        let nobody = setup("192.0.2.5", "198.51.100.9");
        let mut dialogue = Dialogue::new(Setup { loss: (0.0, 1.0), ..nobody });
        dialogue.connect();
        seen.extend(dialogue.finish().seen);
        assert_eq!(seen.len(), 7);
        for client in ["192.0.2.1", "192.0.2.2"] {
            let mut dialogue = Dialogue::new(setup(client, "192.0.2.5"));
            dialogue.connect().say(Side::Server, &[0; 20_000]);
            seen.extend(dialogue.finish().seen);
        }
        seen.iter().for_each(|seen| sides.learn(&seen.frame, seen.frame.len() as u32));
        let answer = &seen.last().unwrap().frame;
        let from_server = seen.iter().rfind(|seen| seen.from == Side::Server).unwrap();
        let of = |frame: &[u8]| sides.of(frame, frame.len() as u32);
        assert_eq!((of(&from_server.frame), of(answer)), (Side::Server, Side::Client));
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut remembered = Remembered::default();
        assert!((0..3 * REMEMBERED).all(|number| remembered.is_new(number)));
        assert!(remembered.latest.len() + remembered.before.len() <= 2 * REMEMBERED);
        assert!((2 * REMEMBERED..3 * REMEMBERED).all(|number| !remembered.is_new(number)));
    }

    #[test]
    fn ports_tell_where_no_opening_was_seen() {
        let client = Host::new("192.0.2.1".parse().unwrap(), 40_000);
        let server = Host::new("192.0.2.2".parse().unwrap(), 53);
        let ask = udp_frame(&client, &server, 0, b"?").unwrap();
        let answer = udp_frame(&server, &client, 0, b"!").unwrap();
        let mut sides = Sides::default();
        assert_eq!(sides.of(&answer, 60), Side::Client, "nothing is known");
        sides.learn(&ask, 60);
        assert_eq!((sides.of(&ask, 60), sides.of(&answer, 60)), (Side::Client, Side::Server));
        // ARP of the server, and something else from its card.
        let mut arp = [&[0xff; 6][..], &server.mac, &[8, 6, 0, 1, 8, 0, 6, 4, 0, 2]].concat();
        arp.extend([&server.mac[..], &[192, 0, 2, 2], &[0; 10]].concat());
        assert_eq!(sides.of(&arp, 42), Side::Server);
        sides.learn(&answer, 60);
        let other = [&[0xff; 6][..], &server.mac, &[0x88, 0xcc, 0, 0]].concat();
        assert_eq!(sides.of(&other, 60), Side::Server);
        assert_eq!(sides.of(&[], 0), Side::Client);
    }
}
