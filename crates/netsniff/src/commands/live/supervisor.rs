//! The thread that rules a live run: signals, time, and the books.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use netsniff_capture::monotonic;
use netsniff_console::clock;
use netsniff_console::say;
use netsniff_packet::Timestamp;
use netsniff_pipeline::books::{BooksKeeper, BooksLine, BooksScope, LEAD};
use netsniff_pipeline::live::{Control, RingOutcome};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::contention::Contention;
use super::monitor::Monitor;
use crate::summary::cut_headers_now;

/// How often the ruling thread looks around.
const TICK: Duration = Duration::from_millis(20);

/// How long after a signal another one means impatience. timeout(1) for one sends two at a time, to the process
/// and to its group.
const IMPATIENT: Duration = Duration::from_millis(500);

/// When the books are made first at the latest.
const FIRST: Duration = Duration::from_secs(1);

/// What signals ask for.
#[derive(Debug)]
pub struct Signals {
    end: Arc<AtomicBool>,
    /// Whether the next signal ends the process at once.
    armed: Arc<AtomicBool>,
    roll: Arc<AtomicBool>,
}

impl Signals {
    /// Listens from now on. SIGINT and SIGTERM end the run in good order, another one some time later at
    /// once; SIGHUP rolls the logs, and lets a service read its configuration again.
    ///
    /// # Errors
    ///
    /// Where a handler cannot be set.
    pub fn listen() -> anyhow::Result<Self> {
        let signals = Self { end: Arc::default(), armed: Arc::default(), roll: Arc::default() };
        for signal in [SIGINT, SIGTERM] {
            let end = Arc::clone(&signals.end);
            let armed = Arc::clone(&signals.armed);
            signal_hook::flag::register_conditional_default(signal, armed)
                .and_then(|_| signal_hook::flag::register(signal, end))
                .context("cannot listen for signals")?;
        }
        signal_hook::flag::register(SIGHUP, Arc::clone(&signals.roll))
            .context("cannot listen for signals")?;
        Ok(signals)
    }

    pub(crate) fn wants_end(&self) -> bool {
        self.end.load(Ordering::Relaxed)
    }

    /// Lets the next signal end the process at once.
    pub(crate) fn arm(&self) {
        self.armed.store(true, Ordering::Relaxed);
    }

    pub(crate) fn wants_roll(&self) -> bool {
        self.roll.swap(false, Ordering::Relaxed)
    }
}

/// What happens to the books, and on request, while a run goes on.
pub trait RunHooks {
    /// Takes the books; `since` is when those before were made.
    fn books(
        &mut self,
        entries: &mut [BooksLine],
        now: Timestamp,
        since: Timestamp,
        is_final: bool,
    );

    /// Begins new files, at a signal or in time.
    fn roll(&mut self);

    /// Reads the configuration once more, where there is one to read; what came of it.
    fn reload(&mut self) -> Option<String> {
        None
    }

    /// Says what the user is to know at once.
    fn notify_user(&mut self) {}

    /// Why the run is to end by itself, if so.
    fn failure(&mut self) -> Option<String>;
}

/// What a run is ruled by.
#[derive(Debug)]
pub struct Supervisor<'a> {
    /// What the rings are told.
    pub control: &'a Control,
    /// The signals that end a run or begin new files.
    pub signals: &'a Signals,
    /// When the run ends by itself.
    pub duration: Option<Duration>,
    /// How often the books are made.
    pub interval: Duration,
    /// Looks for rings that take a processor from the kernel, until there is one.
    pub contention: Option<Contention>,
    /// Who is told how the run is.
    pub monitor: &'a Monitor,
}

impl Supervisor<'_> {
    /// Rules until the rings have ended and returns what came of them; `None` where a thread panicked.
    pub fn run<'scope, C>(
        mut self,
        rings: Vec<ScopedJoinHandle<'scope, RingOutcome<C>>>,
        keeper: &mut BooksKeeper,
        attendant: &mut dyn RunHooks,
    ) -> Vec<Option<RingOutcome<C>>> {
        let begin = monotonic();
        let last = self.duration.map_or(u64::MAX, |of| begin.saturating_add(nanos(of)));
        // The first books come soon, so that whoever looks sees that it works.
        let mut question = self.ask(begin.saturating_add(nanos(self.interval.min(FIRST))));
        let mut ended = None;
        self.monitor.capturing();
        while !rings.iter().all(ScopedJoinHandle::is_finished) {
            self.end_if_wanted(last, attendant);
            // Whatever the rings' threads do.
            if self.control.ends() && !self.control.is_shut() {
                keeper.shut(self.control);
                self.monitor.ending();
            }
            if self.signals.wants_roll() {
                self.monitor.during_reload(|| {
                    attendant.roll();
                    attendant.reload()
                });
            }
            self.monitor.look(&self.control.turns());
            attendant.notify_user();
            keeper.attend(self.control);
            if is_near(question.due) {
                question = self.account(&question, keeper, attendant);
            }
            let now = Instant::now();
            if self.signals.wants_end() && now >= *ended.get_or_insert(now) + IMPATIENT {
                self.signals.arm();
            }
            let next = if self.control.ends() { question.due } else { question.due.min(last) };
            let left = next.saturating_sub(nanos(LEAD)).saturating_sub(monotonic());
            std::thread::sleep(TICK.min(Duration::from_nanos(left)));
        }
        self.signals.arm();
        rings.into_iter().map(|ring| ring.join().ok()).collect()
    }

    /// Asks for the end of the run where a signal, the time or a failure does.
    fn end_if_wanted(&self, last: u64, attendant: &mut dyn RunHooks) {
        if self.signals.wants_end() || is_near(last) {
            self.control.end();
        }
        if let Some(why) = attendant.failure()
            && !self.control.ends()
        {
            say(&why);
            self.control.end();
        }
    }

    /// Asks the rings for their counters at a time, which they are told before, so that they read them together.
    fn ask(&self, due: u64) -> Question {
        Question { number: self.control.ask(due), due }
    }

    /// Makes the books of the answers to a question, and asks the next one.
    fn account(
        &mut self,
        question: &Question,
        keeper: &mut BooksKeeper,
        attendant: &mut dyn RunHooks,
    ) -> Question {
        let mut entries = keeper.read(self.control, question.number, question.due);
        let due = question.due.max(monotonic()).saturating_add(nanos(self.interval));
        let next = self.ask(due);
        let time = clock::now();
        let since = keeper.turn(time);
        attendant.books(&mut entries, time, since, false);
        self.monitor.show(&entries, time);
        if let Some(warning) = self.contention.as_mut().and_then(Contention::look) {
            say(&warning);
            self.contention = None;
        }
        next
    }
}

/// What the rings were asked.
struct Question {
    number: u64,
    /// When their counters are read, by the monotonic clock.
    due: u64,
}

/// Whether it is time to read the interfaces before a moment.
fn is_near(time: u64) -> bool {
    monotonic().saturating_add(nanos(LEAD)) >= time
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// What a line of the books was said to have.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReportedLine {
    lost: u64,
    are_stamps_wrong: bool,
    are_headers_cut: bool,
}

/// Says at once what was lost since the last time, that stamps are wrong, and that headers are cut; `told` is what was said
/// before, by line.
pub fn warn(entries: &[BooksLine], told: &mut Vec<ReportedLine>) {
    told.resize(entries.len(), ReportedLine::default());
    for (entry, before) in entries.iter().zip(told) {
        warnings(entry, before).iter().flatten().for_each(|warning| say(warning));
    }
}

/// What is new since the last time; `told` is what was said before of the same line.
fn warnings(entry: &BooksLine, told: &mut ReportedLine) -> [Option<String>; 3] {
    let BooksScope::Interface(name) = &entry.place else { return [None, None, None] };
    let parts = [entry.ring_dropped(), entry.lost_interface];
    let lost = parts.into_iter().flatten().sum::<u64>() + entry.refused();
    let are_stamps_wrong = entry.wrong_stamps() > 0;
    let cut = entry.report.as_ref().map(|report| &report.cut_headers);
    let are_headers_cut = cut.is_some_and(|cut| cut.packets() > 0);
    let now = ReportedLine { lost, are_stamps_wrong, are_headers_cut };
    let before = core::mem::replace(told, now);
    let verdict = entry.verdict().filter(|_| lost > before.lost);
    let loss = verdict.map(|verdict| {
        let share = entry.loss().unwrap_or(0.0) * 100.0;
        format!(
            "{name}: {} packets lost since the last count, {lost} in all = {share:.3} %: {}",
            lost - before.lost,
            verdict.name()
        )
    });
    let stamps = (are_stamps_wrong && !before.are_stamps_wrong).then(|| {
        format!(
            "{name}: stamps are more than a second off the system's clock; such packets get the time of a \
             neighbour, and are counted. Set the clock of the interface, or leave out --ts hw"
        )
    });
    let snaplen = entry.facts.as_ref().map(|facts| facts.snaplen);
    let headers = cut.zip(snaplen).filter(|_| !before.are_headers_cut);
    let headers = headers.and_then(|(cut, snaplen)| cut_headers_now(cut, snaplen));
    [loss, stamps, headers.map(|said| format!("{name}: {said}"))]
}

#[cfg(test)]
mod tests {
    use super::*;
    use netsniff_pipeline::books::testing::{cut_headers, entry, facts};

    /// What is said of an interface whose books these are, one after the other.
    fn said(books: &[BooksLine]) -> Vec<Vec<String>> {
        let mut told = ReportedLine::default();
        books.iter().map(|of| warnings(of, &mut told).into_iter().flatten().collect()).collect()
    }

    #[test]
    fn a_loss_is_said_once_with_what_is_new_and_what_is_all() {
        let refused = BooksLine { unrecorded: Some(5), ..entry(Some(2), None, Some(8)) };
        let books = [
            entry(Some(0), None, Some(0)),
            entry(Some(0), None, Some(8)),
            entry(Some(0), None, Some(8)),
            entry(Some(2), None, Some(8)),
            refused.clone(),
            refused,
        ];
        let new = |lost: u64, all: u64| {
            vec![format!(
                "eth0: {lost} packets lost since the last count, {all} in all = {all}.000 %: bad"
            )]
        };
        assert_eq!(said(&books), [vec![], new(8, 8), vec![], new(2, 10), new(5, 15), vec![]]);
    }

    #[test]
    fn wrong_stamps_are_said_once() {
        let with = |wrong_stamps| {
            let mut entry = entry(Some(0), None, Some(0));
            entry.report.iter_mut().for_each(|of| of.counters.wrong_stamps = wrong_stamps);
            entry
        };
        let said = said(&[with(0), with(3), with(4)]);
        assert_eq!(said.iter().map(Vec::len).collect::<Vec<_>>(), [0, 1, 0], "{said:?}");
        assert!(said[1][0].starts_with("eth0: stamps are more than a second off"), "{said:?}");
    }

    #[test]
    fn headers_that_are_cut_are_said_once_with_what_to_do() {
        let with = |packets| {
            let mut entry = BooksLine { facts: Some(facts()), ..entry(Some(0), None, Some(0)) };
            entry.report.iter_mut().for_each(|of| of.cut_headers = cut_headers(packets));
            entry
        };
        let expected = "eth0: --snaplen 96 cuts headers: of 6 packets that it cut and whose headers were looked at so \
                        far, 3 lack some (ip 3). These headers need --snaplen 34, and others behind them more";
        let expected = [vec![], vec![expected.to_owned()], vec![]];
        assert_eq!(said(&[with(0), with(3), with(7)]), expected);
    }

    #[test]
    fn rings_and_the_host_say_nothing_that_their_interface_says() {
        let lost = |place| BooksLine { place, ..entry(Some(2), None, Some(8)) };
        let ring = lost(BooksScope::Ring("eth0".to_owned(), 0));
        assert_eq!(said(&[ring, lost(BooksScope::Host)]), [[""; 0]; 2]);
    }
}
