//! A setting of the kernel that a test changes for a moment.

use std::fs;
use std::path::{Path, PathBuf};

/// Goes back with this value.
pub(crate) struct Setting(PathBuf, String);

impl Setting {
    /// Sets it; `None` where the kernel does not take that.
    pub(crate) fn set(name: &str, value: &str) -> Option<Self> {
        let path = Path::new("/proc/sys").join(name.replace('.', "/"));
        let before = fs::read_to_string(&path).ok()?;
        fs::write(&path, value).ok()?;
        Some(Self(path, before))
    }

    /// What it is now.
    pub(crate) fn now(&self) -> String {
        fs::read_to_string(&self.0).unwrap().trim().to_owned()
    }
}

impl Drop for Setting {
    fn drop(&mut self) {
        let _ = fs::write(&self.0, &self.1);
    }
}
