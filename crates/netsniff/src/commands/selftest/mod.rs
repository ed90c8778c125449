//! `netsniff selftest`: what of netsniff works on this host, tried in seconds.

mod checks;
mod wire;

use std::io::stdout;

use anyhow::Context as _;
use netsniff_console::terminal::table::{Align, Table};
use netsniff_console::{DONE, FAILED, print};
use serde::Serialize;

use self::wire::Wire;

/// Try what works on this host: rights, ways to capture and to send, filters, stamps, rings that share packets
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    netsniff selftest           a table, in seconds\n  \
    netsniff selftest --json    the same for programs\n\n\
    It sends frames to itself: through a veth pair between two network namespaces that it makes and removes, or, without the\n\
    right to make them, on the loopback interface. Nothing else is touched.\n\n\
    Exit code: 0 capturing works; 1 it does not")]
pub struct SelftestArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Use the loopback interface, also where namespaces could be made
    #[arg(long)]
    loopback: bool,
}

/// What came of one thing that was tried.
#[derive(Debug, Serialize)]
struct Check {
    /// What was tried.
    name: String,
    /// Whether it works.
    works: bool,
    /// What it did, or why it does not work.
    text: String,
    /// Whether nothing can be captured without it.
    is_needed: bool,
}

/// All that was tried.
#[derive(Debug, Serialize)]
struct Report {
    /// Where frames were sent.
    wire: String,
    checks: Vec<Check>,
}

/// Runs the command and returns its exit code.
///
/// # Errors
///
/// Where nothing can be printed.
pub fn run(args: &SelftestArgs) -> anyhow::Result<u8> {
    let (wire, why) = Wire::make(args.loopback);
    let mut checks = Vec::new();
    if let Some(why) = why {
        checks.push(Check {
            name: "namespaces".to_owned(),
            works: false,
            text: why,
            is_needed: false,
        });
    }
    checks.extend(checks::all(&wire));
    let report = Report { wire: wire.words(), checks };
    drop(wire);
    let text =
        if args.json { serde_json::to_string_pretty(&report)? + "\n" } else { page(&report) };
    print(stdout().lock(), &text).context("cannot write to standard output")?;
    let is_broken = report.checks.iter().any(|check| check.is_needed && !check.works);
    Ok(if is_broken { FAILED } else { DONE })
}

fn page(report: &Report) -> String {
    let mut table = Table::bare(&[Align::Left; 3]);
    for Check { name, works, text, .. } in &report.checks {
        let mark = if *works { "works" } else { "NOT" };
        table.row([mark, name.as_str(), text.as_str()]);
    }
    format!("frames were sent {}\n\n{}", report.wire, table.text())
}
