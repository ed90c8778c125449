//! What a page is made of, and the page.
//!
//! | module | concern |
//! |---|---|
//! | `table`, `matrix`, `plot` | what sections are made of |
//! | `axes` | the frame of all pictures |
//! | `sum` | sums that know what they do not know |
//! | `templates` | all of it as HTML |

pub(crate) mod axes;
pub(crate) mod matrix;
pub(crate) mod plot;
pub(crate) mod sum;
pub(crate) mod table;

use anyhow::Context as _;
use base64ct::{Base64, Encoding as _};
use minijinja::{AutoEscape, Environment, Output, State, Value, context, escape_formatter};
use netsniff_console::printable::printable;
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use self::matrix::Matrix;
use self::table::{Cell, Table};

/// A page.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Page {
    /// What it is about.
    pub title: String,
    /// Sources, span of time, and the like: a name and a text each.
    pub facts: Vec<(String, String)>,
    /// What to think of it, first of all.
    pub verdicts: Vec<Verdict>,
    /// The sections in their order.
    pub sections: Vec<Section>,
    /// The program that made it.
    pub made_by: String,
}

/// Whether the logs can be believed.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Verdict {
    /// Of what, where there is more than one.
    pub of: Option<String>,
    /// `good`, `warn`, `bad` or `unknown`: the colour and the sign.
    pub look: &'static str,
    /// It in a few words.
    pub title: String,
    /// Why.
    pub reasons: Vec<Reason>,
    /// The figures of everything.
    pub tiles: Vec<Tile>,
}

/// What speaks for a verdict or against it.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Reason {
    /// `good`, `warn`, `bad` or `unknown`.
    pub look: &'static str,
    /// It in a sentence.
    pub text: String,
}

/// A figure that is large on the page.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Tile {
    /// What it is.
    pub name: String,
    /// The figure.
    pub cell: Cell,
}

/// A section.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Section {
    /// By which it is linked to.
    pub id: &'static str,
    /// Its title.
    pub title: String,
    /// What comes first, a paragraph each.
    pub lead: Vec<String>,
    /// The rest.
    pub parts: Vec<Part>,
}

/// A part of a section.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "kind", content = "it", rename_all = "snake_case")]
pub(crate) enum Part {
    /// A table.
    Table(Table),
    /// A picture, as SVG of this program's making.
    Picture(Picture),
    /// Who talks to whom.
    Matrix(Matrix),
    /// Shares of a whole.
    Shares(Shares),
    /// A paragraph.
    Text(String),
}

/// A picture with the table of what it shows.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Picture {
    /// The picture.
    pub svg: String,
    /// What one sees.
    pub caption: String,
    /// Names of the layers, with the numbers of their colours.
    pub key: Vec<(usize, String)>,
    /// The values.
    pub table: Table,
}

/// Shares of a whole, as one bar.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Shares {
    /// What the whole is.
    pub title: String,
    /// Name, look, number and meaning of each.
    pub of: Vec<Share>,
}

/// A share.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Share {
    /// The word of the logs.
    pub name: String,
    /// Its colour.
    pub look: &'static str,
    /// How many.
    pub count: u64,
    /// The same for people.
    pub text: String,
    /// Where it begins in the bar and how long it is, of 1000.
    pub place: (f64, f64),
    /// What the word means.
    pub doc: String,
}

impl Shares {
    /// Shares of those that are there.
    pub(crate) fn new(
        title: impl Into<String>,
        of: Vec<(String, &'static str, u64, String)>,
    ) -> Self {
        let all: u64 = of.iter().map(|(_, _, count, _)| count).sum();
        let mut begin = 0.0;
        let share = |(name, look, count, doc): (String, &'static str, u64, String)| {
            let long = if all == 0 { 0.0 } else { count as f64 * 1000.0 / all as f64 };
            let place = (begin, long);
            begin += long;
            let percent = netsniff_console::number::percent(count, all);
            let text = format!("{} ({percent})", netsniff_console::number::exact(count.into()));
            Share { name, look, count, text, place, doc }
        };
        Self { title: title.into(), of: of.into_iter().map(share).collect() }
    }
}

const PAGE: &str = include_str!("templates/page.html");
const PARTS: &str = include_str!("templates/parts.html");
/// The style of all pages.
pub(crate) const STYLE: &str = include_str!("templates/style.css");
/// What sorts and searches tables.
pub(crate) const SCRIPT: &str = include_str!("templates/script.js");

impl Page {
    /// The page as one file that asks for nothing.
    ///
    /// # Errors
    ///
    /// Where a template is wrong, which tests exclude.
    pub(crate) fn html(&self) -> anyhow::Result<String> {
        let mut environment = environment()?;
        environment.add_template("page.html", PAGE).context("the page's template")?;
        let template = environment.get_template("page.html").context("the page's template")?;
        template
            .render(context! {
                page => self,
                style => STYLE,
                script => SCRIPT,
                style_hash => hash(STYLE),
                script_hash => hash(SCRIPT),
            })
            .context("cannot make the page")
    }
}

/// What templates of all pages have in common: all text is escaped, and `parts.html` shows parts of a section.
///
/// # Errors
///
/// Where a template is wrong, which tests exclude.
pub(crate) fn environment() -> anyhow::Result<Environment<'static>> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(minijinja::UndefinedBehavior::Strict);
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    environment.set_formatter(put);
    environment.set_trim_blocks(true);
    environment.set_lstrip_blocks(true);
    environment.add_template("parts.html", PARTS).context("the parts' template")?;
    Ok(environment)
}

/// Puts a value into the page: signs that would turn or hide others show as escapes, and marks of HTML are text.
fn put(out: &mut Output<'_>, state: &State<'_, '_>, value: &Value) -> Result<(), minijinja::Error> {
    match value.as_str() {
        Some(text) if !value.is_safe() => {
            escape_formatter(out, state, &Value::from(printable(text).into_owned()))
        }
        _ => escape_formatter(out, state, value),
    }
}

/// A hash as a content security policy has it (CSP 3, 2.3.1).
fn hash(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    format!("sha256-{}", Base64::encode_string(&digest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_text_wherever_it_stands() {
        let evil = "</p><script>\"a\" & 'b'</script>\u{202e}".to_owned();
        let reason = Reason { look: "bad", text: evil.clone() };
        let verdict = Verdict {
            of: Some(evil.clone()),
            look: "bad",
            title: evil.clone(),
            reasons: vec![reason],
            tiles: vec![Tile { name: evil.clone(), cell: Cell::text(&evil) }],
        };
        let shares = Shares::new(&evil, vec![(evil.clone(), "good", 1, evil.clone())]);
        let section = Section {
            id: "x",
            title: evil.clone(),
            lead: vec![evil.clone()],
            parts: vec![Part::Shares(shares), Part::Text(evil.clone())],
        };
        let page = Page {
            title: evil.clone(),
            facts: vec![(evil.clone(), evil.clone())],
            verdicts: vec![verdict],
            sections: vec![section],
            made_by: evil.clone(),
        };
        let html = page.html().unwrap();
        let shown = "&lt;&#x2f;p&gt;&lt;script&gt;&quot;a&quot; &amp; &#x27;b&#x27;&lt;&#x2f;script&gt;\\xe2\\x80\\xae";
        assert_eq!(html.matches(shown).count(), 18, "{html}");
        assert_eq!((html.matches("<script").count(), html.matches("\u{202e}").count()), (1, 0));
    }

    #[test]
    fn the_policy_allows_what_is_in_the_page() {
        let html = Page::default().html().unwrap().replace("&#x2f;", "/");
        for name in ["style", "script"] {
            let content = html.split(&format!("<{name}>")).nth(1).unwrap();
            let content = content.split(&format!("</{name}>")).next().unwrap();
            // What is between the tags, to the last blank.
            let allowed = format!("{name}-src '{}'", hash(content));
            assert!(content.len() > 100 && html.contains(&allowed), "{allowed}");
        }
    }

    #[test]
    fn hashes_are_in_base64() {
        // printf '' | openssl dgst -sha256 -binary | base64
        assert_eq!(hash(""), "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=");
        assert_eq!(hash("a"), "sha256-ypeBEsobvcr6wjGzmiPcTaeG7/gUfE5yuYB3ha/uSLs=");
    }
}
