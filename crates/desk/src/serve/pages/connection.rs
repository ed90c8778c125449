//! One connection: what its rows in all logs tell, and its packets.

use std::sync::atomic::Ordering;

use axum::extract::{Path, Query, State};
use axum::http::header;
use axum::response::IntoResponse as _;
use minijinja::context;
use netsniff_console::number::exact;
use serde::{Deserialize, Serialize};

use super::{Answer, Pages};
use crate::page::table::{Cell, Column, Table, UNSET};
use crate::sequence;
use crate::serve::answer::{Failure, typed};
use crate::serve::rows::naming::{Named, Naming};
use crate::serve::rows::shown::{of_host, of_uid};
use crate::watch::packets;

/// The page.
pub(crate) async fn page(State(site): Pages, Path(uid): Path<String>) -> Answer {
    checked(&uid)?;
    let asked = uid.clone();
    let naming = site.read(move |site, given_up| {
        Naming::of(&asked, &site.directory, &|| !given_up.load(Ordering::Relaxed))
    });
    let naming = naming.await?;
    let open = site.watched.state().data.connections.row(&uid).cloned();
    if naming.logs.is_empty() && open.is_none() {
        return Err(Failure::missing("no row of the logs names this connection"));
    }
    let conn = naming.logs.iter().find(|named| named.log.path == "conn");
    let facts = match (conn.and_then(|named| named.rows.first().map(|row| (named, row))), &open) {
        (Some((named, row)), _) => facts(named, row),
        (None, Some(row)) => {
            row.shown().map(|(name, text)| (name, "", open_cell(name, text))).collect()
        }
        (None, None) => Vec::new(),
    };
    let of_facts = |name: &str| {
        facts.iter().find(|(known, ..)| *known == name).map(|(_, _, cell)| cell.text.clone())
    };
    let end = |host: &str, port: &str| {
        let (host, port) = (of_facts(host)?, of_facts(port)?);
        Some(if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") })
    };
    let ends = end("id.orig_h", "id.orig_p").zip(end("id.resp_h", "id.resp_p"));
    let title = ends.map_or_else(|| uid.clone(), |(one, other)| format!("{one} \u{2192} {other}"));
    let others = naming.logs.iter().filter(|named| named.log.path != "conn" || named.all > 1);
    let logs: Vec<_> = others.map(OfLog::of).collect();
    let of = context! {
        title => title, uid => uid, is_open => conn.is_none(), facts => facts, logs => logs,
        wrong => naming.wrong, kept_back => site.packets.kept_back(),
    };
    site.page("connection.html", "/connections", of)
}

/// Its packets as a file.
pub(crate) async fn download(State(site): Pages, Path(uid): Path<String>) -> Answer {
    checked(&uid)?;
    let body = site.packets.of_connection(&uid).await?;
    let name = format!("attachment; filename=\"{uid}.pcapng\"");
    let head = [
        (header::CONTENT_TYPE, "application/x-pcapng".to_owned()),
        (header::CONTENT_DISPOSITION, name),
    ];
    Ok((head, body).into_response())
}

/// Its packets as text: layers and bytes.
pub(crate) async fn packets(State(site): Pages, Path(uid): Path<String>) -> Answer {
    checked(&uid)?;
    let asked = uid.clone();
    let lines = site
        .read(move |site, given_up| Ok(site.packets.read(&asked, given_up, packets::lines)))
        .await?;
    let of = context! { title => format!("Packets of {uid}"), uid => uid, lines => lines? };
    site.page("packets.html", "/connections", of)
}

/// What of the picture is asked for.
#[derive(Deserialize)]
pub(crate) struct Asked {
    /// The picture alone, to be put into a page.
    part: Option<String>,
}

/// Its time-sequence picture.
pub(crate) async fn picture(
    State(site): Pages,
    Path(uid): Path<String>,
    Query(asked): Query<Asked>,
) -> Answer {
    checked(&uid)?;
    let own = uid.clone();
    let draw = move |output| {
        let sequence = sequence::of(output, &own, sequence::Limits::default())?;
        sequence.html().map_err(|error| error.to_string())
    };
    let found = uid.clone();
    let html =
        site.read(move |site, given_up| Ok(site.packets.read(&found, given_up, draw))).await?;
    let html = html?;
    if asked.part.is_some() {
        return Ok(typed("text/html; charset=utf-8", html));
    }
    let of = context! { title => format!("Picture of {uid}"), uid => uid, picture => html };
    site.page("packets.html", "/connections", of)
}

/// What a uid may be: it becomes a word of a command, and a name of a file.
fn checked(uid: &str) -> Result<(), Failure> {
    of_uid(uid).map(drop).ok_or_else(|| Failure::missing("this is no uid of a connection"))
}

/// A value of a connection that has no row yet.
fn open_cell(name: &str, text: String) -> Cell {
    let host = matches!(name, "id.orig_h" | "id.resp_h").then(|| text.parse().ok().map(of_host));
    Cell::text(text).linked(host.flatten())
}

/// The columns that are set.
fn facts(named: &Named, row: &[Cell]) -> Vec<(&'static str, &'static str, Cell)> {
    let cells = named.log.fields.iter().zip(row).filter(|(_, cell)| cell.text != UNSET);
    cells.map(|(field, cell)| (field.name, field.doc, cell.clone())).collect()
}

/// The rows of a log as the page has them: the columns of one row, or a table of several.
#[derive(Serialize)]
struct OfLog {
    name: &'static str,
    doc: &'static str,
    facts: Vec<(&'static str, &'static str, Cell)>,
    table: Table,
}

/// Columns that the head of the page has.
const KNOWN: [&str; 5] = ["uid", "id.orig_h", "id.orig_p", "id.resp_h", "id.resp_p"];

impl OfLog {
    fn of(named: &Named) -> Self {
        let (mut facts, mut table) = (Vec::new(), Table::default());
        match named.rows.as_slice() {
            [row] if named.all == 1 => {
                facts = self::facts(named, row);
                facts.retain(|(name, ..)| !KNOWN.contains(name));
            }
            _ => table = self::table(named),
        }
        Self { name: named.log.path, doc: named.log.doc, facts, table }
    }
}

/// The rows of a log, with the columns that any of them has.
fn table(named: &Named) -> Table {
    let is_set =
        |at: usize| named.rows.iter().any(|row| row.get(at).is_some_and(|cell| cell.text != UNSET));
    let fields = named.log.fields.iter().enumerate();
    let fields: Vec<_> =
        fields.filter(|(at, field)| is_set(*at) && !KNOWN.contains(&field.name)).collect();
    let cells =
        |row: &Vec<Cell>| fields.iter().filter_map(|(at, _)| row.get(*at).cloned()).collect();
    let mut table = Table {
        id: named.log.path.to_owned(),
        caption: format!("Rows of {}", named.log.path),
        columns: fields.iter().map(|(_, field)| Column::text(field.name, field.doc)).collect(),
        rows: named.rows.iter().map(cells).collect(),
        ..Table::default()
    };
    let left = named.all - named.rows.len() as u64;
    if left > 0 {
        table.notes.push(format!("{} more rows are in the log.", exact(left.into())));
    }
    table
}
