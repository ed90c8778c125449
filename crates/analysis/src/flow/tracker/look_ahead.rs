//! Reads ahead what a group of packets or ends will need, so that the waits for memory overlap
//! (`docs/decisions/look-ahead.md`).

use super::{FlowTracker, Lookup};
use crate::flow::TransportState;
use crate::key::FlowKey;
use crate::unit::DecodedDatagram;

/// Packets whose flows are looked for together, so that the waits for memory overlap.
pub(super) const GROUP: usize = 64;

/// Below this many flows everything is in the caches, and looking ahead costs more than it gains.
const LOOK_AHEAD_FROM: usize = 8_192;

impl FlowTracker {
    /// Reads a little of what each look-up will need. The reads do not depend on each other, so
    /// the processor waits for all of them at once. Returns where each flow may be.
    #[inline]
    pub(super) fn look_ahead(&self, group: &[Option<Lookup<'_>>]) -> [Option<u32>; GROUP] {
        let mut places = [None; GROUP];
        if self.table.len() < LOOK_AHEAD_FROM {
            return places;
        }
        let hashes = group.iter().flatten().map(|lookup| lookup.hash);
        core::hint::black_box(hashes.fold(0, |all, hash| all ^ self.table.touch(hash)));
        for (lookup, place) in group.iter().zip(&mut places) {
            *place = lookup.as_ref().and_then(|lookup| self.table.candidate(lookup.hash));
        }
        self.touch(places.iter().flatten().copied());
        places
    }

    /// Reads every cache line of the flows at some places that a packet may need.
    #[inline]
    fn touch(&self, places: impl Iterator<Item = u32> + Clone) {
        let (mut touched, mut has_more) = (0, false);
        for flow in places.clone().filter_map(|place| self.table.flow(place)) {
            touched ^= flow.seen.nanos() ^ flow.sent[1].ip_bytes as i64;
        }
        for flow in places.clone().filter_map(|place| self.table.flow(place)) {
            touched ^= match &flow.exchange {
                TransportState::Connection(tcp) => {
                    tcp.touch() ^ flow.attached.as_ref().map_or(0, |attached| attached.touch())
                }
                TransportState::Held(held) => held.touch(),
                _ => continue,
            };
            has_more = true;
        }
        if has_more {
            for flow in places.filter_map(|place| self.table.flow(place)) {
                touched ^= match &flow.exchange {
                    TransportState::Connection(tcp) => {
                        let said =
                            flow.attached.as_ref().map_or(0, |attached| attached.touch_streams());
                        tcp.touch_metrics() ^ said
                    }
                    TransportState::Held(held) => held.touch_copies(),
                    _ => continue,
                };
            }
        }
        core::hint::black_box(touched);
    }

    /// Reads what flows have that end, so that the waits for memory overlap.
    pub(super) fn touch_whole(&self, places: impl Iterator<Item = u32> + Clone) {
        if self.table.len() < LOOK_AHEAD_FROM {
            return;
        }
        let flows = places.clone().filter_map(|place| self.table.flow(place));
        core::hint::black_box(flows.fold(0, |all, flow| all ^ flow.name[2]));
        self.touch(places);
    }
}

/// Hands datagrams that belong to flows to `each`, [`GROUP`] at a time.
#[inline]
pub(super) fn in_groups<'u>(
    seed: u64,
    units: impl Iterator<Item = &'u DecodedDatagram>,
    mut each: impl FnMut(&[Option<Lookup<'u>>]),
) {
    let mut group: [Option<Lookup<'u>>; GROUP] = [None; GROUP];
    let mut len = 0;
    for unit in units {
        let Some(ip) = unit.ip() else { continue };
        let Some((key, side)) = FlowKey::of(ip, &unit.decoded.transport) else { continue };
        group[len] = Some(Lookup { unit, ip, key, side, hash: key.hash(seed) });
        len += 1;
        if len == GROUP {
            each(&group);
            len = 0;
        }
    }
    each(&group[..len]);
}
