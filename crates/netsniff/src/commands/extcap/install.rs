//! The link by which Wireshark finds this program.

use std::fs;
use std::io::{ErrorKind, stdout};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};
use netsniff_console::{DONE, UsageError, print};

/// The name of the link.
const LINK: &str = "netsniff";

/// Makes the link or removes it, and returns the exit code.
///
/// # Errors
///
/// [`UsageError`] where the folder is not known; where something else has the name of the link, and where it cannot be
/// made.
pub(super) fn run(dir: Option<&Path>, removes: bool) -> anyhow::Result<u8> {
    let folder = dir.map_or_else(folder, |dir| Ok(dir.to_owned()))?;
    let link = folder.join(LINK);
    let said = if removes {
        remove(&link)?
    } else {
        let program = std::env::current_exe().context("cannot tell where this program is")?;
        make(&link, &program)?
    };
    print(stdout(), &said).context("cannot print what was done")?;
    Ok(DONE)
}

/// Puts a link to the program in the place of one that was there.
fn make(link: &Path, program: &Path) -> anyhow::Result<String> {
    if let Some(folder) = link.parent() {
        fs::create_dir_all(folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
    }
    remove(link)?;
    symlink(program, link).with_context(|| format!("cannot make {}", link.display()))?;
    Ok(format!(
        "{} leads to {}\nWireshark and TShark list netsniff-extract and netsniff-live-… from their next start on\n",
        link.display(),
        program.display()
    ))
}

/// Removes the link, and nothing else that has its name.
fn remove(link: &Path) -> anyhow::Result<String> {
    let shown = link.display();
    match link.symlink_metadata() {
        Ok(metadata) if metadata.is_symlink() && leads_to_netsniff(link) => {
            fs::remove_file(link).with_context(|| format!("cannot remove {shown}"))?;
            Ok(format!("{shown} is removed\n"))
        }
        Ok(_) => bail!(
            "{shown} is no link that netsniff made: remove it by hand, or choose another --dir"
        ),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(format!("{shown} is not there\n")),
        Err(error) => Err(error).with_context(|| format!("cannot look at {shown}")),
    }
}

/// Whether a link leads to a program of this name, though it may be gone.
fn leads_to_netsniff(link: &Path) -> bool {
    let of_this = std::env::current_exe().ok();
    fs::read_link(link).is_ok_and(|to| {
        Some(&to) == of_this.as_ref() || to.file_name().is_some_and(|name| name == LINK)
    })
}

/// The folder of the user where Wireshark looks for such programs.
fn folder() -> anyhow::Result<PathBuf> {
    let missing = || {
        let said = "tshark does not tell where Wireshark looks for such programs: name the folder with --dir \
                    (Help, About Wireshark, Folders, Personal Extcap path)";
        UsageError(said.to_owned())
    };
    let output = Command::new("tshark").args(["-G", "folders"]).output().map_err(|_| missing())?;
    Ok(named(&String::from_utf8_lossy(&output.stdout)).ok_or_else(missing)?)
}

/// The folder in what `tshark -G folders` prints. Before Wireshark 4.2 it is not named, and lies beside the configuration.
fn named(folders: &str) -> Option<PathBuf> {
    let of = |name: &str| {
        let mut lines = folders.lines();
        let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        Some(PathBuf::from(value.trim())).filter(|path| path.is_absolute())
    };
    of("Personal Extcap path").or_else(|| Some(of("Personal configuration")?.join("extcap")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_is_that_of_the_user() {
        let old = "Temp:\t/tmp\nPersonal configuration:\t/people/a b/.config/wireshark\n\
                   Extcap path:         \t/usr/lib/wireshark/extcap\n";
        assert_eq!(named(old), Some("/people/a b/.config/wireshark/extcap".into()));
        let new = format!(
            "{old}Personal Extcap path:\t/people/a/.local/lib/wireshark/extcap\nGlobal Extcap path:\t/usr/lib/x\n"
        );
        assert_eq!(named(&new), Some("/people/a/.local/lib/wireshark/extcap".into()));
        assert_eq!((named(""), named("Personal configuration: .\n")), (None, None));
    }

    #[test]
    fn a_link_is_made_anew_and_nothing_else_is_removed() {
        let folder = std::env::temp_dir().join(format!("netsniff-extcap-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        let link = folder.join("deep").join(LINK);
        assert!(remove(&link).unwrap().contains("is not there"));
        make(&link, Path::new("/gone/netsniff")).unwrap();
        make(&link, Path::new("/opt/netsniff")).unwrap();
        assert_eq!(fs::read_link(&link).unwrap(), Path::new("/opt/netsniff"));
        assert!(remove(&link).unwrap().contains("is removed"));
        symlink("/bin/sh", &link).unwrap();
        assert!(remove(&link).unwrap_err().to_string().contains("no link that netsniff made"));
        fs::remove_file(&link).unwrap();
        fs::write(&link, "mine").unwrap();
        for result in [make(&link, Path::new("/bin/sh")), remove(&link)] {
            assert!(result.unwrap_err().to_string().contains("no link that netsniff made"));
        }
        assert_eq!(fs::read(&link).unwrap(), b"mine");
        fs::remove_dir_all(folder).unwrap();
    }
}
