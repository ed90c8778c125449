//! Our log of FTP against Zeek's, row by row, over the corpus.
//!
//! A row leaves the comparison only through `docs/differences-from-zeek.md`.

use crate::zeek::compare::FTP;
use crate::zeek::differences::listed;
use crate::zeek::total::over_corpus;

#[test]
fn ftp_log_is_zeeks() {
    let Some((sound, fuzzed)) = over_corpus("ftp", FTP, listed("ftp", FTP)) else { return };
    assert!(sound.files >= 3 && sound.rows + sound.rows_left_out >= 16, "{sound:?}");
    assert_eq!(sound.rows_same, sound.rows, "rows differ");
    assert!(sound.rows_left_out <= 2 && fuzzed.rows_same > 0, "{sound:?} {fuzzed:?}");
}
