//! Settings of the kernel that are changed for a while.
//!
//! Those that a network namespace has for itself are changed in it, and go with it. Others are of the whole machine: what
//! they were is written down before they are changed, so that whoever removes the testbed puts them back.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};

use super::namespace::inside;
use crate::tools::Setting;

/// What was changed: in each line a name, a blank, and its value before.
const JOURNAL: &str = "sysctls";

/// Settings that go together, by a name.
type Profile = (&'static str, &'static [(&'static str, &'static str)]);

/// THE list of profiles.
const PROFILES: [Profile; 2] = [
    // As they are.
    ("default", &[]),
    // As Skopko raised them: 64 times what they were there (PAPERS S3, table II; of its defaults, which is more than the most,
    // what they come to). They may be more or less times what they are here.
    (
        "skopko64",
        &[
            ("net.core.rmem_max", "8388544"),
            ("net.core.rmem_default", "8126464"),
            ("net.core.wmem_max", "8388544"),
            ("net.core.wmem_default", "8126464"),
            ("net.core.optmem_max", "1310720"),
            ("net.core.netdev_max_backlog", "64000"),
            ("net.core.netdev_budget", "19200"),
        ],
    ),
];

/// The settings of a profile.
///
/// # Errors
///
/// A sentence, where there is none of this name.
pub(crate) fn profile(name: &str) -> Result<Vec<Setting>, String> {
    let found = PROFILES.iter().find(|(of, _)| *of == name).ok_or_else(|| {
        let names = PROFILES.map(|(name, _)| name).join(", ");
        format!("no profile {name:?}: there are {names}")
    })?;
    let setting = |(name, value): &(&str, &str)| Setting {
        name: (*name).to_owned(),
        value: (*value).to_owned(),
    };
    Ok(found.1.iter().map(setting).collect())
}

/// Whether this may be the name of a setting of the network: nothing else is for a testbed to change.
pub(crate) fn is_name(name: &str) -> bool {
    let is_word = |word: &str| {
        let is_fine = |letter: char| letter.is_ascii_alphanumeric() || "_-".contains(letter);
        !word.is_empty() && word.chars().all(is_fine)
    };
    name.starts_with("net.") && name.split('.').all(is_word)
}

fn path(name: &str) -> PathBuf {
    Path::new("/proc/sys").join(name.replace('.', "/"))
}

/// Changes a setting: in a namespace, or of the machine, where `scratch` then tells what it was.
pub(crate) fn change(scratch: &Path, namespace: &str, setting: &Setting) -> anyhow::Result<()> {
    let Setting { name, value } = setting;
    let at = path(name);
    if is_of_namespaces(namespace, &at) {
        let value = value.replace('\'', "");
        return inside(namespace, &format!("printf %s '{value}' >{}", at.display()));
    }
    let before =
        fs::read_to_string(&at).with_context(|| format!("the kernel has no setting {name}"))?;
    let journal = OpenOptions::new().create(true).append(true).open(scratch.join(JOURNAL));
    let mut journal = journal.context("cannot write down what a setting was")?;
    writeln!(journal, "{name} {}", before.trim())
        .context("cannot write down what a setting was")?;
    fs::write(&at, value).with_context(|| format!("the kernel does not take {name}={value}"))
}

/// Whether a namespace shows the setting and has it for itself: then another one may have another value, and those of
/// the machine are not to be seen there.
fn is_of_namespaces(namespace: &str, at: &Path) -> bool {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", namespace, "test", "-w"]).arg(at);
    command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// Puts back what was changed, the last change first.
pub(crate) fn restore(scratch: &Path) -> anyhow::Result<()> {
    let Ok(journal) = fs::read_to_string(scratch.join(JOURNAL)) else { return Ok(()) };
    let mut failed = Vec::new();
    for line in journal.lines().rev() {
        let Some((name, value)) = line.split_once(' ').filter(|(name, _)| is_name(name)) else {
            continue;
        };
        // Nothing would be written of an empty value.
        if let Err(why) = fs::write(path(name), format!("{value}\n")) {
            failed.push(format!("{name}={value}: {why}"));
        }
    }
    if !failed.is_empty() {
        bail!("settings of the kernel cannot be put back: {}", failed.join(", "));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_settings_of_the_network_are_changed() {
        for name in ["net.core.netdev_max_backlog", "net.ipv4.tcp_rmem"] {
            assert!(is_name(name), "{name}");
        }
        for name in
            ["net", "kernel.panic", "net..x", "net.core.", "net.core/../../x", "net.a b", ""]
        {
            assert!(!is_name(name), "{name}");
        }
        let all = PROFILES.iter().flat_map(|(name, _)| profile(name).unwrap());
        assert!(all.into_iter().all(|setting| is_name(&setting.name)));
        assert!(profile("x").unwrap_err().ends_with("default, skopko64"));
        assert_eq!(path("net.core.rmem_max"), Path::new("/proc/sys/net/core/rmem_max"));
    }
}
