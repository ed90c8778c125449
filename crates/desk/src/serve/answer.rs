//! What a page answers with, and what is shown in place of one.

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use netsniff_console::printable::printable_lines;

/// What is shown in place of a page.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) status: StatusCode,
    pub(crate) said: String,
}

impl Failure {
    pub(crate) fn inside(said: &str) -> Self {
        Self { status: StatusCode::INTERNAL_SERVER_ERROR, said: said.to_owned() }
    }

    pub(crate) fn missing(said: &str) -> Self {
        Self { status: StatusCode::NOT_FOUND, said: said.to_owned() }
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let text = format!("netsniff: {}\n", printable_lines(&self.said));
        let mut response = (self.status, text).into_response();
        // By which whoever shows it as a page knows it.
        response.extensions_mut().insert(self);
        response
    }
}

/// An answer of this type.
pub(crate) fn typed(kind: &'static str, body: impl Into<axum::body::Body>) -> Response {
    ([(header::CONTENT_TYPE, kind)], body.into()).into_response()
}
