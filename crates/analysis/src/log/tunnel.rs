//! The `tunnel` log: where packets travelled inside packets.

use netsniff_packet::decode::tunnel::TunnelKind;
use netsniff_packet::{Address, Timestamp};

use crate::key::uid::Uid;
use crate::record::Port;

crate::record! {
    /// One row for each beginning and end of a tunnel.
    pub struct Tunnel => "tunnel" {
        /// Time of the packet that showed it.
        ts: Timestamp => "ts", time, Seconds, Plain, Zeek;
        /// Identifier of the outer connection, or of the tunnel where no connection carries it.
        uid: Option<Uid> => "uid", string, None, Plain, Zeek;
        /// Address of the tunnel's originator.
        id_orig_h: Address => "id.orig_h", addr, None, Address, Zeek;
        /// Port of the tunnel's originator; 0 where there is none.
        id_orig_p: Port => "id.orig_p", port, None, Plain, Zeek;
        /// Address of the tunnel's responder.
        id_resp_h: Address => "id.resp_h", addr, None, Address, Zeek;
        /// Port of the tunnel's responder; 0 where there is none.
        id_resp_p: Port => "id.resp_p", port, None, Plain, Zeek;
        /// Kind of tunnel.
        tunnel_type: TunnelType => "tunnel_type", enum, None, Plain, Zeek;
        /// What happened to the tunnel.
        action: TunnelAction => "action", enum, None, Plain, Zeek;
    }
}

crate::words! {
    /// Kinds of tunnels, in Zeek's words.
    pub enum TunnelType {
        /// IPv4 or IPv6 in IPv4 or IPv6, without a header between.
        Ip => "Tunnel::IP",
        /// AYIYA.
        Ayiya => "Tunnel::AYIYA",
        /// Teredo, RFC 4380.
        Teredo => "Tunnel::TEREDO",
        /// SOCKS, RFC 1928.
        Socks => "Tunnel::SOCKS",
        /// GTP-U version 1, 3GPP TS 29.281.
        Gtpv1 => "Tunnel::GTPv1",
        /// HTTP CONNECT.
        Http => "Tunnel::HTTP",
        /// GRE, RFC 2784.
        Gre => "Tunnel::GRE",
        /// VXLAN, RFC 7348.
        Vxlan => "Tunnel::VXLAN",
        /// Geneve, RFC 8926.
        Geneve => "Tunnel::GENEVE",
        /// MPLS in UDP, RFC 7510, which Zeek does not read.
        Mpls => "Tunnel::MPLS",
    }
}

crate::words! {
    /// What happened to a tunnel, in Zeek's words.
    pub enum TunnelAction {
        /// It was seen for the first time.
        Discover => "Tunnel::DISCOVER",
        /// Its connection ended.
        Close => "Tunnel::CLOSE",
        /// Nothing was seen of it for too long.
        Expire => "Tunnel::EXPIRE",
    }
}

impl From<TunnelKind> for TunnelType {
    fn from(kind: TunnelKind) -> Self {
        match kind {
            TunnelKind::Ip => Self::Ip,
            TunnelKind::Gre => Self::Gre,
            TunnelKind::Vxlan => Self::Vxlan,
            TunnelKind::Geneve => Self::Geneve,
            TunnelKind::Gtpu => Self::Gtpv1,
            TunnelKind::Teredo => Self::Teredo,
            TunnelKind::Ayiya => Self::Ayiya,
            TunnelKind::Mpls => Self::Mpls,
        }
    }
}
