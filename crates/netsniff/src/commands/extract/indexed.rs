//! Packets by indexes: only the blocks that have wanted packets are read.

use std::collections::BTreeSet;
use std::fs::{File, Metadata};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use netsniff_analysis::{Limits, Options, Uid};
use netsniff_console::paths::is_stdin;
use netsniff_console::trust;
use netsniff_packet::{Batch, Progress, Source as _};
use netsniff_pipeline::carving::CarvingStatistics;
use netsniff_pipeline::carving::choice::{FlowChoice, PacketChoice};
use netsniff_pipeline::carving::index::excerpt::Chooser;
use netsniff_pipeline::carving::index::format::{Together, choices};
use netsniff_pipeline::carving::index::pick::{Picked, Picker};
use netsniff_pipeline::carving::index::read::Index;
use netsniff_pipeline::carving::index::wanted::Wanted;
use netsniff_pipeline::carving::index::{Identity, index_name, open_regular};

use super::READ_SIZE;
use super::args::ExtractArgs;
use super::written::Written;
use crate::commands::inputs::{Input, Inputs, allow_files};

/// Memory for wanted packets that are looked up: a byte or two for each. More are found sooner by reading all.
const MOST_WANTED: usize = 256 << 20;

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

/// What indexes tell of captures.
pub(super) struct LookedUp {
    captures: Vec<Capture>,
    /// Whether they are files of one recording, whose indexes have the names of the whole of it.
    is_recording: bool,
}

/// What the index of a capture tells.
struct Capture {
    path: PathBuf,
    size: u64,
    index: Index<File>,
    wanted: Wanted,
}

/// Captures that are read by their indexes.
pub(super) struct Indexed {
    inputs: Inputs,
    files: Vec<Picked>,
}

/// Looks wanted packets up.
///
/// # Errors
///
/// Why indexes do not serve, in a sentence without a full stop.
pub(super) fn look_up(
    args: &ExtractArgs,
    options: &Options,
    flows: &FlowChoice,
    paths: &[PathBuf],
) -> Result<LookedUp, String> {
    if !flows.names_flows() {
        return Err("indexes serve conditions on connections".to_owned());
    }
    if options.anonymizer.is_some() {
        return Err("indexes have the uids of true addresses".to_owned());
    }
    let wanted_choices = naming_choices(&args.limits(), options);
    let identity =
        |path: &PathBuf| Identity::of(path).map_err(|error| format!("{}: {error}", path.display()));
    let identities = paths.iter().map(identity).collect::<Result<Vec<_>, _>>()?;
    let together = Together::Captures(Identity::of_all(&identities));
    allow_files(paths.len());
    let mut recording = None;
    let (mut captures, mut memory) = (Vec::new(), 0);
    for path in paths {
        let told = |why: &str| format!("{}: {why}", index_name(path).display());
        let capture = Capture::look_up(path, wanted_choices, flows, MOST_WANTED - memory)
            .map_err(|why| told(&why))?;
        let of_all = capture.index.header.together;
        // Files of one recording have the names of the whole of it, so that any of them may be left out.
        let is_of_recording =
            matches!(of_all, Together::Recording(_)) && *recording.get_or_insert(of_all) == of_all;
        if is_of_recording && args.reads_twice() {
            let said = "it has the uids of its whole recording, and --where and --fuid find those of the files at hand";
            return Err(told(said));
        }
        if of_all != together && !is_of_recording {
            let said = "it was made of other captures together: netsniff index and extract take the same, in the same order, or files of one recording";
            return Err(told(said));
        }
        memory += capture.wanted.memory();
        captures.push(capture);
    }
    Ok(LookedUp { captures, is_recording: recording.is_some() })
}

impl Capture {
    fn look_up(
        path: &Path,
        wanted_choices: u64,
        flows: &FlowChoice,
        most: usize,
    ) -> Result<Self, String> {
        let told = |error: io::Error| format!("{}: {error}", path.display());
        let now = Identity::of(path).map_err(told)?;
        let mut index = index_of(path, &path.metadata().map_err(told)?)?;
        if index.header.capture != now {
            return Err("the capture was changed since".to_owned());
        }
        if index.header.choices != wanted_choices {
            let said =
                "it was made with another --timeout or --tunnel-ports, or by another version";
            return Err(said.to_owned());
        }
        let wanted =
            index.packets_of(|name, community| flows.wants_indexed(name, community), most)?;
        Ok(Self { path: path.to_owned(), size: now.size, index, wanted })
    }

    /// It with nothing but the blocks that wanted packets lie in, or that are always read.
    fn open(mut self) -> Result<((PathBuf, Input), Picked), String> {
        let mut order = self.wanted.in_order();
        let numbers = core::iter::from_fn(|| order.next(&self.wanted).map(|(number, _)| number));
        let mut chooser = Chooser::new(numbers);
        self.index.blocks(|block| chooser.block(block))?;
        let (file, _) = open_regular(&self.path)
            .map_err(|error| format!("cannot open the capture: {error}"))?;
        let (excerpt, read) = chooser.finish(file, self.size);
        Ok(((self.path, Box::new(excerpt)), Picked::new(read, self.wanted)))
    }
}

impl LookedUp {
    /// Connections of files of a recording that were named, and of which no index has a packet: they may have these names
    /// where the recording is read from the files at hand on.
    pub(super) fn unknown(&self, flows: &FlowChoice) -> Vec<Uid> {
        if !self.is_recording {
            return Vec::new();
        }
        let names = self.captures.iter().flat_map(|capture| capture.wanted.names());
        flows.missing_in(&names.collect())
    }

    /// Adds packets of further connections, which another index of each capture has.
    ///
    /// # Errors
    ///
    /// Where they take too much memory.
    pub(super) fn add(&mut self, indexes: Vec<Vec<u8>>) -> Result<(), String> {
        for (capture, bytes) in self.captures.iter_mut().zip(indexes) {
            let len = bytes.len() as u64;
            let mut index = Index::open(io::Cursor::new(bytes), len)?;
            capture.wanted.append(&index.packets_of(|_, _| true, MOST_WANTED)?);
        }
        Ok(())
    }

    /// Opens the captures.
    ///
    /// # Errors
    ///
    /// Why they cannot be read by their indexes, in a sentence without a full stop.
    pub(super) fn open(self) -> Result<Indexed, String> {
        let (mut parts, mut files) = (Vec::new(), Vec::new());
        for capture in self.captures {
            let name = index_name(&capture.path);
            let (part, picked) =
                capture.open().map_err(|why| format!("{}: {why}", name.display()))?;
            parts.push(part);
            files.push(picked);
        }
        let refused = |refused: crate::commands::inputs::Refused| {
            format!("{}: {}", refused.path.display(), refused.said)
        };
        let mut inputs = Inputs::out_of(parts, READ_SIZE).map_err(refused)?;
        inputs.merged.keep_notes();
        Ok(Indexed { inputs, files })
    }
}

/// Opens the index of a capture with these facts, which cannot be much longer.
fn index_of(capture: &Path, facts: &Metadata) -> Result<Index<File>, String> {
    let (file, own) = open_regular(&index_name(capture)).map_err(|error| match error.kind() {
        ErrorKind::NotFound => "there is no such index".to_owned(),
        ErrorKind::Other => error.to_string(),
        _ => format!("cannot read: {error}"),
    })?;
    // Whoever makes one says which packets are found: it could hide some, or pass others off.
    trust::check_beside(&own, facts)
        .map_err(|who| format!("{who}, who cannot write the capture"))?;
    if own.len() > facts.len().saturating_add(SMALLEST) {
        return Err("it is longer than its capture".to_owned());
    }
    Index::open(file, own.len())
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
