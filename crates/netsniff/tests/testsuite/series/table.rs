//! The rows of the log, added up by interval and name.

use std::collections::BTreeMap;
use std::path::Path;

use crate::zeek::log::{self, Row};

/// Packets and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Traffic {
    pub(super) packets: u64,
    pub(super) bytes: u64,
}

impl Traffic {
    pub(super) fn add(&mut self, other: Self) {
        self.packets += other.packets;
        self.bytes += other.bytes;
    }
}

/// Traffic by the second in which an interval begins, the kind, and the name.
pub(super) type Sums = BTreeMap<(i64, String, String), Traffic>;

/// The rows of the log.
pub(super) struct Table(pub(super) Vec<Row>);

impl Table {
    pub(super) fn read(path: &Path) -> Self {
        Self(log::read(path).unwrap())
    }

    /// What each interval, interface and host had; late rows are added to those that they belong to.
    pub(super) fn by_name(&self) -> Sums {
        let mut sums = Sums::new();
        for row in self.0.iter().filter(|row| row["kind"] != "service") {
            let second = row["ts"].split('.').next().unwrap().parse().unwrap();
            let name = if row["other"] == "T" {
                "other"
            } else {
                match row["kind"].as_str() {
                    "host" => &row["host"],
                    "interface" => &row["interface"],
                    _ => "",
                }
            };
            let key = (second, row["kind"].clone(), name.to_owned());
            sums.entry(key).or_default().add(traffic(row));
        }
        // Hosts inside tunnels have flows, and no packets of their own.
        sums.retain(|_, traffic| traffic.packets > 0);
        sums
    }

    /// What all rows of a kind amount to.
    pub(super) fn sum(&self, kind: &str) -> Traffic {
        let mut sum = Traffic::default();
        self.0.iter().filter(|row| row["kind"] == kind).for_each(|row| sum.add(traffic(row)));
        sum
    }
}

/// All packets of a row; of a host those that it sent and those that it received.
pub(super) fn traffic(row: &Row) -> Traffic {
    let number = |column: &str| row[column].parse::<u64>().unwrap();
    if row["kind"] == "host" {
        return Traffic {
            packets: number("sent_packets") + number("received_packets"),
            bytes: number("sent_bytes") + number("received_bytes"),
        };
    }
    Traffic { packets: number("packets"), bytes: number("bytes") }
}
