//! The mails of one connection: the one whose commands come, and those that wait for their final
//! replies.

use std::collections::VecDeque;

use netsniff_packet::Timestamp;

use super::transaction::Transaction;
use crate::protocol::Findings;
use crate::protocol::syntax::sasl::LogIn;

/// Mails that may wait for their final replies: clients that do not wait send few ahead.
const MAX_WAITING: usize = 32;

/// Mails whose rows are not written yet.
#[derive(Debug, Default)]
pub(super) struct Transactions {
    current: Option<Box<Transaction>>,
    waiting: VecDeque<Box<Transaction>>,
    /// Mails that were replied to.
    done: u32,
    helo: Option<Box<[u8]>>,
    log_in: LogIn,
}

impl Transactions {
    /// The mail whose commands come; it begins at `time` unless it has begun.
    pub(super) fn current(&mut self, time: Timestamp) -> &mut Transaction {
        let ahead = u32::try_from(self.waiting.len()).unwrap_or(u32::MAX);
        let depth = self.done.saturating_add(ahead).saturating_add(1);
        self.current.get_or_insert_with(|| {
            Box::new(Transaction::new(time, depth, self.helo.as_deref(), &self.log_in))
        })
    }

    /// Takes what the client calls itself.
    pub(super) fn hello(&mut self, time: Timestamp, name: &[u8]) {
        self.helo = Some(name.into());
        self.current(time).hello(name);
    }

    /// Takes what the client does to log in, or what becomes of it.
    pub(super) fn log_in(&mut self, time: Timestamp, step: impl FnOnce(&mut LogIn)) {
        step(&mut self.log_in);
        if self.log_in.is_begun() {
            let log_in = self.log_in.clone();
            self.current(time).log_in = log_in;
        }
    }

    /// Begins a mail with the argument of MAIL. One before it whose end was not seen is told.
    pub(super) fn mail(&mut self, time: Timestamp, argument: &[u8], found: &mut Findings) {
        match self.current.take() {
            Some(last) if last.is_begun && last.is_sent && !last.is_given_up => {
                self.waiting.push_back(last);
            }
            Some(last) if last.is_begun => {
                self.done = self.done.saturating_add(u32::from(last.is_sent));
                report(last, found);
            }
            unused => self.current = unused,
        }
        while self.waiting.len() > MAX_WAITING {
            self.accept(found);
        }
        self.current(time).sender(argument);
    }

    /// Learns that the current mail was sent completely.
    pub(super) fn sent(&mut self, time: Timestamp) {
        self.current(time).is_sent = true;
    }

    /// Takes a reply to the oldest command without one.
    pub(super) fn reply(&mut self, time: Timestamp, code: u16, text: &[u8]) {
        match self.waiting.front_mut() {
            Some(waiting) => waiting.reply(code, text),
            None => self.current(time).reply(code, text),
        }
    }

    /// Learns that the last reply was the final one of a mail.
    pub(super) fn finished(&mut self, time: Timestamp, found: &mut Findings) {
        if self.waiting.is_empty() {
            self.done = self.done.saturating_add(1);
            if let Some(last) = self.current.take().filter(|last| last.is_begun) {
                report(last, found);
            }
            // As in Zeek, the next one begins here.
            self.current(time);
        } else {
            self.accept(found);
        }
    }

    /// Tells the mails that wait, since their replies are missing. That of the current one may come still.
    pub(super) fn give_up_waiting(&mut self, found: &mut Findings) {
        if let Some(current) = &mut self.current {
            current.is_given_up = current.is_sent;
        }
        while !self.waiting.is_empty() {
            self.accept(found);
        }
    }

    /// Reports what is still open.
    pub(super) fn finish(&mut self, found: &mut Findings) {
        self.give_up_waiting(found);
        if let Some(last) = self.current.take().filter(|last| last.is_begun) {
            report(last, found);
        }
    }

    /// Tells the mail that has waited longest.
    fn accept(&mut self, found: &mut Findings) {
        if let Some(waiting) = self.waiting.pop_front() {
            self.done = self.done.saturating_add(1);
            report(waiting, found);
        }
    }

    /// Bytes that they hold outside this.
    pub(super) fn heap_bytes(&self) -> usize {
        self.current.iter().chain(&self.waiting).map(|it| it.heap_bytes()).sum::<usize>()
            + self.waiting.capacity() * size_of::<Box<Transaction>>()
            + self.helo.as_ref().map_or(0, |helo| helo.len())
            + self.log_in.heap_bytes()
    }
}

fn report(transaction: Box<Transaction>, found: &mut Findings) {
    found.row(transaction.into_row());
}
