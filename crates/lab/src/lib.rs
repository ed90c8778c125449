//! The lab: what this machine captures without loss, measured.
//!
//! Frames are made by `netsniff generate` at one end of a wire and captured by any tool at the other, both as processes of
//! their own, so that the lab measures what a user would run.
//!
//! | module | concern |
//! |---|---|
//! | [`testbed`] | a wire with two ends: namespaces, which go whatever happens, or another machine and this one |
//! | `remote` | the other machine, by ssh |
//! | `quota` | a share of a processor, as of a slower host |
//! | `memory` | a bound on memory, as of a host that has little |
//! | `group` | control groups of the kernel, which do that |
//! | [`tap`] | losses that are planted, and counted by the kernel |
//! | [`disk`] | a slower disk, planted, and what arithmetic says that it loses |
//! | `namespace` | commands on interfaces and in network namespaces |
//! | `sysctl` | settings of the kernel that are changed for a while |
//! | `process` | who a process is, what it uses, and how it ends |
//! | [`tools`] | what captures: THE list |
//! | [`load`] | what is sent |
//! | [`trial`] | one run: a load, a tool, and everything that was counted |
//! | [`storage`] | a directory of the user's for files, and how fast it is |
//! | [`mod@search`] | the highest rate without loss, found with as few runs as possible |
//! | [`lossless`] | that search for tools and sizes of frames |
//! | [`certificate`] | what was found, signed, and compared with what is there |
//! | [`certify`] | a certified rate, checked again |
//! | [`sweep`] | runs over all combinations of values |
//! | [`model`] | what will be lost at a load that was never tried |
//! | [`damage`] | flows that a loss damages |
//! | [`paper`] | the experiments of five papers, and whether their claims hold here |
//! | [`report`] | pages and plots of all that |
//! | [`work`] | an application with a cost that is known |
//! | [`machine`] | what is measured on |
//! | [`compare`] | two things that were measured, side by side |
//! | [`mod@median`] | the middle of some values |
//! | `steady` | whether a run came to a steady state |
//! | [`stop`] | how a run ends before its time |

pub mod certificate;
pub mod certify;
pub mod commands;
pub mod compare;
pub mod content;
pub mod damage;
pub mod disk;
mod group;
pub mod load;
pub mod lossless;
pub mod machine;
pub mod median;
mod memory;
pub mod model;
mod namespace;
pub mod nic;
pub mod packet_order;
pub mod paper;
mod process;
pub mod quota;
mod remote;
pub mod report;
pub mod search;
mod steady;
pub mod stop;
pub mod storage;
pub mod sweep;
mod sysctl;
pub mod tap;
pub mod testbed;
pub mod tools;
pub mod trial;
pub mod work;
