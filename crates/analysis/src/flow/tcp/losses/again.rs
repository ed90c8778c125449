//! What comes again: why, and how soon it can have been sent.

/// What a segment is that brings nothing beyond the highest sequence number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Class {
    /// Sent again for want of an acknowledgement.
    #[default]
    Timeout,
    /// Sent again because duplicate acknowledgements or SACK asked for it.
    Fast,
    /// Sent again though the receiver had it.
    Unnecessary,
    /// Overtaken on the way.
    OutOfOrder,
    /// Doubled by the network: it came again sooner than its sender can have sent it again.
    Doubled,
}

/// How soon data that was lost can be sent again; nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repair {
    /// After it was sent first, where its receiver showed that it lacks it: half of a round trip, since
    /// hosts may have been slow when that was measured.
    pub asked_for: u64,
    /// The same where the receiver showed nothing, so that a timer must have run out.
    pub by_timer: u64,
    /// After its sender sent something behind it, which the receiver missed it by.
    pub behind_a_hole: u64,
    /// After it was sent first, where the receiver has fewer than three segments from beyond it: its
    /// sender waits for a quarter of the round trip longer then (RFC 8985, 6.2).
    pub hardly_shown: u64,
}

/// Why numbers came that are not new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Again {
    /// What the evidence of the metrics says.
    pub class: Class,
    /// The least time in which their sender answers what passes the tap; nanoseconds.
    pub least_answer: Option<u64>,
    /// The least time in which their receiver does.
    pub least_acknowledgement: Option<u64>,
    /// Whether they were surely sent after what revealed the hole that they fill.
    pub is_later: bool,
    /// Whether their sender was hardly asked for them yet, so that they may have been late.
    pub is_hasty: bool,
    /// How soon they can have been sent again.
    pub repair: Repair,
    /// How many numbers beyond them their sender had sent before.
    pub sent_beyond: u32,
    /// Their time stamp (RFC 7323), and whether all that their sender sent before has an older one.
    pub stamp: Option<u32>,
    /// Whether all that its sender sent before has an older stamp.
    pub is_newest: bool,
    /// Whether it may be the packet before it once more: it is like that one, and IPv6 does not
    /// number packets.
    pub may_be_doubled: bool,
}

/// How fast a direction is answered and repaired; nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Path {
    /// The least time in which the receiver answers what passes the tap, where that is known.
    pub least_answer: Option<u64>,
    /// The same as data tells it: that of the handshake waits for more than the network.
    pub least_measured: Option<u64>,
    /// Whether so many round trips were measured that the shortest of them is one without a wait.
    pub is_least_sure: bool,
    /// A hole that ends sooner may be reordering.
    pub reorder: u64,
    /// The round trip, where the handshake tells it.
    pub rtt: Option<u64>,
    /// How soon data can be sent again.
    pub repair: Repair,
    /// Whether the receiver, which has SACK, tells of nothing beyond what it acknowledges.
    pub has_nothing_beyond: bool,
    /// Whether the receiver has SACK.
    pub has_sack: bool,
    /// Whether the receiver would have reported with this acknowledgement that something came to it twice
    /// (RFC 2883), and did not.
    pub reports_nothing: bool,
    /// By how much this acknowledgement goes on.
    pub advance: i64,
    /// The stamp that it echoes (RFC 7323).
    pub echo: Option<u32>,
}
