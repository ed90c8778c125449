//! UDP ports on which tunnels are looked for.

use core::fmt;
use core::str::FromStr;
use std::borrow::Cow;

/// What a UDP port may carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encapsulation {
    /// VXLAN, RFC 7348.
    Vxlan,
    /// Geneve, RFC 8926.
    Geneve,
    /// GTP-U version 1, 3GPP TS 29.281.
    Gtpu,
    /// Teredo, RFC 4380.
    Teredo,
    /// AYIYA, draft-massar-v6ops-ayiya.
    Ayiya,
    /// GRE in UDP, RFC 8086.
    Gre,
    /// MPLS in UDP, RFC 7510.
    Mpls,
}

impl Encapsulation {
    /// Each with the word that users have for it.
    const NAMES: [(&'static str, Self); 7] = [
        ("vxlan", Self::Vxlan),
        ("geneve", Self::Geneve),
        ("gtpu", Self::Gtpu),
        ("teredo", Self::Teredo),
        ("ayiya", Self::Ayiya),
        ("gre", Self::Gre),
        ("mpls", Self::Mpls),
    ];
}

/// The ports that are known. Linux sends VXLAN to 8472 unless told otherwise; on GTP's control port
/// user packets are seen as well.
const KNOWN: &[(u16, Encapsulation)] = &[
    (4789, Encapsulation::Vxlan),
    (8472, Encapsulation::Vxlan),
    (6081, Encapsulation::Geneve),
    (2152, Encapsulation::Gtpu),
    (2123, Encapsulation::Gtpu),
    (3544, Encapsulation::Teredo),
    (5072, Encapsulation::Ayiya),
    (4754, Encapsulation::Gre),
    (6635, Encapsulation::Mpls),
];

/// UDP ports on which tunnels are looked for: the known ones, and more.
///
/// A port alone makes no tunnel; header and inner packet must agree with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TunnelPorts {
    /// A bit for the low six bits of each port: most datagrams are told by it.
    mask: u64,
    list: Cow<'static, [(u16, Encapsulation)]>,
}

impl TunnelPorts {
    /// The ports that the registry has for tunnels.
    pub const KNOWN: &'static Self = &Self { mask: mask(KNOWN), list: Cow::Borrowed(KNOWN) };

    /// The most ports that may be added.
    pub const MAX_ADDED: usize = 64;

    /// Whether tunnels are looked for on a port.
    #[must_use]
    #[inline]
    pub fn has(&self, port: u16) -> bool {
        self.mask >> (port & 63) & 1 != 0 && self.list.iter().any(|(known, _)| *known == port)
    }

    /// What a port may carry; what was added comes first.
    pub(super) fn of(&self, port: u16) -> impl Iterator<Item = Encapsulation> + '_ {
        let known = self.list.iter().rev().filter(move |(known, _)| *known == port);
        known.map(|(_, kind)| *kind)
    }
}

impl Default for TunnelPorts {
    fn default() -> Self {
        Self::KNOWN.clone()
    }
}

const fn mask(list: &[(u16, Encapsulation)]) -> u64 {
    let (mut mask, mut at) = (0, 0);
    while at < list.len() {
        mask |= 1 << (list[at].0 & 63);
        at += 1;
    }
    mask
}

/// A text that tells no ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoTunnelPorts(String);

impl fmt::Display for NoTunnelPorts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl core::error::Error for NoTunnelPorts {}

/// `vxlan=8473,geneve=6082`: ports beside the known ones. A port without a name is one more of the
/// name before it, as in `vxlan=8473,8474`.
impl FromStr for TunnelPorts {
    type Err = NoTunnelPorts;

    fn from_str(text: &str) -> Result<Self, NoTunnelPorts> {
        let mut list = KNOWN.to_vec();
        let mut kind = None;
        for part in text.split(',').map(str::trim) {
            let number = match part.split_once('=') {
                Some((name, number)) => {
                    let known = Encapsulation::NAMES.iter().find(|(known, _)| *known == name);
                    let Some((_, found)) = known else {
                        let names = Encapsulation::NAMES.map(|(name, _)| name).join(", ");
                        return Err(NoTunnelPorts(format!("{name:?} is none of {names}")));
                    };
                    kind = Some(*found);
                    number
                }
                None => part,
            };
            let port = number.parse().ok().filter(|port| *port != 0);
            let (Some(port), Some(kind)) = (port, kind) else {
                return Err(NoTunnelPorts(format!("{part:?} is not a name, \"=\" and a port")));
            };
            if !list.contains(&(port, kind)) {
                list.push((port, kind));
            }
        }
        if list.len() > KNOWN.len() + Self::MAX_ADDED {
            return Err(NoTunnelPorts(format!("more than {} ports", Self::MAX_ADDED)));
        }
        Ok(Self { mask: mask(&list), list: list.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_added_to_the_known_ones() {
        let ports: TunnelPorts = "vxlan=8473, 8474,geneve=9000,gtpu=8473".parse().unwrap();
        let of = |port| ports.of(port).collect::<Vec<_>>();
        assert_eq!(of(8473), [Encapsulation::Gtpu, Encapsulation::Vxlan]);
        assert_eq!((of(8474), of(9000)), (vec![Encapsulation::Vxlan], vec![Encapsulation::Geneve]));
        assert_eq!((of(4789), of(4790)), (vec![Encapsulation::Vxlan], vec![]));
        assert!(ports.has(8474) && !TunnelPorts::KNOWN.has(8474) && !ports.has(0));
        for text in ["", "vxlan", "8473", "vxlan=0", "vxlan=65536", "l2tp=1701", "vxlan=1,,2"] {
            assert!(text.parse::<TunnelPorts>().is_err(), "{text:?}");
        }
    }
}
