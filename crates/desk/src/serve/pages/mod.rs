//! The pages.
//!
//! | module | concern |
//! |---|---|
//! | `dashboard` | what goes on, renewed as it does |
//! | `browse` | rows of a log by a condition, in order, a page at a time |
//! | `connection` | one connection: its rows in all logs, its packets |
//! | `control` | what a browser asks to be done |
//! | `health` | what the capture lost, whether the logs can be believed, and the report |

pub(super) mod browse;
pub(super) mod connection;
pub(super) mod control;
pub(super) mod dashboard;
pub(super) mod health;

use std::sync::Arc;

use axum::response::Response;

use super::answer::Failure;
use super::site::Site;

/// What a page is made from.
type Pages = axum::extract::State<Arc<Site>>;
/// A page, or why there is none.
type Answer = Result<Response, Failure>;
