//! Our log of SOCKS against Zeek's, row by row, over the corpus.

use crate::zeek::compare::SOCKS;
use crate::zeek::total::over_corpus;

#[test]
fn socks_log_is_zeeks() {
    let Some((sound, _)) = over_corpus("socks", SOCKS, Vec::new()) else { return };
    assert!(sound.files >= 1 && sound.rows >= 1, "{sound:?}");
    assert_eq!(sound.rows_same, sound.rows, "rows differ");
}
