//! The books as metrics.

use netsniff_analysis::log::capture::CaptureVerdict;
use netsniff_console::exposition::{Exposition, Kind, Labels};

use super::entry::{BooksLine, BooksScope};

/// A metric: its name, what it means, and how an entry tells it.
struct Metric {
    name: &'static str,
    help: &'static str,
    kind: Kind,
    value: fn(&BooksLine) -> Option<f64>,
}

const fn counter(
    name: &'static str,
    help: &'static str,
    value: fn(&BooksLine) -> Option<f64>,
) -> Metric {
    Metric { name, help, kind: Kind::Counter, value }
}

const fn gauge(
    name: &'static str,
    help: &'static str,
    value: fn(&BooksLine) -> Option<f64>,
) -> Metric {
    Metric { name, help, kind: Kind::Gauge, value }
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
            CaptureVerdict::Good => Some(0.0),
            CaptureVerdict::Degraded => Some(1.0),
            CaptureVerdict::Bad => Some(2.0),
            CaptureVerdict::Unknown => None,
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
    counter("cut_headers", "Analysed packets whose headers the snap length cut.", |e| {
        number(e.cut_headers())
    }),
    gauge("held_bytes", "Bytes of memory that wait behind holes of TCP streams.", |e| {
        number(e.held().map(|held| held.bytes))
    }),
    gauge("held_bytes_max", "The most at once since the count before.", |e| {
        number(e.held().and_then(|held| held.most))
    }),
    counter("holes_given_up", "Holes given up since more waited behind them than may.", |e| {
        number(e.holes_given_up())
    }),
    counter("refused_rows", "Rows of logs that could not be written.", |e| {
        number(e.report.as_ref().map(|report| report.refused_rows).or(e.refused_rows))
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

fn ring(entry: &BooksLine) -> Option<netsniff_capture::counters::Occupancy> {
    let is_ring = matches!(entry.place, BooksScope::Ring(..));
    entry.report.as_ref().filter(|_| is_ring).map(|report| report.counters.occupancy)
}

/// Adds the books. What nobody knows is absent, since a 0 would be a claim.
pub fn add_metrics(entries: &[BooksLine], text: &mut Exposition) {
    for Metric { name, help, kind, value } in METRICS {
        let values = entries.iter().filter_map(|entry| Some((labels(&entry.place), value(entry)?)));
        text.add(*kind, &format!("netsniff_capture_{name}"), help, values);
    }
}

fn labels(place: &BooksScope) -> Labels {
    let of = |scope| Labels::default().with("scope", scope);
    match place {
        BooksScope::Interface(name) => of("interface").with("interface", name),
        BooksScope::Ring(name, ring) => {
            of("ring").with("interface", name).with("ring", &ring.to_string())
        }
        BooksScope::Host => of("host"),
    }
}

#[cfg(test)]
mod tests {
    use netsniff_console::exposition::Dialect;

    use super::super::testing::{entry, report};
    use super::*;

    fn prometheus(entries: &[BooksLine]) -> String {
        let mut text = Exposition::new(Dialect::Prometheus);
        add_metrics(entries, &mut text);
        text.finish()
    }

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

    #[test]
    fn each_metric_is_the_column_of_its_name() {
        let told = report(100);
        let counters = &told.counters;
        let of_ring = BooksLine {
            place: BooksScope::Ring("eth0".to_owned(), 2),
            recorded: Some(7),
            unrecorded: Some(8),
            time_squeezes: Some(9),
            report: Some(told.clone()),
            ..entry(Some(2), Some(3), Some(8))
        };
        let text = prometheus(core::slice::from_ref(&of_ring));
        let labels = "{scope=\"ring\",interface=\"eth0\",ring=\"2\"}";
        for (name, value) in [
            ("lost_interface_packets_total", 2),
            ("filtered_packets_total", 3),
            ("ring_dropped_packets_total", counters.dropped.unwrap()),
            ("delivered_packets_total", counters.delivered),
            ("analysed_packets_total", told.analysed.unwrap()),
            ("recorded_packets_total", 7),
            ("unrecorded_packets_total", 8),
            ("refused_packets_total", told.refused),
            ("in_flight_packets", of_ring.in_flight().unwrap()),
            ("delivered_bytes_total", counters.delivered_bytes),
            ("ring_used_units", counters.occupancy.used.into()),
            ("ring_high_water_units", counters.occupancy.high_water.into()),
            ("ring_units", counters.occupancy.capacity.into()),
            ("inverted_packets_total", counters.inversions),
            ("cut_headers_total", told.cut_headers.packets()),
            ("held_bytes", told.held.unwrap().bytes),
            ("held_bytes_max", told.held.unwrap().most.unwrap()),
            ("holes_given_up_total", told.holes_given_up),
            ("refused_rows_total", told.refused_rows),
            ("flows", told.flows.unwrap()),
            ("split_flows_total", told.flow_split.unwrap()),
            ("time_squeezes_total", 9),
        ] {
            let line = format!("\nnetsniff_capture_{name}{labels} {value}\n");
            assert!(text.contains(&line), "{line} in {text}");
        }
        let of_interface = BooksLine { place: BooksScope::Interface("eth0".to_owned()), ..of_ring };
        let text = prometheus(&[of_interface]);
        assert!(text.contains("delivered") && !text.contains("ring_u"), "{text}");
    }

    #[test]
    fn a_verdict_is_a_number_and_none_where_nobody_can_tell() {
        let verdict = |dropped: Option<u64>| {
            let mut told = entry(Some(0), Some(0), Some(0));
            if let Some(report) = &mut told.report {
                report.counters.delivered = 1000;
                report.counters.dropped = dropped;
            }
            let text = prometheus(&[told]);
            let line = text.lines().find(|line| line.starts_with("netsniff_capture_verdict"))?;
            line.rsplit_once(' ').map(|(_, value)| value.to_owned())
        };
        let found = [Some(2), Some(7), Some(50), None].map(verdict);
        let expected = [Some("0"), Some("1"), Some("2"), None];
        assert_eq!(found.each_ref().map(Option::as_deref), expected);
    }
}
