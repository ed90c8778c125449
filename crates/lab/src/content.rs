//! What is in a capture file, as far as runs are counted by it.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::Context as _;
use netsniff_packet::{Batch, Progress, Source as _};

use crate::packet_order::{PacketOrder, Watch};

/// Sums over its packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrafficContent {
    /// Number of packets.
    pub packets: u64,
    /// Their bytes on the wire.
    pub bytes: u64,
    /// How far they are out of order.
    pub order: PacketOrder,
}

impl TrafficContent {
    /// What is in a file. Of one that was cut when its writer was killed all that is whole is there.
    ///
    /// # Errors
    ///
    /// Where it cannot be read.
    pub fn of(path: &Path) -> anyhow::Result<Self> {
        let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
        Self::read(file).with_context(|| format!("cannot read {}", path.display()))
    }

    /// Likewise of anything that is read.
    pub(crate) fn read(input: impl Read) -> anyhow::Result<Self> {
        let mut reader = netsniff_pcapfile::Reader::new(input).context("it is no capture")?;
        let (mut batch, mut watch) = (Batch::default(), Watch::default());
        let mut content = Self::default();
        loop {
            let state = reader.read_batch(&mut batch).context("it is damaged")?;
            content.packets += batch.packets.len() as u64;
            for packet in &batch.packets {
                content.bytes += u64::from(packet.wire_len);
                watch.see(packet.timestamp);
            }
            if state == Progress::End {
                return Ok(Self { order: watch.order(), ..content });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_a_file_is_that_of_its_stamps() {
        let mut file = Vec::new();
        for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, 1] {
            file.extend(word.to_le_bytes());
        }
        for micros in [10_u32, 50, 20, 30, 60] {
            for word in [0, micros, 4, 60, 0] {
                file.extend(word.to_le_bytes());
            }
        }
        let content = TrafficContent::read(&file[..]).unwrap();
        let order = PacketOrder { inversions: 2, deepest_ns: 30_000 };
        assert_eq!(content, TrafficContent { packets: 5, bytes: 300, order });
        // Of one that was cut all that is whole is read.
        let cut = TrafficContent::read(&file[..file.len() - 1]).unwrap();
        assert_eq!(cut, TrafficContent { packets: 4, bytes: 240, order });
        assert!(TrafficContent::read(&b"no capture at all, but long enough"[..]).is_err());
    }
}
