//! What a file says of the interfaces on which its packets were captured.

use netsniff_packet::LinkType;

/// An interface as its file describes it. Whatever the file does not say is `None`, never 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// What the first header of its packets is.
    pub link_type: LinkType,
    /// The most bytes that were captured of a packet; `None` for no limit.
    pub snaplen: Option<u32>,
    /// Length in bytes of the frame check sequence at the end of its packets.
    pub fcs_len: Option<u8>,
    /// Units of its time stamps.
    pub resolution: Resolution,
    /// Seconds that were added to its time stamps (if_tsoffset).
    pub time_offset: i64,
    /// Bits per second (if_speed).
    pub speed: Option<u64>,
    /// `eth0` (if_name).
    pub name: Option<String>,
    /// What it is, for people (if_description).
    pub description: Option<String>,
    /// The capture filter (if_filter), where it was given as text.
    pub filter: Option<String>,
    /// The operating system of the capturing machine (if_os).
    pub os: Option<String>,
    /// The hardware (if_hardware).
    pub hardware: Option<String>,
    /// What the capture counted.
    pub counters: Counters,
}

impl Interface {
    pub(crate) const fn new(link_type: LinkType, snaplen: u32) -> Self {
        Self {
            link_type,
            snaplen: if snaplen == 0 { None } else { Some(snaplen) },
            fcs_len: None,
            resolution: Resolution::MICROSECONDS,
            time_offset: 0,
            speed: None,
            name: None,
            description: None,
            filter: None,
            os: None,
            hardware: None,
            counters: Counters::NONE,
        }
    }
}

/// Counters that a pcapng file carries; classic pcap has none.
///
/// Those of interface statistics blocks are totals since the start of the capture, and the latest
/// stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets that the interface received (isb_ifrecv).
    pub received: Option<u64>,
    /// Packets that the interface dropped for want of resources (isb_ifdrop).
    pub dropped_by_interface: Option<u64>,
    /// Packets that the filter accepted (isb_filteraccept).
    pub accepted_by_filter: Option<u64>,
    /// Packets that the operating system dropped (isb_osdrop).
    pub dropped_by_os: Option<u64>,
    /// Packets that were delivered to the user (isb_usrdeliv).
    pub delivered: Option<u64>,
    /// Sum of what was lost before single packets (epb_dropcount, drops count of packet blocks).
    pub dropped_between_packets: Option<u64>,
    /// Packets marked as inbound (epb_flags).
    pub inbound: Option<u64>,
    /// Packets marked as outbound (epb_flags).
    pub outbound: Option<u64>,
    /// Packets marked with a link-layer error (epb_flags).
    pub link_errors: Option<u64>,
}

impl Counters {
    /// Nothing was counted.
    pub const NONE: Self = Self {
        received: None,
        dropped_by_interface: None,
        accepted_by_filter: None,
        dropped_by_os: None,
        delivered: None,
        dropped_between_packets: None,
        inbound: None,
        outbound: None,
        link_errors: None,
    };
}

/// The unit of an interface's time stamps, as pcapng encodes it in one byte (if_tsresol): a
/// negative power of 10, or of 2 where the highest bit is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Resolution(pub u8);

impl Resolution {
    /// 10⁻⁶ s, what holds where nothing is said.
    pub const MICROSECONDS: Self = Self(6);
    /// 10⁻⁹ s.
    pub const NANOSECONDS: Self = Self(9);
}

/// `10^-6 s` or `2^-10 s`.
impl core::fmt::Display for Resolution {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let base = if self.0 & 0x80 == 0 { 10 } else { 2 };
        write!(f, "{base}^-{} s", self.0 & 0x7f)
    }
}
