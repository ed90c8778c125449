//! What happened, once or continuing, as bits of `Direction::bits`.

/// Sequence numbers are known.
pub(super) const BEGUN: u32 = 0x0001;
/// Its SYN was seen.
pub(super) const SYN: u32 = 0x0002;
/// Something of it was acknowledged, so that the acknowledgements take this way, too.
pub(super) const ACKNOWLEDGED: u32 = 0x0004;
/// A segment is being timed.
pub(super) const TIMING: u32 = 0x0008;
/// The last window that it offered was zero.
pub(super) const ZERO_WINDOW: u32 = 0x0010;
/// It sends what a fast retransmission began to repair.
pub(super) const RECOVERY: u32 = 0x0020;
/// The peer told of data beyond a hole.
pub(super) const SACKED: u32 = 0x0040;
/// It sent a byte beyond a zero window.
pub(super) const PROBED: u32 = 0x0080;
/// The initial window is known.
pub(super) const INITIAL_WINDOW: u32 = 0x0100;
/// The SYN allowed SACK.
pub(super) const SACK_PERMITTED: u32 = 0x0200;
/// It sent the timestamps option.
pub(super) const TIMESTAMPS: u32 = 0x0400;
/// The SYN had a window scale.
pub(super) const WINDOW_SCALE: u32 = 0x0800;
/// A segment with payload was seen.
pub(super) const PAYLOAD: u32 = 0x1000;
/// It sent an acknowledgement.
pub(super) const ACK_SENT: u32 = 0x2000;
/// A window outside SYN segments was seen.
pub(super) const WINDOW: u32 = 0x4000;
/// Different packets had the same IP identification, which thus tells nothing.
pub(super) const SAME_IDENTIFICATION: u32 = 0x8000;
/// Something of it is missing, and it is not known yet who lost it.
pub(super) const OPEN_GAPS: u32 = 0x0001_0000;
/// The last packet had the numbers, flags and length of the one before it.
pub(super) const LIKE_LAST: u32 = 0x0002_0000;
/// It was acknowledged before it was seen; `start` is what came first.
pub(super) const EXPECTED: u32 = 0x0004_0000;
/// The capture cut the options of its SYN, so that nobody knows what they told.
pub(super) const OPTIONS_CUT: u32 = 0x0008_0000;
/// Its SYN was acknowledged so long before it was seen that the one seen was sent again.
pub(super) const SYN_MISSED: u32 = 0x0010_0000;
/// Something of it was lacking for three acknowledgements when the last one went on.
pub(super) const PARTIAL: u32 = 0x0020_0000;
/// The last packet with a time stamp had a newer one than all before it.
pub(super) const NEWEST_STAMP: u32 = 0x0040_0000;
/// Its first segment is signed.
pub(super) const SIGNED: u32 = 0x0080_0000;
/// Some of its segments without data are signed and some are not, so that signatures tell nothing.
pub(super) const PARTLY_SIGNED: u32 = 0x0100_0000;
/// Something of it was skipped and not seen since.
pub(super) const UNSEEN: u32 = 0x0200_0000;
