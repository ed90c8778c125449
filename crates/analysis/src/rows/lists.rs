//! The list of logs and that of joins: those of the core, and those that the protocols name.

use core::ptr;
use std::sync::LazyLock;

use crate::correlator::MakeJoin;
use crate::file;
use crate::log::{Capture, Conn, Gaps, Rtt, Tcp, Tunnel, Weird};
use crate::protocol::PROTOCOLS;
use crate::record::LogType;

/// The logs that no protocol makes alone.
const CORE_LOGS: [&LogType; 9] = [
    Conn::LOG,
    Tcp::LOG,
    Rtt::LOG,
    Gaps::LOG,
    Capture::LOG,
    Weird::LOG,
    Tunnel::LOG,
    file::FILES,
    file::PE,
];

/// Every log, each once, in the order in which the schema and the documentation list them.
pub static LOGS: LazyLock<Vec<&'static LogType>> = LazyLock::new(|| {
    let mut logs: Vec<&LogType> = Vec::new();
    for log in CORE_LOGS.into_iter().chain(PROTOCOLS.iter().flat_map(|it| it.logs()).copied()) {
        if place(&logs, log).is_none() {
            logs.push(log);
        }
    }
    logs
});

/// Where a log stands in [`LOGS`]; behind them where it does not.
#[inline]
pub(super) fn place_of(log: &LogType) -> usize {
    place(&LOGS, log).unwrap_or(usize::from(u16::MAX))
}

/// A log is declared in a `static`, so its address tells it.
#[inline]
fn place(logs: &[&LogType], log: &LogType) -> Option<usize> {
    logs.iter().position(|known| ptr::eq(*known, log))
}

/// Every join.
pub fn joins() -> impl Iterator<Item = MakeJoin> {
    file::JOINS.iter().chain(PROTOCOLS.iter().flat_map(|protocol| protocol.joins())).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Scalar;

    #[test]
    fn names_are_unique_and_described() {
        for (index, log) in LOGS.iter().enumerate() {
            assert!(!LOGS[..index].iter().any(|other| other.path == log.path), "{}", log.path);
            assert!(log.doc.ends_with('.'), "{} lacks a sentence", log.path);
            for (at, field) in log.fields.iter().enumerate() {
                let twice = log.fields[..at].iter().any(|other| other.name == field.name);
                assert!(!twice, "{}.{} is there twice", log.path, field.name);
                assert!(field.doc.ends_with('.'), "{}.{} lacks a sentence", log.path, field.name);
            }
        }
    }

    #[test]
    fn logs_of_one_name_are_one() {
        let protocols = PROTOCOLS.iter().flat_map(|protocol| protocol.logs());
        for log in CORE_LOGS.iter().chain(protocols) {
            let known = LOGS[place_of(log)];
            assert_eq!((known.path, known.fields.len()), (log.path, log.fields.len()));
        }
    }

    #[test]
    fn addresses_are_of_the_class_address() {
        for log in LOGS.iter() {
            for field in log.fields.iter().filter(|f| f.zeek_type.scalar == Scalar::Addr) {
                let class = field.privacy.name();
                assert_eq!(class, "address", "{}.{}", log.path, field.name);
            }
        }
    }
}
