//! Which bytes of a flow are worth keeping: all of the first ones, then headers only.
//!
//! Most bytes belong to few long flows, and what is said in them is said at their begin.

use netsniff_packet::decode::{self, Decoded, TcpFlags, Transport, TunnelPorts, tunnel};
use netsniff_packet::{Packet, Timestamp};

use crate::key::FlowKey;

/// Flows that are remembered unless told otherwise: a few megabytes. Where more are active, those
/// that were silent longest are forgotten, and begin anew when they go on; long flows, which the
/// cut-off is for, are seldom silent for long.
pub const FLOWS: usize = 1 << 16;
/// A flow that was silent for longer begins anew: Zeek's `tcp_inactivity_timeout`, 5 minutes.
const SILENCE: i64 = 300_000_000_000;
/// Places where a flow may be. The one that was silent longest makes room.
const WAYS: usize = 4;
/// Tunnels in tunnels that are followed to the flow inside.
const MAX_DEPTH: usize = 4;

/// Counts the bytes of flows, in a table of fixed size.
#[derive(Clone, Debug)]
pub struct FlowCutoff {
    limit: u64,
    seed: u64,
    sets: Vec<[Slot; WAYS]>,
    forgotten: u64,
    tunnel_ports: TunnelPorts,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    key: Option<FlowKey>,
    /// Bytes on the wire, of both directions.
    bytes: u64,
    seen: Timestamp,
}

impl Slot {
    const EMPTY: Self = Self { key: None, bytes: 0, seen: Timestamp::MIN };
}

impl FlowCutoff {
    /// Keeps the packets of a flow whole until `limit` bytes of it were on the wire, both directions
    /// and all headers counted. `flows` are remembered; `seed` keeps crafted traffic from aiming at
    /// single places.
    #[must_use]
    pub fn new(limit: u64, flows: usize, seed: u64) -> Self {
        let sets = flows.div_ceil(WAYS).max(1);
        let (sets, tunnel_ports) = (vec![[Slot::EMPTY; WAYS]; sets], TunnelPorts::default());
        Self { limit, seed, sets, forgotten: 0, tunnel_ports }
    }

    /// Looks for tunnels on these UDP ports, instead of those that are known.
    #[must_use]
    pub fn with_tunnel_ports(self, tunnel_ports: TunnelPorts) -> Self {
        Self { tunnel_ports, ..self }
    }

    /// Counts a packet with its flow, and returns how many of its captured bytes are to be kept: all
    /// of them, or where its flow is past the limit the headers alone, those of tunnels included.
    /// What belongs to no flow (fragments, what is not IP, what was not understood) is kept whole.
    pub fn keep(&mut self, packet: &Packet<'_>) -> usize {
        let whole = packet.data.len();
        let decoded = innermost(packet, &self.tunnel_ports);
        let Some(ip) = decoded.ip.filter(|_| decoded.stop.is_none()) else { return whole };
        let Some((key, _)) = FlowKey::of(&ip, &decoded.transport) else { return whole };
        let headers = match decoded.transport {
            Transport::Tcp(tcp) => tcp.payload_offset,
            Transport::Udp(udp) => udp.payload_offset,
            Transport::Icmp(icmp) => icmp.payload_offset,
            Transport::Sctp(sctp) => sctp.payload_offset,
            Transport::Other | Transport::None => ip.payload_offset,
        };
        let begins = matches!(decoded.transport, Transport::Tcp(tcp)
            if tcp.flags.any(TcpFlags::SYN) && !tcp.flags.any(TcpFlags::ACK));
        let before = self.count(key, packet.timestamp, packet.wire_len, begins);
        if before >= self.limit { whole.min(headers as usize) } else { whole }
    }

    /// Flows that were forgotten before they had been silent for five minutes, for want of places.
    #[must_use]
    pub const fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// Adds a packet to its flow, and returns the bytes before it.
    fn count(&mut self, key: FlowKey, time: Timestamp, wire_len: u32, begins: bool) -> u64 {
        // Scales the hash to the number of sets.
        let at = (u64::from(key.hash(self.seed)) * self.sets.len() as u64) >> 32;
        let Some(set) = self.sets.get_mut(at as usize) else { return 0 };
        let known = set.iter_mut().find(|slot| slot.key == Some(key));
        let slot = match known {
            Some(slot) => slot,
            None => {
                let Some(oldest) = set.iter_mut().min_by_key(|slot| slot.seen) else { return 0 };
                let in_use = oldest.key.is_some() && time.nanos_since(oldest.seen) <= SILENCE;
                self.forgotten += u64::from(in_use);
                *oldest = Slot { key: Some(key), bytes: 0, seen: time };
                oldest
            }
        };
        if begins || time.nanos_since(slot.seen) > SILENCE {
            slot.bytes = 0;
        }
        let before = slot.bytes;
        slot.bytes = before.saturating_add(u64::from(wire_len));
        slot.seen = slot.seen.max(time);
        before
    }
}

/// The headers of the innermost datagram that is understood.
fn innermost(packet: &Packet<'_>, ports: &TunnelPorts) -> Decoded {
    let mut decoded = decode::packet(packet.link_type, packet.data, packet.wire_len);
    for _ in 0..MAX_DEPTH {
        let Some(Ok(found)) = tunnel::find(&decoded, packet.data, ports) else { break };
        let inner = found.decode(packet.data);
        if inner.ip.is_none() || inner.stop.is_some() {
            break;
        }
        decoded = inner;
    }
    decoded
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::{IpAddr, Ipv4Addr};
    use netsniff_packet::LinkType;
    use netsniff_packet::wire::tcp::TcpHeader;
    use netsniff_traffic::frame::{Host, tcp_frame};

    const SECOND: i64 = 1_000_000_000;
    const HEADERS: usize = 14 + 20 + 20;

    fn host(last: u8, port: u16) -> Host {
        Host::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, last)), port)
    }

    fn frame(from: Host, to: Host, flags: u16, payload: usize) -> Vec<u8> {
        let header = TcpHeader {
            source_port: 0,
            destination_port: 0,
            sequence: 1,
            acknowledgement: 1,
            flags,
            window: 1000,
            checksum: 0,
            urgent_pointer: 0,
            options: &[],
        };
        tcp_frame(&from, &to, 1, &header, &vec![7; payload]).unwrap()
    }

    fn keep(cutoff: &mut FlowCutoff, time: i64, data: &[u8]) -> usize {
        keep_cut(cutoff, time, data, data.len())
    }

    fn keep_cut(cutoff: &mut FlowCutoff, time: i64, data: &[u8], wire_len: usize) -> usize {
        cutoff.keep(&Packet {
            timestamp: Timestamp::from_nanos(time),
            data,
            wire_len: wire_len as u32,
            link_type: LinkType::ETHERNET,
            interface: 0,
        })
    }

    #[test]
    fn a_flow_is_cut_to_headers_behind_its_limit_in_both_directions() {
        let (client, server) = (host(1, 4000), host(2, 80));
        let mut cutoff = FlowCutoff::new(1500, FLOWS, 3);
        let (there, back) = (frame(client, server, 0x18, 946), frame(server, client, 0x18, 446));
        assert_eq!(keep(&mut cutoff, 0, &there), 1000);
        assert_eq!(keep(&mut cutoff, 1, &back), 500);
        // 1500 bytes were seen: the next ones are headers, whoever sends them.
        assert_eq!(keep(&mut cutoff, 2, &there), HEADERS);
        assert_eq!(keep(&mut cutoff, 3, &back), HEADERS);
        // Another flow of the same hosts is not meant.
        assert_eq!(keep(&mut cutoff, 4, &frame(host(1, 4001), server, 0x18, 946)), 1000);
        // So is what the snaplen has cut, and one that was cut within its headers stays.
        assert_eq!(keep_cut(&mut cutoff, 5, &there[..60], 1000), HEADERS);
        assert_eq!(keep_cut(&mut cutoff, 6, &there[..40], 1000), 40);
    }

    #[test]
    fn silence_and_a_new_connection_begin_anew() {
        let (client, server) = (host(1, 4000), host(2, 80));
        let mut cutoff = FlowCutoff::new(1, FLOWS, 3);
        let data = frame(client, server, 0x18, 100);
        assert_eq!(keep(&mut cutoff, 0, &data), data.len());
        assert_eq!(keep(&mut cutoff, 300 * SECOND, &data), HEADERS);
        assert_eq!(keep(&mut cutoff, 600 * SECOND + 1, &data), data.len());
        assert_eq!(keep(&mut cutoff, 601 * SECOND, &data), HEADERS);
        let syn = frame(client, server, 0x02, 20);
        assert_eq!(keep(&mut cutoff, 602 * SECOND, &syn), syn.len());
    }

    #[test]
    fn the_table_does_not_grow_and_tells_what_it_forgot() {
        let mut cutoff = FlowCutoff::new(1, 64, 3);
        for port in 1..=1000 {
            let data = frame(host(1, port), host(2, 80), 0x18, 100);
            assert_eq!(keep(&mut cutoff, i64::from(port), &data), data.len());
        }
        assert_eq!(cutoff.sets.len() * WAYS, 64);
        assert_eq!(cutoff.forgotten(), 1000 - 64);
    }

    /// An IP datagram inside of another one, RFC 2003.
    fn in_ip(frame: &[u8]) -> Vec<u8> {
        let (ethernet, inner) = frame.split_at(14);
        let [high, low] = (20 + inner.len() as u16).to_be_bytes();
        let outer = [0x45, 0, high, low, 0, 1, 0, 0, 64, 4, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2];
        [ethernet, &outer, inner].concat()
    }

    #[test]
    fn flows_inside_of_a_tunnel_are_cut_one_by_one() {
        let mut cutoff = FlowCutoff::new(500, FLOWS, 3);
        let long = in_ip(&frame(host(1, 4000), host(2, 80), 0x18, 946));
        let other = in_ip(&frame(host(1, 4001), host(2, 80), 0x18, 100));
        assert_eq!(keep(&mut cutoff, 0, &long), long.len());
        assert_eq!(keep(&mut cutoff, 1, &long), HEADERS + 20);
        assert_eq!(keep(&mut cutoff, 2, &other), other.len());
    }

    #[test]
    fn tunnels_are_looked_for_on_the_users_ports() {
        let in_vxlan = |frame: &[u8]| {
            let [high, low] = (8 + 8 + frame.len() as u16).to_be_bytes();
            let [total_high, total_low] = (20 + 8 + 8 + frame.len() as u16).to_be_bytes();
            let outer =
                [69, 0, total_high, total_low, 0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, 8, 10, 0, 0, 9];
            let udp = [0x9c, 0x40, 0x27, 0x0f, high, low, 0, 0];
            [&frame[..14], &outer, &udp, &[8, 0, 0, 0, 0, 0, 7, 0], frame].concat()
        };
        let one = in_vxlan(&frame(host(1, 4000), host(2, 80), 0x18, 946));
        let other = in_vxlan(&frame(host(1, 4001), host(2, 80), 0x18, 100));
        let cutoff = FlowCutoff::new(500, FLOWS, 3);
        let mut known = cutoff.clone();
        assert_eq!(keep(&mut known, 0, &one), one.len());
        assert_eq!(keep(&mut known, 1, &other), 14 + 20 + 8, "one flow of UDP");
        let mut named = cutoff.with_tunnel_ports("vxlan=9999".parse().unwrap());
        assert_eq!(keep(&mut named, 0, &one), one.len());
        assert_eq!(keep(&mut named, 1, &other), other.len());
        assert_eq!(keep(&mut named, 2, &one), one.len() - 946);
    }

    #[test]
    fn what_is_no_flow_is_kept() {
        let mut cutoff = FlowCutoff::new(0, FLOWS, 3);
        let arp = [&[2; 12][..], &[8, 6], &[0; 28]].concat();
        assert_eq!(keep(&mut cutoff, 0, &arp), arp.len());
        assert_eq!(keep(&mut cutoff, 0, &[]), 0);
        let data = frame(host(1, 1), host(2, 2), 0x18, 100);
        assert_eq!(keep(&mut cutoff, 0, &data), HEADERS);
    }
}
