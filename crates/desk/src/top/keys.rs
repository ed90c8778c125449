//! What keys do.

use super::model::{Asks, Command, Key, Model, Origin, Place, Prompt, VIEWS, View};
use crate::watch::data::row::LogRow;
use crate::watch::data::subjects::Span;
use crate::watch::tables::Subject;
use crate::watch::tables::columns::{UNKNOWN_PROCESS, first_sort};
use crate::watch::tables::filter::Filter;

/// The spans that `w` goes through.
const SPANS: [Span; 4] = [Span::Last(1), Span::Last(10), Span::Last(60), Span::Whole];

/// A key was pressed; returns what is to be done outside.
pub(crate) fn press(model: &mut Model, key: Key) -> Option<Command> {
    if model.prompt.is_some() {
        return typed(model, key);
    }
    if std::mem::take(&mut model.has_help) {
        return None;
    }
    match key {
        Key::Char('q') => return Some(Command::Quit),
        Key::Char('?' | 'h') => model.has_help = true,
        Key::Char(' ') => model.freeze(),
        Key::Char('w') => model.span = following(&SPANS, &model.span),
        Key::Char(digit @ '1'..='5') => {
            let at = digit as usize - '1' as usize;
            VIEWS.get(at).into_iter().for_each(|(_, view)| model.show(view.clone()));
        }
        Key::Tab => next_view(model, 1),
        Key::BackTab => next_view(model, VIEWS.len() - 1),
        Key::Escape | Key::Backspace => model.leave(),
        Key::Enter => enter(model),
        Key::Char('s') | Key::Right => sort(model, 1),
        Key::Char('S') | Key::Left => sort(model, -1),
        Key::Char('r') => {
            let sort = &mut model.place_mut().sort;
            sort.is_ascending = !sort.is_ascending;
        }
        Key::Char('/') => ask_condition(model),
        Key::Char('e' | 'p') => return packets(model, key == Key::Char('e')),
        Key::Char('R') => return record(model),
        _ => scroll(model, key),
    }
    None
}

/// What follows `one` in a list, in a circle.
fn following<T: Clone + PartialEq>(all: &[T], one: &T) -> T {
    let at = all.iter().position(|it| it == one).map_or(0, |at| (at + 1) % all.len());
    all.get(at).unwrap_or(one).clone()
}

fn next_view(model: &mut Model, step: usize) {
    let at = VIEWS.iter().position(|(_, view)| *view == model.place().view).unwrap_or(0);
    let (_, view) = &VIEWS[(at + step) % VIEWS.len()];
    model.show(view.clone());
}

/// Goes to the next column, or the one before.
fn sort(model: &mut Model, step: isize) {
    let Some(columns) = model.table().map(|table| table.columns.len()) else { return };
    let sort = &mut model.place_mut().sort;
    sort.column = sort.column.saturating_add_signed(step).min(columns.saturating_sub(1));
}

/// Moves the chosen row, or a text.
fn scroll(model: &mut Model, key: Key) {
    let page = isize::try_from(model.page.max(1)).unwrap_or(1);
    let step = match key {
        Key::Up | Key::Char('k') => -1,
        Key::Down | Key::Char('j') => 1,
        Key::PageUp => -page,
        Key::PageDown => page,
        Key::Home | Key::Char('g') => isize::MIN,
        Key::End | Key::Char('G') => isize::MAX,
        _ => return,
    };
    if let Some(table) = model.table() {
        let place = table.place(model.place().selected.as_deref()).saturating_add_signed(step);
        let row = table.rows.get(place.min(table.rows.len().saturating_sub(1)));
        model.place_mut().selected = row.map(|row| row.name.clone());
        return;
    }
    let lines = match &model.place().view {
        View::Text(_, lines) => lines.len(),
        _ => crate::watch::tables::losses::lines(model.data()).len(),
    };
    let scroll = &mut model.place_mut().scroll;
    *scroll = scroll.saturating_add_signed(step).min(lines.saturating_sub(1));
}

/// The name of the chosen row, which is the first one at first.
fn chosen(model: &Model) -> Option<Box<str>> {
    let table = model.table()?;
    let at = table.place(model.place().selected.as_deref());
    table.rows.get(at).map(|row| row.name.clone())
}

/// Goes from a row to what is behind it: host, service and process to their connections, those to their rows, a row to all of it.
fn enter(model: &mut Model) {
    let View::Table(subject) = model.place().view.clone() else { return };
    let Some(name) = chosen(model) else { return };
    model.place_mut().selected = Some(name.clone());
    match subject {
        Subject::Hosts => {
            let quoted = name.replace('\'', "''");
            connections(model, &format!("id.orig_h = '{quoted}' OR id.resp_h = '{quoted}'"));
        }
        Subject::Services if *name == *crate::watch::data::UNKNOWN_SERVICE => {
            connections(model, "service IS NULL");
        }
        Subject::Services => {
            connections(model, &format!("service = '{}'", name.replace('\'', "''")));
        }
        Subject::Processes => {
            let process = (*name != *UNKNOWN_PROCESS).then_some(name);
            let place = Place::of(View::Table(Subject::ConnectionsOf(process)));
            // The sums of the process are those of the connections that meet its condition.
            let filter = model.place().filter.clone();
            model.enter(Place { filter, ..place });
        }
        Subject::Connections | Subject::ConnectionsOf(_) => {
            model.enter(Place::of(View::Table(Subject::Rows(name))));
        }
        Subject::Rows(uid) => {
            let rows = model.data().kept.of(&uid);
            if let Some(row) = name.parse::<usize>().ok().and_then(|at| rows.get(at)) {
                let title = format!("{} of {uid}", row.log().path);
                model.enter(Place::of(View::Text(title, whole(row))));
            }
        }
    }
}

/// All columns of a row, one a line.
fn whole(row: &LogRow) -> Vec<String> {
    let width = row.shown().map(|(name, _)| name.len()).max().unwrap_or(0);
    row.shown().map(|(name, value)| format!("{name:width$}  {value}")).collect()
}

fn connections(model: &mut Model, condition: &str) {
    match Filter::parse(condition, &Subject::Connections) {
        Ok(filter) => {
            let place = Place::of(View::Table(Subject::Connections));
            model.enter(Place { filter: Some(filter), ..place });
        }
        Err(wrong) => model.message = Some(wrong),
    }
}

fn ask_condition(model: &mut Model) {
    let place = model.place();
    if matches!(&place.view, View::Table(subject) if !matches!(subject, Subject::Rows(_))) {
        let text = place.filter.as_ref().map(|filter| filter.text.clone()).unwrap_or_default();
        model.prompt = Some(Prompt { asks: Asks::Condition, text, wrong: None });
    } else {
        model.message = Some("conditions are for hosts, services and connections".to_owned());
    }
}

/// The packets of the chosen connection: to be shown, or to go to a file.
fn packets(model: &mut Model, to_file: bool) -> Option<Command> {
    let uid = match &model.place().view {
        View::Table(Subject::Connections | Subject::ConnectionsOf(_)) => chosen(model),
        View::Table(Subject::Rows(uid)) => Some(uid.clone()),
        _ => None,
    };
    let Some(uid) = uid else {
        model.message = Some("choose a connection first".to_owned());
        return None;
    };
    if let Some(why) = model.origin.keeps_packets_back() {
        model.message = Some(why.to_owned());
        return None;
    }
    if !to_file {
        model.message = Some(format!("reading the packets of {uid}"));
        return Some(Command::Packets { uid });
    }
    let text = format!("{uid}.pcapng");
    model.prompt = Some(Prompt { asks: Asks::Extract(uid), text, wrong: None });
    None
}

fn record(model: &mut Model) -> Option<Command> {
    if model.origin != Origin::Interfaces {
        model.message = Some("only live traffic can be recorded".to_owned());
        return None;
    }
    if model.recording.is_some() {
        return Some(Command::StopRecording);
    }
    let text = "top.pcapng".to_owned();
    model.prompt = Some(Prompt { asks: Asks::Record, text, wrong: None });
    None
}

/// A key while a line is typed.
fn typed(model: &mut Model, key: Key) -> Option<Command> {
    let prompt = model.prompt.as_mut()?;
    prompt.wrong = None;
    match key {
        Key::Char(sign) if prompt.text.len() < 4096 => prompt.text.push(sign),
        Key::Backspace => {
            prompt.text.pop();
        }
        Key::Escape => model.prompt = None,
        Key::Enter => return entered(model),
        _ => {}
    }
    None
}

/// A line was typed.
fn entered(model: &mut Model) -> Option<Command> {
    let Prompt { asks, text, .. } = model.prompt.take()?;
    match asks {
        Asks::Condition => {
            if let Err(wrong) = set_condition(model, &text) {
                let asks = Asks::Condition;
                model.prompt = Some(Prompt { asks, text, wrong: Some(wrong) });
            }
            None
        }
        _ if text.is_empty() => None,
        Asks::Extract(uid) => {
            model.message = Some(format!("extracting to {text}"));
            Some(Command::Extract { uid, file: text })
        }
        Asks::Record => {
            model.recording = Some(text.clone());
            Some(Command::Record { file: text })
        }
    }
}

/// Lists only rows that meet a condition; all of them where it is empty.
///
/// # Errors
///
/// What cannot be understood.
pub(crate) fn set_condition(model: &mut Model, text: &str) -> Result<(), String> {
    let View::Table(subject) = &model.place().view else {
        return Err("this view has no rows".to_owned());
    };
    let is_empty = text.trim().is_empty();
    let filter = (!is_empty).then(|| Filter::parse(text, subject)).transpose()?;
    model.place_mut().filter = filter;
    Ok(())
}

/// Orders by the column with this title; back to the first order where none has it.
pub(crate) fn sort_by(model: &mut Model, title: &str) -> Result<(), String> {
    let View::Table(subject) = &model.place().view else {
        return Err("this view has no columns".to_owned());
    };
    let first = first_sort(subject);
    let Some(table) = model.table() else { return Ok(()) };
    let titles: Vec<_> = table.columns.iter().map(|column| column.title).collect();
    let place = titles.iter().position(|it| it.eq_ignore_ascii_case(title));
    model.place_mut().sort.column = place.unwrap_or(first);
    place.map(|_| ()).ok_or_else(|| {
        format!("there is no column {title:?}; there are {}", titles.join(", ").to_lowercase())
    })
}
