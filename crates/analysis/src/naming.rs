//! The names of flows: of the addresses as they are, or of their pseudonyms.
//!
//! A name is a hash that anybody can compute. One of true addresses would tell them to whoever tries
//! them all, so that where addresses are not to be told it is one of pseudonyms. Then it is also the
//! name that the flow has in the anonymised capture.

use std::sync::Arc;

use netsniff_packet::Anonymizer;
use netsniff_packet::anonymize::AddressCache;

use crate::key::FlowKey;
use crate::key::community_id::CommunityId;
use crate::unit::DecodedDatagram;

/// How flows are named.
#[derive(Debug)]
pub(crate) struct Naming(Option<AddressCache>);

impl Naming {
    /// By pseudonyms, where there is an anonymizer.
    pub(crate) fn new(anonymizer: Option<Arc<Anonymizer>>) -> Self {
        Self(anonymizer.map(AddressCache::new))
    }

    /// 128 bits that name the flow with this `key`, whose first datagram is `unit`.
    pub(crate) fn flow_name(&mut self, unit: &DecodedDatagram, key: &FlowKey) -> u128 {
        unit.flow_name(&self.logged_key(key))
    }

    /// The Community ID of a flow.
    pub(crate) fn community_id(&mut self, key: &FlowKey) -> CommunityId {
        CommunityId::of(&self.logged_key(key))
    }

    /// The key as the logs tell it.
    #[inline]
    fn logged_key(&mut self, key: &FlowKey) -> FlowKey {
        match &mut self.0 {
            None => *key,
            Some(addresses) => key.mapped(|address| addresses.address(address)),
        }
    }
}
