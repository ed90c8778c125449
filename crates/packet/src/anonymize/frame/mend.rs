//! Checksums after a change: moved by as much as what they cover (RFC 1624), so that right ones stay
//! right and wrong ones wrong.

use super::be16;
use crate::{Address, checksum};

/// The one's complement sum of some bytes.
pub(super) fn sum(bytes: &[u8]) -> u16 {
    !checksum::compute(bytes)
}

/// The part of the pseudo-header that a change of addresses changes.
pub(super) fn addresses(source: Address, destination: Address) -> u16 {
    let words = [source, destination].map(|address| {
        let [high, low] = address.words();
        // Of an IPv4 address only its own bytes count.
        if address.is_v4() {
            u128::from(low as u32)
        } else {
            u128::from(high) << 64 | u128::from(low)
        }
    });
    let [source, destination] = words.map(u128::to_be_bytes);
    add(sum(&source), sum(&destination))
}

/// One's complement addition.
pub(super) const fn add(a: u16, b: u16) -> u16 {
    let (sum, carry) = a.overflowing_add(b);
    // A sum that has overflowed leaves room for the carry.
    sum + carry as u16
}

/// A sum as it becomes when a part of it, `before`, becomes `after`.
pub(super) const fn moved(sum: u16, before: u16, after: u16) -> u16 {
    if before == after { sum } else { add(add(sum, !before), after) }
}

/// Changes the checksum field at an offset, where there is one, as what it covers changed.
pub(super) fn mend(data: &mut [u8], at: usize, before: u16, after: u16) {
    if let Some(field) = be16(data, at)
        && before != after
    {
        let value = !moved(!field, before, after);
        data[at..at + 2].copy_from_slice(&value.to_be_bytes());
    }
}

/// As [`mend`], for a field that holds the sum of the pseudo-header for the card to complete.
pub(super) fn mend_partial(data: &mut [u8], at: usize, before: u16, after: u16) {
    if let Some(field) = be16(data, at) {
        let value = moved(field, before, after);
        data[at..at + 2].copy_from_slice(&value.to_be_bytes());
    }
}

/// As [`mend`], for UDP: 0 says that there is none, and what is computed as 0 is sent as its
/// equal (RFC 768).
pub(super) fn mend_udp(data: &mut [u8], at: usize, before: u16, after: u16) {
    if be16(data, at).is_none_or(|field| field == 0) {
        return;
    }
    mend(data, at, before, after);
    if be16(data, at) == Some(0) {
        data[at..at + 2].fill(0xff);
    }
}
