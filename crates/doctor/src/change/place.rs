//! Where and when a change was made: the start of the machine, and the network namespace.

use serde::{Deserialize, Serialize};

use crate::kernel::Kernel;

const BOOT: &str = "/proc/sys/kernel/random/boot_id";
const NAMESPACE: &str = "/proc/self/ns/net";

/// The start of the machine and the network namespace; what is not known is unset.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The kernel's name of this start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot: Option<String>,
    /// Number of the inode of the network namespace, which another start gives to another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<u64>,
}

fn differ<T: PartialEq>(one: Option<&T>, other: Option<&T>) -> bool {
    one.zip(other).is_some_and(|(one, other)| one != other)
}

impl Place {
    /// The place of this process.
    #[must_use]
    pub fn of(kernel: &dyn Kernel) -> Self {
        // As `net:[4026531840]` (namespaces(7)).
        let namespace = |link: &str| link.strip_prefix("net:[")?.strip_suffix(']')?.parse().ok();
        Self {
            boot: kernel.read(BOOT).ok(),
            namespace: kernel.target(NAMESPACE).ok().and_then(|link| namespace(&link)),
        }
    }

    /// Whether the machine was surely started between both.
    #[must_use]
    pub fn is_of_another_boot(&self, other: &Self) -> bool {
        differ(self.boot.as_ref(), other.boot.as_ref())
    }

    /// Whether both are surely of two network namespaces. Those of another start are gone, and cannot be compared.
    #[must_use]
    pub fn is_of_another_namespace(&self, other: &Self) -> bool {
        !self.is_of_another_boot(other) && differ(self.namespace.as_ref(), other.namespace.as_ref())
    }
}
