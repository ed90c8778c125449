//! How much one connection may decode.
//!
//! A kilobyte can be made to fill a gigabyte, and the time that takes. What honest servers send is fifty
//! times as large as what they carry at most, over a whole connection.

use crate::limits::Limits;

/// Bytes of what is carried that are credited together, with the first of them: what a connection may
/// decode then does not depend on how its streams are cut.
pub(in crate::protocol::http) const BLOCK: u64 = 256;

/// What a connection has decoded, and what it may: of all bodies, directions and codings together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::protocol::http) struct Budget {
    carried: u64,
    decoded: u64,
    /// What may be decoded whatever was carried.
    floor: u64,
    /// What may be decoded for each byte that was carried.
    ratio: u64,
    /// The largest window, in bytes.
    window: u64,
    /// What may be decoded at this turn, whatever was carried.
    turn: u64,
    is_over: bool,
}

impl From<&Limits> for Budget {
    fn from(limits: &Limits) -> Self {
        Self {
            carried: 0,
            decoded: 0,
            floor: limits.http_decoded_bytes,
            ratio: limits.http_decoded_ratio,
            window: limits.http_window_bytes,
            turn: u64::MAX,
            is_over: false,
        }
    }
}

impl Budget {
    /// Notes that so many bytes were carried.
    pub(in crate::protocol::http) const fn carry(&mut self, len: u64) {
        self.carried = self.carried.saturating_add(len);
    }

    /// Bytes that were carried so far.
    pub(in crate::protocol::http) const fn carried(&self) -> u64 {
        self.carried
    }

    /// Notes how many that are.
    pub(in crate::protocol::http) const fn set_carried(&mut self, carried: u64) {
        self.carried = carried;
    }

    /// The largest window, in bytes.
    pub(super) const fn window(&self) -> u64 {
        self.window
    }

    /// The same with what may be decoded at this turn.
    pub(in crate::protocol::http) const fn at_turn(self, turn: u64) -> Self {
        Self { turn, ..self }
    }

    /// What is left of that.
    pub(in crate::protocol::http) const fn turn(&self) -> u64 {
        self.turn
    }

    /// Bytes that may come out, by what was carried.
    fn room(&self) -> u64 {
        let most = self.floor.saturating_add(self.carried.saturating_mul(self.ratio));
        if self.is_over { 0 } else { most.saturating_sub(self.decoded) }
    }

    /// Whether so many bytes may come out now.
    pub(super) fn allows(&self, len: u64) -> bool {
        self.room().min(self.turn) >= len
    }

    /// Notes that so many bytes came out, as far as that is allowed: how many are, and whether all.
    pub(in crate::protocol::http) fn spend(&mut self, len: usize) -> (usize, bool) {
        let room = self.room();
        self.is_over |= room < len as u64;
        let allowed = room.min(self.turn).min(len as u64);
        self.decoded += allowed;
        self.turn -= allowed;
        (allowed as usize, allowed == len as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_carried_allows_more_until_it_is_too_late() {
        let limits =
            Limits { http_decoded_bytes: 1_000, http_decoded_ratio: 10, ..Limits::default() };
        let mut budget = Budget::from(&limits);
        assert_eq!(budget.spend(900), (900, true));
        budget.carry(10);
        assert_eq!((budget.spend(200), budget.is_over), ((200, true), false));
        assert_eq!((budget.spend(1), budget.is_over), ((0, false), true));
        budget.carry(1_000_000);
        assert_eq!(budget.spend(1), (0, false), "nothing more is decoded");
    }

    #[test]
    fn a_turn_ends_nothing_but_itself() {
        let mut budget = Budget::from(&Limits::default()).at_turn(5);
        assert_eq!((budget.spend(8), budget.is_over, budget.turn()), ((5, false), false, 0));
        let mut budget = budget.at_turn(5);
        assert_eq!(budget.spend(4), (4, true));
    }
}
