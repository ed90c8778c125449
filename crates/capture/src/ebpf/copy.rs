//! The program that copies packets into a ring and lets them go on to the stack.
//!
//! A record in the ring has a size that the verifier knows, so there are records of a few sizes, and a packet gets
//! the smallest that it fits into. What a record is larger than its packet is never written nor read: between a
//! fifth and a half of the ring is used up by it, in exchange for one copy instead of two.

use netsniff_packet::filter::classic;

use super::assembler::{
    Assembler, Condition, Instruction, Label, Operation, Register, Size, Width,
};
use super::filter::{self, CONTEXT, Exits, Hook, KEPT};
use super::tally::{Counter, Tally};
use super::{Action, Error, Helper};

/// What lies before a packet in its record. Numbers have this machine's order.
pub(crate) mod record {
    /// When it came: nanoseconds of `CLOCK_TAI`.
    pub(crate) const STAMP: usize = 0;
    /// Packets that had found no room before it had some.
    pub(crate) const DROPS: usize = 8;
    /// Bytes that it had, and that were copied.
    pub(crate) const WIRE_LEN: usize = 16;
    pub(crate) const CAPTURED_LEN: usize = 20;
    /// Bytes of all this.
    pub(crate) const HEADER: usize = 24;
}

/// The most bytes of a packet that the kernel copies with one call.
pub(crate) const LONGEST: u32 = 0xffff;

/// Sizes of packets that records are made for: up to the usual largest frame in steps that waste little, then
/// those of jumbo frames, and of segments that the stack or the card has put together.
const CLASSES: [u32; 12] = [64, 96, 128, 256, 512, 1024, 1536, 2048, 4096, 9216, 32_768, LONGEST];

/// How a packet is copied.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Copying<'a> {
    /// The descriptor of the ring.
    pub(crate) ring: i32,
    pub(crate) tally: Tally,
    /// Which packets are wanted, and how much of them; all of them where there is none.
    pub(crate) wanted: Option<&'a classic::Program>,
    /// How much of a packet is wanted where there is no filter.
    pub(crate) snaplen: u32,
    /// Whether a reader that has read everything is woken.
    pub(crate) wakes: bool,
}

/// Copies wanted packets, and passes all of them on.
///
/// # Errors
///
/// Filters that XDP cannot run, or that are too long.
pub(crate) fn copy(copying: &Copying<'_>) -> Result<Vec<Instruction>, Error> {
    let mut assembler = Assembler::default();
    let [accept, reject, dropped, pass] = [(); 4].map(|()| assembler.label());
    assembler.set(CONTEXT, Register::R1);
    copying.tally.check_gate(&mut assembler, pass);
    match copying.wanted {
        Some(program) => {
            filter::append(&mut assembler, program, Hook::Xdp, Exits { accept, reject })?;
        }
        None => assembler.compute(Width::W32, Operation::Move, KEPT, copying.snaplen),
    }
    assembler.here(accept);
    copying.measure(&mut assembler);
    for class in CLASSES {
        let longer = assembler.label();
        assembler.branch(Width::W32, KEPT, Condition::Greater, class, longer);
        copying.fill(&mut assembler, class, dropped, pass);
        assembler.here(longer);
    }
    assembler.here(dropped);
    copying.tally.count_drop(&mut assembler);
    assembler.goto(pass);
    assembler.here(reject);
    copying.tally.count(&mut assembler, Counter::Filtered);
    assembler.here(pass);
    assembler.set(Register::R0, Action::Pass as i32);
    assembler.exit();
    assembler.finish()
}

/// Where the packet's length lies, then its record.
const WIRE_LEN: Register = Register::R8;
const RECORD: Register = Register::R9;

impl Copying<'_> {
    /// Makes [`KEPT`] what is copied of the packet, and [`WIRE_LEN`] its length.
    fn measure(&self, assembler: &mut Assembler) {
        let fits = assembler.label();
        assembler.set(Register::R1, CONTEXT);
        assembler.call(Helper::XdpLength);
        assembler.compute(Width::W32, Operation::Move, WIRE_LEN, Register::R0);
        assembler.branch(Width::W32, KEPT, Condition::AtMost, WIRE_LEN, fits);
        assembler.compute(Width::W32, Operation::Move, KEPT, WIRE_LEN);
        assembler.here(fits);
        let is_short = assembler.label();
        assembler.branch(Width::W32, KEPT, Condition::AtMost, LONGEST, is_short);
        assembler.compute(Width::W32, Operation::Move, KEPT, LONGEST);
        assembler.here(is_short);
    }

    /// Copies a packet of at most `class` bytes into a record for such ones.
    fn fill(&self, assembler: &mut Assembler, class: u32, dropped: Label, pass: Label) {
        use Register::{R0, R1, R2, R3, R4};
        let discard = assembler.label();
        assembler.map(R1, self.ring);
        assembler.set(R2, class + record::HEADER as u32);
        assembler.set(R3, 0);
        assembler.call(Helper::RingReserve);
        assembler.branch(Width::W64, R0, Condition::Equal, 0, dropped);
        assembler.set(RECORD, R0);
        assembler.set(R3, RECORD);
        assembler.compute(Width::W64, Operation::Add, R3, record::HEADER as u32);
        assembler.set(R1, CONTEXT);
        assembler.set(R2, 0);
        assembler.set(R4, KEPT);
        // The verifier asks for a length that is not 0, which no packet has.
        assembler.branch(Width::W64, R4, Condition::Equal, 0, discard);
        assembler.call(Helper::XdpLoadBytes);
        assembler.branch(Width::W64, R0, Condition::NotEqual, 0, discard);
        assembler.call(Helper::TimeTai);
        assembler.store(Size::Double, RECORD, record::STAMP as i16, R0);
        self.tally.load_drops(assembler, R1);
        assembler.store(Size::Double, RECORD, record::DROPS as i16, R1);
        assembler.store(Size::Word, RECORD, record::WIRE_LEN as i16, WIRE_LEN);
        assembler.store(Size::Word, RECORD, record::CAPTURED_LEN as i16, KEPT);
        self.give_back(assembler, Helper::RingSubmit);
        self.tally.count(assembler, Counter::Taken);
        assembler.goto(pass);
        assembler.here(discard);
        self.give_back(assembler, Helper::RingDiscard);
        assembler.goto(dropped);
    }

    /// Hands the record over, or takes it back.
    fn give_back(&self, assembler: &mut Assembler, how: Helper) {
        /// `BPF_RB_NO_WAKEUP`; without it a reader that has read all before this record is woken.
        const NO_WAKEUP: i32 = 1;
        assembler.set(Register::R1, RECORD);
        assembler.set(Register::R2, if self.wakes { 0 } else { NO_WAKEUP });
        assembler.call(how);
    }
}
