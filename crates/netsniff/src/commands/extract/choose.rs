//! Which connections are wanted where their rows tell.

use std::collections::HashSet;

use netsniff_analysis::record::{FieldInfo, Value, Visitor};
use netsniff_analysis::{Engine, Observer, Options, Record, SortKey, Uid};
use netsniff_console::UsageError;
use netsniff_console::terminal::progress::ProgressLine;
use netsniff_output::condition::Condition;
use netsniff_packet::{Batch, Progress, Source as _};

use super::args::ExtractArgs;
use crate::commands::inputs::Inputs;

/// The log whose rows are files.
const FILES: &str = "files";

/// What rows chose.
#[derive(Debug, Default)]
pub(super) struct Chosen {
    /// Connections.
    pub(super) uids: HashSet<Uid>,
    /// Files that were asked for and that are in no row.
    pub(super) missing_files: Vec<Uid>,
}

/// Analyses the files, and chooses connections by their rows: those that meet `condition` and carried a file that was
/// asked for, where either is asked.
pub(super) fn choose(
    args: &ExtractArgs,
    options: Options,
    condition: Option<Condition>,
    inputs: &mut Inputs,
    seed: u64,
) -> Result<Chosen, UsageError> {
    let mut engine = Engine::new(args.limits(), options, seed);
    let fuids = args.fuids();
    let mut chooser = Chooser { condition, fuids, ..Chooser::default() };
    let mut progress = ProgressLine::new(inputs.size(), args.quiet());
    let mut batch = Batch::default();
    loop {
        let Ok(state) = inputs.read_batch(&mut batch);
        engine.batch(&batch, &mut chooser);
        chooser.check()?;
        progress.update(|| (inputs.bytes_read(), inputs.packets()));
        if state == Progress::End {
            break;
        }
    }
    engine.finish(&mut chooser);
    chooser.check()?;
    let Chooser { condition, fuids, meeting, carrying, found } = chooser;
    let missing_files = fuids.iter().filter(|fuid| !found.contains(fuid)).copied().collect();
    let uids = match (condition, fuids.is_empty()) {
        (None, _) => carrying,
        (Some(_), true) => meeting,
        (Some(_), false) => meeting.intersection(&carrying).copied().collect(),
    };
    Ok(Chosen { uids, missing_files })
}

/// Looks at rows.
#[derive(Debug, Default)]
struct Chooser<'a> {
    condition: Option<Condition>,
    fuids: &'a [Uid],
    /// Connections whose rows meet the condition.
    meeting: HashSet<Uid>,
    /// Connections that carried files that were asked for.
    carrying: HashSet<Uid>,
    /// Files that were asked for and found.
    found: HashSet<Uid>,
}

/// Connections that are remembered at most.
const MOST_CHOSEN: usize = 10_000_000;

impl Chooser<'_> {
    /// Whether memory suffices for what was chosen.
    fn check(&self) -> Result<(), UsageError> {
        if self.meeting.len().max(self.carrying.len()) > MOST_CHOSEN {
            let said = "--where chooses more than 10,000,000 connections, which are not remembered: \
                        choose by -f, --from and --to, or fewer connections at once";
            return Err(UsageError(said.to_owned()));
        }
        Ok(())
    }
}

impl Observer for Chooser<'_> {
    fn record<R: Record>(&mut self, key: &SortKey, record: &R) {
        if self.condition.as_ref().is_some_and(|condition| condition.matches(record)) {
            self.meeting.insert(key.uid);
        }
        if self.fuids.is_empty() || record.log().path != FILES {
            return;
        }
        let mut name = Name(None);
        record.visit(&mut name);
        if let Some(fuid) = name.0.filter(|fuid| self.fuids.contains(fuid)) {
            self.carrying.insert(key.uid);
            self.found.insert(fuid);
        }
    }
}

/// The name of a file in its row.
struct Name(Option<Uid>);

impl Visitor for Name {
    fn field(&mut self, _: usize, info: &'static FieldInfo, value: Value<'_>) {
        if info.name == "fuid"
            && let Value::Word(text) = value
        {
            self.0 = core::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
        }
    }
}
