//! A TCP connection as a record of the `tcp` log, and its RTT samples as records of the `rtt` log.

use netsniff_packet::Timestamp;

use super::Flow;
use super::tcp::metrics::direction::Direction;
use super::tcp::metrics::series::IntervalRtt;
use super::tcp::metrics::{TcpMetrics, elapsed};
use crate::log::{Rtt, Tcp};
use crate::record::{Interval, Port};

impl Flow {
    /// Hands the record of this flow in the `tcp` log to `take`, if it is a TCP connection. With
    /// `gateway`, hop counts are one lower.
    pub fn report_tcp<T>(&self, gateway: bool, take: impl FnOnce(&Tcp) -> T) -> Option<T> {
        let tcp = self.tcp.as_ref()?;
        Some(tcp.metrics.with(|metrics| take(&self.tcp_record(metrics, gateway))))
    }

    /// The records of the `rtt` log that are still open: of the originator's data, and of the
    /// responder's.
    #[must_use]
    pub fn open_rtt(&self) -> [Option<Rtt>; 2] {
        let Some(tcp) = &self.tcp else { return [None, None] };
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

    fn tcp_record(&self, metrics: &TcpMetrics, gateway: bool) -> Tcp {
        let (originator, responder) = self.ends();
        let [first, second] = &metrics.directions;
        let mut orig = Half::of(first, second, self.start, self.last, gateway);
        let mut resp = Half::of(second, first, self.start, self.last, gateway);
        orig.handshake_rtt = metrics.handshake.originator.map(span);
        resp.handshake_rtt = metrics.handshake.responder.map(span);
        macro_rules! record {
            ($($orig:ident $resp:ident $field:ident;)+) => {
                Tcp {
                    ts: self.start,
                    uid: self.uid(),
                    id_orig_h: originator.address,
                    id_orig_p: Port(originator.port),
                    id_resp_h: responder.address,
                    id_resp_p: Port(responder.port),
                    ecn: metrics.handshake.ecn,
                    $($orig: orig.$field, $resp: resp.$field,)+
                }
            };
        }
        record! {
            orig_handshake_rtt resp_handshake_rtt handshake_rtt;
            orig_rtt_samples resp_rtt_samples rtt_samples;
            orig_rtt_min resp_rtt_min rtt_min;
            orig_rtt_avg resp_rtt_avg rtt_avg;
            orig_rtt_max resp_rtt_max rtt_max;
            orig_rtt_std resp_rtt_std rtt_std;
            orig_jitter resp_jitter jitter;
            orig_data_segments resp_data_segments data_segments;
            orig_pure_acks resp_pure_acks pure_acks;
            orig_payload_bytes resp_payload_bytes payload_bytes;
            orig_unique_bytes resp_unique_bytes unique_bytes;
            orig_retx_rto resp_retx_rto retx_rto;
            orig_retx_fast resp_retx_fast retx_fast;
            orig_retx_spurious resp_retx_spurious retx_spurious;
            orig_window_probes resp_window_probes window_probes;
            orig_keep_alives resp_keep_alives keep_alives;
            orig_out_of_order resp_out_of_order out_of_order;
            orig_duplicates resp_duplicates duplicates;
            orig_dup_acks resp_dup_acks dup_acks;
            orig_zero_windows resp_zero_windows zero_windows;
            orig_zero_window_time resp_zero_window_time zero_window_time;
            orig_in_flight_max resp_in_flight_max in_flight_max;
            orig_initial_window resp_initial_window initial_window;
            orig_mss resp_mss mss;
            orig_segment_max resp_segment_max segment_max;
            orig_window_scale resp_window_scale window_scale;
            orig_window_min resp_window_min window_min;
            orig_window_max resp_window_max window_max;
            orig_sack_permitted resp_sack_permitted sack_permitted;
            orig_sacks resp_sacks sacks;
            orig_dsacks resp_dsacks dsacks;
            orig_timestamps resp_timestamps timestamps;
            orig_ce_marks resp_ce_marks ce_marks;
            orig_ece resp_ece ece;
            orig_cwr resp_cwr cwr;
            orig_ttl_min resp_ttl_min ttl_min;
            orig_ttl_max resp_ttl_max ttl_max;
            orig_hops resp_hops hops;
            orig_first_payload resp_first_payload first_payload;
            orig_fins resp_fins fins;
            orig_resets resp_resets resets;
        }
    }
}

/// Nanoseconds as a field.
fn span(nanos: u64) -> Interval {
    Interval::from_nanos(i64::try_from(nanos).unwrap_or(i64::MAX))
}

/// The columns of one side.
#[derive(Default)]
struct Half {
    handshake_rtt: Option<Interval>,
    rtt_samples: Option<u32>,
    rtt_min: Option<Interval>,
    rtt_avg: Option<Interval>,
    rtt_max: Option<Interval>,
    rtt_std: Option<Interval>,
    jitter: Option<Interval>,
    data_segments: Option<u32>,
    pure_acks: Option<u32>,
    payload_bytes: Option<u64>,
    unique_bytes: Option<u64>,
    retx_rto: Option<u32>,
    retx_fast: Option<u32>,
    retx_spurious: Option<u32>,
    window_probes: Option<u32>,
    keep_alives: Option<u32>,
    out_of_order: Option<u32>,
    duplicates: Option<u32>,
    dup_acks: Option<u32>,
    zero_windows: Option<u32>,
    zero_window_time: Option<Interval>,
    in_flight_max: Option<u32>,
    initial_window: Option<u32>,
    mss: Option<u16>,
    segment_max: Option<u32>,
    window_scale: Option<u8>,
    window_min: Option<u32>,
    window_max: Option<u32>,
    sack_permitted: Option<bool>,
    sacks: Option<u32>,
    dsacks: Option<u32>,
    timestamps: Option<bool>,
    ce_marks: Option<u32>,
    ece: Option<u32>,
    cwr: Option<u32>,
    ttl_min: Option<u8>,
    ttl_max: Option<u8>,
    hops: Option<u8>,
    first_payload: Option<Interval>,
    fins: Option<u32>,
    resets: Option<u32>,
}

impl Half {
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
            timestamps: Some(side.timestamps()),
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
