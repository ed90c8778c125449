//! The pages.
//!
//! | module | concern |
//! |---|---|
//! | `dashboard` | what goes on, renewed as it does |
//! | `asked` | which rows of a log an address asks for |
//! | `browse` | rows of a log by a condition, in order, a page at a time |
//! | `download` | the same as a file |
//! | `connection` | one connection: its rows in all logs, its packets |
//! | `control` | what a browser asks to be done |
//! | `health` | what the capture lost, whether the logs can be believed, and the report |

mod asked;
pub(super) mod browse;
pub(super) mod connection;
pub(super) mod control;
pub(super) mod dashboard;
pub(super) mod download;
pub(super) mod health;

use std::sync::Arc;

use axum::response::Response;

use super::answer::Failure;
use super::site::Site;

/// What a page is made from.
type Pages = axum::extract::State<Arc<Site>>;
/// A page, or why there is none.
type Answer = Result<Response, Failure>;
