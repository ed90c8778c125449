//! The flows, found by their keys and by their deadlines.
//!
//! | module | concern |
//! |---|---|
//! | [`index`] | keys |
//! | [`wheel`] | deadlines |

pub mod index;
pub mod wheel;

use self::index::Index;
use self::wheel::Entry;
use super::Flow;
use crate::key::FlowKey;

/// Flows in one piece of memory; pieces never move, so that growing copies no flow.
const CHUNK: usize = 4096;

/// Flows and the index over them.
///
/// The index holds a 32-bit hash beside each place: growing it touches no flow, and a look-up
/// touches only the flow it is for.
#[derive(Debug, Default)]
pub struct FlowTable {
    index: Index,
    /// Flows, and what is left of those that ended: then [`Flow::is_alive`] does not hold.
    chunks: Vec<Vec<Flow>>,
    free: Vec<u32>,
    len: usize,
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
        self.index.find(hash, |_| true)
    }

    /// Asks for what a look-up needs before it comes to a flow.
    #[inline]
    pub fn prefetch(&self, hash: u32) {
        self.index.prefetch(hash);
    }

    /// What is at a place, without a look at it: a flow, or what is left of one.
    #[inline]
    #[must_use]
    pub fn at(&self, place: u32) -> Option<&Flow> {
        let place = place as usize;
        self.chunks.get(place / CHUNK)?.get(place % CHUNK)
    }

    /// The place of the flow with this key.
    #[inline]
    #[must_use]
    pub fn find(&self, hash: u32, key: &FlowKey) -> Option<u32> {
        self.index.find(hash, |place| self.is_at(place, key))
    }

    /// Whether the flow with this key is at a place.
    #[inline]
    #[must_use]
    pub fn is_at(&self, place: u32, key: &FlowKey) -> bool {
        self.flow(place).is_some_and(|flow| flow.key == *key)
    }

    /// The flow at a place.
    #[inline]
    #[must_use]
    pub fn flow(&self, place: u32) -> Option<&Flow> {
        self.at(place).filter(|flow| flow.is_alive)
    }

    /// The flow at a place, to change it.
    #[inline]
    pub fn flow_mut(&mut self, place: u32) -> Option<&mut Flow> {
        let place = place as usize;
        self.chunks.get_mut(place / CHUNK)?.get_mut(place % CHUNK).filter(|flow| flow.is_alive)
    }

    /// Whether the flow that an entry was made for is still there and waits for it.
    #[must_use]
    #[inline]
    pub fn is_current(&self, entry: Entry) -> bool {
        self.flow(entry.place).is_some_and(|flow| flow.armed == entry.armed)
    }

    /// Adds a flow, whose key must not be there yet, and returns its place; `None` where 2^32 - 1
    /// places are taken.
    pub fn insert(&mut self, hash: u32, flow: Flow) -> Option<u32> {
        let place = self.place(flow)?;
        self.index.insert(hash, place);
        self.len += 1;
        Some(place)
    }

    /// Removes the flow at a place; nothing happens where there is none.
    pub fn remove(&mut self, hash: u32, place: u32) {
        let Some(flow) = self.flow_mut(place) else { return };
        flow.is_alive = false;
        flow.release();
        self.index.remove(hash, place);
        self.free.push(place);
        self.len -= 1;
    }

    /// Forgets how flows are found, since no packet will ask for one any more. They stay at their places, and end
    /// without a look at what is far from them.
    pub fn forget_keys(&mut self) {
        self.index = Index::default();
    }

    /// The flows with their places, in the order of their places.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &Flow)> {
        (0_u32..).zip(self.chunks.iter().flatten()).filter(|(_, flow)| flow.is_alive)
    }

    /// The flows, of which none stays.
    pub fn into_flows(self) -> impl Iterator<Item = Flow> {
        self.chunks.into_iter().flatten().filter(|flow| flow.is_alive)
    }

    /// Bytes that one more flow takes, with its place in the index and in the list of free places.
    #[must_use]
    pub const fn bytes_per_flow() -> usize {
        size_of::<Flow>() + Index::BYTES + 2 * size_of::<u32>()
    }

    /// Puts a flow at a free place.
    fn place(&mut self, flow: Flow) -> Option<u32> {
        if let Some(place) = self.free.pop() {
            let at = place as usize;
            *self.chunks.get_mut(at / CHUNK)?.get_mut(at % CHUNK)? = flow;
            return Some(place);
        }
        if self.chunks.last().is_none_or(|chunk| chunk.len() == CHUNK) {
            self.chunks.push(Vec::with_capacity(CHUNK));
        }
        let before = (self.chunks.len() - 1) * CHUNK;
        let chunk = self.chunks.last_mut()?;
        let place = u32::try_from(before + chunk.len()).ok().filter(|&place| place < u32::MAX)?;
        chunk.push(flow);
        Some(place)
    }
}
