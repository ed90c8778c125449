//! Rows of a log by a condition, in order, a page at a time.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use axum::extract::{Path, Query, State};
use minijinja::context;
use netsniff_analysis::record::{FieldInfo, LogType, Scalar, Shape};
use netsniff_console::number::exact;
use netsniff_output::condition::Condition;

use super::asked::{Asked, direction};
use super::{Answer, Pages};
use crate::logs::Folder;
use crate::page::table::{Cell, Column, Table};
use crate::serve::answer::Failure;
use crate::serve::args::Kind;
use crate::serve::rows::order::Order;
use crate::serve::rows::{self, DEEPEST, Found};
use crate::watch::data::row::log_named;

/// How a log is shown.
struct View {
    log: &'static LogType,
    /// Where it is.
    at: String,
    title: &'static str,
    /// The columns that are shown; all that any row has, where there are none.
    columns: &'static [&'static str],
    sort: &'static str,
    examples: &'static [&'static str],
}

const CONNECTIONS: [&str; 14] = [
    "ts",
    "uid",
    "id.orig_h",
    "id.orig_p",
    "id.resp_h",
    "id.resp_p",
    "proto",
    "service",
    "conn_state",
    "duration",
    "orig_ip_bytes",
    "resp_ip_bytes",
    "missed_bytes",
    "quality",
];
const FINDINGS: [&str; 11] =
    ["ts", "note", "confidence", "msg", "sub", "src", "dst", "p", "quality", "advice", "uid"];

/// Connections.
pub(crate) async fn connections(site: Pages, asked: Query<Asked>) -> Answer {
    let view = View {
        log: known("conn")?,
        at: "/connections".to_owned(),
        title: "Connections",
        columns: &CONNECTIONS,
        sort: "-ts",
        examples: &[
            "id.resp_p = 443 AND duration > 60",
            "id.orig_h IN '10.0.0.0/8' AND service = 'dns'",
            "conn_state = 'S0'",
            "quality != 'clean'",
        ],
    };
    show(site, view, asked).await
}

/// Findings.
pub(crate) async fn findings(site: Pages, asked: Query<Asked>) -> Answer {
    let view = View {
        log: known("notice")?,
        at: "/findings".to_owned(),
        title: "Findings",
        columns: &FINDINGS,
        sort: "-ts",
        examples: &["confidence = 'high'", "note LIKE '%Scan%'", "src = '192.0.2.7'"],
    };
    show(site, view, asked).await
}

/// Any log.
pub(crate) async fn log(site: Pages, Path(name): Path<String>, asked: Query<Asked>) -> Answer {
    let log = known(&name)?;
    let at = format!("/logs/{}", log.path);
    let sort = if log.fields.iter().any(|field| field.name == "ts") { "-ts" } else { "" };
    show(site, View { log, at, title: "", columns: &[], sort, examples: &[] }, asked).await
}

/// Which logs there are.
pub(crate) async fn logs(State(site): Pages) -> Answer {
    let folder = site.read(|site, _| Folder::open(&site.directory)).await?;
    let mut table = Table {
        id: "logs".to_owned(),
        caption: "Logs".to_owned(),
        columns: vec![
            Column::text("log", ""),
            Column::text("a row is", ""),
            Column::number("files", ""),
            Column::number("bytes", ""),
        ],
        ..Table::default()
    };
    for (name, files) in folder.logs() {
        let Some(log) = log_named(name) else { continue };
        let size: u64 =
            files.iter().filter_map(|file| file.path.metadata().ok()).map(|it| it.len()).sum();
        table.rows.push(vec![
            Cell::text(name).linked(Some(format!("/logs/{name}"))),
            Cell::text(log.doc),
            Cell::count(files.len() as u64),
            Cell::bytes(size.into()),
        ]);
    }
    table.notes.extend(folder.left_out().map(|(name, why)| format!("{name} {why}.")));
    site.page(
        "sections.html",
        "/logs",
        context! {
            title => "Logs", lead => "", verdict => (), sections => [section(table)],
        },
    )
}

fn section(table: Table) -> crate::page::Section {
    crate::page::Section {
        id: "rows",
        title: String::new(),
        lead: Vec::new(),
        parts: vec![crate::page::Part::Table(table)],
    }
}

/// The log of a name.
pub(super) fn known(name: &str) -> Result<&'static LogType, Failure> {
    log_named(name).ok_or_else(|| Failure::missing("there is no log of this name"))
}

async fn show(State(site): Pages, view: View, Query(asked): Query<Asked>) -> Answer {
    let at = view.at.clone();
    let (query, wrong) = match view.query(&asked) {
        Ok(query) => (Some(query), None),
        Err(wrong) => (None, Some(wrong.lines().map(str::to_owned).collect::<Vec<_>>())),
    };
    let (most, page) = (asked.most(), asked.page.unwrap_or(1).max(1));
    let found = match query {
        None => None,
        Some(query) => {
            let read = site.read(move |site, given_up| {
                query.run(&site.directory, &|| !given_up.load(Ordering::Relaxed))
            });
            Some(read.await?)
        }
    };
    let is_over = site.kind == Kind::Logs || site.watched.state().analysis.is_some();
    let of = match &found {
        None => context! { table => (), pages => (), files => (), wrong => wrong, said => "" },
        Some(found) => {
            let pages = view.pages(&asked, found, page, most);
            context! {
                table => view.table(&asked, found), pages => pages, wrong => (),
                files => if found.matched > 0 { view.files(&asked, found) } else { Vec::new() },
                said => said(found, is_over, page, most),
            }
        }
    };
    let examples: Vec<_> =
        view.examples.iter().map(|text| (*text, view.address(&Asked::of(text)))).collect();
    let title = if view.title.is_empty() {
        format!("Log {}", view.log.path)
    } else {
        view.title.to_owned()
    };
    let nav = if view.title.is_empty() { "/logs" } else { at.as_str() };
    let own = context! {
        title => title, path => at, asked => asked, examples => examples, doc => view.log.doc,
        columns => view.log.fields.iter().map(|field| (field.name, field.doc)).collect::<Vec<_>>(),
    };
    site.page("browse.html", nav, context! { ..own, ..of })
}

/// How much was found, in a sentence.
fn said(found: &Found, is_over: bool, page: usize, most: usize) -> String {
    if found.all == 0 {
        let said = match (found.wrong.is_empty(), is_over) {
            (false, _) => "No row could be read.",
            (true, false) => "There is no row yet.",
            (true, true) => "The log has no row.",
        };
        return said.to_owned();
    }
    let (of, all) = (exact(found.matched.into()), exact(found.all.into()));
    if found.matched == 0 {
        return format!("None of {all} rows meets the condition.");
    }
    let ended = found.ended.map(|kept| {
        let kept = exact(kept as i128);
        format!("Only the first {kept} of this order have room: a condition makes them fewer.")
    });
    if found.rows.is_empty() {
        if let Some(ended) = ended {
            return format!("This page is not among the rows that are kept. {ended}");
        }
        return format!("This page is behind the last of {of} rows.");
    }
    let first = (page - 1).saturating_mul(most) + 1;
    let last = exact((first + found.rows.len() - 1) as i128);
    let shown = format!("{} to {last} of {of} rows", exact(first as i128));
    let shown = if found.matched == found.all {
        format!("{shown}.")
    } else {
        format!("{shown} that meet the condition, of {all} rows.")
    };
    ended.map_or_else(|| shown.clone(), |ended| format!("{shown} {ended}"))
}

impl View {
    /// What is to be read; otherwise what is wrong with what was asked for.
    fn query(&self, asked: &Asked) -> Result<rows::Query, String> {
        let wanted = asked.wanted(self.log)?;
        let own = Asked { sort: self.sort.to_owned(), ..Asked::default() };
        let order = match asked.order(self.log)? {
            Some(order) => Some(order),
            None => own.order(self.log)?,
        };
        // A log without times.
        let first = || Some(Order { column: self.log.fields.first()?, is_ascending: true });
        let order = order.or_else(first).ok_or("the log has no column")?;
        let most = asked.most();
        let skip = (asked.page.unwrap_or(1).max(1) - 1).saturating_mul(most);
        if skip.saturating_add(most) > DEEPEST {
            return Err(format!(
                "only the first {DEEPEST} rows are in order: a condition makes them fewer"
            ));
        }
        Ok(rows::Query { wanted, order, skip, most, bytes: rows::KEPT })
    }

    /// The column that rows are in order by.
    fn order<'a>(&'a self, asked: &'a Asked) -> (&'a str, bool) {
        direction(if asked.sort.is_empty() { self.sort } else { &asked.sort })
    }

    fn address(&self, asked: &Asked) -> String {
        asked.at(&self.at)
    }

    /// The rows as files: what each has, as JSON and in columns.
    fn files(&self, asked: &Asked, found: &Found) -> Vec<(String, String, String)> {
        let file = |said: String, sort: &str| {
            let rows = Asked { sort: sort.to_owned(), page: None, rows: None, ..asked.clone() };
            let at = |end: &str| rows.at(&format!("/logs/{}/rows.{end}", self.log.path));
            (said, at("json"), at("tsv"))
        };
        let all = exact(found.matched.into());
        let mut files = vec![file(format!("{all} rows in the order of the log"), "")];
        if !asked.sort.is_empty() {
            let is_cut = found.matched > DEEPEST as u64;
            let first = if is_cut { format!("the first {}", exact(DEEPEST as i128)) } else { all };
            files.push(file(format!("{first} rows in this order"), &asked.sort));
        }
        files
    }

    /// The table of what was found, whose heads put it in another order.
    fn table(&self, asked: &Asked, found: &Found) -> Table {
        let is_set = |at: usize| {
            let cell = |row: &Vec<Cell>| {
                row.get(at).is_some_and(|cell| cell.text != crate::page::table::UNSET)
            };
            found.rows.iter().any(cell)
        };
        let (sorted, _) = self.order(asked);
        let condition = Condition::parse(&asked.condition, self.log).ok();
        let mut wanted: Vec<_> = condition.iter().flat_map(Condition::columns).collect();
        wanted.push(sorted);
        let fields = self.log.fields.iter().enumerate();
        let fields: Vec<(usize, &FieldInfo)> = if self.columns.is_empty() {
            fields.filter(|(at, field)| is_set(*at) || wanted.contains(&field.name)).collect()
        } else {
            let others = wanted.iter().filter(|name| !self.columns.contains(name));
            let names: Vec<_> = self.columns.iter().chain(others).collect();
            let at = |name: &&&str| fields.clone().find(|(_, field)| field.name == **name);
            // A condition may ask for one twice.
            let mut told = BTreeSet::new();
            names.iter().filter_map(at).filter(|(at, _)| told.insert(*at)).collect()
        };
        let columns = fields.iter().map(|(_, field)| self.column(asked, field));
        let rows = found
            .rows
            .iter()
            .map(|row| fields.iter().filter_map(|(at, _)| row.get(*at).cloned()).collect());
        Table {
            id: self.log.path.to_owned(),
            caption: format!("Rows of {}", self.log.path),
            columns: columns.collect(),
            rows: rows.collect(),
            notes: found.wrong.clone(),
            is_fixed: true,
            ..Table::default()
        }
    }

    fn column(&self, asked: &Asked, field: &FieldInfo) -> Column {
        let (name, is_ascending) = self.order(asked);
        let is_sorted = name == field.name;
        let is_number = field.zeek_type.shape == Shape::One
            && matches!(
                field.zeek_type.scalar,
                Scalar::Count | Scalar::Int | Scalar::Double | Scalar::Interval
            );
        // Of times and numbers the most comes first.
        let comes_down = match is_sorted {
            true => is_ascending,
            false => is_number || field.zeek_type.scalar == Scalar::Time,
        };
        let sort = format!("{}{}", if comes_down { "-" } else { "" }, field.name);
        let link = self.address(&Asked { sort, page: None, ..asked.clone() });
        let order = if is_ascending { "ascending" } else { "descending" };
        Column {
            is_number,
            link: Some(link),
            order: is_sorted.then_some(order),
            ..Column::text(field.name, field.doc)
        }
    }

    /// Where the pages before and behind are.
    fn pages(
        &self,
        asked: &Asked,
        found: &Found,
        page: usize,
        most: usize,
    ) -> (Option<String>, Option<String>) {
        let to = |page| self.address(&Asked { page: Some(page), ..asked.clone() });
        let rows = usize::try_from(found.matched).unwrap_or(usize::MAX);
        let last = rows.div_ceil(most).min(DEEPEST / most);
        // No page behind this one has more room.
        let last = if found.ended.is_some() { page } else { last };
        ((page > 1).then(|| to(page - 1)), (page < last).then(|| to(page + 1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_says_where_its_order_ends() {
        let rows = |rows: usize, ended| Found {
            rows: vec![Vec::new(); rows],
            matched: 900,
            all: 900,
            ended,
            ..Found::default()
        };
        let end = "Only the first 120 of this order have room: a condition makes them fewer.";
        for (found, wanted) in [
            (rows(100, None), "101 to 200 of 900 rows.".to_owned()),
            (rows(20, Some(120)), format!("101 to 120 of 900 rows. {end}")),
            (rows(0, Some(120)), format!("This page is not among the rows that are kept. {end}")),
            (rows(0, None), "This page is behind the last of 900 rows.".to_owned()),
        ] {
            assert_eq!(said(&found, true, 2, 100), wanted);
        }
    }
}
