//! Laying out text: headings, columns, bars, colours.

use std::io::IsTerminal;

use netsniff_console::printable::printable;
use netsniff_console::terminal::signs::Signs;

/// Columns of the page.
pub(super) const WIDTH: usize = 80;

/// What the place where the text goes can show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    /// Whether to colour; escape sequences would spoil a file.
    pub colour: bool,
    /// Whether block characters and arrows can be shown, or ASCII alone.
    pub signs: Signs,
}

impl Style {
    /// For `stream`, going by the environment: colours on a terminal unless `NO_COLOR` is set or
    /// the terminal is dumb, and the signs that are shown there.
    #[must_use]
    pub fn of(stream: &impl IsTerminal) -> Self {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let dumb = variable("TERM").is_some_and(|term| term == "dumb");
        Self {
            colour: stream.is_terminal() && !dumb && variable("NO_COLOR").is_none(),
            signs: Signs::of(stream),
        }
    }
}

/// How a piece of text looks on a terminal.
#[derive(Clone, Copy)]
pub(super) enum Look {
    Heading,
    Bar,
    Good,
    Warning,
    Faint,
}

impl Look {
    /// The parameters of the escape sequence (ECMA-48, SGR).
    const fn code(self) -> &'static str {
        match self {
            Self::Heading => "1",
            Self::Bar => "36",
            Self::Good => "32",
            Self::Warning => "33",
            Self::Faint => "2",
        }
    }
}

/// A page that is written from top to bottom.
pub(super) struct Page {
    text: String,
    style: Style,
}

impl Page {
    pub(super) const fn new(style: Style) -> Self {
        Self { text: String::new(), style }
    }

    pub(super) fn into_text(self) -> String {
        self.text
    }

    /// Begins a section; an empty line sets it off.
    pub(super) fn heading(&mut self, title: &str) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        let title = self.look(Look::Heading, title);
        self.line(&title);
    }

    /// Adds one line without blanks at its end.
    pub(super) fn line(&mut self, line: &str) {
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }

    /// Adds words in as many lines as they need, all indented; a word that is wider than the page
    /// is cut into pieces.
    pub(super) fn wrapped<'a>(&mut self, indent: usize, words: impl Iterator<Item = &'a str>) {
        let room = WIDTH - indent;
        let mut line = String::new();
        for word in words {
            if !line.is_empty() && width(&line) + 1 + width(word) > room {
                self.indented(indent, &line);
                line.clear();
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
            while width(&line) > room {
                let (piece, rest) = split(&line, room);
                self.indented(indent, piece);
                line = rest.to_owned();
            }
        }
        if !line.is_empty() {
            self.indented(indent, &line);
        }
    }

    fn indented(&mut self, indent: usize, line: &str) {
        let line = format!("{:indent$}{line}", "");
        self.line(&line);
    }

    /// `text` with the escape sequences of `look`, where colours are wanted.
    pub(super) fn look(&self, look: Look, text: &str) -> String {
        if self.style.colour && !text.is_empty() {
            format!("\x1b[{}m{text}\x1b[0m", look.code())
        } else {
            text.to_owned()
        }
    }

    /// A bar that is `part` of `whole` long, where `room` columns are the whole.
    pub(super) fn bar(&self, part: u64, whole: u64, room: usize) -> String {
        if whole == 0 || part == 0 {
            return String::new();
        }
        // In eighths of a column, which block characters can show.
        let share = (part as f64 / whole as f64).min(1.0);
        let eighths = (share * room as f64 * 8.0).round() as usize;
        let bar = if self.has_unicode() {
            let rest = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"][eighths % 8];
            format!("{}{rest}", "█".repeat(eighths / 8))
        } else {
            "#".repeat((eighths + 4) / 8)
        };
        self.look(Look::Bar, &bar)
    }

    const fn has_unicode(&self) -> bool {
        matches!(self.style.signs, Signs::Unicode)
    }

    /// An arrow from originator to responder.
    pub(super) const fn arrow(&self) -> &'static str {
        if self.has_unicode() { "→" } else { "->" }
    }

    /// What stands between the items of a list.
    pub(super) const fn dot(&self) -> &'static str {
        if self.has_unicode() { "·" } else { "|" }
    }
}

/// Columns that `text` takes; every character counts as one.
pub(super) fn width(text: &str) -> usize {
    text.chars().count()
}

/// `text` cut after `columns` characters.
fn split(text: &str, columns: usize) -> (&str, &str) {
    let end = text.char_indices().nth(columns).map_or(text.len(), |(index, _)| index);
    text.split_at(end)
}

/// `text` without what could steer a terminal, cut to `columns` with an ellipsis.
pub(super) fn plain(text: &str, columns: usize) -> String {
    let clean = printable(text).into_owned();
    if width(&clean) <= columns {
        return clean;
    }
    let (kept, _) = split(&clean, columns.saturating_sub(3));
    format!("{kept}...")
}

/// As [`plain`], but what is cut is the start: the end of a path tells most.
pub(super) fn tail(text: &str, columns: usize) -> String {
    let clean = plain(text, usize::MAX);
    let excess = width(&clean).saturating_sub(columns);
    if excess == 0 {
        return clean;
    }
    let (_, kept) = split(&clean, excess + 3);
    format!("...{kept}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_as_long_as_their_share() {
        let unicode = Page::new(Style { colour: false, signs: Signs::Unicode });
        assert_eq!(unicode.bar(1, 2, 10), "█████");
        assert_eq!(unicode.bar(1, 16, 10), "▋");
        assert_eq!(unicode.bar(5, 2, 10), "██████████");
        assert_eq!(unicode.bar(0, 2, 10), "");
        let ascii = Page::new(Style::default());
        assert_eq!(ascii.bar(1, 2, 10), "#####");
        let colour = Page::new(Style { colour: true, signs: Signs::Ascii });
        assert_eq!(colour.bar(1, 2, 2), "\x1b[36m#\x1b[0m");
    }

    #[test]
    fn long_words_are_cut() {
        let mut page = Page::new(Style::default());
        let long = "x".repeat(200);
        page.wrapped(4, ["see", &long, "end"].into_iter());
        let text = page.into_text();
        assert!(text.lines().all(|line| line.len() <= WIDTH && line.starts_with("    ")), "{text}");
        assert_eq!(text.matches('x').count(), 200);
        assert!(text.ends_with(" end\n"));
    }

    #[test]
    fn nothing_steers_the_terminal() {
        assert_eq!(plain("a\x1b[31mb\u{9b}", 20), r"a\x1b[31mb\xc2\x9b");
        assert_eq!(plain("0123456789", 10), "0123456789");
        assert_eq!(plain("0123456789a", 10), "0123456...");
        assert_eq!(
            (tail("0123456789", 10), tail("\n0123456789", 10)),
            ("0123456789".into(), "...3456789".into())
        );
    }

    #[test]
    fn files_get_no_colours() {
        let file = std::fs::File::open(env!("CARGO_MANIFEST_DIR")).unwrap();
        assert!(!Style::of(&file).colour);
    }
}
