//! The list of findings, one file each; those of TLS and of the capture itself have folders.

mod arp;
mod beacon;
mod black_hole;
pub(super) mod capture;
mod clear_text;
mod dhcp;
mod dns;
mod scan;
mod stalls;
mod tls;
mod unanswering;

use super::finding::FindingType;
use super::threshold::Threshold;

/// THE list.
pub static FINDINGS: &[FindingType] = &[
    tls::certificate::TYPE,
    tls::weak_key::TYPE,
    tls::weak_tls::TYPE,
    clear_text::TYPE,
    scan::TYPE,
    dns::TYPE,
    unanswering::TYPE,
    stalls::TYPE,
    beacon::TYPE,
    black_hole::TYPE,
    dhcp::TYPE,
    arp::TYPE,
    capture::one_way::TYPE,
    capture::doubled::TYPE,
    capture::clock::TYPE,
    capture::stamps::TYPE,
];

/// The thresholds of all findings.
#[must_use]
pub fn thresholds() -> Vec<&'static Threshold> {
    FINDINGS.iter().flat_map(|finding| finding.thresholds).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::notice::UNWRITTEN;
    use crate::rows::LOGS;

    #[test]
    fn findings_read_columns_that_exist() {
        for (log, columns) in FINDINGS.iter().flat_map(|finding| finding.reads) {
            let mut logs = LOGS.iter().chain(&UNWRITTEN).copied();
            let found = logs.find(|known| known.path == *log);
            let fields = found.unwrap_or_else(|| panic!("no log {log}")).fields;
            for column in *columns {
                assert!(fields.iter().any(|field| field.name == *column), "{log}.{column}");
            }
        }
    }

    #[test]
    fn names_are_unique_and_described() {
        let mut names = BTreeSet::new();
        for threshold in thresholds() {
            assert!(names.insert(threshold.name), "{} is there twice", threshold.name);
            assert!(threshold.doc.ends_with('.'), "{}", threshold.name);
        }
        for note in FINDINGS.iter().flat_map(|finding| finding.notes) {
            assert!(names.insert(note.name), "{} is there twice", note.name);
            for text in [note.doc, note.confidence, note.advice] {
                assert!(text.ends_with('.'), "{}: {text}", note.name);
            }
        }
    }
}
