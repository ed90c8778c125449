//! What a terminal shows besides lines of text.
//!
//! | module | concern |
//! |---|---|
//! | [`progress`] | how far long work is |
//! | [`signs`] | which signs it has |
//! | [`table`] | rows in columns |

pub mod progress;
pub mod signs;
pub mod table;
