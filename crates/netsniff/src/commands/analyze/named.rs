//! What the summary names: hosts, files, interfaces and filters, by pseudonyms where it must not tell
//! of people.

use std::borrow::Cow;
use std::net::IpAddr;

use netsniff_analysis::flow::report::talkers::{Connection as TopConnection, Traffic};
use netsniff_analysis::key::Endpoint;
use netsniff_packet::Address;
use netsniff_packet::filter::Filter;
use netsniff_pcapfile::{Format, Interface, Reader};

use super::report::Analysis;
use crate::commands::inputs::{CaptureFile, Input as Bytes};
use crate::summary::{CaptureInterface, Connection, InputSource, Talker};

/// Lines in each of the lists of those with the most bytes.
const TOP: usize = 5;

/// What stands for a text that the user or the capture gave and that may name somebody.
const HIDDEN: &str = "(not told)";

impl Analysis<'_> {
    /// An address as it may be told.
    fn address(&self, address: Address) -> Address {
        let anonymizer = &self.settings.options.anonymizer;
        anonymizer.as_ref().map_or(address, |it| it.address(address))
    }

    /// A text as it may be told.
    pub(super) fn text<'t>(&self, text: &'t str) -> &'t str {
        if self.settings.options.anonymizer.is_some() { HIDDEN } else { text }
    }

    pub(super) fn filter(&self, filter: &Filter) -> String {
        self.text(filter.text()).to_owned()
    }

    pub(super) fn talkers(&self) -> Vec<Talker> {
        let line = |(address, traffic): (Address, Traffic)| Talker {
            address: self.address(address).to_string(),
            sent_bytes: traffic.sent,
            received_bytes: traffic.received,
            flows: traffic.flows,
        };
        self.outcome.flows.talkers.addresses(TOP).into_iter().map(line).collect()
    }

    pub(super) fn connections(&self) -> Vec<Connection> {
        let end = |end: Endpoint| match self.address(end.address).to_ip() {
            IpAddr::V4(v4) => format!("{v4}:{}", end.port),
            IpAddr::V6(v6) => format!("[{v6}]:{}", end.port),
        };
        let line = |connection: &TopConnection| Connection {
            uid: connection.uid.as_str().to_owned(),
            originator: end(connection.originator),
            responder: end(connection.responder),
            proto: connection.proto.name().to_owned(),
            service: connection.services.names().map(Cow::into_owned),
            state: connection.state.name().to_owned(),
            duration_nanos: u64::try_from(connection.duration_nanos)
                .ok()
                .filter(|&nanos| nanos > 0),
            packets: connection.packets,
            bytes: connection.bytes,
        };
        self.outcome.flows.talkers.connections().iter().take(TOP).map(line).collect()
    }

    pub(super) fn source(&self, file: &CaptureFile, reader: &Reader<Bytes>) -> InputSource {
        let damage = reader.damage().iter().map(ToString::to_string);
        let failure = file.failure.iter().map(|failure| {
            format!("packet {}: {failure}; what came before was used", reader.packets() + 1)
        });
        InputSource {
            name: file.name.clone(),
            format: format_of(reader).to_owned(),
            compression: reader.compression().map(|layer| layer.to_string()).collect(),
            bytes: file.size,
            packets: reader.packets(),
            interfaces: reader.interfaces().iter().map(|of| self.interface(of)).collect(),
            damage_count: reader.damage_count() + u64::from(file.failure.is_some()),
            damage: failure.chain(damage).collect(),
        }
    }

    fn interface(&self, interface: &Interface) -> CaptureInterface {
        let counters = interface.counters;
        CaptureInterface {
            name: interface.name.as_ref().map(|name| self.text(name).to_owned()),
            link_type: interface.link_type.to_string(),
            dropped_by_interface: counters.dropped_by_interface,
            dropped_by_os: counters.dropped_by_os,
            dropped_between_packets: counters.dropped_between_packets,
        }
    }
}

/// The format of a capture file, for people.
pub(super) fn format_of(reader: &Reader<Bytes>) -> &'static str {
    match reader.format() {
        Format::Pcap(variant) if variant.modified => "modified pcap",
        Format::Pcap(variant) if variant.nanoseconds => "pcap, nanoseconds",
        Format::Pcap(_) => "pcap",
        Format::Pcapng { .. } => "pcapng",
        _ => "",
    }
}
