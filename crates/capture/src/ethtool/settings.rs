//! Sizes of rings, when interrupts come, and how many queues there are.

use std::io;

use super::Ethtool;

/// Descriptors of the rings that the interface and its driver share, `struct ethtool_ringparam`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Rings {
    /// Frames that may wait for the driver, now.
    pub rx: u32,
    /// The most that the hardware takes.
    pub rx_max: u32,
    /// Frames that may wait to be sent, now.
    pub tx: u32,
    /// The most that the hardware takes.
    pub tx_max: u32,
}

const GET_RINGS: u32 = 0x10;
const SET_RINGS: u32 = 0x11;

fn ring_words(of: &dyn Ethtool, interface: &str) -> io::Result<[u32; 9]> {
    let mut words = [0; 9];
    words[0] = GET_RINGS;
    of.ask(interface, &mut words)?;
    Ok(words)
}

/// The rings of an interface.
///
/// # Errors
///
/// As [`Ethtool::ask`].
pub fn rings(of: &dyn Ethtool, interface: &str) -> io::Result<Rings> {
    let words = ring_words(of, interface)?;
    Ok(Rings { rx_max: words[1], tx_max: words[4], rx: words[5], tx: words[8] })
}

/// Lets so many frames wait for the driver. Most drivers take the interface down for a moment.
///
/// # Errors
///
/// As [`Ethtool::ask`].
pub fn set_rings(of: &dyn Ethtool, interface: &str, rx: u32) -> io::Result<()> {
    let mut words = ring_words(of, interface)?;
    (words[0], words[5]) = (SET_RINGS, rx);
    of.ask(interface, &mut words)
}

/// When an interrupt comes, `struct ethtool_coalesce`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Coalescing {
    /// Microseconds that it is put off after a frame came.
    pub rx_usecs: u32,
    /// Frames after which it comes at once; 0 for no bound.
    pub rx_frames: u32,
    /// Whether the driver chooses both by the rate.
    pub is_adaptive: bool,
}

const GET_COALESCING: u32 = 0x0e;
const SET_COALESCING: u32 = 0x0f;

/// Where numbers are among the 23 words.
const RX_USECS: usize = 1;
const RX_FRAMES: usize = 2;
const ADAPTIVE: usize = 10;

fn coalescing_words(of: &dyn Ethtool, interface: &str) -> io::Result<[u32; 23]> {
    let mut words = [0; 23];
    words[0] = GET_COALESCING;
    of.ask(interface, &mut words)?;
    Ok(words)
}

/// The coalescing of an interface.
///
/// # Errors
///
/// As [`Ethtool::ask`].
pub fn coalescing(of: &dyn Ethtool, interface: &str) -> io::Result<Coalescing> {
    let words = coalescing_words(of, interface)?;
    Ok(Coalescing {
        rx_usecs: words[RX_USECS],
        rx_frames: words[RX_FRAMES],
        is_adaptive: words[ADAPTIVE] != 0,
    })
}

/// Changes it.
///
/// # Errors
///
/// As [`Ethtool::ask`].
pub fn set_coalescing(of: &dyn Ethtool, interface: &str, to: Coalescing) -> io::Result<()> {
    let mut words = coalescing_words(of, interface)?;
    words[0] = SET_COALESCING;
    (words[RX_USECS], words[RX_FRAMES]) = (to.rx_usecs, to.rx_frames);
    words[ADAPTIVE] = to.is_adaptive.into();
    of.ask(interface, &mut words)
}

/// Queues, `struct ethtool_channels`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Channels {
    /// Queues that receive alone.
    pub rx: u32,
    /// The most of them.
    pub rx_max: u32,
    /// Queues that receive and send.
    pub combined: u32,
    /// The most of them.
    pub combined_max: u32,
}

/// Which queues are counted, by the word of ethtool(8).
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    serde::Serialize,
    serde::Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum ChannelKind {
    /// Queues that receive and send.
    #[default]
    Combined,
    /// Queues that receive alone.
    Rx,
}

impl ChannelKind {
    /// The word of ethtool(8).
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Combined => "combined",
            Self::Rx => "rx",
        }
    }
}

impl Channels {
    /// The kind whose number rules how many receive. A driver may have a few of the other kind beside it.
    #[must_use]
    pub const fn kind(&self) -> ChannelKind {
        if self.combined_max > 0 { ChannelKind::Combined } else { ChannelKind::Rx }
    }

    /// Queues of a kind.
    #[must_use]
    pub const fn count(&self, kind: ChannelKind) -> u32 {
        match kind {
            ChannelKind::Combined => self.combined,
            ChannelKind::Rx => self.rx,
        }
    }

    /// The most that there can be of the kind that there is.
    #[must_use]
    pub const fn receiving_max(&self) -> u32 {
        match self.kind() {
            ChannelKind::Combined => self.combined_max,
            ChannelKind::Rx => self.rx_max,
        }
    }

    /// The same with so many queues of a kind.
    #[must_use]
    pub const fn with(self, kind: ChannelKind, count: u32) -> Self {
        match kind {
            ChannelKind::Combined => Self { combined: count, ..self },
            ChannelKind::Rx => Self { rx: count, ..self },
        }
    }
}

const GET_CHANNELS: u32 = 0x3c;
const SET_CHANNELS: u32 = 0x3d;

fn channel_words(of: &dyn Ethtool, interface: &str) -> io::Result<[u32; 9]> {
    let mut words = [0; 9];
    words[0] = GET_CHANNELS;
    of.ask(interface, &mut words)?;
    Ok(words)
}

/// The queues of an interface.
///
/// # Errors
///
/// As [`Ethtool::ask`].
pub fn channels(of: &dyn Ethtool, interface: &str) -> io::Result<Channels> {
    let words = channel_words(of, interface)?;
    Ok(Channels { rx_max: words[1], combined_max: words[4], rx: words[5], combined: words[8] })
}

/// Changes them; those that only send stay as they are.
///
/// # Errors
///
/// As [`Ethtool::ask`].
pub fn set_channels(of: &dyn Ethtool, interface: &str, to: Channels) -> io::Result<()> {
    let mut words = channel_words(of, interface)?;
    (words[0], words[5], words[8]) = (SET_CHANNELS, to.rx, to.combined);
    of.ask(interface, &mut words)
}
