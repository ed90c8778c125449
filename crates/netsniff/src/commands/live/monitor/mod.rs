//! What a run tells those who watch over it: the service manager, Prometheus, and whoever asks how it is.
//!
//! | module | concern |
//! |---|---|
//! | `notify` | the service manager: ready, status, watchdog |
//! | `health` | whether the run does what it is to do, and why not |
//! | `process` | memory, time and files of this process |
//! | `server` | answers to whoever asks |

mod health;
mod notify;
mod process;
mod server;

use std::net::TcpListener;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use anyhow::Context as _;
use netsniff_analysis::rows::LOGS;
use netsniff_console::exposition::{Dialect, Exposition, Kind, Labels};
use netsniff_console::{number, say};
use netsniff_delivery::Books;
use netsniff_delivery::books as delivery;
use netsniff_output::{KeepBound, RemovedFiles, RowTally, WriterStatistics};
use netsniff_packet::Timestamp;
use netsniff_pipeline::books::{BooksLine, BooksScope, add_metrics};

use self::health::{Health, Phase, Report};
use self::notify::Notifier;
use self::process::ProcessReader;
use self::server::Server;
use super::CaptureArgs;

/// What is opened before a process gives up its rights.
#[derive(Debug)]
pub struct MonitorParts {
    notifier: Option<Notifier>,
    server: Option<Server>,
    process: ProcessReader,
}

/// Tells how a run is.
#[derive(Debug)]
pub struct Monitor {
    notifier: Option<Mutex<Notifier>>,
    /// Packets that had been delivered at the books before, and when that was.
    delivered: Mutex<Option<(u64, Timestamp)>>,
    shared: Arc<Shared>,
}

/// What is shown to whoever asks.
#[derive(Debug)]
struct Shared {
    books: Mutex<Vec<BooksLine>>,
    rows: Mutex<Option<WriterStatistics>>,
    deliveries: Mutex<Vec<Books>>,
    health: Mutex<Health>,
    process: ProcessReader,
}

impl MonitorParts {
    /// Connects to the service manager, if there is one, and listens where `--metrics` says.
    ///
    /// # Errors
    ///
    /// Where one of them cannot be had.
    pub fn open(capture: &CaptureArgs) -> anyhow::Result<Self> {
        let notifier = Notifier::of_environment()?;
        let server = capture.metrics().map(|address| {
            let listener = TcpListener::bind(address)
                .with_context(|| format!("cannot listen at {address} for --metrics"))?;
            let server = Server::new(listener)?;
            say(&format!("metrics at http://{}/metrics", server.address()));
            Ok::<_, anyhow::Error>(server)
        });
        Ok(Self { notifier, server: server.transpose()?, process: ProcessReader::open() })
    }

    /// Answers whoever asks, in a thread of its own, until the process ends.
    ///
    /// # Errors
    ///
    /// Where the thread cannot be started.
    pub fn start(self) -> anyhow::Result<Monitor> {
        let shared = Arc::new(Shared {
            books: Mutex::default(),
            rows: Mutex::default(),
            deliveries: Mutex::default(),
            health: Mutex::new(Health::new(Instant::now())),
            process: self.process,
        });
        let server = self.server.map(|server| server.start(Arc::clone(&shared)));
        server.transpose()?;
        let notifier = self.notifier.map(Mutex::new);
        Ok(Monitor { notifier, delivered: Mutex::default(), shared })
    }
}

impl Monitor {
    /// All rings capture.
    pub fn capturing(&self) {
        lock(&self.shared.health).enter(Phase::Capturing);
        self.tell("READY=1\nSTATUS=capturing");
    }

    /// Notes how often the thread of each ring came round.
    pub fn look(&self, turns: &[u64]) {
        let now = Instant::now();
        lock(&self.shared.health).look(turns, now);
        self.notifier.iter().for_each(|notifier| lock(notifier).look(turns, now));
    }

    /// Shows these books from now on.
    pub fn show(&self, entries: &[BooksLine], now: Timestamp) {
        lock(&self.shared.health).books(entries);
        if self.notifier.is_some() {
            let status = status(entries, &mut lock(&self.delivered), now);
            self.tell(&format!("STATUS={status}"));
        }
        *lock(&self.shared.books) = entries.to_vec();
    }

    /// Shows from now on that rows of logs went there.
    pub fn rows(&self, rows: WriterStatistics) {
        lock(&self.shared.health).rows(&rows);
        *lock(&self.shared.rows) = Some(rows);
    }

    /// Shows from now on that rows went to these receivers.
    pub fn deliveries(&self, books: Vec<Books>) {
        lock(&self.shared.health).deliveries(&books);
        *lock(&self.shared.deliveries) = books;
    }

    /// Does what the service manager asked for by a signal, and tells when it begins and ends, and what came of it.
    pub fn during_reload(&self, reload: impl FnOnce() -> Option<String>) {
        self.tell(&notify::reloading());
        let said = reload();
        said.iter().for_each(|said| say(said));
        // A state has one line.
        let status = said.map(|said| format!("\nSTATUS={}", said.replace('\n', "; ")));
        self.tell(&format!("READY=1{}", status.unwrap_or_default()));
    }

    /// Nothing more is captured.
    pub fn ending(&self) {
        lock(&self.shared.health).enter(Phase::Ending);
        self.tell("STOPPING=1\nSTATUS=writing what is left");
    }

    fn tell(&self, state: &str) {
        self.notifier.iter().for_each(|notifier| lock(notifier).tell(state));
    }
}

impl Shared {
    /// All metrics, as text.
    fn metrics(&self, dialect: Dialect) -> String {
        let mut text = Exposition::new(dialect);
        add_metrics(&lock(&self.books), &mut text);
        if let Some(rows) = &*lock(&self.rows) {
            add_rows(rows, &mut text);
        }
        delivery::add_metrics(&lock(&self.deliveries), &mut text);
        let Report { status, ready, .. } = self.report();
        let told = |of: bool| [(Labels::default(), u8::from(of))];
        let works = told(status != health::Status::Unhealthy);
        text.add(Kind::Gauge, "netsniff_healthy", "1 where /health has no failing.", works);
        text.add(Kind::Gauge, "netsniff_ready", "1 while all rings capture.", told(ready));
        let build = Labels::default()
            .with("version", env!("CARGO_PKG_VERSION"))
            .with("revision", env!("NETSNIFF_REVISION"));
        text.add(Kind::Info, "netsniff_build", "What is running.", [(build, 1)]);
        self.process.add_metrics(&mut text);
        text.finish()
    }

    fn report(&self) -> Report {
        lock(&self.health).report(Instant::now())
    }
}

/// Adds where the rows of logs went.
fn add_rows(rows: &WriterStatistics, text: &mut Exposition) {
    fn samples(tally: &RowTally, why: Option<&'static str>) -> Vec<(Labels, u64)> {
        let of_log = |(at, rows): (usize, u64)| {
            let name = LOGS.get(at).map_or("unknown", |log| log.path);
            let labels = Labels::default().with("log", name);
            (why.into_iter().fold(labels, |labels, why| labels.with("reason", why)), rows)
        };
        tally.logs().map(of_log).collect()
    }
    let WriterStatistics { written, refused_full, refused_failed, refused_end, stalls, .. } = rows;
    let RemovedFiles { files, bytes, failed } = rows.removed;
    let name = "netsniff_rows_written";
    text.add(Kind::Counter, name, "Rows of logs that the system took.", samples(written, None));
    let refused =
        [(refused_full, "queue_full"), (refused_failed, "write_failed"), (refused_end, "end")];
    let refused = refused.into_iter().flat_map(|(tally, why)| samples(tally, Some(why)));
    let name = "netsniff_rows_refused";
    text.add(Kind::Counter, name, "Rows of logs that were not written.", refused);
    let none = Labels::default;
    let help = "Rows of logs that came behind later ones.";
    text.add(Kind::Counter, "netsniff_rows_late", help, [(none(), rows.late_rows)]);
    let help = "Writes that took longer than 0.1 s.";
    text.add(Kind::Counter, "netsniff_write_stalls", help, [(none(), stalls.count)]);
    let help = "The most bytes of rows that ever waited to be written.";
    text.add(Kind::Gauge, "netsniff_rows_waiting_bytes_max", help, [(none(), rows.most_bytes)]);
    let bounds = KeepBound::ALL.map(|bound| Labels::default().with("bound", bound.name()));
    let help = "Files of logs that were removed, so that the bounds of what is kept are held.";
    text.add(Kind::Counter, "netsniff_log_files_removed", help, bounds.into_iter().zip(files));
    let help = "Bytes of files of logs that were removed.";
    text.add(Kind::Counter, "netsniff_log_files_removed_bytes", help, [(none(), bytes)]);
    let help = "Files of logs that should have been removed, and could not be.";
    text.add(Kind::Counter, "netsniff_log_files_not_removed", help, [(none(), failed)]);
}

/// What is captured, in a line: the rate since the books before, and losses. What nobody knows is left out.
fn status(entries: &[BooksLine], before: &mut Option<(u64, Timestamp)>, now: Timestamp) -> String {
    let lines = || entries.iter().filter(|of| matches!(of.place, BooksScope::Interface(_)));
    let names: Vec<_> = lines().map(place).collect();
    let delivered: Option<u64> = lines().map(BooksLine::delivered).sum();
    let mut parts = vec![format!("capturing on {}", names.join(", "))];
    if let Some(delivered) = delivered {
        if let Some((earlier, since)) = before.replace((delivered, now))
            && let nanos @ 1.. = now.nanos().saturating_sub(since.nanos())
        {
            let rate = delivered.saturating_sub(earlier) as f64 * 1e9 / nanos as f64;
            parts.push(format!("{rate:.0} packets/s"));
        }
        parts.push(format!("{} packets", number::exact(delivered.into())));
    }
    let lost =
        |of: &BooksLine| Some(of.ring_dropped()? + of.lost_interface.unwrap_or(0) + of.refused());
    parts.push(match lines().map(lost).sum::<Option<u64>>() {
        Some(lost) => format!("{} lost", number::exact(lost.into())),
        None => "losses unknown".to_owned(),
    });
    parts.join("; ")
}

fn place(line: &BooksLine) -> &str {
    match &line.place {
        BooksScope::Interface(name) | BooksScope::Ring(name, _) => name,
        BooksScope::Host => "the host",
    }
}

fn lock<T>(place: &Mutex<T>) -> MutexGuard<'_, T> {
    place.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use netsniff_pipeline::books::testing::entry;

    use super::*;

    pub(super) fn shared() -> Arc<Shared> {
        let mut rows = WriterStatistics::default();
        rows.written.add_rows(0, 12);
        rows.refused_failed.add_rows(0, 3);
        rows.removed = RemovedFiles { files: [0, 4, 0, 5], bytes: 600, failed: 1 };
        Arc::new(Shared {
            books: Mutex::new(vec![entry(Some(1), Some(2), Some(3))]),
            rows: Mutex::new(Some(rows)),
            deliveries: Mutex::default(),
            health: Mutex::new(Health::new(Instant::now())),
            process: ProcessReader::open(),
        })
    }

    #[test]
    fn rows_are_told_by_log_and_reason() {
        let text = shared().metrics(Dialect::OpenMetrics);
        for line in [
            "netsniff_rows_written_total{log=\"conn\"} 12\n",
            "netsniff_rows_refused_total{log=\"conn\",reason=\"write_failed\"} 3\n",
            "netsniff_ready 0\n",
            "netsniff_log_files_removed_total{bound=\"bytes\"} 4\n",
            "netsniff_log_files_removed_total{bound=\"free\"} 5\n",
            "netsniff_log_files_removed_bytes_total 600\n",
            "netsniff_log_files_not_removed_total 1\n",
            "netsniff_capture_ring_dropped_packets_total{scope=\"interface\",interface=\"eth0\"} 3\n",
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
        assert!(text.ends_with("# EOF\n") && text.contains("\nnetsniff_build_info{version=\""));
    }

    #[test]
    fn the_status_has_a_rate_from_the_second_books_on() {
        let mut before = None;
        let at = |seconds| Timestamp::from_secs_nanos(seconds, 0);
        let mut line = entry(Some(1), None, Some(4));
        let first = status(&[line.clone()], &mut before, at(10));
        assert_eq!(first, "capturing on eth0; 95 packets; 5 lost");
        line.report.iter_mut().for_each(|report| report.counters.delivered += 5000);
        let second = status(&[line.clone()], &mut before, at(20));
        assert_eq!(second, "capturing on eth0; 500 packets/s; 5,095 packets; 5 lost");
        line.report.iter_mut().for_each(|report| report.counters.dropped = None);
        let third = status(&[line], &mut before, at(20));
        assert_eq!(third, "capturing on eth0; 5,095 packets; losses unknown");
    }
}
