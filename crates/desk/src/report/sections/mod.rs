//! The sections of a page, each of which gathers what it needs from rows.

pub(super) mod connections;
mod dns;
mod files;
mod findings;
mod hosts;
mod services;
mod tcp;
mod time;
mod tls;
mod trust;

use std::collections::BTreeSet;

use self::trust::Judged;
use super::material::Material;
use super::page::{Section, Verdict};
use super::reading::Reading;
use super::table::{Cell, Table};
use super::top::{Ranked, Tally};
use crate::logs::Row;

/// Gathers what a section has.
pub(super) trait Gather {
    /// The logs whose rows it wants.
    fn logs(&self) -> &'static [&'static str];

    /// Takes a row.
    fn row(&mut self, log: &str, row: &Row<'_>);

    /// The section; `None` where there was nothing for it.
    fn section(self: Box<Self>, about: &About<'_>) -> Option<Section>;
}

/// What sections need besides rows.
#[derive(Debug)]
pub(super) struct About<'a> {
    /// Where the logs come from.
    pub material: &'a Material,
    /// How they could be read.
    pub reading: &'a Reading,
}

/// How much is shown.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extent {
    /// Rows of tables of hosts, services and the like.
    pub rows: usize,
    /// Connections.
    pub connections: usize,
}

/// What all rows amounted to.
#[derive(Debug)]
pub(super) struct Sections {
    /// Whether they can be believed.
    pub verdict: Verdict,
    /// From the first packet to the end of the last connection, in nanoseconds since 1970.
    pub span: Option<(i64, i64)>,
    /// The sections in their order.
    pub sections: Vec<Section>,
}

/// Everything that gathers.
pub(super) struct Gathering {
    trust: trust::Trust,
    others: Vec<Box<dyn Gather>>,
}

impl Gathering {
    /// One that has seen no row.
    pub(super) fn new(extent: Extent) -> Self {
        let others: Vec<Box<dyn Gather>> = vec![
            Box::new(time::Time::default()),
            Box::new(findings::Findings::default()),
            Box::new(services::Services::new(extent)),
            Box::new(hosts::Hosts::new(extent)),
            Box::new(tcp::Servers::new(extent)),
            Box::new(dns::Resolvers::new(extent)),
            Box::new(tls::Tls::new(extent)),
            Box::new(files::Files::new(extent)),
            Box::new(connections::Connections::new(extent.connections)),
        ];
        Self { trust: trust::Trust::default(), others }
    }

    /// The logs whose rows somebody wants.
    pub(in crate::report) fn wanted(&self) -> BTreeSet<&'static str> {
        let others = self.others.iter().flat_map(|it| it.logs());
        trust::LOGS_THAT_TELL.iter().chain(others).copied().collect()
    }

    /// Takes a row.
    pub(super) fn row(&mut self, log: &str, row: &Row<'_>) {
        if trust::LOGS_THAT_TELL.contains(&log) {
            self.trust.row(log, row);
        }
        for gather in self.others.iter_mut().filter(|it| it.logs().contains(&log)) {
            gather.row(log, row);
        }
    }

    /// What the rows amounted to.
    pub(super) fn sections(self, about: &About<'_>) -> Sections {
        let Judged { span, verdict, trust, sources } = self.trust.judged(about);
        let others = self.others.into_iter().filter_map(|it| it.section(about));
        Sections {
            verdict,
            span,
            sections: std::iter::once(trust).chain(others).chain([sources]).collect(),
        }
    }
}

/// Puts the largest into a table, and all others into its foot.
pub(super) fn ranked<K, T: Tally>(
    mut table: Table,
    ranked: &Ranked<K, T>,
    name: (&str, &str),
    cells: impl Fn(Option<&K>, &T) -> Vec<Cell>,
) -> Table {
    let (one, many) = name;
    let why =
        format!("there are more {many} than are told apart: some of it may be among the others");
    for (key, tally) in &ranked.shown {
        let row = cells(Some(key), tally);
        let row = row.into_iter().map(|cell| match cell.value {
            Some(_) if ranked.is_partial => cell.at_least(&why),
            _ => cell,
        });
        table.rows.push(row.collect());
    }
    if ranked.is_partial {
        table.notes.push(format!(
            "There are more {many} than are told apart. Rows are lower bounds; together with the last row they are all."
        ));
    }
    if ranked.others != Some(0) {
        let number = ranked.others.map_or_else(
            || format!("all other {many}"),
            |number| {
                let word = if number == 1 { one } else { many };
                format!("{} other {word}", netsniff_console::number::exact(number.into()))
            },
        );
        let mut row = cells(None, &ranked.rest);
        if let Some(first) = row.first_mut() {
            *first = Cell::text(number);
        }
        table.foot.push(row);
    }
    table
}

/// An address with a port, as `[2001:db8::1]:443`.
pub(super) fn endpoint(row: &Row<'_>, host: &str, port: &str) -> Option<String> {
    let host = row.text(host)?;
    let Some(port) = row.text(port) else { return Some(host.into_owned()) };
    Some(if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") })
}
