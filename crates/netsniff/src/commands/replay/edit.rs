//! The arguments that change frames.

use std::net::IpAddr;

use netsniff_console::quantity::mac;
use netsniff_traffic::edit::{Edit, NetworkMap, Vlan};

/// What changes in every frame; checksums are made right.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Changes in every frame, with right checksums")]
pub(super) struct EditArgs {
    /// Sender's Ethernet address, as 02:00:00:00:00:01
    #[arg(long, value_name = "MAC", value_parser = mac)]
    src_mac: Option<[u8; 6]>,
    /// Receiver's Ethernet address
    #[arg(long, value_name = "MAC", value_parser = mac)]
    dst_mac: Option<[u8; 6]>,
    /// Identifier of the outermost VLAN tag, which frames without one get
    #[arg(long, value_name = "ID", value_parser = clap::value_parser!(u16).range(0..=4095),
        conflicts_with = "strip_vlan")]
    vlan: Option<u16>,
    /// No VLAN tags
    #[arg(long)]
    strip_vlan: bool,
    /// Other addresses for those of a network, host by host, as 10.0.0.0/8=172.0.0.0; may be repeated
    #[arg(long, value_name = "NET/LEN=NET", value_parser = network)]
    map_ip: Vec<NetworkMap>,
    /// Another port of TCP and UDP, on either side, as 80=8080; may be repeated
    #[arg(long, value_name = "PORT=PORT", value_parser = ports)]
    map_port: Vec<(u16, u16)>,
}

impl EditArgs {
    pub(super) fn edit(&self) -> Edit {
        let strip = self.strip_vlan.then_some(Vlan::Strip);
        Edit {
            source: self.src_mac,
            destination: self.dst_mac,
            vlan: self.vlan.map(Vlan::Set).or(strip),
            networks: self.map_ip.clone(),
            ports: self.map_port.clone(),
        }
    }
}

fn network(text: &str) -> Result<NetworkMap, String> {
    let parsed = || {
        let (from, to) = text.split_once('=')?;
        let (from, len) = match from.split_once('/') {
            Some((from, len)) => (from, Some(len.parse().ok()?)),
            None => (from, None),
        };
        let (from, to): (IpAddr, IpAddr) = (from.parse().ok()?, to.parse().ok()?);
        NetworkMap::new(from, to, len.unwrap_or(if from.is_ipv4() { 32 } else { 128 }))
    };
    parsed().ok_or_else(|| "expected two networks, as 10.0.0.0/8=172.0.0.0".to_owned())
}

fn ports(text: &str) -> Result<(u16, u16), String> {
    let parsed = || {
        let (from, to) = text.split_once('=')?;
        Some((from.parse().ok()?, to.parse().ok()?))
    };
    parsed().ok_or_else(|| "expected two ports, as 80=8080".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_address_is_told() {
        assert_eq!(ports("80=8080"), Ok((80, 8080)));
        assert!(network("10.0.0.0/8=172.0.0.0").is_ok() && network("::1=2001:db8::1").is_ok());
        for wrong in ["10.0.0.0/8", "10.0.0.0/33=1.1.1.1", "10.0.0.0/8=::", "=", "a=b"] {
            assert!(network(wrong).is_err(), "{wrong}");
        }
        for wrong in ["80", "80=", "80=65536"] {
            assert!(ports(wrong).is_err(), "{wrong}");
        }
    }
}
