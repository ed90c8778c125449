//! Putting together what the network cut into pieces.
//!
//! | module | concern |
//! |---|---|
//! | [`fragments`] | IP fragments to datagrams |

pub mod fragments;
