//! The captures with expected answers, and running the program on them.

use netsniff_testing::{Need, folder};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

/// One capture with the folder of its expected answers.
#[derive(Clone, Debug)]
pub(crate) struct Capture {
    /// The file.
    pub(crate) path: PathBuf,
    /// Its folder and name, as `docs/differences-from-zeek.md` names it.
    pub(crate) name: String,
}

impl Capture {
    /// The folder of its expected answers.
    pub(crate) fn oracle(&self) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(".oracle");
        name.into()
    }

    /// Whether it was damaged on purpose.
    pub(crate) fn is_fuzzed(&self) -> bool {
        self.name.starts_with("fuzz/")
    }
}

/// The captures of the corpus that `NETSNIFF_CORPUS` points to, or `None` without one.
pub(crate) fn captures(what: &str) -> Option<Vec<Capture>> {
    folder(Need::Corpus, what).map(|corpus| captures_of(&corpus))
}

/// The captures of the second corpus that Zeek ran over: those for the logs that netsniff has, and those for logs to
/// come, whose connections and the like are compared all the same.
pub(crate) fn second_captures(what: &str) -> Option<[Vec<Capture>; 2]> {
    let corpus = folder(Need::Corpus2, what)?;
    let manifest = fs::read_to_string(corpus.join("MANIFEST.tsv")).unwrap();
    let all = captures_of(&corpus);
    Some(["2", "3"].map(|added| {
        let lines = manifest.lines().map(|line| line.split('\t').collect::<Vec<_>>());
        let chosen: BTreeSet<_> = lines
            .filter(|cells| cells.last() == Some(&added))
            .map(|cells| cells[0].to_owned())
            .collect();
        let is_chosen = |capture: &&Capture| {
            chosen.contains(capture.name.as_str()) && capture.oracle().join("zeek-run").is_dir()
        };
        all.iter().filter(is_chosen).cloned().collect()
    }))
}

fn captures_of(corpus: &Path) -> Vec<Capture> {
    let mut captures = Vec::new();
    for folder in folders(corpus) {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(corpus).unwrap().to_str().unwrap().to_owned();
            let capture = Capture { path, name };
            if capture.path.is_file() && capture.oracle().is_dir() {
                captures.push(capture);
            }
        }
    }
    captures.sort_by(|a, b| a.name.cmp(&b.name));
    assert!(!captures.is_empty(), "no captures in {}", corpus.display());
    captures
}

/// The folders in a folder, in order of their names.
pub(crate) fn folders(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut folders: Vec<PathBuf> =
        entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()).collect();
    folders.sort();
    folders
}

/// A folder for output that is empty now and gone in the end.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    /// An empty folder that no other test has.
    pub(crate) fn new(name: &str) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("{name}-{}-{number}", std::process::id()));
        fs::remove_dir_all(&path).ok();
        Self(path)
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

/// What a run may use, as the kernel keeps it (`ulimit`).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// Kilobytes of memory of its own that it may write to.
    pub(crate) data_kb: u64,
    /// Kilobytes of address space.
    pub(crate) address_space_kb: u64,
    /// Seconds on a processor.
    pub(crate) processor_seconds: u64,
}

/// Runs `netsniff analyze` on a capture with further arguments, and writes the logs to `output`.
/// Damage in a file is no failure; to crash is.
pub(crate) fn analyze(capture: &Path, output: &Path, arguments: &[&str]) {
    let run = run(capture, output, arguments, None);
    let errors = String::from_utf8_lossy(&run.stderr);
    assert!(
        run.status.code().is_some_and(|code| code < 100),
        "{}: {} {errors}",
        capture.display(),
        run.status
    );
}

/// The same, however it ends, but without a panic.
pub(crate) fn run(
    capture: &Path,
    output: &Path,
    arguments: &[&str],
    bounds: Option<Bounds>,
) -> Output {
    const NETSNIFF: &str = env!("CARGO_BIN_EXE_netsniff");
    let mut command = match bounds {
        None => Command::new(NETSNIFF),
        Some(Bounds { data_kb, address_space_kb, processor_seconds }) => {
            let script = format!(
                "ulimit -d {data_kb} -v {address_space_kb} -t {processor_seconds} && exec \"$0\" \"$@\""
            );
            let mut command = Command::new("bash");
            command.args(["-c", &script, NETSNIFF]);
            command
        }
    };
    let run =
        command.arg("analyze").arg(capture).arg("-o").arg(output).args(arguments).output().unwrap();
    let errors = String::from_utf8_lossy(&run.stderr);
    assert!(!errors.contains("panicked"), "{}: {errors}", capture.display());
    run
}
