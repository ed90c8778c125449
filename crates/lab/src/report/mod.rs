//! Reports: texts, tables and plots, as one file of HTML that needs no network, no script and no other file.
//!
//! Everything here is pure: from what was measured to text.

mod html;
mod plot;
pub mod sections;

pub use self::plot::{Axis, Chart, Dot, HeatMap, Mark, Palette, Plot, Series, Stage, Waterfall};

/// A report.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// What it is about.
    pub title: String,
    /// What it comes to, in sentences.
    pub lead: Vec<String>,
    /// The machine, the command, the versions: names and values.
    pub facts: Vec<(String, String)>,
    /// All of it.
    pub sections: Vec<Section>,
}

/// A part of a report with a heading.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Section {
    /// Its heading.
    pub title: String,
    /// What is in it.
    pub parts: Vec<Part>,
}

/// Something in a section.
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    /// A paragraph.
    Text(String),
    /// A command, or what one printed.
    Code(String),
    /// A table.
    Table(Table),
    /// A plot.
    Plot(Plot),
}

/// A table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// Names of columns, and whether they have numbers.
    pub columns: Vec<(String, bool)>,
    /// Rows of as many cells.
    pub rows: Vec<Vec<String>>,
    /// What columns mean.
    pub note: Option<String>,
}

impl Report {
    /// It as a page.
    #[must_use]
    pub fn html(&self) -> String {
        html::page(self)
    }
}

impl Plot {
    /// It as a picture by itself, in the colours of a light or of a dark page.
    #[must_use]
    pub fn svg(&self, palette: Palette) -> String {
        plot::draw(self, palette)
    }
}
