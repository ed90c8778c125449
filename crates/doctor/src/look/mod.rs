//! The stages of a host, in the order of the way: what they have counted, and what their settings are.
//!
//! | module | stages |
//! |---|---|
//! | `interface` | wire, ring, coalescing, offloads |
//! | `spread` | queues and hash, interrupts |
//! | `stack` | NAPI, backlog, taps |
//! | `sockets` | sockets and processes that capture |
//! | `machine` | processors |
//! | `disk` | disk |

mod disk;
mod interface;
mod machine;
mod sockets;
mod spread;
mod stack;

use crate::kernel::Kernel;
use crate::stage::Stage;

pub(crate) use disk::{BUSY, WRITTEN};
pub use interface::falsified_by;
pub use machine::{Processor, processors, processors_of, siblings};
pub use sockets::{Capture, Thread, captures};
pub use stack::softnet;

/// What is looked at.
#[derive(Clone, Copy)]
pub struct Look<'a> {
    /// Who answers.
    pub kernel: &'a dyn Kernel,
    /// Name of the interface.
    pub interface: &'a str,
}

impl Look<'_> {
    /// A file of the interface in sysfs.
    #[must_use]
    pub fn file(&self, name: &str) -> String {
        format!("/sys/class/net/{}/{name}", self.interface)
    }

    /// Megabits a second of the link, where it knows.
    #[must_use]
    pub fn megabits(&self) -> Option<u64> {
        // Interfaces without a speed tell -1, or refuse.
        self.kernel
            .number(&self.file("speed"))
            .filter(|speed| *speed > 0 && *speed < u64::from(u32::MAX))
    }

    /// Number of the interface.
    #[must_use]
    pub fn index(&self) -> Option<u64> {
        self.kernel.number(&self.file("ifindex"))
    }

    /// Numbers of its queues that receive, or send.
    fn queues(&self, kind: &str) -> Vec<u32> {
        let names = self.kernel.list(&self.file("queues")).unwrap_or_default();
        let mut numbers: Vec<u32> = names
            .iter()
            .filter_map(|name| name.strip_prefix(kind)?.strip_prefix('-')?.parse().ok())
            .collect();
        numbers.sort_unstable();
        numbers
    }

    /// All stages, as they are now.
    #[must_use]
    pub fn stages(&self) -> Vec<Stage> {
        vec![
            interface::wire(self),
            interface::ring(self),
            interface::coalescing(self),
            interface::offloads(self),
            spread::queues(self),
            spread::interrupts(self),
            stack::napi(self),
            stack::backlog(self),
            stack::taps(self),
            sockets::sockets(self),
            sockets::processes(self),
            machine::stage(self),
            disk::disk(self),
        ]
    }
}
