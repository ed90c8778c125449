//! Which packets of a capture belong to which connection, in a small file beside it.
//!
//! `day.pcapng.nsi` has a table of the blocks that the capture can be read in, and for each connection the numbers of its
//! packets. With it only the blocks of wanted packets are read.
//!
//! | module | concern |
//! |---|---|
//! | [`build`] | packets of connections, as the carver tells them, on their way into the file |
//! | [`blocks`] | where a capture can be read from |
//! | [`sidecar`] | the file beside a capture, until it is whole |
//! | [`series`] | indexes of captures that come one after the other, as a recording makes them |
//! | [`mod@format`] | the bytes of the file |
//! | [`read`] | reading it, in little memory |
//! | [`wanted`] | wanted packets, in their order |
//! | [`excerpt`] | a capture of which only some blocks are read |
//! | [`pick`] | wanted packets out of excerpts |

pub mod blocks;
pub mod build;
pub mod excerpt;
pub mod format;
pub mod pick;
pub mod read;
pub mod series;
pub mod sidecar;
pub mod wanted;

use std::ffi::OsString;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use netsniff_packet::fnv;

/// Bytes at the begin of a capture by which it is known again.
const HEAD: u64 = 64 << 10;

/// What a capture file is known by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Its size in bytes.
    pub size: u64,
    /// When it was last changed, in nanoseconds since 1970.
    pub modified: i64,
    /// A hash of its first bytes.
    pub head: u64,
}

impl Identity {
    /// Of a file as it is now.
    ///
    /// # Errors
    ///
    /// Where it cannot be read, and of what is no regular file.
    pub fn of(path: &Path) -> io::Result<Self> {
        let (file, metadata) = open_regular(path)?;
        let since = metadata.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut bytes = Vec::new();
        file.take(HEAD).read_to_end(&mut bytes)?;
        Ok(Self {
            size: metadata.len(),
            modified: i64::try_from(since.as_nanos()).unwrap_or(i64::MAX),
            head: fnv::add(fnv::BASIS, &bytes),
        })
    }

    /// A hash of several captures, which are analysed as one.
    #[must_use]
    pub fn of_all(all: &[Self]) -> u64 {
        all.iter().fold(fnv::BASIS, |sum, it| {
            let words = [it.size, it.modified.cast_unsigned(), it.head];
            words.iter().fold(sum, |sum, word| fnv::add(sum, &word.to_le_bytes()))
        })
    }
}

/// The name of the index of a capture: that of the capture with `.nsi` behind it.
#[must_use]
pub fn index_name(capture: &Path) -> PathBuf {
    let mut name = OsString::from(capture);
    name.push(".nsi");
    name.into()
}

/// Opens a file for reading, with what is known of it. A pipe is refused at once: who opens one waits for its writer, and
/// takes what another reader is to have.
///
/// # Errors
///
/// Where it cannot be opened, and of what is no regular file.
pub fn open_regular(path: &Path) -> io::Result<(File, Metadata)> {
    let refused = || io::Error::other("it is no regular file");
    if !path.metadata()?.is_file() {
        return Err(refused());
    }
    let mut options = OpenOptions::new();
    options.read(true);
    // It may have become a pipe since.
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(
        &mut options,
        rustix::fs::OFlags::NONBLOCK.bits().cast_signed(),
    );
    let file = options.open(path)?;
    let metadata = file.metadata()?;
    if metadata.is_file() { Ok((file, metadata)) } else { Err(refused()) }
}
