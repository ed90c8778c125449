//! Which packets of a capture can be sent, and as what.

use netsniff_capture::Interface;
use netsniff_packet::{LinkType, Packet};
use netsniff_pipeline::sending::report::UnsentFrames;
use netsniff_traffic::dialogue::Side;
use netsniff_traffic::edit::Edit;
use netsniff_traffic::sides::Sides;

/// The shortest frame: an Ethernet header.
const SHORTEST: usize = 14;

/// What to do about packets that were not captured whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Cut {
    /// Send them in full length, with zeroes for what is missing
    #[default]
    Pad,
    /// Leave them out
    Skip,
    /// Send nothing of a capture that has any
    Refuse,
}

/// Where packets are to be sent.
#[derive(Clone, Debug)]
pub(super) struct ReplayWire {
    pub(super) interface: Interface,
    /// Bytes of the longest frame that the way to send takes.
    pub(super) longest: usize,
}

/// Decides which packets are sent.
#[derive(Clone, Debug)]
pub(super) struct Judge {
    /// One wire for all, or one for clients and one for servers.
    pub(super) lanes: Vec<ReplayWire>,
    /// Who is which, where there are two wires.
    pub(super) sides: Option<Sides>,
    /// What to do about cut ones.
    pub(super) cut: Cut,
    /// What changes in each frame.
    pub(super) edit: Edit,
}

/// Why a packet is not sent, or not as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// It has no Ethernet header.
    LinkType,
    /// It is shorter than an Ethernet header.
    Short,
    /// It is longer than the interface takes.
    Long,
    /// It is longer than the way to send takes, which the interface would take.
    Way,
    /// It was not captured whole.
    Cut,
}

/// A verdict on a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PacketVerdict {
    /// It is sent, and has so many bytes on the wire.
    Send(usize),
    /// It is not sent.
    LeaveOut(Reason),
}

impl Judge {
    /// The wire that a packet leaves on.
    #[must_use]
    pub(super) fn wire(&self, packet: &Packet<'_>) -> usize {
        let side = self.sides.as_ref().map(|sides| sides.of(packet.data, packet.wire_len));
        usize::from(side == Some(Side::Server))
    }

    /// What is done with a packet.
    #[must_use]
    pub(super) fn judge(&self, packet: &Packet<'_>) -> PacketVerdict {
        let is_cut = packet.wire_len as usize > packet.data.len();
        let len = if is_cut { packet.wire_len as usize } else { packet.data.len() };
        let (is_tagged, sent) = self.edit.shape(packet.data, len);
        let fits = |lane: &ReplayWire| lane.interface.takes(is_tagged, sent);
        if packet.link_type != LinkType::ETHERNET {
            PacketVerdict::LeaveOut(Reason::LinkType)
        } else if packet.data.len() < SHORTEST || sent < SHORTEST {
            PacketVerdict::LeaveOut(Reason::Short)
        } else if is_cut && self.cut != Cut::Pad {
            PacketVerdict::LeaveOut(Reason::Cut)
        } else if !self.lanes.iter().all(fits) {
            PacketVerdict::LeaveOut(Reason::Long)
        } else if self.lanes.iter().any(|lane| sent > lane.longest) {
            PacketVerdict::LeaveOut(Reason::Way)
        } else {
            PacketVerdict::Send(sent)
        }
    }
}

/// How many packets were not sent, or not as they are, and why.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Exceptions {
    left_out: [u64; 5],
    padded: u64,
}

impl Exceptions {
    /// Counts a packet that is left out.
    pub(super) const fn leave_out(&mut self, reason: Reason) {
        self.left_out[reason as usize] += 1;
    }

    /// Counts a packet that is sent with zeroes in place of what was not captured.
    pub(super) const fn pad(&mut self) {
        self.padded += 1;
    }

    /// Packets that were left out.
    #[must_use]
    pub(super) fn left_out(&self) -> u64 {
        self.left_out.iter().sum()
    }

    /// Packets that were left out for a reason.
    #[must_use]
    pub(super) const fn of(&self, reason: Reason) -> u64 {
        self.left_out[reason as usize]
    }

    /// The same for a report.
    #[must_use]
    pub(super) fn unsent_frames(&self, lanes: &[ReplayWire]) -> Vec<UnsentFrames> {
        let mtu = |lane: &ReplayWire| (lane.interface.mtu, lane.interface.name.clone());
        let (mtu, name) = lanes.iter().map(mtu).min().unwrap_or_default();
        let longest = lanes.iter().map(|lane| lane.longest).min().unwrap_or_default();
        let way = format!("left out, longer than {longest} bytes, which this way takes: see --way");
        let what = [
            (Reason::LinkType, "left out, without an Ethernet header".to_owned()),
            (Reason::Short, "left out, shorter than an Ethernet header".to_owned()),
            (Reason::Long, format!("left out, longer than the MTU of {name} allows ({mtu})")),
            (Reason::Way, way),
            (Reason::Cut, "left out, not captured whole".to_owned()),
        ];
        let left = what.map(|(reason, what)| UnsentFrames { frames: self.of(reason), what });
        let padded = "not captured whole, sent with zeroes for what is missing".to_owned();
        left.into_iter().chain([UnsentFrames { frames: self.padded, what: padded }]).collect()
    }
}
