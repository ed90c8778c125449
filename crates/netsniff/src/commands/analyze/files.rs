//! Capture files as the origin of an analysis: what its summary says of them.

use netsniff_console::number::{count, duration, exact};
use netsniff_packet::LinkType;
use netsniff_pcapfile::{Counters, Interface};
use netsniff_pipeline::PartsOutcome;

use super::origin::Origin;
use super::report::Analysis;
use super::selection::Selection;
use crate::commands::inputs::Inputs;
use crate::commands::inputs::span::LeftOut;
use crate::summary::{Input, JobBooks, Part};

/// Files, and what was wanted of them.
pub(super) struct Files<'a> {
    pub(super) inputs: &'a Inputs,
    pub(super) selection: &'a Selection,
    /// What became of each file by itself, where that was wanted.
    pub(super) parts: Option<PartsOutcome>,
    /// Packets for which `unparsed.pcapng` had no room.
    pub(super) unparsed_left_out: u64,
}

impl Origin for Files<'_> {
    fn packets(&self) -> u64 {
        self.inputs.packets()
    }

    fn has_filter(&self) -> bool {
        !self.selection.filters().is_empty()
    }

    fn input(&self, analysis: &Analysis<'_>) -> Input {
        let packets = &analysis.outcome.packets;
        let apart = [self.selection.refused(), self.inputs.left_out().copied().unwrap_or_default()];
        let spans = || packets.span.into_iter().chain(apart.iter().filter_map(|of| of.span));
        let with = |analysed: u64, of: fn(&LeftOut) -> u64| {
            apart.iter().map(of).fold(analysed, u64::saturating_add)
        };
        Input {
            sources: self
                .inputs
                .iter()
                .map(|(file, reader)| analysis.source(file, reader))
                .collect(),
            filters: self.selection.filters().iter().map(|f| analysis.filter(f)).collect(),
            packets: self.inputs.packets(),
            wanted_packets: packets.total.packets,
            wire_bytes: with(packets.total.bytes, |of| of.wire_bytes),
            wanted_bytes: packets.total.bytes,
            captured_bytes: with(packets.captured_bytes, |of| of.captured_bytes),
            first: spans().map(|span| span.0).min(),
            last: spans().map(|span| span.1).max(),
            order: self.inputs.order(),
            jobs: self.parts.map(|of| JobBooks {
                files: of.parts,
                apart: of.apart,
                by_pairs: of.by_pairs,
                in_order: of.parts - of.apart - of.by_pairs,
                read_again_bytes: of.read_again_bytes,
            }),
            is_live: false,
            elapsed_nanos: Some(analysis.elapsed_nanos),
        }
    }

    fn parts(&self) -> Vec<Part> {
        let outside = self.inputs.left_out().map(|outside| Part {
            name: "outside of --from and --to".to_owned(),
            packets: Some(outside.packets),
        });
        outside.into_iter().collect()
    }

    fn lost(&self) -> Vec<Part> {
        let part = |name: &str, packets| Part { name: name.to_owned(), packets };
        let lost = [
            part("lost by the interface", self.sum(|counters| counters.dropped_by_interface)),
            part("lost by the capturing system", self.sum(|counters| counters.dropped_by_os)),
        ];
        let between = self.sum(|counters| counters.dropped_between_packets);
        let between = between.map(|_| part("lost between packets, as these tell", between));
        lost.into_iter().chain(between).collect()
    }

    fn known_lost(&self) -> Option<u64> {
        let lost = |interface: &Interface| {
            let Counters { dropped_by_interface, dropped_by_os, dropped_between_packets, .. } =
                interface.counters;
            let dropped = [dropped_by_interface, dropped_by_os].into_iter().flatten();
            // Both ways of telling may tell of the same packets.
            let total = dropped.reduce(u64::saturating_add);
            total.into_iter().chain(dropped_between_packets).max()
        };
        let interfaces = self.inputs.iter().flat_map(|(_, reader)| reader.interfaces());
        interfaces.filter_map(lost).reduce(u64::saturating_add)
    }

    fn notes(&self, analysis: &Analysis<'_>) -> Vec<String> {
        let mut notes = self.unsupported(analysis);
        notes.extend(self.meaningless_filters(analysis));
        notes.extend(super::unparsed::left_out(self.unparsed_left_out));
        let untimed: u64 = self.inputs.iter().map(|(_, reader)| reader.untimed()).sum();
        if untimed > 0 {
            let untimed = count(untimed);
            notes.push(format!("packets without a time, given that of the one before: {untimed}"));
        }
        if self.inputs.left_out().is_some() {
            let said = "connections begin and end with what --from and --to leave of them; counters of the capture are \
                        of all of it";
            notes.push(said.to_owned());
        }
        if let Some(reordered) = self.inputs.reordered() {
            let late = analysis.outcome.packets.out_of_order;
            let window = u64::try_from(reordered.window().as_nanos()).unwrap_or(u64::MAX);
            if late > 0 {
                let (late, window) = (count(late), duration(window));
                notes.push(format!(
                    "packets too late for the window of {window} of --reorder: {late}"
                ));
            }
            if reordered.released_early() > 0 {
                let early = count(reordered.released_early());
                notes.push(format!(
                    "packets that waited for less than --reorder, since 256 MiB of packets waited: {early}"
                ));
            }
        }
        for (file, size) in self.inputs.files.iter().filter_map(|f| Some((f, f.grown()?))) {
            let name = &file.name;
            notes.push(format!("{name} grew to {size} bytes while it was read"));
        }
        notes
    }
}

impl Files<'_> {
    /// The sum of a drop counter over all interfaces; `None` where one of them does not tell.
    fn sum(&self, counter: impl Fn(&Counters) -> Option<u64>) -> Option<u64> {
        let mut interfaces =
            self.inputs.iter().flat_map(|(_, reader)| reader.interfaces()).peekable();
        interfaces.peek()?;
        interfaces
            .map(|interface| counter(&interface.counters))
            .try_fold(0_u64, |sum, lost| Some(sum.saturating_add(lost?)))
    }
    fn unsupported(&self, analysis: &Analysis<'_>) -> Vec<String> {
        let note = |(&number, &packets): (&u32, &u64)| {
            let (file, interface) = self.inputs.merged.interface(number)?;
            let file = self.inputs.files.get(file)?;
            let LinkType(number_of_type) = interface.link_type;
            let name = interface.link_type.name().unwrap_or("not in the registry");
            let of = interface.name.as_ref();
            let of = of.map_or_else(|| number.to_string(), |name| analysis.text(name).to_owned());
            Some(format!(
                "link type {number_of_type} ({name}) not supported: interface {of} of {}, {} \
                 packets not analysed",
                file.name,
                exact(packets.into())
            ))
        };
        self.selection.unsupported().iter().filter_map(note).collect()
    }

    /// A filter that cannot mean anything for a link type that was read.
    fn meaningless_filters(&self, analysis: &Analysis<'_>) -> Vec<String> {
        let interfaces = self.inputs.iter().flat_map(|(_, reader)| reader.interfaces());
        let mut link_types: Vec<_> = interfaces.map(|interface| interface.link_type).collect();
        link_types.sort_unstable();
        link_types.dedup();
        let mut notes = Vec::new();
        for filter in self.selection.filters() {
            for error in link_types.iter().filter_map(|&of| filter.check(of).err()) {
                notes.push(format!(
                    "the filter refuses every packet of one link type: {error} of {:?}",
                    analysis.text(filter.text())
                ));
            }
        }
        notes
    }
}
