//! The `tcp` log: what the segments of a TCP connection tell about path and hosts, for each
//! direction. `docs/tcp-metrics.md` gives the definitions at length.

use netsniff_packet::{Address, Timestamp};

use crate::key::uid::Uid;
use crate::record::{Interval, Port};

crate::record! {
    /// One row for each TCP connection, beside its row in `conn`. What the capture cannot show is
    /// unset: everything of a side that was not heard, times without a sample, options without
    /// the SYN.
    pub struct Tcp => "tcp" {
        /// Time of the first packet.
        ts: Timestamp => "ts", time, Seconds, Plain, Netsniff;
        /// Identifier of the connection, the same in every log.
        uid: Uid => "uid", string, None, Plain, Netsniff;
        /// Address of the originator.
        id_orig_h: Address => "id.orig_h", addr, None, Address, Netsniff;
        /// Port of the originator.
        id_orig_p: Port => "id.orig_p", port, None, Plain, Netsniff;
        /// Address of the responder.
        id_resp_h: Address => "id.resp_h", addr, None, Address, Netsniff;
        /// Port of the responder.
        id_resp_p: Port => "id.resp_p", port, None, Plain, Netsniff;
        /// Whether the handshake agreed on ECN (RFC 3168, 6.1.1).
        ecn: Option<bool> => "ecn", bool, None, Plain, Netsniff;
        /// From SYN-ACK to ACK of the handshake: the round trip between the tap and the originator.
        orig_handshake_rtt: Option<Interval> =>
            "orig_handshake_rtt", interval, Seconds, Plain, Netsniff;
        /// RTT samples of the data that the originator sent: one segment at a time, never one that
        /// was sent again (Karn; RFC 6298, 3).
        orig_rtt_samples: Option<u32> => "orig_rtt_samples", count, Times, Plain, Netsniff;
        /// Shortest time from data of the originator to its acknowledgement: from the tap to the
        /// responder and back.
        orig_rtt_min: Option<Interval> => "orig_rtt_min", interval, Seconds, Plain, Netsniff;
        /// Mean of these times.
        orig_rtt_avg: Option<Interval> => "orig_rtt_avg", interval, Seconds, Plain, Netsniff;
        /// Longest of these times.
        orig_rtt_max: Option<Interval> => "orig_rtt_max", interval, Seconds, Plain, Netsniff;
        /// Standard deviation of these times.
        orig_rtt_std: Option<Interval> => "orig_rtt_std", interval, Seconds, Plain, Netsniff;
        /// Smoothed difference of consecutive samples of these times, by the formula of RFC 3550,
        /// 6.4.1.
        orig_jitter: Option<Interval> => "orig_jitter", interval, Seconds, Plain, Netsniff;
        /// Segments with payload that the originator sent, those sent again included.
        orig_data_segments: Option<u32> => "orig_data_segments", count, Segments, Plain, Netsniff;
        /// Segments without payload, SYN, FIN and RST that the originator sent.
        orig_pure_acks: Option<u32> => "orig_pure_acks", count, Segments, Plain, Netsniff;
        /// Payload bytes that the originator sent, those sent again included.
        orig_payload_bytes: Option<u64> => "orig_payload_bytes", count, Bytes, Plain, Netsniff;
        /// Payload bytes that the originator sent, each counted once.
        orig_unique_bytes: Option<u64> => "orig_unique_bytes", count, Bytes, Plain, Netsniff;
        /// Segments sent again by the originator with no sign of a loss but time: its
        /// retransmission timer (RFC 6298) or a loss probe; all that were sent again, where no
        /// acknowledgement was seen.
        orig_retx_rto: Option<u32> => "orig_retx_rto", count, Segments, Plain, Netsniff;
        /// Segments sent again by the originator after three duplicate acknowledgements (RFC 5681,
        /// 3.2), SACK (RFC 6675) or a partial acknowledgement (RFC 6582).
        orig_retx_fast: Option<u32> => "orig_retx_fast", count, Segments, Plain, Netsniff;
        /// Segments sent again by the originator though the receiver had them: already
        /// acknowledged, or reported as duplicate (RFC 2883).
        orig_retx_spurious: Option<u32> => "orig_retx_spurious", count, Segments, Plain, Netsniff;
        /// Probes of a closed window by the originator: one byte at its edge, or none just below
        /// (RFC 9293, 3.8.6.1).
        orig_window_probes: Option<u32> => "orig_window_probes", count, Segments, Plain, Netsniff;
        /// Keep-alives of the originator: no byte or an acknowledged one just below the next
        /// sequence number (RFC 9293, 3.8.4).
        orig_keep_alives: Option<u32> => "orig_keep_alives", count, Segments, Plain, Netsniff;
        /// Segments of the originator that filled a hole within one RTT, or 3 ms where none is
        /// known, without three duplicate acknowledgements: overtaken on the way.
        orig_out_of_order: Option<u32> => "orig_out_of_order", count, Segments, Plain, Netsniff;
        /// Packets of the originator seen twice, told by their IP identification: doubled by the
        /// network or the mirror.
        orig_duplicates: Option<u32> => "orig_duplicates", count, Packets, Plain, Netsniff;
        /// Duplicate acknowledgements that the originator sent (RFC 5681, 2; RFC 6675, 2).
        orig_dup_acks: Option<u32> => "orig_dup_acks", count, Segments, Plain, Netsniff;
        /// Segments with which the originator told that its window was closed.
        orig_zero_windows: Option<u32> => "orig_zero_windows", count, Segments, Plain, Netsniff;
        /// Time for which the window of the originator was closed.
        orig_zero_window_time: Option<Interval> =>
            "orig_zero_window_time", interval, Seconds, Plain, Netsniff;
        /// Most bytes of the originator that had passed the tap and were not acknowledged there.
        orig_in_flight_max: Option<u32> => "orig_in_flight_max", count, Bytes, Plain, Netsniff;
        /// Bytes that the originator sent before the first acknowledgement of its data: its initial
        /// congestion window or less (RFC 6928).
        orig_initial_window: Option<u32> => "orig_initial_window", count, Bytes, Plain, Netsniff;
        /// Maximum segment size that the SYN of the originator announced (RFC 9293, 3.7.1).
        orig_mss: Option<u16> => "orig_mss", count, Bytes, Plain, Netsniff;
        /// Largest payload of a segment of the originator; more than the MSS where the capture saw
        /// segments before the card cut them.
        orig_segment_max: Option<u32> => "orig_segment_max", count, Bytes, Plain, Netsniff;
        /// Window scale shift that the SYN of the originator offered (RFC 7323, 2).
        orig_window_scale: Option<u8> => "orig_window_scale", count, None, Plain, Netsniff;
        /// Smallest window that the originator offered after its SYN, scaled.
        orig_window_min: Option<u32> => "orig_window_min", count, Bytes, Plain, Netsniff;
        /// Largest window that the originator offered after its SYN, scaled.
        orig_window_max: Option<u32> => "orig_window_max", count, Bytes, Plain, Netsniff;
        /// Whether the SYN of the originator permitted SACK (RFC 2018, 2).
        orig_sack_permitted: Option<bool> => "orig_sack_permitted", bool, None, Plain, Netsniff;
        /// Segments of the originator with SACK blocks (RFC 2018, 3).
        orig_sacks: Option<u32> => "orig_sacks", count, Segments, Plain, Netsniff;
        /// Segments of the originator that reported a duplicate by SACK (RFC 2883).
        orig_dsacks: Option<u32> => "orig_dsacks", count, Segments, Plain, Netsniff;
        /// Whether the originator sent timestamps (RFC 7323, 3).
        orig_timestamps: Option<bool> => "orig_timestamps", bool, None, Plain, Netsniff;
        /// Packets of the originator that arrived at the tap marked as having met congestion (RFC
        /// 3168, 5).
        orig_ce_marks: Option<u32> => "orig_ce_marks", count, Packets, Plain, Netsniff;
        /// Segments of the originator after its SYN with ECE (RFC 3168, 6.1).
        orig_ece: Option<u32> => "orig_ece", count, Segments, Plain, Netsniff;
        /// Segments of the originator after its SYN with CWR (RFC 3168, 6.1).
        orig_cwr: Option<u32> => "orig_cwr", count, Segments, Plain, Netsniff;
        /// Smallest time to live or hop limit of a packet of the originator.
        orig_ttl_min: Option<u8> => "orig_ttl_min", count, Hops, Plain, Netsniff;
        /// Largest time to live or hop limit of a packet of the originator.
        orig_ttl_max: Option<u8> => "orig_ttl_max", count, Hops, Plain, Netsniff;
        /// Routers between the originator and the tap, if the time to live began at the next of 32,
        /// 64, 128 and 255 above the largest seen.
        orig_hops: Option<u8> => "orig_hops", count, Hops, Plain, Netsniff;
        /// Time from the first packet of the connection to the first payload of the originator.
        orig_first_payload: Option<Interval> =>
            "orig_first_payload", interval, Seconds, Plain, Netsniff;
        /// FINs that the originator sent.
        orig_fins: Option<u32> => "orig_fins", count, Segments, Plain, Netsniff;
        /// RSTs that the originator sent.
        orig_resets: Option<u32> => "orig_resets", count, Segments, Plain, Netsniff;
        /// From SYN to SYN-ACK of the handshake: the round trip between the tap and the responder.
        resp_handshake_rtt: Option<Interval> =>
            "resp_handshake_rtt", interval, Seconds, Plain, Netsniff;
        /// RTT samples of the data that the responder sent: one segment at a time, never one that
        /// was sent again (Karn; RFC 6298, 3).
        resp_rtt_samples: Option<u32> => "resp_rtt_samples", count, Times, Plain, Netsniff;
        /// Shortest time from data of the responder to its acknowledgement: from the tap to the
        /// originator and back.
        resp_rtt_min: Option<Interval> => "resp_rtt_min", interval, Seconds, Plain, Netsniff;
        /// Mean of these times.
        resp_rtt_avg: Option<Interval> => "resp_rtt_avg", interval, Seconds, Plain, Netsniff;
        /// Longest of these times.
        resp_rtt_max: Option<Interval> => "resp_rtt_max", interval, Seconds, Plain, Netsniff;
        /// Standard deviation of these times.
        resp_rtt_std: Option<Interval> => "resp_rtt_std", interval, Seconds, Plain, Netsniff;
        /// Smoothed difference of consecutive samples of these times, by the formula of RFC 3550,
        /// 6.4.1.
        resp_jitter: Option<Interval> => "resp_jitter", interval, Seconds, Plain, Netsniff;
        /// Segments with payload that the responder sent, those sent again included.
        resp_data_segments: Option<u32> => "resp_data_segments", count, Segments, Plain, Netsniff;
        /// Segments without payload, SYN, FIN and RST that the responder sent.
        resp_pure_acks: Option<u32> => "resp_pure_acks", count, Segments, Plain, Netsniff;
        /// Payload bytes that the responder sent, those sent again included.
        resp_payload_bytes: Option<u64> => "resp_payload_bytes", count, Bytes, Plain, Netsniff;
        /// Payload bytes that the responder sent, each counted once.
        resp_unique_bytes: Option<u64> => "resp_unique_bytes", count, Bytes, Plain, Netsniff;
        /// Segments sent again by the responder with no sign of a loss but time: its retransmission
        /// timer (RFC 6298) or a loss probe; all that were sent again, where no acknowledgement was
        /// seen.
        resp_retx_rto: Option<u32> => "resp_retx_rto", count, Segments, Plain, Netsniff;
        /// Segments sent again by the responder after three duplicate acknowledgements (RFC 5681,
        /// 3.2), SACK (RFC 6675) or a partial acknowledgement (RFC 6582).
        resp_retx_fast: Option<u32> => "resp_retx_fast", count, Segments, Plain, Netsniff;
        /// Segments sent again by the responder though the receiver had them: already acknowledged,
        /// or reported as duplicate (RFC 2883).
        resp_retx_spurious: Option<u32> => "resp_retx_spurious", count, Segments, Plain, Netsniff;
        /// Probes of a closed window by the responder: one byte at its edge, or none just below
        /// (RFC 9293, 3.8.6.1).
        resp_window_probes: Option<u32> => "resp_window_probes", count, Segments, Plain, Netsniff;
        /// Keep-alives of the responder: no byte or an acknowledged one just below the next
        /// sequence number (RFC 9293, 3.8.4).
        resp_keep_alives: Option<u32> => "resp_keep_alives", count, Segments, Plain, Netsniff;
        /// Segments of the responder that filled a hole within one RTT, or 3 ms where none is
        /// known, without three duplicate acknowledgements: overtaken on the way.
        resp_out_of_order: Option<u32> => "resp_out_of_order", count, Segments, Plain, Netsniff;
        /// Packets of the responder seen twice, told by their IP identification: doubled by the
        /// network or the mirror.
        resp_duplicates: Option<u32> => "resp_duplicates", count, Packets, Plain, Netsniff;
        /// Duplicate acknowledgements that the responder sent (RFC 5681, 2; RFC 6675, 2).
        resp_dup_acks: Option<u32> => "resp_dup_acks", count, Segments, Plain, Netsniff;
        /// Segments with which the responder told that its window was closed.
        resp_zero_windows: Option<u32> => "resp_zero_windows", count, Segments, Plain, Netsniff;
        /// Time for which the window of the responder was closed.
        resp_zero_window_time: Option<Interval> =>
            "resp_zero_window_time", interval, Seconds, Plain, Netsniff;
        /// Most bytes of the responder that had passed the tap and were not acknowledged there.
        resp_in_flight_max: Option<u32> => "resp_in_flight_max", count, Bytes, Plain, Netsniff;
        /// Bytes that the responder sent before the first acknowledgement of its data: its initial
        /// congestion window or less (RFC 6928).
        resp_initial_window: Option<u32> => "resp_initial_window", count, Bytes, Plain, Netsniff;
        /// Maximum segment size that the SYN of the responder announced (RFC 9293, 3.7.1).
        resp_mss: Option<u16> => "resp_mss", count, Bytes, Plain, Netsniff;
        /// Largest payload of a segment of the responder; more than the MSS where the capture saw
        /// segments before the card cut them.
        resp_segment_max: Option<u32> => "resp_segment_max", count, Bytes, Plain, Netsniff;
        /// Window scale shift that the SYN of the responder offered (RFC 7323, 2).
        resp_window_scale: Option<u8> => "resp_window_scale", count, None, Plain, Netsniff;
        /// Smallest window that the responder offered after its SYN, scaled.
        resp_window_min: Option<u32> => "resp_window_min", count, Bytes, Plain, Netsniff;
        /// Largest window that the responder offered after its SYN, scaled.
        resp_window_max: Option<u32> => "resp_window_max", count, Bytes, Plain, Netsniff;
        /// Whether the SYN of the responder permitted SACK (RFC 2018, 2).
        resp_sack_permitted: Option<bool> => "resp_sack_permitted", bool, None, Plain, Netsniff;
        /// Segments of the responder with SACK blocks (RFC 2018, 3).
        resp_sacks: Option<u32> => "resp_sacks", count, Segments, Plain, Netsniff;
        /// Segments of the responder that reported a duplicate by SACK (RFC 2883).
        resp_dsacks: Option<u32> => "resp_dsacks", count, Segments, Plain, Netsniff;
        /// Whether the responder sent timestamps (RFC 7323, 3).
        resp_timestamps: Option<bool> => "resp_timestamps", bool, None, Plain, Netsniff;
        /// Packets of the responder that arrived at the tap marked as having met congestion (RFC
        /// 3168, 5).
        resp_ce_marks: Option<u32> => "resp_ce_marks", count, Packets, Plain, Netsniff;
        /// Segments of the responder after its SYN with ECE (RFC 3168, 6.1).
        resp_ece: Option<u32> => "resp_ece", count, Segments, Plain, Netsniff;
        /// Segments of the responder after its SYN with CWR (RFC 3168, 6.1).
        resp_cwr: Option<u32> => "resp_cwr", count, Segments, Plain, Netsniff;
        /// Smallest time to live or hop limit of a packet of the responder.
        resp_ttl_min: Option<u8> => "resp_ttl_min", count, Hops, Plain, Netsniff;
        /// Largest time to live or hop limit of a packet of the responder.
        resp_ttl_max: Option<u8> => "resp_ttl_max", count, Hops, Plain, Netsniff;
        /// Routers between the responder and the tap, if the time to live began at the next of 32,
        /// 64, 128 and 255 above the largest seen.
        resp_hops: Option<u8> => "resp_hops", count, Hops, Plain, Netsniff;
        /// Time from the first packet of the connection to the first payload of the responder.
        resp_first_payload: Option<Interval> =>
            "resp_first_payload", interval, Seconds, Plain, Netsniff;
        /// FINs that the responder sent.
        resp_fins: Option<u32> => "resp_fins", count, Segments, Plain, Netsniff;
        /// RSTs that the responder sent.
        resp_resets: Option<u32> => "resp_resets", count, Segments, Plain, Netsniff;
    }
}
