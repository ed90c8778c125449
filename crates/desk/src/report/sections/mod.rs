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
use super::reading::Reading;
use super::top::{Ranked, Tally};
use crate::logs::Row;
use crate::page::table::{Cell, Table};
use crate::page::{Section, Verdict};

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
        let row =
            row.into_iter().map(|cell| if ranked.is_partial { cell.in_part(&why) } else { cell });
        table.rows.push(row.collect());
    }
    if ranked.is_partial {
        table.notes.push(format!(
            "There are more {many} than are told apart. Sums of a row are lower bounds; together with the last row they are all."
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_in_part_is_a_bound_or_nothing() {
        #[derive(Default)]
        struct Times(u64);
        impl Tally for Times {
            fn merge(&mut self, other: Self) {
                self.0 += other.0;
            }

            fn rank(&self) -> u128 {
                self.0.into()
            }
        }
        let shown = |is_partial: bool| {
            let others = (!is_partial).then_some(1);
            let all = Ranked { shown: vec![("a", Times(5))], rest: Times(7), others, is_partial };
            let table = ranked(Table::default(), &all, ("thing", "things"), |key, times| {
                let name = Cell::text(key.copied().unwrap_or_default());
                vec![name, Cell::count(times.0), Cell::span(Some(1_000_000)), Cell::time(Some(0))]
            });
            let texts =
                |row: &Vec<Cell>| row.iter().map(|cell| cell.text.clone()).collect::<Vec<_>>();
            (texts(&table.rows[0]), table.foot[0][0].text.clone())
        };
        let day = "1970-01-01 00:00:00.000";
        assert_eq!(shown(false).0, ["a", "5", "1.00 ms", day]);
        assert_eq!(shown(false).1, "1 other thing");
        assert_eq!(shown(true).0, ["a", "\u{2265} 5", "\u{2013}", day]);
        assert_eq!(shown(true).1, "all other things");
    }
}
