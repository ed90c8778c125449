//! A TCP connection as a record of the `tcp` log, and its RTT samples as records of the `rtt` log.

use netsniff_packet::Timestamp;

use crate::depth::Depth;
use crate::flow::Flow;
use crate::flow::tcp::connection::verdict::NetworkLosses;
use crate::flow::tcp::metrics::TcpMetrics;
use crate::flow::tcp::metrics::direction::Direction;
use crate::flow::tcp::metrics::series::IntervalRtt;
use crate::flow::tcp::observed::elapsed;
use crate::key::uid::Uid;
use crate::log::{Rtt, Tcp, TcpSide};
use crate::record::{Interval, Port};

impl Flow {
    /// Hands the record of this flow, whose name is `uid`, in the `tcp` log to `take`, if it is a
    /// TCP connection whose metrics were kept. With `gateway`, hop counts are one lower. What the network `lost` of each side
    /// is `None` where nobody can tell.
    pub fn report_tcp<T>(
        &self,
        uid: Uid,
        gateway: bool,
        lost: Option<&[NetworkLosses; 2]>,
        take: impl FnOnce(&Tcp) -> T,
    ) -> Option<T> {
        let tcp = self.tcp().filter(|_| self.depth.now() >= Depth::Tcp)?;
        Some(tcp.metrics.with(|metrics| take(&self.tcp_record(uid, metrics, gateway, lost))))
    }

    /// The records of the `rtt` log that are still open: of the originator's data, and of the
    /// responder's.
    #[must_use]
    pub fn open_rtt(&self) -> [Option<Rtt>; 2] {
        let Some(tcp) = self.tcp() else { return [None, None] };
        tcp.metrics.open_intervals().map(|interval| interval.map(|open| self.rtt_record(&open)))
    }

    /// An interval as a record of the `rtt` log.
    #[must_use]
    pub fn rtt_record(&self, interval: &IntervalRtt) -> Rtt {
        let (originator, responder) = self.ends();
        Rtt {
            ts: interval.start,
            uid: self.uid(),
            id_orig_h: originator.address,
            id_orig_p: Port(originator.port),
            id_resp_h: responder.address,
            id_resp_p: Port(responder.port),
            is_orig: interval.direction == 0,
            samples: interval.samples,
            rtt_min: span(interval.min),
            rtt_avg: span(interval.average),
            rtt_max: span(interval.max),
            jitter: interval.jitter.map(span),
        }
    }

    /// The row of the log `tcp`.
    fn tcp_record(
        &self,
        uid: Uid,
        metrics: &TcpMetrics,
        gateway: bool,
        lost: Option<&[NetworkLosses; 2]>,
    ) -> Tcp {
        let of = |from, side: TcpSide, direction| match lost {
            Some(lost) => side.with_losses(&lost[from], direction),
            None => side,
        };
        let (originator, responder) = self.ends();
        let [first, second] = &metrics.directions;
        let handshake = &metrics.handshake;
        let (start, last) = (self.start, self.last);
        Tcp {
            ts: start,
            uid,
            id_orig_h: originator.address,
            id_orig_p: Port(originator.port),
            id_resp_h: responder.address,
            id_resp_p: Port(responder.port),
            ecn: handshake.ecn,
            orig: TcpSide {
                handshake_rtt: handshake.originator().map(span),
                ..of(0, TcpSide::of(first, second, start, last, gateway), first)
            },
            resp: TcpSide {
                handshake_rtt: handshake.responder().map(span),
                ..of(1, TcpSide::of(second, first, start, last, gateway), second)
            },
        }
    }
}

/// Nanoseconds as a field.
fn span(nanos: u64) -> Interval {
    Interval::from_nanos(i64::try_from(nanos).unwrap_or(i64::MAX))
}

impl TcpSide {
    /// What `side` sent; `start` and `last` are when the connection began and ended.
    fn of(
        side: &Direction,
        peer: &Direction,
        start: Timestamp,
        last: Timestamp,
        gateway: bool,
    ) -> Self {
        if !side.is_seen() {
            return Self::default();
        }
        let counts = &side.counts;
        let in_flight = side.in_flight();
        let windows = side.windows();
        Self {
            data_segments: Some(side.data_segments),
            pure_acks: Some(side.pure_acks),
            payload_bytes: Some(side.payload_bytes),
            unique_bytes: Some(side.unique_bytes()),
            retx_rto: Some(counts.retransmitted_timeout),
            retx_fast: in_flight.map(|_| counts.retransmitted_fast),
            retx_spurious: in_flight.map(|_| counts.retransmitted_unnecessarily),
            window_probes: peer.is_seen().then_some(counts.window_probes),
            keep_alives: Some(counts.keep_alives),
            out_of_order: Some(counts.out_of_order),
            duplicates: Some(counts.duplicates),
            dup_acks: peer.is_seen().then_some(counts.duplicate_acks),
            zero_windows: Some(counts.zero_windows),
            zero_window_time: Some(span(side.zero_window_time(last))),
            in_flight_max: in_flight,
            initial_window: side.initial_window(),
            mss: side.mss(),
            segment_max: (side.largest_segment > 0).then_some(side.largest_segment),
            window_scale: side.window_scale(),
            window_min: windows.map(|(min, _)| min),
            window_max: windows.map(|(_, max)| max),
            sack_permitted: side.sack_permitted(),
            sacks: Some(counts.sacks),
            dsacks: Some(counts.dsacks),
            timestamps: side.timestamps(),
            ce_marks: Some(counts.congestion_experienced),
            ece: Some(counts.ecn_echoes),
            cwr: Some(counts.window_reduced),
            ttl_min: Some(side.ttl().0),
            ttl_max: Some(side.ttl().1),
            hops: Some(side.hops(gateway)),
            first_payload: side.first_payload().and_then(|at| elapsed(start, at)).map(span),
            fins: Some(side.fins),
            resets: Some(side.resets),
            ..Self::rtt(side)
        }
    }

    /// The same, with what the network lost of its payload, if that is known of all that it sent.
    fn with_losses(self, lost: &NetworkLosses, side: &Direction) -> Self {
        let NetworkLosses { before, behind, is_incomplete } = *lost;
        // What was lost before the tap was sent, too.
        let sent = side.sent_bytes().saturating_add(before);
        if is_incomplete || sent == 0 || !side.is_acknowledged_to_its_end() {
            return self;
        }
        let rate = before.saturating_add(behind) as f64 / sent as f64;
        Self { lost_before: Some(before), lost_behind: Some(behind), loss_rate: Some(rate), ..self }
    }

    fn rtt(side: &Direction) -> Self {
        let rtt = &side.rtt;
        if rtt.count == 0 {
            return Self::default();
        }
        Self {
            rtt_samples: Some(rtt.count),
            rtt_min: Some(span(rtt.min)),
            rtt_avg: rtt.average().map(span),
            rtt_max: Some(span(rtt.max)),
            rtt_std: rtt.deviation().map(span),
            jitter: rtt.jitter().map(span),
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;
    use std::collections::BTreeMap;

    use netsniff_packet::decode::{self, Decoded};
    use netsniff_packet::{LinkType, Packet};

    use super::*;
    use crate::record::{FieldInfo, Value, Visitor};
    use crate::{Engine, Limits, Observer, Options, Record, SortKey};

    /// What the records of a run say, as text.
    #[derive(Default)]
    struct Rows(Vec<(SortKey, &'static str, BTreeMap<&'static str, String>)>);

    impl Observer for Rows {
        fn record<R: Record>(&mut self, key: &SortKey, record: &R) {
            self.0.push((*key, record.log().path, BTreeMap::new()));
            record.visit(self);
        }
    }

    impl Visitor for Rows {
        fn field(&mut self, _: usize, info: &'static FieldInfo, value: Value<'_>) {
            let text = match value {
                Value::Unset => return,
                Value::Count(value) => value.to_string(),
                Value::Interval(value) => value.nanos().to_string(),
                Value::Time(value) => value.nanos().to_string(),
                Value::Word(value) => String::from_utf8_lossy(value).into_owned(),
                Value::Bool(value) => value.to_string(),
                _ => return,
            };
            self.0.last_mut().unwrap().2.insert(info.name, text);
        }
    }

    impl Rows {
        fn of(&self, log: &str) -> Vec<&BTreeMap<&'static str, String>> {
            self.0.iter().filter(|row| row.1 == log).map(|row| &row.2).collect()
        }
    }

    /// An IPv4 packet with a TCP segment between 10.0.0.1:1000 and 10.0.0.2:80.
    fn segment(from_client: bool, flags: u8, seq: u32, ack: u32, payload: u16, ttl: u8) -> Vec<u8> {
        let mut bytes = vec![0x45, 0];
        bytes.extend((40 + payload).to_be_bytes());
        bytes.extend([0, 0, 0, 0, ttl, 6, 0, 0]);
        let (client, server) = ([10, 0, 0, 1], [10, 0, 0, 2]);
        let ports = |a: u16, b: u16| [a.to_be_bytes(), b.to_be_bytes()].concat();
        let (addresses, ports) = if from_client {
            ([client, server].concat(), ports(1000, 80))
        } else {
            ([server, client].concat(), ports(80, 1000))
        };
        bytes.extend(addresses);
        bytes.extend(ports);
        bytes.extend(seq.to_be_bytes());
        bytes.extend(ack.to_be_bytes());
        bytes.extend([0x50, flags, 0x10, 0, 0, 0, 0, 0]);
        bytes.resize(bytes.len() + usize::from(payload), 0);
        bytes
    }

    const SYN: u8 = 2;
    const ACK: u8 = 16;

    fn run(options: Options, packets: &[(i64, Vec<u8>)]) -> Rows {
        let mut engine = Engine::new(Limits::default(), options, 1);
        let mut rows = Rows::default();
        for (millis, data) in packets {
            let packet = Packet {
                timestamp: Timestamp::from_nanos(millis * 1_000_000),
                data,
                wire_len: data.len() as u32,
                link_type: LinkType::RAW,
                interface: 0,
            };
            let decoded: Decoded = decode::packet(packet.link_type, data, packet.wire_len);
            assert!(decoded.stop.is_none(), "{decoded:?}");
            engine.packet(&packet, &mut rows);
        }
        engine.finish(&mut rows);
        rows
    }

    fn dialogue() -> Vec<(i64, Vec<u8>)> {
        let mut packets = vec![
            (0, segment(true, SYN, 100, 0, 0, 60)),
            (10, segment(false, SYN | ACK, 500, 101, 0, 120)),
            (15, segment(true, ACK, 101, 501, 0, 60)),
        ];
        for index in 0..5_u32 {
            let at = 20 + i64::from(index) * 400;
            packets.push((at, segment(true, ACK, 101 + index * 10, 501, 10, 60)));
            packets.push((at + 7, segment(false, ACK, 501, 111 + index * 10, 0, 120)));
        }
        packets
    }

    #[test]
    fn every_tcp_connection_has_a_row_beside_conn() {
        let rows = run(Options::default(), &dialogue());
        let (conn, tcp) = (rows.of("conn"), rows.of("tcp"));
        assert_eq!((conn.len(), tcp.len(), rows.of("rtt").len()), (1, 1, 0));
        assert_eq!(conn[0]["uid"], tcp[0]["uid"]);
        for (column, expected) in [
            ("orig_handshake_rtt", "5000000"),
            ("resp_handshake_rtt", "10000000"),
            ("orig_rtt_avg", "7000000"),
            ("orig_rtt_samples", "5"),
            ("orig_unique_bytes", "50"),
            ("orig_hops", "4"),
            ("resp_hops", "8"),
            ("orig_sack_permitted", "false"),
            ("orig_first_payload", "20000000"),
            ("ecn", "false"),
        ] {
            assert_eq!(tcp[0].get(column).map(String::as_str), Some(expected), "{column}");
        }
        assert_eq!(tcp[0].get("resp_rtt_min"), None);
        assert_eq!(tcp[0].get("orig_mss"), None);
    }

    #[test]
    fn a_lone_syn_has_a_row_of_one_side() {
        let rows = run(Options::default(), &dialogue()[..1]);
        let tcp = rows.of("tcp");
        assert_eq!(tcp.len(), 1);
        assert_eq!(tcp[0]["orig_ttl_min"], "60");
        assert!(tcp[0].keys().all(|column| !column.starts_with("resp_")), "{:?}", tcp[0]);
    }

    #[test]
    fn losses_are_told_only_of_what_was_acknowledged_to_its_end() {
        let told = |packets: &[(i64, Vec<u8>)]| {
            let rows = run(Options::default(), packets);
            let tcp = rows.of("tcp");
            assert!(!tcp[0].contains_key("resp_lost_before"), "it sent no payload");
            ["orig_lost_before", "orig_lost_behind"].map(|column| tcp[0].get(column).cloned())
        };
        let none = [Some("0".to_owned()), Some("0".to_owned())];
        let mut packets = dialogue();
        assert_eq!(told(&packets), none);
        // A FIN is no payload.
        packets.push((3000, segment(true, 1 | ACK, 151, 501, 0, 60)));
        assert_eq!(told(&packets), none);
        packets.truncate(packets.len() - 2);
        assert_eq!(told(&packets), [None, None]);
        // Nor is anything told of a connection whose begin was not seen.
        assert_eq!(told(&dialogue()[3..]), [None, None]);
    }

    #[test]
    fn a_gateway_is_no_hop() {
        let options = Options { gateway: true, ..Options::default() };
        let rows = run(options, &dialogue());
        assert_eq!(rows.of("tcp")[0]["orig_hops"], "3");
    }

    #[test]
    fn sampling_gives_rows_with_keys_of_their_own() {
        let interval = Some(Duration::from_secs(1));
        let rows = run(Options { rtt_interval: interval, ..Options::default() }, &dialogue());
        let rtt = rows.of("rtt");
        let told: Vec<_> =
            rtt.iter().map(|row| (row["ts"].as_str(), row["samples"].as_str())).collect();
        assert_eq!(told, [("0", "3"), ("1000000000", "2")]);
        assert!(rtt.iter().all(|row| row["is_orig"] == "true" && row["rtt_max"] == "7000000"));
        let mut keys: Vec<_> = rows.0.iter().map(|row| (row.1, row.0)).collect();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), rows.0.len(), "two records of one log have the same key");
    }
}
