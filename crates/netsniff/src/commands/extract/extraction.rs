//! An extraction by reading all of the files: what the command runs without indexes, and what other programs run.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io;

use netsniff_analysis::Uid;
use netsniff_packet::{Batch, Progress, Source as _};
use netsniff_pipeline::carving::{Carver, CarvingStatistics, TakeCarved};

use super::READ_SIZE;
use super::args::ExtractArgs;
use super::choose::choose;
use crate::commands::inputs::Inputs;

/// Files, and which packets of them are wanted.
pub struct Extraction {
    carver: Carver,
    inputs: Inputs,
    missing_files: Vec<Uid>,
}

impl core::fmt::Debug for Extraction {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Extraction").field("carver", &self.carver).finish_non_exhaustive()
    }
}

/// What came of an extraction.
#[derive(Clone, Debug, Default)]
pub struct Extracted {
    /// Packets that were read, taken, and decided before all was known of them.
    pub statistics: CarvingStatistics,
    /// Connections and files that were asked for and that are not in the input.
    pub missing: Vec<Uid>,
    /// What is wrong with the files, in sentences.
    pub damage: Vec<String>,
}

impl Extraction {
    /// Opens the files, and finds out which connections are wanted.
    ///
    /// # Errors
    ///
    /// [`UsageError`](netsniff_console::UsageError), and a file that cannot be read.
    pub fn open(args: &ExtractArgs) -> anyhow::Result<Self> {
        let paths = args.inputs()?;
        let opened = || {
            let (inputs, refused) = Inputs::open(&paths, READ_SIZE);
            match refused.first() {
                Some(first) => anyhow::bail!("{}: {}", first.path.display(), first.said),
                None => Ok(inputs),
            }
        };
        let (packets, options, seed) = (args.packets()?, args.options()?, seed());
        let (condition, mut flows) = (args.condition()?, args.flows());
        let mut missing_files = Vec::new();
        if args.reads_twice() {
            let chosen = choose(args, options.clone(), condition, &mut opened()?, seed)?;
            flows.chosen(chosen.uids);
            missing_files = chosen.missing_files;
        }
        let mut inputs = opened()?;
        inputs.merged.keep_notes();
        let carver = Carver::new(flows, packets, args.limits(), options, seed, args.hold());
        Ok(Self { carver, inputs, missing_files })
    }

    /// Reads the files to their end. `taker` gets the packets in their order, and ends the extraction by an error.
    ///
    /// # Errors
    ///
    /// Those of `taker`.
    pub fn run<T: TakeCarved>(self, taker: &mut T) -> io::Result<Extracted> {
        let Self { carver, mut inputs, missing_files } = self;
        let (statistics, mut missing) = carved(carver, &mut inputs, taker, |_, _| {})?;
        missing.extend(missing_files);
        Ok(Extracted { statistics, missing, damage: inputs.damage().collect() })
    }
}

/// Reads the files to their end; `taken` hears of each piece before its packets are handed on.
pub(super) fn carved<T: TakeCarved>(
    mut carver: Carver,
    inputs: &mut Inputs,
    taker: &mut T,
    mut taken: impl FnMut(&Inputs, &mut T),
) -> io::Result<(CarvingStatistics, Vec<Uid>)> {
    let mut batch = Batch::default();
    loop {
        let Ok(state) = inputs.read_batch(&mut batch);
        taken(inputs, taker);
        carver.batch(&batch, inputs.merged.interface_count(), taker)?;
        if state == Progress::End {
            return carver.finish(taker);
        }
    }
}

/// Protects tables from senders who aim at them.
pub(super) fn seed() -> u64 {
    RandomState::new().build_hasher().finish()
}
