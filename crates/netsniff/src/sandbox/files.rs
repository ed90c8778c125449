//! Landlock: of all files, the process can open those that it writes, and those of its configuration.

use std::fmt;
use std::path::Path;

use anyhow::Context as _;
use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible as _, LandlockStatus,
    NetPort, PathBeneath, PathFd, Ruleset, RulesetAttr as _, RulesetCreated,
    RulesetCreatedAttr as _, Scope,
};

use super::Outputs;

/// The version of Landlock whose rights are all forbidden; an older kernel forbids what it knows.
const WANTED: ABI = ABI::V6;

/// How far Landlock restricts access to files.
#[derive(Debug)]
pub struct Files(LandlockStatus);

/// Forbids this thread, and those that it starts, to open files but for the outputs and what is read again; also to bind
/// sockets of TCP, to connect them but to the ports of receivers, and to signal other processes. What is open stays open.
pub(super) fn restrict(outputs: &Outputs) -> anyhow::Result<Files> {
    let within = AccessFs::ReadFile
        | AccessFs::ReadDir
        | AccessFs::WriteFile
        | AccessFs::Truncate
        | AccessFs::MakeReg
        | AccessFs::RemoveFile
        // Tables end in directories by their hour, which go with the last of them.
        | AccessFs::MakeDir
        | AccessFs::RemoveDir
        | AccessFs::Refer;
    let build = || -> anyhow::Result<_> {
        let mut rules = Ruleset::default()
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(AccessFs::from_all(WANTED))?
            .handle_access(AccessNet::from_all(WANTED))?
            .scope(Scope::from_all(WANTED))?
            .create()?;
        for directory in outputs.all_folders() {
            rules = allow(rules, directory, within)?;
        }
        for directory in &outputs.readable {
            rules = allow(rules, directory, AccessFs::ReadFile | AccessFs::ReadDir)?;
        }
        for file in &outputs.files {
            rules = allow(rules, file, AccessFs::WriteFile | AccessFs::Truncate)?;
        }
        for &port in &outputs.ports {
            rules = rules.add_rule(NetPort::new(port, AccessNet::ConnectTcp))?;
        }
        if let Some(folder) = outputs.pid_folder() {
            rules = allow(rules, &folder, AccessFs::RemoveFile.into())?;
        }
        Ok(rules.restrict_self()?)
    };
    let status = build().context("cannot forbid other files; --sandbox off does without")?;
    Ok(Files(status.landlock))
}

fn allow(
    rules: RulesetCreated,
    path: &Path,
    rights: BitFlags<AccessFs>,
) -> anyhow::Result<RulesetCreated> {
    let opened = PathFd::new(path)?;
    Ok(rules.add_rule(PathBeneath::new(opened, rights))?)
}

impl Files {
    /// Whether the kernel has Landlock.
    #[must_use]
    pub const fn is_active(&self) -> bool {
        matches!(self.0, LandlockStatus::Available { .. })
    }
}

impl fmt::Display for Files {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            LandlockStatus::Available { effective_abi, .. } => {
                // The crate knows later ones than are asked for.
                write!(f, "Landlock ABI {}", (*effective_abi).min(WANTED) as i32)
            }
            LandlockStatus::NotEnabled => {
                f.write_str("Landlock NOT active: this kernel was started without it")
            }
            _ => f.write_str("Landlock NOT active: this kernel has none"),
        }
    }
}
