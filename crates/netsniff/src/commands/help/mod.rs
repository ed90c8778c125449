//! What netsniff tells of itself: its logs, completions for shells, pages of man(1).

mod clickhouse;
pub mod completions;
pub mod man;
pub mod schema;
