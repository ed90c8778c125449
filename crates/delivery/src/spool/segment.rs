//! A file of the spool: who made its rows, and the rows.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use super::record::{Found, MOST, Record, frame, unframe};
use crate::Identity;

/// What every segment begins with; the number is that of the form.
const MAGIC: &[u8] = b"netsniff spool 1\n";
const EXTENSION: &str = "rows";

/// What is known of a segment.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Segment {
    /// Bytes that can be read.
    pub(super) readable: u64,
    /// Bytes that the file takes.
    pub(super) file_bytes: u64,
    /// Rows that were not delivered.
    pub(super) rows: u64,
    /// Whether nothing more will come.
    pub(super) is_ended: bool,
}

/// What a look through a file found.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Scan {
    pub(super) segment: Segment,
    /// Bytes that are no rows, though a row was whole there.
    pub(super) damaged: u64,
}

/// The path of a segment.
pub(super) fn path(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("{number:020}.{EXTENSION}"))
}

/// The numbers of all segments in a folder, in their order.
pub(super) fn numbers(folder: &Path) -> io::Result<Vec<u64>> {
    let mut numbers = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == EXTENSION) {
            let stem = path.file_stem().and_then(|stem| stem.to_str());
            numbers.extend(stem.and_then(|stem| stem.parse::<u64>().ok()));
        }
    }
    numbers.sort_unstable();
    Ok(numbers)
}

/// What a segment begins with.
pub(super) fn header(identity: &Identity) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    frame(&mut out, |out| {
        out.extend_from_slice(identity.sensor.as_bytes());
        out.push(b'\n');
        out.extend_from_slice(identity.run.as_bytes());
    });
    out
}

/// Who made the rows of a segment, and where they begin; `None` where the begin is not that of a segment.
pub(super) fn begin(bytes: &[u8]) -> Option<(Identity, u64)> {
    let Found::Whole(names, size) = unframe(bytes.strip_prefix(MAGIC)?) else { return None };
    let (sensor, run) = core::str::from_utf8(names).ok()?.split_once('\n')?;
    Some((Identity::new(sensor, run).ok()?, (MAGIC.len() + size) as u64))
}

/// Bytes that are more than any header.
pub(super) const HEADER_MOST: usize = 256;

/// Opens a file of a spool. Whoever may write into the folder must not lead us to a file elsewhere by a link, nor make us wait
/// for the writer of a pipe.
pub(super) fn open(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = options.custom_flags(flags.bits().cast_signed()).open(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::other(format!("{} is no file", path.display())))
    }
}

/// Looks through a segment that an earlier run left, from a place on. What a process was writing when it was killed is cut
/// off: nobody was promised it.
pub(super) fn scan(path: &Path, from: u64) -> io::Result<Scan> {
    let mut file = open(path, File::options().read(true))?;
    let file_bytes = file.metadata()?.len();
    let mut bytes = Vec::new();
    // No segment is longer, and what a file has beyond is not read: it may be endless.
    file.by_ref().take(SEGMENT_LONGEST).read_to_end(&mut bytes)?;
    let beyond = file_bytes.saturating_sub(bytes.len() as u64);
    let segment = |readable, rows| Segment { readable, file_bytes, rows, is_ended: true };
    let Some((_, first)) = begin(&bytes) else {
        let is_cut = bytes.len() < HEADER_MOST;
        let damaged = if is_cut { 0 } else { file_bytes };
        return Ok(Scan { segment: segment(0, 0), damaged });
    };
    let (mut at, mut rows) = (from.max(first), 0);
    loop {
        let rest = usize::try_from(at).ok().and_then(|at| bytes.get(at..)).unwrap_or_default();
        if rest.is_empty() {
            return Ok(Scan { segment: segment(at.min(file_bytes), rows), damaged: beyond });
        }
        match Record::read(rest) {
            Found::Whole(_, size) => (at, rows) = (at + size as u64, rows + 1),
            Found::Cut if beyond == 0 => {
                return Ok(Scan { segment: segment(at, rows), damaged: 0 });
            }
            Found::Cut | Found::Damaged => {
                let damaged = rest.len() as u64 + beyond;
                return Ok(Scan { segment: segment(at, rows), damaged });
            }
        }
    }
}

/// The most bytes that a segment has: its bound, and a piece that was begun below it.
const SEGMENT_LONGEST: u64 = super::SEGMENT_MOST + RECORD_MOST + HEADER_MOST as u64 + (64 << 10);

/// The most bytes that one record may need to be read.
pub(super) const RECORD_MOST: u64 = MOST as u64 + 8;
