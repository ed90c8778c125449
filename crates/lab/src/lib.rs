//! The lab: what this machine captures without loss, measured.
//!
//! Frames are made by `netsniff generate` at one end of a wire and captured by any tool at the other, both as processes of
//! their own, so that the lab measures what a user would run.
//!
//! | module | concern |
//! |---|---|
//! | [`testbed`] | a wire with two ends: namespaces, which go whatever happens, or another machine and this one |
//! | `remote` | the other machine, by ssh |
//! | [`host`] | the machine that is measured on, and what is set up in it |
//! | [`disk`] | a slower disk, planted, and what arithmetic says that it loses |
//! | [`tools`] | what captures: THE list |
//! | [`load`] | what is sent |
//! | [`trial`] | one run: a load, a tool, and everything that was counted |
//! | [`mod@search`] | the highest rate without loss, found with as few runs as possible, and sweeps over all combinations of values |
//! | [`certificate`] | what was found, signed, and compared with what is there |
//! | [`model`] | what will be lost at a load that was never tried |
//! | [`damage`] | flows that a loss damages |
//! | [`offline`] | how fast files are processed, by stage, by option and beside other programs |
//! | [`paper`] | the experiments of five papers, and whether their claims hold here |
//! | [`report`] | pages and plots of all that |
//! | [`work`] | an application with a cost that is known |
//! | [`compare`] | two things that were measured, side by side |
//! | [`tune`] | settings that keep a capture from losing, found by measuring |
//! | [`stop`] | how a run ends before its time |

pub mod certificate;
pub mod commands;
pub mod compare;
pub mod content;
pub mod damage;
pub mod disk;
pub mod host;
pub mod load;
pub mod model;
pub mod offline;
pub mod packet_order;
pub mod paper;
mod remote;
pub mod report;
pub mod search;
pub mod stop;
pub mod testbed;
pub mod tools;
pub mod trial;
pub mod tune;
pub mod work;
