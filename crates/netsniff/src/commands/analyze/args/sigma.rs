//! Files and folders of rules of Sigma: `--sigma`.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use netsniff_analysis::notice::rules::Rule;
use netsniff_analysis::record::LogType;
use netsniff_console::number::count;
use netsniff_console::{UsageError, say};
use netsniff_output::sigma::{self, NotApplied};

/// Bytes of a file of rules.
const MOST_BYTES: u64 = 1 << 20;
/// Folders in each other.
const DEEPEST: usize = 32;
/// Rules that are not applied, of which each is named.
const MOST_NAMED: usize = 50;

/// The rules of some paths, as far as they can be applied.
#[derive(Default)]
struct Collected {
    rules: Vec<Rule>,
    refused: Vec<String>,
    foreign: u64,
}

/// Reads the rules of files and folders, and says which of them are not applied. `lacks` tells the option without which
/// there is no such log.
///
/// # Errors
///
/// Where a file cannot be read, a named file is none of Sigma, or no rule can be applied.
pub(super) fn rules(
    paths: &[PathBuf],
    lacks: impl Fn(&LogType) -> Option<&'static str>,
) -> Result<Vec<Rule>, UsageError> {
    if paths.is_empty() {
        return Ok(Vec::new());
    }
    let mut all = Collected::default();
    for path in paths {
        let fail = |error: io::Error| UsageError(format!("--sigma {}: {error}", path.display()));
        if path.is_dir() {
            let mut files = Vec::new();
            files_below(path, DEEPEST, &mut files).map_err(fail)?;
            for file in files {
                all.take(&file, &lacks, false)?;
            }
        } else {
            all.take(path, &lacks, true)?;
        }
    }
    all.say();
    if all.rules.is_empty() {
        return Err(UsageError("--sigma: no rule can be applied to these logs".to_owned()));
    }
    Ok(all.rules)
}

/// The files of rules in a folder and those in it, in the order of their names. Links are not followed.
fn files_below(folder: &Path, deepest: usize, files: &mut Vec<PathBuf>) -> io::Result<()> {
    let mut entries = fs::read_dir(folder)?.collect::<Result<Vec<_>, _>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        let is_of_rules = path.extension().is_some_and(|it| it == "yml" || it == "yaml");
        if entry.file_type()?.is_dir() && deepest > 0 {
            files_below(&path, deepest - 1, files)?;
        } else if is_of_rules && path.is_file() {
            files.push(path);
        }
    }
    Ok(())
}

fn text(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    fs::File::open(path)?.take(MOST_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MOST_BYTES {
        return Err(io::Error::other("it has more than 1 MiB"));
    }
    Ok(text)
}

impl Collected {
    fn take(
        &mut self,
        path: &Path,
        lacks: impl Fn(&LogType) -> Option<&'static str>,
        is_named: bool,
    ) -> Result<(), UsageError> {
        let file = path.display();
        let text = text(path).map_err(|error| UsageError(format!("--sigma {file}: {error}")))?;
        let reading = sigma::read(&text);
        self.foreign += reading.foreign;
        for refused in reading.refused {
            let said = sentence(path, &refused);
            if is_named && refused.title.is_none() {
                return Err(UsageError(format!("--sigma {said}")));
            }
            self.refused.push(said);
        }
        for rule in reading.rules {
            match lacks(rule.log) {
                None => self.add(rule),
                Some(option) => self.refused.push(format!(
                    "{file}: {}: the log {} is not made without {option}",
                    rule.msg, rule.log.path
                )),
            }
        }
        Ok(())
    }

    /// Adds a rule, whose name is that of no other.
    fn add(&mut self, mut rule: Rule) {
        let is_taken = |name: &str| self.rules.iter().any(|other| other.name == name);
        if is_taken(&rule.name) {
            let names = (2..).map(|number: usize| format!("{}_{number}", rule.name));
            rule.name = names.into_iter().find(|name| !is_taken(name)).unwrap_or_default();
        }
        self.rules.push(rule);
    }

    /// Says how many rules are applied, and which are not.
    fn say(&self) {
        for refused in self.refused.iter().take(MOST_NAMED) {
            say(&format!("--sigma: not applied: {refused}"));
        }
        say(&format!(
            "--sigma: applied {}, not applied {}, for other logs {}",
            count(self.rules.len() as u64),
            count(self.refused.len() as u64),
            count(self.foreign)
        ));
    }
}

fn sentence(path: &Path, refused: &NotApplied) -> String {
    let mut said = path.display().to_string();
    if let Some((line, column)) = refused.place {
        said += &format!(":{line}:{column}");
    }
    if let Some(title) = &refused.title {
        said += &format!(": {title}");
    }
    format!("{said}: {}", refused.why)
}
