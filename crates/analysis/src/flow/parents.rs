//! Which tunnels the packets of a flow travelled in.

use super::Flow;
use crate::key::uid::Uid;

/// The tunnels around a flow.
#[derive(Debug)]
pub struct Parents {
    all: Vec<Uid>,
    last: Option<Uid>,
    changes: u8,
    is_exceeded: bool,
}

impl Parents {
    /// The tunnels, in the order of their first packets.
    #[must_use]
    pub fn uids(&self) -> &[Uid] {
        &self.all
    }

    /// Bytes that it holds outside itself.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        self.all.capacity() * size_of::<Uid>()
    }
}

impl Flow {
    /// Notes the tunnel around a packet of the flow. `true` where, for the first time, it is one
    /// change more than `max_changes`; further tunnels are not recorded then, as in Zeek, and the
    /// history says so.
    pub(super) fn note_parent(&mut self, parent: Option<Uid>, max_changes: u8) -> bool {
        let attached = self.attached.get_or_insert_default();
        let Some(parents) = &mut attached.parents else {
            let all = parent.into_iter().collect();
            let parents = Parents { all, last: parent, changes: 0, is_exceeded: false };
            attached.parents = Some(Box::new(parents));
            self.is_tunnelled = true;
            return false;
        };
        if parents.last == parent {
            return false;
        }
        parents.last = parent;
        if parents.changes < max_changes {
            parents.changes += 1;
            parents.all.extend(parent.filter(|parent| !parents.all.contains(parent)));
            return false;
        }
        let is_first = !parents.is_exceeded;
        parents.is_exceeded = true;
        if is_first {
            self.letters.push(b'X');
        }
        is_first
    }
}
