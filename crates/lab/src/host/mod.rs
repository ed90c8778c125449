//! The host that measures: what it is, and what an experiment sets up in it.
//!
//! | module | concern |
//! |---|---|
//! | [`machine`] | what is measured on |
//! | [`nic`] | what drives its interfaces |
//! | [`storage`] | a directory of the user's for files, and how fast it is |
//! | `namespace` | commands on interfaces and in network namespaces |
//! | `process` | who a process is, what it uses, and how it ends |
//! | `group` | control groups of the kernel |
//! | [`quota`] | a share of a processor, as of a slower host, by such a group |
//! | `neighbour` | processes that want a capture's processors |
//! | `memory` | a bound on memory, as of a host that has little, by such a group |
//! | `sysctl` | settings of the kernel that are changed for a while |

pub(crate) mod group;
pub mod machine;
pub(crate) mod memory;
pub(crate) mod namespace;
pub(crate) mod neighbour;
pub mod nic;
pub(crate) mod process;
pub mod quota;
pub mod storage;
pub(crate) mod sysctl;
