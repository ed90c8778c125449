//! An application with a cost that is known: what is spent on each packet is compression, or time (PAPERS D10).
//!
//! Compression costs as much as it does where captures are packed on the fly, which no level makes linear. Time makes a
//! server as queueing theory has it: a packet is begun when it arrives, or when the one before is done if that is later,
//! and takes exactly so long. What interrupts it is made up for, so that arithmetic knows what it loses.

use std::time::Duration;

use anyhow::Context as _;
use flate2::{Compress, Compression, FlushCompress, Status};
use netsniff_packet::Timestamp;

/// The highest level of zlib.
pub const MOST_LEVEL: u32 = 9;

/// What a compressed packet may take more than its own bytes: blocks that are stored, header and check sum (RFC 1950,
/// RFC 1951 section 3.2.4).
const ROOM: usize = 64;

/// What is spent on a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Cost {
    /// The level of zlib that each packet is compressed with, by itself; `None` for not at all.
    pub zip: Option<u32>,
    /// How long a packet takes; `None` for as long as it needs.
    pub delay: Option<Duration>,
}

/// What was done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Done {
    /// Number of packets.
    pub packets: u64,
    /// Bytes of these packets.
    pub bytes: u64,
    /// Bytes that they were compressed to; 0 where they were not.
    pub compressed: u64,
}

/// Spends a fixed time on each packet.
#[derive(Debug)]
pub struct PacketWork {
    zip: Option<(Compress, Vec<u8>)>,
    delay: Option<i64>,
    /// When the packet before was done.
    free: Timestamp,
    /// Whether nothing is spent any more.
    is_over: bool,
    done: Done,
}

impl PacketWork {
    /// Nothing was done yet.
    #[must_use]
    pub fn new(cost: Cost) -> Self {
        let compress = |level: u32| {
            let level = Compression::new(level.min(MOST_LEVEL));
            (Compress::new(level, true), Vec::new())
        };
        Self {
            zip: cost.zip.map(compress),
            delay: cost.delay.map(|delay| i64::try_from(delay.as_nanos()).unwrap_or(i64::MAX)),
            free: Timestamp::from_nanos(i64::MIN),
            is_over: false,
            done: Done::default(),
        }
    }

    /// Takes a packet that arrived then, by the clock of `now`.
    ///
    /// # Errors
    ///
    /// Where zlib fails, which it has no reason to.
    pub fn packet(
        &mut self,
        data: &[u8],
        arrived: Timestamp,
        now: impl Fn() -> Timestamp,
    ) -> anyhow::Result<()> {
        self.done.packets += 1;
        self.done.bytes += data.len() as u64;
        if self.is_over {
            return Ok(());
        }
        if let Some((compress, to)) = &mut self.zip {
            let room = data.len() + data.len() / 8 + ROOM;
            if to.len() < room {
                to.resize(room, 0);
            }
            compress.reset();
            let status = compress.compress(data, to, FlushCompress::Finish);
            let status = status.context("zlib cannot compress a packet")?;
            anyhow::ensure!(status == Status::StreamEnd, "zlib needs more room for a packet");
            self.done.compressed += compress.total_out();
        }
        if let Some(delay) = self.delay {
            let free = self.free.max(arrived).nanos().saturating_add(delay);
            self.free = Timestamp::from_nanos(free);
            while now() < self.free {
                std::hint::spin_loop();
            }
        }
        Ok(())
    }

    /// Takes packets without a cost from here on: nothing is captured any more, and those that wait are not to be waited
    /// for.
    pub const fn end(&mut self) {
        self.is_over = true;
    }

    /// What was done so far.
    #[must_use]
    pub const fn done(&self) -> Done {
        self.done
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;

    const NOW: Timestamp = Timestamp::from_nanos(0);

    #[test]
    fn packets_are_compressed_each_by_itself() {
        for level in 0..=MOST_LEVEL {
            let mut work = PacketWork::new(Cost { zip: Some(level), delay: None });
            let packets: [&[u8]; 3] = [&[7; 1514], b"", &[1, 2, 3]];
            for data in packets {
                let before = work.done;
                work.packet(data, NOW, || NOW).unwrap();
                let (_, to) = work.zip.as_ref().unwrap();
                let len = work.done.compressed - before.compressed;
                let mut plain = Vec::new();
                let mut reader = flate2::read::ZlibDecoder::new(&to[..len as usize]);
                reader.read_to_end(&mut plain).unwrap();
                assert_eq!(plain, data, "level {level}");
            }
            assert_eq!((work.done.packets, work.done.bytes), (3, 1517));
            assert_eq!(work.done.compressed < 1000, level > 0, "level {level}");
        }
    }

    #[test]
    fn random_bytes_have_room() {
        let mut work = PacketWork::new(Cost { zip: Some(9), delay: None });
        let mut state = 1_u64;
        let random: Vec<u8> = (0..65_536)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (state >> 56) as u8
            })
            .collect();
        for len in [1, 60, 1514, 65_536] {
            work.packet(&random[..len], NOW, || NOW).unwrap();
        }
        assert!(work.done.compressed >= work.done.bytes);
    }

    #[test]
    fn packets_take_as_long_as_they_are_to() {
        let work =
            |delay| PacketWork::new(Cost { zip: None, delay: Some(Duration::from_nanos(delay)) });
        let clock = std::cell::Cell::new(0_i64);
        let tick = || {
            clock.set(clock.get() + 1);
            Timestamp::from_nanos(clock.get())
        };
        let mut server = work(100);
        let ends = |server: &mut PacketWork, arrivals: &[i64]| -> Vec<i64> {
            let end = |&at: &i64| {
                server.packet(&[], Timestamp::from_nanos(at), tick).unwrap();
                clock.get()
            };
            arrivals.iter().map(end).collect()
        };
        // Those that wait are taken one after the other, and the one that comes late when it comes.
        assert_eq!(ends(&mut server, &[0, 0, 10, 1000]), [100, 200, 300, 1100]);
        // An interruption of 750: what waited meanwhile is made up for.
        clock.set(2000);
        assert_eq!(ends(&mut server, &[1250, 1250, 1250, 1960]), [2001, 2002, 2003, 2060]);
        server.end();
        server.packet(&[], Timestamp::from_nanos(9000), tick).unwrap();
        assert_eq!((clock.get(), server.done().packets), (2060, 9));
    }
}
