//! How two streams begin, and what a protocol says of that.

/// How two streams begin.
#[derive(Clone, Copy, Debug)]
pub struct Heads<'a> {
    /// The first bytes of the originator.
    pub originator: &'a [u8],
    /// The first bytes of the responder.
    pub responder: &'a [u8],
    /// Port of the responder.
    pub port: u16,
    /// Whether they may be from the middle of something.
    pub is_midstream: bool,
}

/// Whether a protocol is spoken.
///
/// A protocol decides `No` as soon as the bytes of either side contradict it: as long as it is
/// undecided, those behind it in the list must wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detection {
    /// It is, and whatever follows will not change that.
    Yes,
    /// It is not, and whatever follows will not change that.
    No,
    /// More bytes will tell.
    Undecided,
}
