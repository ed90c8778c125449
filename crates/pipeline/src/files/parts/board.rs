//! Which parts are analysed by themselves, by whom, and what came of them.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use anyhow::bail;
use netsniff_packet::Timestamp;
use netsniff_pcapfile::Head;

use super::apart::Apart;
use super::{Jobs, OpenPart};

/// A part that a thread analyses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Claim {
    /// Which part of the source.
    pub(super) part: usize,
    /// Which in the order in which parts begin, from 1.
    pub(super) number: u32,
    /// When the capture began.
    pub(super) begun: Timestamp,
}

/// What became of a part so far.
enum State<P: OpenPart> {
    /// Nobody has begun with it.
    Waiting,
    /// A thread analyses it.
    Begun,
    /// It was analysed, if it could be.
    Done(Option<Box<Apart<P>>>),
    /// It is read in order, or was taken.
    Passed,
}

struct Parts<P: OpenPart> {
    /// When the capture began, once that is known.
    begun: Option<Timestamp>,
    /// The parts in the order in which they begin.
    all: Vec<(usize, State<P>)>,
    /// Those before it are passed.
    first: usize,
    is_stopped: bool,
    has_panicked: bool,
    in_vain: u64,
}

impl<P: OpenPart> Parts<P> {
    /// The next part that nobody has begun with, if so many engines may hold flows.
    fn claim(&mut self, most: usize) -> Option<Claim> {
        let begun = self.begun?;
        let held = |state: &State<P>| matches!(state, State::Begun | State::Done(Some(_)));
        if self.all.iter().skip(self.first).filter(|(_, state)| held(state)).count() >= most {
            return None;
        }
        // The part at hand is the carrier's.
        let mut all = self.all.iter_mut().enumerate().skip(self.first);
        let (at, (part, state)) = all.find(|(_, (_, state))| matches!(state, State::Waiting))?;
        *state = State::Begun;
        Some(Claim { part: *part, number: u32::try_from(at + 1).ok()?, begun })
    }
}

/// What carrier and threads share.
pub(super) struct Board<P: OpenPart> {
    jobs: Jobs,
    parts: Mutex<Parts<P>>,
    changed: Condvar,
}

impl<P: OpenPart> Board<P> {
    /// No part is known.
    pub(super) fn new(jobs: Jobs) -> Self {
        let parts = Parts {
            begun: None,
            all: Vec::new(),
            first: 0,
            is_stopped: false,
            has_panicked: false,
            in_vain: 0,
        };
        Self { jobs, parts: Mutex::new(parts), changed: Condvar::new() }
    }

    /// Bytes that may wait in one part.
    pub(super) const fn waiting_bytes(&self) -> usize {
        self.jobs.waiting_bytes
    }

    /// Lets threads begin with parts of a capture that began at `begun`.
    pub(super) fn begin(&self, heads: &[Head], begun: Timestamp) {
        self.change(|parts| {
            parts.begun = Some(begun);
            parts.all = heads.iter().map(|head| (head.input, State::Waiting)).collect();
        });
    }

    /// A part to analyse, once there is one; `None` when there will be none.
    pub(super) fn claim(&self) -> Option<Claim> {
        let mut parts = self.lock();
        while !parts.is_stopped {
            if let Some(claim) = parts.claim(self.most()) {
                return Some(claim);
            }
            parts = self.changed.wait(parts).unwrap_or_else(PoisonError::into_inner);
        }
        None
    }

    /// Engines beside the carrier's that may hold flows.
    const fn most(&self) -> usize {
        self.jobs.engines() - 1
    }

    /// Whether the carrier may still take over what comes of a claim.
    pub(super) fn is_wanted(&self, claim: &Claim) -> bool {
        let parts = self.lock();
        !parts.is_stopped && parts.first < claim.number as usize
    }

    /// The carrier goes on behind a part and all that begin before it. What came of them is forgotten.
    pub(super) fn pass(&self, part: usize) {
        self.change(|parts| {
            let Some(at) = parts.all.iter().position(|(of, _)| *of == part) else { return };
            for (_, state) in parts.all.iter_mut().take(at + 1).skip(parts.first) {
                if let State::Done(Some(apart)) = core::mem::replace(state, State::Passed) {
                    parts.in_vain += apart.bytes;
                }
            }
            parts.first = parts.first.max(at + 1);
        });
    }

    /// What came of a part, once that is known; `None` where nobody has begun with it. While another thread
    /// analyses it, `analyse` is called for others.
    pub(super) fn take(
        &self,
        part: usize,
        analyse: impl Fn(&Claim),
    ) -> anyhow::Result<Option<Box<Apart<P>>>> {
        let mut parts = self.lock();
        loop {
            if parts.has_panicked {
                bail!("a worker panicked");
            }
            let Some((_, state)) = parts.all.iter_mut().find(|(of, _)| *of == part) else {
                return Ok(None);
            };
            match state {
                State::Waiting | State::Passed => return Ok(None),
                State::Done(apart) => return Ok(apart.take()),
                State::Begun => {}
            }
            if let Some(claim) = parts.claim(self.most()) {
                drop(parts);
                analyse(&claim);
                parts = self.lock();
            } else {
                parts = self.changed.wait(parts).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }

    /// Notes bytes that were read in vain.
    pub(super) fn note_in_vain(&self, bytes: u64) {
        self.lock().in_vain += bytes;
    }

    /// How many bytes were read in vain.
    pub(super) fn in_vain(&self) -> u64 {
        self.lock().in_vain
    }

    /// Watches over a claim.
    pub(super) const fn watch<'a>(&'a self, claim: &'a Claim) -> Watch<'a, P> {
        Watch { board: self, claim, is_done: false }
    }

    /// Lets all threads end when what is returned is dropped.
    pub(super) const fn stop_at_end(&self) -> Stop<'_, P> {
        Stop(self)
    }

    fn change(&self, how: impl FnOnce(&mut Parts<P>)) {
        how(&mut self.lock());
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Parts<P>> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tells the board should the thread with the claim panic.
pub(super) struct Watch<'a, P: OpenPart> {
    board: &'a Board<P>,
    claim: &'a Claim,
    is_done: bool,
}

impl<P: OpenPart> Watch<'_, P> {
    /// This came of the claim.
    pub(super) fn done(mut self, apart: Option<Apart<P>>) {
        self.is_done = true;
        self.board.change(|parts| match parts.all.get_mut(self.claim.number as usize - 1) {
            Some((_, state @ State::Begun)) => *state = State::Done(apart.map(Box::new)),
            _ => parts.in_vain += apart.map_or(0, |apart| apart.bytes),
        });
    }
}

impl<P: OpenPart> Drop for Watch<'_, P> {
    fn drop(&mut self) {
        if !self.is_done {
            self.board.change(|parts| parts.has_panicked = true);
        }
    }
}

/// Lets all threads end.
pub(super) struct Stop<'a, P: OpenPart>(&'a Board<P>);

impl<P: OpenPart> Drop for Stop<'_, P> {
    fn drop(&mut self) {
        self.0.change(|parts| parts.is_stopped = true);
    }
}
