//! Runs that missed a condition: all of them, each with why and with what it still counts for.

use super::whole;
use crate::report::number::exact;
use crate::report::{Part, Section, Table};
use crate::trial::Trial;

/// Columns of a table of such runs: their names, and whether they are numbers.
pub(crate) const RUN_COLUMNS: [(&str, bool); 7] = [
    ("run", false),
    ("asked frames/s", true),
    ("reached", true),
    ("sent", true),
    ("captured", true),
    ("missed", false),
    ("counts for", false),
];

/// What is told below a table of such runs.
pub(crate) const NOTE_ON_FAULTS: &str = "A run that proves nothing counts for nothing, whatever was lost in it, and is repeated, up to three runs in all, \
    unless its tool cannot begin. One that steers may miss its rate: it counts for the one that it reached.";

/// What such a run counts for.
pub(crate) const fn counts_for(is_proof: bool) -> &'static str {
    if is_proof { "the rate reached" } else { "nothing" }
}

/// A section with a row for each of these runs that missed a condition, and whether it proves something all the same; `None`
/// where there are none.
pub(super) fn unproven<'a>(
    runs: impl Iterator<Item = (String, &'a Trial, bool)>,
) -> Option<Section> {
    let row = |(what, trial, is_proof): (String, &Trial, bool)| {
        // Of a run that could not be made nothing was counted.
        let is_made = trial.failure.is_none();
        vec![
            what,
            trial.load.rate.map_or("full speed".to_owned(), |rate| whole(Some(rate))),
            whole(trial.reached),
            if is_made { exact(trial.sent) } else { "-".to_owned() },
            trial.counted.captured.map_or("-".to_owned(), exact),
            trial.reasons(),
            counts_for(is_proof).to_owned(),
        ]
    };
    let rows: Vec<_> = runs.filter(|(_, trial, _)| !trial.is_valid()).map(row).collect();
    let table = Table {
        columns: RUN_COLUMNS.map(|(name, is_number)| (name.to_owned(), is_number)).to_vec(),
        rows,
        note: Some(NOTE_ON_FAULTS.to_owned()),
    };
    (!table.rows.is_empty()).then(|| Section {
        title: "Runs that missed a condition".to_owned(),
        parts: vec![Part::Table(table)],
    })
}
