//! Measures, and signs what was found.

use std::fs;
use std::io::stdout;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, bail};
use netsniff_console::calendar::Date;
use netsniff_console::sizes::Sizes;
use netsniff_console::{DONE, FAILED, print, say};

use super::super::{common, programs, table};
use super::{CertifyArgs, Environment, configuration, keys, text};
use crate::certificate::facts::differences;
use crate::certificate::key::PrivateKey;
use crate::certificate::{Certified, Statement, page};
use crate::search::Goal;
use crate::search::lossless::{Step, Subject, measure, planned};
use crate::stop::{Stop, Why};
use crate::testbed::{Layout, Testbed};
use crate::tools::Tool;

/// The signed envelope, and the page for people.
const FILE: &str = "certificate.json";
const PAGE: &str = "certificate";

const TOOL: &str = "record";
const SIZES: &str = "64,512,1518";

/// Certifies and returns the exit code.
///
/// # Errors
///
/// As [`super::run`].
pub(super) fn run(args: &CertifyArgs) -> anyhow::Result<u8> {
    let (Some(key), Some(directory)) = (&args.key, &args.output) else {
        bail!("--key and -o are needed");
    };
    let tool = args.tool(args.tool.as_deref().unwrap_or(TOOL))?;
    let sizes = match &args.sizes {
        Some(sizes) => sizes.clone(),
        None => SIZES.parse::<Sizes>().map_err(anyhow::Error::msg)?,
    };
    let sizes = common::frames_fit(sizes.as_slice())?;
    if !tool.is_here() {
        bail!("{} is not installed", tool.name);
    }
    let (key, layout) = (keys::private(key)?, args.layout()?);
    let (program, warden) = programs()?;
    let now = || -> anyhow::Result<_> {
        let around = Environment::of(&warden, &layout)?;
        Ok(configuration(&tool, layout.clone(), around))
    };
    let before = now()?;
    fs::create_dir(directory).with_context(|| format!("cannot make {}", directory.display()))?;
    let found = search(args, &tool, &sizes, (&layout, &program, &warden))?;
    let after = now()?;
    let changed = differences(&before, &after).into_iter().find(|it| it.is_essential);
    if let Some(changed) = changed {
        bail!("nothing is certified, since it changed meanwhile: {}", changed.words());
    }
    let statement = Statement::new(time_of_day(), before, found, &key.public());
    let statement = statement.map_err(anyhow::Error::msg)?;
    write(directory, &statement, &key)?;
    let [json, page] = [FILE, "certificate.html"].map(|name| directory.join(name));
    let fingerprint = key.public().fingerprint().map_err(anyhow::Error::msg)?;
    let mut said = text::statement(&statement);
    let names = format!("{} and {}", json.display(), page.display());
    said += &format!("\n{names}, signed with the key {fingerprint}\n");
    print(stdout(), &said).context("cannot print the certificate")?;
    let is_whole = statement.sizes.iter().all(|certified| certified.rate().is_some());
    Ok(if is_whole { DONE } else { FAILED })
}

/// Signs, and writes the certificate and its page.
fn write(directory: &Path, statement: &Statement, key: &PrivateKey) -> anyhow::Result<()> {
    let certificate = statement.sign(key).map_err(anyhow::Error::msg)?;
    common::write(directory, FILE, &certificate)?;
    // As those who verify it read it.
    let (statement, _) = Statement::verified(&certificate, Some(&key.public()))?;
    common::write_page(directory, PAGE, &page::report(&statement, &certificate))
}

/// Searches for all sizes. Those that are not come to are said to be so.
fn search(
    args: &CertifyArgs,
    tool: &Tool,
    sizes: &[u32],
    (layout, program, warden): (&Layout, &Path, &[String]),
) -> anyhow::Result<Vec<Certified>> {
    let signal = common::signal()?;
    let goal = Goal::default();
    if !args.quiet {
        let times = sizes.iter().map(|size| planned(tool, *size, &goal));
        let [time, most] = times
            .fold([Duration::ZERO; 2], |[least, most], [one, other]| [least + one, most + other])
            .map(common::in_words);
        say(&format!(
            "{} of {} takes about {time} where nothing is repeated, {most} at most where rates that short runs find \
             are not confirmed",
            text::searches(sizes.len()),
            tool.name
        ));
    }
    let stop = Stop::new(&signal, args.budget);
    let bed = Testbed::make(warden, layout)?.until(&stop);
    let mut found = Vec::new();
    for (number, &size) in sizes.iter().enumerate() {
        if stop.is_set() {
            found.push(Certified::unavailable(size, Why::Signal.words()));
            continue;
        }
        let mut tell = |step: &Step| {
            if !args.quiet {
                say(&format!("{} of {}: {}", number + 1, sizes.len(), table::step(step)));
            }
        };
        let subject = Subject { tool, size, options: &[], tolerated: 0.0 };
        let cell = measure(&bed, program, subject, &goal, &stop, &mut tell)?;
        found.push(Certified::of(&cell));
    }
    Ok(found)
}

/// The time of day, as RFC 3339 writes it.
fn time_of_day() -> String {
    let Date { year, month, day, hour, minute, second } = Date::of(netsniff_console::clock::now());
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}
