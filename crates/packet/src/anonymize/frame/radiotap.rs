//! Radiotap headers: what radiotap itself names tells of the radio alone; anything else may be an address.

use super::blank;
use crate::decode::wlan;

/// Size and alignment of the fields that radiotap names, by their bits,
/// <https://www.radiotap.org/fields/defined>.
const FIELDS: [(usize, usize); 28] = [
    (8, 8),
    (1, 1),
    (1, 1),
    (4, 2),
    (2, 2),
    (1, 1),
    (1, 1),
    (2, 2),
    (2, 2),
    (2, 2),
    (1, 1),
    (1, 1),
    (1, 1),
    (1, 1),
    (2, 2),
    (2, 2),
    (1, 1),
    (1, 1),
    (8, 4),
    (3, 1),
    (8, 4),
    (12, 2),
    (12, 8),
    (12, 2),
    (12, 2),
    (6, 2),
    (1, 1),
    (4, 2),
];
/// The next presence word begins anew with radiotap's own fields.
const OWN: u32 = 1 << 29;
/// Another presence word follows.
const MORE: u32 = 1 << 31;

/// Keeps the fields that radiotap names, and blanks what lies behind them within the header. With
/// fields of others, or TLVs, all but the flags is blanked. Returns the header's length, or 0 where it
/// is not there.
pub(super) fn fields(data: &mut [u8]) -> usize {
    const MIN_LEN: usize = 8;
    let Some(&[_, _, low, high]) = data.first_chunk() else { return 0 };
    let len = usize::from(u16::from_le_bytes([low, high]));
    if len < MIN_LEN || data.len() < len {
        return 0;
    }
    let header = data.get(..len).unwrap_or_default();
    if let Some(end) = known_end(header) {
        blank(data, end, len);
        return len;
    }
    let flags = wlan::radiotap_flags_at(header);
    let kept = flags.and_then(|at| Some((at, *header.get(at)?)));
    blank(data, words(header).count() * 4 + 4, len);
    if let Some((at, flags)) = kept
        && let Some(byte) = data.get_mut(at)
    {
        *byte = flags;
    }
    len
}

/// The presence words of a header.
fn words(header: &[u8]) -> impl Iterator<Item = u32> + '_ {
    let words = header.get(4..).unwrap_or_default().as_chunks::<4>().0.iter();
    let mut is_last = false;
    words.map(|word| u32::from_le_bytes(*word)).take_while(move |word| {
        let is_there = !is_last;
        is_last = word & MORE == 0;
        is_there
    })
}

/// Where the fields of a header end; `None` with one that radiotap does not name.
fn known_end(header: &[u8]) -> Option<usize> {
    let mut at = 4 + 4 * words(header).count();
    let mut is_own = true;
    for word in words(header) {
        let named = word & !(OWN | MORE);
        if named >> FIELDS.len() != 0 || named != 0 && !is_own {
            return None;
        }
        for (_, (size, alignment)) in
            FIELDS.iter().enumerate().filter(|(bit, _)| named >> bit & 1 != 0)
        {
            at = at.next_multiple_of(*alignment) + size;
        }
        is_own = word & OWN != 0;
    }
    (at <= header.len()).then_some(at)
}
