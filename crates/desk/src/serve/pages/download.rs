//! Rows of a log by a condition as a file: all of them in the order of the log, or the first ones of another order.
//!
//! | field | where | what it tells |
//! |---|---|---|
//! | `netsniff-rows` | head, or behind the rows | how many rows the file has |
//! | `netsniff-lines-left-out` | likewise | lines of the log that are no rows |
//! | `netsniff-values-left-out` | likewise | values of the log that cannot be understood, and are unset in the file |
//! | `netsniff-cut` | head | of how many rows these are the first |
//! | `netsniff-left-out` | head | files of the log that are not read |

use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::body::Body;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::IntoResponse as _;
use netsniff_output::Format;
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::spawn_blocking;

use super::asked::Asked;
use super::browse::known;
use super::{Answer, Pages};
use crate::logs::Folder;
use crate::serve::answer::Failure;
use crate::serve::body::{PIECE, answer};
use crate::serve::rows::download::Download;
use crate::serve::rows::order::Order;
use crate::serve::rows::pass::Passed;
use crate::serve::site::Site;

const ROWS: HeaderName = HeaderName::from_static("netsniff-rows");
const LINES_LEFT_OUT: HeaderName = HeaderName::from_static("netsniff-lines-left-out");
const VALUES_LEFT_OUT: HeaderName = HeaderName::from_static("netsniff-values-left-out");
const CUT: HeaderName = HeaderName::from_static("netsniff-cut");
const LEFT_OUT: HeaderName = HeaderName::from_static("netsniff-left-out");

/// The rows.
pub(crate) async fn rows(
    State(site): Pages,
    Path((log, file)): Path<(String, String)>,
    Query(asked): Query<Asked>,
) -> Answer {
    let log = known(&log)?;
    let (format, kind) = match file.as_str() {
        "rows.json" => (Format::Json, "application/x-ndjson"),
        "rows.tsv" => (Format::Tsv, "text/tab-separated-values; charset=utf-8"),
        _ => return Err(Failure::missing("rows are there as rows.json and as rows.tsv")),
    };
    let refused = |said| Failure { status: StatusCode::BAD_REQUEST, said };
    let download = Download { wanted: asked.wanted(log).map_err(refused)?, format };
    let order = asked.order(log).map_err(refused)?;
    let permit = Arc::clone(&site.downloads).acquire_owned().await;
    let permit = permit.map_err(|_| Failure::inside("it ends"))?;
    let folder = site.read(|site, _| Folder::open(&site.directory)).await?;
    let mut head = HeaderMap::new();
    head.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    let name = format!("attachment; filename=\"{}.{}\"", log.path, format.name());
    tell(&mut head, header::CONTENT_DISPOSITION, name);
    let left_out: Vec<_> = download.wanted.left_out(&folder).map(|(name, _)| name).collect();
    if !left_out.is_empty() {
        tell(&mut head, LEFT_OUT, left_out.join(" "));
    }
    let body = match order {
        None => {
            let behind = [ROWS, LINES_LEFT_OUT, VALUES_LEFT_OUT];
            tell(&mut head, header::TRAILER, behind.each_ref().map(HeaderName::as_str).join(", "));
            in_order_of_log(download, folder, permit)
        }
        Some(order) => sorted(&site, download, folder, order, permit, &mut head).await?,
    };
    Ok((head, body).into_response())
}

/// Rows as they are read, with what is known then behind them.
fn in_order_of_log(download: Download, folder: Folder, permit: OwnedSemaphorePermit) -> Body {
    let (pieces, body) = answer();
    spawn_blocking(move || {
        let _permit = permit;
        let goes_on = || !pieces.are_unwanted();
        let send = |piece: Vec<u8>| pieces.send_and_wait(piece.into());
        let passed = download.in_order_of_log(&folder, PIECE, &goes_on, send);
        // Otherwise it shows as a download that failed.
        if passed.is_whole() {
            let mut behind = HeaderMap::new();
            tell_all(&mut behind, passed.matched, &passed);
            pieces.finish(behind);
        }
    });
    body
}

/// The first rows of an order, which are known before the first is sent.
async fn sorted(
    site: &Arc<Site>,
    download: Download,
    folder: Folder,
    order: Order,
    permit: OwnedSemaphorePermit,
    head: &mut HeaderMap,
) -> Result<Body, Failure> {
    let sorted = site.read(move |_, given_up| {
        Ok(download.sorted(&folder, PIECE, order, &|| !given_up.load(Ordering::Relaxed)))
    });
    let sorted = sorted.await?;
    let passed = &sorted.passed;
    if !passed.is_whole() {
        return Err(Failure::inside(&passed.wrong.said.join("; ")));
    }
    tell_all(head, sorted.rows, passed);
    if sorted.rows < passed.matched {
        tell(head, CUT, format!("the first {} of {} rows", sorted.rows, passed.matched));
    }
    let (pieces, body) = answer();
    tokio::spawn(async move {
        let _permit = permit;
        for piece in sorted.pieces {
            if !pieces.send(piece.into()).await {
                return;
            }
        }
        pieces.finish(HeaderMap::new());
    });
    Ok(body)
}

fn tell_all(fields: &mut HeaderMap, rows: u64, passed: &Passed) {
    tell(fields, ROWS, rows);
    tell(fields, LINES_LEFT_OUT, passed.wrong.lines);
    tell(fields, VALUES_LEFT_OUT, passed.wrong.values);
}

/// Adds a field. Names of files may have any signs: those that no field has are escaped.
fn tell(fields: &mut HeaderMap, name: HeaderName, value: impl Display) {
    let is_plain = |sign: char| matches!(sign, ' '..='~');
    let mut plain = String::new();
    for sign in value.to_string().chars() {
        if is_plain(sign) {
            plain.push(sign);
        } else {
            plain.extend(sign.escape_default());
        }
    }
    if let Ok(value) = HeaderValue::from_str(&plain) {
        fields.insert(name, value);
    }
}
