//! Whether a certificate holds here and now.

use std::io::stdout;
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use netsniff_console::printable::is_active;
use netsniff_console::{DONE, FAILED, print, say};
use serde::Serialize;

use super::super::{common, programs};
use super::{CertifyArgs, Environment, configuration, keys, text};
use crate::certificate::envelope::EnvelopeError;
use crate::certificate::facts::{Difference, differences};
use crate::certificate::key::PublicKey;
use crate::certificate::page::{self, Wording};
use crate::certificate::recheck::{self, Checked};
use crate::certificate::{Certified, RateVerdict, Statement};
use crate::stop::Stop;
use crate::testbed::{self, Layout, MOST_QUEUES, Testbed};
use crate::tools::Tool;
use crate::trial::Trial;

/// All that was found.
#[derive(Debug, Default, Serialize)]
struct VerifyReport {
    holds: bool,
    reasons: Vec<String>,
    signature: Signature,
    /// What the page says, where it is one.
    page: Option<Wording>,
    /// When it was made.
    made: Option<String>,
    /// The statement, where it is to be read instead of the page.
    statement: Option<Statement>,
    differences: Vec<Difference>,
    /// `None` where it was not asked for, or could not be made.
    check: Option<Vec<Checked>>,
}

#[derive(Debug, Default, Serialize)]
struct Signature {
    is_valid: bool,
    /// The fingerprint of the key.
    key: Option<String>,
    /// Whether the key was given, so that it is known whose it is.
    is_given: bool,
}

/// Verifies and returns the exit code.
///
/// # Errors
///
/// As [`super::run`].
pub(super) fn run(args: &CertifyArgs, path: &Path) -> anyhow::Result<u8> {
    let file = keys::content(path)?;
    let public = args.public.as_deref().map(keys::public).transpose()?;
    let mut found = VerifyReport::default();
    found.signature.is_given = public.is_some();
    match open(&file, public.as_ref()) {
        Err(refused) => found.reasons.push(refused.to_string()),
        Ok((statement, key, page)) => {
            found.signature.is_valid = true;
            found.signature.key = Some(key.fingerprint().map_err(anyhow::Error::msg)?);
            found.made = Some(statement.made.clone());
            found.page = page;
            match page {
                Some(Wording::Altered) => found.reasons.push(ALTERED.to_owned()),
                _ => look(args, &statement, &mut found)?,
            }
            found.statement = page.is_some_and(|it| it != Wording::AsSigned).then_some(statement);
        }
    }
    found.holds = found.reasons.is_empty();
    let said = if args.json { serde_json::to_string_pretty(&found)? + "\n" } else { words(&found) };
    print(stdout(), &said).context("cannot print what was found")?;
    Ok(if found.holds { DONE } else { FAILED })
}

/// What is told of a page that people should not read.
const ALTERED: &str = "the page was altered: it is not the one that the signed statement in it gives, so nothing that it \
                       says beside that is signed";

/// The statement of a certificate or of its page, the key that signed it, and whether the page says the same.
fn open(
    file: &str,
    public: Option<&PublicKey>,
) -> Result<(Statement, PublicKey, Option<Wording>), EnvelopeError> {
    if !page::is_page(file) {
        let (statement, key) = Statement::verified(file, public)?;
        return Ok((statement, key, None));
    }
    let envelope = page::envelope(file)?;
    let (statement, key) = Statement::verified(&envelope, public)?;
    let wording = page::wording(file, &statement, &envelope, env!("CARGO_PKG_VERSION"));
    Ok((statement, key, Some(wording)))
}

/// What is told where frames came from another machine.
const NOT_WIRED: &str = "another machine sent the frames: which one is to send now, --sender, --sender-interface and -i say";

/// The testbed that a certificate is of, as far as another one does not stand in the arguments.
fn layout(args: &CertifyArgs, certified: &Layout) -> anyhow::Result<Layout> {
    let made = Layout {
        placement: args.placement.unwrap_or(certified.placement),
        queues: certified.queues.clamp(1, MOST_QUEUES),
        // A certificate changes no settings of the machine, writes in no directory, and reaches no other machine.
        ..Layout::default()
    };
    Ok(Layout {
        quota: args.share(certified.quota),
        processors: certified.processors,
        files: args.files.clone(),
        ..args.wire.layout(args.placement.is_some())?.unwrap_or(made)
    })
}

/// What a testbed is on; without a check as far as nothing has to be made or reached for that.
fn surroundings(args: &CertifyArgs, layout: &Layout) -> anyhow::Result<Environment> {
    let (_, warden) = programs()?;
    match &layout.wire {
        _ if !args.no_check => Environment::of(&warden, layout),
        Some(_) => {
            Ok(Environment { interfaces: testbed::interfaces(&warden, layout)?, sender: None })
        }
        None => Ok(Environment::default()),
    }
}

/// Looks at the machine, and runs the check.
fn look(args: &CertifyArgs, statement: &Statement, found: &mut VerifyReport) -> anyhow::Result<()> {
    let certified = &statement.configuration;
    // What is run is of our own list or given: a certificate may be from anybody.
    let tool = args.tool(&certified.tool.name)?;
    let layout = layout(args, &certified.testbed)?;
    let is_wired = layout.wire.is_some();
    let around = match surroundings(args, &layout) {
        Err(error) if is_wired => {
            found.reasons.push(format!("it cannot be checked: {error:#}"));
            return Ok(());
        }
        // A testbed that cannot be made is said where it is needed.
        around => around.unwrap_or_default(),
    };
    let now = configuration(&tool, layout.clone(), around);
    found.differences = differences(certified, &now);
    let essential = found.differences.iter().filter(|difference| difference.is_essential);
    found.reasons.extend(essential.map(Difference::words));
    let rates: Vec<_> = statement.sizes.iter().filter(|size| size.rate().is_some()).collect();
    if rates.is_empty() {
        found.reasons.push("it certifies no rate".to_owned());
    } else if !tool.is_here() {
        found.reasons.push(format!("{} is not installed", tool.name));
    } else if certified.testbed.wire.is_some() && !is_wired {
        found.reasons.push(NOT_WIRED.to_owned());
    } else if !args.no_check {
        match check(args, &tool, &layout, &rates) {
            Ok(checks) => {
                let failed = checks.iter().filter(|check| check.verdict != RateVerdict::Holds);
                found.reasons.extend(failed.map(text::checked));
                found.check = Some(checks);
            }
            Err(error) => found.reasons.push(format!("it cannot be checked: {error:#}")),
        }
    }
    Ok(())
}

/// Runs the tool at all certified rates.
fn check(
    args: &CertifyArgs,
    tool: &Tool,
    layout: &Layout,
    rates: &[&Certified],
) -> anyhow::Result<Vec<Checked>> {
    let signal = common::signal()?;
    let (program, warden) = programs()?;
    let each = recheck::each(args.check, rates.len());
    if !args.quiet {
        let time = recheck::planned(each, rates.len());
        print_plan(rates.len(), each, time);
    }
    let stop = Stop::new(&signal, args.budget);
    let bed = Testbed::make(&warden, layout)?.until(&stop);
    let mut checks = Vec::new();
    for certified in rates {
        let mut tell = |trial: &Trial| {
            if !args.quiet {
                say(&format!("{} bytes: {}", certified.size, text::trial(trial)));
            }
        };
        checks.push(recheck::check(&bed, &program, (tool, certified), each, &stop, &mut tell)?);
    }
    Ok(checks)
}

fn print_plan(runs: usize, each: Duration, time: Duration) {
    let plural = if runs == 1 { "" } else { "s" };
    let (each, time) = (common::in_words(each), common::in_words(time));
    say(&format!(
        "{runs} run{plural} at the certified rates, {each} each; about {time} in all where nothing is repeated"
    ));
}

fn words(found: &VerifyReport) -> String {
    let mut text = String::new();
    if let Some(key) = &found.signature.key {
        text += &format!("The signature is valid, of the key {key}.\n");
        if !found.signature.is_given {
            text += "That key is the one that the certificate names itself, which anybody can have made. Whose it is, \
                     --public tells.\n";
        }
    }
    text += match found.page {
        None => "",
        Some(Wording::AsSigned) => "The page says what was signed, and nothing else.\n",
        Some(Wording::OfAnotherVersion) => {
            "Another version of netsniff wrote the page: only the statement in it is verified, not how the page tells it. This \
             was signed:\n\n"
        }
        Some(Wording::Altered) => "The page was altered. This was signed:\n\n",
    };
    // It may be from anybody.
    match (&found.statement, &found.made) {
        (Some(statement), _) => {
            text +=
                &text::statement(statement).split('\n').map(line).collect::<Vec<_>>().join("\n");
            text += "\n";
        }
        (None, Some(made)) => text += &format!("Made {}\n", line(made)),
        (None, None) => {}
    }
    for difference in found.differences.iter().filter(|difference| !difference.is_essential) {
        text += &format!(
            "Not as certified, but receiving does not depend on it: {}\n",
            line(&difference.words())
        );
    }
    for run in found.check.iter().flatten().flat_map(text::proved_nothing) {
        text += &format!("{}\n", line(&run));
    }
    for checked in found.check.iter().flatten().filter(|it| it.verdict == RateVerdict::Holds) {
        text += &format!("{}\n", text::checked(checked));
    }
    for reason in &found.reasons {
        text += &format!("It does not hold: {}\n", line(reason));
    }
    if found.holds {
        text += match found.check {
            Some(_) => "It holds.\n",
            None => "It holds, as far as can be told without a check of the rates.\n",
        };
    }
    text
}

/// Names from a file must not steer the terminal.
fn line(text: &str) -> String {
    text.replace(is_active, "\u{fffd}")
}
