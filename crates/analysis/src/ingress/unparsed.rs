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
    /// Judges a packet by how far it went, and the layers that were met in it.
    pub(super) fn of(link_type: LinkType, layers: Layers, fate: Fate) -> Option<Self> {
        match fate {
            Fate::Stopped(stop) => Some(Self::Stopped(stop)),
            Fate::Unknown => {
                let unread = [Layer::OtherNetwork, Layer::OtherTransport];
                let is_read = |layer: &&Layer| layers.contains(**layer) && !unread.contains(*layer);
                let last = Layer::ALL.iter().rev().find(is_read);
                last.copied().map(Self::NothingAbove)
            }
            Fate::Passed if !decode::supported(link_type) => Some(Self::LinkType(link_type)),
            Fate::Passed | Fate::Discarded => None,
        }
    }
}

impl fmt::Display for Unparsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LinkType(link_type) => {
                write!(f, "link type {} ({link_type}) is not supported", link_type.0)
            }
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
