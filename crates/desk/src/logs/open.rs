//! How a file of a log is opened, in directories that others may own.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::process::geteuid;

/// Opens a regular file. In a directory of another user no link is followed: whoever owns it could lead to files that only
/// this user can read. Where a pipe has come in place of a file, nobody waits for its writer.
///
/// # Errors
///
/// When it cannot be opened, or is no regular file.
pub(crate) fn open_log(path: &Path) -> io::Result<File> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let owner = fs::metadata(parent.unwrap_or(Path::new(".")))?.uid();
    let is_trusted = owner == 0 || owner == geteuid().as_raw();
    let links = if is_trusted { OFlags::empty() } else { OFlags::NOFOLLOW };
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | links;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{chown, symlink};

    use super::*;

    #[test]
    fn links_of_another_user_are_not_followed() {
        let directory = std::env::temp_dir().join(format!("netsniff-open-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let (secret, link) = (directory.join("secret"), directory.join("conn.log"));
        fs::write(&secret, "x").unwrap();
        symlink(&secret, &link).unwrap();
        assert!(open_log(&secret).is_ok() && open_log(&link).is_ok());
        assert!(open_log(&directory).is_err(), "a directory is no file");
        if geteuid().is_root() {
            chown(&directory, Some(65_534), None).unwrap();
            assert!(open_log(&secret).is_ok());
            assert!(open_log(&link).is_err(), "it may lead to what root alone can read");
        } else {
            netsniff_testing::print_uncaptured(
                "links of another user: not tried, since that needs root",
            );
        }
        fs::remove_dir_all(&directory).unwrap();
    }
}
