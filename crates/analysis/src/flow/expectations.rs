//! Connections that other connections announced: which protocol they will be of.

use std::collections::VecDeque;

use hashbrown::HashMap;
use netsniff_packet::{Address, Timestamp};

use crate::key::{Endpoint, FlowKey};
use crate::limits::Limits;
use crate::protocol::{Announcement, ExpectedTransfer};

/// From where to where a connection will go. The port that it comes from is never known before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Route {
    /// The originator's address.
    pub from: Address,
    /// The responder.
    pub to: Endpoint,
}

/// Connections of one worker that were announced and did not begin yet.
#[derive(Debug, Default)]
pub struct Expectations {
    announced: HashMap<Route, (Timestamp, Announcement)>,
    /// What was announced, by when it is too late: in order, since all wait for the same time. What
    /// began, or was announced again, stays here until then.
    deadlines: VecDeque<(Timestamp, Route)>,
    /// Bytes of the names of files that they carry.
    name_bytes: usize,
}

/// Bytes of one that is awaited, with what both sessions share. Both collections have room for up to
/// twice what they hold.
const BYTES: usize =
    2 * size_of::<(Route, (Timestamp, Announcement))>() + size_of::<ExpectedTransfer>();
/// The same for its deadline.
const DEADLINE_BYTES: usize = 2 * size_of::<(Timestamp, Route)>();

impl Expectations {
    /// Whether none is awaited.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.announced.is_empty()
    }

    /// Whether none is awaited at `now` or later.
    #[must_use]
    pub fn are_over(&self, now: Timestamp) -> bool {
        self.is_empty() || self.deadlines.back().is_none_or(|(deadline, _)| *deadline <= now)
    }

    /// Whether `is_it` says so of the pair of hosts of a connection that is awaited up to a time.
    pub fn remembers(&self, is_it: &mut impl FnMut(u64, Timestamp) -> bool) -> bool {
        self.announced.iter().any(|(route, (deadline, _))| {
            is_it(FlowKey::pair(route.from, route.to.address), *deadline)
        })
    }

    /// Awaits what `other` awaits, too, between hosts of which nothing is remembered: what is awaited between them here is
    /// over.
    pub fn go_on_for(&mut self, other: Self) {
        for (route, announced) in other.announced {
            self.remove(&route);
            self.announced.insert(route, announced);
        }
        self.deadlines.extend(other.deadlines);
        self.deadlines.make_contiguous().sort_by_key(|(deadline, _)| *deadline);
        self.name_bytes += other.name_bytes;
    }

    /// Bytes that all of them take.
    #[must_use]
    #[inline]
    pub fn heap_bytes(&self) -> usize {
        self.announced.len() * BYTES + self.deadlines.len() * DEADLINE_BYTES + self.name_bytes
    }

    /// Awaits a connection from `now` on. Returns whether there was room; else the oldest is given
    /// up for it.
    pub fn add(
        &mut self,
        route: Route,
        announced: Announcement,
        now: Timestamp,
        limits: &Limits,
    ) -> bool {
        self.forget(|deadline| deadline <= now);
        let has_room = self.deadlines.len() < limits.expectations;
        if !has_room && let Some(&(oldest, _)) = self.deadlines.front() {
            self.forget_one(oldest);
        }
        let deadline = now + limits.expectation_timeout;
        self.remove(&route);
        self.name_bytes += announced.errand.name_bytes();
        self.announced.insert(route, (deadline, announced));
        self.deadlines.push_back((deadline, route));
        has_room
    }

    /// What was announced of a connection that begins `now`.
    pub fn take(&mut self, route: &Route, now: Timestamp) -> Option<Announcement> {
        let (deadline, announced) = self.remove(route)?;
        (now < deadline).then_some(announced)
    }

    fn remove(&mut self, route: &Route) -> Option<(Timestamp, Announcement)> {
        let removed = self.announced.remove(route)?;
        self.name_bytes -= removed.1.errand.name_bytes();
        Some(removed)
    }

    fn forget(&mut self, is_over: impl Fn(Timestamp) -> bool) {
        while let Some(&(deadline, _)) = self.deadlines.front()
            && is_over(deadline)
        {
            self.forget_one(deadline);
        }
    }

    /// Forgets the first, unless it was announced again since.
    fn forget_one(&mut self, deadline: Timestamp) {
        let Some((_, route)) = self.deadlines.pop_front() else { return };
        if self.announced.get(&route).is_some_and(|(current, _)| *current == deadline) {
            self.remove(&route);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(port: u16) -> Route {
        let address = Address::from_v4([192, 0, 2, 1]);
        Route { from: address, to: Endpoint { address, port } }
    }

    fn announced() -> Announcement {
        Announcement { protocol: "ftp-data", errand: Default::default() }
    }

    const AT: fn(i64) -> Timestamp = |seconds| Timestamp::from_nanos(seconds * 1_000_000_000);

    #[test]
    fn what_was_announced_comes_once_and_in_time() {
        let limits = Limits::default();
        let mut expectations = Expectations::default();
        assert!(expectations.add(route(1), announced(), AT(0), &limits));
        assert!(expectations.take(&route(2), AT(1)).is_none());
        assert!(expectations.take(&route(1), AT(1)).is_some());
        assert!(expectations.take(&route(1), AT(1)).is_none());
        assert!(expectations.add(route(1), announced(), AT(0), &limits));
        assert!(expectations.take(&route(1), AT(300)).is_none());
        assert!(expectations.is_empty());
    }

    #[test]
    fn the_oldest_is_given_up_for_one_too_many() {
        let limits = Limits { expectations: 2, ..Limits::default() };
        let mut expectations = Expectations::default();
        assert!(expectations.add(route(1), announced(), AT(0), &limits));
        assert!(expectations.add(route(2), announced(), AT(1), &limits));
        assert!(!expectations.add(route(3), announced(), AT(2), &limits));
        assert!(expectations.take(&route(1), AT(3)).is_none());
        assert!(expectations.take(&route(2), AT(3)).is_some());
        // What is too old makes room by itself.
        assert!(expectations.add(route(4), announced(), AT(400), &limits));
        assert!(expectations.take(&route(3), AT(400)).is_none());
    }

    #[test]
    fn its_bytes_come_and_go() {
        let limits = Limits::default();
        let mut expectations = Expectations::default();
        let named = |len: usize| {
            let filename = Some(vec![b'x'; len].into_boxed_slice());
            Announcement {
                errand: ExpectedTransfer { filename, ..ExpectedTransfer::default() }.into(),
                ..announced()
            }
        };
        expectations.add(route(1), named(100), AT(0), &limits);
        assert_eq!(expectations.heap_bytes(), BYTES + DEADLINE_BYTES + 100);
        expectations.add(route(1), named(30), AT(0), &limits);
        expectations.add(route(2), named(5), AT(0), &limits);
        assert_eq!(expectations.heap_bytes(), 2 * BYTES + 3 * DEADLINE_BYTES + 35);
        expectations.take(&route(1), AT(1));
        assert_eq!(expectations.heap_bytes(), BYTES + 3 * DEADLINE_BYTES + 5);
        expectations.add(route(3), announced(), AT(400), &limits);
        assert_eq!(expectations.heap_bytes(), BYTES + DEADLINE_BYTES);
    }

    #[test]
    fn what_is_over_gives_its_bytes_back_to_another() {
        let limits = Limits::default();
        let named = |len: usize| {
            let filename = Some(vec![b'x'; len].into_boxed_slice());
            let transfer = ExpectedTransfer { filename, ..ExpectedTransfer::default() };
            Announcement { errand: transfer.into(), ..announced() }
        };
        let (mut one, mut other) = (Expectations::default(), Expectations::default());
        one.add(route(1), named(100), AT(0), &limits);
        other.add(route(1), named(30), AT(500), &limits);
        one.go_on_for(other);
        assert_eq!(one.heap_bytes(), BYTES + 2 * DEADLINE_BYTES + 30);
        assert!(one.take(&route(1), AT(501)).is_some());
        assert_eq!(one.heap_bytes(), 2 * DEADLINE_BYTES);
    }

    #[test]
    fn what_is_announced_again_counts_anew() {
        let limits = Limits { expectations: 2, ..Limits::default() };
        let mut expectations = Expectations::default();
        assert!(expectations.add(route(1), announced(), AT(0), &limits));
        assert!(expectations.add(route(1), announced(), AT(200), &limits));
        assert!(expectations.add(route(2), announced(), AT(400), &limits));
        assert!(expectations.take(&route(1), AT(450)).is_some());
    }
}
