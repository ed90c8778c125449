//! The thread that sends what a spool has: batches, retries, and what is refused.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::time::Duration;

use netsniff_console::say;

use crate::identity::Row;
use crate::spool::{Batch, BatchBounds, Spool};
use crate::target::{Answer, Receiver, RowAnswer};

/// The first wait behind a failure; each further one is twice as long.
const FIRST_WAIT: Duration = Duration::from_millis(200);
/// The longest wait.
const LONGEST_WAIT: Duration = Duration::from_secs(30);
/// The longest wait that a receiver may ask for.
const MOST_ASKED: Duration = Duration::from_secs(300);

/// Sends until the spool is closed and empty, or given up.
pub(crate) struct Sender {
    pub(crate) spool: Arc<Spool>,
    pub(crate) receiver: Box<dyn Receiver>,
    pub(crate) bounds: BatchBounds,
    pub(crate) name: String,
    waits: Waits,
    /// Whether it was said that the receiver does not take rows.
    has_told: bool,
}

impl Sender {
    pub(crate) fn new(
        spool: Arc<Spool>,
        receiver: Box<dyn Receiver>,
        bounds: BatchBounds,
        name: String,
    ) -> Self {
        Self { spool, receiver, bounds, name, waits: Waits::default(), has_told: false }
    }

    pub(crate) fn run(mut self) {
        loop {
            match self.spool.next(&self.bounds) {
                Ok(Some(batch)) => {
                    if !self.deliver(&batch) {
                        return;
                    }
                }
                Ok(None) => return,
                Err(error) => {
                    if self.fail(&format!("cannot read the spool: {error}"), None) {
                        return;
                    }
                }
            }
        }
    }

    /// Sends a batch until each of its rows is done with; returns whether they are.
    fn deliver(&mut self, batch: &Batch) -> bool {
        let rows: Vec<_> = batch.rows().collect();
        let mut progress = Progress::new(rows.len());
        while let Some(open) = progress.next() {
            let sent: Vec<_> = open.iter().filter_map(|&at| rows.get(at).copied()).collect();
            self.spool.note(|books| books.batches += 1);
            let answer = self.receiver.send(&sent);
            let trouble = self.note(&mut progress, &rows, &open, answer);
            progress.settle(|rows, refused| self.spool.settled(batch, rows, refused));
            if let Some((why, asked)) = trouble {
                self.spool.note(|books| books.retried += 1);
                if self.fail(&why, asked) {
                    return false;
                }
            } else if !self.waits.is_calm() {
                self.waits = Waits::default();
                if core::mem::take(&mut self.has_told) {
                    say(&format!("{} takes rows again", self.name));
                }
            }
        }
        true
    }

    /// Takes note of an answer. Returns why rows have to be sent again later, and when, if so.
    fn note(
        &self,
        progress: &mut Progress,
        rows: &[Row<'_>],
        open: &[usize],
        answer: Answer,
    ) -> Option<(String, Option<Duration>)> {
        match answer {
            Answer::Accepted => {
                open.iter().for_each(|&at| progress.set(at, Fate::Delivered));
                progress.grow();
                None
            }
            Answer::Later { why, asked } => Some((why, asked)),
            Answer::Unfit { why } if open.len() > 1 => {
                progress.shrink(open.len());
                self.spool.note(|books| {
                    books.retried += 1;
                    books.last_error = Some(why);
                });
                None
            }
            Answer::Unfit { why } => {
                open.iter().for_each(|&at| self.refuse(progress, rows, at, &why));
                progress.grow();
                None
            }
            Answer::Each(answers) => self.note_each(progress, rows, open, answers),
        }
    }

    fn note_each(
        &self,
        progress: &mut Progress,
        rows: &[Row<'_>],
        open: &[usize],
        answers: Vec<RowAnswer>,
    ) -> Option<(String, Option<Duration>)> {
        let mut later = None;
        for (&at, answer) in open.iter().zip(answers) {
            match answer {
                RowAnswer::Accepted => progress.set(at, Fate::Delivered),
                RowAnswer::Refused(why) => self.refuse(progress, rows, at, &why),
                RowAnswer::Later(why) => later = Some((why, None)),
            }
        }
        later
    }

    fn refuse(&self, progress: &mut Progress, rows: &[Row<'_>], at: usize, why: &str) {
        if let Some(row) = rows.get(at) {
            self.spool.keep_refused(row, why);
        }
        self.spool.note(|books| books.last_error = Some(why.to_owned()));
        progress.set(at, Fate::Refused);
    }

    /// Waits behind a failure; returns whether the spool was given up meanwhile.
    fn fail(&mut self, why: &str, asked: Option<Duration>) -> bool {
        self.spool.note(|books| books.last_error = Some(why.to_owned()));
        if self.waits.is_bad() && !core::mem::replace(&mut self.has_told, true) {
            say(&format!("{} does not take rows, which wait in the spool: {why}", self.name));
        }
        let wait = asked.map(|asked| asked.min(MOST_ASKED));
        let own = self.waits.next();
        self.spool.pause(wait.unwrap_or(own).max(own))
    }
}

/// What became of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Open,
    Delivered,
    Refused,
}

/// What became of the rows of a batch.
struct Progress {
    fates: Vec<Fate>,
    /// The number of those that are settled.
    settled: usize,
    /// Rows that are sent at once.
    most: usize,
}

impl Progress {
    fn new(rows: usize) -> Self {
        Self { fates: vec![Fate::Open; rows], settled: 0, most: rows }
    }

    /// The rows that are sent next; `None` once all are done with.
    fn next(&self) -> Option<Vec<usize>> {
        let open = self.fates.iter().enumerate().skip(self.settled);
        let open = open.filter(|(_, fate)| **fate == Fate::Open).map(|(at, _)| at);
        let open: Vec<_> = open.take(self.most).collect();
        (!open.is_empty()).then_some(open)
    }

    fn set(&mut self, at: usize, fate: Fate) {
        if let Some(of) = self.fates.get_mut(at) {
            *of = fate;
        }
    }

    /// Sends fewer rows: those sent were too many, or one of them is bad.
    fn shrink(&mut self, sent: usize) {
        self.most = (sent / 2).max(1);
    }

    fn grow(&mut self) {
        self.most = self.most.saturating_mul(2).min(self.fates.len());
    }

    /// Tells of the rows from the first that is not settled up to the first that is open.
    fn settle(&mut self, tell: impl FnOnce(core::ops::Range<usize>, u64)) {
        let behind = self.fates.get(self.settled..).unwrap_or_default();
        let done = behind.iter().take_while(|fate| **fate != Fate::Open);
        let (mut rows, mut refused) = (0, 0);
        for fate in done {
            rows += 1;
            refused += u64::from(*fate == Fate::Refused);
        }
        if rows > 0 {
            tell(self.settled..self.settled + rows, refused);
            self.settled += rows;
        }
    }
}

/// Waits that become longer, each somewhat off, so that many senders do not come back together.
#[derive(Default)]
struct Waits {
    times: u32,
    random: RandomState,
}

impl Waits {
    const fn is_calm(&self) -> bool {
        self.times == 0
    }

    /// Whether it is more than a hiccup.
    const fn is_bad(&self) -> bool {
        self.times >= 2
    }

    fn next(&mut self) -> Duration {
        let length = FIRST_WAIT.saturating_mul(1 << self.times.min(16)).min(LONGEST_WAIT);
        let part = self.random.hash_one(self.times) % 1000;
        self.times = self.times.saturating_add(1);
        // From half of it on.
        length / 2 + length.mul_f64(part as f64 / 2000.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_bound() {
        let mut waits = Waits::default();
        let lengths: Vec<_> = (0..40).map(|_| waits.next()).collect();
        for (at, length) in lengths.iter().enumerate() {
            let full = FIRST_WAIT.saturating_mul(1 << at.min(16)).min(LONGEST_WAIT);
            assert!((full / 2..=full).contains(length), "{at}: {length:?}");
        }
        assert!(lengths[39] >= LONGEST_WAIT / 2);
    }

    #[test]
    fn rows_are_settled_up_to_the_first_that_is_open() {
        let mut progress = Progress::new(5);
        let settled = |progress: &mut Progress| {
            let mut told = None;
            progress.settle(|rows, refused| told = Some((rows, refused)));
            told
        };
        assert_eq!(progress.next(), Some(vec![0, 1, 2, 3, 4]));
        for at in [0, 3, 4] {
            progress.set(at, Fate::Delivered);
        }
        assert_eq!(settled(&mut progress), Some((0..1, 0)));
        assert_eq!(progress.next(), Some(vec![1, 2]));
        progress.shrink(2);
        assert_eq!(progress.next(), Some(vec![1]));
        progress.set(1, Fate::Refused);
        progress.grow();
        assert_eq!(settled(&mut progress), Some((1..2, 1)));
        progress.set(2, Fate::Delivered);
        assert_eq!(settled(&mut progress), Some((2..5, 0)));
        assert_eq!((progress.next(), settled(&mut progress)), (None, None));
    }

    /// Answers by a list, and tells which numbers of rows it was sent.
    struct Scripted(std::collections::VecDeque<Answer>, std::sync::mpsc::Sender<(u64, Vec<u64>)>);

    impl Receiver for Scripted {
        fn send(&mut self, rows: &[Row<'_>]) -> Answer {
            assert!(rows.iter().all(|row| row.identity.run == "a"));
            let sent = rows.iter().map(|row| row.seq).collect();
            // What a process would find that came now.
            let folder =
                std::env::temp_dir().join(format!("netsniff-sender-{}", std::process::id()));
            let copy = folder.with_extension("copy");
            let _ = std::fs::remove_dir_all(&copy);
            std::fs::create_dir(&copy).unwrap();
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                std::fs::copy(&path, copy.join(path.file_name().unwrap())).unwrap();
            }
            let found =
                Spool::open(&copy, crate::spool::LEAST_BYTES, "copy").unwrap().books().found;
            std::fs::remove_dir_all(copy).unwrap();
            self.1.send((found, sent)).unwrap();
            self.0.pop_front().unwrap()
        }
    }

    #[test]
    fn a_row_leaves_the_spool_once_its_receiver_has_answered_and_each_is_in_the_books() {
        let folder = std::env::temp_dir().join(format!("netsniff-sender-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        let spool = Spool::open(&folder, crate::spool::LEAST_BYTES, "target").unwrap();
        let identity = crate::Identity::new("s", "a").unwrap();
        let refuse = crate::OnFull::Refuse;
        let mut rows = crate::spool::Appender::new(Arc::clone(&spool), &identity, refuse);
        (0..6).for_each(|seq| rows.row("dns", seq, 5, b"{}").unwrap());
        rows.finish().unwrap();
        let no = || RowAnswer::Refused("bad".to_owned());
        let later = || RowAnswer::Later("full".to_owned());
        let yes = || RowAnswer::Accepted;
        let answers = [
            Answer::later("away"),
            Answer::Each(vec![yes(), no(), later(), yes(), yes(), yes()]),
            Answer::Accepted,
        ];
        let (tell, told) = std::sync::mpsc::channel();
        let receiver = Box::new(Scripted(answers.into(), tell));
        let bounds = BatchBounds { rows: 10, bytes: 4096, linger: Duration::ZERO };
        Sender::new(Arc::clone(&spool), receiver, bounds, "target".to_owned()).run();
        let all = vec![0, 1, 2, 3, 4, 5];
        let expected = [(6, all.clone()), (6, all), (4, vec![2])];
        assert_eq!(told.try_iter().collect::<Vec<_>>(), expected);
        let books = spool.books();
        assert_eq!((books.made, books.delivered, books.refused_by_receiver), (6, 5, 1));
        assert_eq!((books.spooled, books.batches, books.retried, books.refused_kept), (0, 3, 2, 1));
        std::fs::remove_dir_all(folder).unwrap();
    }
}
