//! `netsniff report`: logs as a page that needs no network.
//!
//! | module | concern |
//! |---|---|
//! | `analysed` | captures to logs, by this program itself |
//! | `stamps` | from when to when captures have packets |
//! | `material`, `reading` | a directory of logs, and all of its rows, once each |
//! | `sections` | what is gathered from rows, a file for each section |
//! | `top` | the largest with an exact rest |
//! | `output` | where the page goes |
//! | `compare` | two runs side by side |

mod analysed;
mod args;
mod compare;
mod material;
mod output;
mod reading;
mod sections;
mod stamps;
mod top;

use std::path::{Path, PathBuf};

use netsniff_console::{DAMAGED, DONE, UsageError};

use self::analysed::Analysed;
pub use self::args::ReportArgs;
use self::compare::compared;
use self::material::Material;
pub(crate) use self::material::SUMMARY;
use self::reading::Reading;
use self::sections::{About, Extent, Gathering, Sections};
use crate::logs::Row;
use crate::page::table::moment;
use crate::page::{Page, Section, Verdict};

/// Rows of the tables that are compared: what one run has among the others is not known.
const COMPARED: usize = 1000;

/// How much a report shows unless told.
const EXTENT: Extent = Extent { rows: 25, connections: 2000 };

/// Runs the command and returns its exit code.
///
/// # Errors
///
/// [`UsageError`], inputs that cannot be read, and a page that cannot be written.
pub fn run(args: &ReportArgs) -> anyhow::Result<u8> {
    output::refuse_inputs(&args.inputs, &args.output)?;
    let (page, code) = if args.compare { comparison(args)? } else { single(args)? };
    output::write(&args.output, &page.html()?)?;
    Ok(code)
}

/// What a directory of logs amounts to, for pages that are no report.
#[derive(Debug)]
pub(crate) struct Overview {
    pub(crate) verdict: Verdict,
    pub(crate) sections: Vec<Section>,
    /// From when to when.
    pub(crate) times: String,
}

/// Reads a directory of logs.
///
/// # Errors
///
/// When the directory cannot be read, or has no logs.
pub(crate) fn overview(directory: &Path) -> anyhow::Result<Overview> {
    let run = Run::of(&[directory.to_owned()], EXTENT)?;
    let times = run.times();
    Ok(Overview { verdict: run.sections.verdict, sections: run.sections.sections, times })
}

impl Overview {
    /// It as a page of its own.
    ///
    /// # Errors
    ///
    /// Where a template is wrong, which tests exclude.
    pub(crate) fn html(&self, name: &str) -> anyhow::Result<String> {
        let page = Page {
            title: format!("Traffic of {name}"),
            facts: vec![
                ("made of".to_owned(), name.to_owned()),
                ("from".to_owned(), self.times.clone()),
            ],
            verdicts: vec![self.verdict.clone()],
            sections: self.sections.clone(),
            made_by: MADE_BY.to_owned(),
        };
        page.html()
    }
}

/// What an input amounted to.
struct Run {
    name: String,
    sections: Sections,
    code: u8,
}

impl Run {
    /// Reads a directory of logs; captures are analysed first.
    fn of(inputs: &[PathBuf], extent: Extent) -> anyhow::Result<Self> {
        let folders = inputs.iter().filter(|input| input.is_dir()).count();
        match inputs {
            [directory] if folders == 1 => {
                let material = Material::of(directory)?;
                if material.folder.is_empty() {
                    let name = directory.display();
                    let said = format!("{name} has no logs in lines of columns or JSON");
                    return Err(UsageError(said).into());
                }
                Ok(Self::gathered(&material, extent, DONE))
            }
            captures if folders == 0 => {
                let (analysed, code) = Analysed::of(captures)?;
                Ok(Self::gathered(&analysed.material()?, extent, code))
            }
            _ => Err(UsageError("give one directory of logs, or capture files".to_owned()).into()),
        }
    }

    fn gathered(material: &Material, extent: Extent, code: u8) -> Self {
        let mut gathering = Gathering::new(extent);
        let wanted = gathering.wanted();
        let take = |log: &str, row: &Row<'_>| gathering.row(log, row);
        let reading = Reading::of(&material.folder, |log| wanted.contains(log), take);
        let sections = gathering.sections(&About { material, reading: &reading });
        let code = if reading.is_whole() { code } else { DAMAGED };
        Self { name: material.name.clone(), sections, code }
    }

    /// Its span of time.
    fn times(&self) -> String {
        self.sections.span.map_or_else(
            || "no connection".to_owned(),
            |(first, last)| format!("{} to {} UTC", moment(first), moment(last)),
        )
    }
}

/// The page of one run.
fn single(args: &ReportArgs) -> anyhow::Result<(Page, u8)> {
    let extent = Extent { rows: args.rows, connections: args.connections };
    let run = Run::of(&args.inputs, extent)?;
    let title = args.title.clone().unwrap_or_else(|| format!("Traffic of {}", run.name));
    let page = Page {
        title,
        facts: vec![("made of".to_owned(), run.name.clone()), ("from".to_owned(), run.times())],
        verdicts: vec![run.sections.verdict],
        sections: run.sections.sections,
        made_by: MADE_BY.to_owned(),
    };
    Ok((page, run.code))
}

/// The page of two.
fn comparison(args: &ReportArgs) -> anyhow::Result<(Page, u8)> {
    let [one, other] = args.inputs.as_slice() else {
        return Err(UsageError("--compare takes two inputs".to_owned()).into());
    };
    let extent = Extent { rows: args.rows.max(COMPARED), connections: 1 };
    let [mut one, mut other] = [
        Run::of(std::slice::from_ref(one), extent)?,
        Run::of(std::slice::from_ref(other), extent)?,
    ];
    if one.name == other.name {
        // Two columns of one name would not be told apart.
        (one.name, other.name) = (format!("first {}", one.name), format!("second {}", other.name));
    }
    let names = [one.name.as_str(), other.name.as_str()];
    let sections = compared(names, [&one.sections, &other.sections]);
    let title = args.title.clone().unwrap_or_else(|| format!("{} and {}", names[0], names[1]));
    let facts = [&one, &other].map(|run| (run.name.clone(), run.times()));
    let code = one.code.max(other.code);
    let verdicts = [one, other].map(|run| Verdict { of: Some(run.name), ..run.sections.verdict });
    let page = Page {
        title,
        facts: facts.to_vec(),
        verdicts: verdicts.to_vec(),
        sections,
        made_by: MADE_BY.to_owned(),
    };
    Ok((page, code))
}

/// Who made a page.
const MADE_BY: &str = concat!("Made by netsniff ", env!("CARGO_PKG_VERSION"), ".");
