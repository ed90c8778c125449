//! A terminal in which a command runs, and its screen.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use netsniff_testing::{Need, skip};

/// A terminal of 80 columns and 24 rows in which a command runs; it goes with this value.
pub(crate) struct Tmux(PathBuf);

impl Tmux {
    /// `None`, said loudly, where tmux is missing.
    pub(crate) fn start(name: &str, command: &str) -> Option<Self> {
        if Command::new("tmux").arg("-V").output().is_err() {
            skip(Need::Program("tmux"), "keys and screens in a terminal");
            return None;
        }
        // Names of sockets are short.
        let tmux = Self(std::env::temp_dir().join(format!("ns{name}-{}", std::process::id())));
        tmux.call(&["new-session", "-d", "-x", "80", "-y", "24", command]);
        Some(tmux)
    }

    pub(crate) fn call(&self, arguments: &[&str]) -> String {
        let mut command = Command::new("tmux");
        command.arg("-S").arg(&self.0).args(["-f", "/dev/null"]);
        let out = command.args(arguments).env("LC_ALL", "C.UTF-8").output().unwrap();
        String::from_utf8_lossy(&out.stdout).into_owned()
    }

    pub(crate) fn keys(&self, keys: &[&str]) {
        for key in keys {
            self.call(&["send-keys", key]);
            // What follows an escape at once belongs to it.
            thread::sleep(Duration::from_millis(if *key == "Escape" { 200 } else { 20 }));
        }
    }

    /// Waits for a screen that has all of this.
    pub(crate) fn await_screen(&self, wanted: &[&str]) -> String {
        let begin = Instant::now();
        loop {
            let screen = self.call(&["capture-pane", "-p"]);
            if wanted.iter().all(|text| screen.contains(text)) {
                return screen;
            }
            assert!(begin.elapsed() < Duration::from_secs(20), "{wanted:?} is not in\n{screen}");
            thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        self.call(&["kill-server"]);
        let _ = fs::remove_file(&self.0);
    }
}
