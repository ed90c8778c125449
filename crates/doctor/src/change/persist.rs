//! Changes that outlive a restart: files of sysctl.d(5), udev(7) and systemd(1), whichever a setting fits.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use netsniff_console::unlinked;

use super::Change;
use crate::setting::Setting;

/// How files begin that the doctor wrote; others are never touched.
const MARK: &str =
    "# Written by netsniff doctor --persist. `netsniff doctor --revert` removes it.\n";

const SYSCTL: &str = "etc/sysctl.d/90-netsniff-doctor.conf";
const UDEV: &str = "etc/udev/rules.d/90-netsniff-doctor.rules";
const UNIT: &str = "etc/systemd/system/netsniff-doctor.service";
const WANTED: &str = "etc/systemd/system/multi-user.target.wants/netsniff-doctor.service";

/// Where ethtool(8) may be.
const ETHTOOL: [&str; 2] = ["usr/sbin/ethtool", "sbin/ethtool"];

/// Files that make changes again after each start, by their paths below the root.
///
/// # Errors
///
/// Where a setting needs a program that is not there, and where a value is none of its setting.
pub fn files(root: &Path, changes: &[Change]) -> anyhow::Result<BTreeMap<&'static str, String>> {
    // The last value of each setting.
    let last: BTreeMap<&Setting, &str> =
        changes.iter().map(|change| (&change.setting, change.after.as_str())).collect();
    let mut files: BTreeMap<&'static str, String> = BTreeMap::new();
    let mut put = |file: &'static str, head: &str, line: &str| {
        let text = files.entry(file).or_insert_with(|| format!("{MARK}{head}"));
        // A String takes everything.
        let _ = writeln!(text, "{line}");
    };
    for (setting, value) in last {
        setting.check(value)?;
        match setting {
            Setting::Sysctl { name } => put(SYSCTL, "", &format!("{name} = {value}")),
            Setting::Interface { interface, file } => {
                put(UDEV, "", &format!("{}, ATTR{{{file}}}=\"{value}\"", rule(interface)));
            }
            Setting::Ring { interface }
            | Setting::Coalescing { interface }
            | Setting::Queues { interface, .. }
            | Setting::Feature { interface, .. } => {
                let ethtool = ETHTOOL.iter().find(|at| root.join(at).exists());
                let ethtool = ethtool
                    .context("ethtool(8) is needed to keep this after a restart: install it")?;
                let command = setting.command(value).replacen("ethtool", &format!("/{ethtool}"), 1);
                put(UDEV, "", &format!("{}, RUN+=\"{command}\"", rule(interface)));
            }
            Setting::Irq { .. } => {}
            Setting::Governor { .. } => {
                let head = "[Unit]\nDescription=Settings of netsniff doctor\nAfter=network-pre.target systemd-udev-settle.service\n\n\
                            [Service]\nType=oneshot\nRemainAfterExit=yes\n";
                put(UNIT, head, &format!("ExecStart=/bin/sh -c \"{}\"", setting.command(value)));
            }
        }
    }
    if let Some(unit) = files.get_mut(UNIT) {
        unit.push_str("\n[Install]\nWantedBy=multi-user.target\n");
    }
    Ok(files)
}

/// Whether a setting can be kept after a restart: interrupts have other numbers then.
#[must_use]
pub const fn is_kept(setting: &Setting) -> bool {
    !matches!(setting, Setting::Irq { .. })
}

/// The head of a rule. A name that was given by systemd-udevd first appears in the event `move`: `add` still has the kernel's.
fn rule(interface: &str) -> String {
    format!("ACTION==\"add|move\", SUBSYSTEM==\"net\", KERNEL==\"{interface}\"")
}

/// Writes the files of these changes below a root, and returns their paths. Files of changes that are no more go.
///
/// # Errors
///
/// Where somebody else has a file of that name, and where one cannot be written.
pub fn write(root: &Path, changes: &[Change]) -> anyhow::Result<Vec<PathBuf>> {
    let files = files(root, changes)?;
    for path in [SYSCTL, UDEV, UNIT] {
        check(&root.join(path))?;
    }
    remove(root)?;
    let mut written = Vec::new();
    for (path, text) in &files {
        let path = root.join(path);
        let about = || format!("cannot write {}", path.display());
        fs::create_dir_all(path.parent().unwrap_or(root)).with_context(about)?;
        unlinked::replace(&path)
            .and_then(|mut file| file.write_all(text.as_bytes()))
            .with_context(about)?;
        written.push(path);
    }
    if files.contains_key(UNIT) {
        let link = root.join(WANTED);
        let about = || format!("cannot write {}", link.display());
        fs::create_dir_all(link.parent().unwrap_or(root)).with_context(about)?;
        std::os::unix::fs::symlink("../netsniff-doctor.service", &link).with_context(about)?;
        written.push(link);
    }
    Ok(written)
}

/// Whether a file may be written or removed: it is not there, or the doctor's.
fn check(path: &Path) -> anyhow::Result<()> {
    if path.is_symlink() {
        bail!("{} is a symbolic link, none of netsniff doctor, and is left alone", path.display());
    }
    match fs::read_to_string(path) {
        Ok(text) if !text.starts_with(MARK) => {
            bail!("{} is not of netsniff doctor, and is left alone", path.display())
        }
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot read {}", path.display()))
        }
        _ => Ok(()),
    }
}

/// Removes all files that the doctor wrote below a root, and returns their paths.
///
/// # Errors
///
/// Where somebody else has a file of that name, and where one cannot be removed.
pub fn remove(root: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut removed = Vec::new();
    for path in [SYSCTL, UDEV, UNIT, WANTED] {
        let path = root.join(path);
        // The link leads to what was just removed.
        if path.ends_with(WANTED) && path.symlink_metadata().is_ok_and(|it| !it.is_symlink()) {
            bail!("{} is no link of netsniff doctor, and is left alone", path.display());
        }
        if !path.ends_with(WANTED) {
            check(&path)?;
        }
        match fs::remove_file(&path) {
            Ok(()) => removed.push(path),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => {
                return Err(error).with_context(|| format!("cannot remove {}", path.display()));
            }
        }
    }
    Ok(removed)
}
