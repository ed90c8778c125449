//! Finding the next block of a pcapng file behind bytes that make no sense.

/// Section header block; the same in both byte orders.
pub(super) const SECTION_HEADER: u32 = 0x0a0d_0d0a;
/// The shortest block: its type and its length twice.
pub(super) const MIN_BLOCK: usize = 12;
/// The longest block that is accepted.
pub(super) const MAX_BLOCK: usize = 64 << 20;
/// The longest block that is believed when searching. Its end must be seen before it is believed,
/// so this bounds what the search waits for.
const MAX_FOUND: usize = 512 * 1024;

/// What a search came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Search {
    /// A block begins here.
    Found(usize),
    /// None begins before this place, and to tell for the place itself takes so many bytes.
    Wait { at: usize, needed: usize },
    /// None begins in what is left of the file.
    None,
}

/// The byte order of a section, by the magic in its header block; `Some(true)` for big-endian.
pub(super) fn section_order(block: &[u8]) -> Option<bool> {
    match block.get(8..12)? {
        [0x1a, 0x2b, 0x3c, 0x4d] => Some(true),
        [0x4d, 0x3c, 0x2b, 0x1a] => Some(false),
        _ => None,
    }
}

/// The number at `at`.
pub(super) fn word_at(data: &[u8], at: usize, big_endian: bool) -> Option<u32> {
    let bytes = *data.get(at..)?.first_chunk::<4>()?;
    Some(if big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) })
}

/// Looks for a block from `from` on: of a known type, its two lengths alike, and followed by
/// another block or by the end.
pub(super) fn search(data: &[u8], from: usize, big_endian: bool, at_end: bool) -> Search {
    for at in from..data.len() {
        if data.len() - at < MIN_BLOCK {
            return if at_end { Search::None } else { Search::Wait { at, needed: MIN_BLOCK } };
        }
        let Some((length, order)) = header(data, at, big_endian) else { continue };
        if length > MAX_FOUND || !length.is_multiple_of(4) {
            continue;
        }
        // The header of the block after it is looked at as well.
        let needed = length + MIN_BLOCK;
        if data.len() - at < needed && !at_end {
            return Search::Wait { at, needed };
        }
        let trailing = word_at(data, at + length - 4, order).map(|trailing| trailing as usize);
        if trailing == Some(length) && follows(data, at + length, order) {
            return Search::Found(at);
        }
    }
    if at_end { Search::None } else { Search::Wait { at: data.len(), needed: MIN_BLOCK } }
}

/// Whether a block or the end of the data follows at `at`.
pub(super) fn follows(data: &[u8], at: usize, big_endian: bool) -> bool {
    at == data.len() || header(data, at, big_endian).is_some()
}

/// Length and byte order of the block that begins at `at`, if that can be one.
fn header(data: &[u8], at: usize, big_endian: bool) -> Option<(usize, bool)> {
    let block_type = word_at(data, at, big_endian)?;
    let order = match block_type {
        SECTION_HEADER => section_order(data.get(at..)?)?,
        // Interfaces, packets, names, statistics, journal entries, secrets, and custom blocks.
        1..=6 | 9 | 10 | 0xbad | 0x4000_0bad => big_endian,
        _ => return None,
    };
    let length = word_at(data, at + 4, order)? as usize;
    (MIN_BLOCK..=MAX_BLOCK).contains(&length).then_some((length, order))
}
