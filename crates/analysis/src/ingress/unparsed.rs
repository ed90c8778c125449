//! Packets that no layer understood, and why.

use core::fmt;

use netsniff_packet::LinkType;
use netsniff_packet::decode::{self, Layer, Layers, Stop};

use super::statistics::Fate;

/// Why a packet, or something inside it, was not understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unparsed {
    /// Its link type is not known.
    LinkType(LinkType),
    /// A header is malformed, or cut.
    Stopped(Stop),
    /// What the last header that was read says to follow is not known.
    NothingAbove(Layer),
}

impl Unparsed {
    /// Judges a packet by the layers that were met in it.
    pub(super) fn of(link_type: LinkType, layers: Layers, fate: Fate) -> Option<Self> {
        let is_understood = [Layer::Ipv4, Layer::Ipv6, Layer::Arp];
        match fate {
            Fate::Stopped(stop) => Some(Self::Stopped(stop)),
            Fate::Discarded => None,
            Fate::Passed if is_understood.iter().any(|&layer| layers.contains(layer)) => None,
            Fate::Passed if decode::supported(link_type) => {
                let is_read =
                    |layer: &&Layer| layers.contains(**layer) && **layer != Layer::OtherNetwork;
                let last = Layer::ALL.iter().rev().find(is_read);
                last.copied().map(Self::NothingAbove)
            }
            Fate::Passed => Some(Self::LinkType(link_type)),
        }
    }
}

impl fmt::Display for Unparsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LinkType(LinkType(number)) => write!(f, "link type {number} is not supported"),
            Self::Stopped(stop) => {
                let Stop { weird, layer, offset, needed, had, cut } = *stop;
                write!(f, "{weird}: {} header at offset {offset}", layer.name())?;
                if needed > 0 {
                    write!(f, " needs {needed} bytes, {had} are there")?;
                }
                if cut {
                    f.write_str(", cut by the capture")?;
                }
                Ok(())
            }
            Self::NothingAbove(layer) => {
                write!(f, "what follows the {} header is not known", layer.name())
            }
        }
    }
}
