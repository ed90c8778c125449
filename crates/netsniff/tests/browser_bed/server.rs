//! `netsniff serve` as a process.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// A capture that the project has recorded.
pub(crate) fn recorded(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/recorded").join(name)
}

/// Runs the program to its end, which must be a good one.
pub(crate) fn netsniff(arguments: &[&str]) {
    let output = Command::new(env!("CARGO_BIN_EXE_netsniff")).args(arguments).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!([Some(0), Some(3)].contains(&output.status.code()), "{arguments:?}: {said}");
}

/// A folder that goes with the test.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("browser-{name}-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn text(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The server, which ends with this value.
pub(crate) struct Server {
    child: Child,
    /// The address that it told, without a slash at its end.
    pub(crate) url: String,
}

impl Server {
    pub(crate) fn start(arguments: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_netsniff"));
        command.args(["serve", "--listen", "127.0.0.1:0"]).args(arguments);
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut said = Vec::new();
        let url = loop {
            let Some(line) = lines.next() else { panic!("no address in {said:?}") };
            let line = line.unwrap();
            if let Some(url) = line.strip_prefix("netsniff: open ") {
                break url.trim_end_matches('/').to_owned();
            }
            said.push(line);
        };
        // Who writes must not wait.
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
        Self { child, url }
    }
}

impl Drop for Server {
    /// By Ctrl-C's elder sister, so that it removes what it made.
    fn drop(&mut self) {
        let pid = self.child.id().to_string();
        let _ = Command::new("kill").arg(pid).status();
        let _ = self.child.wait();
    }
}
