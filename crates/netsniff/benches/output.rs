//! Rendering of log rows.

fn main() {}
