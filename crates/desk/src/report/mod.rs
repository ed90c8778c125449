//! `netsniff report`: logs as a page that needs no network.
//!
//! | module | concern |
//! |---|---|
//! | `analysed` | captures to logs, by this program itself |
//! | `material`, `reading` | a directory of logs, and all of its rows, once each |
//! | [`sections`] | what is gathered from rows, a file for each section |
//! | `sum`, `top` | sums that know what they do not know, and the largest with an exact rest |
//! | `table`, `matrix`, `plot` | what sections are made of |
//! | `page` | all of it as HTML |

mod analysed;
mod args;
mod material;
mod matrix;
mod page;
mod plot;
mod reading;
mod sections;
mod sum;
mod table;
mod top;

use std::fs;
use std::io::Write as _;
use std::path::Path;

use anyhow::Context as _;
use netsniff_console::{DAMAGED, DONE, UsageError};

use self::analysed::Analysed;
pub use self::args::ReportArgs;
use self::material::Material;
use self::page::Page;
use self::reading::Reading;
use self::sections::{About, Extent, Gathering};
use self::table::moment;

/// Runs the command and returns its exit code.
///
/// # Errors
///
/// [`UsageError`], inputs that cannot be read, and a page that cannot be written.
pub fn run(args: &ReportArgs) -> anyhow::Result<u8> {
    let (material, _scratch, code) = opened(args)?;
    let extent = Extent { rows: args.rows, connections: args.connections };
    let (page, is_whole) = page_of(&material, extent, args.title.as_deref());
    write(&args.output, &page.html()?)?;
    Ok(if is_whole { code } else { DAMAGED })
}

/// The logs of the inputs; captures are analysed first.
fn opened(args: &ReportArgs) -> anyhow::Result<(Material, Option<Analysed>, u8)> {
    let is_folder: Vec<_> = args.inputs.iter().map(|input| input.is_dir()).collect();
    match (args.inputs.as_slice(), is_folder.as_slice()) {
        ([directory], [true]) => {
            let material = Material::of(directory)?;
            if material.folder.is_empty() {
                let said =
                    format!("{} has no logs in lines of columns or JSON", directory.display());
                return Err(UsageError(said).into());
            }
            Ok((material, None, DONE))
        }
        (captures, folders) if folders.iter().all(|is_folder| !is_folder) => {
            let (analysed, code) = Analysed::of(captures)?;
            Ok((analysed.material()?, Some(analysed), code))
        }
        _ => Err(UsageError("give one directory of logs, or capture files".to_owned()).into()),
    }
}

/// The page, and whether all logs could be read.
fn page_of(material: &Material, extent: Extent, title: Option<&str>) -> (Page, bool) {
    let mut gathering = Gathering::new(extent);
    let reading = {
        let wanted = Gathering::new(extent);
        Reading::of(&material.folder, |log| wanted.wants(log), |log, row| gathering.row(log, row))
    };
    let gathered = gathering.sections(&About { material, reading: &reading });
    let mut facts = vec![("made of".to_owned(), material.name.clone())];
    if let Some((first, last)) = gathered.span {
        facts.push(("from".to_owned(), format!("{} UTC", moment(first))));
        facts.push(("to".to_owned(), format!("{} UTC", moment(last))));
    }
    let page = Page {
        title: title.map_or_else(|| format!("Traffic of {}", material.name), str::to_owned),
        facts,
        verdicts: vec![gathered.verdict],
        sections: gathered.sections,
        made_by: concat!("Made by netsniff ", env!("CARGO_PKG_VERSION"), ".").to_owned(),
    };
    (page, reading.is_whole())
}

/// Writes the page; `-` is standard output.
fn write(path: &Path, html: &str) -> anyhow::Result<()> {
    if netsniff_console::paths::is_stdin(path) {
        return std::io::stdout()
            .lock()
            .write_all(html.as_bytes())
            .context("cannot write the page");
    }
    fs::write(path, html).with_context(|| format!("cannot write {}", path.display()))
}
