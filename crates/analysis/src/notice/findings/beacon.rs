//! Hosts that connect to the same port of a host at regular times.

use core::net::IpAddr;

use netsniff_packet::{Address, Timestamp};

use crate::log::Confidence;
use crate::notice::bounded::Bounded;
use crate::notice::finding::{Finding, FindingType, Found, MOST_UIDS, Note, identifier};
use crate::notice::setting::{Setting, UIDS_BYTES};
use crate::notice::sighting::Sighting;
use crate::notice::threshold::Threshold;
use crate::record::Port;

static BEACON: Note = Note {
    name: "Netsniff::Beacon",
    doc: "A host made `beacon_connections` connections to one port of another host at regular times, and sent about as \
          much in each. Connections in which it sent nothing do not count. The median absolute deviation of the times between them is at most \
          `beacon_jitter_percent` of their median, which is at least `beacon_seconds`, so that a few may be \
          missing or late. That of the bytes is at most `beacon_jitter_percent` of their median, or 32 bytes.",
    confidence: "Medium; low for services that ask regularly by design (NTP, DNS, DHCP, SNMP and the like), and where the \
                 capture lost packets of a connection. Never high: monitoring, mail programs and updates look the same.",
    advice: "Find out which program connects. One that nobody knows may take orders from the other host.",
};

const CONNECTIONS: Threshold = Threshold {
    name: "beacon_connections",
    doc: "Connections of a host to one port of another that are judged together for a beacon, at least 5.",
    default: 20,
};
const SECONDS: Threshold = Threshold {
    name: "beacon_seconds",
    doc: "Shortest period of a beacon in seconds.",
    default: 5,
};
const JITTER: Threshold = Threshold {
    name: "beacon_jitter_percent",
    doc: "How far the times and sizes of a beacon may deviate, in percent of their medians.",
    default: 10,
};

/// Connections that are kept for one pair at most.
const MOST_CONNECTIONS: u64 = 1_000;
/// Connections without which there is no median of the times between that says anything.
const LEAST_CONNECTIONS: u64 = 5;
/// Bytes by which sizes may always deviate, lest small ones be told apart by a name or a number in them.
const SAME_SIZE: u64 = 32;
/// Ports of services whose clients ask regularly: DNS, DHCP, NTP, NetBIOS, SNMP, syslog, DHCPv6, SSDP, mDNS, LLMNR.
const REGULAR: [u16; 13] = [53, 67, 68, 123, 137, 138, 161, 514, 546, 547, 1900, 5353, 5355];

pub(super) const TYPE: FindingType = FindingType {
    notes: &[&BEACON],
    reads: &[("conn", &["ts", "proto", "orig_bytes", "quality"])],
    thresholds: &[CONNECTIONS, SECONDS, JITTER],
    make: |setting: &Setting<'_>| {
        let many = setting.get(&CONNECTIONS).clamp(LEAST_CONNECTIONS, MOST_CONNECTIONS);
        Box::new(Beacons {
            pairs: setting.table(many as usize * 2 * size_of::<(i64, u64)>() + UIDS_BYTES),
            rule: Rule {
                many: many as usize,
                shortest: setting.get(&SECONDS).saturating_mul(1_000_000_000),
                jitter_percent: setting.get(&JITTER),
            },
        })
    },
};

/// Connections by who made them, to what.
#[derive(Debug)]
struct Beacons {
    pairs: Bounded<Pair, Series>,
    rule: Rule,
}

/// Whether the protocol is TCP, the two hosts, and the port.
type Pair = (bool, Address, Address, u16);

/// From when on connections are regular.
#[derive(Clone, Copy, Debug)]
struct Rule {
    many: usize,
    /// Nanoseconds of the shortest period.
    shortest: u64,
    jitter_percent: u64,
}

/// Connections that are judged together.
#[derive(Debug, Default)]
struct Series {
    starts: Vec<i64>,
    /// Bytes that the originator sent.
    sizes: Vec<u64>,
    is_lossy: bool,
    uids: Vec<String>,
}

/// The middle of some numbers, and how far they deviate from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Middle {
    median: u64,
    /// Median absolute deviation.
    deviation: u64,
}

/// The upper one of the two in the middle, where there are two.
fn median(values: &mut [u64]) -> Option<u64> {
    let at = values.len() / 2;
    (at < values.len()).then(|| *values.select_nth_unstable(at).1)
}

impl Middle {
    fn of(mut values: Vec<u64>) -> Option<Self> {
        let median = median(&mut values)?;
        values.iter_mut().for_each(|value| *value = value.abs_diff(median));
        Some(Self { median, deviation: self::median(&mut values)? })
    }

    /// Whether they deviate by so many percent at most, or by `always`.
    const fn is_regular(self, percent: u64, always: u64) -> bool {
        let bound = self.median as u128 * percent as u128;
        self.deviation <= always || self.deviation as u128 * 100 <= bound
    }
}

/// A regular series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Beacon {
    period: Middle,
    size: Middle,
}

impl Series {
    /// The period and the size of connections that are regular. They come in the order of their ends.
    fn judge(&mut self, rule: &Rule) -> Option<Beacon> {
        self.starts.sort_unstable();
        let times = self.starts.windows(2).filter_map(|pair| match pair {
            [before, behind] => Some(behind.abs_diff(*before)),
            _ => None,
        });
        let period = Middle::of(times.collect())?;
        let size = Middle::of(core::mem::take(&mut self.sizes))?;
        let is_beacon = period.median >= rule.shortest
            && period.is_regular(rule.jitter_percent, 0)
            && size.is_regular(rule.jitter_percent, SAME_SIZE);
        is_beacon.then_some(Beacon { period, size })
    }

    fn add(&mut self, start: i64, size: u64, sighting: &Sighting) {
        self.starts.push(start);
        self.sizes.push(size);
        self.is_lossy |= matches!(sighting.word("quality"), Some("touched" | "suspect"));
        if self.uids.len() < MOST_UIDS {
            self.uids.extend(sighting.word("uid").map(str::to_owned));
        }
    }
}

/// Seconds with milliseconds.
fn seconds(nanos: u64) -> String {
    format!("{}.{:03}", nanos / 1_000_000_000, nanos / 1_000_000 % 1_000)
}

/// Whether an address is of several hosts: what is said to them is an announcement.
fn is_of_many(address: Address) -> bool {
    match address.to_ip() {
        IpAddr::V4(address) => address.is_multicast() || address.is_broadcast(),
        IpAddr::V6(address) => address.is_multicast(),
    }
}

impl Finding for Beacons {
    fn sighted(&mut self, _: Timestamp, sighting: &Sighting, out: &mut Vec<Found>) {
        let is_tcp = match sighting.word("proto") {
            Some("tcp") => true,
            Some("udp") => false,
            _ => return,
        };
        let (Some(from), Some(to), Some(port), Some(start)) = (
            sighting.address("id.orig_h"),
            sighting.address("id.resp_h"),
            sighting.port("id.resp_p"),
            sighting.nanos("ts"),
        ) else {
            return;
        };
        // An attempt to connect sends nothing.
        let size = sighting.number("orig_bytes").and_then(|bytes| u64::try_from(bytes).ok());
        let Some(size) = size.filter(|size| *size > 0 && !is_of_many(to)) else { return };
        let series = self.pairs.entry(&(is_tcp, from, to, port), Series::default);
        series.add(start, size, sighting);
        if series.starts.len() < self.rule.many {
            return;
        }
        let mut series = core::mem::take(series);
        let Some(Beacon { period, size }) = series.judge(&self.rule) else { return };
        let is_doubtful = series.is_lossy || REGULAR.contains(&port);
        let confidence = if is_doubtful { Confidence::Low } else { Confidence::Medium };
        let count = series.starts.len();
        let said = format!(
            "a host made {count} connections to one port, every {} s (deviation {} s), and sent {} bytes in each \
             (deviation {})",
            seconds(period.median),
            seconds(period.deviation),
            size.median,
            size.deviation
        );
        let found = Found::new(&BEACON, confidence, sighting, said).counting(count as u64);
        let mut name = identifier(&[Some(from), Some(to)], Some(Port(port)));
        name.push(u8::from(is_tcp));
        out.push(found.of_many(series.uids).told_by(name));
    }

    fn given_up(&self) -> u64 {
        self.pairs.given_up()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: Rule = Rule { many: 10, shortest: 5_000_000_000, jitter_percent: 10 };

    fn judged(seconds: &[i64], sizes: &[u64]) -> Option<u64> {
        let starts = seconds.iter().map(|second| second * 1_000_000_000).collect();
        let mut series = Series { starts, sizes: sizes.to_vec(), ..Series::default() };
        series.judge(&RULE).map(|beacon| beacon.period.median / 1_000_000_000)
    }

    #[test]
    fn a_beacon_is_regular_in_time_and_size() {
        let every_minute: Vec<i64> = (0..10).map(|at| at * 60 + at % 3).collect();
        assert_eq!(judged(&every_minute, &[300; 10]), Some(61));
        // Half of the times being wrong is too much, two of them are not.
        assert_eq!(judged(&[0, 60, 120, 240, 300, 360, 480, 540, 600, 660], &[300; 10]), Some(60));
        assert_eq!(judged(&[0, 7, 60, 65, 200, 204, 300, 390, 391, 600], &[300; 10]), None);
        let sizes = [300, 9000, 17, 40_000, 2500, 800, 120_000, 300, 64, 7000];
        assert_eq!(judged(&every_minute, &sizes), None, "sizes differ");
        assert_eq!(judged(&every_minute, &[]), None, "no size is known");
        let every_second: Vec<i64> = (0..10).collect();
        assert_eq!(judged(&every_second, &[300; 10]), None, "too fast");
    }

    #[test]
    fn connections_need_not_end_in_their_order() {
        assert_eq!(judged(&[120, 0, 60, 180, 300, 240], &[10; 6]), Some(60));
    }

    #[test]
    fn announcements_are_no_beacons() {
        let of = |text: &str| is_of_many(Address::from(text.parse::<IpAddr>().unwrap()));
        assert!(of("224.0.0.251") && of("255.255.255.255") && of("ff02::fb"));
        assert!(!of("192.0.2.1") && !of("2001:db8::1"));
    }
}
