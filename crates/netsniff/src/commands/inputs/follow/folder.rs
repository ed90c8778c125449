//! The captures of a directory, in the order in which they come.

use std::collections::{HashMap, VecDeque};
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use netsniff_packet::fnv;
use netsniff_pipeline::recording::naming::{CaptureFormat, packing_of_name};

/// Between two looks into the directory.
const LOOK: Duration = Duration::from_millis(500);

/// A directory to which captures are added.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Files that were handed out, by their names without packing.
    taken: HashMap<String, Taken>,
    waiting: VecDeque<PathBuf>,
    /// The name of the file that is read now.
    current: String,
    looked: Option<Instant>,
}

/// A file that was handed out, or waits for it.
#[derive(Clone, Copy, Debug)]
struct Taken {
    /// Its inode, its length, and when it was last changed, as they were when it was last looked at.
    state: (u64, u64, Option<SystemTime>),
    is_packed: bool,
    head: Head,
}

/// The begin of a file, by which another one of the same name is told from it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Head {
    bytes: usize,
    hash: u64,
}

impl Head {
    /// Bytes that are looked at: more than what captures of one program have alike.
    const MOST: usize = 4096;

    /// That of a file, or of as many bytes as `like` has.
    pub(super) fn of(file: &File, like: Option<Self>) -> io::Result<Self> {
        let mut bytes = [0; Self::MOST];
        let wanted = like.map_or(Self::MOST, |head| head.bytes);
        let mut filled = 0;
        while filled < wanted {
            match file.read_at(&mut bytes[filled..wanted], filled as u64) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Self { bytes: filled, hash: fnv::add(fnv::BASIS, &bytes[..filled]) })
    }

    /// Whether a file begins so.
    pub(super) fn is_of(self, file: &File) -> io::Result<bool> {
        Ok(Self::of(file, Some(self))? == self)
    }
}

impl Folder {
    pub(super) fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), state: Mutex::default() }
    }

    /// Whether another file has come.
    pub(super) fn has_next(&self) -> bool {
        let mut state = self.state();
        state.look(&self.path);
        !state.waiting.is_empty()
    }

    /// Hands out the next file, and tells whether it was written anew since it was first seen.
    pub(super) fn next(&self) -> Option<(PathBuf, bool)> {
        let mut state = self.state();
        state.look(&self.path);
        let path = state.waiting.pop_front()?;
        state.current = key(&path)?;
        let now = Taken::of(&path);
        let state = &mut *state;
        let taken = state.taken.get_mut(&state.current);
        let Some((taken, now)) = taken.zip(now) else { return Some((path, false)) };
        let is_anew = !taken.begins(&path);
        *taken = now;
        Some((path, is_anew))
    }

    /// Takes note of the file that was handed out last as it is now, when no more is read of it.
    pub(super) fn left(&self, file: &File) -> io::Result<()> {
        let (head, now) = (Head::of(file, None)?, state_of(&file.metadata()?));
        let state = &mut *self.state();
        if let Some(taken) = state.taken.get_mut(&state.current) {
            (taken.head, taken.state) = (head, now);
        }
        state.current.clear();
        Ok(())
    }

    /// Lets the file that was handed out last be another one from now on.
    pub(super) fn lost(&self) {
        self.state().current.clear();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Looks for files that were not there before. One that begins otherwise than it did is another one under the same name:
    /// recordings in a ring use their names again.
    fn look(&mut self, directory: &Path) {
        if self.looked.is_some_and(|looked| looked.elapsed() < LOOK) {
            return;
        }
        self.looked = Some(Instant::now());
        let Ok(entries) = directory.read_dir() else { return };
        let mut there: HashMap<String, Taken> = HashMap::new();
        let mut found: Vec<(Option<SystemTime>, PathBuf)> = Vec::new();
        for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
            let Some(key) = key(&path) else { continue };
            let taken = self.taken.get(&key).copied();
            if let Some(taken) = taken.filter(|taken| self.is_read(&key, taken, &path)) {
                there.entry(key).or_insert(taken);
                continue;
            }
            let Some(now) = Taken::of(&path) else { continue };
            if taken.is_some() || !there.contains_key(&key) {
                there.insert(key, now);
                found.push((now.state.2, path));
            }
        }
        found.sort();
        self.waiting.extend(found.into_iter().map(|(_, path)| path));
        self.taken = there;
    }

    /// Whether a file under a name that was taken is the one that was, or is that packed.
    fn is_read(&self, key: &str, taken: &Taken, path: &Path) -> bool {
        let is_waiting = || self.waiting.iter().any(|path| self::key(path).as_deref() == Some(key));
        key == self.current
            || is_packed(path) && !taken.is_packed
            || Taken::state(path).is_none_or(|state| state == taken.state)
            || is_waiting()
            || taken.begins(path)
    }
}

impl Taken {
    /// A regular file as it is now.
    fn of(path: &Path) -> Option<Self> {
        let state = Self::state(path)?;
        let head = Head::of(&File::open(path).ok()?, None).ok()?;
        Some(Self { state, is_packed: is_packed(path), head })
    }

    fn state(path: &Path) -> Option<(u64, u64, Option<SystemTime>)> {
        let metadata = path.metadata().ok().filter(Metadata::is_file)?;
        Some(state_of(&metadata))
    }

    /// Whether a file begins as this one did.
    fn begins(&self, path: &Path) -> bool {
        File::open(path).and_then(|file| self.head.is_of(&file)).unwrap_or(true)
    }
}

/// Inode, length, and when it was last changed.
pub(super) fn state_of(metadata: &Metadata) -> (u64, u64, Option<SystemTime>) {
    (metadata.ino(), metadata.len(), metadata.modified().ok())
}

/// The name of a capture without its packing; `None` where it is none by its name.
fn key(path: &Path) -> Option<String> {
    CaptureFormat::of_name(path)?;
    let name = if is_packed(path) { path.file_stem()? } else { path.file_name()? };
    let name = name.to_str()?;
    (!name.starts_with('.')).then(|| name.to_owned())
}

fn is_packed(path: &Path) -> bool {
    packing_of_name(path).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn captures_are_told_by_their_names() {
        let key = |name: &str| key(Path::new(name));
        assert_eq!(key("d/a.pcap").as_deref(), Some("a.pcap"));
        assert_eq!(key("d/a.pcap12").as_deref(), Some("a.pcap12"));
        assert_eq!(key("d/a_1.pcapng.zst").as_deref(), Some("a_1.pcapng"));
        for name in ["a.pcapng.nsi", ".a.pcap", "a.log", "a.gz", "pcap"] {
            assert_eq!(key(name), None, "{name}");
        }
    }

    /// Names that come with the next look, each read to its end at once; with `!` where it was written anew before.
    fn come(folder: &Folder) -> Vec<String> {
        folder.state().looked = None;
        let names = std::iter::from_fn(|| {
            let (path, is_anew) = folder.next()?;
            let file = File::open(&path).unwrap();
            folder.left(&file).unwrap();
            Some((path, is_anew))
        });
        let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
        let names = names.map(|(path, is_anew)| name(&path) + if is_anew { "!" } else { "" });
        names.collect()
    }

    #[test]
    fn each_file_comes_once_and_again_where_its_name_is_used_again() {
        let path = std::env::temp_dir().join(format!("netsniff-follow-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        let write = |name: &str, text: &str| std::fs::write(path.join(name), text).unwrap();
        let folder = Folder::new(&path);
        write("b.pcap0", "first");
        assert_eq!(come(&folder), ["b.pcap0"]);
        write("a.pcap", "second");
        write("c.pcap.gz", "packed");
        assert_eq!(come(&folder), ["a.pcap", "c.pcap.gz"]);
        // What is packed once it was read is the same file, and so is one that grew.
        write("a.pcap.gz", "packed second");
        write("b.pcap0", "first and more");
        assert_eq!(come(&folder), [""; 0]);
        std::fs::remove_file(path.join("a.pcap")).unwrap();
        assert_eq!(come(&folder), [""; 0]);
        // A ring begins again: shorter, as long, and longer; and so does a file that is packed.
        for text in ["3", "third", "the fourth one"] {
            write("b.pcap0", text);
            assert_eq!(come(&folder), ["b.pcap0"], "{text}");
        }
        write("c.pcap.gz", "again!");
        assert_eq!(come(&folder), ["c.pcap.gz"]);
        std::fs::remove_dir_all(path).unwrap();
    }

    #[test]
    fn what_was_written_anew_before_it_was_read_is_told() {
        let path =
            std::env::temp_dir().join(format!("netsniff-follow-anew-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        let folder = Folder::new(&path);
        for text in ["first", "second"] {
            std::fs::write(path.join("a.pcap"), text).unwrap();
            std::fs::write(path.join("b.pcap"), "grows").unwrap();
            folder.has_next();
        }
        std::fs::write(path.join("b.pcap"), "grows on").unwrap();
        let mut come = come(&folder);
        come.sort();
        assert_eq!(come, ["a.pcap!", "b.pcap"]);
        std::fs::remove_dir_all(path).unwrap();
    }
}
