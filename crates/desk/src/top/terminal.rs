//! The terminal: keys come in, screens go out, and it is as it was whatever ends the view.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use netsniff_console::say;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event as Input, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::layout::Rect;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::jobs::Jobs;
use super::model::{Command, Event, Key, Model};
use super::screen;
use crate::watch::recording::Recording;

/// Screens come no faster than this.
const FRAME: Duration = Duration::from_millis(100);

/// Shows the model until somebody ends it.
///
/// # Errors
///
/// When the terminal cannot be used.
pub(crate) fn show(model: &mut Model, events: &Receiver<Event>, jobs: &Jobs) -> anyhow::Result<()> {
    listen_for_signals(jobs.events.clone())?;
    // It restores the terminal where anything panics, too.
    let mut terminal = ratatui::try_init().context("cannot use the terminal")?;
    listen_for_keys(jobs.events.clone());
    let mut recording = None;
    let result = run(model, events, jobs, &mut terminal, &mut recording);
    ratatui::restore();
    // One that goes on ends with the view. Of one that has ended the view has told.
    if let Some(recording) = recording.filter(|recording| !recording.has_ended()) {
        say(&recording.end().unwrap_or_else(|wrong| wrong));
    }
    result
}

fn run(
    model: &mut Model,
    events: &Receiver<Event>,
    jobs: &Jobs,
    terminal: &mut DefaultTerminal,
    recording: &mut Option<Recording>,
) -> anyhow::Result<()> {
    let mut drawn: Option<Instant> = None;
    let mut is_due = true;
    loop {
        let wait = drawn.map_or(Duration::ZERO, |drawn| FRAME.saturating_sub(drawn.elapsed()));
        if is_due && wait.is_zero() {
            let size = terminal.size()?;
            model.page = screen::page(size.height);
            terminal.draw(|frame| screen::draw(model, frame))?;
            (drawn, is_due) = (Some(Instant::now()), false);
        }
        let wait = if is_due { wait } else { Duration::from_secs(3600) };
        match events.recv_timeout(wait) {
            Ok(Event::Redraw) => {
                // This clears the screen. `clear` would ask for the place of the cursor, whose answer comes among the keys.
                let size = terminal.size()?;
                terminal.resize(Rect::new(0, 0, size.width, size.height))?;
            }
            Ok(event) => {
                // A key is answered at once.
                if matches!(event, Event::Key(_)) {
                    drawn = None;
                }
                let command = model.update(event);
                if matches!(command, Some(Command::Quit)) {
                    return Ok(());
                }
                command.into_iter().for_each(|command| perform(command, jobs, recording));
            }
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
        is_due = true;
    }
}

fn perform(command: Command, jobs: &Jobs, recording: &mut Option<Recording>) {
    match command {
        Command::Quit => {}
        Command::Extract { uid, file } => jobs.extract_to(&uid, &file),
        Command::Packets { uid } => jobs.show_packets(&uid),
        Command::Record { file } => *recording = jobs.record(&file),
        Command::StopRecording => recording.iter().for_each(Recording::ask_to_end),
    }
}

/// Signals that end a process end the view, so that the terminal is restored.
fn listen_for_signals(events: SyncSender<Event>) -> anyhow::Result<()> {
    let mut signals =
        Signals::new([SIGHUP, SIGINT, SIGTERM]).context("cannot listen for signals")?;
    let listen = move || {
        for _ in signals.forever() {
            if events.send(Event::Quit).is_err() {
                return;
            }
        }
    };
    thread::Builder::new().name("signals".to_owned()).spawn(listen)?;
    Ok(())
}

fn listen_for_keys(events: SyncSender<Event>) {
    thread::spawn(move || {
        loop {
            // Without a terminal there are no keys, and nobody who looks.
            let Ok(input) = event::read() else {
                let _ = events.send(Event::Quit);
                return;
            };
            let event = match input {
                Input::Resize(..) => Some(Event::Redraw),
                Input::Key(key) if key.kind != KeyEventKind::Release => {
                    named(key.code, key.modifiers)
                }
                _ => None,
            };
            if event.is_some_and(|event| events.send(event).is_err()) {
                return;
            }
        }
    });
}

/// What a key is to the view.
fn named(code: KeyCode, modifiers: KeyModifiers) -> Option<Event> {
    if modifiers.contains(KeyModifiers::CONTROL) {
        return match code {
            KeyCode::Char('c') => Some(Event::Quit),
            KeyCode::Char('l') => Some(Event::Redraw),
            _ => None,
        };
    }
    let key = match code {
        KeyCode::Char(sign) => Key::Char(sign),
        KeyCode::Enter => Key::Enter,
        KeyCode::Esc => Key::Escape,
        KeyCode::Backspace => Key::Backspace,
        KeyCode::Up => Key::Up,
        KeyCode::Down => Key::Down,
        KeyCode::Left => Key::Left,
        KeyCode::Right => Key::Right,
        KeyCode::PageUp => Key::PageUp,
        KeyCode::PageDown => Key::PageDown,
        KeyCode::Home => Key::Home,
        KeyCode::End => Key::End,
        KeyCode::Tab => Key::Tab,
        KeyCode::BackTab => Key::BackTab,
        _ => return None,
    };
    Some(Event::Key(key))
}
