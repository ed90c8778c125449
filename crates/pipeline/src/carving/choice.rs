//! Which flows and which packets are wanted.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use netsniff_analysis::key::community_id::CommunityId;
use netsniff_analysis::key::uid::Uid;
use netsniff_analysis::record::Membership;
use netsniff_packet::anonymize::AddressCache;
use netsniff_packet::filter::Filter;
use netsniff_packet::{Anonymizer, Packet, Timestamp, fnv};

/// Flows that are wanted: those that every condition wants. Without a condition all are, and packets without a flow too.
#[derive(Clone, Debug, Default)]
pub struct FlowChoice {
    /// The uids that were named.
    named: Option<BTreeSet<Uid>>,
    /// Those of records that were chosen.
    chosen: Option<HashSet<Uid>>,
    community_ids: Option<Vec<CommunityId>>,
    /// Flows that are open or were, of these Community IDs.
    in_communities: HashSet<u128>,
    /// The pseudonyms by which Community IDs are made, if they are.
    pseudonyms: Option<AddressCache>,
    /// The same as `named` and `chosen`, as bits: both where both are there.
    names: Option<HashSet<u128>>,
}

impl FlowChoice {
    /// Wants the flows with these uids, as far as they are wanted otherwise.
    pub fn named(&mut self, uids: impl IntoIterator<Item = Uid>) {
        self.named = Some(uids.into_iter().collect());
        self.join();
    }

    /// Wants the flows of chosen records, as far as they are wanted otherwise.
    pub fn chosen(&mut self, uids: HashSet<Uid>) {
        self.chosen = Some(uids);
        self.join();
    }

    /// Wants the flows with these Community IDs, as far as they are wanted otherwise.
    pub fn communities(&mut self, ids: impl IntoIterator<Item = CommunityId>) {
        self.community_ids = Some(ids.into_iter().collect());
    }

    /// Takes Community IDs as logs with these pseudonyms have them.
    pub(super) fn anonymized(&mut self, anonymizer: Arc<Anonymizer>) {
        self.pseudonyms = Some(AddressCache::new(anonymizer));
    }

    fn join(&mut self) {
        let bits = |uids: &mut dyn Iterator<Item = &Uid>| uids.map(Uid::bits).collect();
        self.names = match (&self.named, &self.chosen) {
            (None, None) => None,
            (Some(named), None) => Some(bits(&mut named.iter())),
            (None, Some(chosen)) => Some(bits(&mut chosen.iter())),
            (Some(named), Some(chosen)) => {
                Some(bits(&mut named.iter().filter(|uid| chosen.contains(uid))))
            }
        };
    }

    /// Whether it is told by names and Community IDs which flows are wanted, so that an index serves.
    #[must_use]
    pub const fn names_flows(&self) -> bool {
        !self.is_everything()
    }

    /// Whether a flow is wanted that an index tells by its name and a hash of its Community ID
    /// ([`community()`]).
    #[must_use]
    pub fn wants_indexed(&self, name: u128, community: u64) -> bool {
        let is = |id: &CommunityId| self::community(id) == community;
        self.names.as_ref().is_none_or(|names| names.contains(&name))
            && self.community_ids.as_ref().is_none_or(|ids| ids.iter().any(is))
    }

    /// The uids that were named and are not among these flows.
    #[must_use]
    pub fn missing_in(&self, found: &BTreeSet<u128>) -> Vec<Uid> {
        let named = self.named.iter().flatten();
        named.filter(|uid| !found.contains(&uid.bits())).copied().collect()
    }

    /// Whether every packet is wanted, of a flow or not.
    pub(super) const fn is_everything(&self) -> bool {
        self.names.is_none() && self.community_ids.is_none()
    }

    /// Whether the flow of a packet is wanted.
    #[inline]
    pub(super) fn wants(&mut self, member: &Membership<'_>) -> bool {
        if self.names.as_ref().is_some_and(|names| !names.contains(&member.name)) {
            return false;
        }
        let Some(ids) = &self.community_ids else { return true };
        if member.begins {
            let key = match &mut self.pseudonyms {
                None => *member.key,
                Some(addresses) => member.key.mapped(|address| addresses.address(address)),
            };
            if ids.contains(&CommunityId::of(&key)) {
                self.in_communities.insert(member.name);
            }
        }
        self.in_communities.contains(&member.name)
    }

    /// Whether packets of this flow are to be counted apart.
    pub(super) fn names_one(&self, name: u128) -> bool {
        self.named.as_ref().is_some_and(|named| named.contains(&Uid::new(name)))
    }
}

/// Packets that are wanted of wanted flows.
#[derive(Debug, Default)]
pub struct PacketChoice {
    /// Stamped at this time or later.
    pub from: Option<Timestamp>,
    /// Stamped before this time.
    pub to: Option<Timestamp>,
    /// That match all of these.
    pub filters: Vec<Filter>,
}

impl PacketChoice {
    /// Whether a packet is wanted, if its flow is.
    pub(super) fn wants(&self, packet: &Packet<'_>) -> bool {
        self.from.is_none_or(|from| packet.timestamp >= from)
            && self.to.is_none_or(|to| packet.timestamp < to)
            && self.filters.iter().all(|filter| filter.matches(packet))
    }
}

/// The hash by which an index finds a Community ID.
#[must_use]
pub fn community(id: &CommunityId) -> u64 {
    fnv::add(fnv::BASIS, id.as_bytes())
}
