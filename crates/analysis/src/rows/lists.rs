//! The list of logs and that of joins: those of the core, and those that the protocols name.

use core::ptr;
use std::sync::LazyLock;

use crate::correlator::MakeJoin;
use crate::file;
use crate::log::{
    Capture, Conn, Exported, Exporters, Gaps, Intel, Notice, Rtt, Series, SeriesConn, Tcp, Tunnel,
    Weird,
};
use crate::protocol::PROTOCOLS;
use crate::record::LogType;
use crate::series;

/// The logs that no protocol makes alone.
const CORE_LOGS: [&LogType; 15] = [
    Conn::LOG,
    Tcp::LOG,
    Rtt::LOG,
    Gaps::LOG,
    Capture::LOG,
    Series::LOG,
    SeriesConn::LOG,
    Weird::LOG,
    Tunnel::LOG,
    Notice::LOG,
    Intel::LOG,
    Exported::LOG,
    Exporters::LOG,
    file::FILES,
    file::PE,
];

/// Every log, each once, in the order in which the schema and the documentation list them.
pub static LOGS: LazyLock<Vec<&'static LogType>> = LazyLock::new(|| {
    let mut logs: Vec<&LogType> = Vec::new();
    for log in CORE_LOGS.into_iter().chain(PROTOCOLS.iter().flat_map(|it| it.logs()).copied()) {
        if !logs.iter().any(|known| ptr::eq(*known, log)) {
            logs.push(log);
        }
    }
    logs
});

/// The logs by their addresses, which tell them, since each is declared in a `static`; with their places in [`LOGS`].
static PLACES: LazyLock<Vec<(usize, u16)>> = LazyLock::new(|| {
    let mut places: Vec<_> = LOGS.iter().zip(0..).map(|(&log, at)| (address(log), at)).collect();
    places.sort_unstable();
    places
});

fn address(log: &LogType) -> usize {
    ptr::from_ref(log).addr()
}

/// Where a log stands in [`LOGS`]; behind them where it does not.
#[inline]
pub(super) fn place_of(log: &LogType) -> usize {
    let at = PLACES.binary_search_by_key(&address(log), |&(address, _)| address);
    at.ok().and_then(|at| PLACES.get(at)).map_or(u16::MAX, |&(_, place)| place).into()
}

/// Every join of every protocol in the list.
pub fn joins() -> impl Iterator<Item = MakeJoin> {
    let core = file::JOINS.iter().chain(series::JOINS);
    core.chain(PROTOCOLS.iter().flat_map(|protocol| protocol.joins())).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Limits;
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
    fn every_log_is_found_at_its_place_and_others_nowhere() {
        static OTHER: LogType = LogType { path: "other", doc: "Other.", fields: &[] };
        for (at, log) in LOGS.iter().enumerate() {
            assert_eq!(place_of(log), at, "{}", log.path);
        }
        assert_eq!(place_of(&OTHER), usize::from(u16::MAX));
    }

    #[test]
    fn no_two_joins_take_one_type_of_facts() {
        let limits = Limits::default();
        let joins: Vec<_> = joins().map(|join| join(&limits)).collect();
        let mut taken: Vec<_> = joins.iter().flat_map(|join| join.takes()).collect();
        let count = taken.len();
        taken.sort_unstable();
        taken.dedup();
        assert_eq!(taken.len(), count);
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
