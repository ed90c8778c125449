//! What is inside tunnels, and what their own headers tell.

use super::mend::{mend, sum};
use super::network::UpperLayer;
use super::{Cut, MAX_DEPTH, PacketAnonymizer, Reach, be16, blank};
use crate::decode::Next;
use crate::decode::tunnel::{self, Inner, Tunnel, TunnelKind};
use crate::decode::{self, Decoded};
use crate::wire::ipv4::protocol;

/// Length of the header of UDP.
const UDP: usize = 8;

impl PacketAnonymizer {
    /// Changes the tunnel above the headers that were decoded; `None` where there is none.
    pub(super) fn tunnel(
        &mut self,
        data: &mut [u8],
        decoded: &Decoded,
        above: &UpperLayer,
    ) -> Option<Reach> {
        if above.is_fragment {
            return None;
        }
        let tunnel = tunnel::find(decoded, data, &self.tunnel_ports)?.ok()?;
        let (at, end) = (tunnel.offset as usize, above.end);
        // GRE stands above IP or above UDP.
        let header = match above.protocol {
            protocol::UDP => (above.start + UDP).min(end),
            _ => above.start,
        };
        let before = sum(&data[header..end]);
        self.tunnel_header(data, above, &tunnel);
        let reach = if above.depth >= MAX_DEPTH {
            Reach::Until(at.min(end), Cut::Unknown(tunnel.kind.layer()))
        } else {
            // What is inside ends with the tunnel, not with the packet.
            let (inside, depth) = (data.get_mut(..end)?, above.depth + 1);
            match tunnel.inner {
                Inner::Ethernet => {
                    self.inside(inside, Next::Ethernet, at, tunnel.end as usize, depth)
                }
                Inner::Mpls => self.inside(inside, Next::Mpls, at, tunnel.end as usize, depth),
                Inner::Wlan => {
                    self.inside(inside, |at| Next::Wlan(at, false), at, tunnel.end as usize, depth)
                }
                Inner::Ip => self.inner_ip(inside, &tunnel, depth),
            }
        };
        if tunnel.kind == TunnelKind::Gre && be16(data, header)? & 0x8000 != 0 {
            let after = sum(&data[header..end]);
            mend(data, header + 4, before, after);
        }
        Some(reach)
    }

    fn inner_ip(&mut self, data: &mut [u8], tunnel: &Tunnel, depth: u8) -> Reach {
        let decoded = decode::ip(data, tunnel.offset, tunnel.end);
        match decoded.ip {
            Some(ip) => self.datagram(data, &decoded, &ip, depth),
            None => {
                let at = (tunnel.offset as usize).min(data.len());
                Reach::Until(at, Cut::Unknown(tunnel.kind.layer()))
            }
        }
    }

    /// Addresses and identities in the tunnel's own header.
    fn tunnel_header(&mut self, data: &mut [u8], above: &UpperLayer, tunnel: &Tunnel) {
        let (body, inner) = (above.start + UDP, tunnel.offset as usize);
        match tunnel.kind {
            TunnelKind::Geneve => blank(data, body + 8, inner),
            // Behind the lengths and the operation: the epoch, then identity and signature.
            TunnelKind::Ayiya => blank(data, body + 8, inner),
            TunnelKind::Teredo => self.teredo_indications(data, body, inner),
            TunnelKind::Ip
            | TunnelKind::Gre
            | TunnelKind::Vxlan
            | TunnelKind::Gtpu
            | TunnelKind::Mpls => {}
        }
    }

    /// Authentication, whose values are secrets, and the origin (RFC 4380, 5.1.1), an address whose
    /// bits are turned over.
    fn teredo_indications(&mut self, data: &mut [u8], body: usize, inner: usize) {
        const ORIGIN: usize = 8;
        let has_origin = inner >= body + ORIGIN && be16(data, inner - ORIGIN) == Some(0);
        let behind = if has_origin { inner - ORIGIN } else { inner };
        if behind > body + 4 {
            // Lengths stay, and the confirmation byte is one of the values.
            blank(data, body + 4, behind);
        }
        if has_origin
            && let Some(field) =
                data.get_mut(inner - 4..).and_then(|data| data.first_chunk_mut::<4>())
        {
            *field = self.mapped_v4(field.map(|byte| !byte)).map(|byte| !byte);
        }
    }
}
