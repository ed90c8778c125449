//! The border to the kernel: files of procfs and sysfs, and questions to drivers.
//!
//! Everything that the doctor knows comes through [`Kernel`], and everything that it changes goes through it. So recorded
//! answers of another machine are diagnosed as this one is, and tests have drivers that are not there.

mod here;
mod recorded;

use std::io;

use netsniff_capture::ethtool::Ethtool;
use netsniff_capture::host::{PacketSocket, Qdisc};

pub use here::Here;
pub use recorded::{Answers, Recorded, Recorder};

/// What the kernel tells, and takes.
pub trait Kernel: Ethtool {
    /// The text of a file, without what blank there is around it.
    ///
    /// # Errors
    ///
    /// Those of reading a file.
    fn read(&self, path: &str) -> io::Result<String>;

    /// Names in a directory, in order.
    ///
    /// # Errors
    ///
    /// Those of reading a directory.
    fn list(&self, path: &str) -> io::Result<Vec<String>>;

    /// Where a symbolic link leads to.
    ///
    /// # Errors
    ///
    /// Those of reading a link.
    fn target(&self, path: &str) -> io::Result<String>;

    /// Writes a value to a file.
    ///
    /// # Errors
    ///
    /// Those of writing a file.
    fn write(&self, path: &str, value: &str) -> io::Result<()>;

    /// Processes that have some of these open, as `socket:[12345]`, and which, as far as they may be looked at; without this
    /// one.
    fn holders(&self, wanted: &[String]) -> Vec<(u32, Vec<String>)>;

    /// Packet sockets of the network namespace, but for those of this process.
    ///
    /// # Errors
    ///
    /// Where the kernel does not tell.
    fn packet_sockets(&self) -> io::Result<Vec<PacketSocket>>;

    /// Queueing disciplines of the network namespace.
    ///
    /// # Errors
    ///
    /// Where the kernel does not tell.
    fn qdiscs(&self) -> io::Result<Vec<Qdisc>>;

    /// The file's number, where it is one.
    fn number(&self, path: &str) -> Option<u64> {
        self.read(path).ok()?.parse().ok()
    }
}
