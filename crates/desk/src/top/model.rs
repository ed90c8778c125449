//! The state of the view, and what keys and rows make of it. Nothing here reads, draws or waits.

use netsniff_console::terminal::signs::Signs;

use crate::watch::data::Data;
use crate::watch::data::sockets::SocketTable;
use crate::watch::data::subjects::Span;
use crate::watch::source::{Ending, Told};
use crate::watch::tables::columns::first_sort;
use crate::watch::tables::filter::Filter;
use crate::watch::tables::{Sort, Subject, Table};

/// Where the rows come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Captures, which `netsniff extract` can read again, but for this reason.
    Files(Option<&'static str>),
    /// Interfaces.
    Interfaces,
    /// Logs of another run.
    Logs,
}

impl Origin {
    /// Why the packets of a connection cannot be had.
    pub(crate) const fn keeps_packets_back(&self) -> Option<&'static str> {
        match self {
            Self::Files(why) => *why,
            Self::Interfaces | Self::Logs => {
                Some("packets are only in capture files: record with R, then netsniff top FILE")
            }
        }
    }
}

/// Everything that a screen shows.
#[derive(Debug)]
pub(crate) struct Model {
    pub(crate) title: String,
    pub(crate) origin: Origin,
    /// The signs that a screen has.
    pub(crate) signs: Signs,
    live: Data,
    /// What was known when the view was frozen.
    frozen: Option<Box<Data>>,
    pub(crate) span: Span,
    /// The views, the shown one last.
    places: Vec<Place>,
    pub(crate) has_help: bool,
    pub(crate) prompt: Option<Prompt>,
    /// What is to be said, until the next key.
    pub(crate) message: Option<String>,
    /// How the rows ended, once they have.
    pub(crate) ended: Option<Ending>,
    /// The file that packets are recorded to now.
    pub(crate) recording: Option<String>,
    /// Lines of a page, on the last draw.
    pub(crate) page: usize,
}

/// A view.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) view: View,
    pub(crate) sort: Sort,
    pub(crate) filter: Option<Filter>,
    /// The name of the chosen row.
    pub(crate) selected: Option<Box<str>>,
    /// The first line that is shown of a text.
    pub(crate) scroll: usize,
}

/// What a view shows.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum View {
    /// A table.
    Table(Subject),
    /// Where packets and bytes were lost.
    Losses,
    /// Lines of text under a title.
    Text(String, Vec<String>),
}

/// The main views, in the order of their numbers.
pub(crate) const VIEWS: [(&str, View); 5] = [
    ("Hosts", View::Table(Subject::Hosts)),
    ("Services", View::Table(Subject::Services)),
    ("Connections", View::Table(Subject::Connections)),
    ("Losses", View::Losses),
    ("Processes", View::Table(Subject::Processes)),
];

/// A line that is being typed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Prompt {
    pub(crate) asks: Asks,
    pub(crate) text: String,
    /// What is wrong with it.
    pub(crate) wrong: Option<String>,
}

/// What a typed line is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Asks {
    /// A condition on rows.
    Condition,
    /// The file for the packets of a connection.
    Extract(Box<str>),
    /// The file for all packets from now on.
    Record,
}

/// What happened.
#[derive(Debug)]
pub(crate) enum Event {
    /// Something was told by where the rows come from, or is to be said.
    Told(Told),
    /// Who has which sockets of this host now.
    Sockets(SocketTable),
    /// Lines of text that were asked for came.
    Text(String, Vec<String>),
    /// A recording ended; what it said.
    RecordingEnded(String),
    /// A key was pressed.
    Key(Key),
    /// The size of the terminal changed, or all is to be drawn again.
    Redraw,
    /// The view is to end.
    Quit,
}

/// A key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    Char(char),
    Enter,
    Escape,
    Backspace,
    Up,
    Down,
    Left,
    Right,
    PageUp,
    PageDown,
    Home,
    End,
    Tab,
    BackTab,
}

/// What is to be done outside of the view.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Quit,
    /// Write the packets of a connection to a file.
    Extract {
        uid: Box<str>,
        file: String,
    },
    /// Show the packets of a connection.
    Packets {
        uid: Box<str>,
    },
    Record {
        file: String,
    },
    StopRecording,
}

impl Place {
    /// A view as it is at first.
    pub(crate) fn of(view: View) -> Self {
        let column = match &view {
            View::Table(subject) => first_sort(subject),
            _ => 0,
        };
        let is_ascending = matches!(&view, View::Table(Subject::Rows(_)));
        let sort = Sort { column, is_ascending };
        Self { view, sort, filter: None, selected: None, scroll: 0 }
    }
}

impl Model {
    /// Nothing known yet.
    pub(crate) fn new(title: String, origin: Origin) -> Self {
        let span = if origin == Origin::Interfaces { Span::Last(10) } else { Span::Whole };
        Self {
            title,
            origin,
            signs: Signs::Unicode,
            live: Data::default(),
            frozen: None,
            span,
            places: vec![Place::of(View::Table(Subject::Hosts))],
            has_help: false,
            prompt: None,
            message: None,
            ended: None,
            recording: None,
            page: 10,
        }
    }

    /// What is shown: all that is known, or what was when the view was frozen.
    pub(crate) fn data(&self) -> &Data {
        self.frozen.as_deref().unwrap_or(&self.live)
    }

    pub(crate) const fn is_frozen(&self) -> bool {
        self.frozen.is_some()
    }

    /// The view that is shown.
    pub(crate) fn place(&self) -> &Place {
        // There always is one: the last one is never taken.
        &self.places[self.places.len() - 1]
    }

    pub(crate) fn place_mut(&mut self) -> &mut Place {
        let last = self.places.len() - 1;
        &mut self.places[last]
    }

    /// The table that is shown, where one is.
    pub(crate) fn table(&self) -> Option<Table> {
        let place = self.place();
        let View::Table(subject) = &place.view else { return None };
        Some(Table::of(self.data(), subject, self.span, place.sort, place.filter.as_ref()))
    }

    /// Shows another view, from which one can go back.
    pub(crate) fn enter(&mut self, place: Place) {
        self.places.push(place);
    }

    /// Goes back to the view before.
    pub(crate) fn leave(&mut self) {
        if self.places.len() > 1 {
            self.places.pop();
        }
    }

    /// Shows one of the main views, with nothing behind it.
    pub(crate) fn show(&mut self, view: View) {
        if self.places.len() > 1 || self.place().view != view {
            self.places = vec![Place::of(view)];
        }
    }

    /// Keeps what is shown as it is now, or goes on.
    pub(crate) fn freeze(&mut self) {
        self.frozen = match self.frozen {
            Some(_) => None,
            None => Some(Box::new(self.live.clone())),
        };
    }

    fn hear(&mut self, told: Told) {
        match told {
            Told::Rows(rows) => {
                self.ended = None;
                rows.into_iter().for_each(|row| self.live.take(row));
            }
            Told::Anew => {
                (self.live, self.ended) = (Data::default(), None);
                self.message = Some("the logs are written anew".to_owned());
            }
            Told::Ended(how) => self.ended = Some(how),
            Told::Said(text) => self.message = Some(text),
        }
    }

    /// What happened changes what is shown; returns what is to be done.
    pub(crate) fn update(&mut self, event: Event) -> Option<Command> {
        match event {
            Event::Told(told) => self.hear(told),
            Event::Sockets(table) => self.live.connections.take_sockets(&table),
            Event::Text(title, lines) => {
                self.message = None;
                self.enter(Place::of(View::Text(title, lines)));
            }
            Event::RecordingEnded(text) => {
                self.recording = None;
                self.message = Some(text);
            }
            Event::Redraw => {}
            Event::Quit => return Some(Command::Quit),
            Event::Key(key) => {
                self.message = None;
                return super::keys::press(self, key);
            }
        }
        None
    }
}
