//! Our log of IRC against Zeek's, row by row, over the corpus.
//!
//! A row leaves the comparison only through `docs/differences-from-zeek.md`.

use crate::zeek::compare::IRC;
use crate::zeek::differences::listed;
use crate::zeek::total::over_corpus;

#[test]
fn irc_log_is_zeeks() {
    let Some((sound, _)) = over_corpus("irc", IRC, listed("irc", IRC)) else { return };
    assert!(sound.files >= 1 && sound.rows + sound.rows_left_out >= 4, "{sound:?}");
    assert_eq!(sound.rows_same, sound.rows, "rows differ");
    assert!(sound.rows_left_out <= 1, "{sound:?}");
}
