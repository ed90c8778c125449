//! Where rows come from: an analysis of captures or of live traffic, which is a process of its own, or a directory of logs.
//!
//! | module | concern |
//! |---|---|
//! | `child` | an analysis |
//! | `folder` | a directory of logs |
//! | `growing` | a log file that may grow while it is read |
//! | `processes` | the processes of this host that have sockets |

use netsniff_analysis::record::LogType;

use crate::logs::Reader;
use crate::watch::data::row::{LogRow, log_of};

pub(crate) mod child;
pub(crate) mod folder;
mod growing;
#[cfg(target_os = "linux")]
pub(crate) mod processes;

/// Rows that are handed over at once.
const BATCH: usize = 512;

/// What a source tells whoever listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    /// Rows came.
    Rows(Vec<LogRow>),
    /// No more rows come for now; why.
    Ended(Ending),
    /// The logs are written anew: what was known is not any more.
    Anew,
    /// Something is to be said.
    Said(String),
}

/// How rows ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ending {
    /// In words.
    pub(crate) how: String,
    /// The exit code for that.
    pub(crate) code: u8,
}

/// Adds the rows that are there at once, of the log that they name where it is not given. Waits for the first one only.
/// Returns whether there may be more by now.
fn next_rows(reader: &mut Reader, log: Option<&'static LogType>, rows: &mut Vec<LogRow>) -> bool {
    loop {
        let Some(row) = reader.next_row_so_far() else { return false };
        if let Some(log) = log.or_else(|| log_of(&row)) {
            rows.push(LogRow::of(log, &row));
        }
        // What was read at once bounds their bytes.
        if !reader.has_more() || rows.len() >= BATCH {
            return true;
        }
    }
}

/// Whoever listens. `None` where it wants no more.
pub(crate) type Listener = Box<dyn Fn(Told) -> Option<()> + Send>;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::data::row::log_named;

    fn all(text: &'static str, log: Option<&str>) -> Vec<LogRow> {
        let (mut reader, mut rows) = (Reader::of(text.as_bytes()), Vec::new());
        while next_rows(&mut reader, log.and_then(log_named), &mut rows) {}
        rows
    }

    #[test]
    fn all_forms_give_the_same_row() {
        let own = all(
            "#separator \\x09\n#set_separator\t,\n#empty_field\t(empty)\n#unset_field\t-\n#path\tdns\n\
             #fields\tts\tuid\tid.orig_h\tid.orig_p\tproto\tquery\tAA\tTC\tanswers\tTTLs\tnew\n\
             #types\ttime\tstring\taddr\tport\tenum\tstring\tbool\tbool\tvector[string]\tvector[interval]\tcount\n\
             1767225600.123456789\tC1\t10.0.0.1\t53\tudp\ta\\x09b\tT\tF\ta\\x2cb,\\x2d,-\t(empty)\t7\n\
             1.5\tC2\t-\t-\t-\t(empty)\t-\t-\t-\t-\t-\n#close\t2026-11-28-22-10-00\n",
            Some("dns"),
        );
        // Zeek may be told to write so.
        let zeek = all(
            "#separator ,\n#set_separator,|\n#empty_field,EMPTY\n#unset_field,?\n\
             #fields,uid,ts,id.orig_h,id.orig_p,proto,query,AA,TC,answers,TTLs\n\
             C1,1767225600.123456789,10.0.0.1,53,udp,a\\x09b,T,F,a\\x2cb|-|?,EMPTY\n\
             C2,1.5,?,?,?,EMPTY,?,?,?,?\n",
            Some("dns"),
        );
        let stream = all(
            "{\"_path\":\"dns\",\"ts\":1767225600.123456789,\"uid\":\"C1\",\"id.orig_h\":\"10.0.0.1\",\
             \"id.orig_p\":53,\"proto\":\"udp\",\"query\":\"a\\tb\",\"AA\":true,\"TC\":false,\
             \"answers\":[\"a,b\",\"-\",null],\"TTLs\":[],\"new\":7}\n{\"_path\":\"nothing\",\"ts\":1}\n\
             {\"_path\":\"dns\",\"ts\":1.5,\"uid\":\"C2\",\"id.orig_h\":null,\"query\":\"\"}\n",
            None,
        );
        assert_eq!((own.len(), &own), (2, &stream));
        assert_eq!(zeek, stream);
        let [row, other] = own.as_slice() else { panic!("{own:?}") };
        assert_eq!(row.nanos("ts"), Some(1_767_225_600_123_456_789));
        assert_eq!((row.text("query"), row.count("id.orig_p")), (Some("a\tb"), Some(53)));
        assert_eq!(row.elements("answers").collect::<Vec<_>>(), ["a,b", "-"]);
        assert_eq!((other.text("query"), other.text("proto")), (Some(""), None));
    }

    #[test]
    fn what_is_handed_over_at_once_is_bounded() {
        let line = format!("{{\"_path\":\"dns\",\"query\":\"{}\"}}\n", "x".repeat(20_000));
        let mut reader = Reader::of(std::io::Cursor::new(line.repeat(200)));
        let (mut rows, mut all, mut most) = (Vec::new(), 0, 0);
        while next_rows(&mut reader, None, &mut rows) {
            let bytes: usize = rows.iter().map(LogRow::size).sum();
            (all, most) = (all + rows.len(), most.max(bytes));
            rows.clear();
        }
        assert_eq!(all, 200);
        assert!(most < 1 << 20, "{most}");
    }
}
