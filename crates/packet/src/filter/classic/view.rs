//! Where the bytes of a frame are while the kernel filters it.
//!
//! Offsets in a filter count in the frame as it is analysed later. The kernel takes the outermost
//! VLAN tag out of it and keeps the tag beside; the header of cooked captures is made from what
//! the kernel knows, and is no bytes at all.

use super::opcode::ancillary;
use crate::LinkType;
use crate::filter::program::{ACCEPT, Comparison, Field, Operation, Program, REJECT, Step, Test};
use crate::filter::simplify::simplify;

/// Offsets beyond this are outside every packet. The kernel counts with 31 bits, takes what is above
/// for negative offsets with meanings of their own, and the longest IPv4 header may be added.
pub(super) const LAST_OFFSET: u32 = 0x7fff_0000;

/// EtherTypes of the tags that the kernel takes out of frames.
const STRIPPED: [u32; 2] = [0x8100, 0x88a8];

/// How the offsets in a frame become offsets in what the kernel has.
#[derive(Clone, Copy, Debug)]
pub(super) struct View {
    pub(super) link_type: LinkType,
    /// Headers that are not, or not all, bytes of the packet, from offset 0 on without holes.
    regions: &'static [Region],
    /// Whether the view is that of frames whose tag was taken out.
    pub(super) is_stripped: bool,
}

/// Some bytes of a frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct Region {
    pub(super) len: u32,
    pub(super) content: Content,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// Bytes of the packet.
    Bytes,
    /// A number that the kernel tells when loaded from this offset.
    Ancillary(u32),
    Zero,
    /// What the kernel does not tell.
    Unknown,
}

const fn bytes(len: u32) -> Region {
    Region { len, content: Content::Bytes }
}

const fn known_region(len: u32, k: u32) -> Region {
    Region { len, content: Content::Ancillary(k) }
}

const fn unknown(len: u32) -> Region {
    Region { len, content: Content::Unknown }
}

const ETHERNET_STRIPPED: &[Region] =
    &[bytes(12), known_region(2, ancillary::VLAN_TPID), known_region(2, ancillary::VLAN_TAG)];

const COOKED: &[Region] = &[
    known_region(2, ancillary::PACKET_TYPE),
    known_region(2, ancillary::HARDWARE_TYPE),
    unknown(10),
    known_region(2, ancillary::PROTOCOL),
];

const COOKED_STRIPPED: &[Region] = &[
    known_region(2, ancillary::PACKET_TYPE),
    known_region(2, ancillary::HARDWARE_TYPE),
    unknown(10),
    known_region(2, ancillary::VLAN_TPID),
    known_region(2, ancillary::VLAN_TAG),
    known_region(2, ancillary::PROTOCOL),
];

const COOKED2: &[Region] = &[
    known_region(2, ancillary::PROTOCOL),
    Region { len: 2, content: Content::Zero },
    known_region(4, ancillary::INTERFACE_INDEX),
    known_region(2, ancillary::HARDWARE_TYPE),
    known_region(1, ancillary::PACKET_TYPE),
    unknown(9),
];

impl View {
    /// Frames whose bytes are all in the packet.
    pub(super) const fn of_file(link_type: LinkType) -> Self {
        Self { link_type, regions: &[], is_stripped: false }
    }

    /// What the kernel has of a frame: without a tag beside, and with one where that differs.
    pub(super) const fn of_kernel(link_type: LinkType) -> (Self, Option<Self>) {
        let (regions, stripped): (&[Region], Option<&[Region]>) = match link_type {
            LinkType::ETHERNET => (&[], Some(ETHERNET_STRIPPED)),
            LinkType::LINUX_SLL => (COOKED, Some(COOKED_STRIPPED)),
            LinkType::LINUX_SLL2 => (COOKED2, None),
            _ => (&[], None),
        };
        let stripped = match stripped {
            Some(regions) => Some(Self { link_type, regions, is_stripped: true }),
            None => None,
        };
        (Self { link_type, regions, is_stripped: false }, stripped)
    }

    /// The offset from which on all bytes are in the packet.
    pub(super) fn rest(self) -> u32 {
        self.regions.iter().map(|region| region.len).sum()
    }

    /// How many bytes of the frame before [`rest`](Self::rest) the packet does not have.
    pub(super) fn missing(self) -> u32 {
        let is_missing = |region: &&Region| region.content != Content::Bytes;
        self.regions.iter().filter(is_missing).map(|region| region.len).sum()
    }

    /// The region that an offset before [`rest`](Self::rest) lies in, where in the frame it begins,
    /// and how many bytes of the frame before it are not in the packet.
    pub(super) fn region(self, offset: u32) -> Option<(Region, u32, u32)> {
        let (mut start, mut missing) = (0, 0);
        for region in self.regions {
            if offset < start + region.len {
                return Some((*region, start, missing));
            }
            start += region.len;
            if region.content != Content::Bytes {
                missing += region.len;
            }
        }
        None
    }

    /// Where `len` bytes lie in the packet, if they lie in it together.
    pub(super) fn place(self, offset: u32, len: u32) -> Option<u32> {
        if offset >= self.rest() {
            return offset.checked_sub(self.missing());
        }
        let (region, start, missing) = self.region(offset)?;
        let fits = offset + len <= start + region.len;
        (region.content == Content::Bytes && fits).then(|| offset - missing)
    }

    /// The program with what is certain in this view already decided.
    pub(super) fn specialise(self, program: &Program) -> Program {
        let mut special = program.clone();
        for step in &mut special.steps {
            self.decide(&program.operations, step);
        }
        // A load that the filter makes may not be left out, although its outcome does not matter any more: the
        // packet may end before it.
        simplify(&mut special, |test| match test {
            Test::Constant(_) | Test::WireLength { .. } => true,
            Test::Field { field, .. } => self.is_tag_type(*field),
            Test::Arithmetic { .. } => false,
        });
        special
    }

    fn decide(self, operations: &[Operation], step: &mut Step) {
        if is_outside(operations, &step.test) {
            *step = Step { test: Test::Constant(false), on_true: REJECT, on_false: REJECT };
            return;
        }
        let Test::Field { field, mask, comparison, value } = &mut step.test else {
            return;
        };
        if !self.is_tag_type(*field) {
            return;
        }
        match STRIPPED.map(|tag| comparison.holds(tag & *mask, *value)) {
            [true, true] => step.test = Test::Constant(true),
            [false, false] => step.test = Test::Constant(false),
            // Every question that is left asks which of the two tags it is, and is asked alike.
            [first, _] => {
                (*mask, *comparison, *value) = (u32::MAX, Comparison::Equal, STRIPPED[0]);
                if !first {
                    core::mem::swap(&mut step.on_true, &mut step.on_false);
                }
            }
        }
    }

    /// Whether the field is the EtherType of the tag that was taken out.
    fn is_tag_type(self, field: Field) -> bool {
        self.is_stripped
            && field.after_ipv4.is_none()
            && field.size == 2
            && self.region(field.offset).is_some_and(|(region, start, _)| {
                region.content == Content::Ancillary(ancillary::VLAN_TPID) && start == field.offset
            })
    }

    /// Whether a program means the same in this view as in one where all bytes are in the packet.
    pub(super) fn is_transparent(self, program: &Program) -> bool {
        let same = |field: Field| {
            field.after_ipv4.is_none()
                && self.place(field.offset, field.size.into()) == Some(field.offset)
        };
        self.regions.is_empty()
            || program.steps.iter().all(|step| match &step.test {
                Test::Constant(_) => true,
                Test::Field { field, .. } => same(*field),
                Test::WireLength { .. } | Test::Arithmetic { .. } => false,
            })
    }
}

/// Whether a test loads a field that is in no packet, which rejects all of them.
fn is_outside(operations: &[Operation], test: &Test) -> bool {
    let is_outside = |field: &Field| {
        field.offset > LAST_OFFSET || field.after_ipv4.is_some_and(|header| header > LAST_OFFSET)
    };
    match test {
        Test::Constant(_) | Test::WireLength { .. } => false,
        Test::Field { field, .. } => is_outside(field),
        Test::Arithmetic { left, right, .. } => [left, right].into_iter().any(|range| {
            let range = range.start as usize..range.end as usize;
            operations.get(range).unwrap_or_default().iter().any(|operation| match operation {
                Operation::Load(field) | Operation::LoadIndexed(field) => is_outside(field),
                _ => false,
            })
        }),
    }
}

/// The outcome of a program that is the same for all packets.
pub(super) fn constant(program: &Program) -> Option<bool> {
    match program.start {
        ACCEPT => Some(true),
        REJECT => Some(false),
        _ => None,
    }
}
