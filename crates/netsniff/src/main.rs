//! The `netsniff` binary.

fn main() {}
