//! A directory of the user's that capture files are written to instead of memory: what it is on, how fast it takes writes,
//! and that nothing stays in it.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context as _;

/// Where mounts are told (proc(5)).
const MOUNTS: &str = "/proc/self/mountinfo";

/// What is written at most to see how fast a directory takes it, in which time, and how much of it at once.
const MOST: u64 = 256 << 20;
const TIME: Duration = Duration::from_secs(2);
const PIECE: usize = 8 << 20;

/// In the scratch files of a testbed: where its other files are.
const JOURNAL: &str = "files";

/// A directory and what it is on. `None` is what the machine does not tell.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Storage {
    /// The directory that is written to.
    pub directory: PathBuf,
    /// The type of its file system.
    pub file_system: Option<String>,
    /// What that is mounted from.
    pub device: Option<String>,
    /// Bytes a second that it took, written one after another and synchronized every 8 MiB.
    pub bytes_per_second: Option<f64>,
}

impl Storage {
    /// A directory, tried for two seconds at most.
    #[must_use]
    pub fn of(directory: &Path) -> Self {
        let mounts = fs::read_to_string(MOUNTS).unwrap_or_default();
        let (file_system, device) = mount(&mounts, directory).unzip();
        let bytes_per_second = speed(directory).ok();
        Self { directory: directory.to_owned(), file_system, device, bytes_per_second }
    }

    /// What it is on, in words.
    #[must_use]
    pub fn place(&self) -> String {
        let known = |text: &Option<String>| text.clone().unwrap_or_else(|| "unknown".to_owned());
        format!("{} on {}", known(&self.file_system), known(&self.device))
    }

    /// One line of text for reports.
    #[must_use]
    pub fn words(&self) -> String {
        let speed = self.bytes_per_second.map_or("unavailable".to_owned(), |speed| {
            format!("{:.1} MB a second, synchronized", speed / 1e6)
        });
        format!("{}, {}, writes {speed}", self.directory.display(), self.place())
    }
}

/// File system and device of the last mount that a path is in, the longest first.
fn mount(mounts: &str, path: &Path) -> Option<(String, String)> {
    let parsed = mounts.lines().filter_map(|line| {
        let (place, source) = line.split_once(" - ")?;
        let at = PathBuf::from(unescaped(place.split(' ').nth(4)?));
        let mut source = source.split(' ');
        let (system, device) = (source.next()?, source.next()?);
        path.starts_with(&at)
            .then(|| (at.components().count(), unescaped(system), unescaped(device)))
    });
    // Of equal ones the last is on top.
    parsed.max_by_key(|(depth, ..)| *depth).map(|(_, system, device)| (system, device))
}

/// Blanks and the like are octal numbers behind a backslash.
fn unescaped(text: &str) -> String {
    let mut parts = text.split('\\');
    let mut all = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let octal = part.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match (octal, part.get(3..)) {
            (Some(byte), Some(rest)) => {
                all.push(char::from(byte));
                all.push_str(rest);
            }
            _ => {
                all.push('\\');
                all.push_str(part);
            }
        }
    }
    all
}

/// Bytes a second that a new file there takes. It has no name while it is written, so that nothing stays.
fn speed(directory: &Path) -> anyhow::Result<f64> {
    let path = directory.join(format!(".netsniff-speed-{}", std::process::id()));
    let mut file =
        File::create_new(&path).with_context(|| format!("cannot make {}", path.display()))?;
    fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
    // Of zeros some file systems make nothing.
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    let piece: Vec<u8> = (0..PIECE / 8).flat_map(|_| random()).collect();
    let (begin, mut written) = (Instant::now(), 0);
    while written < MOST && begin.elapsed() < TIME {
        file.write_all(&piece).context("cannot write")?;
        file.sync_data().context("cannot write")?;
        written += piece.len() as u64;
    }
    Ok(written as f64 / begin.elapsed().as_secs_f64())
}

/// Makes the directory of a testbed's files in one of the user's, and writes down where, before it is there.
pub(crate) fn make(scratch: &Path, directory: &Path, name: &str) -> anyhow::Result<PathBuf> {
    let path = directory.join(name);
    let text = path.to_str().context("the name of a directory for files is no UTF-8")?;
    fs::write(scratch.join(JOURNAL), text).context("cannot write down where files are")?;
    fs::create_dir(&path).with_context(|| format!("cannot make {}", path.display()))?;
    Ok(path)
}

/// Removes the files of the testbed of this name, which its scratch files tell of. `is_ours` knows who made a directory.
pub(crate) fn remove(
    scratch: &Path,
    name: &str,
    is_ours: impl Fn(&Path) -> bool,
) -> anyhow::Result<()> {
    let Ok(text) = fs::read_to_string(scratch.join(JOURNAL)) else { return Ok(()) };
    let path = PathBuf::from(text);
    if path.file_name().is_none_or(|file| file != name) || !is_ours(&path) {
        return Ok(());
    }
    fs::remove_dir_all(&path).with_context(|| format!("cannot remove {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directory(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("netsniff-{name}-{}", std::process::id()));
        fs::create_dir(&path).unwrap();
        path
    }

    #[test]
    fn a_directory_is_on_its_innermost_mount() {
        let mounts = "27 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n\
                      30 27 0:27 / /data rw shared:1 master:2 - tmpfs tmp\\040fs rw\n\
                      31 30 8:1 /sub /data/disk\\040one rw - xfs /dev/sda1 rw\n\
                      32 27 0:30 / /data rw - btrfs /dev/sdb rw\n\
                      no mount\n";
        let of = |path: &str| {
            let (system, device) = mount(mounts, Path::new(path)).unwrap();
            format!("{system} {device}")
        };
        assert_eq!(of("/srv/me"), "ext4 /dev/vda");
        assert_eq!(of("/data/disk one/captures"), "xfs /dev/sda1");
        assert_eq!(of("/data/disk"), "btrfs /dev/sdb", "what was mounted last is on top");
        assert_eq!(of("/database"), "ext4 /dev/vda");
        assert_eq!(mount("", Path::new("/")), None);
        assert_eq!(unescaped("a\\134b\\x"), "a\\b\\x");
    }

    #[test]
    fn a_directory_is_tried_and_nothing_stays() {
        let path = directory("tried");
        let storage = Storage::of(&path);
        assert!(storage.bytes_per_second.unwrap() > 1000.0 && storage.file_system.is_some());
        assert!(storage.words().ends_with(" MB a second, synchronized"), "{}", storage.words());
        assert_eq!(fs::read_dir(&path).unwrap().count(), 0);
        fs::remove_dir(&path).unwrap();
        assert_eq!(Storage::of(&path).bytes_per_second, None);
    }

    /// What is written down is believed only where it is a testbed's own directory.
    #[test]
    fn nothing_else_is_removed() {
        let (scratch, user) = (directory("scratch"), directory("user"));
        let made = make(&scratch, &user, "nslab-1-2").unwrap();
        fs::write(made.join("out.pcap"), "x").unwrap();
        remove(&scratch, "nslab-1-3", |_| true).unwrap();
        remove(&scratch, "nslab-1-2", |_| false).unwrap();
        assert!(made.join("out.pcap").exists());
        remove(&scratch, "nslab-1-2", |path| path == made).unwrap();
        assert!(!made.exists() && user.exists());
        remove(&user, "nslab-1-2", |_| true).unwrap();
        fs::remove_dir_all(scratch).unwrap();
        fs::remove_dir(user).unwrap();
    }
}
