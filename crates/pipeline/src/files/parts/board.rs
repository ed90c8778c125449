//! What carrier and threads share: which parts are analysed by themselves, by whom, and what came of them.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use anyhow::bail;
use netsniff_analysis::ingress::boundary::{Boundary, Remembered};
use netsniff_packet::Timestamp;
use netsniff_pcapfile::Head;

use super::apart::Apart;
use super::plan::{Claim, Part, Parts, State, Work};
use super::{Jobs, OpenPart};

/// The most pairs that are remembered at once. Where there are more, parts are analysed without a plan.
const REMEMBERED: usize = 1 << 20;
/// Bytes that each of them takes, in a table that has room for as many again.
const REMEMBERED_BYTES: usize = 48;
/// One of so many parts of what may wait in one part of the input is for them.
const REMEMBERED_SHARE: usize = 4;

/// What carrier and threads share.
pub(super) struct Board<P: OpenPart> {
    jobs: Jobs,
    parts: Mutex<Parts<P>>,
    changed: Condvar,
}

impl<P: OpenPart> Board<P> {
    /// No part is known.
    pub(super) fn new(jobs: Jobs) -> Self {
        Self { jobs, parts: Mutex::default(), changed: Condvar::new() }
    }

    /// Bytes that may wait in one part.
    pub(super) const fn waiting_bytes(&self) -> usize {
        self.jobs.waiting_bytes
    }

    /// Lets threads begin with parts of a capture that began at `begun`.
    pub(super) fn begin(&self, heads: &[Head], passed: usize, begun: Timestamp) {
        let remembered = self.nothing_remembered();
        self.change(|parts| parts.begin(heads, passed, begun, remembered));
    }

    /// No pair is remembered, and there is room for so many as a plan may have.
    pub(super) fn nothing_remembered(&self) -> Remembered {
        Remembered::new(
            (self.waiting_bytes() / REMEMBERED_SHARE / REMEMBERED_BYTES).min(REMEMBERED),
        )
    }

    /// What to do next, once there is something; `None` when there will be nothing.
    pub(super) fn claim(&self) -> Option<Work> {
        let mut parts = self.lock();
        while !parts.is_stopped {
            if let Some(work) = parts.claim(self.most()) {
                return Some(work);
            }
            parts = self.changed.wait(parts).unwrap_or_else(PoisonError::into_inner);
        }
        None
    }

    /// Engines that may hold flows of parts before their turn.
    const fn most(&self) -> usize {
        self.jobs.engines() - 2
    }

    /// Whether the carrier may still take over what comes of a claim.
    pub(super) fn is_wanted(&self, claim: &Claim) -> bool {
        let parts = self.lock();
        !parts.is_stopped && parts.first < claim.number as usize
    }

    /// The carrier goes on behind a part and all that begin before it. What came of them is forgotten.
    pub(super) fn pass(&self, part: usize) {
        self.change(|parts| {
            if let Some(at) = parts.place(part) {
                parts.pass(at);
            }
        });
    }

    /// Whether pairs of hosts are looked up before parts are analysed.
    pub(super) fn is_planned(&self) -> bool {
        let parts = self.lock();
        parts.is_planned() && !parts.is_stopped
    }

    /// From this part on pairs go on that were there before: [`Parts::plan`].
    pub(super) fn plan(&self, part: usize, remembered: Remembered, own: Option<Arc<Boundary>>) {
        self.change(|parts| {
            if let Some(at) = parts.place(part) {
                parts.plan(at, remembered, own);
            }
        });
    }

    /// Nothing goes on from one part to the next any more.
    pub(super) fn end_plan(&self) {
        self.change(Parts::end_plan);
    }

    /// What came of a part, once that is known; `None` where nobody has begun with it. While another thread
    /// analyses it, `work_on` is called for others.
    pub(super) fn take(
        &self,
        part: usize,
        work_on: impl Fn(&Work),
    ) -> anyhow::Result<Option<Box<Apart<P>>>> {
        let mut parts = self.lock();
        loop {
            if parts.has_panicked {
                bail!("a worker panicked");
            }
            let Some(of) = parts.all.iter_mut().find(|of| of.part == part) else {
                return Ok(None);
            };
            match &mut of.state {
                State::Waiting | State::Passed => return Ok(None),
                State::Done(apart) => return Ok(apart.take()),
                State::Begun => {}
            }
            if let Some(work) = parts.claim(self.most()) {
                drop(parts);
                work_on(&work);
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

    /// Watches over some work.
    pub(super) const fn watch(&self) -> Watch<'_, P> {
        Watch { board: self, is_done: false }
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

/// Tells the board what came of some work, and should the thread with it panic.
pub(super) struct Watch<'a, P: OpenPart> {
    board: &'a Board<P>,
    is_done: bool,
}

impl<P: OpenPart> Watch<'_, P> {
    /// This came of the analysis of a part.
    pub(super) fn analysed(mut self, claim: &Claim, apart: Option<Apart<P>>) {
        self.is_done = true;
        self.board.change(|parts| match parts.all.get_mut(claim.number as usize - 1) {
            Some(Part { state: state @ State::Begun, .. }) => {
                *state = State::Done(apart.map(Box::new));
            }
            _ => parts.in_vain += apart.map_or(0, |apart| apart.bytes),
        });
    }

    /// These pairs of hosts were found in a part.
    pub(super) fn scanned(mut self, claim: &Claim, boundary: Option<Boundary>) {
        self.is_done = true;
        self.board.change(|parts| parts.scanned(claim, boundary));
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
