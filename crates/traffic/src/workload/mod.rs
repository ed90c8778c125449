//! The workloads of the benchmarks: arithmetic for `small64`, real captures for `mix`.
//!
//! `mix` is made in four steps: captures are taken in ([`capture`]), counted by [`category`], a [`plan`] says how many
//! instances of each there will be, and [`mix`] merges the instances by time.

pub mod capture;
pub mod category;
pub mod mix;
pub mod plan;
pub mod small64;

pub use capture::{Capture, Rejection, Traits};
pub use category::Category;
pub use mix::Mix;
pub use small64::Small64;
