//! Putting together what the network cut into pieces.
//!
//! | module | concern |
//! |---|---|
//! | [`fragments`] | IP fragments to datagrams |
//! | [`stream`] | TCP segments to streams |
//! | `holding` | what of a stream waits behind holes |

pub mod fragments;
mod holding;
pub mod stream;
