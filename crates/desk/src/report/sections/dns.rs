//! DNS by resolver, and names that failed.

use super::{About, Extent, Gather, endpoint, ranked};
use crate::logs::Row;
use crate::page::sum::Times;
use crate::page::table::{Cell, Column, Table};
use crate::page::{Part, Section};
use crate::report::top::{Tally, Top};

/// Resolvers, and names that failed with the codes of their replies.
pub(super) struct Resolvers {
    rows: usize,
    resolvers: Top<String, Resolver>,
    failed: Top<(String, String), Failed>,
}

/// What is known of a resolver.
#[derive(Debug, Default)]
struct Resolver {
    queries: u64,
    /// Without an error, NXDOMAIN, SERVFAIL, REFUSED, other codes, and without a reply.
    by_reply: [u64; 6],
    rtt: Times,
}

/// Queries for a name.
#[derive(Debug, Default)]
struct Failed(u64);

/// Codes of replies that are told apart.
const CODES: [&str; 4] = ["NOERROR", "NXDOMAIN", "SERVFAIL", "REFUSED"];
const OTHER: usize = CODES.len();
const NONE: usize = OTHER + 1;

impl Tally for Resolver {
    fn merge(&mut self, other: Self) {
        self.queries += other.queries;
        for (one, other) in self.by_reply.iter_mut().zip(other.by_reply) {
            *one += other;
        }
        self.rtt.merge(&other.rtt);
    }

    fn rank(&self) -> u128 {
        self.queries.into()
    }
}

impl Tally for Failed {
    fn merge(&mut self, other: Self) {
        self.0 += other.0;
    }

    fn rank(&self) -> u128 {
        self.0.into()
    }
}

impl Resolvers {
    pub(super) fn new(extent: Extent) -> Self {
        Self { rows: extent.rows, resolvers: Top::default(), failed: Top::default() }
    }
}

impl Gather for Resolvers {
    fn logs(&self) -> &'static [&'static str] {
        &["dns"]
    }

    fn row(&mut self, _: &str, row: &Row<'_>) {
        let name = endpoint(row, "id.resp_h", "id.resp_p");
        let resolver = self.resolvers.of(name.unwrap_or_else(|| "not told".to_owned()));
        resolver.queries += 1;
        resolver.rtt.add(row.nanos("rtt"));
        let code = row.text("rcode_name");
        let reply = match (&code, row.text("rcode")) {
            (Some(code), _) => CODES.iter().position(|known| known == code).unwrap_or(OTHER),
            (None, Some(_)) => OTHER,
            (None, None) => NONE,
        };
        resolver.by_reply[reply] += 1;
        if reply != 0 {
            let query = row.text("query").unwrap_or_else(|| "(no name)".into()).into_owned();
            let code = if reply == NONE {
                "no reply".to_owned()
            } else {
                code.or_else(|| row.text("rcode")).unwrap_or_default().into_owned()
            };
            self.failed.of((query, code)).0 += 1;
        }
    }

    fn section(self: Box<Self>, _: &About<'_>) -> Option<Section> {
        let resolvers = self.resolvers.ranked(self.rows);
        if resolvers.shown.is_empty() {
            return None;
        }
        let mut columns = vec![
            Column::text("resolver", "address and port of the responder"),
            Column::number(
                "transactions",
                "rows of dns: a query with its reply, or one of them alone",
            ),
        ];
        columns.extend(CODES.map(|code| Column::number(code, "replies with this code")));
        columns.push(Column::number("other codes", ""));
        columns.push(Column::number("no reply", "rcode is not set"));
        columns
            .push(Column::number("mean time", "from query to reply, where that has answers: rtt"));
        columns.push(Column::number("longest time", ""));
        let table = Table {
            id: "dns".to_owned(),
            caption: "DNS by resolver, the most transactions first".to_owned(),
            columns,
            ..Table::default()
        };
        let servers = ranked(table, &resolvers, ("resolver", "resolvers"), |name, of| {
            let mut cells =
                vec![Cell::text(name.map_or("", String::as_str)), Cell::count(of.queries)];
            for (at, count) in of.by_reply.iter().enumerate() {
                let cell = Cell::count(*count);
                cells.push(if at == 0 { cell } else { cell.alarming("warn") });
            }
            cells.push(Cell::mean(&of.rtt));
            cells.push(Cell::span(of.rtt.most()));
            cells
        });
        let table = Table {
            id: "dns-failed".to_owned(),
            caption: "Names without an answer or with an error, the most frequent first".to_owned(),
            columns: vec![
                Column::text("name", "that was asked about"),
                Column::text("reply", "the code of the reply"),
                Column::number("transactions", "rows of dns"),
            ],
            ..Table::default()
        };
        let failed = self.failed.ranked(self.rows);
        let mut parts = vec![servers.with_bars(1)];
        if !failed.shown.is_empty() {
            parts.push(ranked(table, &failed, ("name", "names"), |key, failed| {
                let (name, code) = key.map_or(("", ""), |(name, code)| (name, code));
                vec![Cell::text(name), Cell::text(code), Cell::count(failed.0)]
            }));
        }
        let parts = parts.into_iter().map(Part::Table).collect();
        Some(Section { id: "dns", title: "DNS".to_owned(), lead: Vec::new(), parts })
    }
}
