//! What other programs show of our arguments: completions of shells, pages of man(1).

pub mod completions;
pub mod man;
