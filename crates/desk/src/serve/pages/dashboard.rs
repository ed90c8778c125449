//! What goes on: rates, hosts, services and connections of the last intervals, renewed as rows come.

use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::{Query, State};
use axum::response::sse::{Event, KeepAlive, Sse};
use minijinja::{Value, context};
use netsniff_analysis::log::capture::CaptureVerdict;
use netsniff_console::number::{bytes, count, duration, exact, rate};
use netsniff_console::terminal::signs::Signs;
use serde::Deserialize;
use tokio_stream::StreamExt as _;

use super::{Answer, Pages};
use crate::logs::Folder;
use crate::page::Tile;
use crate::page::plot::Layers;
use crate::page::table::{Cell, Column, Table, moment};
use crate::serve::answer::Failure;
use crate::serve::args::Kind;
use crate::serve::renewed::{Parts, SPANS};
use crate::serve::rows::shown::{of_host, of_uid};
use crate::serve::site::Site;
use crate::serve::watched::State as Known;
use crate::watch::data::subjects::Span;
use crate::watch::tables::columns::{Unit, first_sort};
use crate::watch::tables::{self, Sort, Subject, cell};

/// Intervals of the picture.
const INTERVALS: usize = 120;
/// Rows of a table.
const ROWS: usize = 12;

/// What of it is asked for.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Asked {
    /// Intervals that are summed up, or `all`.
    span: Option<String>,
}

impl Asked {
    /// The place of the span among those to choose from.
    fn span(&self, kind: &Kind) -> usize {
        let asked = self.span.as_deref().unwrap_or(if *kind == Kind::Live { "10" } else { "all" });
        SPANS.iter().position(|(name, _)| *name == asked).unwrap_or(SPANS.len() - 1)
    }
}

/// The page.
pub(crate) async fn page(State(site): Pages, Query(asked): Query<Asked>) -> Answer {
    // Logs without intervals have nothing that goes on: what they amount to is told instead.
    let has_series = site.kind != Kind::Logs || {
        let folder = site.read(|site, _| Folder::open(&site.directory)).await?;
        folder.has("series")
    };
    if !has_series {
        let overview = site.overview().await?;
        let (verdict, sections) = (&overview.verdict, &overview.sections);
        let of = context! { verdict => verdict, sections => sections, lead => NO_SERIES, title => "Overview" };
        return site.page("sections.html", "/", of);
    }
    let at = asked.span(&site.kind);
    let parts = latest(&site, at).await?;
    let spans: Vec<_> = SPANS
        .into_iter()
        .enumerate()
        .map(|(it, (name, span))| (name, said(&site, span), it == at))
        .collect();
    let span = SPANS.get(at).map(|(name, _)| *name);
    site.page(
        "dashboard.html",
        "/",
        context! { parts => parts.of_page, spans => spans, span => span },
    )
}

const NO_SERIES: &str = "These logs have no `series`, from which is known what goes on when: netsniff analyze --series writes it.";

/// Events: the parts of the page that change, whenever rows came.
pub(crate) async fn events(
    State(site): Pages,
    Query(asked): Query<Asked>,
) -> Result<Sse<impl tokio_stream::Stream<Item = Result<Event, Infallible>>>, Failure> {
    let at = asked.span(&site.kind);
    let parts = site.parts.get(at).ok_or_else(|| Failure::missing("there is no such span"))?;
    // Followed before it is made: a change between both would be missed.
    let followed = parts.follow();
    latest(&site, at).await?;
    // All that would end a line is escaped in it.
    let event = |parts: Arc<Parts>| Event::default().event("parts").data(parts.event.as_str());
    let events = followed.map(move |parts| Ok(event(parts)));
    Ok(Sse::new(events).keep_alive(KeepAlive::default()))
}

/// Makes the parts of the page anew, as long as somebody looks.
pub(in crate::serve) fn renew(site: &Arc<Site>) {
    for at in 0..SPANS.len() {
        let site = Arc::clone(site);
        tokio::spawn(async move {
            let Some(parts) = site.parts.get(at) else { return };
            parts.renew(site.watched.changes(), || making(&site, at)).await;
        });
    }
}

/// The parts of the page that change, as of now.
async fn latest(site: &Arc<Site>, at: usize) -> Result<Arc<Parts>, Failure> {
    let parts = site.parts.get(at).ok_or_else(|| Failure::missing("there is no such span"))?;
    let latest = parts.latest(&site.watched.changes(), making(site, at)).await;
    latest.ok_or_else(|| Failure::inside("the page could not be made"))
}

fn making(site: &Arc<Site>, at: usize) -> impl FnOnce() -> Parts + Send + use<> {
    let site = Arc::clone(site);
    move || {
        let of_page = fragments(&site, SPANS.get(at).map_or(Span::Whole, |(_, span)| *span));
        let event = serde_json::to_string(&of_page).unwrap_or_default();
        Parts { of_page, event }
    }
}

/// The parts of the page that change, by the names of their places.
fn fragments(site: &Site, span: Span) -> Value {
    let known = site.watched.state();
    let total = known.data.totals.over(span);
    let verdict = verdict(site, &known);
    let tiles = tiles(&known, span);
    let layers = layers(&known);
    let lists: Vec<_> = [Subject::Hosts, Subject::Services, Subject::Connections]
        .iter()
        .map(|subject| list(&known, subject, span))
        .collect();
    let losses = total.verdict();
    // Rows that come wait for it.
    drop(known);
    let picture = layers.map(|layers| layers.svg());
    let render = |of: Value| {
        let html = site.render("text.html", "/", of);
        html.unwrap_or_else(|failure| {
            netsniff_console::printable::printable(&failure.said).into_owned()
        })
    };
    let [hosts, services, connections] = <[_; 3]>::try_from(lists).unwrap_or_default();
    let look = look(losses);
    context! {
        head => render(context! { verdict => verdict, look => look, tiles => tiles }),
        picture => render(context! { svg => picture }),
        control => render(context! { control => control(site) }),
        hosts => render(context! { table => hosts }),
        services => render(context! { table => services }),
        connections => render(context! { table => connections }),
    }
}

/// What a browser may do, and what is done.
fn control(site: &Site) -> Option<Value> {
    let control = site.control.as_ref()?;
    Some(context! { recording => control.recording() })
}

/// The colour of a verdict.
pub(super) const fn look(verdict: CaptureVerdict) -> &'static str {
    match verdict {
        CaptureVerdict::Good => "good",
        CaptureVerdict::Degraded => "warn",
        CaptureVerdict::Bad => "bad",
        CaptureVerdict::Unknown => "unknown",
    }
}

/// How much the capture lost, in a sentence, and how far the rows go.
fn verdict(site: &Site, known: &Known) -> String {
    let total = known.data.totals.over(Span::Whole);
    let lost = match (total.dropped.0, total.intervals) {
        (_, 0) => "No interval has ended yet".to_owned(),
        (None, _) => "Nobody can tell what the capture lost".to_owned(),
        (Some(0), _) => "The capture lost no packet".to_owned(),
        (Some(1), _) => "The capture lost 1 packet".to_owned(),
        (Some(lost), _) => format!("The capture lost {} packets", exact(lost.into())),
    };
    let time =
        known.data.now().map_or_else(String::new, |now| format!(", up to {} UTC", moment(now)));
    let end = match (&site.kind, &known.analysis, &known.ended) {
        (Kind::Logs, _, Some(ending)) => format!("; {}", ending.how),
        (_, Some(how), _) => format!("; {how}"),
        _ => String::new(),
    };
    let said = known.said.as_ref().map_or_else(String::new, |said| format!("; {said}"));
    format!("{lost}{time}{end}{said}.")
}

fn tiles(known: &Known, span: Span) -> Vec<Tile> {
    let data = &known.data;
    let total = data.totals.over(span);
    let number = |value: Option<i64>, shown: fn(u64) -> String| {
        let value = value.and_then(|value| u64::try_from(value).ok());
        value.map_or_else(
            || Cell::unset("not known of all intervals"),
            |value| Cell { value: Some(value.to_string()), ..Cell::text(shown(value)) },
        )
    };
    let tile = |name: &str, cell: Cell| Tile { name: name.to_owned(), cell };
    let mut tiles = vec![
        tile("packets", number(total.all.packets.0, count)),
        tile("bytes of frames", number(total.all.bytes.0, bytes)),
    ];
    if let Some((packets, bits)) = each_second(known, span) {
        tiles.push(tile("packets a second", Cell::text(rate(packets, "packets/s"))));
        tiles.push(tile("bits a second", Cell::text(rate(bits, "bit/s"))));
    }
    let open = total.open_flows.and_then(|open| i64::try_from(open).ok());
    tiles.extend([
        tile("new connections", number(total.flows.new_flows.0, count)),
        tile("open connections", number(open, count)),
        tile("segments sent again", number(total.flows.retransmitted.0, count)),
        tile("lost by the network", number(total.flows.network_lost.0, bytes)),
        tile("lost by the capture", number(total.flows.capture_lost.0, bytes)),
    ]);
    tiles
}

/// Packets and bits a second in the intervals of the span that were seen from their begin on.
fn each_second(known: &Known, span: Span) -> Option<(f64, f64)> {
    let Span::Last(most) = span else { return None };
    let (total, intervals) = known.data.totals.whole_intervals(most)?;
    let seconds = known.data.interval? as f64 * intervals as f64 / 1e9;
    let (packets, bytes) = total.all.packets.0.zip(total.all.bytes.0)?;
    Some((packets as f64 / seconds, bytes as f64 * 8.0 / seconds))
}

/// Bits a second over the last intervals.
fn layers(known: &Known) -> Option<Layers<'static>> {
    let data = &known.data;
    let (interval, now) = data.interval.zip(data.now())?;
    let values: Vec<_> =
        data.totals.trend(INTERVALS).into_iter().map(|it| vec![it.into()]).collect();
    let long = interval.saturating_mul(i64::try_from(values.len()).unwrap_or(i64::MAX));
    Some(Layers {
        title: "Bits a second over the last intervals",
        begin: now.saturating_sub(long),
        width: interval,
        values,
    })
}

/// The first rows of a table, and how many there are.
fn list(known: &Known, subject: &Subject, span: Span) -> Table {
    let sort = Sort { column: first_sort(subject), is_ascending: false };
    let found = tables::Table::of(&known.data, subject, span, sort, None);
    let (id, caption) = match subject {
        Subject::Hosts => ("hosts", "Hosts, those that sent most first"),
        Subject::Services => ("services", "Services, those that answered most first"),
        _ => ("connections", "Connections, open ones and those that ended, the most bytes first"),
    };
    let columns = found.columns.iter().map(|column| Column {
        is_number: column.is_number,
        ..Column::text(&column.title.to_lowercase(), column.unit.map_or("", Unit::in_full))
    });
    let rows = found.rows.iter().take(ROWS).map(|row| {
        let cells = row.cells.iter().zip(found.columns);
        let cells = cells.map(|(cell, column)| {
            let link = match (subject, column.title) {
                (Subject::Connections, "ORIGINATOR" | "UID") => of_uid(&row.name),
                (Subject::Hosts, "HOST") => row.name.parse().ok().map(of_host),
                _ => None,
            };
            let value = match cell {
                cell::Cell::Count(value, _) | cell::Cell::Bytes(value, _) => {
                    Some(value.to_string())
                }
                _ => None,
            };
            if cell.is_unknown() {
                return Cell::unset("not known");
            }
            Cell { value, ..Cell::text(cell.shown(Signs::Unicode)) }.linked(link)
        });
        cells.collect()
    });
    let mut table = Table {
        id: id.to_owned(),
        caption: caption.to_owned(),
        columns: columns.collect(),
        rows: rows.collect(),
        is_fixed: true,
        ..Table::default()
    };
    if found.all > ROWS {
        table.notes.push(format!("{} more.", exact((found.all - ROWS) as i128)));
    }
    table
}

/// How a span reads.
fn said(site: &Arc<Site>, span: Span) -> String {
    let interval = site.watched.state().data.interval.and_then(|nanos| u64::try_from(nanos).ok());
    match (span, interval) {
        (Span::Whole, _) => "since the begin".to_owned(),
        (Span::Last(many), Some(nanos)) => {
            format!("last {}", duration(nanos.saturating_mul(many as u64)))
        }
        (Span::Last(1), None) => "last interval".to_owned(),
        (Span::Last(many), None) => format!("last {many} intervals"),
    }
}
