//! The screen: what the model has, drawn. Drawing changes nothing.
//!
//! | module | concern |
//! |---|---|
//! | `head` | what is read, its rates, their trend, and the names of the views |
//! | `body` | tables and texts |
//! | `help` | what the keys do |

mod body;
mod head;
mod help;

use netsniff_console::printable::printable;
use netsniff_console::terminal::signs::Signs;
use ratatui::Frame;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;

use super::model::{Asks, Model, View};

/// Lines above and below the body.
const HEAD: u16 = 4;
const FOOT: u16 = 1;

/// Lines above the rows of a table.
const TITLES: u16 = 3;

/// Rows of a table that a screen of this height shows.
pub(crate) const fn page(height: u16) -> usize {
    height.saturating_sub(HEAD + FOOT + TITLES) as usize
}

/// Draws all of it.
pub(crate) fn draw(model: &Model, frame: &mut Frame<'_>) {
    let parts = [Constraint::Length(HEAD), Constraint::Min(1), Constraint::Length(FOOT)];
    let [top, middle, bottom] = Layout::vertical(parts).areas(frame.area());
    head::draw(model, frame, top);
    if model.has_help {
        help::draw(model.signs, frame, middle);
    } else {
        match &model.place().view {
            View::Table(_) => body::table(model, frame, middle),
            View::Losses => body::losses(model, frame, middle),
            View::Text(title, lines) => body::text(model, title, lines, frame, middle),
        }
    }
    foot(model, frame, bottom);
    restrict(frame.buffer_mut(), model.signs);
}

/// Leaves only signs that the screen has; each stands where the one was that it stands for.
fn restrict(buffer: &mut Buffer, signs: Signs) {
    if signs == Signs::Unicode {
        return;
    }
    for cell in &mut buffer.content {
        // What is put upon a letter is left out.
        let sign = cell.symbol().chars().next().unwrap_or(' ');
        cell.set_char(signs.shown(sign));
    }
}

/// What is typed, what is to be said, or the keys.
fn foot(model: &Model, frame: &mut Frame<'_>, area: Rect) {
    let (text, style) = if let Some(prompt) = &model.prompt {
        let asks = match prompt.asks {
            Asks::Condition => "rows where",
            Asks::Extract(_) => "packets to the file",
            Asks::Record => "record to the file",
        };
        // What is wrong stays until the next key.
        let typed = format!("{asks}: {}_", prompt.text);
        (prompt.wrong.clone().unwrap_or(typed), bold())
    } else if let Some(message) = &model.message {
        (message.clone(), bold())
    } else {
        let keys =
            "?help  Enter  Esc back  s sort  r reverse  / where  w span  space freeze  q quit";
        (keys.to_owned(), faint())
    };
    // Lines of an error are one here.
    let text = text.split('\n').map(str::trim).collect::<Vec<_>>().join(" ");
    frame.render_widget(Line::styled(printable(&text).into_owned(), style), area);
}

const fn bold() -> Style {
    Style::new().add_modifier(Modifier::BOLD)
}

const fn faint() -> Style {
    Style::new().add_modifier(Modifier::DIM)
}

const fn coloured(colour: Color) -> Style {
    Style::new().fg(colour)
}

/// The screen as lines of text, without blanks at their ends.
pub(crate) fn as_text(model: &Model, columns: u16, rows: u16) -> String {
    let Ok(mut terminal) = ratatui::Terminal::new(TestBackend::new(columns, rows));
    let Ok(_) = terminal.draw(|frame| draw(model, frame));
    let buffer = terminal.backend().buffer();
    let mut text = String::new();
    for row in buffer.content().chunks(usize::from(columns.max(1))) {
        let line: String = row.iter().map(ratatui::buffer::Cell::symbol).collect();
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}
