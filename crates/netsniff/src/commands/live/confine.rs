//! Giving up rights between opening and the first packet; what needs one later asks a thread that kept it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use anyhow::{Context as _, bail};
use netsniff_capture::backend::{self, Backend};
use netsniff_capture::{Interface, Options};
use netsniff_console::say;
use netsniff_pipeline::live::{IfGone, Reopen};

use super::CaptureArgs;
use crate::sandbox::{Outputs, SafetyArgs, capabilities};

/// Gives up what is not needed any more, and says what is left. Threads that are started from then on
/// have no more; the first one must be.
///
/// # Errors
///
/// Where the outputs cannot be written any more, and where the kernel refuses.
pub fn confine(
    capture: &CaptureArgs,
    outputs: Outputs,
    is_quiet: bool,
) -> anyhow::Result<Option<Reopener>> {
    let waits = capture.if_gone() == IfGone::Wait;
    let outputs = outputs.with_pidfile(capture.pidfile.as_deref());
    give_up(capture.safety(), outputs, is_quiet, waits.then_some(Reopener::start))
}

/// Gives up what is not needed any more once everything is open, and says what is left. Only `opener`, if there is
/// one, starts a thread that still has `CAP_NET_RAW`.
///
/// # Errors
///
/// Where the outputs cannot be written any more, and where the kernel refuses.
pub fn give_up<T>(
    safety: &SafetyArgs,
    outputs: Outputs,
    is_quiet: bool,
    opener: Option<impl FnOnce() -> anyhow::Result<T>>,
) -> anyhow::Result<Option<T>> {
    let reopens = opener.is_some();
    let active = safety.sandbox(outputs, reopens)?.enter()?;
    let opened = opener.map(|start| start()).transpose()?;
    capabilities::keep_only(false)?;
    if !capabilities::are_only(false)? {
        bail!("capabilities are still there after they were given up");
    }
    if !is_quiet || !active.is_whole() {
        say(&active.text(reopens));
    }
    Ok(opened)
}

/// A thread that opens interfaces again, as others ask it to.
#[derive(Clone, Debug)]
pub struct Reopener(SyncSender<Request>);

type Opened = Option<Box<dyn backend::Receiver>>;

#[derive(Debug)]
struct Request {
    name: String,
    backend: &'static Backend,
    options: Options,
    answer: SyncSender<Opened>,
}

impl Reopener {
    /// Starts the thread, with the rights of the caller. It ends with the last who can ask it.
    fn start() -> anyhow::Result<Self> {
        let (requests, asked) = sync_channel(1);
        let thread = std::thread::Builder::new().name("reopen".to_owned());
        thread.spawn(move || answer(&asked)).context("cannot start a thread")?;
        Ok(Self(requests))
    }

    /// Opens an interface again by its name, once there is one. Rings whose options name no fan-out group
    /// share one.
    #[must_use]
    pub fn reopen(&self, name: String, backend: &'static Backend, options: Options) -> Reopen {
        let requests = self.0.clone();
        Box::new(move || {
            let (answer, answered) = sync_channel(1);
            let (name, options) = (name.clone(), options.clone());
            requests.send(Request { name, backend, options, answer }).ok()?;
            answered.recv().ok()?
        })
    }
}

fn answer(asked: &Receiver<Request>) {
    let mut door = Door::default();
    for Request { name, backend, options, answer } in asked {
        let opened = match Interface::find(&name) {
            Ok(interface) => door.open(&interface, backend, options),
            Err(_) => door.miss(name),
        };
        // A ring that ended meanwhile needs it no more.
        let _ = answer.send(opened);
    }
}

/// What is known of interfaces that came back.
#[derive(Default)]
struct Door {
    /// Why the last one could not be opened.
    told: String,
    /// The number and the fan-out group of each interface, by its name. The group of the one before lives as long
    /// as one of its rings, and rings of another interface cannot join it.
    groups: BTreeMap<String, (u32, u16)>,
    /// Those that were told to be gone.
    missed: BTreeSet<String>,
}

impl Door {
    /// There is no interface of this name.
    fn miss(&mut self, name: String) -> Opened {
        // It is asked for many times a second, and by each of its rings.
        if !self.missed.contains(&name) {
            say(&format!("{name} is gone, and waited for"));
            self.missed.insert(name);
        }
        None
    }

    fn open(&mut self, interface: &Interface, backend: &Backend, mut options: Options) -> Opened {
        let Interface { name, index, .. } = interface;
        if let Some(fanout) = &mut options.fanout {
            let known = self.groups.get(name).filter(|(of, _)| of == index);
            fanout.group = fanout.group.or(known.map(|(_, group)| *group));
        }
        match backend.open(interface, &options) {
            Ok(receiver) => {
                self.told.clear();
                self.missed.remove(name);
                let group = receiver.facts().fanout_group;
                self.groups.extend(group.map(|group| (name.clone(), (*index, group))));
                say(&format!("{name} is back"));
                Some(receiver)
            }
            Err(error) => {
                // It is asked for many times a second.
                let why = format!("{name} is back and cannot be opened: {error}");
                if why != self.told {
                    say(&why);
                    self.told = why;
                }
                None
            }
        }
    }
}
