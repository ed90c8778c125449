//! Traffic watched: rows of logs as they are written, and what they have told so far. Views in a terminal and in a browser show it.
//!
//! | module | concern |
//! |---|---|
//! | `traffic` | which traffic that is: arguments that views have in common |
//! | `source` | where rows come from |
//! | `recording` | a recording of live traffic beside the view |
//! | `packets` | packets of a connection as text |
//! | `data` | what rows have told, in bounded memory |
//! | `tables` | what is listed, in order and by a condition |

pub(crate) mod data;
pub(crate) mod packets;
pub(crate) mod recording;
pub(crate) mod source;
pub(crate) mod tables;
pub(crate) mod traffic;
