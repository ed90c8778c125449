//! Whether the logs can be believed: what the capture lost, by stage, and what the logs themselves tell. And the report.

use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse as _;
use minijinja::context;

use super::{Answer, Pages};
use crate::page::Section;
use crate::watch::tables::losses::{Look, lines};

/// The sections of a report that are about the logs.
const ABOUT_LOGS: [&str; 2] = ["trust", "sources"];

/// The page.
pub(crate) async fn page(State(site): Pages) -> Answer {
    let overview = site.overview().await;
    let losses: Vec<_> = lines(&site.watched.state().data)
        .into_iter()
        .map(|(look, text)| (class(look), text))
        .collect();
    let of = match &overview {
        Ok(overview) => {
            let is_about = |section: &&Section| ABOUT_LOGS.contains(&section.id);
            let sections: Vec<_> = overview.sections.iter().filter(is_about).collect();
            context! { verdict => overview.verdict, sections => sections, lead => "" }
        }
        // At first a run has no log.
        Err(failure) => {
            context! { verdict => (), sections => Vec::<Section>::new(), lead => failure.said }
        }
    };
    site.page(
        "sections.html",
        "/health",
        context! { title => "Capture health", losses => losses, ..of },
    )
}

const fn class(look: Look) -> &'static str {
    match look {
        Look::Plain => "",
        Look::Heading => "heading",
        Look::Good => "good",
        Look::Warning => "bad",
        Look::Faint => "unknown",
    }
}

/// The report as a file.
pub(crate) async fn report(State(site): Pages) -> Answer {
    let overview = site.overview().await?;
    let html = site.read(move |site, _| overview.html(&site.title)).await?;
    let head = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_DISPOSITION, "attachment; filename=\"report.html\""),
    ];
    Ok((head, html).into_response())
}
