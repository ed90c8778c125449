//! Counts of checksums by protocol and by what they say.

use netsniff_packet::checksum::ChecksumVerdict;
use netsniff_packet::decode::Transport;

/// How many checksums there were of each [`ChecksumVerdict`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verdicts([u64; ChecksumVerdict::ALL.len()]);

impl Verdicts {
    /// Counts one checksum by what was found of it.
    #[inline]
    pub(crate) const fn count(&mut self, verdict: ChecksumVerdict) {
        self.0[verdict as usize] += 1;
    }

    /// How many there were of a verdict.
    #[must_use]
    pub const fn of(&self, verdict: ChecksumVerdict) -> u64 {
        self.0[verdict as usize]
    }

    /// Adds the counts of another worker.
    pub fn merge(&mut self, other: &Self) {
        for (to, from) in self.0.iter_mut().zip(other.0) {
            *to += from;
        }
    }
}

/// The protocols above IP whose checksums are counted. Of others (GRE, IGMP, OSPF and so on) none
/// is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checked {
    /// The checksum of TCP (RFC 9293, 3.1).
    Tcp,
    /// The checksum of UDP (RFC 768).
    Udp,
    /// The checksum of ICMP (RFC 792) or ICMPv6 (RFC 4443).
    Icmp,
    /// SCTP, whose CRC32c is not verified: always [`ChecksumVerdict::Unknown`].
    Sctp,
}

impl Checked {
    /// All of them, in the order of their numbers.
    pub const ALL: &[Self] = &[Self::Tcp, Self::Udp, Self::Icmp, Self::Sctp];

    /// That of a transport header.
    #[must_use]
    #[inline]
    pub const fn of(transport: &Transport) -> Option<Self> {
        match transport {
            Transport::Tcp(_) => Some(Self::Tcp),
            Transport::Udp(_) => Some(Self::Udp),
            Transport::Icmp(_) => Some(Self::Icmp),
            Transport::Sctp(_) => Some(Self::Sctp),
            Transport::Other | Transport::None => None,
        }
    }

    /// Its name in lower case.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
            Self::Icmp => "icmp",
            Self::Sctp => "sctp",
        }
    }
}
