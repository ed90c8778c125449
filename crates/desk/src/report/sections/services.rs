//! Which services there were.

use netsniff_analysis::record::Unit;

use super::{About, Extent, Gather, ranked};
use crate::logs::Row;
use crate::page::sum::Sum;
use crate::page::table::{Cell, Column, Table};
use crate::page::{Part, Section};
use crate::report::top::{Tally, Top};

/// Connections by what they spoke.
pub(super) struct Services {
    rows: usize,
    services: Top<String, Service>,
}

/// What is known of a service.
#[derive(Debug, Default)]
struct Service {
    connections: u64,
    sent: Sum,
    received: Sum,
    packets: Sum,
    /// By the words of the column, in their order; at the end what is none of them.
    qualities: [u64; QUALITIES.len() + 1],
}

/// The words of the column `quality`.
pub(super) const QUALITIES: [&str; 4] = ["clean", "touched", "suspect", "unknown"];

impl Tally for Service {
    fn merge(&mut self, other: Self) {
        self.connections += other.connections;
        self.sent.merge(other.sent);
        self.received.merge(other.received);
        self.packets.merge(other.packets);
        for (one, other) in self.qualities.iter_mut().zip(other.qualities) {
            *one += other;
        }
    }

    fn rank(&self) -> u128 {
        self.sent.rank() + self.received.rank()
    }
}

impl Services {
    pub(super) fn new(extent: Extent) -> Self {
        Self { rows: extent.rows, services: Top::default() }
    }
}

impl Gather for Services {
    fn logs(&self) -> &'static [&'static str] {
        &["conn"]
    }

    fn row(&mut self, _: &str, row: &Row<'_>) {
        let proto = || row.text("proto").unwrap_or_default();
        let name = row.text("service").filter(|service| !service.is_empty());
        let name = name.map_or_else(|| format!("not recognised, {}", proto()), Into::into);
        let of = self.services.of(name);
        of.connections += 1;
        of.sent.add(row.count("orig_ip_bytes"));
        of.received.add(row.count("resp_ip_bytes"));
        of.packets.add(row.count("orig_pkts"));
        of.packets.add(row.count("resp_pkts"));
        let quality = row.text("quality").unwrap_or_default();
        let word = QUALITIES.iter().position(|word| *word == quality).unwrap_or(QUALITIES.len());
        of.qualities[word] += 1;
    }

    fn section(self: Box<Self>, _: &About<'_>) -> Option<Section> {
        let ranked_services = self.services.ranked(self.rows);
        if ranked_services.shown.is_empty() {
            return None;
        }
        let mut columns = vec![
            Column::text("service", "what the content showed, as in the column service of conn"),
            Column::number("connections", "rows of conn"),
            Column::number("sent by originators", "bytes of IP, the sum of orig_ip_bytes"),
            Column::number("sent by responders", "bytes of IP, the sum of resp_ip_bytes"),
            Column::number("packets", "the sum of orig_pkts and resp_pkts"),
        ];
        columns.extend(QUALITIES.map(|word| Column::number(word, "connections of this quality")));
        let table = Table {
            id: "services".to_owned(),
            caption: "Services, the most bytes first".to_owned(),
            columns,
            ..Table::default()
        };
        let cells = |name: Option<&String>, of: &Service| {
            let mut cells = vec![
                Cell::text(name.map_or("", String::as_str)),
                Cell::count(of.connections),
                Cell::sum(&of.sent, Unit::Bytes),
                Cell::sum(&of.received, Unit::Bytes),
                Cell::sum(&of.packets, Unit::Packets),
            ];
            let [.., untold] = of.qualities;
            let looks = [None, Some("warn"), Some("warn"), None];
            for (count, look) in of.qualities.iter().zip(looks) {
                let cell = match untold {
                    0 => Cell::count(*count),
                    all if all == of.connections => Cell::unset("no row tells its quality"),
                    _ => Cell::count(*count).at_least("some rows do not tell their quality"),
                };
                cells.push(look.map_or(cell.clone(), |look| cell.alarming(look)));
            }
            cells
        };
        let part = ranked(table, &ranked_services, ("service", "services"), cells);
        Some(Section {
            id: "services",
            title: "Services".to_owned(),
            lead: Vec::new(),
            parts: vec![Part::Table(part.with_bars(2).with_bars(3))],
        })
    }
}
