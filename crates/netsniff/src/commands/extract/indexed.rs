//! Packets by indexes: only the blocks that have wanted packets are read.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, ErrorKind, Read as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use netsniff_analysis::{Limits, Options};
use netsniff_console::paths::is_stdin;
use netsniff_packet::{Batch, Progress, Source as _};
use netsniff_pipeline::carving::CarvingStatistics;
use netsniff_pipeline::carving::choice::{FlowChoice, PacketChoice};
use netsniff_pipeline::carving::index::excerpt::excerpt;
use netsniff_pipeline::carving::index::format::{Index, Together, choices};
use netsniff_pipeline::carving::index::pick::{Picked, Picker};
use netsniff_pipeline::carving::index::{Identity, index_name};

use super::READ_SIZE;
use super::args::ExtractArgs;
use super::written::Written;
use crate::commands::inputs::{Input, Inputs};

/// Packets that are looked up at most; more are found sooner by reading all.
const MOST_PACKETS: usize = 20_000_000;

/// Bytes that an index may have beyond those of its capture, however small that is.
const SMALLEST: u64 = 4096;

/// What connections are named by, besides the packets: a hash of the choices that change it, and of the version.
pub fn naming_choices(limits: &Limits, options: &Options) -> u64 {
    let version = env!("CARGO_PKG_VERSION");
    choices(&format!("{version} {limits:?} {:?}", options.tunnel_ports))
}

/// Whether any of the captures has an index.
pub(super) fn is_there(paths: &[PathBuf]) -> bool {
    paths.iter().any(|path| !is_stdin(path) && index_name(path).is_file())
}

/// Captures that are read by their indexes.
pub(super) struct Indexed {
    inputs: Inputs,
    files: Vec<Picked>,
}

/// Opens captures by their indexes.
///
/// # Errors
///
/// Why they do not serve, in a sentence without a full stop.
pub(super) fn open(
    args: &ExtractArgs,
    flows: &FlowChoice,
    paths: &[PathBuf],
) -> Result<Indexed, String> {
    let names = flows.names().ok_or("indexes serve conditions that name connections by uid")?;
    let wanted_choices = naming_choices(&args.limits(), &args.options());
    let identities = paths.iter().map(|path| Identity::of(path));
    let identities =
        identities.collect::<io::Result<Vec<_>>>().map_err(|error| error.to_string())?;
    let together = Together::Captures(Identity::of_all(&identities));
    let mut recording = None;
    let (mut parts, mut files, mut packets) = (Vec::new(), Vec::new(), 0);
    for path in paths {
        let (part, picked, of_all) =
            open_one(path, wanted_choices, |name| names.contains(&name))
                .map_err(|why| format!("{}: {why}", index_name(path).display()))?;
        // Files of one recording have the names of the whole of it, so that any of them may be left out.
        let is_of_recording =
            matches!(of_all, Together::Recording(_)) && *recording.get_or_insert(of_all) == of_all;
        if of_all != together && !is_of_recording {
            let said = "it was made of other captures together: netsniff index and extract take the same, in the same order, or files of one recording";
            return Err(format!("{}: {said}", index_name(path).display()));
        }
        packets += picked.len();
        if packets > MOST_PACKETS {
            return Err("indexes serve up to 20,000,000 packets".to_owned());
        }
        parts.push((path.clone(), part));
        files.push(picked);
    }
    let refused = |refused: crate::commands::inputs::Refused| {
        format!("{}: {}", refused.path.display(), refused.said)
    };
    Ok(Indexed { inputs: Inputs::out_of(parts, READ_SIZE).map_err(refused)?, files })
}

/// A capture with what is wanted of it, and those that it was indexed with.
fn open_one(
    path: &Path,
    wanted_choices: u64,
    wanted: impl Fn(u128) -> bool,
) -> Result<(Input, Picked, Together), String> {
    let now = Identity::of(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let bytes = read(&index_name(path), now.size).map_err(|error| match error.kind() {
        ErrorKind::NotFound => "there is no such index".to_owned(),
        _ => format!("cannot read: {error}"),
    })?;
    let index = Index::parse(&bytes)?;
    if index.header.capture != now {
        return Err("the capture was changed since".to_owned());
    }
    if index.header.choices != wanted_choices {
        let said = "it was made with another --timeout or --tunnel-ports, or by another version";
        return Err(said.to_owned());
    }
    let wanted = index.packets_of(wanted, MOST_PACKETS)?;
    let numbers: Vec<u64> = wanted.iter().map(|(number, _)| *number).collect();
    let file = File::open(path).map_err(|error| format!("cannot open the capture: {error}"))?;
    let (excerpt, read) = excerpt(file, now.size, &index.blocks, &numbers);
    Ok((Box::new(excerpt), Picked::new(read, wanted), index.header.together))
}

/// Reads an index, as far as that of a capture of `size` bytes can be long.
fn read(index: &Path, size: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(index)?.take(size.saturating_add(SMALLEST)).read_to_end(&mut bytes)?;
    Ok(bytes)
}

impl Indexed {
    /// Reads the blocks, and writes what is wanted.
    pub(super) fn carve(
        mut self,
        args: &ExtractArgs,
        packets: PacketChoice,
    ) -> anyhow::Result<(CarvingStatistics, BTreeSet<u128>)> {
        let mut picker = Picker::new(self.files, packets);
        let mut written = Written::new(args.output(), args.format());
        let failed = || format!("cannot write {}", args.output().display());
        let (mut batch, mut file_of) = (Batch::default(), Vec::new());
        loop {
            let Ok(state) = self.inputs.read_batch(&mut batch);
            written.describe(&self.inputs);
            let merged = &self.inputs.merged;
            let new = file_of.len() as u32..merged.interface_count() as u32;
            file_of.extend(new.filter_map(|it| merged.interface(it)).map(|(file, _)| file));
            picker.batch(&batch, &file_of, &mut written).with_context(failed)?;
            if state == Progress::End {
                break;
            }
        }
        // What was indexed was whole, and is the same still.
        anyhow::ensure!(!self.inputs.is_damaged(), "an index is wrong: make it again");
        let outcome = picker.finish().context("an index is wrong: make it again")?;
        written.finish(&self.inputs).with_context(failed)?;
        Ok(outcome)
    }
}
