//! The capture files of one analysis: opened, read as one, and what is wrong with them.

mod follow;
mod open_files;
mod reordered;
pub(crate) mod span;

use std::convert::Infallible;
use std::fs::File;
use std::io::{IsTerminal as _, Read, stdin};
use std::path::{Path, PathBuf};
use std::time::Duration;

use netsniff_console::paths::is_stdin;
use netsniff_console::say;
use netsniff_packet::{Batch, Progress, Source};
use netsniff_pcapfile::{Error, Merged, Reader};

use self::follow::Followed;
pub(crate) use self::open_files::allow_files;
use self::reordered::Reordered;
use self::span::{LeftOut, Span, Within};

/// Bytes from a file or from standard input.
pub(crate) type Input = Box<dyn Read + Send>;

/// A file of which packets are read.
#[derive(Debug)]
pub(crate) struct CaptureFile {
    /// Its name as it was given, or `standard input`.
    pub(crate) name: String,
    path: PathBuf,
    /// Its size in bytes when it was opened, if it is a regular file.
    pub(crate) size: Option<u64>,
    /// Why it could not be read to its end.
    pub(crate) failure: Option<String>,
}

/// A file of which nothing can be read.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) path: PathBuf,
    pub(crate) missing: bool,
    /// What is wrong with it, and what to do.
    pub(crate) said: String,
}

/// Several files read as one, by time. A file that cannot be read on ends alone.
pub(crate) struct Inputs {
    pub(crate) files: Vec<CaptureFile>,
    pub(crate) merged: Merged<Input>,
    /// Puts packets back into the order of their stamps, where that is wanted.
    reordered: Option<Reordered>,
    /// Takes packets of other times out, where that is wanted.
    within: Option<Within>,
    /// A file or directory that grows while it is read, if one does.
    followed: Option<Followed>,
}

impl Inputs {
    /// Opens the files, to be read in pieces of `read_size` bytes; those that are no capture come
    /// back apart.
    pub(crate) fn open(paths: &[PathBuf], read_size: usize) -> (Self, Vec<Refused>) {
        allow_files(paths.len());
        let (mut files, mut readers, mut refused) = (Vec::new(), Vec::new(), Vec::new());
        for path in paths {
            match open(path, read_size) {
                Ok((file, reader)) => {
                    files.push(file);
                    readers.push(reader);
                }
                Err(error) => refused.push(error),
            }
        }
        (Self::of(files, readers), refused)
    }

    /// Reads captures out of what stands for their files, as [`Self::open`] does out of files.
    pub(crate) fn out_of(parts: Vec<(PathBuf, Input)>, read_size: usize) -> Result<Self, Refused> {
        let (mut files, mut readers) = (Vec::new(), Vec::new());
        for (path, input) in parts {
            let (file, reader) = capture(&path, input, None, read_size)?;
            files.push(file);
            readers.push(reader);
        }
        Ok(Self::of(files, readers))
    }

    fn of(files: Vec<CaptureFile>, readers: Vec<Reader<Input>>) -> Self {
        let merged = Merged::new(readers);
        Self { files, merged, reordered: None, within: None, followed: None }
    }

    /// Reads a file as it grows, or the files of a directory as they come, until a signal that ends processes, or until
    /// nobody can add to what is read.
    ///
    /// # Errors
    ///
    /// Where the path cannot be looked at, or signals cannot be listened for.
    pub(crate) fn follow(path: &Path, read_size: usize) -> anyhow::Result<Self> {
        let mut inputs = Self::of(Vec::new(), Vec::new());
        inputs.followed = Some(Followed::new(path, read_size)?);
        inputs.go_on();
        Ok(inputs)
    }

    /// Begins the next file of what is followed. Returns whether there is one.
    fn go_on(&mut self) -> bool {
        let Some(followed) = &mut self.followed else { return false };
        if let Some(left) = self.files.last_mut() {
            // Whether it grew since is told at the end.
            left.size = followed.leave();
        }
        let Some((file, reader)) = followed.next() else { return false };
        self.files.push(file);
        self.merged.push(reader);
        true
    }

    /// How several files are read.
    pub(crate) const fn order(&self) -> &'static str {
        if self.followed.is_some() { "one after the other" } else { "merged by time" }
    }

    /// The paths of the files, by which [`open_again`] finds them.
    pub(crate) fn paths(&self) -> Vec<PathBuf> {
        self.files.iter().map(|file| file.path.clone()).collect()
    }

    /// Whether the next packet may be waited for.
    pub(crate) fn may_wait(&self) -> bool {
        self.followed.is_some() || self.size().is_none()
    }

    /// Whether files of what is followed are not in the logs, or not whole.
    pub(crate) fn lacks_files(&self) -> bool {
        let grew = || self.files.iter().any(|file| file.grown().is_some());
        self.followed.as_ref().is_some_and(|followed| followed.refused() > 0 || grew())
    }

    /// Lets packets wait for those with earlier stamps, for no longer than `window`.
    pub(crate) fn reorder(&mut self, window: Duration) {
        self.reordered = Some(Reordered::new(window));
    }

    /// Reads only the packets that are stamped within a span, where there is one.
    #[must_use]
    pub(crate) fn within(mut self, span: Option<Span>) -> Self {
        self.within = span.map(Within::new);
        self
    }

    /// Packets that were read and are of other times; `None` where all are wanted.
    pub(crate) fn left_out(&self) -> Option<&LeftOut> {
        self.within.as_ref().map(Within::left_out)
    }

    /// What puts packets into order; `None` where nothing does.
    pub(crate) const fn reordered(&self) -> Option<&Reordered> {
        self.reordered.as_ref()
    }

    /// The size of all files together; `None` where it is not known of one.
    pub(crate) fn size(&self) -> Option<u64> {
        self.files.iter().map(|file| file.size).sum()
    }

    /// Bytes read so far, before unpacking.
    pub(crate) fn bytes_read(&self) -> u64 {
        self.merged.readers().map(Reader::bytes_read).sum()
    }

    /// Packets read so far.
    pub(crate) fn packets(&self) -> u64 {
        self.merged.readers().map(Reader::packets).sum()
    }

    /// Says what is wrong with the files that were read, and returns whether anything is.
    pub(crate) fn report_damage(&self) -> bool {
        self.damage().for_each(|line| say(&line));
        self.is_damaged()
    }

    /// Whether anything is wrong with the files that were read.
    pub(crate) fn is_damaged(&self) -> bool {
        self.damage().next().is_some()
    }

    /// What is wrong with them, in sentences.
    pub(crate) fn damage(&self) -> impl Iterator<Item = String> {
        self.iter().flat_map(|(file, reader)| {
            let failure = file.failure.iter().map(|failure| format!("{}: {failure}", file.name));
            let places = reader.damage().iter().map(|damage| format!("{}: {damage}", file.name));
            failure.chain(places)
        })
    }

    /// Each file with its reader.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&CaptureFile, &Reader<Input>)> {
        self.files.iter().zip(self.merged.readers())
    }
}

impl Source for Inputs {
    type Error = Infallible;

    fn read_batch(&mut self, batch: &mut Batch) -> Result<Progress, Infallible> {
        let Some(mut reordered) = self.reordered.take() else { return Ok(self.read(batch)) };
        let progress = reordered.read_batch(batch, |batch| self.read(batch));
        self.reordered = Some(reordered);
        Ok(progress)
    }
}

impl Inputs {
    /// Reads the next packets that are wanted, as they stand in the files.
    fn read(&mut self, batch: &mut Batch) -> Progress {
        let progress = self.read_all(batch);
        if let Some(within) = &mut self.within {
            within.filter(batch);
        }
        progress
    }

    /// Reads the next packets as they stand in the files. A batch ends where a file fails: there, too, another one may be
    /// what comes next.
    fn read_all(&mut self, batch: &mut Batch) -> Progress {
        match self.merged.read_batch(batch) {
            Ok(Progress::More) => Progress::More,
            Ok(Progress::End) if self.go_on() => Progress::More,
            Ok(Progress::End) => Progress::End,
            Err(error) => {
                if let Some(file) = self.files.get_mut(error.input) {
                    file.failure = Some(error.source.to_string());
                }
                Progress::More
            }
        }
    }
}

impl CaptureFile {
    /// Its size now, if it is larger than when it was opened.
    pub(crate) fn grown(&self) -> Option<u64> {
        let now = self.path.metadata().ok()?.len();
        self.size.is_some_and(|size| now > size).then_some(now)
    }
}

fn open(path: &Path, read_size: usize) -> Result<(CaptureFile, Reader<Input>), Refused> {
    let refused = |said: String| Refused {
        path: path.to_owned(),
        missing: false,
        said: said.trim().to_owned(),
    };
    let (input, size): (Input, _) = if is_stdin(path) {
        if stdin().is_terminal() {
            return Err(refused("it is a terminal; pipe a capture file into it".to_owned()));
        }
        (Box::new(stdin()), None)
    } else {
        let file = File::open(path).map_err(|error| Refused {
            missing: error.kind() == std::io::ErrorKind::NotFound,
            ..refused(format!("cannot open: {error}"))
        })?;
        let metadata = file.metadata().map_err(|error| refused(format!("cannot read: {error}")))?;
        if metadata.is_dir() {
            let files = path.join("*.pcap");
            let said = "a directory, not a capture file; name the files in it";
            return Err(refused(format!("{said}, as {}", files.display())));
        }
        (Box::new(file), metadata.is_file().then_some(metadata.len()))
    };
    capture(path, input, size, read_size)
}

/// Opens a capture that is read already, if that can be done.
pub(crate) fn open_again(path: &Path, read_size: usize) -> Option<Reader<Input>> {
    let is_file = !is_stdin(path) && path.metadata().is_ok_and(|metadata| metadata.is_file());
    is_file.then(|| open(path, read_size).ok())?.map(|(_, reader)| reader)
}

/// The file and reader of a capture, out of `input`.
fn capture(
    path: &Path,
    input: Input,
    size: Option<u64>,
    read_size: usize,
) -> Result<(CaptureFile, Reader<Input>), Refused> {
    let reader = Reader::with_read_size(input, read_size).map_err(|error| Refused {
        path: path.to_owned(),
        missing: false,
        said: format!("{error}{}", remedy(&error, path).unwrap_or_default()).trim().to_owned(),
    })?;
    let name =
        if is_stdin(path) { "standard input".to_owned() } else { path.display().to_string() };
    Ok((CaptureFile { name, path: path.to_owned(), size, failure: None }, reader))
}

/// What the user can do about a file that cannot be read.
fn remedy(error: &Error, path: &Path) -> Option<String> {
    let Error::Other(what) = error else { return None };
    let unpacker = [("xz", "xz -dc"), ("bzip2", "bzip2 -dc"), ("a zip", "unzip -p")];
    let (_, command) = unpacker.iter().find(|(name, _)| what.starts_with(name))?;
    Some(format!("; unpack it: {command} {} | netsniff analyze -", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use netsniff_packet::{LinkType, Packet, Timestamp};
    use netsniff_pcapfile::PcapWriter;

    /// A file of `packets` packets, one a second.
    fn capture(packets: i64) -> Vec<u8> {
        capture_at(0, packets)
    }

    /// The same, from a second on.
    fn capture_at(begin: i64, packets: i64) -> Vec<u8> {
        let mut writer = PcapWriter::new(Vec::new(), LinkType::RAW, 0).unwrap();
        for second in begin..begin + packets {
            let timestamp = Timestamp::from_secs_nanos(second, 0);
            let link_type = LinkType::RAW;
            let packet =
                Packet { timestamp, data: &[0; 40], wire_len: 40, link_type, interface: 0 };
            writer.write_packet(&packet).unwrap();
        }
        writer.finish().unwrap()
    }

    struct Broken;

    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            Err(std::io::Error::other("a broken disk"))
        }
    }

    fn inputs(inputs: Vec<Input>) -> Inputs {
        let file = |_: &_| CaptureFile {
            name: "a.pcap".to_owned(),
            path: PathBuf::from("a.pcap"),
            size: None,
            failure: None,
        };
        let files = inputs.iter().map(file).collect();
        let readers = inputs.into_iter().map(|input| Reader::new(input).unwrap()).collect();
        Inputs::of(files, readers)
    }

    /// The packets that come before the end.
    fn count(inputs: &mut Inputs) -> usize {
        let (mut batch, mut packets) = (Batch::default(), 0);
        while inputs.read_batch(&mut batch) == Ok(Progress::More) {
            packets += batch.packets.len();
        }
        packets + batch.packets.len()
    }

    #[test]
    fn a_failing_file_ends_alone_and_is_told() {
        let failing = || -> Input { Box::new(std::io::Cursor::new(capture(3)).chain(Broken)) };
        let good = || -> Input { Box::new(std::io::Cursor::new(capture(5))) };
        let mut both = inputs(vec![failing(), good()]);
        assert_eq!((count(&mut both), both.packets()), (8, 8));
        assert_eq!(both.files[0].failure.as_deref(), Some("cannot read: a broken disk"));
        assert_eq!(both.files[1].failure, None);
        let mut alone = inputs(vec![failing()]);
        assert_eq!(count(&mut alone), 3);
        assert!(alone.files[0].failure.is_some());
    }

    /// Whoever analyses files by themselves has to know where one is over.
    #[test]
    fn a_batch_ends_where_a_file_fails() {
        let first: Input = Box::new(std::io::Cursor::new(capture_at(0, 3)).chain(Broken));
        let second: Input = Box::new(std::io::Cursor::new(capture_at(100, 5)));
        let mut both = inputs(vec![first, second]);
        both.merged.stop_between();
        let (mut batch, mut heads) = (Batch::default(), Vec::new());
        while both.read_batch(&mut batch) == Ok(Progress::More) {
            heads.extend(both.merged.next_alone().map(|head| head.input));
        }
        assert!(both.files[0].failure.is_some());
        assert!(heads.ends_with(&[1]), "{heads:?}");
    }

    #[test]
    fn a_file_that_grew_is_noticed() {
        let path = std::env::temp_dir().join(format!("netsniff-grown-{}", std::process::id()));
        std::fs::write(&path, capture(1)).unwrap();
        let (inputs, refused) = Inputs::open(std::slice::from_ref(&path), 4096);
        let before = inputs.files[0].grown();
        std::fs::write(&path, capture(2)).unwrap();
        let after = inputs.files[0].grown();
        std::fs::remove_file(path).unwrap();
        assert!(refused.is_empty());
        assert_eq!((before, after), (None, Some(24 + 2 * 56)));
    }
}
