//! How long a connection lasts: from its opening segment, alone or not, to its deadline or to
//! another connection between the same ends.

use netsniff_packet::Timestamp;
use netsniff_packet::decode::{Tcp, TcpFlags};

use super::acceptance::{NEAR, could_be_taken};
use super::{SegmentContext, TcpConnection};
use crate::depth::Depth;
use crate::flow::first_look;
use crate::flow::history::{History, Letters};
use crate::flow::tcp::endpoint::{State, TcpEndpoint};
use crate::flow::tcp::metrics::first::First;
use crate::flow::tcp::segment::RESPONDER;
use crate::flow::tcp::sequence::delta;
use crate::limits::Limits;
use crate::weird::Weirds;

impl TcpConnection {
    /// A connection of which nothing was seen yet. Where it is analysed less deep than [`Depth::Tcp`], it
    /// does without all that needs to know what was seen of the streams: there are neither gaps nor
    /// metrics, and a side is closed by its FIN, whatever is missing before that. States, histories and
    /// sizes come from flags and sequence numbers.
    #[must_use]
    pub fn at(depth: Depth) -> Self {
        let mut connection = Self::default();
        if depth < Depth::Tcp {
            connection.ends.iter_mut().for_each(|end| end.assembler.abandon());
            connection.unwatched = true;
        }
        connection
    }

    /// The connection after the segment that `first` stands for and its repetitions, analysed at a
    /// depth; `seen` tells when the first and the last of them were seen.
    #[must_use]
    pub fn reopened(first: &First, seen: [Timestamp; 2], depth: Depth, limits: &Limits) -> Self {
        let [begun, last] = seen;
        let mut tcp = Self::at(depth);
        tcp.replay(first, begun, limits);
        tcp.metrics.resume(first, last);
        tcp
    }

    /// Takes a segment again that was seen at a time. What it adds to history and oddities was noted
    /// when it came.
    pub(super) fn replay(&mut self, first: &First, time: Timestamp, limits: &Limits) {
        let mut context = SegmentContext {
            now: time,
            history: History { seen: &mut 0, letters: &mut Letters::default(), grown: 0 },
            last_time: &mut time.clone(),
            weirds: &mut Weirds::default(),
            limits,
            rtt_interval: None,
            rtt: &mut None,
        };
        self.unpredicted(&first.replay(time).segment(), &mut context);
    }

    /// The opening segment, where this is nothing but a SYN without peculiarities and without an
    /// answer: the connection can be made from it again.
    #[must_use]
    pub fn as_opening(&self) -> Option<First> {
        self.metrics.only_first().filter(First::is_plain_syn)
    }

    /// Whether a side was reported as closed.
    #[must_use]
    pub const fn is_closed(&self) -> bool {
        self.ends[0].did_close || self.ends[1].did_close
    }

    /// Whether the connection only waits for late packets.
    #[must_use]
    pub const fn is_ending(&self) -> bool {
        self.remove_at.nanos() != Timestamp::MAX.nanos()
    }

    /// When the connection ends without further packets, apart from inactivity; `start` is when
    /// it began. A look at the connection ends it only where it is half closed or half reset.
    #[must_use]
    #[inline]
    pub fn deadline(&self, start: Timestamp, last: Timestamp, limits: &Limits) -> Timestamp {
        let mut deadline = self.remove_at;
        if self.inactive || self.timers_cancelled {
            return deadline;
        }
        let [originator, responder] = &self.ends;
        if self.attempt_until < deadline {
            let attempting = matches!(originator.state, State::SynSent | State::SynAckSent);
            if attempting && responder.state == State::Inactive {
                deadline = self.attempt_until;
            }
        }
        let is = |state| originator.state == state || responder.state == state;
        let over = self.is_closed() && (is(State::Reset) || is(State::Inactive));
        let nothing = originator.state == State::Inactive && responder.state == State::Inactive;
        if over || nothing {
            // A look finds it over only after the linger time, not at its end.
            let due = (last + limits.tcp_linger).offset(1);
            let interval = limits.tcp_check_interval;
            deadline = deadline.min(first_look(start + limits.tcp_first_check, interval, due));
            if self.half_closed_at != Timestamp::MAX {
                let first = self.half_closed_at + interval;
                deadline = deadline.min(first_look(first, interval, due));
            }
        }
        deadline
    }

    /// Whether the longer inactivity time-out of connections in progress applies.
    #[must_use]
    pub const fn is_established(&self) -> bool {
        self.is_established
    }

    /// Whether the responder answered the handshake.
    #[must_use]
    pub const fn is_handshake_done(&self) -> bool {
        self.handshake_done
    }

    /// Whether a segment of the side `from` with these flags and this sequence number begins another
    /// connection with the same addresses and ports. Within a connection that goes on a SYN is none
    /// before it is answered ([`Self::challenger_answered_by`]). `is_late` tells that it has a later stamp
    /// than the first segment of this connection.
    #[must_use]
    pub fn is_reused_by(&self, tcp: &Tcp, from: usize, is_late: bool) -> bool {
        if !tcp.flags.any(TcpFlags::SYN) || !could_be_taken(tcp.flags) {
            return false;
        }
        let [originator, responder] = &self.ends;
        let mut beginner = originator;
        let with_ack = tcp.flags.any(TcpFlags::ACK);
        if with_ack {
            if originator.state != State::Inactive {
                return false;
            }
            beginner = responder;
        }
        let may_be_missed = is_late && self.missed_syn(tcp, from);
        if self.is_closed() {
            // The SYN of this connection is a late copy, unless the other side answers it. Another one is none
            // before it is answered, while one side still speaks.
            let may_be_copy = self.is_half_closed() || self.is_confirmed() && !self.unwatched;
            let is_number = tcp.sequence == beginner.start || may_be_missed;
            return !(may_be_copy && is_number) && (with_ack || !self.is_half_closed());
        }
        if !with_ack && from == RESPONDER {
            // It crosses the SYN of the originator (RFC 9293, 3.5), or came before the SYN-ACK that was
            // captured first.
            return match (originator.state, responder.state) {
                (State::SynSent, State::Inactive) => false,
                (State::SynAckSent, State::Inactive) => tcp.sequence != responder.start,
                _ => tcp.sequence != responder.start && !self.is_going_on(),
            };
        }
        tcp.sequence != beginner.start && !may_be_missed && (with_ack || !self.is_going_on())
    }

    /// Whether a SYN may be a late copy of the one that a connection without a begin had: it lies just
    /// before the first number that was seen of its side, or that the other side has acknowledged.
    pub(super) fn missed_syn(&self, tcp: &Tcp, from: usize) -> bool {
        let end = &self.ends[from & 1];
        let is_before = (1..=NEAR as i32).contains(&delta(end.start, tcp.sequence));
        let is_known = end.state != State::Inactive || end.acknowledged.full() > 0;
        self.partial && is_known && is_before && !self.unwatched
    }

    /// Whether one side has ended a connection that stood, and the other has not.
    const fn is_half_closed(&self) -> bool {
        let [originator, responder] = &self.ends;
        let states = (originator.state, responder.state);
        matches!(states, (State::Established, State::Closed) | (State::Closed, State::Established))
            && self.is_confirmed()
    }

    /// Whether both sides have said that the connection stands, and neither that it ends.
    const fn is_going_on(&self) -> bool {
        let [originator, responder] = &self.ends;
        matches!(originator.state, State::Established)
            && matches!(responder.state, State::Established)
    }

    /// What is odd about a segment that begins another connection ([`Self::is_reused_by`]), by
    /// Zeek's names: when the last packet of this one came, and the segment.
    #[must_use]
    pub fn reuse_weird(
        &self,
        tcp: &Tcp,
        [last, now]: [Timestamp; 2],
        limits: &Limits,
    ) -> Option<&'static str> {
        let [originator, responder] = &self.ends;
        if !self.is_closed() {
            let with_ack = tcp.flags.any(TcpFlags::ACK);
            let beginner = if with_ack { responder } else { originator };
            return Some(if beginner.state == State::SynSent {
                "SYN_seq_jump"
            } else {
                "active_connection_reuse"
            });
        }
        let is_active = |end: &TcpEndpoint| end.state != State::Inactive && !end.did_close;
        if self.ends.iter().any(|end| end.state == State::Reset) {
            None
        } else if self.ends.iter().any(is_active) {
            Some("active_connection_reuse")
        } else {
            (now < last + limits.tcp_linger).then_some("premature_connection_reuse")
        }
    }
}
