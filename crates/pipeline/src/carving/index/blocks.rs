//! Where a capture can be read from: places between two packets, at which a reader may go on.

use std::io::Read;

use netsniff_packet::{Batch, Progress, Source as _};
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
    /// Whether it tells more than packets: interfaces, counters, losses. Then it is always read.
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
    let mut blocks = Vec::new();
    let (mut batch, mut known) = (Batch::default(), Vec::new());
    loop {
        let (at, packets) = (reader.position(), reader.packets());
        let progress = reader.read_batch(&mut batch).map_err(|error| error.to_string())?;
        let told: Vec<Counters> =
            reader.interfaces().iter().map(|it| totals(it.counters)).collect();
        let tells = told != known || !batch.losses.is_empty();
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
