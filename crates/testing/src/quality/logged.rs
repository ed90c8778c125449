//! What the logs tell of the losses of a connection.

use std::collections::BTreeMap;

use super::segment::Flow;
use super::{Place, Places};
use crate::log::Row;

/// What the rows of one connection tell. One that the logs divide into several rows has it of all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoggedConnection {
    /// Whether a row's quality is `touched` or `suspect`.
    pub is_marked: bool,
    /// Whether a row's quality is `touched`.
    pub is_touched: bool,
    /// Whether a row's quality is `unknown`.
    pub is_unknown: bool,
    /// Places of losses that `gaps` names.
    pub places: Places,
    /// The rows, for whoever looks into a difference.
    pub rows: Vec<Row>,
}

/// Reads the rows of `conn` and `gaps`.
pub fn read_connections(conn: Vec<Row>, gaps: Vec<Row>) -> BTreeMap<Flow, LoggedConnection> {
    let mut flows = BTreeMap::<Flow, LoggedConnection>::new();
    for row in conn.into_iter().filter(|row| row["proto"] == "tcp") {
        let told = flows.entry(flow(&row).expect("a connection has ends")).or_default();
        match row["quality"].as_str() {
            "suspect" => told.is_marked = true,
            "touched" => (told.is_marked, told.is_touched) = (true, true),
            "unknown" => told.is_unknown = true,
            "clean" => {}
            other => panic!("quality is {other}"),
        }
        told.rows.push(row);
    }
    for row in gaps {
        // A loss in time, which the capture tells of, has no connection.
        let Some(told) = flow(&row).and_then(|flow| flows.get_mut(&flow)) else { continue };
        told.places.extend(Place::ALL.into_iter().find(|place| row["cause"] == place.name()));
        told.rows.push(row);
    }
    flows
}

fn flow(row: &Row) -> Option<Flow> {
    let end =
        |host: &str, port: &str| Some((row.get(host)?.parse().ok()?, row.get(port)?.parse().ok()?));
    let (orig, resp) = (end("id.orig_h", "id.orig_p")?, end("id.resp_h", "id.resp_p")?);
    Some([orig.min(resp), orig.max(resp)])
}
