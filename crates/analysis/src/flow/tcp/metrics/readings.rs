//! What a direction tells in the end.

use netsniff_packet::Timestamp;

use super::bit;
use super::direction::Direction;
use crate::flow::tcp::observed::elapsed;
use crate::flow::tcp::sequence::delta;

/// What a direction tells, with `None` where its segments cannot.
impl Direction {
    /// Whether any segment of it was seen.
    #[must_use]
    pub const fn is_seen(&self) -> bool {
        self.is(bit::BEGUN) || self.resets > 0
    }

    /// Payload bytes, each counted once.
    #[must_use]
    pub const fn unique_bytes(&self) -> u64 {
        self.payload_bytes.saturating_sub(self.repeated_bytes)
    }

    /// Payload bytes that its host was seen to send, those sent again included, without what was doubled on the way.
    #[must_use]
    pub fn sent_bytes(&self) -> u64 {
        self.payload_bytes.saturating_sub(self.counts.duplicate_bytes)
    }

    /// Whether all that was seen of its data was acknowledged, so that nothing may have been lost unseen.
    #[must_use]
    pub fn is_acknowledged_to_its_end(&self) -> bool {
        // The FIN is no data.
        let end = i32::from(self.fins > 0);
        self.is(bit::ACKNOWLEDGED) && delta(self.next, self.una) <= end
    }

    /// The maximum segment size that its SYN announced, RFC 9293, 3.7.1.
    #[must_use]
    pub fn mss(&self) -> Option<u16> {
        (self.mss > 0).then_some(self.mss)
    }

    /// The window scale shift that its SYN offered, RFC 7323, 2.
    #[must_use]
    pub fn window_scale(&self) -> Option<u8> {
        self.is(bit::WINDOW_SCALE).then_some(self.scale)
    }

    /// The least and the largest window; the scale must be known from the SYN.
    #[must_use]
    pub fn windows(&self) -> Option<(u32, u32)> {
        let is_known = self.has_options() && self.is(bit::WINDOW);
        is_known.then_some((self.window_min, self.window_max))
    }

    /// Whether its SYN permitted SACK, RFC 2018, 2.
    #[must_use]
    pub fn sack_permitted(&self) -> Option<bool> {
        self.has_options().then_some(self.is(bit::SACK_PERMITTED))
    }

    /// Whether the options of its SYN were seen.
    const fn has_options(&self) -> bool {
        self.is(bit::SYN) && !self.is(bit::OPTIONS_CUT)
    }

    /// Whether it sent timestamps, RFC 7323, 3.
    #[must_use]
    pub fn timestamps(&self) -> Option<bool> {
        let sent = self.is(bit::TIMESTAMPS);
        (sent || !self.is(bit::OPTIONS_CUT)).then_some(sent)
    }

    /// Most bytes in flight; acknowledgements must have been seen.
    #[must_use]
    pub fn in_flight(&self) -> Option<u32> {
        self.is(bit::ACKNOWLEDGED).then_some(self.in_flight)
    }

    /// Bytes sent before the first acknowledgement of data.
    #[must_use]
    pub fn initial_window(&self) -> Option<u32> {
        self.is(bit::INITIAL_WINDOW).then_some(self.initial_window)
    }

    /// Nanoseconds with a zero window, up to `end` where it never opened again.
    #[must_use]
    pub fn zero_window_time(&self, end: Timestamp) -> u64 {
        let open = self.is(bit::ZERO_WINDOW).then(|| elapsed(self.zero_window_since, end));
        self.zero_window_time.saturating_add(open.flatten().unwrap_or(0))
    }

    /// When it first sent payload.
    #[must_use]
    pub fn first_payload(&self) -> Option<Timestamp> {
        self.is(bit::PAYLOAD).then_some(self.first_payload)
    }

    /// The least and the largest time to live.
    #[must_use]
    pub const fn ttl(&self) -> (u8, u8) {
        (self.ttl_min, self.ttl_max)
    }

    /// Routers between the sender and the tap: hosts begin with a time to live of 32, 64, 128 or
    /// 255, and each router takes one. With `gateway`, the tap's own host is one of them.
    #[must_use]
    pub const fn hops(&self, gateway: bool) -> u8 {
        let initial = match self.ttl_max {
            0..=32 => 32,
            33..=64 => 64,
            65..=128 => 128,
            _ => 255,
        };
        let hops: u8 = initial - self.ttl_max;
        hops.saturating_sub(gateway as u8)
    }
}
