//! Wanted packets of a capture, by their numbers, in little more memory than they take in an index.

use core::cmp::Reverse;
use std::collections::BinaryHeap;

use super::format::{put, take};

/// The packets of chosen connections.
#[derive(Debug, Default)]
pub struct Wanted {
    /// The numbers of each connection, as an index has them, one connection behind the other.
    bytes: Vec<u8>,
    /// Names of connections, and where their numbers end. One may stand there several times.
    flows: Vec<(u128, u64)>,
    /// The last number of the last connection.
    last: u64,
}

/// Where the next number of a connection is: that number, the connection, and what follows.
type Next = Reverse<(u64, u32, u64)>;

/// Goes through wanted packets in the order of their numbers.
#[derive(Debug)]
pub struct InOrder {
    next: BinaryHeap<Next>,
}

impl Wanted {
    /// Begins a connection.
    pub(super) fn begin(&mut self, name: u128) {
        self.flows.push((name, self.bytes.len() as u64));
        self.last = 0;
    }

    /// Adds a packet to the connection that was begun last. Returns `false` where its number is not above those before.
    pub(super) fn push(&mut self, number: u64) -> bool {
        let Some((_, end)) = self.flows.last_mut() else { return false };
        if number <= self.last {
            return false;
        }
        put(number - self.last, &mut self.bytes);
        *end = self.bytes.len() as u64;
        self.last = number;
        true
    }

    /// Adds the packets of others.
    pub fn append(&mut self, others: &Self) {
        let before = self.bytes.len() as u64;
        self.bytes.extend(&others.bytes);
        self.flows.extend(others.flows.iter().map(|(name, end)| (*name, before + end)));
    }

    /// The names of the connections.
    pub fn names(&self) -> impl Iterator<Item = u128> {
        self.flows.iter().map(|(name, _)| *name)
    }

    /// Bytes of memory that they take, with going through them.
    #[must_use]
    pub const fn memory(&self) -> usize {
        self.bytes.len() + self.flows.len() * size_of::<((u128, u64), Next)>()
    }

    /// Goes through them from the begin on.
    #[must_use]
    pub fn in_order(&self) -> InOrder {
        let mut begin = 0;
        let mut next = Vec::with_capacity(self.flows.len());
        for (flow, (_, end)) in (0..).zip(&self.flows) {
            next.extend(self.number(flow, 0, begin));
            begin = *end;
        }
        InOrder { next: next.into() }
    }

    /// The number behind `last` of a connection, at this place.
    fn number(&self, flow: u32, last: u64, at: u64) -> Option<Next> {
        let (_, end) = self.flows.get(flow as usize)?;
        let mut at = usize::try_from(at).ok()?;
        let numbers = self.bytes.get(..usize::try_from(*end).ok()?)?;
        let number = last.saturating_add(take(numbers, &mut at)?);
        Some(Reverse((number, flow, at as u64)))
    }
}

impl InOrder {
    /// The next packet with its connection; at equal numbers, connections come as they stand in the index. `wanted` is
    /// that which this goes through.
    pub fn next(&mut self, wanted: &Wanted) -> Option<(u64, u128)> {
        let mut top = self.next.peek_mut()?;
        let Reverse((number, flow, at)) = *top;
        match wanted.number(flow, number, at) {
            Some(next) => *top = next,
            None => drop(std::collections::binary_heap::PeekMut::pop(top)),
        }
        wanted.flows.get(flow as usize).map(|(name, _)| (number, *name))
    }

    /// As [`Self::next`], if its number is not above this one.
    pub(super) fn next_up_to(&mut self, number: u64, wanted: &Wanted) -> Option<u128> {
        let Reverse((next, ..)) = self.next.peek()?;
        if *next > number {
            return None;
        }
        self.next(wanted).map(|(_, name)| name)
    }

    /// Whether there is no further one.
    #[must_use]
    pub fn is_at_end(&self) -> bool {
        self.next.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(flows: &[(u128, &[u64])]) -> Wanted {
        let mut wanted = Wanted::default();
        for (name, numbers) in flows {
            wanted.begin(*name);
            assert!(numbers.iter().all(|number| wanted.push(*number)));
        }
        wanted
    }

    fn all(wanted: &Wanted) -> Vec<(u64, u128)> {
        let mut order = wanted.in_order();
        core::iter::from_fn(|| order.next(wanted)).collect()
    }

    #[test]
    fn packets_come_by_their_numbers_and_then_as_connections_stand() {
        let mut some = wanted(&[(7, &[1, 2, 1 << 40]), (9, &[]), (3, &[2, 500])]);
        some.append(&wanted(&[(7, &[3]), (1, &[2, u64::MAX])]));
        let end = (u64::MAX, 1);
        assert_eq!(
            all(&some),
            [(1, 7), (2, 7), (2, 3), (2, 1), (3, 7), (500, 3), (1 << 40, 7), end]
        );
        assert!(some.names().eq([7, 9, 3, 7, 1]));
        let mut order = some.in_order();
        assert_eq!(order.next_up_to(0, &some), None);
        assert_eq!(order.next_up_to(1, &some), Some(7));
        assert!(!order.is_at_end() && Wanted::default().in_order().is_at_end());
    }

    /// A number twice would let an index make many of one packet.
    #[test]
    fn numbers_of_a_connection_rise() {
        let mut some = wanted(&[(7, &[5])]);
        assert!(!some.push(5) && !some.push(4) && some.push(6));
        assert!(!Wanted::default().push(1) && !wanted(&[(7, &[])]).push(0));
    }

    #[test]
    fn a_million_packets_of_a_connection_take_a_megabyte() {
        let numbers: Vec<_> = (1..=1_000_000).map(|it| it * 3).collect();
        let some = wanted(&[(7, &numbers)]);
        assert!(some.memory() < 1_000_100 && some.bytes.capacity() < 2_100_000);
        assert!(all(&some).iter().map(|(number, _)| *number).eq(numbers));
    }
}
