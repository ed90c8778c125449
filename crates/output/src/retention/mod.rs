//! Which of the files stay that have ended: of logs, and of recordings.
//!
//! A list of them, the oldest first, tells which are to go. Who writes the files removes them, and says so here.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use netsniff_console::number::{self, count};
use netsniff_packet::Timestamp;

use crate::descriptors::Identity;

/// How often it is asked how much room a file system has: what is removed becomes free somewhat later on some.
const LOOK: i64 = 1_000_000_000;

/// Files that go at once: whoever removes them writes nothing meanwhile, and rows wait.
const MOST_AT_ONCE: usize = 256;

/// The bounds that files are kept within. The file that is written stays in any case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Keep {
    /// Files, with those that are written.
    pub files: Option<u64>,
    /// Bytes of all files, with those that are written.
    pub bytes: Option<u64>,
    /// How long ago the last row of a file may have been written.
    pub age: Option<Duration>,
    /// Bytes that the file system is to have free for users without privileges.
    pub free: Option<u64>,
}

impl Keep {
    /// Whether there is a bound.
    #[must_use]
    pub fn is_on(&self) -> bool {
        *self != Self::default()
    }
}

/// The bound for which a file goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeepBound {
    /// [`Keep::files`]
    Files,
    /// [`Keep::bytes`]
    Bytes,
    /// [`Keep::age`]
    Age,
    /// [`Keep::free`]
    Free,
}

impl KeepBound {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Files, Self::Bytes, Self::Age, Self::Free];

    /// Its name, for programs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Files => "files",
            Self::Bytes => "bytes",
            Self::Age => "age",
            Self::Free => "free",
        }
    }
}

/// Files that were removed, so that bounds are held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RemovedFiles {
    /// Files, by bound in the order of [`KeepBound::ALL`].
    pub files: [u64; 4],
    /// Bytes of all of them.
    pub bytes: u64,
    /// Files that could not be removed. They stay, and are forgotten.
    pub failed: u64,
}

impl RemovedFiles {
    /// All files that were removed.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.files.iter().sum()
    }

    /// What whoever looks for them is to know; nothing where none was to go.
    #[must_use]
    pub fn said(&self) -> Option<String> {
        let each = KeepBound::ALL.iter().zip(self.files).filter(|(_, files)| *files > 0);
        let each: Vec<_> =
            each.map(|(bound, files)| format!("{} for {}", count(files), bound.name())).collect();
        let removed = (self.total() > 0).then(|| {
            let (all, each) = (number::files(self.total()), each.join(", "));
            format!("{all} of logs ({}) removed by --keep: {each}", number::bytes(self.bytes))
        });
        let failed = (self.failed > 0)
            .then(|| format!("{} of logs could not be removed", number::files(self.failed)));
        let parts: Vec<_> = removed.into_iter().chain(failed).collect();
        (!parts.is_empty()).then(|| parts.join("; "))
    }
}

/// A file that nobody writes any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedFile {
    /// Where it is.
    pub path: PathBuf,
    /// Its bytes.
    pub bytes: u64,
    /// When its last bytes were written.
    pub ended: Timestamp,
    /// What tells it from another one that took its name, where that is looked at.
    pub(crate) identity: Option<Identity>,
}

/// What is written, and is to stay.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenFiles {
    /// Files.
    pub files: u64,
    /// Their bytes, with those that are about to be written.
    pub bytes: u64,
}

/// Files that have ended, the oldest first.
#[derive(Debug, Default)]
pub struct EndedFiles {
    keep: Keep,
    files: VecDeque<EndedFile>,
    /// Bytes of all of them.
    bytes: u64,
    /// When it was asked for free room last.
    looked: Option<Timestamp>,
    removed: RemovedFiles,
}

impl EndedFiles {
    /// An empty list, and its bounds.
    #[must_use]
    pub fn new(keep: Keep) -> Self {
        Self { keep, ..Self::default() }
    }

    /// Other bounds from now on.
    pub const fn set_bounds(&mut self, keep: Keep) {
        self.keep = keep;
        self.looked = None;
    }

    /// Adds a file that has ended behind all others.
    pub fn add(&mut self, file: EndedFile) {
        self.bytes = self.bytes.saturating_add(file.bytes);
        self.files.push_back(file);
    }

    /// Files that were removed so far.
    #[must_use]
    pub const fn removed(&self) -> &RemovedFiles {
        &self.removed
    }

    /// Takes the files from the list that are to go at `now`, each with the bound for which it goes; of many, the first 256.
    /// `free` tells how many bytes
    /// are free where they lie; where that is unknown, none goes for it.
    pub fn take_excess(
        &mut self,
        now: Timestamp,
        open: OpenFiles,
        free: impl FnOnce() -> Option<u64>,
    ) -> Vec<(EndedFile, KeepBound)> {
        let mut excess = Vec::new();
        let mut free = if self.looks(now) { free() } else { None };
        while excess.len() < MOST_AT_ONCE
            && let Some(bound) = self.passed(now, open, free)
        {
            let Some(file) = self.files.pop_front() else { break };
            self.bytes = self.bytes.saturating_sub(file.bytes);
            free = free.map(|free| free.saturating_add(file.bytes));
            excess.push((file, bound));
        }
        excess
    }

    /// Whether it is time to look how much room there is.
    fn looks(&mut self, now: Timestamp) -> bool {
        let is_soon = |looked| (0..LOOK).contains(&now.nanos_since(looked));
        let looks = self.keep.free.is_some() && !self.looked.is_some_and(is_soon);
        if looks {
            self.looked = Some(now);
        }
        looks
    }

    /// The bound that the list does not hold, if there is one.
    fn passed(&self, now: Timestamp, open: OpenFiles, free: Option<u64>) -> Option<KeepBound> {
        let Keep { files, bytes, age, free: least } = self.keep;
        let oldest = self.files.front()?;
        let since = u128::try_from(now.nanos_since(oldest.ended));
        let is_old = |age: Duration| since.is_ok_and(|since| since > age.as_nanos());
        let all_files = open.files.saturating_add(self.files.len() as u64);
        let all_bytes = open.bytes.saturating_add(self.bytes);
        match () {
            () if age.is_some_and(is_old) => Some(KeepBound::Age),
            () if files.is_some_and(|most| all_files > most) => Some(KeepBound::Files),
            () if bytes.is_some_and(|most| all_bytes > most) => Some(KeepBound::Bytes),
            () if least.zip(free).is_some_and(|(least, free)| free < least) => {
                Some(KeepBound::Free)
            }
            () => None,
        }
    }

    /// Counts a file that was to go, by what came of removing it. Who finds it gone already has nothing to count.
    ///
    /// # Errors
    ///
    /// Where it could not be removed.
    pub fn note(
        &mut self,
        file: &EndedFile,
        bound: KeepBound,
        removed: io::Result<()>,
    ) -> io::Result<()> {
        match removed {
            Ok(()) => {
                self.removed.files[bound as usize] += 1;
                self.removed.bytes = self.removed.bytes.saturating_add(file.bytes);
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => {
                self.removed.failed += 1;
                Err(error)
            }
        }
    }
}

impl EndedFile {
    /// A file of so many bytes, of which the last were written at `ended`.
    #[must_use]
    pub const fn new(path: PathBuf, bytes: u64, ended: Timestamp) -> Self {
        Self { path, bytes, ended, identity: None }
    }

    /// What is said of it once it is gone.
    pub(crate) fn farewell(&self, bound: KeepBound) -> String {
        let why = match bound {
            KeepBound::Files => "there are enough files",
            KeepBound::Bytes => "the files have more bytes than are kept",
            KeepBound::Age => "it is too old",
            KeepBound::Free => "the file system is short of room",
        };
        format!("removed {}: {}, since {why}", self.path.display(), number::bytes(self.bytes))
    }
}

/// Bytes that are free where `path` lies, for users without privileges; `None` where that cannot be told.
#[must_use]
pub fn free_bytes(path: &Path) -> Option<u64> {
    #[cfg(unix)]
    {
        let told = rustix::fs::statvfs(path).ok()?;
        Some(told.f_bavail.saturating_mul(told.f_frsize))
    }
    #[cfg(not(unix))]
    {
        let _ = path;
        None
    }
}

/// The most bytes that can ever be free where `path` lies, for users without privileges; `None` where that cannot be told.
pub(crate) fn most_free_bytes(path: &Path) -> Option<u64> {
    #[cfg(unix)]
    {
        let told = rustix::fs::statvfs(path).ok()?;
        let reserved = told.f_bfree.saturating_sub(told.f_bavail);
        Some(told.f_blocks.saturating_sub(reserved).saturating_mul(told.f_frsize))
    }
    #[cfg(not(unix))]
    {
        let _ = path;
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = 86_400;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_secs_nanos(seconds, 0)
    }

    /// Files `1`, `2` and so on, each of 100 bytes, that ended one day after the other.
    fn ended(keep: Keep, count: i64) -> EndedFiles {
        let mut files = EndedFiles::new(keep);
        for number in 1..=count {
            let path = PathBuf::from(number.to_string());
            files.add(EndedFile::new(path, 100, at(number * DAY)));
        }
        files
    }

    fn taken(
        files: &mut EndedFiles,
        now: i64,
        open: u64,
        free: Option<u64>,
    ) -> Vec<(String, KeepBound)> {
        let open = OpenFiles { files: 1, bytes: open };
        let excess = files.take_excess(at(now), open, || free);
        excess.into_iter().map(|(file, why)| (file.path.display().to_string(), why)).collect()
    }

    fn go(names: &[&str], bound: KeepBound) -> Vec<(String, KeepBound)> {
        names.iter().map(|name| ((*name).to_owned(), bound)).collect()
    }

    #[test]
    fn the_oldest_go_until_a_bound_is_held() {
        let keep = Keep { bytes: Some(350), ..Keep::default() };
        let mut files = ended(keep, 3);
        assert_eq!(taken(&mut files, 0, 50, None), []);
        assert_eq!(taken(&mut files, 0, 51, None), go(&["1"], KeepBound::Bytes));
        assert_eq!(taken(&mut files, 0, 500, None), go(&["2", "3"], KeepBound::Bytes));
        let mut files = ended(Keep { files: Some(3), ..Keep::default() }, 4);
        assert_eq!(taken(&mut files, 0, 0, None), go(&["1", "2"], KeepBound::Files));
        let mut files =
            ended(Keep { age: Some(Duration::from_secs(86_400)), ..Keep::default() }, 3);
        assert_eq!(taken(&mut files, 2 * DAY, 0, None), []);
        assert_eq!(taken(&mut files, 3 * DAY + 1, 0, None), go(&["1", "2"], KeepBound::Age));
        assert_eq!(taken(&mut files, 0, 0, None), [], "a clock that was set back removes nothing");
        assert_eq!(
            taken(&mut ended(Keep::default(), 9), i64::from(u32::MAX), u64::MAX, Some(0)),
            []
        );
    }

    #[test]
    fn room_is_asked_for_once_a_second_and_grows_by_what_goes() {
        let mut files = ended(Keep { free: Some(1000), ..Keep::default() }, 5);
        assert_eq!(taken(&mut files, 10, 0, None), [], "nobody knows");
        assert_eq!(taken(&mut files, 11, 0, Some(1000)), []);
        assert_eq!(taken(&mut files, 12, 0, Some(801)), go(&["1", "2"], KeepBound::Free));
        // What was removed may not be free yet.
        assert_eq!(taken(&mut files, 12, 0, Some(801)), []);
        assert_eq!(taken(&mut files, 13, 0, Some(950)), go(&["3"], KeepBound::Free));
        assert_eq!(taken(&mut files, 14, 0, Some(0)), go(&["4", "5"], KeepBound::Free));
    }

    #[test]
    fn of_many_files_some_go_at_once_and_the_rest_later() {
        let count = 2 * MOST_AT_ONCE as i64 + 9;
        let mut files = ended(Keep { bytes: Some(0), ..Keep::default() }, count);
        let mut rounds = || taken(&mut files, 0, 0, None).len();
        assert_eq!([rounds(), rounds(), rounds(), rounds()], [MOST_AT_ONCE, MOST_AT_ONCE, 9, 0]);
    }

    #[test]
    fn what_came_of_it_is_counted() {
        let mut files = ended(Keep { bytes: Some(0), ..Keep::default() }, 3);
        let excess = files.take_excess(at(0), OpenFiles::default(), || None);
        let results = [
            Ok(()),
            Err(io::ErrorKind::NotFound.into()),
            Err(io::ErrorKind::PermissionDenied.into()),
        ];
        let told: Vec<_> = excess
            .iter()
            .zip(results)
            .map(|((file, bound), result)| files.note(file, *bound, result).is_ok())
            .collect();
        assert_eq!(told, [true, true, false]);
        let expected = RemovedFiles { files: [0, 1, 0, 0], bytes: 100, failed: 1 };
        assert_eq!((files.removed(), files.removed().total()), (&expected, 1));
        let said = "1 file of logs (100 B) removed by --keep: 1 for bytes; 1 file of logs could not be removed";
        assert_eq!(expected.said().as_deref(), Some(said));
        assert_eq!(RemovedFiles::default().said(), None);
    }

    #[test]
    fn there_is_room_in_the_directory_of_tests() {
        assert!(free_bytes(&std::env::temp_dir()).is_some_and(|bytes| bytes > 0));
        assert_eq!(free_bytes(Path::new("/there/is/no/such/directory")), None);
    }
}
