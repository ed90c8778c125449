//! Connections that have another uid in some files of a recording than in the whole of it, by which its indexes name them:
//! they began in a file that is not at hand.

use netsniff_analysis::{Options, Uid};
use netsniff_console::terminal::progress::ProgressLine;
use netsniff_pipeline::carving::choice::{FlowChoice, PacketChoice};
use netsniff_pipeline::carving::index::Identity;
use netsniff_pipeline::carving::index::build::Builder;
use netsniff_pipeline::carving::index::format::{Header, Together, Writer};
use netsniff_pipeline::carving::{Carver, CarvingStatistics};

use super::args::ExtractArgs;
use super::index::gather;
use crate::commands::inputs::Inputs;

/// Reads all files, and returns for each an index of the connections with these uids, in memory.
///
/// # Errors
///
/// Where an index cannot be made.
pub(super) fn indexes(
    args: &ExtractArgs,
    options: Options,
    uids: Vec<Uid>,
    inputs: &mut Inputs,
    seed: u64,
) -> anyhow::Result<(CarvingStatistics, Vec<Vec<u8>>)> {
    let mut flows = FlowChoice::default();
    flows.named(uids);
    let packets = PacketChoice::default();
    let carver = Carver::new(flows, packets, args.limits(), options, seed, args.hold());
    let capture = Identity { size: 0, modified: 0, head: 0 };
    // Whoever reads it wants nothing but packets of connections.
    let header = Header { capture, together: Together::Captures(0), choices: 0 };
    let writers = inputs.iter().map(|_| Writer::new(Vec::new(), &header, &[]));
    let builder = Builder::new(writers.collect::<std::io::Result<_>>()?);
    let mut progress = ProgressLine::new(inputs.size(), args.quiet());
    gather(inputs, builder, carver, &mut progress)
}
