//! Our log of SSH against Zeek's, row by row, over the corpus.

use crate::zeek::compare::SSH;
use crate::zeek::total::over_corpus;

#[test]
fn ssh_log_is_zeeks() {
    let Some((sound, _)) = over_corpus("ssh", SSH, Vec::new()) else { return };
    assert!(sound.files >= 3 && sound.rows >= 24, "{sound:?}");
    assert_eq!(sound.rows_same, sound.rows, "rows differ");
}
