//! What is to be done with which part next.
//!
//! The pairs of hosts of parts are looked up before they are analysed, and those that were there a while before are left to
//! the carrier. Once a part has none, parts are analysed whole, until again something goes on from one to the next.

use std::collections::BTreeMap;
use std::sync::Arc;

use netsniff_analysis::ingress::boundary::{Boundary, Crossing, Remembered};
use netsniff_packet::Timestamp;
use netsniff_pcapfile::Head;

use super::OpenPart;
use super::apart::Apart;

/// What a thread does next.
pub(super) enum Work {
    /// Analyse a part.
    Analyse(Claim),
    /// Find out which pairs of hosts a part has.
    Scan(Claim),
}

/// A part of which a thread does something.
#[derive(Clone, Debug)]
pub(super) struct Claim {
    /// Which part of the source.
    pub(super) part: usize,
    /// Which in the order in which parts begin, from 1.
    pub(super) number: u32,
    /// When the capture began.
    pub(super) begun: Timestamp,
    /// Which pairs of hosts are left to the carrier, if that was planned.
    pub(super) choice: Option<Choice>,
}

/// Which pairs of hosts of a part are left to the carrier.
#[derive(Clone, Debug)]
pub(super) struct Choice {
    /// All that it has.
    pub(super) boundary: Arc<Boundary>,
    /// Those that were there a while before it.
    pub(super) crossing: Arc<Crossing>,
}

/// What became of a part so far.
pub(super) enum State<P: OpenPart> {
    /// Nobody has begun with it.
    Waiting,
    /// A thread analyses it.
    Begun,
    /// It was analysed, if it could be.
    Done(Option<Box<Apart<P>>>),
    /// It is read in order, or was taken.
    Passed,
}

/// A part, and what is known of it.
pub(super) struct Part<P: OpenPart> {
    /// Which part of the source.
    pub(super) part: usize,
    pub(super) state: State<P>,
    choice: Option<Choice>,
}

/// Which pairs go on, from a part on.
struct Plan {
    /// The pairs of all parts before `next`.
    remembered: Remembered,
    /// The part that is planned next, in the order in which parts begin.
    next: usize,
    /// Parts from `next` on whose pairs are looked up, with those that were found.
    scans: BTreeMap<usize, Option<Arc<Boundary>>>,
}

impl Plan {
    fn from(next: usize, remembered: Remembered) -> Self {
        Self { remembered, next, scans: BTreeMap::new() }
    }
}

/// All parts, in the order in which they begin.
pub(super) struct Parts<P: OpenPart> {
    /// When the capture began, once that is known.
    begun: Option<Timestamp>,
    pub(super) all: Vec<Part<P>>,
    /// Those before it are passed.
    pub(super) first: usize,
    plan: Option<Plan>,
    pub(super) is_stopped: bool,
    pub(super) has_panicked: bool,
    /// Bytes that were analysed in vain.
    pub(super) in_vain: u64,
}

impl<P: OpenPart> Default for Parts<P> {
    fn default() -> Self {
        Self {
            begun: None,
            all: Vec::new(),
            first: 0,
            plan: None,
            is_stopped: false,
            has_panicked: false,
            in_vain: 0,
        }
    }
}

impl<P: OpenPart> Parts<P> {
    /// The capture began at `begun`. It has these parts, of which the carrier has begun with the first `passed`.
    /// Of the pairs before it none is `remembered`.
    pub(super) fn begin(
        &mut self,
        heads: &[Head],
        passed: usize,
        begun: Timestamp,
        remembered: Remembered,
    ) {
        self.begun = Some(begun);
        let part = |head: &Head| Part { part: head.input, state: State::Waiting, choice: None };
        self.all = heads.iter().map(part).collect();
        self.all.iter_mut().take(passed).for_each(|part| part.state = State::Passed);
        self.first = passed;
        if passed < heads.len() {
            self.plan = Some(Plan::from(0, remembered));
        }
    }

    /// Where a part stands in the order.
    pub(super) fn place(&self, part: usize) -> Option<usize> {
        self.all.iter().position(|of| of.part == part)
    }

    /// What is to be done next, if so many engines may hold flows.
    pub(super) fn claim(&mut self, most: usize) -> Option<Work> {
        let begun = self.begun?;
        self.claim_analysis(begun, most).or_else(|| self.claim_scan(begun, most))
    }

    /// The next part that nobody has begun with; where there is a plan, the next one that was planned.
    fn claim_analysis(&mut self, begun: Timestamp, most: usize) -> Option<Work> {
        let held = |part: &Part<P>| matches!(part.state, State::Begun | State::Done(Some(_)));
        if self.all.iter().skip(self.first).filter(|part| held(part)).count() >= most {
            return None;
        }
        let is_planned = self.plan.is_some();
        // The part at hand is the carrier's.
        let mut all = self.all.iter_mut().enumerate().skip(self.first);
        let (at, part) = all.find(|(_, part)| {
            matches!(part.state, State::Waiting) && (part.choice.is_some() || !is_planned)
        })?;
        part.state = State::Begun;
        let (number, choice) = (u32::try_from(at + 1).ok()?, part.choice.clone());
        Some(Work::Analyse(Claim { part: part.part, number, begun, choice }))
    }

    /// The next part whose pairs are to be looked up, not too far ahead.
    fn claim_scan(&mut self, begun: Timestamp, most: usize) -> Option<Work> {
        let end = (self.first + most + 1).min(self.all.len());
        let plan = self.plan.as_mut()?;
        let at = (plan.next..end).find(|at| !plan.scans.contains_key(at))?;
        plan.scans.insert(at, None);
        let part = self.all.get(at)?.part;
        let number = u32::try_from(at + 1).ok()?;
        Some(Work::Scan(Claim { part, number, begun, choice: None }))
    }

    /// Whether pairs are looked up before parts are analysed.
    pub(super) const fn is_planned(&self) -> bool {
        self.plan.is_some()
    }

    /// Looks up pairs from a part on, before which some are `remembered`. Those of the part itself may be known. Parts that
    /// were analysed without a plan are analysed anew.
    pub(super) fn plan(&mut self, at: usize, remembered: Remembered, own: Option<Arc<Boundary>>) {
        let mut plan = Plan::from(at, remembered);
        plan.scans.extend(own.map(|own| (at, Some(own))));
        for (at, part) in self.all.iter_mut().enumerate().skip(self.first) {
            if let State::Done(Some(apart)) = &part.state
                && let Some(boundary) = &apart.boundary
                && part.choice.is_none()
            {
                plan.scans.insert(at, Some(Arc::clone(boundary)));
                self.in_vain += apart.bytes;
                part.state = State::Waiting;
            }
        }
        self.plan = Some(plan);
        self.go_on_planning();
    }

    /// Nothing goes on from one part to the next any more.
    pub(super) fn end_plan(&mut self) {
        self.plan = None;
    }

    /// Takes the pairs of a part that were looked up. Where they could not be, nothing more is planned.
    pub(super) fn scanned(&mut self, claim: &Claim, boundary: Option<Boundary>) {
        let at = claim.number as usize - 1;
        let Some(plan) = &mut self.plan else { return };
        match (plan.scans.get_mut(&at), boundary) {
            (Some(scan), Some(boundary)) => *scan = Some(Arc::new(boundary)),
            // Of an earlier plan.
            (None, _) => return,
            (Some(_), None) => self.plan = None,
        }
        self.go_on_planning();
    }

    fn go_on_planning(&mut self) {
        let Some(plan) = &mut self.plan else { return };
        while let Some(Some(boundary)) = plan.scans.get(&plan.next).cloned() {
            let crossing = Arc::new(boundary.crossing(&plan.remembered));
            plan.remembered.go_on_behind(&boundary);
            if let Some(part) = self.all.get_mut(plan.next)
                && matches!(part.state, State::Waiting)
            {
                part.choice = Some(Choice { boundary, crossing });
            }
            plan.scans.remove(&plan.next);
            plan.next += 1;
            if !plan.remembered.is_whole() {
                self.plan = None;
                return;
            }
        }
    }

    /// The parts up to this one are behind the carrier. What came of them is forgotten.
    pub(super) fn pass(&mut self, at: usize) {
        for part in self.all.iter_mut().take(at + 1).skip(self.first) {
            part.choice = None;
            if let State::Done(Some(apart)) = core::mem::replace(&mut part.state, State::Passed) {
                self.in_vain += apart.bytes;
            }
        }
        self.first = self.first.max(at + 1);
    }
}
