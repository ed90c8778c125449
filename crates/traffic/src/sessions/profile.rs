//! What sessions are like: how much is said in them, and how hosts acknowledge it.

use core::time::Duration;

use super::Kind;

/// What sessions are like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    /// Small pages and files, some large ones; each segment is acknowledged.
    #[default]
    Usual,
    /// Those of one host in the laboratory of CAIA-TR-051004A: 870 bytes a packet and 350 packets a second on average, of
    /// five protocols. Files are larger, servers are near, and every second segment is acknowledged.
    Papers,
}

impl Profile {
    /// The list of all profiles.
    pub const ALL: [Self; 2] = [Self::Usual, Self::Papers];

    /// The word that the command line takes for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Usual => "usual",
            Self::Papers => "papers",
        }
    }

    /// The profile with a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|profile| profile.name() == name)
    }

    /// How many hosts there are.
    #[must_use]
    pub const fn hosts(self) -> u32 {
        match self {
            Self::Usual => 30,
            Self::Papers => 1,
        }
    }

    /// The sessions that hosts have, each kind as often as it stands there.
    #[must_use]
    pub const fn mix(self) -> &'static [Kind] {
        match self {
            Self::Usual => &Kind::ALL,
            Self::Papers => &[Kind::Http, Kind::Smtp, Kind::Ftp, Kind::Ssh, Kind::Https],
        }
    }

    /// Mean time between two sessions of a host.
    #[must_use]
    pub const fn think(self) -> Duration {
        match self {
            Self::Usual => Duration::from_secs(1),
            Self::Papers => Duration::from_millis(THINK),
        }
    }

    /// How many times as large as usual pages, mails and files are.
    pub(super) const fn content(self) -> usize {
        match self {
            Self::Usual => 1,
            Self::Papers => CONTENT,
        }
    }

    /// How many times as short pauses and paths are.
    pub(super) const fn haste(self) -> u32 {
        match self {
            Self::Usual => 1,
            // Servers of a laboratory are near, and scripts type fast.
            Self::Papers => 4,
        }
    }

    /// Bytes that a sender has under way at most.
    pub(super) const fn in_flight(self) -> u32 {
        match self {
            Self::Usual => 14_600,
            // Segments below the 65,535 bytes of a window without a scale.
            Self::Papers => 44 * 1448,
        }
    }

    /// Whether only every second segment of a stream is acknowledged (RFC 1122, 4.2.3.2).
    pub(super) const fn delays_acknowledgements(self) -> bool {
        matches!(self, Self::Papers)
    }
}

/// These two were found by trying: with them the averages are the paper's.
const CONTENT: usize = 15;
const THINK: u64 = 80;
