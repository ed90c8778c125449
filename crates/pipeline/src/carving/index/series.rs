//! Indexes of captures that come one after the other and are one traffic, as a recording makes them.
//!
//! One analysis goes through all of them, so that a connection has one name in all of its files. The index of a file is
//! whole once each of its packets is decided, which for the last ones may take packets of the next file.

use std::fs::File;
use std::io;
use std::path::Path;

use anyhow::{Context as _, ensure};
use netsniff_analysis::{Limits, Options};
use netsniff_packet::{Batch, Packet, Progress, Source as _};
use netsniff_pcapfile::Reader;

use super::build::{Gathered, MOST_BYTES};
use super::format::Together;
use super::sidecar::{Appended, Sidecar, Written};
use crate::carving::choice::{FlowChoice, PacketChoice};
use crate::carving::{Carved, Carver, TakeCarved};

/// Memory for packets that wait until it is known which connections they belong to. Their content is not kept.
const MOST_HELD: usize = 64 << 20;
/// Where the number of a file's place begins in that of an interface: a file has no more than 65,536 interfaces.
const PLACE: u32 = 16;
/// The most files that may wait for their last packets to be decided.
const MOST_OPEN: usize = 1 << 16;

/// How connections are named.
#[derive(Clone, Debug)]
pub struct Naming {
    /// Bounds and time-outs of the analysis.
    pub limits: Limits,
    /// Its options.
    pub options: Options,
    /// Both as a hash ([`super::format::choices`]).
    pub choices: u64,
}

/// Writes an index beside each file of a recording.
#[derive(Debug)]
pub struct Series {
    carver: Carver,
    open: OpenFiles,
    together: Together,
    choices: u64,
}

/// Files whose packets are not all decided, at their places.
#[derive(Debug, Default)]
struct OpenFiles {
    files: Vec<Option<OpenFile>>,
    /// Memory of what was gathered.
    bytes: usize,
}

#[derive(Debug)]
struct OpenFile {
    sidecar: Sidecar,
    gathered: Gathered<Appended>,
    /// Packets that were decided before all was known of them.
    hurried: u64,
}

/// What became of files.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Indexes that are whole.
    pub written: Vec<Written>,
    /// Captures that have none, with why not.
    pub left_out: Vec<String>,
}

impl Series {
    /// For the recording of this number. `seed` is as for [`netsniff_analysis::Engine::new`].
    #[must_use]
    pub fn new(recording: u64, naming: Naming, seed: u64) -> Self {
        let Naming { limits, options, choices } = naming;
        let (flows, packets) = (FlowChoice::default(), PacketChoice::default());
        Self {
            carver: Carver::new(flows, packets, limits, options, seed, MOST_HELD),
            open: OpenFiles::default(),
            // 0 stands for none.
            together: Together::Recording(recording.max(1)),
            choices,
        }
    }

    /// Reads the file that comes next; `look` is told how many bytes and packets of it were read. Returns what became of files
    /// whose packets are all decided now.
    ///
    /// # Errors
    ///
    /// Where the file cannot be indexed, and where an index cannot be written.
    pub fn add(
        &mut self,
        capture: &Path,
        mut look: impl FnMut(u64, u64),
    ) -> anyhow::Result<Outcome> {
        let sidecar = Sidecar::of(capture).map_err(anyhow::Error::msg)?;
        let gathered = Gathered::new(sidecar.begin(self.together, self.choices)?);
        let place = self.open.put(OpenFile { sidecar, gathered, hurried: 0 })?;
        let failed = || format!("cannot index {}", capture.display());
        let file = File::open(capture).with_context(failed)?;
        let mut reader = Reader::new(file).with_context(failed)?;
        let mut batch = Batch::default();
        loop {
            let progress = reader.read_batch(&mut batch).with_context(failed)?;
            batch.packets.iter_mut().for_each(|packet| packet.interface |= place << PLACE);
            self.carver.batch(&batch, 1, &mut self.open).with_context(failed)?;
            look(reader.bytes_read(), reader.packets());
            if progress == Progress::End {
                break;
            }
        }
        self.open.whole(false)
    }

    /// Ends the recording. Returns what became of its last files.
    ///
    /// # Errors
    ///
    /// Where one cannot be written.
    pub fn finish(self) -> anyhow::Result<Outcome> {
        let Self { carver, mut open, .. } = self;
        carver.finish(&mut open).context("cannot write an index")?;
        open.whole(true)
    }
}

impl OpenFiles {
    /// Gives a file a place.
    fn put(&mut self, file: OpenFile) -> anyhow::Result<u32> {
        let free = self.files.iter().position(Option::is_none);
        let place = free.unwrap_or(self.files.len());
        ensure!(place < MOST_OPEN, "{MOST_OPEN} files wait for their packets to be decided");
        match self.files.get_mut(place) {
            Some(free) => *free = Some(file),
            None => self.files.push(Some(file)),
        }
        Ok(place as u32)
    }

    /// Ends the indexes of files whose packets are all decided; at the end there is no other.
    fn whole(&mut self, is_end: bool) -> anyhow::Result<Outcome> {
        let mut outcome = Outcome::default();
        for place in &mut self.files {
            let is_whole = |it: &OpenFile| it.gathered.decided() >= it.sidecar.packets();
            if let Some(file) = place.take_if(|it| is_end || is_whole(it)) {
                file.finish(&mut outcome)?;
            }
        }
        Ok(outcome)
    }

    /// The file that a packet is of.
    fn of(&mut self, packet: &Packet<'_>) -> Option<&mut OpenFile> {
        self.files.get_mut((packet.interface >> PLACE) as usize)?.as_mut()
    }
}

impl OpenFile {
    /// Ends the index, unless it would lack packets of connections.
    fn finish(self, outcome: &mut Outcome) -> anyhow::Result<()> {
        let Self { sidecar, gathered, hurried } = self;
        ensure!(
            gathered.decided() == sidecar.packets(),
            "a capture changed while it was indexed: it had {} packets, and then {}",
            sidecar.packets(),
            gathered.decided()
        );
        if hurried > 0 {
            outcome.left_out.push(format!(
                "{} has no index, which would lack some of {hurried} packets: while fragments waited for the rest of their datagrams, and SYNs for answers, they took more than {} MiB of memory",
                sidecar.capture().display(),
                MOST_HELD >> 20
            ));
            return Ok(());
        }
        gathered.finish().context("cannot write an index")?;
        // A bound of the recording may have removed the file meanwhile.
        outcome.written.extend(sidecar.finish()?);
        Ok(())
    }
}

impl TakeCarved for OpenFiles {
    const NUMBERS_ONLY: bool = true;

    fn number(&mut self, packet: &Packet<'_>) -> u64 {
        self.of(packet).map_or(0, |file| file.gathered.number())
    }

    fn packet(&mut self, carved: &Carved<'_>) -> io::Result<()> {
        let Some(file) = self.of(&carved.packet) else {
            return Err(io::Error::other("a packet of a file that is not open"));
        };
        file.hurried += u64::from(carved.is_hurried);
        self.bytes += file.gathered.packet(carved.number, carved.flows);
        if self.bytes > MOST_BYTES {
            self.bytes = 0;
            self.files.iter_mut().flatten().try_for_each(|file| file.gathered.flush())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::BufWriter;
    use std::path::PathBuf;

    use netsniff_packet::{LinkType, Timestamp};
    use netsniff_pcapfile::PcapWriter;

    use super::super::index_name;
    use super::super::read::Index;
    use super::*;
    use crate::carving::tests::{fragments, udp};

    /// A folder with captures, which goes in the end.
    struct Captures(PathBuf);

    impl Captures {
        fn new(name: &str) -> Self {
            let name = format!("netsniff-series-{name}-{}", std::process::id());
            let folder = std::env::temp_dir().join(name);
            let _ = fs::remove_dir_all(&folder);
            fs::create_dir_all(&folder).unwrap();
            Self(folder)
        }

        /// A capture of frames that come every millisecond from this second on.
        fn write(&self, second: i64, frames: &[Vec<u8>]) -> PathBuf {
            let path = self.0.join(format!("{second}.pcap"));
            let output = BufWriter::new(File::create(&path).unwrap());
            let mut writer = PcapWriter::new(output, LinkType::ETHERNET, 0).unwrap();
            for (at, data) in (0..).zip(frames) {
                let timestamp = Timestamp::from_secs_nanos(second, at * 1_000_000);
                let (wire_len, link_type) = (data.len() as u32, LinkType::ETHERNET);
                let packet = Packet { timestamp, data, wire_len, link_type, interface: 0 };
                writer.write_packet(&packet).unwrap();
            }
            writer.finish().unwrap();
            path
        }
    }

    impl Drop for Captures {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    /// Indexes captures with so little memory for what waits. Returns which of them have an index, and what was said.
    fn indexed(captures: &[PathBuf], most_held: usize) -> (Vec<bool>, Vec<String>) {
        let (limits, options) = (Limits::default(), Options::default());
        let naming = Naming { limits, options, choices: 1 };
        let mut series = Series::new(7, naming, 1);
        let (flows, packets) = (FlowChoice::default(), PacketChoice::default());
        let (limits, options) = (Limits::default(), Options::default());
        series.carver = Carver::new(flows, packets, limits, options, 1, most_held);
        let mut said = Vec::new();
        for capture in captures {
            said.extend(series.add(capture, |_, _| ()).unwrap().left_out);
        }
        said.extend(series.finish().unwrap().left_out);
        (captures.iter().map(|it| index_name(it).is_file()).collect(), said)
    }

    /// How many packets of connections an index has.
    fn packets(capture: &Path) -> usize {
        let file = File::open(index_name(capture)).unwrap();
        let len = file.metadata().unwrap().len();
        let wanted = Index::open(file, len).unwrap().packets_of(|_, _| true, 100_000).unwrap();
        let mut order = wanted.in_order();
        core::iter::from_fn(|| order.next(&wanted)).count()
    }

    #[test]
    fn a_lost_fragment_ends_no_index() {
        let folder = Captures::new("fragment");
        let [lonely, _] = fragments(&udp(3, 1000), 512);
        let many: Vec<_> = (0..500).map(|at| udp(2, at)).collect();
        let first = folder.write(1, &[&[lonely], &many[..]].concat());
        let captures = [first, folder.write(2, &many), folder.write(3, &many)];
        assert_eq!(indexed(&captures, 4000), (vec![true; 3], vec![]));
        assert_eq!(captures.each_ref().map(|it| packets(it)), [500; 3]);
    }

    /// Only the file concerned goes without.
    #[test]
    fn a_file_whose_fragments_take_too_much_memory_is_left_out_alone() {
        let folder = Captures::new("flood");
        let flood: Vec<_> = (0..99).map(|it| fragments(&udp(it, 1000), 512)[0].clone()).collect();
        let usual: Vec<_> = (0..50).map(|at| udp(2, at)).collect();
        let captures = [(1, &usual), (2, &flood), (3, &usual)];
        let captures = captures.map(|(second, frames)| folder.write(second, frames));
        let (have, said) = indexed(&captures, 4000);
        assert_eq!(have, [true, false, true], "{said:?}");
        assert!(said.len() == 1 && said[0].contains("2.pcap has no index"), "{said:?}");
        let left: Vec<_> = fs::read_dir(&folder.0).unwrap().collect();
        assert_eq!(left.len(), 5, "{left:?}");
    }
}
