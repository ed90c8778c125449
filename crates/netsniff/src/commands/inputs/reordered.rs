//! Packets of files, put back into the order of their stamps within a window.

use std::time::Duration;

use netsniff_packet::{Batch, Loss, Packet, Progress};
use netsniff_pipeline::live::{PacketSlice, ReorderBuffer, RingPackets};

/// Packets that wait for earlier ones, within a window of time and a bound of bytes.
#[derive(Debug)]
pub(crate) struct Reordered {
    window: Duration,
    order: ReorderBuffer,
    /// What was read last, in the order of the file.
    read: Batch,
    has_ended: bool,
}

impl Reordered {
    pub(crate) fn new(window: Duration) -> Self {
        let order = ReorderBuffer::new(window);
        Self { window, order, read: Batch::default(), has_ended: false }
    }

    /// How long packets wait.
    pub(crate) const fn window(&self) -> Duration {
        self.window
    }

    /// Packets that waited for less, since too many bytes waited.
    pub(crate) const fn released_early(&self) -> u64 {
        self.order.released_early()
    }

    /// Fills `batch` with the packets before which nothing can come any more; `read` reads the next
    /// ones of the file.
    pub(crate) fn read_batch(
        &mut self,
        batch: &mut Batch,
        mut read: impl FnMut(&mut Batch) -> Progress,
    ) -> Progress {
        batch.clear();
        while !self.has_ended && batch.packets.is_empty() {
            self.has_ended = read(&mut self.read) == Progress::End;
            let mut at = 0;
            // Each portion ends where something was lost before the next packet.
            let ends = self.read.losses.iter().map(|(before, loss)| (*before as usize, Some(loss)));
            let mut loss: Option<&Loss> = None;
            for (end, next) in ends.chain([(self.read.packets.len(), None)]) {
                let packets = self.read.packets.get(at..end).unwrap_or_default();
                let group = PacketSlice { data: &self.read.data, packets, loss };
                self.order.push(RingPackets { group, goes_on: false }, |group| take(batch, group));
                (at, loss) = (end.max(at), next);
            }
            if self.has_ended {
                self.order.flush(|group| take(batch, group));
            }
        }
        if self.has_ended { Progress::End } else { Progress::More }
    }
}

/// Copies what is in order to the end of a batch.
fn take(batch: &mut Batch, group: PacketSlice<'_>) {
    if let Some(loss) = group.loss {
        batch.push_loss(*loss);
    }
    for record in group.packets {
        let packet: Packet<'_> = group.packet(record);
        batch.push(&packet);
    }
}

#[cfg(test)]
mod tests {
    use netsniff_packet::{LinkType, Stage, Timestamp};

    use super::*;

    fn run(window: u64, batches: &[&[i64]], loss_before: Option<(usize, u32)>) -> Vec<i64> {
        let mut left = batches.iter().enumerate();
        let mut reordered = Reordered::new(Duration::from_nanos(window));
        let (mut out, mut batch) = (Vec::new(), Batch::default());
        loop {
            let progress = reordered.read_batch(&mut batch, |batch| {
                batch.clear();
                let Some((number, stamps)) = left.next() else { return Progress::End };
                for (at, &stamp) in stamps.iter().enumerate() {
                    if loss_before == Some((number, at as u32)) {
                        let time = Timestamp::from_nanos(stamp);
                        batch.push_loss(Loss {
                            before: None,
                            after: time,
                            packets: 1,
                            stage: Stage::System,
                        });
                    }
                    batch.push(&Packet {
                        timestamp: Timestamp::from_nanos(stamp),
                        data: &[stamp as u8],
                        wire_len: 1,
                        link_type: LinkType::ETHERNET,
                        interface: 0,
                    });
                }
                if number + 1 == batches.len() { Progress::End } else { Progress::More }
            });
            let mut losses = batch.losses.iter().peekable();
            for (at, packet) in batch.iter().enumerate() {
                while losses.next_if(|(before, _)| *before as usize <= at).is_some() {
                    out.push(-1);
                }
                assert_eq!(packet.data, [packet.timestamp.nanos() as u8], "its own bytes");
                out.push(packet.timestamp.nanos());
            }
            out.extend(losses.map(|_| -1));
            if progress == Progress::End {
                return out;
            }
        }
    }

    #[test]
    fn packets_wait_for_earlier_ones_over_the_ends_of_batches() {
        assert_eq!(
            run(10, &[&[1, 5], &[3, 20], &[18, 12], &[11]], None),
            [1, 3, 5, 11, 12, 18, 20]
        );
        assert_eq!(run(2, &[&[1, 9, 20], &[3], &[21]], None), [1, 9, 3, 20, 21], "too late");
        assert_eq!(run(10, &[&[]], None), [0_i64; 0]);
    }

    #[test]
    fn losses_keep_their_places() {
        assert_eq!(run(5, &[&[2, 1], &[4, 3]], Some((1, 0))), [1, 2, -1, 3, 4]);
        assert_eq!(run(5, &[&[2, 1, 4, 3]], Some((0, 2))), [1, 2, -1, 3, 4]);
    }
}
