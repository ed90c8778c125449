//! What a collection amounts to, for people.

use std::fmt::Write as _;

use netsniff_console::number::{bytes, count, things};
use netsniff_delivery::Books;
use netsniff_ipfix::{Protocol, StreamBooks, StreamKey, Transport};
use netsniff_output::RemovedFiles;
use netsniff_pipeline::collecting::CollectOutcome;

/// Exporters that are named one by one.
const NAMED: usize = 20;

/// What a collection amounts to.
#[derive(Debug)]
pub(super) struct Summary {
    pub(super) outcome: CollectOutcome,
    /// Packets of the captures, where messages come out of some.
    pub(super) packets: Option<u64>,
    /// Datagrams that the capture cut.
    pub(super) cut_datagrams: u64,
    /// Segments of TCP to the ports, which are not read out of captures.
    pub(super) segments: u64,
    /// Datagrams for which sockets had no room; unset where nobody counts.
    pub(super) dropped: Option<u64>,
    /// Rows that could not be written.
    pub(super) refused_rows: u64,
    /// The books of each receiver that rows were delivered to.
    pub(super) delivered: Vec<Books>,
    /// Files of logs that were not to stay.
    pub(super) removed: RemovedFiles,
    /// Whether a capture was damaged, or could not be read.
    pub(super) is_cut: bool,
    /// Whether something went wrong here.
    pub(super) has_failed: bool,
    /// Records that waited for the other direction when it ended.
    waiting: usize,
}

impl Summary {
    pub(super) fn new(outcome: CollectOutcome, waiting: usize) -> Self {
        Self {
            outcome,
            packets: None,
            cut_datagrams: 0,
            segments: 0,
            dropped: None,
            refused_rows: 0,
            delivered: Vec::new(),
            removed: RemovedFiles::default(),
            is_cut: false,
            has_failed: false,
            waiting,
        }
    }

    /// Why nothing could be read of captures, if so. Who listens may hear nothing.
    pub(super) fn nothing_read(&self) -> Option<&'static str> {
        let is_empty = self.packets.is_some() && self.outcome.collector.messages() == 0;
        is_empty.then_some(if self.segments > 0 {
            "exports over TCP are not read out of captures: listen to them, with ipfix://"
        } else {
            "there are no datagrams to these ports; name others with --port"
        })
    }

    /// Whether anything that came could not be read.
    pub(super) fn is_damaged(&self) -> bool {
        let of = |books: &StreamBooks| {
            books.undecoded_sets + books.waiting_sets + books.damaged + books.templates_refused
        };
        let unread: u64 = self.outcome.books().map(|(_, books)| of(&books)).sum();
        let refused = self.outcome.collector.refused().next().is_some();
        self.is_cut || refused || unread > 0 || self.cut_datagrams > 0
    }

    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        let collector = &self.outcome.collector;
        if let Some(packets) = self.packets {
            line(&mut text, "packets", &count(packets));
        }
        let messages = format!("{} ({})", count(collector.messages()), bytes(collector.bytes()));
        line(&mut text, "messages", &messages);
        for (refusal, messages) in collector.refused() {
            line(&mut text, "  not read", &format!("{} {}", count(messages), refusal.words()));
        }
        if self.cut_datagrams > 0 {
            line(&mut text, "  cut by the capture", &count(self.cut_datagrams));
        }
        if self.segments > 0 {
            let said =
                format!("{}, which are read only by who listens", things(self.segments, "segment"));
            line(&mut text, "  over TCP", &said);
        }
        let dropped = match self.dropped {
            Some(dropped) => count(dropped),
            None => "unknown".to_owned(),
        };
        if self.packets.is_none() {
            line(&mut text, "dropped by sockets", &dropped);
        }
        if self.refused_rows > 0 {
            line(&mut text, "rows not written", &count(self.refused_rows));
        }
        for books in &self.delivered {
            let said = format!("{} of {} rows", count(books.delivered), count(books.made));
            line(&mut text, "delivered", &format!("{said} to {}", books.target));
        }
        self.removed.said().iter().for_each(|said| line(&mut text, "note", said));
        let CollectOutcome { connections, paired, two_way, .. } = self.outcome;
        line(&mut text, "connections", &count(connections));
        let both = format!("{}, {} of them out of two records", count(two_way), count(paired));
        line(&mut text, "  both directions", &both);
        if self.waiting > 0 {
            line(&mut text, "  waited at the end", &count(self.waiting as u64));
        }
        line(&mut text, "exporters", &count(self.outcome.books().count() as u64));
        if collector.left() > 0 {
            line(&mut text, "  forgotten", &count(collector.left()));
        }
        for (key, books) in self.outcome.books().take(NAMED) {
            exporter(&mut text, key, &books);
        }
        text
    }
}

fn line(text: &mut String, name: &str, value: &str) {
    let _ = writeln!(text, "{name:<20} {value}");
}

fn exporter(text: &mut String, key: &StreamKey, books: &StreamBooks) {
    let protocol = match key.protocol {
        Protocol::Netflow5 => "NetFlow 5",
        Protocol::Netflow9 => "NetFlow 9",
        Protocol::Ipfix => "IPFIX",
    };
    let over = if key.exporter.transport == Transport::Tcp { " over TCP" } else { "" };
    let (address, port) = (key.exporter.address, key.exporter.port);
    let _ = writeln!(text, "  {address} port {port}, {protocol}{over}, domain {}", key.domain);
    let mut told = |name: &str, value: String| line(text, &format!("    {name}"), &value);
    told("messages", count(books.messages));
    let StreamBooks { records, flows, options, others, .. } = *books;
    let parts = format!(
        "{}: {} of flows, {} of the exporter, {} of no connection",
        count(records),
        count(flows),
        count(options),
        count(others)
    );
    told("records", parts);
    let lost = match (books.lost, key.protocol) {
        (None, _) => "unknown".to_owned(),
        (Some(lost), Protocol::Netflow9) => things(lost, "message"),
        (Some(lost), _) => things(lost, "record"),
    };
    told("lost", lost);
    for (name, value) in [
        ("sets not read", books.undecoded_sets),
        ("sets that wait", books.waiting_sets),
        ("damaged", books.damaged),
        ("templates refused", books.templates_refused),
        ("came twice", books.duplicates),
        ("came late", books.late),
        ("began anew", books.restarts),
    ] {
        if value > 0 {
            told(name, count(value));
        }
    }
}
