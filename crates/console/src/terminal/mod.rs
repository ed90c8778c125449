//! What a terminal shows besides lines of text.
//!
//! | module | concern |
//! |---|---|
//! | [`progress`] | how far long work is |
//! | [`table`] | rows in columns |

pub mod progress;
pub mod table;
