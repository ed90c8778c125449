//! The books in the text format of Prometheus.

use std::fmt::Write as _;

use netsniff_analysis::log::capture::Verdict;

use super::entry::{Entry, Place};

/// A metric: its name, what it means, and how an entry tells it.
struct Metric {
    name: &'static str,
    help: &'static str,
    kind: &'static str,
    value: fn(&Entry) -> Option<f64>,
}

const fn counter(
    name: &'static str,
    help: &'static str,
    value: fn(&Entry) -> Option<f64>,
) -> Metric {
    Metric { name, help, kind: "counter", value }
}

const fn gauge(name: &'static str, help: &'static str, value: fn(&Entry) -> Option<f64>) -> Metric {
    Metric { name, help, kind: "gauge", value }
}

fn number(value: Option<u64>) -> Option<f64> {
    value.map(|value| value as f64)
}

/// All metrics, with the numbers of the log `capture` under its names.
const METRICS: &[Metric] = &[
    counter("arrived_packets", "Packets that came to the interface.", |e| number(e.arrived)),
    counter("lost_interface_packets", "Packets that the interface had no room for.", |e| {
        number(e.lost_interface)
    }),
    counter("lost_backlog_packets", "Packets dropped between interfaces and sockets.", |e| {
        number(e.lost_backlog)
    }),
    counter("filtered_packets", "Packets that the filter of the kernel refused.", |e| {
        number(e.filtered)
    }),
    counter("ring_dropped_packets", "Packets for which the ring had no room.", |e| {
        number(e.ring_dropped())
    }),
    counter("delivered_packets", "Packets that came out of the ring.", |e| number(e.delivered())),
    gauge("unexplained_packets", "Packets that arrived and stand nowhere.", |e| {
        e.unexplained().map(|value| value as f64)
    }),
    counter("analysed_packets", "Packets that were analysed.", |e| {
        number(e.report.as_ref().and_then(|report| report.analysed))
    }),
    counter("recorded_packets", "Packets that were recorded.", |e| number(e.recorded)),
    counter("refused_packets", "Packets that the hand-off to the analysis refused.", |e| {
        number(e.report.as_ref().map(|report| report.refused))
    }),
    counter("unrecorded_packets", "Packets that the recorder refused.", |e| number(e.unrecorded)),
    gauge("in_flight_packets", "Packets in the ring.", |e| number(e.in_flight())),
    gauge("kernel_loss_ratio", "Share of the arrived packets lost before the socket.", |e| {
        e.kernel_loss()
    }),
    gauge("application_loss_ratio", "Share of the packets at the socket lost there.", |e| {
        e.application_loss()
    }),
    gauge("verdict", "0 good, 1 degraded, 2 bad; absent where nobody can tell.", |e| {
        match e.verdict()? {
            Verdict::Good => Some(0.0),
            Verdict::Degraded => Some(1.0),
            Verdict::Bad => Some(2.0),
            Verdict::Unknown => None,
        }
    }),
    counter("delivered_bytes", "Bytes on the wire of the packets that came out.", |e| {
        number(e.report.as_ref().map(|report| report.counters.delivered_bytes))
    }),
    gauge("ring_used_units", "Blocks or frames of the ring in use.", |e| {
        number(ring(e).map(|used| used.used.into()))
    }),
    gauge("ring_high_water_units", "The most that were in use.", |e| {
        number(ring(e).map(|used| used.high_water.into()))
    }),
    gauge("ring_units", "Blocks or frames that the ring has.", |e| {
        number(ring(e).map(|used| used.capacity.into()))
    }),
    counter("inverted_packets", "Packets behind one with a later stamp.", |e| {
        number(e.report.as_ref().map(|report| report.counters.inversions))
    }),
    counter("refused_rows", "Rows of logs that could not be written.", |e| {
        number(e.report.as_ref().map(|report| report.refused_rows))
    }),
    gauge("flows", "Flows that are open.", |e| {
        number(e.report.as_ref().and_then(|report| report.flows))
    }),
    counter("split_flows", "Flows that another ring had, too.", |e| {
        number(e.report.as_ref().and_then(|report| report.flow_split))
    }),
    counter("time_squeezes", "Times that the kernel's time to receive was spent.", |e| {
        number(e.time_squeezes)
    }),
];

fn ring(entry: &Entry) -> Option<netsniff_capture::counters::Occupancy> {
    let is_ring = matches!(entry.place, Place::Ring(..));
    entry.report.as_ref().filter(|_| is_ring).map(|report| report.counters.occupancy)
}

/// The books as text. What nobody knows is absent, since a 0 would be a claim.
#[must_use]
pub fn prometheus(entries: &[Entry]) -> String {
    let mut text = String::new();
    for metric in METRICS {
        let values: Vec<_> =
            entries.iter().filter_map(|entry| Some((entry, (metric.value)(entry)?))).collect();
        if values.is_empty() {
            continue;
        }
        let Metric { name, help, kind, .. } = metric;
        let total = if *kind == "counter" { "_total" } else { "" };
        // Writing to a string does not fail.
        let _ = writeln!(text, "# HELP netsniff_capture_{name}{total} {help}");
        let _ = writeln!(text, "# TYPE netsniff_capture_{name}{total} {kind}");
        for (entry, value) in values {
            let labels = labels(&entry.place);
            let _ = writeln!(text, "netsniff_capture_{name}{total}{{{labels}}} {value}");
        }
    }
    text
}

fn labels(place: &Place) -> String {
    let quote = |name: &str| name.replace('\\', "\\\\").replace('"', "\\\"");
    match place {
        Place::Interface(name) => format!("scope=\"interface\",interface=\"{}\"", quote(name)),
        Place::Ring(name, ring) => {
            format!("scope=\"ring\",interface=\"{}\",ring=\"{ring}\"", quote(name))
        }
        Place::Host => "scope=\"host\"".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::entry::tests::entry;
    use super::*;

    #[test]
    fn the_text_has_the_numbers_of_the_books_and_no_unknown_ones() {
        let text = prometheus(&[entry(Some(2), None, Some(8))]);
        let labels = "{scope=\"interface\",interface=\"eth0\"}";
        for (name, value) in [
            ("arrived_packets_total", "100"),
            ("ring_dropped_packets_total", "8"),
            ("delivered_packets_total", "90"),
            ("kernel_loss_ratio", "0.02"),
        ] {
            let line = format!("\nnetsniff_capture_{name}{labels} {value}\n");
            assert!(text.contains(&line), "{line} in {text}");
        }
        assert!(!text.contains("filtered_packets") && !text.contains("unexplained"), "{text}");
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let (_, value) = line.rsplit_once(' ').unwrap();
            assert!(value.parse::<f64>().is_ok(), "{line}");
        }
    }
}
