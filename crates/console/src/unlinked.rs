//! Files that are written, by names that others know: a link by such a name is never followed.
//!
//! Whoever may write to the directory could choose otherwise which file is overwritten, with the rights of whoever runs
//! this program. That holds for files that a run names itself, as logs, and for those that an argument names: who puts
//! a link there need not be who types the name. Links of the system, as `/dev/stdout`, are followed.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

/// Creates a file that was not there, or opens a pipe or device for writing.
///
/// # Errors
///
/// Also where there is a symbolic link, wherever it leads.
pub fn create(path: &Path) -> io::Result<File> {
    create_with(path, 0o666)
}

/// As [`create`], of a file that its owner alone reads and writes.
///
/// # Errors
///
/// As [`create`].
pub fn create_private(path: &Path) -> io::Result<File> {
    create_with(path, PRIVATE)
}

fn create_with(path: &Path, mode: u32) -> io::Result<File> {
    let mut options = OpenOptions::new();
    with_mode(options.write(true), mode);
    if path.symlink_metadata().is_err() {
        return options.create_new(true).open(path);
    }
    open(&mut options, path, false)
}

/// Creates the file that an argument names, or empties it.
///
/// # Errors
///
/// Also where there is a symbolic link that is none of the system.
pub fn create_named(path: &Path) -> io::Result<File> {
    create_named_with(path, 0o666)
}

/// As [`create_named`], of a file that its owner alone reads and writes: what people say on a network is no business of
/// others.
///
/// # Errors
///
/// As [`create_named`].
pub fn create_named_private(path: &Path) -> io::Result<File> {
    create_named_with(path, PRIVATE)
}

fn create_named_with(path: &Path, mode: u32) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let options = with_mode(options.write(true).create(true).truncate(true), mode);
    if is_of_system(path) { options.open(path) } else { open(options, path, false) }
}

/// Creates a file that was not there, for its owner alone, and opens it for reading as well.
///
/// # Errors
///
/// Also where there is something of that name.
pub fn create_new_private(path: &Path) -> io::Result<File> {
    with_mode(OpenOptions::new().read(true).write(true).create_new(true), PRIVATE).open(path)
}

/// The rights of a file that its owner alone reads and writes.
const PRIVATE: u32 = 0o600;

fn with_mode(options: &mut OpenOptions, mode: u32) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, mode);
    #[cfg(not(unix))]
    let _ = mode;
    options
}

/// Creates a file that its owner alone writes, in the place of what has that name; a link goes, and is not followed.
///
/// # Errors
///
/// Also where somebody makes one at the same time.
pub fn replace(path: &Path) -> io::Result<File> {
    replace_with(path, 0o644)
}

/// As [`replace`], of a file that its owner alone reads, too.
///
/// # Errors
///
/// As [`replace`].
pub fn replace_private(path: &Path) -> io::Result<File> {
    replace_with(path, PRIVATE)
}

fn replace_with(path: &Path, mode: u32) -> io::Result<File> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    with_mode(OpenOptions::new().write(true).create_new(true), mode).open(path)
}

/// Whether nobody but the system makes links where the file is: `/dev/stdout` is one into `/proc`, and leads to wherever
/// the output goes.
pub fn is_of_system(path: &Path) -> bool {
    let is_plain = |part| !matches!(part, std::path::Component::ParentDir);
    let roots = ["/dev", "/proc"].map(Path::new);
    roots.iter().any(|root| path.starts_with(root))
        && !path.starts_with("/dev/shm")
        && path.components().all(is_plain)
}

/// Opens what is there, at its last name and not where a link by that name leads; with `at_once` without waiting for
/// the reader of a pipe.
///
/// # Errors
///
/// Also where there is a symbolic link.
pub fn open(options: &mut OpenOptions, path: &Path, at_once: bool) -> io::Result<File> {
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        use std::os::unix::fs::OpenOptionsExt as _;

        let wait = if at_once { OFlags::NONBLOCK } else { OFlags::empty() };
        options.custom_flags((OFlags::NOFOLLOW | wait).bits().cast_signed());
    }
    #[cfg(not(unix))]
    let _ = at_once;
    refuse(path)?;
    // It may have become a link since.
    options.open(path).map_err(|error| refuse(path).err().unwrap_or(error))
}

/// Tells that there is a symbolic link, where there is one.
pub fn refuse(path: &Path) -> io::Result<()> {
    if path.is_symlink() {
        let why = "it is a symbolic link, which is not followed: remove it, or write elsewhere";
        return Err(io::Error::other(why));
    }
    Ok(())
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn no_link_is_followed_wherever_it_leads() {
        let directory =
            std::env::temp_dir().join(format!("netsniff-unlinked-{}", std::process::id()));
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir_all(&directory).unwrap();
        let at = |name: &str| directory.join(name);
        fs::write(at("victim"), "precious").unwrap();
        for (name, target) in
            [("file", at("victim")), ("nothing", at("nobody")), ("device", "/dev/null".into())]
        {
            symlink(target, at(name)).unwrap();
            for result in [
                create(&at(name)),
                create_named(&at(name)),
                open(OpenOptions::new().append(true), &at(name), true),
            ] {
                let error = result.unwrap_err().to_string();
                assert!(error.contains("is not followed"), "{name}: {error}");
            }
        }
        assert_eq!(fs::read(at("victim")).unwrap(), b"precious");
        assert!(!at("nobody").exists());
        use std::io::Write as _;
        replace(&at("file")).unwrap().write_all(b"new").unwrap();
        assert_eq!(fs::read(at("victim")).unwrap(), b"precious");
        assert!(at("file").symlink_metadata().unwrap().is_file());
        create(&at("new")).unwrap();
        assert!(at("new").is_file());
        create_named(&at("victim")).unwrap();
        assert_eq!(fs::read(at("victim")).unwrap(), b"", "what is no link is emptied");
        fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn links_of_the_system_are_those_where_nobody_else_makes_any() {
        for path in ["/dev/stdout", "/dev/fd/3", "/proc/self/fd/1"] {
            assert!(is_of_system(Path::new(path)), "{path}");
        }
        for path in ["/dev/shm/out", "/dev/../tmp/out", "/devices/out", "/tmp/dev/out", "dev/out"] {
            assert!(!is_of_system(Path::new(path)), "{path}");
        }
    }
}
