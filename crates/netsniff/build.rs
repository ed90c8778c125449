//! Tells the program which revision of its source it is built from, where git knows.

use std::process::Command;

/// What git says, if it says anything.
fn git(words: &[&str]) -> Option<String> {
    let out = Command::new("git").args(words).output().ok()?;
    let text = String::from_utf8(out.stdout).ok()?;
    out.status.success().then(|| text.trim().to_owned())
}

/// The revision, and whether what is built is not quite that; `None` in a source that git does not keep.
fn revision() -> Option<String> {
    // Within the repository of somebody else this source has no revision.
    git(&["ls-files", "--error-unmatch", "Cargo.toml"])?;
    let revision = git(&["rev-parse", "--short=12", "HEAD"])?;
    let changes = git(&["status", "--porcelain", "--untracked-files=no", "--", "../.."])?;
    let log = git(&["rev-parse", "--git-path", "logs/HEAD"])?;
    // Without a log of heads cargo would build anew each time.
    if std::path::Path::new(&log).is_file() {
        println!("cargo::rerun-if-changed={log}");
    }
    Some(revision + if changes.is_empty() { "" } else { ", with changes" })
}

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    for source in ["..", "../../Cargo.toml", "../../Cargo.lock"] {
        println!("cargo::rerun-if-changed={source}");
    }
    println!("cargo::rustc-env=NETSNIFF_REVISION={}", revision().unwrap_or_default());
}
