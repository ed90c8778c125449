//! Every capacity and time-out in one value, each with its default and its reason.

use core::time::Duration;

/// What analysis may hold and how long it waits.
///
/// The time-outs have Zeek's defaults (`init-bare.zeek`), so that connections end where Zeek ends
/// them. Reaching a capacity is counted and never grows memory past it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Flows in the table. One more evicts the flow that would expire first. The default keeps a
    /// scan of a whole IPv4 /8 below 8 GiB.
    pub flows: usize,
    /// Bytes that the flow table may take; the tighter of this and `flows` rules.
    pub flow_bytes: usize,
    /// Silence that ends a TCP connection once one side has answered (`tcp_inactivity_timeout`).
    pub tcp_inactivity: Duration,
    /// Silence that ends a connection to the ports of FTP, SSH, telnet and rlogin: people pause
    /// (`Conn::port_inactivity_timeouts`).
    pub tcp_interactive_inactivity: Duration,
    /// Silence that ends a UDP flow, and a TCP connection before its handshake is done
    /// (`udp_inactivity_timeout`).
    pub udp_inactivity: Duration,
    /// Silence that ends an ICMP flow (`icmp_inactivity_timeout`).
    pub icmp_inactivity: Duration,
    /// Silence that ends a flow of another transport (`unknown_ip_inactivity_timeout`).
    pub other_inactivity: Duration,
    /// After this, a SYN without any answer is a failed attempt (`tcp_attempt_delay`).
    pub tcp_attempt: Duration,
    /// Wait before the first look at whether a connection is over (`tcp_SYN_timeout`).
    pub tcp_first_check: Duration,
    /// Wait between further looks (`tcp_session_timer`).
    pub tcp_check_interval: Duration,
    /// Silence after which a look finds a half-closed or reset connection over
    /// (`tcp_connection_linger`).
    pub tcp_linger: Duration,
    /// How long a closed connection is kept for late packets (`tcp_close_delay`).
    pub tcp_close: Duration,
    /// Bytes above a hole, without any acknowledgement, after which a stream is given up
    /// (`tcp_max_above_hole_without_any_acks`).
    pub tcp_above_hole_without_ack: u64,
    /// Bytes sent without any acknowledgement, after which none is expected any more
    /// (`tcp_max_initial_window`).
    pub tcp_initial_window: u64,
    /// Bytes seen beyond the last acknowledgement, after which a stream is given up
    /// (`tcp_excessive_data_without_further_acks`).
    pub tcp_unacknowledged: u64,
    /// Ranges beyond holes that one direction may remember; the oldest hole is given up for one
    /// more. Real streams stay below ten.
    pub tcp_ranges: usize,
    /// Holes of one direction of a connection that wait for what ends them; the oldest is given up
    /// for one more. As many losses behind those that are listed wait for evidence that changes them.
    pub open_gaps: usize,
    /// Losses of one direction of a connection that are listed one by one; further ones are
    /// counted.
    pub listed_gaps: usize,
    /// After the begin of a capture, or after a hole in it, connections may be seen first in their
    /// middle because of that: most have a packet within this time.
    pub pick_up: Duration,
    /// Bytes that one direction of a TCP connection may hold behind holes; for more, the first hole
    /// is given up. As large as the windows of hosts that are far apart.
    pub stream_held_bytes: usize,
    /// The same for all directions together.
    pub streams_held_bytes: usize,
    /// How long bytes of a stream are waited for once the receiver has acknowledged them: captures
    /// of several queues or ports are not quite in order. What comes later counts as lost by the
    /// capture.
    pub stream_acknowledged_wait: Duration,
    /// How long bytes of a stream are waited for that nobody acknowledged. Longer than the first
    /// retransmissions of RFC 6298 take.
    pub stream_hole_timeout: Duration,
    /// The same where acknowledgements show that the receiver lacks them: it goes on when it has them,
    /// however late. Senders repeat at intervals of up to a minute (RFC 6298, 2.5).
    pub stream_lack_timeout: Duration,
    /// Bytes of each direction by which the protocol of a stream must be told. Where the port tells one, too,
    /// eight times as many of one direction may come before the other.
    pub detection_bytes: usize,
    /// Bytes that a session may have waiting, in one direction, for more to come. A session that
    /// needs more lets go.
    pub session_bytes: usize,
    /// How often one connection may change its protocol.
    pub handovers: u8,
    /// Connections that others announced and that did not begin yet; the oldest is given up for one
    /// more. Each takes some hundred bytes, and real clients announce one at a time.
    pub expectations: usize,
    /// How long they are awaited (`Analyzer::schedule_analyzer` in Zeek's scripts for FTP and IRC).
    pub expectation_timeout: Duration,
    /// Datagrams that are being put together from fragments.
    pub fragmented_datagrams: usize,
    /// Fragments of one datagram.
    pub fragments_per_datagram: usize,
    /// Bytes of all fragments that are held.
    pub fragment_bytes: usize,
    /// How long the rest of a fragmented datagram is waited for (RFC 8200, 4.5).
    pub fragment_timeout: Duration,
    /// Tunnels within tunnels that are followed (`Tunnel::max_depth`).
    pub tunnel_depth: u8,
    /// Tunnelling flows whose identity is remembered. Beyond it, what travels in a further one
    /// has no parent.
    pub tunnels: usize,
    /// Silence after which a tunnel directly above IP gets a new identity
    /// (`Tunnel::ip_tunnel_timeout`).
    pub ip_tunnel_inactivity: Duration,
    /// Time without any datagram inside after which a tunnel counts as expired
    /// (`Tunnel::expiration_interval`).
    pub tunnel_expiration: Duration,
    /// Changes from one tunnel to another that one flow may make and have recorded
    /// (`Tunnel::max_changes_per_connection`).
    pub tunnel_changes: u8,
    /// Exchanges of DHCP in progress, and as many of DHCPv6; the one that would be looked at first is
    /// told for one more. A network has few within the seconds that they take.
    pub exchanges: usize,
    /// Bytes that those of either may take; then the same. They have room for a kilobyte each, of which
    /// ordinary ones take half.
    pub exchange_bytes: usize,
    /// Flows of one exchange of DHCP (`DHCP::max_uids_per_log_entry`).
    pub exchange_flows: usize,
    /// Messages of one exchange of DHCP (`DHCP::max_msg_types_per_log_entry`).
    pub exchange_messages: usize,
    /// Time between looks at what has gone on for long, of which each waits for the next packet
    /// (`table_expire_interval`).
    pub look_interval: Duration,
    /// Time from the first message of an exchange before which no look counts (the expiration of Zeek's table
    /// `DHCP::join_data`).
    pub exchange_first_look: Duration,
    /// Time behind a look before which no other counts (`DHCP::join_data_expiration`).
    pub exchange_look_interval: Duration,
    /// Silence after which a look finds an exchange over (`DHCP::join_data_expiration`).
    pub exchange_silence: Duration,
    /// Time after which a look ends an exchange that goes on (`DHCP::max_txid_watch_time`).
    pub exchange_longest: Duration,
    /// Bytes that DNS answers may take which connections may follow; the oldest are given up for more.
    /// Some hundred thousand addresses: the answers that a large network gets in minutes.
    pub answer_bytes: usize,
    /// How long an answer is good that may be kept for less. Browsers take one for good for a minute at
    /// least, whatever its TTL says.
    pub answer_least_lifetime: Duration,
    /// Certificates of one day that are known to be told; for one more all of them are forgotten, and
    /// may be told again. Each takes some 150 bytes.
    pub certificates: usize,
    /// Proxies of which it is known that they were told: more than a network has in use at once.
    pub proxies: usize,
    /// Queries of one flow that wait for replies, and replies that wait for queries; for one more,
    /// all that wait are recorded as they are (`DNS::max_pending_query_ids`).
    pub pending_messages: usize,
    /// Bytes of names and answers in those that wait; beyond it, too, all are recorded as they are.
    /// Queries need little, and replies that nobody asked for are few.
    pub pending_bytes: usize,
    /// Requests of one HTTP connection that wait for responses; for one more, all that wait are
    /// recorded as they are (`HTTP::max_pending_requests`).
    pub http_pending_requests: usize,
    /// Bytes of what is kept of those; beyond it, too, all are recorded as they are. Twenty times what
    /// a page with pipelining needs.
    pub http_pending_bytes: usize,
    /// Bytes of one header of HTTP from which fields are kept. Servers take no longer ones.
    pub http_header_bytes: usize,
    /// Bytes that may come out of all compressed bodies of one connection, whatever it carried. Beyond it
    /// nothing more is decoded, and lengths are not told: a kilobyte can be made to fill a gigabyte.
    pub http_decoded_bytes: u64,
    /// Bytes that may come out besides for each byte that the connection carried. Pages have up to 50.
    pub http_decoded_ratio: u64,
    /// Files of one connection that have rows. A mail has some, and a form has hundreds of parts at most.
    pub connection_files: u64,
    /// How many of them need nothing but a few bytes each, for parts behind a compression.
    pub connection_small_files: u64,
    /// Bytes that a connection carries for each of the others.
    pub connection_bytes_per_file: u64,
    /// Bytes of one file that are extracted, holes among them (`FileExtract::default_limit`).
    pub extracted_file_bytes: u64,
    /// Bytes of all files that are extracted: a small capture may hold much in compressed bodies.
    pub extracted_bytes: u64,
    /// Files that are extracted. File systems and tools grow slow beyond some hundred thousand in one
    /// directory.
    pub extracted_files: u64,
    /// The largest window of a compressed body. A body that says it needs more is taken as it is. The
    /// default is the most that RFC 7932 allows; of it only as much is held as the body fills.
    pub http_window_bytes: u64,
    /// Hosts of the log `series` that are counted apart at a time, by each that counts. Further ones are counted together.
    /// Each takes some 60 bytes.
    pub series_hosts: usize,
    /// Interfaces that are counted apart there, likewise.
    pub series_interfaces: usize,
    /// Services that are counted apart there, likewise: what the content of a flow shows is a set of protocols.
    pub series_services: usize,
    /// Intervals that wait at a time. Where stamps go back and forth, more of them are told in parts.
    pub series_intervals: usize,
}

impl Limits {
    /// Bytes of one certificate that is known to be told, with what finds it.
    const CERTIFICATE_BYTES: usize = 160;

    /// Bytes of one host of the log `series`: an entry of a hash table, for its packets and for its flows, in the
    /// interval at hand, in one that is on its way, and where shares are added up.
    const SERIES_HOST_BYTES: usize = 2 * (112 + 448) + 560;

    /// Bytes that hosts of the log `series` may take.
    #[must_use]
    pub const fn series_bytes(&self) -> usize {
        self.series_hosts.saturating_mul(Self::SERIES_HOST_BYTES)
    }

    /// The same limits, but with so many bytes for hosts of the log `series` at most.
    #[must_use]
    pub fn with_series_bytes(self, most: usize) -> Self {
        Self { series_hosts: self.series_hosts.min(most / Self::SERIES_HOST_BYTES), ..self }
    }

    /// Bytes that joins of what several flows tell may take, all together.
    #[must_use]
    pub const fn join_bytes(&self) -> usize {
        self.certificates
            .saturating_mul(Self::CERTIFICATE_BYTES)
            .saturating_add(self.answer_bytes)
            .saturating_add(self.exchange_bytes.saturating_mul(2))
    }

    /// The same limits, but with so many bytes for joins at most, of which each keeps its part.
    #[must_use]
    pub fn with_join_bytes(self, most: usize) -> Self {
        let all = self.join_bytes();
        if all <= most {
            return self;
        }
        let part = |limit: usize| (limit as u128 * most as u128 / all as u128) as usize;
        Self {
            answer_bytes: part(self.answer_bytes),
            certificates: part(self.certificates),
            exchange_bytes: part(self.exchange_bytes),
            ..self
        }
    }
}

/// A line for each bound; `docs/safety.md` and `docs/timeouts.md` say why it is what it is.
impl Default for Limits {
    fn default() -> Self {
        Self {
            flows: 16_000_000,
            flow_bytes: 6 << 30,
            tcp_inactivity: Duration::from_secs(300),
            tcp_interactive_inactivity: Duration::from_secs(3600),
            udp_inactivity: Duration::from_secs(60),
            icmp_inactivity: Duration::from_secs(60),
            other_inactivity: Duration::from_secs(60),
            tcp_attempt: Duration::from_secs(5),
            tcp_first_check: Duration::from_secs(5),
            tcp_check_interval: Duration::from_secs(6),
            tcp_linger: Duration::from_secs(5),
            tcp_close: Duration::from_secs(5),
            tcp_above_hole_without_ack: 16_384,
            tcp_initial_window: 16_384,
            tcp_unacknowledged: 10 << 20,
            tcp_ranges: 1024,
            open_gaps: 256,
            listed_gaps: 256,
            pick_up: Duration::from_secs(3),
            stream_held_bytes: 4 << 20,
            streams_held_bytes: 64 << 20,
            stream_acknowledged_wait: Duration::from_millis(10),
            stream_hole_timeout: Duration::from_secs(10),
            stream_lack_timeout: Duration::from_secs(60),
            detection_bytes: 2_048,
            session_bytes: 64 << 10,
            handovers: 8,
            expectations: 16_384,
            expectation_timeout: Duration::from_secs(300),
            fragmented_datagrams: 65_536,
            fragments_per_datagram: 8_192,
            fragment_bytes: 64 << 20,
            fragment_timeout: Duration::from_secs(60),
            tunnel_depth: 4,
            tunnels: 1_000_000,
            ip_tunnel_inactivity: Duration::from_secs(24 * 3600),
            tunnel_expiration: Duration::from_secs(3600),
            tunnel_changes: 5,
            exchanges: 8192,
            exchange_bytes: 8 << 20,
            exchange_flows: 10,
            exchange_messages: 50,
            look_interval: Duration::from_secs(10),
            exchange_first_look: Duration::from_secs(10),
            exchange_look_interval: Duration::from_secs(5),
            exchange_silence: Duration::from_secs(5),
            exchange_longest: Duration::from_secs(30),
            answer_bytes: 32 << 20,
            answer_least_lifetime: Duration::from_secs(60),
            certificates: 100_000,
            proxies: 10_000,
            pending_messages: 50,
            pending_bytes: 8_192,
            http_pending_requests: 100,
            http_pending_bytes: 256 << 10,
            http_header_bytes: 64 << 10,
            http_decoded_bytes: 16 << 20,
            http_decoded_ratio: 100,
            connection_files: 10_000,
            connection_small_files: 1_000,
            connection_bytes_per_file: 16,
            extracted_file_bytes: 100 << 20,
            extracted_bytes: 10 << 30,
            extracted_files: 100_000,
            http_window_bytes: 16 << 20,
            series_hosts: 262_144,
            series_interfaces: 1_024,
            series_services: 1_024,
            series_intervals: 64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joins_share_what_they_may_take() {
        let limits = Limits::default();
        assert_eq!(limits.with_join_bytes(usize::MAX), limits);
        for most in [0, 1 << 10, 2 << 20, limits.join_bytes() - 1] {
            let smaller = limits.with_join_bytes(most);
            assert!(smaller.join_bytes() <= most && most - smaller.join_bytes() < 1_000, "{most}");
            assert_eq!(smaller.flow_bytes, limits.flow_bytes);
        }
    }
}
