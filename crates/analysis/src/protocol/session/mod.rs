//! Sessions: what a protocol makes of one conversation, from its first byte to its end.
//!
//! | module | concern |
//! |---|---|
//! | [`findings`] | records and oddities on their way to the logs |
//! | [`expected`] | connections that one session announces to another |
//! | [`recent`] | what a protocol read before and will likely read again |

pub(super) mod expected;
pub(super) mod findings;
pub(super) mod recent;

use core::fmt::Debug;

use netsniff_packet::Timestamp;

use self::findings::Findings;
use crate::file::Bodies;
use crate::file::HashKinds;
use crate::key::uid::Uid;
use crate::limits::Limits;
use crate::reassembly::stream::GapCause;

/// What a session found a datagram to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DatagramVerdict {
    /// A message of the protocol, or too short to tell.
    Fits,
    /// A message of a kind that the protocol does not have.
    Unknown,
    /// It cannot be a message of the protocol.
    Contradicts,
}

/// One conversation in one protocol.
///
/// Whatever it finds must not depend on how a stream was cut into segments.
pub trait Session: Debug + Send {
    /// Takes the payload of a datagram.
    fn datagram(&mut self, _: &Datagram<'_>, _: &mut Findings) -> DatagramVerdict {
        DatagramVerdict::Fits
    }

    /// Takes bytes of a stream. What it does not consume comes again, with what follows.
    fn bytes(&mut self, _: &Bytes<'_>, _: &mut Findings) -> Progress {
        Progress::Done
    }

    /// Learns that bytes of a stream are missing, and tells whether it can go on behind them.
    fn gap(&mut self, _: &MissingBytes<'_>, _: &mut Findings) -> GapAction {
        GapAction::Abort
    }

    /// Learns that one side will say nothing more.
    fn side_end(&mut self, _: &SideEnd<'_>, _: &mut Findings) {}

    /// What shows that this is not the protocol that it seemed to be, where a side's last bytes did,
    /// which are read as they end. It is asked after that.
    fn contradiction(&self) -> Option<&'static str> {
        None
    }

    /// Tells what still waits, since the conversation is over.
    fn end(&mut self, found: &mut Findings);

    /// The session that goes on where this one hands over; `None` where the bytes must tell what
    /// follows. It is asked before its end.
    fn successor(&mut self) -> Option<Successor> {
        None
    }

    /// How far it has counted.
    fn counted(&self) -> Counted {
        Counted::default()
    }

    /// Goes on counting behind another session of the same connection.
    fn count_on(&mut self, _: Counted) {}

    /// Whether the content was that of the protocol so far.
    fn is_confirmed(&self) -> bool;

    /// Bytes that it takes, itself included.
    fn heap_bytes(&self) -> usize;
}

/// How far the sessions of one connection have counted what they number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Requests with their responses.
    pub exchanges: u64,
    /// Files that the session has found.
    pub files: u64,
}

impl Counted {
    /// The higher numbers of both.
    pub(super) fn max(self, other: Self) -> Self {
        Self { exchanges: self.exchanges.max(other.exchanges), files: self.files.max(other.files) }
    }
}

/// What a session knows to follow it.
#[derive(Debug)]
pub struct Successor {
    /// Name of its protocol.
    pub protocol: &'static str,
    /// The session, which takes what comes from now on.
    pub session: Box<dyn Session>,
}

/// A side of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The side that began: the client, mostly.
    Originator,
    /// The side that did not begin.
    Responder,
}

impl Role {
    /// Its place where there is one of something for each side.
    #[must_use]
    #[inline]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The role of the other side.
    #[must_use]
    #[inline]
    pub const fn peer(self) -> Self {
        match self {
            Self::Originator => Self::Responder,
            Self::Responder => Self::Originator,
        }
    }
}

/// What a session is told of its flow as it begins.
#[derive(Clone, Copy, Debug)]
pub struct SessionContext<'a> {
    /// Bounds of what a session may hold.
    pub limits: &'a Limits,
    /// The 96 bits that name the flow.
    pub name: u128,
    /// Port of the responder.
    pub port: u16,
    /// Which hashes of files are wanted.
    pub hashes: HashKinds,
    /// How much of bodies is decoded.
    pub bodies: Bodies,
    /// Whether the begin of the connection was not seen, so that its first bytes may be from the
    /// middle of something.
    pub is_midstream: bool,
    /// Whether the responder is a group, so that what goes to it answers nobody.
    pub is_multicast: bool,
    /// Port of the originator, where both sides began, so that the responder may be the client.
    pub crossing_port: Option<u16>,
}

impl SessionContext<'_> {
    /// What is known where the responder is the client; the same again once that was told.
    pub(super) fn turned(&self) -> Self {
        Self { port: self.crossing_port.unwrap_or(self.port), crossing_port: None, ..*self }
    }

    /// The flow's name as the logs have it. Sessions that need it ask once, as they begin.
    #[must_use]
    pub const fn uid(&self) -> Uid {
        Uid::new(self.name)
    }
}

/// A datagram of a session.
#[derive(Clone, Copy, Debug)]
pub struct Datagram<'a> {
    /// When it was seen.
    pub time: Timestamp,
    /// The side that sent it.
    pub from: Role,
    /// Port by which the protocol's messages differ: mostly the responder's.
    pub port: u16,
    /// Its payload as far as it was captured.
    pub payload: &'a [u8],
}

/// Bytes of a stream.
#[derive(Clone, Copy, Debug)]
pub struct Bytes<'a> {
    /// When the last of them were seen, or became known to be next.
    pub time: Timestamp,
    /// The side that sent them.
    pub from: Role,
    /// All bytes of that side that were not consumed yet: at least one, and at least as many as were
    /// needed.
    pub data: &'a [u8],
}

/// Bytes of a stream that are missing.
#[derive(Clone, Copy, Debug)]
pub struct MissingBytes<'a> {
    /// When that was known.
    pub time: Timestamp,
    /// The side that sent them.
    pub from: Role,
    /// The bytes before them that the session did not consume: the begin of something whose rest
    /// will not come.
    pub unread: &'a [u8],
    /// How many are missing.
    pub len: u64,
    /// Why they are missing.
    pub cause: GapCause,
}

/// One side has said all.
#[derive(Clone, Copy, Debug)]
pub struct SideEnd<'a> {
    /// When that was known.
    pub time: Timestamp,
    /// The side that sends nothing more.
    pub from: Role,
    /// Its last bytes, which the session did not consume.
    pub unread: &'a [u8],
}

/// What a session makes of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// It has taken so many, at least one.
    Consumed(usize),
    /// It can do nothing before there are at least so many in all.
    Need(usize),
    /// It can do nothing before the other side has said something.
    Wait,
    /// So many are of no interest, from the first on, also of those to come: they are neither kept
    /// nor handed over, and some of them may be missing.
    Skip(u64),
    /// So many were the last of this protocol: what follows on both sides is another one's, which
    /// [`Session::successor`] tells, or which is to be found out.
    Handover(usize),
    /// Nothing more is of interest.
    Done,
    /// This is not the protocol that it seemed to be, which is told by this name.
    Contradicts(&'static str),
}

/// Whether a session goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GapAction {
    /// The session takes what comes next.
    Continue,
    /// The session wants nothing more.
    Abort,
}
