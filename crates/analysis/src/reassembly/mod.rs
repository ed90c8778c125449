//! Putting together what the network cut into pieces.
//!
//! | module | concern |
//! |---|---|
//! | [`fragments`] | IP fragments to datagrams |
//! | [`stream`] | TCP segments to streams |
//! | `fingerprint` | what tells whether bytes that are gone were the same |
//! | `out_of_order` | what of a stream waits behind holes |
//! | [`piece`] | what goes into a stream and comes out |
//! | `recent` | what was handed on last of a stream |

pub mod fingerprint;
pub mod fragments;
mod out_of_order;
pub mod piece;
mod recent;
pub mod stream;
