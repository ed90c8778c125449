//! The cells of a row: each value as people read it, with the value of the log behind it.

use std::net::IpAddr;

use netsniff_analysis::record::{FieldInfo, LogType, Scalar, Shape, Unit};

use crate::logs::Row;
use crate::page::table::Cell;

/// The cells of all columns of a log.
pub(crate) fn cells(log: &'static LogType, row: &Row<'_>) -> Vec<Cell> {
    log.fields.iter().map(|field| cell(field, row)).collect()
}

/// Where the page of a connection is; `None` for what is no uid.
pub(crate) fn of_uid(uid: &str) -> Option<String> {
    let is_plain = uid.bytes().all(|byte| byte.is_ascii_alphanumeric());
    (is_plain && (2..=64).contains(&uid.len())).then(|| format!("/connections/{uid}"))
}

/// Where the connections of a host are.
pub(crate) fn of_host(host: IpAddr) -> String {
    format!("/connections?where=id.orig_h+%3D+%27{host}%27+OR+id.resp_h+%3D+%27{host}%27")
}

/// Whether a column has uids of connections.
pub(crate) fn has_uid(field: &FieldInfo) -> bool {
    matches!(field.name, "uid" | "uids" | "conn_uids" | "tunnel_parents")
}

fn cell(field: &'static FieldInfo, row: &Row<'_>) -> Cell {
    let name = field.name;
    if field.zeek_type.shape != Shape::One {
        let Some(list) = row.list(name) else { return Cell::maybe(None::<&str>) };
        let link = list.first().filter(|_| has_uid(field) && list.len() == 1);
        let link = link.and_then(|uid| of_uid(uid));
        return Cell::text(list.join(", ")).linked(link);
    }
    match field.zeek_type.scalar {
        Scalar::Time if row.nanos(name).is_some() => Cell::time(row.nanos(name)),
        Scalar::Interval if row.nanos(name).is_some() => Cell::span(row.nanos(name)),
        Scalar::Count => Cell::of_row(row.count(name), field.unit),
        Scalar::Port => {
            let port = row.count(name);
            let cell =
                port.map_or_else(|| Cell::maybe(None::<&str>), |port| Cell::text(port.to_string()));
            Cell { value: port.map(|port| port.to_string()), ..cell }
        }
        Scalar::Addr => {
            let text = row.text(name);
            let link = text.as_deref().and_then(|text| text.parse().ok()).map(of_host);
            Cell::maybe(text).linked(link)
        }
        _ => {
            let text = row.text(name);
            let link = text.as_deref().filter(|_| has_uid(field)).and_then(of_uid);
            let look = match (name, text.as_deref()) {
                ("quality", Some("touched" | "suspect")) | ("confidence", Some("medium")) => {
                    Some("warn")
                }
                ("confidence", Some("high")) => Some("bad"),
                _ => None,
            };
            Cell::maybe(text).linked(link).looking(look)
        }
    }
}

impl Cell {
    /// A count of one row.
    fn of_row(count: Option<u64>, unit: Unit) -> Self {
        match count {
            None => Self::maybe(None::<&str>),
            Some(count) if unit == Unit::Bytes => Self::bytes(count.into()),
            Some(count) => Self::count(count),
        }
    }
}
