//! Host names: label by label, so that joins survive and the number of labels stays.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::io::Write as _;

use super::Anonymizer;
use super::prf::Domain;
use crate::Address;

/// Top-level domains that stay: those of special use (RFC 6761, RFC 6762, RFC 7686), which say what
/// kind of name it is, and those that anybody may register in, which say nothing of whom. Countries are
/// mapped.
const TOP_LEVEL: &[&str] =
    &["arpa", "com", "invalid", "local", "localhost", "net", "onion", "org", "test"];

/// Labels that stay where they are: the transport in the name of a service (RFC 2782).
const TRANSPORTS: &[&str] = &["_tcp", "_udp"];

/// Letters of pseudonyms: base 32.
const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// Letters of one pseudonym: 60 bits, so that among a million names the chance of two that meet is one
/// in two million.
pub(super) const PSEUDONYM: usize = 12;

impl Anonymizer {
    /// Appends the pseudonym of a host name, of an address, or of one with a port.
    ///
    /// Each label is mapped by itself, in lower case; the top-level domain stays where anybody may
    /// register in it. Names under `in-addr.arpa` and `ip6.arpa` are mapped as addresses.
    pub fn host(&self, name: &[u8], out: &mut Vec<u8>) {
        if self.literal(name, out) {
            return;
        }
        let (name, port) = without_port(name);
        match self.reverse_name(name) {
            Some(reverse) => out.extend_from_slice(&reverse),
            None => self.labels(name, out),
        }
        out.extend_from_slice(port);
    }

    fn labels(&self, name: &[u8], out: &mut Vec<u8>) {
        let (name, dot) = match name.strip_suffix(b".") {
            Some(name) if !name.is_empty() => (name, &b"."[..]),
            _ => (name, &b""[..]),
        };
        let is = |label: &[u8], list: &[&str]| {
            list.iter().any(|word| word.as_bytes().eq_ignore_ascii_case(label))
        };
        let last = name.iter().rposition(|&byte| byte == b'.').map_or(0, |dot| dot + 1);
        let mut at = 0;
        for label in name.split(|&byte| byte == b'.') {
            if at > 0 {
                out.push(b'.');
            }
            // A star, a hyphen and the like are no names.
            let stays = label.iter().all(u8::is_ascii_punctuation)
                || is(label, TRANSPORTS)
                || at == last && is(label, TOP_LEVEL);
            if stays {
                out.extend_from_slice(label);
            } else {
                self.pseudonym(Domain::Label, &label.to_ascii_lowercase(), out);
            }
            at += label.len() + 1;
        }
        out.extend_from_slice(dot);
    }

    /// Appends the pseudonym of any bytes.
    pub(super) fn pseudonym(&self, domain: Domain, bytes: &[u8], out: &mut Vec<u8>) {
        let mut bits = self.names.of(domain, bytes);
        for _ in 0..PSEUDONYM {
            out.push(LETTERS[(bits & 31) as usize]);
            bits >>= 5;
        }
    }

    /// Appends the pseudonym of an address that is written out: IPv4 or IPv6, in brackets or not,
    /// with a port, a zone or the length of a prefix, or a MAC address. `false` for anything else.
    pub(super) fn literal(&self, text: &[u8], out: &mut Vec<u8>) -> bool {
        let Ok(text) = core::str::from_utf8(text) else { return false };
        if let Some(mac) = mac_of(text) {
            self.mac_literal(text, mac, out);
            return true;
        }
        if let Some((inside, behind)) = text.strip_prefix('[').and_then(|text| text.split_once(']'))
        {
            let inside = inside.strip_prefix("IPv6:").unwrap_or(inside);
            let Ok(address) = inside.parse() else { return false };
            out.push(b'[');
            self.write_address(address, out);
            out.push(b']');
            self.behind_address(behind, out);
            return true;
        }
        let end = text.find(['/', '%']).unwrap_or(text.len());
        let (front, behind) = text.split_at(end);
        if let Ok(address) = front.parse() {
            self.write_address(address, out);
            self.behind_address(behind, out);
            return true;
        }
        // Only IPv4 may have a port without brackets.
        match front.split_once(':').map(|(front, _)| front.parse::<Ipv4Addr>()) {
            Some(Ok(address)) => {
                self.write_address(address.into(), out);
                self.behind_address(&text[front.find(':').unwrap_or(end)..], out);
                true
            }
            _ => false,
        }
    }

    fn write_address(&self, address: IpAddr, out: &mut Vec<u8>) {
        let is_mapped = matches!(address, IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some());
        let mapped = self.address(Address::from(address));
        // Writing to a `Vec` cannot fail.
        let _ = match mapped.to_ip() {
            IpAddr::V4(v4) if is_mapped => write!(out, "::ffff:{v4}"),
            mapped => write!(out, "{mapped}"),
        };
    }

    /// A port or a length stays; anything else, a zone or a path, is mapped.
    fn behind_address(&self, behind: &str, out: &mut Vec<u8>) {
        let is_number =
            |text: &str| text.len() <= 5 && text.bytes().all(|byte| byte.is_ascii_digit());
        if behind.strip_prefix([':', '/']).is_some_and(is_number) || behind.is_empty() {
            out.extend_from_slice(behind.as_bytes());
        } else {
            let sign = behind.bytes().next().filter(u8::is_ascii_punctuation);
            out.extend(sign);
            self.pseudonym(Domain::Text, behind.as_bytes(), out);
        }
    }

    fn mac_literal(&self, text: &str, mac: [u8; 6], out: &mut Vec<u8>) {
        let separator = text.as_bytes().get(2).copied().unwrap_or(b':');
        for (at, byte) in self.mac(mac).into_iter().enumerate() {
            if at > 0 {
                out.push(separator);
            }
            let _ = write!(out, "{byte:02x}");
        }
    }

    /// The pseudonym of a name that stands for an address or a prefix (RFC 1035, section 3.5; RFC
    /// 3596, section 2.5). What stands before the numbers is mapped as labels.
    fn reverse_name(&self, name: &[u8]) -> Option<Vec<u8>> {
        let name = name.strip_suffix(b".").unwrap_or(name).to_ascii_lowercase();
        let (front, radix, most) = if let Some(front) = name.strip_suffix(b".in-addr.arpa") {
            (front, 10, 4)
        } else if let Some(front) = name.strip_suffix(b".ip6.arpa") {
            (front, 16, 32)
        } else {
            return None;
        };
        // From the right, the most significant part first.
        let (mut parts, mut rest) = (Vec::with_capacity(most), front);
        while parts.len() < most && !rest.is_empty() {
            let start = rest.iter().rposition(|&byte| byte == b'.').map_or(0, |dot| dot + 1);
            let Some(part) = number(&rest[start..], radix) else { break };
            parts.push(part);
            rest = &rest[..start.saturating_sub(1)];
        }
        let mut mapped = Vec::new();
        if !rest.is_empty() {
            self.labels(rest, &mut mapped);
            mapped.push(b'.');
        }
        let count = parts.len();
        parts.resize(most, 0);
        let whole = if radix == 10 {
            let octets: [u8; 4] = parts.try_into().ok()?;
            match self.address(Address::from_v4(octets)).to_ip() {
                IpAddr::V4(v4) => v4.octets().to_vec(),
                IpAddr::V6(_) => return None,
            }
        } else {
            let pairs = parts.chunks(2).map(|pair| pair[0] << 4 | pair[1]);
            let octets: [u8; 16] = pairs.collect::<Vec<_>>().try_into().ok()?;
            let mapped = self.address(Address::from_v6(octets));
            let [high, low] = mapped.words();
            let octets = Ipv6Addr::from_bits(u128::from(high) << 64 | u128::from(low)).octets();
            octets.iter().flat_map(|octet| [octet >> 4, octet & 15]).collect()
        };
        for part in whole[..count].iter().rev() {
            let _ =
                if radix == 10 { write!(mapped, "{part}.") } else { write!(mapped, "{part:x}.") };
        }
        mapped.extend_from_slice(if radix == 10 { b"in-addr.arpa" } else { b"ip6.arpa" });
        Some(mapped)
    }
}

/// A part of a name that stands for an address: a byte in decimal, or four bits.
fn number(label: &[u8], radix: u32) -> Option<u8> {
    if label.is_empty() || radix == 16 && label.len() != 1 {
        return None;
    }
    u8::from_str_radix(core::str::from_utf8(label).ok()?, radix).ok()
}

/// Splits `host:port`; the second part is empty where there is no port.
fn without_port(name: &[u8]) -> (&[u8], &[u8]) {
    let at = name.iter().rposition(|&byte| byte == b':');
    match at.and_then(|at| name.split_at_checked(at)) {
        Some((host, port))
            if (2..=6).contains(&port.len())
                && port[1..].iter().all(u8::is_ascii_digit)
                && !host.contains(&b':') =>
        {
            (host, port)
        }
        _ => (name, b""),
    }
}

/// A MAC address with colons or hyphens.
fn mac_of(text: &str) -> Option<[u8; 6]> {
    let bytes = text.as_bytes();
    let separator = *bytes.get(2)?;
    if bytes.len() != 17 || !matches!(separator, b':' | b'-') {
        return None;
    }
    let mut mac = [0; 6];
    for (byte, pair) in mac.iter_mut().zip(bytes.chunks(3)) {
        if pair.get(2).is_some_and(|&behind| behind != separator) {
            return None;
        }
        let [high, low] = [0, 1].map(|at| char::from(pair[at]).to_digit(16));
        *byte = (high? << 4 | low?) as u8;
    }
    Some(mac)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::anonymize::tests::anonymizer;

    fn host(name: &str) -> String {
        let mut out = Vec::new();
        anonymizer().host(name.as_bytes(), &mut out);
        String::from_utf8(out).unwrap()
    }

    fn mapped(address: &str) -> String {
        anonymizer().address(address.parse::<IpAddr>().unwrap().into()).to_string()
    }

    #[test]
    fn labels_are_mapped_one_by_one() {
        let name = host("www.Example.com");
        let labels: Vec<_> = name.split('.').collect();
        assert_eq!(labels.len(), 3);
        assert_eq!(labels[2], "com");
        assert_eq!(labels[0].len(), PSEUDONYM);
        assert_eq!(host("WWW.example.COM").to_ascii_lowercase(), name, "case does not matter");
        assert_eq!(host("example.com"), labels[1..].join("."), "the domain is the same");
        assert_eq!(host("www.example.com."), format!("{name}."));
        assert_eq!(host("*.example.com"), format!("*.{}.com", labels[1]));
        assert_eq!(host("www.example.com:8080"), format!("{name}:8080"));
        assert_eq!(host("_ldap._tcp.example.com").split('.').nth(1), Some("_tcp"));
        assert_ne!(host("bücher.de"), "bücher.de");
        assert!(!host("intranet.de").ends_with(".de"), "countries are mapped");
        assert_eq!(host("com.example").split('.').next().unwrap().len(), PSEUDONYM);
        for same in ["", ".", "-", "*", "localhost"] {
            assert_eq!(host(same), same);
        }
        assert_eq!(host("a..b").split('.').count(), 3);
    }

    #[test]
    fn addresses_are_mapped_as_addresses() {
        for address in ["192.0.2.77", "2001:db8::77"] {
            assert_eq!(host(address), mapped(address));
        }
        assert_eq!(host("192.0.2.77:80"), format!("{}:80", mapped("192.0.2.77")));
        assert_eq!(host("192.0.2.77/24"), format!("{}/24", mapped("192.0.2.77")));
        assert_eq!(host("[2001:db8::77]:443"), format!("[{}]:443", mapped("2001:db8::77")));
        assert_eq!(host("[192.0.2.77]"), format!("[{}]", mapped("192.0.2.77")));
        assert_eq!(host("::ffff:192.0.2.77"), format!("::ffff:{}", mapped("192.0.2.77")));
        assert!(host("fe80::1%enp3s0").starts_with(&format!("{}%", mapped("fe80::1"))));
        assert!(!host("fe80::1%enp3s0").contains("enp3s0"));
        let mac = host("00-1B-21-01-02-03");
        assert!(
            mac.len() == 17 && mac.as_bytes()[2] == b'-' && mac != "00-1b-21-01-02-03",
            "{mac}"
        );
        assert_eq!(host("00:1b:21:01:02:03"), mac.replace('-', ":"));
    }

    #[test]
    fn reverse_names_are_those_of_the_mapped_addresses() {
        let mut octets: Vec<_> = mapped("192.0.2.77").split('.').map(str::to_owned).collect();
        octets.reverse();
        let whole = format!("{}.in-addr.arpa", octets.join("."));
        assert_eq!(host("77.2.0.192.in-addr.arpa"), whole);
        assert_eq!(host("0.192.IN-ADDR.ARPA"), format!("{}.in-addr.arpa", octets[2..].join(".")));
        let classless = host("64/26.2.0.192.in-addr.arpa");
        assert!(classless.ends_with(&format!(".{}.in-addr.arpa", octets[1..].join("."))));
        assert!(!classless.contains('/'));
        let IpAddr::V6(v6) = mapped("2001:db8::567:89ab").parse().unwrap() else { panic!("IPv6") };
        let nibbles: Vec<_> =
            format!("{:032x}", v6.to_bits()).chars().rev().map(String::from).collect();
        let name = "b.a.9.8.7.6.5.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa";
        assert_eq!(host(name), format!("{}.ip6.arpa", nibbles.join(".")));
        assert_eq!(
            host("8.b.d.0.1.0.0.2.ip6.arpa"),
            format!("{}.ip6.arpa", nibbles[24..].join("."))
        );
        assert_eq!(host("in-addr.arpa").rsplit('.').next(), Some("arpa"));
    }
}
