//! What is told of hosts, services and connections, and how it is added up.

use core::ops::AddAssign;

use super::row::LogRow;

/// A sum; `None` once a part of it is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Known(pub(crate) Option<i64>);

impl Default for Known {
    fn default() -> Self {
        Self(Some(0))
    }
}

impl AddAssign for Known {
    fn add_assign(&mut self, other: Self) {
        self.0 = self.0.zip(other.0).map(|(own, other)| own.saturating_add(other));
    }
}

/// Packets and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Traffic {
    pub(crate) packets: Known,
    pub(crate) bytes: Known,
}

impl AddAssign for Traffic {
    fn add_assign(&mut self, other: Self) {
        self.packets += other.packets;
        self.bytes += other.bytes;
    }
}

/// The times of round trips in some intervals, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RoundTrips {
    pub(crate) min: Option<i64>,
    /// The median of the last interval that had any: medians do not add up.
    pub(crate) median: Option<i64>,
    pub(crate) max: Option<i64>,
}

/// What a subject showed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Figures {
    /// What a host sent, or originators did.
    pub(crate) sent: Traffic,
    /// What came to a host, or what responders sent.
    pub(crate) received: Traffic,
    pub(crate) new_flows: Known,
    pub(crate) retransmitted: Known,
    pub(crate) network_lost: Known,
    pub(crate) capture_lost: Known,
    pub(crate) unknown_lost: Known,
    pub(crate) failures: Known,
    pub(crate) rtt: RoundTrips,
}

impl Figures {
    /// The figures of a row of `series` or `series_conn`.
    pub(crate) fn of(row: &LogRow, sent: [&str; 2], received: [&str; 2]) -> Self {
        let known = |column: &str| Known(row.int(column));
        let traffic =
            |[packets, bytes]: [&str; 2]| Traffic { packets: known(packets), bytes: known(bytes) };
        let mut failures = known("dns_errors");
        failures += known("dns_unanswered");
        failures += known("tls_failures");
        let rtt = RoundTrips {
            min: row.nanos("rtt_min"),
            median: row.nanos("rtt_p50"),
            max: row.nanos("rtt_max"),
        };
        Self {
            sent: traffic(sent),
            received: traffic(received),
            new_flows: known("new_flows"),
            retransmitted: known("retransmitted"),
            network_lost: known("network_lost"),
            capture_lost: known("capture_lost"),
            unknown_lost: known("unknown_lost"),
            failures,
            rtt,
        }
    }

    /// Bytes of both directions.
    pub(crate) fn bytes(&self) -> Option<i64> {
        self.sent.bytes.0.zip(self.received.bytes.0).map(|(a, b)| a.saturating_add(b))
    }

    /// Packets of both directions.
    pub(crate) fn packets(&self) -> Option<i64> {
        self.sent.packets.0.zip(self.received.packets.0).map(|(a, b)| a.saturating_add(b))
    }

    /// Takes away all that is no lower bound, where some of it is not known.
    pub(crate) fn partial(self) -> Self {
        let unknown = Known(None);
        Self {
            new_flows: unknown,
            retransmitted: unknown,
            network_lost: unknown,
            capture_lost: unknown,
            unknown_lost: unknown,
            failures: unknown,
            rtt: RoundTrips::default(),
            ..self
        }
    }
}

impl AddAssign<&Self> for Figures {
    /// Adds what is of a later interval.
    fn add_assign(&mut self, later: &Self) {
        self.sent += later.sent;
        self.received += later.received;
        self.new_flows += later.new_flows;
        self.retransmitted += later.retransmitted;
        self.network_lost += later.network_lost;
        self.capture_lost += later.capture_lost;
        self.unknown_lost += later.unknown_lost;
        self.failures += later.failures;
        let (own, later) = (&mut self.rtt, &later.rtt);
        own.min = own.min.into_iter().chain(later.min).min();
        own.max = own.max.max(later.max);
        own.median = later.median.or(own.median);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_once_stays_so() {
        let mut sum = Known::default();
        sum += Known(Some(3));
        assert_eq!(sum, Known(Some(3)));
        sum += Known(None);
        sum += Known(Some(3));
        assert_eq!(sum, Known(None));
    }
}
