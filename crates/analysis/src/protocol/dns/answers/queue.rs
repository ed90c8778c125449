//! A queue whose elements have numbers, in pieces of memory that are never moved.

use std::collections::VecDeque;

/// Elements of a piece: what a queue has room for beyond what it holds.
const PIECE: usize = 1024;

/// Elements in the order in which they came, each with a number counted from the first one ever.
///
/// One array would double, and then hold twice what is needed, and three times while it is moved.
#[derive(Debug)]
pub(super) struct Numbered<T> {
    /// All but the first and the last are full.
    pieces: VecDeque<VecDeque<T>>,
    len: usize,
    first: u64,
}

impl<T> Numbered<T> {
    /// Nothing came yet.
    pub(super) const fn new() -> Self {
        Self { pieces: VecDeque::new(), len: 0, first: 0 }
    }

    /// How many there are.
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// The number that the next one gets.
    pub(super) const fn next(&self) -> u64 {
        self.first + self.len as u64
    }

    /// Adds one, with the number [`Self::next`].
    pub(super) fn push(&mut self, element: T) {
        if self.pieces.back().is_none_or(|piece| piece.len() >= PIECE) {
            self.pieces.push_back(VecDeque::with_capacity(PIECE));
        }
        if let Some(piece) = self.pieces.back_mut() {
            piece.push_back(element);
            self.len += 1;
        }
    }

    /// Takes out the first, with its number.
    pub(super) fn pop(&mut self) -> Option<(u64, T)> {
        let piece = self.pieces.front_mut()?;
        let element = piece.pop_front()?;
        if piece.is_empty() {
            self.pieces.pop_front();
        }
        let number = self.first;
        self.first += 1;
        self.len -= 1;
        Some((number, element))
    }

    /// The one with this number, if it is there.
    pub(super) fn get(&self, number: u64) -> Option<&T> {
        let at = usize::try_from(number.checked_sub(self.first)?).ok()?;
        let of_first = self.pieces.front()?.len();
        let Some(behind) = at.checked_sub(of_first) else { return self.pieces.front()?.get(at) };
        self.pieces.get(1 + behind / PIECE)?.get(behind % PIECE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_found_by_their_numbers() {
        let mut queue = Numbered::new();
        let most = 5 * PIECE as u64 / 2;
        for number in 0..4 * most {
            assert_eq!(queue.next(), number);
            queue.push(number);
            if queue.len() as u64 > most {
                assert_eq!(queue.pop(), Some((number - most, number - most)));
            }
            let first = (number + 1).saturating_sub(most);
            for known in [first, first + 1, first + most / 2, number] {
                assert_eq!(queue.get(known).copied(), (known <= number).then_some(known));
            }
            assert_eq!(queue.get(number + 1), None);
            assert_eq!(first.checked_sub(1).and_then(|gone| queue.get(gone)), None);
        }
        while queue.pop().is_some() {}
        assert_eq!((queue.len(), queue.next(), queue.get(0)), (0, 4 * most, None));
    }
}
