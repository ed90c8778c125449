//! What `netsniff info` says of one file, as JSON has it.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use anyhow::Context;
use netsniff_analysis::ingress::stamps::EqualStamps;
use netsniff_console::terminal::progress::ProgressLine;
use netsniff_packet::{Batch, Progress, Source};
use netsniff_pcapfile::{Burst, Facts, Format, Interface, Reader};
use serde::Serialize;

use crate::commands::inputs::span::Span;
use crate::commands::interrupted;
use crate::summary::equal_stamps;

/// The facts of one file. Times are seconds since 1970 as text, so that nanoseconds survive.
#[derive(Debug, Serialize)]
pub struct Report {
    /// Name of the file as it was given.
    pub file: String,
    /// `pcap` or `pcapng`.
    pub format: &'static str,
    /// Variant of the format: `microseconds`, `nanoseconds`, `modified`; none for pcapng.
    pub variant: Option<&'static str>,
    /// Byte order of the (first section of the) file.
    pub byte_order: &'static str,
    /// Layers of compression, outermost first.
    pub compression: Vec<String>,
    /// Size of the file in bytes, as it is stored.
    pub file_bytes: u64,
    /// Size in bytes after unpacking, as far as it could be read.
    pub unpacked_bytes: u64,
    /// Number of packets.
    pub packets: u64,
    /// Packets outside of the times that were asked for, which all else but interfaces' counters leaves out; absent where
    /// all were wanted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packets_outside: Option<u64>,
    /// Packets that say they had more bytes on the wire than any network carries at once, 1 MiB: what was written is damaged
    /// or made up, and sums, sizes and rates have it.
    pub absurd_packets: u64,
    /// Packets without a time of their own (simple packet blocks).
    pub untimed_packets: u64,
    /// Bytes that the capture kept of them.
    pub captured_bytes: u64,
    /// Bytes on the wire.
    pub wire_bytes: u64,
    /// Packets of which less was captured than the wire carried.
    pub cut_packets: u64,
    /// Time of the earliest packet.
    pub earliest: Option<String>,
    /// Time of the latest packet.
    pub latest: Option<String>,
    /// Seconds from the earliest to the latest packet.
    pub duration: String,
    /// Whether no packet is earlier than the one before it.
    pub in_time_order: bool,
    /// Packets earlier than the one before them.
    pub inversions: u64,
    /// The most nanoseconds by which a packet is earlier than the latest before it.
    pub deepest_inversion_ns: i64,
    /// Packets with the stamp of the one before them.
    pub equal_stamps: u64,
    /// Packets in groups of two, four, six … with one stamp: with chance alone, half of all at most.
    pub in_even_groups: u64,
    /// The largest power of ten, in nanoseconds, of which all stamps are multiples; a second at most, and null without packets.
    pub stamp_resolution_ns: Option<u64>,
    /// What follows, where there are many.
    #[serde(skip)]
    pub stamps_note: Option<String>,
    /// Mean packets per second.
    pub packets_per_second: Option<f64>,
    /// Mean bits on the wire per second.
    pub bits_per_second: Option<f64>,
    /// Shortest packet in bytes on the wire.
    pub size_min: Option<u32>,
    /// Mean packet in bytes on the wire.
    pub size_mean: Option<f64>,
    /// Longest packet in bytes on the wire.
    pub size_max: Option<u32>,
    /// Peak and peak-to-mean rates.
    pub bursts: Vec<BurstReport>,
    /// What the sections of a pcapng file say of the capturing machine.
    pub sections: Vec<SectionReport>,
    /// The interfaces in the order of the file.
    pub interfaces: Vec<InterfaceReport>,
    /// How many places are damaged.
    pub damage_count: u64,
    /// The first of them.
    pub damage: Vec<DamageReport>,
}

/// The fullest windows of one length.
#[derive(Debug, Serialize)]
pub struct BurstReport {
    /// Length of the windows in milliseconds.
    pub window_ms: i64,
    /// The most packets in one window.
    pub packets: u64,
    /// That over the mean; null where the capture is shorter than one window.
    pub packets_to_mean: Option<f64>,
    /// The most bytes on the wire in one window.
    pub bytes: u64,
    /// That over the mean.
    pub bytes_to_mean: Option<f64>,
}

/// One section of a pcapng file.
#[derive(Debug, Serialize)]
pub struct SectionReport {
    /// The hardware that captured, as the file says.
    pub hardware: Option<String>,
    /// The capturing operating system.
    pub os: Option<String>,
    /// The program that wrote the section.
    pub application: Option<String>,
    /// Comments on the section, at most the first 16.
    pub comments: Vec<String>,
}

/// One interface. Null means that the file does not say.
#[derive(Debug, Serialize)]
pub struct InterfaceReport {
    /// Its section in the file, from 0.
    pub section: u64,
    /// Name of the interface, as the file says.
    pub name: Option<String>,
    /// Description of the interface, as the file says.
    pub description: Option<String>,
    /// The link type's name, or `LINKTYPE n`.
    pub link_type: String,
    /// The link type's number.
    pub link_type_number: u16,
    /// The most bytes captured of a packet; null for no limit.
    pub snaplen: Option<u32>,
    /// The unit of its time stamps.
    pub time_unit: String,
    /// The capture filter, as the file says.
    pub filter: Option<String>,
    /// The operating system of the capturing machine.
    pub os: Option<String>,
    /// The hardware of the interface, as the file says.
    pub hardware: Option<String>,
    /// Its speed in bits per second.
    pub speed: Option<u64>,
    /// Its packets in the file.
    pub packets: u64,
    /// Packets that it received.
    pub received: Option<u64>,
    /// Packets that the filter accepted.
    pub accepted_by_filter: Option<u64>,
    /// Packets that it dropped.
    pub dropped_by_interface: Option<u64>,
    /// Packets that the operating system dropped.
    pub dropped_by_os: Option<u64>,
    /// Packets lost between packets, as these tell.
    pub dropped_between_packets: Option<u64>,
    /// Packets delivered to the capturing program.
    pub delivered: Option<u64>,
}

/// A place at which the file is damaged.
#[derive(Debug, Serialize)]
pub struct DamageReport {
    /// Ordinal of the packet at or after which it lies.
    pub packet: u64,
    /// Offset in the unpacked file.
    pub offset: u64,
    /// Bytes from there on that were not used.
    pub skipped: u64,
    /// What is wrong there, as a sentence.
    pub message: String,
}

impl Report {
    /// Reads the file at `path`; `-` is the standard input.
    ///
    /// # Errors
    ///
    /// Where the file cannot be opened or read, or is no capture.
    pub fn of_file(path: &Path) -> anyhow::Result<Self> {
        Self::of_span(path, None, true)
    }

    /// As [`Self::of_file`], of the packets within a span. How far it is comes to the terminal, unless it `is_quiet`.
    ///
    /// # Errors
    ///
    /// As [`Self::of_file`].
    pub(super) fn of_span(path: &Path, span: Option<Span>, is_quiet: bool) -> anyhow::Result<Self> {
        let name = path.display().to_string();
        let (input, size): (Box<dyn Read>, _) = if path == Path::new("-") {
            (Box::new(io::stdin().lock()), None)
        } else {
            let file = File::open(path).context("cannot open")?;
            let metadata = file.metadata().context("cannot read")?;
            anyhow::ensure!(!metadata.is_dir(), "a directory, not a capture file");
            (Box::new(file), metadata.is_file().then_some(metadata.len()))
        };
        let mut progress = interrupted::progress_line(size, is_quiet)?;
        let mut report = Self::of_input(name, input, span, &mut progress)?;
        report.file_bytes = size.unwrap_or(report.file_bytes);
        Ok(report)
    }

    fn of_input(
        file: String,
        input: impl Read,
        span: Option<Span>,
        progress: &mut ProgressLine,
    ) -> anyhow::Result<Self> {
        let mut reader = Reader::new(input)?;
        let mut batch = Batch::default();
        let (mut facts, mut stamps) = (Facts::default(), EqualStamps::default());
        let (mut state, mut outside) = (Progress::More, span.map(|_| 0));
        while state == Progress::More {
            state = reader.read_batch(&mut batch)?;
            for packet in batch.iter() {
                if span.is_some_and(|span| !span.has(packet.timestamp)) {
                    outside = outside.map(|outside| outside + 1);
                    continue;
                }
                facts.add(&packet);
                stamps.note(packet.timestamp);
            }
            progress.update(|| (reader.bytes_read(), reader.packets()));
        }
        let report = Self::new(file, &reader, &facts, &stamps);
        Ok(Self { packets_outside: outside, ..report })
    }

    fn new<R: Read>(file: String, reader: &Reader<R>, facts: &Facts, stamps: &EqualStamps) -> Self {
        let (format, variant, big_endian) = match reader.format() {
            Format::Pcap(variant) if variant.modified => {
                ("pcap", Some("modified"), variant.big_endian)
            }
            Format::Pcap(variant) if variant.nanoseconds => {
                ("pcap", Some("nanoseconds"), variant.big_endian)
            }
            Format::Pcap(variant) => ("pcap", Some("microseconds"), variant.big_endian),
            Format::Pcapng { big_endian } => ("pcapng", None, big_endian),
            _ => ("unknown", None, false),
        };
        let duration = facts.duration();
        let packets_of = |index: usize| facts.by_interface.get(index).copied().unwrap_or(0);
        Self {
            file,
            format,
            variant,
            byte_order: if big_endian { "big-endian" } else { "little-endian" },
            compression: reader.compression().map(|layer| layer.to_string()).collect(),
            file_bytes: reader.bytes_read(),
            unpacked_bytes: reader.position(),
            packets: facts.packets,
            packets_outside: None,
            absurd_packets: facts.absurd,
            untimed_packets: reader.untimed(),
            captured_bytes: facts.captured_bytes,
            wire_bytes: facts.wire_bytes,
            cut_packets: facts.cut,
            earliest: facts.times.map(|times| times.earliest.to_string()),
            latest: facts.times.map(|times| times.latest.to_string()),
            duration: netsniff_packet::Timestamp::from_nanos(duration).to_string(),
            in_time_order: facts.in_time_order(),
            inversions: facts.inversions,
            deepest_inversion_ns: facts.deepest_inversion,
            equal_stamps: stamps.equal(),
            in_even_groups: stamps.in_even_groups(),
            stamp_resolution_ns: (facts.packets > 0).then(|| stamps.resolution_nanos()),
            stamps_note: equal_stamps(stamps),
            packets_per_second: facts.packet_rate(),
            bits_per_second: facts.bit_rate(),
            size_min: facts.sizes.map(|sizes| sizes.0),
            size_mean: facts.mean_size(),
            size_max: facts.sizes.map(|sizes| sizes.1),
            bursts: facts.bursts().iter().map(BurstReport::new).collect(),
            sections: reader.sections().iter().map(SectionReport::new).collect(),
            interfaces: reader
                .interfaces()
                .iter()
                .enumerate()
                .map(|(index, interface)| InterfaceReport::new(interface, packets_of(index)))
                .collect(),
            damage_count: reader.damage_count(),
            damage: reader.damage().iter().map(DamageReport::new).collect(),
        }
    }
}

impl BurstReport {
    fn new(burst: &Burst) -> Self {
        Self {
            window_ms: burst.window / 1_000_000,
            packets: burst.packets,
            packets_to_mean: burst.packets_to_mean,
            bytes: burst.bytes,
            bytes_to_mean: burst.bytes_to_mean,
        }
    }
}

impl SectionReport {
    fn new(section: &netsniff_pcapfile::Section) -> Self {
        Self {
            hardware: section.hardware.clone(),
            os: section.os.clone(),
            application: section.application.clone(),
            comments: section.comments.clone(),
        }
    }
}

impl InterfaceReport {
    fn new(interface: &Interface, packets: u64) -> Self {
        let counters = interface.counters;
        Self {
            section: interface.section,
            name: interface.name.clone(),
            description: interface.description.clone(),
            link_type: interface.link_type.to_string(),
            link_type_number: interface.link_type.0,
            snaplen: interface.snaplen,
            time_unit: interface.resolution.to_string(),
            filter: interface.filter.clone(),
            os: interface.os.clone(),
            hardware: interface.hardware.clone(),
            speed: interface.speed,
            packets,
            received: counters.received,
            accepted_by_filter: counters.accepted_by_filter,
            dropped_by_interface: counters.dropped_by_interface,
            dropped_by_os: counters.dropped_by_os,
            dropped_between_packets: counters.dropped_between_packets,
            delivered: counters.delivered,
        }
    }
}

impl DamageReport {
    fn new(damage: &netsniff_pcapfile::Damage) -> Self {
        Self {
            packet: damage.packet,
            offset: damage.offset,
            skipped: damage.skipped,
            message: damage.to_string(),
        }
    }
}
