//! Which address is which page.

use std::sync::Arc;

use axum::Router;
use axum::routing::{get, post};

use super::answer::{Failure, typed};
use super::pages;
use super::site::Site;
use crate::page::{SCRIPT, STYLE};
use crate::sequence;

const OWN_STYLE: &str = include_str!("templates/serve.css");
const OWN_SCRIPT: &str = include_str!("templates/serve.js");

/// The pages.
pub(super) fn router(site: Arc<Site>) -> Router {
    Router::new()
        .route("/", get(pages::dashboard::page))
        .route("/events", get(pages::dashboard::events))
        .route("/connections", get(pages::browse::connections))
        .route("/connections/{uid}", get(pages::connection::page))
        .route("/connections/{uid}/packets", get(pages::connection::packets))
        .route("/connections/{uid}/packets.pcapng", get(pages::connection::download))
        .route("/connections/{uid}/sequence", get(pages::connection::picture))
        .route("/control/record", post(pages::control::record))
        .route("/findings", get(pages::browse::findings))
        .route("/health", get(pages::health::page))
        .route("/logs", get(pages::browse::logs))
        .route("/logs/{log}", get(pages::browse::log))
        .route("/report.html", get(pages::health::report))
        .route(
            "/static/style.css",
            get(async || typed("text/css", [STYLE, sequence::STYLE, OWN_STYLE].concat())),
        )
        .route("/static/tables.js", get(async || typed("text/javascript", SCRIPT)))
        .route("/static/serve.js", get(async || typed("text/javascript", OWN_SCRIPT)))
        .fallback(async || Failure::missing("there is no such page"))
        .with_state(site)
}
