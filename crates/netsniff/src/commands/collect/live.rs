//! A run that goes on until it is ended: sockets, time, and the books.

use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use netsniff_analysis::SortKey;
use netsniff_console::{clock, say};
use netsniff_delivery::{Deliveries, Delivering, OnFull};
use netsniff_output::{LiveSink, LiveStream, LogFiles, LogStream, Nowhere, RowSink};
use netsniff_pipeline::collecting::Collection;

use super::sockets::{self, Event, Shared};
use super::summary::Summary;
use super::{CollectArgs, Endpoint};
use crate::commands::live::Signals;
use crate::commands::row_output::Target;

/// Messages that wait for the analysis: more than that wait in the kernel.
const QUEUED: usize = 256;
/// How often rows are written that are complete.
const FLUSH: Duration = Duration::from_millis(500);
/// How long it waits for a message.
const WAIT: Duration = Duration::from_millis(50);

/// Rows on their way to a sink of a run that goes on for long. Behind a failure it goes on.
struct Going<K> {
    sink: K,
    is_to_roll: Arc<AtomicBool>,
    has_failed: Arc<AtomicBool>,
    /// What was said last: a full disk fails in every row.
    said: String,
}

impl<K: LiveSink> Going<K> {
    fn note(&mut self, result: anyhow::Result<()>) {
        let Err(error) = result else { return };
        self.has_failed.store(true, Ordering::Relaxed);
        let error = format!("{error:#}");
        if error != self.said {
            say(&error);
            self.said = error;
        }
    }
}

impl<K: LiveSink> RowSink for Going<K> {
    type Error = anyhow::Error;

    fn row(&mut self, log: usize, key: &SortKey, bytes: &[u8]) -> anyhow::Result<()> {
        let result = self.sink.row(log, key, bytes);
        self.note(result);
        Ok(())
    }

    fn publish(&mut self) -> anyhow::Result<()> {
        if self.is_to_roll.swap(false, Ordering::Relaxed) {
            let rolled = self.sink.roll(clock::now());
            self.note(rolled);
        }
        let flushed = self.sink.flush(clock::now());
        self.note(flushed);
        Ok(())
    }
}

/// Listens until the run ends.
pub(super) fn run(args: &CollectArgs, endpoints: &[Endpoint]) -> anyhow::Result<Summary> {
    let signals = Signals::listen()?;
    let started = args.delivery.plan()?.map(|plan| plan.start(OnFull::Refuse)).transpose()?;
    let (deliveries, delivering) = started.unwrap_or_default();
    let mut summary = listen(args, endpoints, &signals, deliveries)?;
    summary.delivered = delivering.finish();
    Ok(summary)
}

/// Collects into the sink that is wanted, and into the spools of deliveries.
fn listen(
    args: &CollectArgs,
    endpoints: &[Endpoint],
    signals: &Signals,
    deliveries: Deliveries,
) -> anyhow::Result<Summary> {
    match args.target()? {
        Target::Nowhere => {
            let sink = Delivering { sink: Nowhere::default(), deliveries };
            collect(args, endpoints, signals, sink)
        }
        Target::Stream(style) => {
            let sink = LiveStream::stdout(style.format)?;
            collect(args, endpoints, signals, Delivering { sink, deliveries })
        }
        Target::Log(style, logs) => {
            let sink = LogStream::stdout(style.format, logs)?;
            collect(args, endpoints, signals, Delivering { sink, deliveries })
        }
        Target::Directory(directory, style) => {
            let now = clock::now();
            let sink = LogFiles::live(directory, style.format, args.rolling.roll(), now)?;
            let sink = sink.keeping(args.rolling.keep(), now)?;
            collect(args, endpoints, signals, Delivering { sink, deliveries })
        }
    }
}

/// What messages come from.
struct Sockets {
    datagrams: Vec<UdpSocket>,
    threads: Vec<JoinHandle<()>>,
    events: Receiver<Event>,
    end: Arc<AtomicBool>,
}

impl Sockets {
    fn open(endpoints: &[Endpoint]) -> anyhow::Result<Self> {
        let (sender, events) = sync_channel(QUEUED);
        let end = Arc::new(AtomicBool::new(false));
        let shared = Shared { events: sender, end: Arc::clone(&end) };
        let (mut bound, mut listeners) = (Vec::new(), Vec::new());
        for endpoint in endpoints {
            bound.push(sockets::bind(endpoint.address)?);
            if endpoint.takes_connections {
                listeners.push(sockets::listen(endpoint.address)?);
            }
        }
        let (mut threads, mut datagrams) = (Vec::new(), Vec::new());
        for socket in bound {
            datagrams.push(socket.try_clone().context("cannot listen")?);
            threads.push(sockets::datagrams(socket, shared.clone())?);
        }
        for listener in listeners {
            threads.push(sockets::connections(listener, shared.clone())?);
        }
        Ok(Self { datagrams, threads, events, end })
    }

    /// Datagrams that the kernel dropped.
    fn dropped(&self) -> Option<u64> {
        self.datagrams.iter().map(sockets::dropped).sum()
    }
}

fn collect<K: LiveSink>(
    args: &CollectArgs,
    endpoints: &[Endpoint],
    signals: &Signals,
    sink: K,
) -> anyhow::Result<Summary> {
    let sockets = Sockets::open(endpoints)?;
    if !args.quiet {
        for (endpoint, socket) in endpoints.iter().zip(&sockets.datagrams) {
            let at = socket.local_addr().unwrap_or(endpoint.address);
            let over = if endpoint.takes_connections { "UDP and TCP" } else { "UDP" };
            say(&format!("listening at {at}, {over}"));
        }
    }
    let (is_to_roll, has_failed) = (Arc::default(), Arc::default());
    let (roll, failed) = (Arc::clone(&is_to_roll), Arc::clone(&has_failed));
    let going = Going { sink, is_to_roll: roll, has_failed: failed, said: String::new() };
    let mut collection = Collection::new(&args.settings()?, going);
    let begin = Instant::now();
    let (mut next_flush, mut next_books) = (begin + FLUSH, begin + args.stats);
    loop {
        match sockets.events.recv_timeout(WAIT) {
            Ok(event) => take(&mut collection, event)?,
            Err(RecvTimeoutError::Timeout) => collection.advance(clock::now())?,
            Err(RecvTimeoutError::Disconnected) => anyhow::bail!("nobody listens any more"),
        }
        let now = Instant::now();
        if signals.wants_roll() {
            is_to_roll.store(true, Ordering::Relaxed);
        }
        if now >= next_books {
            collection.write_books(false);
            next_books += args.stats;
        }
        if now >= next_flush {
            collection.publish()?;
            next_flush = now + FLUSH;
        }
        if signals.wants_end() || args.duration.is_some_and(|duration| now >= begin + duration) {
            break;
        }
    }
    signals.arm();
    sockets.end.store(true, Ordering::Relaxed);
    conclude(sockets, collection, &has_failed)
}

fn take<K: LiveSink>(collection: &mut Collection<Going<K>>, event: Event) -> anyhow::Result<()> {
    match event {
        // Why it is refused is in the books.
        Event::Message(from, time, message) => {
            let _ = collection.message(from, time, &message)?;
        }
        Event::Disconnected(from) => collection.disconnected(&from),
    }
    Ok(())
}

/// Takes what came before the end, and ends everything.
fn conclude<K: LiveSink>(
    mut sockets: Sockets,
    mut collection: Collection<Going<K>>,
    has_failed: &AtomicBool,
) -> anyhow::Result<Summary> {
    // It ends with the last thread.
    while let Ok(event) = sockets.events.recv() {
        take(&mut collection, event)?;
    }
    sockets.threads.drain(..).for_each(|thread| _ = thread.join());
    let dropped = sockets.dropped();
    let waiting = collection.waiting();
    let (outcome, mut going) = collection.finish()?;
    let ended = going.sink.end(outcome.now);
    going.note(ended);
    let mut summary = Summary::new(outcome, waiting);
    summary.refused_rows = going.sink.books().refused.total();
    summary.removed = going.sink.removed();
    summary.dropped = dropped;
    summary.has_failed = has_failed.load(Ordering::Relaxed);
    Ok(summary)
}
