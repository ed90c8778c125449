//! The body: a table, losses, or a text.

use netsniff_console::number::{count, things};
use netsniff_console::printable::printable;
use netsniff_console::terminal::signs::Signs;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span as Words};

use super::{bold, coloured, faint};
use crate::top::model::{Model, View};
use crate::watch::tables::columns::Column;
use crate::watch::tables::losses::{Look, lines};
use crate::watch::tables::{Subject, Table, TableRow};

/// Draws the table of the model.
pub(crate) fn table(model: &Model, frame: &mut Frame<'_>, area: Rect) {
    let (Some(table), View::Table(subject)) = (model.table(), &model.place().view) else { return };
    let widths = widths(table.columns, area.width);
    let mut head = vec![Line::styled(caption(model, subject, &table), faint())];
    head.extend(units(table.columns, &widths).map(|units| Line::styled(units, faint())));
    head.push(titles(model, &table, &widths));
    let shown = usize::from(area.height).saturating_sub(head.len());
    let mut rows = area.rows();
    for (line, area) in head.into_iter().zip(&mut rows) {
        frame.render_widget(line, area);
    }
    let chosen = table.place(model.place().selected.as_deref());
    let from = (chosen + 1).saturating_sub(shown.max(1));
    for ((at, row), area) in table.rows.iter().enumerate().skip(from).zip(rows) {
        let style = match at == chosen {
            true => Style::new().add_modifier(Modifier::REVERSED),
            false => Style::new(),
        };
        frame.render_widget(
            Line::styled(line(table.columns, &widths, row, model.signs), style),
            area,
        );
    }
}

/// How many rows there are, under which condition, and what is missing.
fn caption(model: &Model, subject: &Subject, table: &Table) -> String {
    let data = model.data();
    let (what, is_beyond) = match subject {
        Subject::Hosts => ("host", data.hosts.is_beyond()),
        Subject::Services => ("service", data.services.is_beyond()),
        Subject::Connections | Subject::ConnectionsOf(_) => {
            ("connection", data.connections.given_up() > 0)
        }
        Subject::Processes => ("process", data.connections.given_up() > 0),
        Subject::Rows(_) => ("row", data.kept.given_up() > 0),
    };
    let number = table.rows.len() as u64;
    let mut text = match subject {
        Subject::Processes => processes(model, number),
        _ => things(number, what),
    };
    if let Subject::Rows(uid) = subject {
        text = format!("{text} of {uid}");
        if let Some(row) = data.connections.row(uid) {
            let cell = |name: &str| row.shown().find(|(it, _)| *it == name).map(|(_, value)| value);
            let ends = ["id.orig_h", "id.orig_p", "id.resp_h", "id.resp_p"].map(cell);
            let [orig, from, resp, to] = ends.map(Option::unwrap_or_default);
            text = format!("{text}: {orig} port {from} to {resp} port {to}");
        }
    }
    let process = match subject {
        Subject::ConnectionsOf(Some(process)) => format!(" of {process}"),
        Subject::ConnectionsOf(None) => " of no known process".to_owned(),
        _ => String::new(),
    };
    text = match &model.place().filter {
        Some(filter) => {
            format!("{text} of {}{process}, where {}", count(table.all as u64), filter.text)
        }
        None => text + &process,
    };
    if is_beyond {
        text = match subject {
            Subject::Rows(_) => {
                format!("{text}; {} are kept no more", things(data.kept.given_up(), "earlier row"))
            }
            _ => format!("{text}; more than are kept"),
        };
    }
    printable(&text).into_owned()
}

/// How many processes there are, and what is not known of them. Connections without one have a row as well.
fn processes(model: &Model, rows: u64) -> String {
    let known = model.table().map_or(rows, |table| {
        table.rows.iter().filter(|row| row.cells.first().is_some_and(|it| !it.is_unknown())).count()
            as u64
    });
    let found = match known {
        1 => "1 process".to_owned(),
        known => format!("{} processes", count(known)),
    };
    match model.data().connections.hides_processes() {
        None => "processes are known of live traffic of this host alone".to_owned(),
        Some(true) => format!("{found}; processes of other users are not known"),
        Some(false) => found,
    }
}

/// The widths of the columns that fit; the first one gets what is left.
fn widths(columns: &[Column], width: u16) -> Vec<usize> {
    let mut left = usize::from(width);
    let mut widths = Vec::new();
    for column in columns {
        let wanted = usize::from(column.width) + usize::from(!widths.is_empty());
        if wanted > left {
            break;
        }
        left -= wanted;
        widths.push(usize::from(column.width));
    }
    // What is left is shared by the text columns at the begin: the ends of a connection are two.
    let texts = columns.iter().take_while(|column| !column.is_number && column.width >= 15).count();
    let texts = texts.min(widths.len()).max(1);
    for (at, width) in widths.iter_mut().take(texts).enumerate() {
        *width += left / texts + usize::from(at < left % texts);
    }
    widths
}

/// What the figures are of, over the titles of columns; `None` where no title leaves that open.
fn units(columns: &[Column], widths: &[usize]) -> Option<String> {
    let shown: Vec<_> = columns.iter().map(|column| column.unit).zip(widths).collect();
    let mut line = String::new();
    for same in shown.chunk_by(|(one, _), (next, _)| one == next && one.is_some()) {
        let width = same.iter().map(|(_, width)| **width + 1).sum::<usize>() - 1;
        let texts = same.first().and_then(|(unit, _)| *unit).map_or(&[][..], |unit| unit.0);
        let text = texts.iter().find(|text| text.len() <= width).unwrap_or(&"");
        line.push_str(&padded(text, width, true));
        line.push(' ');
    }
    let is_empty = line.trim().is_empty();
    (!is_empty).then_some(line)
}

fn titles(model: &Model, table: &Table, widths: &[usize]) -> Line<'static> {
    let sort = model.place().sort;
    let mut parts = Vec::new();
    for (at, (column, width)) in table.columns.iter().zip(widths).enumerate() {
        let style = if at == sort.column { bold().fg(Color::Cyan) } else { bold() };
        let sign = match (at == sort.column, sort.is_ascending) {
            (false, _) => "",
            (true, true) => "▲",
            (true, false) => "▼",
        };
        let title = format!("{sign}{}", column.title);
        parts.push(Words::styled(padded(&title, *width, column.is_number), style));
        parts.push(Words::raw(" "));
    }
    Line::from(parts)
}

fn line(columns: &[Column], widths: &[usize], row: &TableRow, signs: Signs) -> String {
    let cells = columns.iter().zip(widths).zip(&row.cells);
    let cells =
        cells.map(|((column, width), cell)| padded(&cell.shown(signs), *width, column.is_number));
    cells.collect::<Vec<_>>().join(" ")
}

/// Text of a width: cut, or filled up.
fn padded(text: &str, width: usize, is_number: bool) -> String {
    let cells = ratatui::text::Span::raw(text).width();
    if cells <= width {
        let blank = " ".repeat(width - cells);
        return if is_number { format!("{blank}{text}") } else { format!("{text}{blank}") };
    }
    let mut cut = String::new();
    let mut used = 0;
    for sign in text.chars() {
        let sign = sign.to_string();
        let cells = ratatui::text::Span::raw(&sign).width();
        if used + cells + 1 > width {
            break;
        }
        used += cells;
        cut.push_str(&sign);
    }
    format!("{cut}…{}", " ".repeat(width.saturating_sub(used + 1)))
}

/// Draws where packets were lost.
pub(crate) fn losses(model: &Model, frame: &mut Frame<'_>, area: Rect) {
    let lines = lines(model.data());
    for ((look, text), area) in lines.into_iter().skip(model.place().scroll).zip(area.rows()) {
        let style = match look {
            Look::Plain => Style::new(),
            Look::Heading => bold(),
            Look::Good => coloured(Color::Green),
            Look::Warning => coloured(Color::Red),
            Look::Faint => faint(),
        };
        frame.render_widget(Line::styled(printable(&text).into_owned(), style), area);
    }
}

/// Draws a text under its title.
pub(crate) fn text(
    model: &Model,
    title: &str,
    lines: &[String],
    frame: &mut Frame<'_>,
    area: Rect,
) {
    let scroll = model.place().scroll;
    let title = format!("{title}  ({} of {} lines)", scroll.min(lines.len()) + 1, lines.len());
    let mut rows = area.rows();
    let Some(first) = rows.next() else { return };
    frame.render_widget(Line::styled(printable(&title).into_owned(), bold()), first);
    for (line, area) in lines.iter().skip(scroll).zip(rows) {
        frame.render_widget(Line::raw(printable(line).into_owned()), area);
    }
}
