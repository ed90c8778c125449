//! Reports: texts, tables and plots, as one file of HTML that needs no network, no script and no other file.
//!
//! Everything here is pure: from what was measured to text.

use std::collections::BTreeMap;

mod escape;
mod html;
pub mod number;
mod plot;
pub mod sections;
mod text;

pub(crate) use self::html::blocks;
pub use self::plot::{
    Axis, Bars, Chart, Direction, Dot, HeatMap, Interval, Intervals, Mark, Palette, Plot, Scale,
    Series, Stage, Unit, Value, Waterfall,
};

/// A report of one page, in sections.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// What it is about.
    pub title: String,
    /// What it comes to, in sentences.
    pub lead: Vec<String>,
    /// The machine, the command, the versions: names and values.
    pub facts: Vec<(String, String)>,
    /// The sections in their order.
    pub sections: Vec<Section>,
}

/// A part of a report with a heading.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Section {
    /// The heading of the section.
    pub title: String,
    /// What is in it.
    pub parts: Vec<Part>,
}

/// Something in a section.
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    /// A paragraph of text.
    Text(String),
    /// A command, or what one printed.
    Code(String),
    /// A table, for text and pages.
    Table(Table),
    /// A plot, for pages.
    Plot(Plot),
}

/// A table with headings, rows and a note.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// Names of columns, and whether they have numbers.
    pub columns: Vec<(String, bool)>,
    /// Rows of as many cells.
    pub rows: Vec<Vec<String>>,
    /// A sentence on what the columns mean.
    pub note: Option<String>,
}

impl Report {
    /// All its plots as pictures by themselves, for light and for dark pages: names of files, and what is in them. A name
    /// is that of the plot's title, as `loss-against-rate-dark.svg`.
    #[must_use]
    pub fn pictures(&self) -> Vec<(String, String)> {
        let parts = self.sections.iter().flat_map(|section| &section.parts);
        let plots = parts.filter_map(|part| match part {
            Part::Plot(plot) if !plot.is_empty() => Some(plot),
            Part::Plot(_) | Part::Text(_) | Part::Code(_) | Part::Table(_) => None,
        });
        let mut names = BTreeMap::new();
        let mut pictures = Vec::new();
        for plot in plots {
            let name = file_name(&plot.title);
            let number = names.entry(name.clone()).and_modify(|number| *number += 1).or_insert(1);
            let name = if *number > 1 { format!("{name}-{number}") } else { name };
            let both = Palette::ALL.into_iter();
            pictures.extend(
                both.map(|(palette, page)| (format!("{name}-{page}.svg"), plot.picture(palette))),
            );
        }
        pictures
    }

    /// It as a page.
    #[must_use]
    pub fn html(&self) -> String {
        html::page(self)
    }
}

/// Letters of a file's name at most.
const MOST_NAME: usize = 60;

/// A title as the name of a file: letters and digits, with dashes between words.
fn file_name(title: &str) -> String {
    let mut name = String::new();
    for word in title.split(|letter: char| !letter.is_ascii_alphanumeric()) {
        let is_too_long = name.len() + word.len() >= MOST_NAME;
        if word.is_empty() || is_too_long && !name.is_empty() {
            continue;
        }
        if !name.is_empty() {
            name.push('-');
        }
        name.extend(word.chars().take(MOST_NAME).map(|letter| letter.to_ascii_lowercase()));
    }
    if name.is_empty() { "plot".to_owned() } else { name }
}

#[cfg(test)]
mod tests;
