//! Which address is which page.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{StatusCode, Version};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use minijinja::context;

use super::answer::{Failure, typed};
use super::pages;
use super::site::Site;
use crate::page::{SCRIPT, STYLE, Section};
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
        .route(
            "/connections/{uid}/packets.pcapng",
            get(pages::connection::download).layer(from_fn(with_an_end)),
        )
        .route("/connections/{uid}/sequence", get(pages::connection::picture))
        .route("/control/record", post(pages::control::record))
        .route("/findings", get(pages::browse::findings))
        .route("/health", get(pages::health::page))
        .route("/logs", get(pages::browse::logs))
        .route("/logs/{log}", get(pages::browse::log))
        .route("/logs/{log}/{file}", get(pages::download::rows).layer(from_fn(with_an_end)))
        .route("/report.html", get(pages::health::report))
        .route(
            "/static/style.css",
            get(async || typed("text/css", [STYLE, sequence::STYLE, OWN_STYLE].concat())),
        )
        .route("/static/tables.js", get(async || typed("text/javascript", SCRIPT)))
        .route("/static/serve.js", get(async || typed("text/javascript", OWN_SCRIPT)))
        .fallback(async || Failure::missing("there is no such page"))
        .layer(from_fn_with_state(Arc::clone(&site), failures_as_pages))
        .with_state(site)
}

/// Refuses HTTP/1.0, where a file of unknown length ends with the connection: half of it would look like all of it.
async fn with_an_end(request: Request, next: Next) -> Response {
    if request.version() < Version::HTTP_11 {
        let said = "this file is sent by HTTP/1.1 alone: of HTTP/1.0 nobody could tell a download that broke off".to_owned();
        return Failure { status: StatusCode::HTTP_VERSION_NOT_SUPPORTED, said }.into_response();
    }
    next.run(request).await
}

/// A failure as a page with a way on, where a browser shows it as one. Scripts and others get its text.
async fn failures_as_pages(
    State(site): State<Arc<Site>>,
    request: Request,
    next: Next,
) -> Response {
    let is_page = request.headers().get("sec-fetch-dest").is_some_and(|to| to == "document");
    let response = next.run(request).await;
    let Some(failure) = response.extensions().get::<Failure>().cloned().filter(|_| is_page) else {
        return response;
    };
    let title = failure.status.canonical_reason().unwrap_or("Nothing to show");
    let of = context! {
        title => title, lead => failure.said, verdict => (), sections => Vec::<Section>::new(),
    };
    match site.page("sections.html", "", of) {
        Ok(page) => (failure.status, page).into_response(),
        Err(_) => response,
    }
}
