//! Indexes of captures that come one after the other and are one traffic, as a recording makes them.
//!
//! One analysis goes through all of them, so that a connection has one name in all of its files. The index of a file is
//! whole once each of its packets is decided, which for the last ones may take packets of the next file.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;

use anyhow::{Context as _, ensure};
use netsniff_analysis::{Limits, Options};
use netsniff_packet::{Batch, Progress, Source as _};
use netsniff_pcapfile::Reader;

use super::build::{Gathered, MOST_BYTES};
use super::format::Together;
use super::sidecar::{Sidecar, Written};
use crate::carving::choice::{FlowChoice, PacketChoice};
use crate::carving::{Carved, Carver, TakeCarved};

/// Bytes of packets that may wait until it is known which connections they belong to. Their content is not kept.
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
    gathered: Gathered<BufWriter<File>>,
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

    /// Reads the file that comes next. Returns the indexes that are whole now.
    ///
    /// # Errors
    ///
    /// Where the file cannot be indexed, and where an index cannot be written.
    pub fn add(&mut self, capture: &Path) -> anyhow::Result<Vec<Written>> {
        let sidecar = Sidecar::of(capture).map_err(anyhow::Error::msg)?;
        let gathered = Gathered::new(sidecar.begin(self.together, self.choices)?);
        let place = self.open.put(OpenFile { sidecar, gathered })?;
        let failed = || format!("cannot index {}", capture.display());
        let file = File::open(capture).with_context(failed)?;
        let mut reader = Reader::new(file).with_context(failed)?;
        let mut batch = Batch::default();
        loop {
            let progress = reader.read_batch(&mut batch).with_context(failed)?;
            batch.packets.iter_mut().for_each(|packet| packet.interface |= place << PLACE);
            self.carver.batch(&batch, 1, &mut self.open).with_context(failed)?;
            if progress == Progress::End {
                break;
            }
        }
        ensure!(
            self.carver.statistics().hurried == 0,
            "packets of fragments, or in front of them, took more than {} MiB of memory while they waited: an index would lack some",
            MOST_HELD >> 20
        );
        self.open.whole(false)
    }

    /// Ends the recording. Returns the indexes of its last files.
    ///
    /// # Errors
    ///
    /// Where one cannot be written.
    pub fn finish(self) -> anyhow::Result<Vec<Written>> {
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
    fn whole(&mut self, is_end: bool) -> anyhow::Result<Vec<Written>> {
        let mut written = Vec::new();
        for place in &mut self.files {
            let is_whole = |it: &OpenFile| it.gathered.packets() >= it.sidecar.packets();
            let Some(OpenFile { sidecar, gathered }) = place.take_if(|it| is_end || is_whole(it))
            else {
                continue;
            };
            ensure!(
                gathered.packets() == sidecar.packets(),
                "a capture changed while it was indexed: it had {} packets, and then {}",
                sidecar.packets(),
                gathered.packets()
            );
            gathered.finish().context("cannot write an index")?;
            // A bound of the recording may have removed the file meanwhile.
            written.extend(sidecar.finish()?);
        }
        Ok(written)
    }
}

impl TakeCarved for OpenFiles {
    const WANTS_BYTES: bool = false;

    fn packet(&mut self, carved: &Carved<'_>) -> io::Result<()> {
        let place = self.files.get_mut((carved.packet.interface >> PLACE) as usize);
        let Some(file) = place.and_then(Option::as_mut) else {
            return Err(io::Error::other("a packet of a file that is not open"));
        };
        self.bytes += file.gathered.packet(carved.flows);
        if self.bytes > MOST_BYTES {
            self.bytes = 0;
            self.files.iter_mut().flatten().try_for_each(|file| file.gathered.flush())?;
        }
        Ok(())
    }
}
