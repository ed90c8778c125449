//! The captures of a directory, in the order in which they come.

use std::collections::{HashMap, VecDeque};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

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

/// A file that was handed out.
#[derive(Clone, Copy, Debug)]
struct Taken {
    inode: u64,
    /// Bytes that it had when it was left.
    bytes: u64,
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

    /// Hands out the next file.
    pub(super) fn next(&self) -> Option<PathBuf> {
        let mut state = self.state();
        state.look(&self.path);
        let path = state.waiting.pop_front()?;
        state.current = key(&path)?;
        Some(path)
    }

    /// Takes note of how much was read of the file that was handed out last.
    pub(super) fn left(&self, bytes: u64) {
        let state = &mut *self.state();
        if let Some(taken) = state.taken.get_mut(&state.current) {
            taken.bytes = bytes;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Looks for files that were not there before. One that came back shorter than it was left, or as another one under
    /// the same name, is new: recordings in a ring use their names again.
    fn look(&mut self, directory: &Path) {
        if self.looked.is_some_and(|looked| looked.elapsed() < LOOK) {
            return;
        }
        self.looked = Some(Instant::now());
        let Ok(entries) = directory.read_dir() else { return };
        let mut there = HashMap::new();
        let mut found: Vec<(SystemTime, PathBuf)> = Vec::new();
        for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
            let (Some(key), Ok(metadata)) = (key(&path), path.metadata()) else { continue };
            if !metadata.is_file() {
                continue;
            }
            let (inode, bytes) = (metadata.ino(), metadata.len());
            let is_new = match self.taken.get(&key) {
                Some(taken) if is_packed(&path) || !taken.is_other(inode, bytes) => {
                    there.entry(key).or_insert(*taken);
                    false
                }
                Some(_) => {
                    there.insert(key, Taken { inode, bytes: 0 });
                    true
                }
                None if there.contains_key(&key) => false,
                None => there.insert(key, Taken { inode, bytes: 0 }).is_none(),
            };
            if is_new {
                found.push((metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH), path));
            }
        }
        found.sort();
        self.waiting.extend(found.into_iter().map(|(_, path)| path));
        self.taken = there;
    }
}

impl Taken {
    /// Whether a file of the same name is another one.
    const fn is_other(&self, inode: u64, bytes: u64) -> bool {
        inode != self.inode || bytes < self.bytes
    }
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

    /// Names that come with the next look.
    fn come(folder: &Folder) -> Vec<String> {
        folder.state().looked = None;
        let names = std::iter::from_fn(|| folder.next());
        names.map(|path| path.file_name().unwrap().to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn each_file_comes_once_and_again_where_its_name_is_used_again() {
        let path = std::env::temp_dir().join(format!("netsniff-follow-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        let write = |name: &str, bytes: usize| std::fs::write(path.join(name), vec![0; bytes]);
        let folder = Folder::new(&path);
        write("b.pcap0", 9).unwrap();
        assert_eq!(come(&folder), ["b.pcap0"]);
        folder.left(9);
        write("a.pcap", 9).unwrap();
        assert_eq!(come(&folder), ["a.pcap"]);
        folder.left(9);
        // What is packed once it was read is the same file.
        write("a.pcap.gz", 5).unwrap();
        assert_eq!(come(&folder), [""; 0]);
        std::fs::remove_file(path.join("a.pcap")).unwrap();
        assert_eq!(come(&folder), [""; 0]);
        // A ring begins again.
        write("b.pcap0", 3).unwrap();
        assert_eq!(come(&folder), ["b.pcap0"]);
        std::fs::remove_dir_all(path).unwrap();
    }
}
