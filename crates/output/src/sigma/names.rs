//! Which log a rule of Sigma asks, and how Sigma names its columns.

use netsniff_analysis::notice::rules::{LATE, NOT_ASKED};
use netsniff_analysis::record::{FieldInfo, LogType};
use netsniff_analysis::rows::LOGS;
use rsigma_parser::LogSource;

/// Columns of logs by the names that the rules of a category have for them (Sigma's taxonomy), which rules for Zeek
/// use at times, too.
const NAMES: [(&str, &[(&str, &str)]); 3] = [
    (
        "conn",
        &[
            ("src_ip", "id.orig_h"),
            ("src_port", "id.orig_p"),
            ("dst_ip", "id.resp_h"),
            ("dst_port", "id.resp_p"),
        ],
    ),
    (
        "dns",
        &[
            ("record_type", "qtype_name"),
            ("answer", "answers"),
            ("dst_ip", "id.resp_h"),
            ("src_ip", "id.orig_h"),
        ],
    ),
    (
        "http",
        &[
            ("c-uri", "uri"),
            ("cs-uri", "uri"),
            ("c-useragent", "user_agent"),
            ("cs-user-agent", "user_agent"),
            ("cs-host", "host"),
            ("cs-method", "method"),
            ("cs-referer", "referrer"),
            ("cs-referrer", "referrer"),
            ("sc-status", "status_code"),
            ("src_ip", "id.orig_h"),
            ("c-ip", "id.orig_h"),
            ("dst_ip", "id.resp_h"),
            ("dst_port", "id.resp_p"),
        ],
    ),
];

/// The logs of categories that are of no product.
const CATEGORIES: [(&str, &str); 4] =
    [("dns", "dns"), ("firewall", "conn"), ("proxy", "http"), ("webserver", "http")];

/// Why no log has what a rule asks.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NoLog {
    /// It is of another product or category.
    Foreign,
    /// It is for Zeek, and names no log.
    Unnamed,
    /// Its service is a log that there is not.
    Unknown(String),
}

/// The log whose rows a rule asks.
pub(super) fn log_of(source: &LogSource) -> Result<&'static LogType, NoLog> {
    let name =
        match (source.product.as_deref(), source.service.as_deref(), source.category.as_deref()) {
            (Some("zeek"), Some(service), _) => service,
            (None | Some("zeek"), None, Some(category)) => CATEGORIES
                .into_iter()
                .find_map(|(name, log)| (name == category).then_some(log))
                .ok_or(NoLog::Foreign)?,
            (Some("zeek"), None, None) => return Err(NoLog::Unnamed),
            _ => return Err(NoLog::Foreign),
        };
    let mut logs = LOGS.iter().copied().filter(|log| !NOT_ASKED.contains(&log.path));
    logs.find(|log| log.path == name).ok_or_else(|| NoLog::Unknown(name.to_owned()))
}

/// The number of a column, by the name that a rule has for it.
pub(super) fn column_of(log: &LogType, name: &str) -> Result<usize, String> {
    let names = NAMES.into_iter().filter(|(path, _)| *path == log.path);
    let mut aliases = names.flat_map(|(_, names)| names);
    let known = aliases.find_map(|(other, column)| (*other == name).then_some(*column));
    let wanted = known.unwrap_or(name);
    if LATE.contains(&wanted) {
        return Err(format!("the column {wanted} is set when the rows of all workers are merged"));
    }
    let is_wanted = |field: &FieldInfo| field.name == wanted;
    log.fields
        .iter()
        .position(is_wanted)
        .ok_or_else(|| format!("the log {} has no column {name}", log.path))
}
