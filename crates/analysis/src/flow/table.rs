//! The flows, found by their keys.

use hashbrown::HashTable;

use super::Flow;
use super::key::FlowKey;
use super::wheel::Entry;

/// Flows in one piece of memory; pieces never move, so that growing copies no flow.
const CHUNK: usize = 16_384;

/// Flows and the index over them.
///
/// The index holds a 32-bit hash beside each place: growing it touches no flow, and a look-up
/// touches only the flow it is for.
#[derive(Debug, Default)]
pub struct FlowTable {
    index: HashTable<(u32, u32)>,
    chunks: Vec<Vec<Option<Flow>>>,
    free: Vec<u32>,
    len: usize,
}

/// The 64 bits that the index wants, made of the 32 that it keeps.
#[inline]
const fn spread(hash: u32) -> u64 {
    (hash as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

impl FlowTable {
    /// How many flows there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The place of a flow that may have this hash, without a look at the flow itself.
    #[inline]
    #[must_use]
    pub fn candidate(&self, hash: u32) -> Option<u32> {
        self.index.find(spread(hash), |&(other, _)| other == hash).map(|&(_, place)| place)
    }

    /// The place of the flow with this key.
    #[inline]
    #[must_use]
    pub fn find(&self, hash: u32, key: &FlowKey) -> Option<u32> {
        self.index
            .find(spread(hash), |&(other, place)| {
                other == hash && self.flow(place).is_some_and(|flow| flow.key == *key)
            })
            .map(|&(_, place)| place)
    }

    /// The flow at a place.
    #[inline]
    #[must_use]
    pub fn flow(&self, place: u32) -> Option<&Flow> {
        let place = place as usize;
        self.chunks.get(place / CHUNK)?.get(place % CHUNK)?.as_ref()
    }

    /// The flow at a place, to change it.
    #[inline]
    pub fn flow_mut(&mut self, place: u32) -> Option<&mut Flow> {
        let place = place as usize;
        self.chunks.get_mut(place / CHUNK)?.get_mut(place % CHUNK)?.as_mut()
    }

    /// Whether the flow that an entry was made for is still there and waits for it.
    #[must_use]
    #[inline]
    pub fn is_current(&self, entry: Entry) -> bool {
        self.flow(entry.place).is_some_and(|flow| flow.armed == entry.armed)
    }

    /// Adds a flow, whose key must not be there yet, and returns its place; `None` where 2^32
    /// places are taken.
    pub fn insert(&mut self, hash: u32, flow: Flow) -> Option<u32> {
        let place = self.place()?;
        let at = place as usize;
        *self.chunks.get_mut(at / CHUNK)?.get_mut(at % CHUNK)? = Some(flow);
        self.index.insert_unique(spread(hash), (hash, place), |&(other, _)| spread(other));
        self.len += 1;
        Some(place)
    }

    /// Removes the flow at a place; nothing happens where there is none.
    pub fn remove(&mut self, hash: u32, place: u32) {
        let at = place as usize;
        let slot = self.chunks.get_mut(at / CHUNK).and_then(|chunk| chunk.get_mut(at % CHUNK));
        let Some(slot @ Some(_)) = slot else { return };
        *slot = None;
        if let Ok(entry) = self.index.find_entry(spread(hash), |&(_, other)| other == place) {
            entry.remove();
        }
        self.free.push(place);
        self.len -= 1;
    }

    /// The flows with their places, in the order of their places.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &Flow)> {
        let slots = self.chunks.iter().flatten();
        (0_u32..).zip(slots).filter_map(|(place, slot)| Some((place, slot.as_ref()?)))
    }

    /// Bytes that one more flow takes, the index included.
    #[must_use]
    pub const fn bytes_per_flow() -> usize {
        // Hash and place with a control byte, at half load in the worst case while it grows.
        size_of::<Option<Flow>>() + 3 * (size_of::<(u32, u32)>() + 1)
    }

    fn place(&mut self) -> Option<u32> {
        if let Some(place) = self.free.pop() {
            return Some(place);
        }
        if self.chunks.last().is_none_or(|chunk| chunk.len() == CHUNK) {
            self.chunks.push(Vec::with_capacity(CHUNK));
        }
        let before = (self.chunks.len() - 1) * CHUNK;
        let chunk = self.chunks.last_mut()?;
        let place = u32::try_from(before + chunk.len()).ok()?;
        chunk.push(None);
        Some(place)
    }
}
