//! The `tcp` log: what the segments of a TCP connection tell about path and hosts, for each
//! direction. `docs/tcp-metrics.md` gives the definitions at length.

use netsniff_packet::{Address, Timestamp};

use crate::key::uid::Uid;
use crate::record::{Interval, Port};

crate::sides_record! {
    /// One row for each TCP connection, beside its row in `conn`. What the capture cannot show is
    /// unset: everything of a side that was not heard, times without a sample, options without
    /// the SYN.
    #[transport(Tcp)]
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
        sides TcpSide
        orig {
            /// From SYN-ACK to ACK of the handshake: the round trip between the tap and the originator.
            handshake_rtt: Option<Interval> =>
                "orig_handshake_rtt", interval, Seconds, Plain, Netsniff;
            /// RTT samples of the data that the originator sent: one segment at a time, never one that
            /// was sent again (Karn; RFC 6298, 3).
            rtt_samples: Option<u32> => "orig_rtt_samples", count, Times, Plain, Netsniff;
            /// Shortest time from data of the originator to its acknowledgement: from the tap to the
            /// responder and back.
            rtt_min: Option<Interval> => "orig_rtt_min", interval, Seconds, Plain, Netsniff;
            /// Mean of these times.
            rtt_avg: Option<Interval> => "orig_rtt_avg", interval, Seconds, Plain, Netsniff;
            /// Longest of these times.
            rtt_max: Option<Interval> => "orig_rtt_max", interval, Seconds, Plain, Netsniff;
            /// Standard deviation of these times.
            rtt_std: Option<Interval> => "orig_rtt_std", interval, Seconds, Plain, Netsniff;
            /// Smoothed difference of consecutive samples of these times, by the formula of RFC 3550,
            /// 6.4.1.
            jitter: Option<Interval> => "orig_jitter", interval, Seconds, Plain, Netsniff;
            /// Segments with payload that the originator sent, those sent again included.
            data_segments: Option<u32> => "orig_data_segments", count, Segments, Plain, Netsniff;
            /// Segments without payload, SYN, FIN and RST that the originator sent.
            pure_acks: Option<u32> => "orig_pure_acks", count, Segments, Plain, Netsniff;
            /// Payload bytes that the originator sent, those sent again included.
            payload_bytes: Option<u64> => "orig_payload_bytes", count, Bytes, Plain, Netsniff;
            /// Payload bytes that the originator sent, each counted once.
            unique_bytes: Option<u64> => "orig_unique_bytes", count, Bytes, Plain, Netsniff;
            /// Payload bytes of the originator that the network lost between it and the tap, where that left a
            /// hole at the tap. It is a lower bound: neither a copy that was sent again and lost, too, nor the last bytes
            /// before a silence leave a hole of their own. Unset where the packets do not tell who lost what.
            lost_before: Option<u64> => "orig_lost_before", count, Bytes, Plain, Netsniff;
            /// Payload bytes of the originator that passed the tap and that the network lost behind it; each
            /// lost copy counts. Unset like `orig_lost_before`.
            lost_behind: Option<u64> => "orig_lost_behind", count, Bytes, Plain, Netsniff;
            /// Share of the payload bytes that the originator sent, those sent again included, that the
            /// network lost, from 0 to 1, as in the two columns before. Unset like these.
            loss_rate: Option<f64> => "orig_loss_rate", double, None, Plain, Netsniff;
            /// Segments sent again by the originator with no sign of a loss but time: its
            /// retransmission timer (RFC 6298) or a loss probe; all that were sent again, where no
            /// acknowledgement was seen.
            retx_rto: Option<u32> => "orig_retx_rto", count, Segments, Plain, Netsniff;
            /// Segments sent again by the originator after three duplicate acknowledgements (RFC 5681,
            /// 3.2), SACK (RFC 6675) or a partial acknowledgement (RFC 6582).
            retx_fast: Option<u32> => "orig_retx_fast", count, Segments, Plain, Netsniff;
            /// Segments sent again by the originator though the receiver had them: already
            /// acknowledged, or reported as duplicate (RFC 2883).
            retx_spurious: Option<u32> => "orig_retx_spurious", count, Segments, Plain, Netsniff;
            /// Probes of a closed window by the originator: one byte at its edge, or none just below
            /// (RFC 9293, 3.8.6.1).
            window_probes: Option<u32> => "orig_window_probes", count, Segments, Plain, Netsniff;
            /// Keep-alives of the originator: no byte or an acknowledged one just below the next
            /// sequence number (RFC 9293, 3.8.4).
            keep_alives: Option<u32> => "orig_keep_alives", count, Segments, Plain, Netsniff;
            /// Segments of the originator that filled a hole within one RTT, or 3 ms where none is
            /// known, without three duplicate acknowledgements: overtaken on the way.
            out_of_order: Option<u32> => "orig_out_of_order", count, Segments, Plain, Netsniff;
            /// Packets of the originator seen twice, told by their IP identification: doubled by the
            /// network or the mirror.
            duplicates: Option<u32> => "orig_duplicates", count, Packets, Plain, Netsniff;
            /// Duplicate acknowledgements that the originator sent (RFC 5681, 2; RFC 6675, 2).
            dup_acks: Option<u32> => "orig_dup_acks", count, Segments, Plain, Netsniff;
            /// Segments with which the originator told that its window was closed.
            zero_windows: Option<u32> => "orig_zero_windows", count, Segments, Plain, Netsniff;
            /// Time for which the window of the originator was closed.
            zero_window_time: Option<Interval> =>
                "orig_zero_window_time", interval, Seconds, Plain, Netsniff;
            /// Most bytes of the originator that had passed the tap and were not acknowledged there.
            in_flight_max: Option<u32> => "orig_in_flight_max", count, Bytes, Plain, Netsniff;
            /// Bytes that the originator sent before the first acknowledgement of its data: its initial
            /// congestion window or less (RFC 6928).
            initial_window: Option<u32> => "orig_initial_window", count, Bytes, Plain, Netsniff;
            /// Maximum segment size that the SYN of the originator announced (RFC 9293, 3.7.1).
            mss: Option<u16> => "orig_mss", count, Bytes, Plain, Netsniff;
            /// Largest payload of a segment of the originator; more than the MSS where the capture saw
            /// segments before the card cut them.
            segment_max: Option<u32> => "orig_segment_max", count, Bytes, Plain, Netsniff;
            /// Window scale shift that the SYN of the originator offered (RFC 7323, 2).
            window_scale: Option<u8> => "orig_window_scale", count, None, Plain, Netsniff;
            /// Smallest window that the originator offered after its SYN, scaled.
            window_min: Option<u32> => "orig_window_min", count, Bytes, Plain, Netsniff;
            /// Largest window that the originator offered after its SYN, scaled.
            window_max: Option<u32> => "orig_window_max", count, Bytes, Plain, Netsniff;
            /// Whether the SYN of the originator permitted SACK (RFC 2018, 2).
            sack_permitted: Option<bool> => "orig_sack_permitted", bool, None, Plain, Netsniff;
            /// Segments of the originator with SACK blocks (RFC 2018, 3).
            sacks: Option<u32> => "orig_sacks", count, Segments, Plain, Netsniff;
            /// Segments of the originator that reported a duplicate by SACK (RFC 2883).
            dsacks: Option<u32> => "orig_dsacks", count, Segments, Plain, Netsniff;
            /// Whether the originator sent timestamps (RFC 7323, 3).
            timestamps: Option<bool> => "orig_timestamps", bool, None, Plain, Netsniff;
            /// Packets of the originator that arrived at the tap marked as having met congestion (RFC
            /// 3168, 5).
            ce_marks: Option<u32> => "orig_ce_marks", count, Packets, Plain, Netsniff;
            /// Segments of the originator after its SYN with ECE (RFC 3168, 6.1).
            ece: Option<u32> => "orig_ece", count, Segments, Plain, Netsniff;
            /// Segments of the originator after its SYN with CWR (RFC 3168, 6.1).
            cwr: Option<u32> => "orig_cwr", count, Segments, Plain, Netsniff;
            /// Smallest time to live or hop limit of a packet of the originator.
            ttl_min: Option<u8> => "orig_ttl_min", count, Hops, Plain, Netsniff;
            /// Largest time to live or hop limit of a packet of the originator.
            ttl_max: Option<u8> => "orig_ttl_max", count, Hops, Plain, Netsniff;
            /// Routers between the originator and the tap, if the time to live began at the next of 32,
            /// 64, 128 and 255 above the largest seen.
            hops: Option<u8> => "orig_hops", count, Hops, Plain, Netsniff;
            /// Time from the first packet of the connection to the first payload of the originator.
            first_payload: Option<Interval> =>
                "orig_first_payload", interval, Seconds, Plain, Netsniff;
            /// FINs that the originator sent.
            fins: Option<u32> => "orig_fins", count, Segments, Plain, Netsniff;
            /// RSTs that the originator sent.
            resets: Option<u32> => "orig_resets", count, Segments, Plain, Netsniff;
        }
        resp {
            /// From SYN to SYN-ACK of the handshake: the round trip between the tap and the responder.
            handshake_rtt: Option<Interval> =>
                "resp_handshake_rtt", interval, Seconds, Plain, Netsniff;
            /// RTT samples of the data that the responder sent: one segment at a time, never one that
            /// was sent again (Karn; RFC 6298, 3).
            rtt_samples: Option<u32> => "resp_rtt_samples", count, Times, Plain, Netsniff;
            /// Shortest time from data of the responder to its acknowledgement: from the tap to the
            /// originator and back.
            rtt_min: Option<Interval> => "resp_rtt_min", interval, Seconds, Plain, Netsniff;
            /// Mean of these times.
            rtt_avg: Option<Interval> => "resp_rtt_avg", interval, Seconds, Plain, Netsniff;
            /// Longest of these times.
            rtt_max: Option<Interval> => "resp_rtt_max", interval, Seconds, Plain, Netsniff;
            /// Standard deviation of these times.
            rtt_std: Option<Interval> => "resp_rtt_std", interval, Seconds, Plain, Netsniff;
            /// Smoothed difference of consecutive samples of these times, by the formula of RFC 3550,
            /// 6.4.1.
            jitter: Option<Interval> => "resp_jitter", interval, Seconds, Plain, Netsniff;
            /// Segments with payload that the responder sent, those sent again included.
            data_segments: Option<u32> => "resp_data_segments", count, Segments, Plain, Netsniff;
            /// Segments without payload, SYN, FIN and RST that the responder sent.
            pure_acks: Option<u32> => "resp_pure_acks", count, Segments, Plain, Netsniff;
            /// Payload bytes that the responder sent, those sent again included.
            payload_bytes: Option<u64> => "resp_payload_bytes", count, Bytes, Plain, Netsniff;
            /// Payload bytes that the responder sent, each counted once.
            unique_bytes: Option<u64> => "resp_unique_bytes", count, Bytes, Plain, Netsniff;
            /// Payload bytes of the responder that the network lost between it and the tap, where that left a
            /// hole at the tap. It is a lower bound: neither a copy that was sent again and lost, too, nor the last bytes
            /// before a silence leave a hole of their own. Unset where the packets do not tell who lost what.
            lost_before: Option<u64> => "resp_lost_before", count, Bytes, Plain, Netsniff;
            /// Payload bytes of the responder that passed the tap and that the network lost behind it; each
            /// lost copy counts. Unset like `resp_lost_before`.
            lost_behind: Option<u64> => "resp_lost_behind", count, Bytes, Plain, Netsniff;
            /// Share of the payload bytes that the responder sent, those sent again included, that the
            /// network lost, from 0 to 1, as in the two columns before. Unset like these.
            loss_rate: Option<f64> => "resp_loss_rate", double, None, Plain, Netsniff;
            /// Segments sent again by the responder with no sign of a loss but time: its retransmission
            /// timer (RFC 6298) or a loss probe; all that were sent again, where no acknowledgement was
            /// seen.
            retx_rto: Option<u32> => "resp_retx_rto", count, Segments, Plain, Netsniff;
            /// Segments sent again by the responder after three duplicate acknowledgements (RFC 5681,
            /// 3.2), SACK (RFC 6675) or a partial acknowledgement (RFC 6582).
            retx_fast: Option<u32> => "resp_retx_fast", count, Segments, Plain, Netsniff;
            /// Segments sent again by the responder though the receiver had them: already acknowledged,
            /// or reported as duplicate (RFC 2883).
            retx_spurious: Option<u32> => "resp_retx_spurious", count, Segments, Plain, Netsniff;
            /// Probes of a closed window by the responder: one byte at its edge, or none just below
            /// (RFC 9293, 3.8.6.1).
            window_probes: Option<u32> => "resp_window_probes", count, Segments, Plain, Netsniff;
            /// Keep-alives of the responder: no byte or an acknowledged one just below the next
            /// sequence number (RFC 9293, 3.8.4).
            keep_alives: Option<u32> => "resp_keep_alives", count, Segments, Plain, Netsniff;
            /// Segments of the responder that filled a hole within one RTT, or 3 ms where none is
            /// known, without three duplicate acknowledgements: overtaken on the way.
            out_of_order: Option<u32> => "resp_out_of_order", count, Segments, Plain, Netsniff;
            /// Packets of the responder seen twice, told by their IP identification: doubled by the
            /// network or the mirror.
            duplicates: Option<u32> => "resp_duplicates", count, Packets, Plain, Netsniff;
            /// Duplicate acknowledgements that the responder sent (RFC 5681, 2; RFC 6675, 2).
            dup_acks: Option<u32> => "resp_dup_acks", count, Segments, Plain, Netsniff;
            /// Segments with which the responder told that its window was closed.
            zero_windows: Option<u32> => "resp_zero_windows", count, Segments, Plain, Netsniff;
            /// Time for which the window of the responder was closed.
            zero_window_time: Option<Interval> =>
                "resp_zero_window_time", interval, Seconds, Plain, Netsniff;
            /// Most bytes of the responder that had passed the tap and were not acknowledged there.
            in_flight_max: Option<u32> => "resp_in_flight_max", count, Bytes, Plain, Netsniff;
            /// Bytes that the responder sent before the first acknowledgement of its data: its initial
            /// congestion window or less (RFC 6928).
            initial_window: Option<u32> => "resp_initial_window", count, Bytes, Plain, Netsniff;
            /// Maximum segment size that the SYN of the responder announced (RFC 9293, 3.7.1).
            mss: Option<u16> => "resp_mss", count, Bytes, Plain, Netsniff;
            /// Largest payload of a segment of the responder; more than the MSS where the capture saw
            /// segments before the card cut them.
            segment_max: Option<u32> => "resp_segment_max", count, Bytes, Plain, Netsniff;
            /// Window scale shift that the SYN of the responder offered (RFC 7323, 2).
            window_scale: Option<u8> => "resp_window_scale", count, None, Plain, Netsniff;
            /// Smallest window that the responder offered after its SYN, scaled.
            window_min: Option<u32> => "resp_window_min", count, Bytes, Plain, Netsniff;
            /// Largest window that the responder offered after its SYN, scaled.
            window_max: Option<u32> => "resp_window_max", count, Bytes, Plain, Netsniff;
            /// Whether the SYN of the responder permitted SACK (RFC 2018, 2).
            sack_permitted: Option<bool> => "resp_sack_permitted", bool, None, Plain, Netsniff;
            /// Segments of the responder with SACK blocks (RFC 2018, 3).
            sacks: Option<u32> => "resp_sacks", count, Segments, Plain, Netsniff;
            /// Segments of the responder that reported a duplicate by SACK (RFC 2883).
            dsacks: Option<u32> => "resp_dsacks", count, Segments, Plain, Netsniff;
            /// Whether the responder sent timestamps (RFC 7323, 3).
            timestamps: Option<bool> => "resp_timestamps", bool, None, Plain, Netsniff;
            /// Packets of the responder that arrived at the tap marked as having met congestion (RFC
            /// 3168, 5).
            ce_marks: Option<u32> => "resp_ce_marks", count, Packets, Plain, Netsniff;
            /// Segments of the responder after its SYN with ECE (RFC 3168, 6.1).
            ece: Option<u32> => "resp_ece", count, Segments, Plain, Netsniff;
            /// Segments of the responder after its SYN with CWR (RFC 3168, 6.1).
            cwr: Option<u32> => "resp_cwr", count, Segments, Plain, Netsniff;
            /// Smallest time to live or hop limit of a packet of the responder.
            ttl_min: Option<u8> => "resp_ttl_min", count, Hops, Plain, Netsniff;
            /// Largest time to live or hop limit of a packet of the responder.
            ttl_max: Option<u8> => "resp_ttl_max", count, Hops, Plain, Netsniff;
            /// Routers between the responder and the tap, if the time to live began at the next of 32,
            /// 64, 128 and 255 above the largest seen.
            hops: Option<u8> => "resp_hops", count, Hops, Plain, Netsniff;
            /// Time from the first packet of the connection to the first payload of the responder.
            first_payload: Option<Interval> =>
                "resp_first_payload", interval, Seconds, Plain, Netsniff;
            /// FINs that the responder sent.
            fins: Option<u32> => "resp_fins", count, Segments, Plain, Netsniff;
            /// RSTs that the responder sent.
            resets: Option<u32> => "resp_resets", count, Segments, Plain, Netsniff;
        }
    }
}
