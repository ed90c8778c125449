//! Where a capture can be read from: places between two packets, at which a reader may go on.

use std::io::Read;

use netsniff_packet::{Batch, Note, Progress, Source as _};
use netsniff_pcapfile::{Counters, Reader};

/// Bytes that a block has about: less makes the table larger, more makes carving read more.
const BLOCK: usize = 64 << 10;

/// A piece of a capture that begins and ends between two packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Offset of its first byte.
    pub at: u64,
    /// Packets before it.
    pub packets: u64,
    /// Whether it tells more than packets: sections, interfaces, counters, losses, names, secrets. Then it is always read.
    pub tells: bool,
}

/// What an interface counted in all, without what single packets tell.
fn totals(counters: Counters) -> Counters {
    let (inbound, outbound, link_errors, dropped_between_packets) = (None, None, None, None);
    Counters { inbound, outbound, link_errors, dropped_between_packets, ..counters }
}

/// Finds the blocks of a capture, and counts its packets.
///
/// # Errors
///
/// Why the capture cannot be read in blocks.
pub fn blocks_of<R: Read>(input: R) -> Result<(Vec<Block>, u64), String> {
    let mut reader = Reader::with_read_size(input, BLOCK).map_err(|error| error.to_string())?;
    if let Some(packing) = reader.compression().next() {
        return Err(format!("it is packed with {packing}, which cannot be read from the middle"));
    }
    reader.keep_notes();
    let mut blocks = Vec::new();
    let (mut batch, mut known) = (Batch::default(), (0, Vec::new()));
    loop {
        let (at, packets) = (reader.position(), reader.packets());
        let progress = reader.read_batch(&mut batch).map_err(|error| error.to_string())?;
        let counters = reader.interfaces().iter().map(|it| totals(it.counters));
        // A section that begins at the end of a block has no interface in it yet.
        let told = (reader.section_count(), counters.collect::<Vec<_>>());
        let has_block = batch.notes.iter().any(|(_, note)| matches!(note, Note::Block(_)));
        let tells = told != known || !batch.losses.is_empty() || has_block;
        if reader.position() > at {
            blocks.push(Block { at, packets, tells });
        }
        known = told;
        if progress == Progress::End {
            break;
        }
    }
    if let Some(damage) = reader.damage().first() {
        return Err(format!("it is damaged: {damage}"));
    }
    if reader.untimed() > 0 {
        return Err("it has packets without a time, which depend on those before".to_owned());
    }
    Ok((blocks, reader.packets()))
}

#[cfg(test)]
mod tests {
    use netsniff_packet::{LinkType, Packet, Timestamp};
    use netsniff_pcapfile::{Interface, PacketNotes, PcapngEncoder, Section};

    use super::*;

    /// Adds a section with one interface and packets of these lengths. Returns where the interface is described.
    fn add_section(out: &mut Vec<u8>, lengths: impl Iterator<Item = usize>) -> usize {
        let mut encoder = PcapngEncoder::default();
        encoder.section(&Section::default(), out).unwrap();
        let at = out.len();
        encoder.interface(&Interface::new(LinkType::RAW, 0), out).unwrap();
        for (second, len) in (0..).zip(lengths) {
            let timestamp = Timestamp::from_secs_nanos(second, 0);
            let (data, link_type) = (&vec![0; len][..], LinkType::RAW);
            let packet = Packet { timestamp, data, wire_len: len as u32, link_type, interface: 0 };
            encoder.packet(&packet, PacketNotes::default(), out).unwrap();
        }
        at
    }

    /// Without it, packets behind would be of an interface of the section before.
    #[test]
    fn a_section_that_begins_at_the_end_of_a_block_is_told() {
        let mut found = false;
        // The second section begins at each of these places, at one of which a read ends.
        for first in (4..2000).step_by(4) {
            let mut bytes = Vec::new();
            add_section(&mut bytes, [960; 100].into_iter().chain([first]).chain([960; 31]));
            let described = add_section(&mut bytes, [1000; 300].into_iter()) as u64;
            let (blocks, packets) = blocks_of(&*bytes).unwrap();
            assert_eq!(packets, 432);
            let behind = blocks.iter().position(|block| block.at == described);
            // The first block tells of the first interface anyway.
            let behind = behind.filter(|at| *at > 1);
            if let Some(behind) = behind {
                found = true;
                assert!(blocks[behind - 1].tells && blocks[behind].tells, "{blocks:?}");
            }
        }
        assert!(found, "no block ended behind a section header");
    }
}
