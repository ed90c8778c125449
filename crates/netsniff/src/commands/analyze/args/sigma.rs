//! Files and folders of rules of Sigma: `--sigma`.

use std::collections::HashSet;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::{fs, iter};

use netsniff_analysis::notice::rules::Rule;
use netsniff_analysis::record::LogType;
use netsniff_console::number::count;
use netsniff_console::{UsageError, say};
use netsniff_output::sigma::{Collection, Reading};

/// Bytes of a file of rules.
const MOST_BYTES: u64 = 1 << 20;
/// Folders in each other.
const DEEPEST: usize = 32;
/// Rules that are not applied, of which each is named.
const MOST_NAMED: usize = 50;

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
    let (mut collection, mut unread) = (Collection::default(), Vec::new());
    let mut take = |path: &Path| {
        let file = path.display().to_string();
        let text = text(path).map_err(|error| UsageError(format!("--sigma {file}: {error}")))?;
        Ok::<_, UsageError>(collection.read(&file, &text, &lacks))
    };
    for path in paths {
        let fail = |error: io::Error| UsageError(format!("--sigma {}: {error}", path.display()));
        if path.is_dir() {
            let mut files = Vec::new();
            files_below(path, DEEPEST, &mut files).map_err(fail)?;
            for file in files {
                unread.extend(take(&file)?);
            }
        } else if let Some(first) = take(path)?.first() {
            return Err(UsageError(format!("--sigma {first}")));
        }
    }
    let mut reading = collection.finish();
    drop(reading.refused.splice(..0, unread));
    say_what_became_of(&reading);
    if reading.rules.is_empty() {
        return Err(UsageError("--sigma: no rule can be applied to these logs".to_owned()));
    }
    tell_apart(&mut reading.rules);
    Ok(reading.rules)
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

/// Gives rules with the same name numbers.
fn tell_apart(rules: &mut [Rule]) {
    let mut taken = HashSet::new();
    for rule in rules {
        let numbers = (2_usize..).map(|number| format!("{}_{number}", rule.name));
        let mut names = iter::once(rule.name.clone()).chain(numbers);
        let name = names.find(|name| !taken.contains(name)).unwrap_or_default();
        taken.insert(name.clone());
        rule.name = name;
    }
}

/// Says how many rules are applied, and which are not.
fn say_what_became_of(reading: &Reading) {
    for refused in reading.refused.iter().take(MOST_NAMED) {
        say(&format!("--sigma: not applied: {refused}"));
    }
    say(&format!(
        "--sigma: applied {}, not applied {}, for other logs {}",
        count(reading.rules.len() as u64 + reading.parts),
        count(reading.refused.len() as u64),
        count(reading.foreign)
    ));
}
