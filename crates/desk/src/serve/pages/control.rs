//! What a browser asks to be done.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Redirect};
use serde::Deserialize;

use super::{Answer, Pages};
use crate::serve::answer::Failure;

/// A form that was sent.
#[derive(Deserialize)]
struct Asked {
    action: Action,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Action {
    Begin,
    End,
}

/// Begins or ends a recording, and goes back to the overview, which tells how it went.
pub(crate) async fn record(State(site): Pages, form: String) -> Answer {
    let refused = |said: &str| Failure { status: StatusCode::FORBIDDEN, said: said.to_owned() };
    if site.control.is_none() {
        return Err(refused("it only shows: netsniff serve --control lets a browser record"));
    }
    let asked: Asked = serde_urlencoded::from_str(&form)
        .map_err(|error| Failure { status: StatusCode::BAD_REQUEST, said: error.to_string() })?;
    site.read(move |site, _| {
        let Some(control) = &site.control else { return Ok(()) };
        let told = match asked.action {
            Action::Begin => control.begin(),
            Action::End => control.end().map(|(file, told)| {
                site.packets.add(file);
                told
            }),
        };
        site.watched.say(told.unwrap_or_else(|wrong| wrong));
        Ok(())
    })
    .await?;
    Ok(Redirect::to("/").into_response())
}
