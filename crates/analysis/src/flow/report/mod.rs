//! A flow as a record of the `conn` log, and its losses as records of the `gaps` log.
//!
//! | module | concern |
//! |---|---|
//! | [`mod@tcp`] | a TCP connection's metrics as a record |
//! | [`statistics`] | counts for the summary |
//! | [`talkers`] | who talks most, and how long answers take |

pub mod statistics;
pub mod talkers;
pub mod tcp;

use core::time::Duration;

use netsniff_packet::Timestamp;

use super::parents::Parents;
use super::tcp::connection::verdict::{ConnectionLoss, LossVerdict, Span};
use super::tcp::segment::ORIGINATOR;
use super::tcp::{State, TcpConnection};
use super::{Flow, TransportState};
use crate::depth::Depth;
use crate::key::community_id::CommunityId;
use crate::key::uid::Uid;
use crate::key::{self, Side};
use crate::limits::Limits;
use crate::log::conn::{Conn, ConnState, Quality};
use crate::log::gaps::Gaps;
use crate::options::ChecksumMode;
use crate::record::{Interval, Port, Proto};

/// What a record needs besides the flow.
#[derive(Clone, Debug)]
pub struct Knowledge {
    /// What is missing of it.
    pub verdict: LossVerdict,
    /// How many losses of the capture are known of so far.
    pub losses: u32,
    /// What becomes of packets with wrong checksums.
    pub checksums: ChecksumMode,
    /// One in so many pairs of addresses was captured.
    pub sampling: Option<u64>,
}

impl Flow {
    /// Hands the record of this flow, whose names are `uid` and `community_id`, to `take`. Openings must be unfolded.
    pub fn report<T>(
        &self,
        uid: Uid,
        community_id: CommunityId,
        knowledge: &Knowledge,
        take: impl FnOnce(&Conn<'_>) -> T,
    ) -> T {
        let (originator, responder) = self.ends();
        let (orig_sent, resp_sent) = self.sent_by_role();
        let [vlan, inner_vlan] = self.vlan.ids();
        let [local_orig, local_resp] = self.local_by_role();
        let duration = Interval::in_micros(self.start, self.last).nanos();
        // Zeek tells no sizes without a duration; where stamps ran back they are known all the same.
        let sizes = (duration > 0 || self.last < self.start).then(|| self.sizes());
        let history = self.letters.as_str();
        let verdict = &knowledge.verdict;
        let service = self.services().names();
        let parents = self.attached.as_ref().and_then(|attached| attached.parents.as_deref());
        take(&Conn {
            ts: self.start,
            uid,
            id_orig_h: originator.address,
            id_orig_p: Port(originator.port),
            id_resp_h: responder.address,
            id_resp_p: Port(responder.port),
            proto: proto(self.key.protocol),
            service: service.as_deref(),
            duration: (duration > 0).then(|| Interval::from_nanos(duration)),
            orig_bytes: sizes.map(|(orig, _)| orig),
            resp_bytes: sizes.map(|(_, resp)| resp),
            conn_state: Some(self.state()),
            local_orig: Some(local_orig),
            local_resp: Some(local_resp),
            missed_bytes: self.missed_bytes(),
            history: (!history.is_empty()).then_some(history),
            orig_pkts: Some(orig_sent.packets),
            orig_ip_bytes: Some(orig_sent.ip_bytes),
            resp_pkts: Some(resp_sent.packets),
            resp_ip_bytes: Some(resp_sent.ip_bytes),
            tunnel_parents: parents.map(Parents::uids),
            ip_proto: Some(self.key.protocol),
            community_id: Some(community_id),
            vlan: vlan.map(i32::from),
            inner_vlan: inner_vlan.map(i32::from),
            quality: self.quality(knowledge),
            capture_missed_bytes: verdict.capture_bytes(),
            network_missed_bytes: verdict.network_bytes(),
            bad_checksums: self.bad_checksums(knowledge.checksums),
            depth: self.depth.now(),
            depth_begin: self.depth.begun(),
            sampling: knowledge.sampling,
        })
    }

    /// Payload bytes of originator and responder.
    #[must_use]
    pub fn sizes(&self) -> (u64, u64) {
        if let Some(tcp) = self.tcp() {
            let [originator, responder] = &tcp.ends;
            return (originator.size(responder.state), responder.size(originator.state));
        }
        let size = |payload: Option<i64>| payload.unwrap_or(0).max(0).unsigned_abs();
        let (orig, resp) = self.payload_by_role();
        (size(orig), size(resp))
    }

    /// How it began and ended, as Zeek's `conn_state` tells it.
    #[must_use]
    pub fn state(&self) -> ConnState {
        if let Some(tcp) = self.tcp() {
            return tcp_state(tcp, self.letters.as_str());
        }
        if self.key.protocol != key::UDP {
            return ConnState::Oth;
        }
        let (orig, resp) = self.payload_by_role();
        let active = |payload: Option<i64>| payload.is_some_and(|bytes| bytes >= 0);
        match (active(orig), active(resp)) {
            (true, true) => ConnState::Sf,
            (true, false) => ConnState::S0,
            (false, true) => ConnState::Shr,
            (false, false) => ConnState::Oth,
        }
    }

    /// Payload bytes missing in the streams; `None` for TCP where nobody looked.
    fn missed_bytes(&self) -> Option<u64> {
        match self.tcp() {
            Some(tcp) => (self.depth.now() >= Depth::Tcp).then_some(tcp.missed_bytes),
            None => Some(0),
        }
    }

    /// Packets with wrong checksums; `None` where nobody looked, or where there were too many.
    fn bad_checksums(&self, mode: ChecksumMode) -> Option<u64> {
        let is_known = mode.looks_at(self.depth.now()) && !self.bad_checksums.contains(&u32::MAX);
        is_known.then(|| self.bad_checksums.iter().map(|&count| u64::from(count)).sum())
    }

    /// Payload bytes of datagrams from originator and responder; `None` where there was none.
    fn payload_by_role(&self) -> (Option<i64>, Option<i64>) {
        let TransportState::Datagrams([low, high]) = &self.exchange else { return (None, None) };
        match self.originator {
            Side::Low => (low.bytes(), high.bytes()),
            Side::High => (high.bytes(), low.bytes()),
        }
    }

    /// Whether its record can be believed.
    #[must_use]
    pub const fn quality(&self, knowledge: &Knowledge) -> Quality {
        let verdict = &knowledge.verdict;
        if verdict.is_renumbered {
            return Quality::Suspect;
        }
        if verdict.captures > 0 || knowledge.losses != self.losses {
            return Quality::Touched;
        }
        // Only what the other side says can show that nothing is missing.
        if !verdict.is_answered {
            return Quality::Unknown;
        }
        let is_sure = verdict.unknown == 0 && verdict.assumed == 0 && !verdict.is_doubtful;
        if !is_sure || verdict.has_doubtful_size {
            return Quality::Suspect;
        }
        if verdict.is_begun { Quality::Clean } else { Quality::Unknown }
    }

    /// What is missing of it, if it is a TCP connection, of a capture that began at `begun`.
    #[must_use]
    pub fn verdict(&self, begun: Option<Timestamp>, limits: &Limits) -> LossVerdict {
        let since = |begun| self.start.nanos_since(begun).max(0).unsigned_abs();
        let since_begin = begun.map(|begun| Duration::from_nanos(since(begun)));
        let Limits { pick_up, listed_gaps: listed, .. } = *limits;
        let span = Span { start: self.start, last: self.last, since_begin, pick_up, listed };
        self.tcp().map_or_else(LossVerdict::default, |tcp| tcp.verdict(&span))
    }

    /// Hands its losses, each as a record of the `gaps` log, to `take`.
    pub fn report_gaps(&self, uid: Uid, verdict: &LossVerdict, mut take: impl FnMut(&Gaps)) {
        for (at, found) in verdict.found.iter().enumerate() {
            let is_last = !verdict.found.iter().skip(at + 1).any(|next| next.from == found.from);
            let more = verdict.more[found.from & 1];
            take(&self.gap_record(uid, found, (is_last && more > 0).then_some(more)));
        }
    }

    fn gap_record(&self, uid: Uid, found: &ConnectionLoss, more: Option<u64>) -> Gaps {
        let (originator, responder) = self.ends();
        let gap = &found.gap;
        let offset = |position: i64| u64::try_from(position - 1).unwrap_or(0);
        Gaps {
            ts: gap.since,
            uid: Some(uid),
            id_orig_h: Some(originator.address),
            id_orig_p: Some(Port(originator.port)),
            id_resp_h: Some(responder.address),
            id_resp_p: Some(Port(responder.port)),
            proto: Some(proto(self.key.protocol)),
            is_orig: Some(found.from == ORIGINATOR),
            what: gap.what,
            cause: gap.cause,
            ended: gap.ended,
            until: Some(gap.until),
            start: Some(offset(gap.low)),
            end: Some(offset(gap.high)),
            bytes: Some(found.bytes),
            packets: None,
            stage: None,
            more,
        }
    }
}

/// The protocol in Zeek's words.
#[must_use]
pub const fn proto(protocol: u8) -> Proto {
    match protocol {
        key::TCP => Proto::Tcp,
        key::UDP => Proto::Udp,
        key::ICMP | key::ICMPV6 => Proto::Icmp,
        _ => Proto::Unknown,
    }
}

fn tcp_state(tcp: &TcpConnection, history: &str) -> ConnState {
    let [originator, responder] = &tcp.ends;
    let silent = |state| matches!(state, State::Inactive | State::Partial);
    match (originator.state, responder.state) {
        (State::SynSent | State::SynAckSent, State::Reset) => ConnState::Rej,
        (State::Reset, State::Reset)
            if originator.size(responder.state) == 0 && responder.size(originator.state) == 0 =>
        {
            ConnState::Rej
        }
        (orig, State::Reset) if silent(orig) => ConnState::Rstrh,
        (_, State::Reset) => ConnState::Rstr,
        (State::Reset, resp) if silent(resp) => {
            if is_syn_then_reset(history) {
                ConnState::Rstos0
            } else {
                ConnState::Oth
            }
        }
        (State::Reset, _) => ConnState::Rsto,
        (State::Closed, State::Closed) => ConnState::Sf,
        (State::Closed, resp) if silent(resp) => ConnState::Sh,
        (State::Closed, _) => ConnState::S2,
        (orig, State::Closed) if silent(orig) => ConnState::Shr,
        (_, State::Closed) => ConnState::S3,
        (State::SynSent, State::Inactive) => ConnState::S0,
        (State::Established, State::Established) => ConnState::S1,
        _ => ConnState::Oth,
    }
}

/// Zeek's `/\^?S[^HAFGIQ]*R.*/`: a SYN and then a RST, without anything between that another state
/// would follow from.
fn is_syn_then_reset(history: &str) -> bool {
    let history = history.strip_prefix('^').unwrap_or(history);
    let Some(rest) = history.strip_prefix('S') else { return false };
    let before = rest.find(['H', 'A', 'F', 'G', 'I', 'Q']).unwrap_or(rest.len());
    rest[..before].contains('R')
}

#[cfg(test)]
mod tests {
    use super::is_syn_then_reset;

    #[test]
    fn syn_then_reset() {
        for (history, expected) in [
            ("SR", true),
            ("^SrR", true),
            ("SAR", false),
            ("SRA", true),
            ("DR", false),
            ("S", false),
        ] {
            assert_eq!(is_syn_then_reset(history), expected, "{history}");
        }
    }
}
