//! The connections of an interval with the most bytes, and the exact sum of all others.

use core::cmp::Reverse;

use super::figures::FlowFigures;
use crate::depth::Depth;
use crate::log::series_conn::SeriesConn;
use crate::record::{Connection, Interval, Port};

/// Those with the most bytes of some connections.
#[derive(Clone, Debug, Default)]
pub(super) struct BusiestConnections {
    /// Up to twice as many as are wanted, in no order.
    listed: Vec<ConnectionFigures>,
    /// How many others there are, and their sum.
    others: u64,
    rest: FlowFigures,
}

/// What one connection showed.
#[derive(Clone, Debug)]
pub(super) struct ConnectionFigures {
    pub(super) connection: Connection,
    pub(super) service: Option<Box<str>>,
    pub(super) figures: FlowFigures,
}

impl ConnectionFigures {
    /// What it stands in order by: no two are equal, since no two have one name.
    fn rank(&self) -> (Reverse<u64>, Reverse<u64>, crate::key::uid::Uid) {
        let FlowFigures { orig, resp, .. } = &self.figures;
        let bytes = orig[1].saturating_add(resp[1]);
        (Reverse(bytes), Reverse(orig[0].saturating_add(resp[0])), self.connection.uid)
    }

    fn heap_bytes(&self) -> usize {
        self.service.as_ref().map_or(0, |service| service.len()) + self.figures.rtt.heap_bytes()
    }
}

impl BusiestConnections {
    /// Adds a connection, of which no more than `most` are told apart. None is given up that another order of additions
    /// would have kept.
    pub(super) fn add(&mut self, one: ConnectionFigures, most: usize) {
        self.listed.push(one);
        if self.listed.len() > most.saturating_mul(2) {
            self.cut(most);
        }
    }

    /// Adds those of another share, which are other connections.
    pub(super) fn add_all(&mut self, share: &Self, most: usize) {
        self.listed.extend_from_slice(&share.listed);
        self.others += share.others;
        self.rest += &share.rest;
        self.cut(most);
    }

    /// Keeps `most` of them, in order.
    pub(super) fn cut(&mut self, most: usize) {
        self.listed.sort_unstable_by_key(ConnectionFigures::rank);
        for other in self.listed.drain(most.min(self.listed.len())..) {
            self.others += 1;
            self.rest += &other.figures;
        }
    }

    /// Bytes that it holds outside itself.
    pub(super) fn heap_bytes(&self) -> usize {
        let inner = self.listed.iter().map(ConnectionFigures::heap_bytes).sum::<usize>();
        self.listed.capacity() * size_of::<ConnectionFigures>() + inner + self.rest.rtt.heap_bytes()
    }

    /// Hands the rows to `take`, which are like `row` in what is common to them.
    pub(super) fn rows(self, row: &SeriesConn, depth: Depth, mut take: impl FnMut(SeriesConn)) {
        for one in self.listed {
            let Connection { uid, originator, responder, proto, .. } = one.connection;
            take(SeriesConn {
                uid: Some(uid),
                id_orig_h: Some(originator.address),
                id_orig_p: Some(Port(originator.port)),
                id_resp_h: Some(responder.address),
                id_resp_p: Some(Port(responder.port)),
                proto: Some(proto),
                service: one.service,
                ..row.with_flows(&one.figures, depth)
            });
        }
        if self.others > 0 {
            let rest = row.with_flows(&self.rest, depth);
            take(SeriesConn { is_other: true, others: Some(self.others), ..rest });
        }
    }
}

impl SeriesConn {
    /// A row without any figure.
    pub(super) const fn of(ts: netsniff_packet::Timestamp, interval: Interval, late: bool) -> Self {
        Self {
            ts,
            interval,
            uid: None,
            id_orig_h: None,
            id_orig_p: None,
            id_resp_h: None,
            id_resp_p: None,
            proto: None,
            service: None,
            is_other: false,
            others: None,
            is_late: late,
            new_flows: 0,
            orig_pkts: 0,
            orig_ip_bytes: 0,
            resp_pkts: 0,
            resp_ip_bytes: 0,
            retransmitted: None,
            rtt_samples: None,
            rtt_min: None,
            rtt_p50: None,
            rtt_max: None,
        }
    }

    /// It with what flows showed that were analysed so deep.
    fn with_flows(&self, flows: &FlowFigures, depth: Depth) -> Self {
        let span = |nanos: u64| Interval::from_nanos(i64::try_from(nanos).unwrap_or(i64::MAX));
        let extremes = flows.rtt.extremes();
        let is_tcp = depth >= Depth::Tcp;
        Self {
            new_flows: flows.new,
            orig_pkts: flows.orig[0],
            orig_ip_bytes: flows.orig[1],
            resp_pkts: flows.resp[0],
            resp_ip_bytes: flows.resp[1],
            retransmitted: is_tcp.then_some(flows.retransmitted),
            rtt_samples: is_tcp.then_some(flows.rtt.count()),
            rtt_min: extremes.map(|(min, _)| span(min)),
            rtt_p50: flows.rtt.percentile(50).map(span),
            rtt_max: extremes.map(|(_, max)| span(max)),
            ..Self::of(self.ts, self.interval, self.is_late)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::uid::Uid;

    fn figures(name: u64, bytes: u64) -> ConnectionFigures {
        let connection = Connection { uid: Uid::new(u128::from(name)), ..Connection::NONE };
        let figures = FlowFigures { orig: [1, bytes], ..FlowFigures::default() };
        ConnectionFigures { connection, service: None, figures }
    }

    fn of(busiest: &BusiestConnections) -> (Vec<u64>, u64, [u64; 2]) {
        let bytes = busiest.listed.iter().map(|one| one.figures.orig[1]).collect();
        (bytes, busiest.others, busiest.rest.orig)
    }

    #[test]
    fn neither_order_nor_shares_change_who_has_a_row() {
        let all: Vec<_> = (0..50).map(|name| figures(name, name * 7919 % 31)).collect();
        let mut one = BusiestConnections::default();
        all.iter().for_each(|it| one.add(it.clone(), 5));
        one.cut(5);
        let mut shares = vec![BusiestConnections::default(); 3];
        for (at, it) in all.iter().rev().enumerate() {
            shares[at % 3].add(it.clone(), 5);
        }
        let mut sum = BusiestConnections::default();
        shares.iter().for_each(|share| sum.add_all(share, 5));
        assert_eq!(of(&one), of(&sum));
        let (listed, others, rest) = of(&one);
        assert_eq!((listed.len(), others, rest[0]), (5, 45, 45));
        let bytes: u64 = all.iter().map(|it| it.figures.orig[1]).sum();
        assert_eq!(listed.iter().sum::<u64>() + rest[1], bytes, "nothing is lost");
        assert_eq!(listed[0], 30);
    }
}
