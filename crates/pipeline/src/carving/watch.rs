//! What the engine tells of the packets of a batch.

use std::collections::BTreeSet;

use netsniff_analysis::key::FlowKey;
use netsniff_analysis::record::{Membership, Observer, Record, SortKey, Undecided};
use netsniff_packet::Timestamp;

use super::Flow;
use super::choice::FlowChoice;

/// Notes which packets belong to wanted flows.
#[derive(Debug, Default)]
pub(super) struct Watch {
    pub(super) choice: FlowChoice,
    pub(super) told: Told,
    /// Flows that were named and are there.
    pub(super) found: BTreeSet<u128>,
    /// The last packet of a wanted flow, and that flow.
    last: Option<(u64, u128)>,
}

impl Watch {
    /// For whoever wants these flows.
    pub(super) fn new(choice: FlowChoice) -> Self {
        Self { choice, ..Self::default() }
    }
}

/// What was told since the last batch.
#[derive(Debug, Default)]
pub(super) struct Told {
    /// Packets and the wanted flows that they belong to, outer ones first.
    pub(super) members: Vec<(u64, Flow)>,
    /// Fragments whose datagrams became whole, whoever wants them.
    pub(super) joined: Vec<u64>,
    /// Packets that may belong elsewhere, or to a flow that is not known yet.
    pub(super) doubts: Vec<(u64, Doubt)>,
    pub(super) claims: Vec<Claim>,
}

/// Why it is not known yet whether a packet is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Doubt {
    /// The engine has it in hand.
    Unseen,
    /// It is a fragment of a datagram that is not whole.
    Fragment,
    /// It is a SYN within a flow of this key, of this name where that is wanted, and may begin another one.
    Syn(FlowKey, Option<u128>),
}

/// A flow that begins with an answer: SYNs that came before belong to it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Claim {
    /// The number of the answer.
    pub(super) ordinal: u64,
    pub(super) key: FlowKey,
    /// The stamp of the first of the SYNs.
    pub(super) from: Timestamp,
    /// The stamp of the answer.
    pub(super) to: Timestamp,
    /// The flow's name, where it is wanted.
    pub(super) name: Option<u128>,
}

impl Told {
    /// Forgets it.
    pub(super) fn clear(&mut self) {
        self.members.clear();
        self.joined.clear();
        self.doubts.clear();
        self.claims.clear();
    }

    /// What was told of packets from this one on, whose members are sorted.
    pub(super) fn packets_from(&self, first: u64) -> TellPackets<'_> {
        let joined = self.joined.iter().copied().filter(|it| *it >= first).collect();
        let from = self.members.partition_point(|(ordinal, _)| *ordinal < first);
        let doubts_from = self.doubts.partition_point(|(ordinal, _)| *ordinal < first);
        TellPackets {
            members: self.members.get(from..).unwrap_or_default(),
            doubts: self.doubts.get(doubts_from..).unwrap_or_default(),
            joined,
        }
    }
}

/// What was told, packet by packet.
#[derive(Debug)]
pub(super) struct TellPackets<'a> {
    members: &'a [(u64, Flow)],
    doubts: &'a [(u64, Doubt)],
    joined: BTreeSet<u64>,
}

impl TellPackets<'_> {
    /// Puts the wanted flows of the packet with the next number into `flows`. Returns the doubt that is left.
    pub(super) fn of(&mut self, ordinal: u64, flows: &mut Vec<Flow>) -> Option<Doubt> {
        flows.clear();
        while let Some(((of, flow), rest)) = self.members.split_first()
            && *of <= ordinal
        {
            self.members = rest;
            if !flows.contains(flow) {
                flows.push(*flow);
            }
        }
        let mut doubt = None;
        while let Some(((of, why), rest)) = self.doubts.split_first()
            && *of <= ordinal
        {
            self.doubts = rest;
            doubt = Some(*why);
        }
        doubt.filter(|why| *why != Doubt::Fragment || !self.joined.contains(&ordinal))
    }
}

impl Observer for Watch {
    fn record<R: Record>(&mut self, _: &SortKey, _: &R) {}

    #[inline]
    fn member(&mut self, member: &Membership<'_>) {
        let is_wanted = self.choice.wants(member);
        self.told.joined.extend_from_slice(member.fragments);
        self.last = is_wanted.then_some((member.ordinal, member.name));
        if let Some(from) = member.claimed_from {
            let name = is_wanted.then_some(member.name);
            let (ordinal, to, key) = (member.ordinal, member.time, *member.key);
            self.told.claims.push(Claim { ordinal, key, from, to, name });
        }
        if !is_wanted {
            return;
        }
        if member.begins && self.choice.names_one(member.name) {
            self.found.insert(member.name);
        }
        let flow = Flow { name: member.name, key: Some(*member.key) };
        if member.fragments.is_empty() {
            self.told.members.push((member.ordinal, flow));
        } else {
            self.told.members.extend(member.fragments.iter().map(|it| (*it, flow)));
        }
    }

    fn undecided(&mut self, ordinal: u64, why: Undecided<'_>) {
        let doubt = match why {
            Undecided::Fragment => Doubt::Fragment,
            Undecided::Syn(key) => {
                let last = self.last.filter(|(of, _)| *of == ordinal);
                Doubt::Syn(*key, last.map(|(_, name)| name))
            }
        };
        self.told.doubts.push((ordinal, doubt));
    }
}
