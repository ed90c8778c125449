//! Files of a run by names that others know: a link by such a name is never followed.
//!
//! Whoever may write to the directory could choose otherwise which file is overwritten, with the rights of whoever runs
//! this program.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

/// Creates a file that was not there, or opens a pipe or device for writing.
///
/// # Errors
///
/// Also where there is a symbolic link, wherever it leads.
pub(super) fn create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true);
    if path.symlink_metadata().is_err() {
        return options.create_new(true).open(path);
    }
    open(&mut options, path, false)
}

/// Opens what is there, at its last name and not where a link by that name leads; with `at_once` without waiting for
/// the reader of a pipe.
///
/// # Errors
///
/// Also where there is a symbolic link.
pub(crate) fn open(options: &mut OpenOptions, path: &Path, at_once: bool) -> io::Result<File> {
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
pub(super) fn refuse(path: &Path) -> io::Result<()> {
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
            for result in
                [create(&at(name)), open(OpenOptions::new().append(true), &at(name), true)]
            {
                let error = result.unwrap_err().to_string();
                assert!(error.contains("is not followed"), "{name}: {error}");
            }
        }
        assert_eq!(fs::read(at("victim")).unwrap(), b"precious");
        assert!(!at("nobody").exists());
        create(&at("new")).unwrap();
        assert!(at("new").is_file());
        fs::remove_dir_all(&directory).unwrap();
    }
}
