//! What to listen to, as arguments name it.

use std::ffi::OsString;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use netsniff_console::UsageError;

/// Port of NetFlow, by habit: no port is registered.
const NETFLOW_PORT: u16 = 2055;
/// Port of IPFIX (RFC 7011, 10.1).
const IPFIX_PORT: u16 = 4739;

/// An address to listen at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Endpoint {
    /// The address; that of all of IPv6 takes IPv4 as well.
    pub(super) address: SocketAddr,
    /// Whether connections are taken as well as datagrams.
    pub(super) takes_connections: bool,
}

/// The endpoints that arguments name; none where they name files.
pub(super) fn endpoints(sources: &[OsString]) -> Result<Vec<Endpoint>, UsageError> {
    let named =
        |source: &OsString| source.to_str().filter(|text| text.contains("://")).map(endpoint);
    let endpoints: Result<Vec<_>, _> = sources.iter().filter_map(named).collect();
    let endpoints = endpoints?;
    if !endpoints.is_empty() && endpoints.len() < sources.len() {
        let said =
            "name either where to listen, or capture files: they cannot be collected together";
        return Err(UsageError(said.to_owned()));
    }
    Ok(endpoints)
}

fn endpoint(text: &str) -> Result<Endpoint, UsageError> {
    let wrong =
        || UsageError(format!("{text}: write netflow://[ADDR][:PORT] or ipfix://[ADDR][:PORT]"));
    let (scheme, rest) = text.split_once("://").ok_or_else(wrong)?;
    let (port, takes_connections) = match scheme {
        "netflow" => (NETFLOW_PORT, false),
        "ipfix" => (IPFIX_PORT, true),
        _ => return Err(wrong()),
    };
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    let address = address(rest, port).ok_or_else(wrong)?;
    Ok(Endpoint { address, takes_connections })
}

/// An address with or without a port. An address of IPv6 with a port stands in brackets.
fn address(text: &str, port: u16) -> Option<SocketAddr> {
    let all = IpAddr::V6(Ipv6Addr::UNSPECIFIED);
    if text.is_empty() {
        return Some((all, port).into());
    }
    if let Some(port) = text.strip_prefix(':') {
        return port.parse::<u16>().ok().map(|port| (all, port).into());
    }
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    let bare: Option<IpAddr> = bare.parse().ok();
    text.parse().ok().or_else(|| bare.map(|address| (address, port).into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_are_read() {
        for (text, address, takes_connections) in [
            ("netflow://", "[::]:2055", false),
            ("netflow://:9995", "[::]:9995", false),
            ("ipfix://192.0.2.1", "192.0.2.1:4739", true),
            ("ipfix://192.0.2.1:1/", "192.0.2.1:1", true),
            ("ipfix://[2001:db8::1]:1", "[2001:db8::1]:1", true),
            ("ipfix://[2001:db8::1]", "[2001:db8::1]:4739", true),
        ] {
            let expected = Endpoint { address: address.parse().unwrap(), takes_connections };
            assert_eq!(endpoint(text).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_endpoint_is_refused() {
        for text in ["sflow://:6343", "netflow://host", "ipfix://:65536", "ipfix://:x"] {
            assert!(endpoint(text).unwrap_err().to_string().contains("ipfix://[ADDR]"), "{text}");
        }
        let both = ["ipfix://".into(), "a.pcap".into()];
        assert!(endpoints(&both).unwrap_err().to_string().contains("capture files"));
        assert_eq!(endpoints(&["a.pcap".into()]).unwrap(), []);
    }
}
