//! Packets by indexes: only the blocks that have wanted packets are read.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use netsniff_analysis::{Limits, Options};
use netsniff_console::paths::is_stdin;
use netsniff_packet::{Batch, Progress, Source as _};
use netsniff_pipeline::carving::CarvingStatistics;
use netsniff_pipeline::carving::choice::{FlowChoice, PacketChoice};
use netsniff_pipeline::carving::index::excerpt::Chooser;
use netsniff_pipeline::carving::index::format::{Together, choices};
use netsniff_pipeline::carving::index::pick::{Picked, Picker};
use netsniff_pipeline::carving::index::read::Index;
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
    options: &Options,
    flows: &FlowChoice,
    paths: &[PathBuf],
) -> Result<Indexed, String> {
    if !flows.names_flows() {
        return Err("indexes serve conditions on connections".to_owned());
    }
    if options.anonymizer.is_some() {
        return Err("indexes have the uids of true addresses".to_owned());
    }
    let wanted_choices = naming_choices(&args.limits(), options);
    let identities = paths.iter().map(|path| Identity::of(path));
    let identities =
        identities.collect::<io::Result<Vec<_>>>().map_err(|error| error.to_string())?;
    let together = Together::Captures(Identity::of_all(&identities));
    let mut recording = None;
    let (mut parts, mut files, mut packets) = (Vec::new(), Vec::new(), 0);
    for path in paths {
        let (part, picked, of_all) = open_one(path, wanted_choices, flows)
            .map_err(|why| format!("{}: {why}", index_name(path).display()))?;
        // Files of one recording have the names of the whole of it, so that any of them may be left out.
        let is_of_recording =
            matches!(of_all, Together::Recording(_)) && *recording.get_or_insert(of_all) == of_all;
        if is_of_recording && args.reads_twice() {
            let said = "it has the uids of its whole recording, and --where and --fuid find those of the files at hand";
            return Err(format!("{}: {said}", index_name(path).display()));
        }
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
    let mut inputs = Inputs::out_of(parts, READ_SIZE).map_err(refused)?;
    inputs.merged.keep_notes();
    Ok(Indexed { inputs, files })
}

/// A capture with what is wanted of it, and those that it was indexed with.
fn open_one(
    path: &Path,
    wanted_choices: u64,
    flows: &FlowChoice,
) -> Result<(Input, Picked, Together), String> {
    let now = Identity::of(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut index = index_of(path, now.size)?;
    if index.header.capture != now {
        return Err("the capture was changed since".to_owned());
    }
    if index.header.choices != wanted_choices {
        let said = "it was made with another --timeout or --tunnel-ports, or by another version";
        return Err(said.to_owned());
    }
    let wanted =
        index.packets_of(|name, community| flows.wants_indexed(name, community), MOST_PACKETS)?;
    let numbers: Vec<u64> = wanted.iter().map(|(number, _)| *number).collect();
    let mut chooser = Chooser::new(&numbers);
    index.blocks(|block| chooser.block(block))?;
    let file = File::open(path).map_err(|error| format!("cannot open the capture: {error}"))?;
    let (excerpt, read) = chooser.finish(file, now.size);
    Ok((Box::new(excerpt), Picked::new(read, wanted), index.header.together))
}

/// Opens the index of a capture of `size` bytes, which cannot be much longer.
fn index_of(capture: &Path, size: u64) -> Result<Index<File>, String> {
    let name = index_name(capture);
    // Who opens a pipe waits for its writer.
    if name.metadata().is_ok_and(|metadata| !metadata.is_file()) {
        return Err("it is no regular file".to_owned());
    }
    let opened = File::open(name).and_then(|file| Ok((file.metadata()?.len(), file)));
    let (len, file) = opened.map_err(|error| match error.kind() {
        ErrorKind::NotFound => "there is no such index".to_owned(),
        _ => format!("cannot read: {error}"),
    })?;
    if len > size.saturating_add(SMALLEST) {
        return Err("it is longer than its capture".to_owned());
    }
    Index::open(file, len)
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
