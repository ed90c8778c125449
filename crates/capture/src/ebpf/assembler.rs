//! Instructions of extended BPF as RFC 9669 encodes them, with labels instead of distances.

use super::Error;

/// One instruction, with the layout of `struct bpf_insn`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Instruction {
    code: u8,
    registers: u8,
    offset: i16,
    immediate: i32,
}

impl Instruction {
    fn new(code: u8, to: Register, from: Register, offset: i16, immediate: i32) -> Self {
        let (low, high) = if cfg!(target_endian = "little") { (to, from) } else { (from, to) };
        Self { code, registers: low as u8 | (high as u8) << 4, offset, immediate }
    }
}

/// A register of 64 bits. A call takes its arguments in R1 to R5, returns in R0 and spoils all of these; R6 to
/// R9 survive it; R10 points behind the stack of 512 bytes and is only read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(dead_code, reason = "these are all that there are")]
pub(crate) enum Register {
    R0,
    R1,
    R2,
    R3,
    R4,
    R5,
    R6,
    R7,
    R8,
    R9,
    R10,
}

/// What stands on the right of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operand {
    Register(Register),
    /// A number of 32 bits, which operations of 64 bits extend by its sign.
    Number(i32),
}

impl From<Register> for Operand {
    fn from(register: Register) -> Self {
        Self::Register(register)
    }
}

impl From<i32> for Operand {
    fn from(number: i32) -> Self {
        Self::Number(number)
    }
}

impl From<u32> for Operand {
    fn from(number: u32) -> Self {
        Self::Number(number.cast_signed())
    }
}

/// The bits of a register that an operation or a comparison is about. The upper half of a result of 32 bits
/// is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Width {
    W32,
    W64,
}

/// An operation on a register, with its code in classes ALU and ALU64.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Add = 0x00,
    Subtract = 0x10,
    Multiply = 0x20,
    /// Of unsigned numbers; by 0 the result is 0.
    Divide = 0x30,
    Or = 0x40,
    And = 0x50,
    ShiftLeft = 0x60,
    ShiftRight = 0x70,
    Negate = 0x80,
    /// Of unsigned numbers; by 0 it changes nothing.
    Modulo = 0x90,
    Xor = 0xa0,
    Move = 0xb0,
}

/// A comparison of unsigned numbers, with its code in classes JMP and JMP32.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    Equal = 0x10,
    Greater = 0x20,
    AtLeast = 0x30,
    /// A bit is set on both sides.
    AnyBit = 0x40,
    NotEqual = 0x50,
    AtMost = 0xb0,
}

/// The bytes that are loaded or stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Size {
    Byte = 0x10,
    Half = 0x08,
    Word = 0x00,
    Double = 0x18,
}

impl Size {
    pub(crate) const fn bytes(self) -> i32 {
        match self {
            Self::Byte => 1,
            Self::Half => 2,
            Self::Word => 4,
            Self::Double => 8,
        }
    }
}

/// A place further on in the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Label(usize);

/// Classes of instructions, and how an address is meant.
mod code {
    pub(super) const LD: u8 = 0x00;
    pub(super) const LDX: u8 = 0x01;
    pub(super) const ST: u8 = 0x02;
    pub(super) const STX: u8 = 0x03;
    pub(super) const ALU: u8 = 0x04;
    pub(super) const JMP: u8 = 0x05;
    pub(super) const JMP32: u8 = 0x06;
    pub(super) const ALU64: u8 = 0x07;
    /// The right side is a register.
    pub(super) const SOURCE: u8 = 0x08;
    pub(super) const MEM: u8 = 0x60;
    pub(super) const ATOMIC: u8 = 0xc0;
    /// Changes the order of bytes; with [`SOURCE`], between this machine's and big-endian.
    pub(super) const END: u8 = 0xd0;
    pub(super) const CALL: u8 = 0x80;
    pub(super) const EXIT: u8 = 0x90;
}

/// Collects a program from its first instruction on. All jumps go forward, so that it ends.
#[derive(Debug, Default)]
pub(crate) struct Assembler {
    instructions: Vec<Instruction>,
    /// Where each label is, once it is placed.
    places: Vec<Option<usize>>,
    /// Instructions that jump, with their targets.
    jumps: Vec<(usize, Label)>,
}

impl Assembler {
    /// A label that is yet to be placed by [`here`](Self::here).
    pub(crate) fn label(&mut self) -> Label {
        self.places.push(None);
        Label(self.places.len() - 1)
    }

    /// Places a label before the next instruction.
    pub(crate) fn here(&mut self, label: Label) {
        if let Some(place) = self.places.get_mut(label.0) {
            *place = Some(self.instructions.len());
        }
    }

    /// `to = to OPERATION operand`.
    pub(crate) fn compute(
        &mut self,
        width: Width,
        operation: Operation,
        to: Register,
        operand: impl Into<Operand>,
    ) {
        let class = match width {
            Width::W32 => code::ALU,
            Width::W64 => code::ALU64,
        };
        self.operate(class | operation as u8, to, operand.into());
    }

    /// `to = operand`, all 64 bits.
    pub(crate) fn set(&mut self, to: Register, operand: impl Into<Operand>) {
        self.compute(Width::W64, Operation::Move, to, operand);
    }

    /// `to = -to` in 32 bits.
    pub(crate) fn negate(&mut self, to: Register) {
        self.compute(Width::W32, Operation::Negate, to, 0);
    }

    /// `to = ` `size` bytes at `from + offset`, the upper bits 0.
    pub(crate) fn load(&mut self, size: Size, to: Register, from: Register, offset: i16) {
        self.push(code::LDX | code::MEM | size as u8, to, from, offset, 0);
    }

    /// Stores the lowest `size` bytes of a register, or a number, at `to + offset`.
    pub(crate) fn store(
        &mut self,
        size: Size,
        to: Register,
        offset: i16,
        operand: impl Into<Operand>,
    ) {
        match operand.into() {
            Operand::Register(from) => {
                self.push(code::STX | code::MEM | size as u8, to, from, offset, 0);
            }
            Operand::Number(number) => {
                self.push(code::ST | code::MEM | size as u8, to, Register::R0, offset, number);
            }
        }
    }

    /// Adds a register to the 8 bytes at `to + offset`, whoever else does at the same time.
    pub(crate) fn atomic_add(&mut self, to: Register, offset: i16, from: Register) {
        self.push(code::STX | code::ATOMIC | Size::Double as u8, to, from, offset, 0);
    }

    /// Makes a number of this machine out of the lowest `bits` (16, 32 or 64) of a register that were loaded from a
    /// packet.
    pub(crate) fn network_order(&mut self, register: Register, bits: i32) {
        self.push(code::ALU | code::END | code::SOURCE, register, Register::R0, 0, bits);
    }

    /// `to =` the map with this descriptor, as calls take it.
    pub(crate) fn map(&mut self, to: Register, descriptor: i32) {
        /// `BPF_PSEUDO_MAP_FD`, in the place of a source.
        const MAP: Register = Register::R1;
        self.resolve(to, MAP, descriptor);
    }

    /// `to =` the address of the only value of the array with this descriptor.
    pub(crate) fn map_value(&mut self, to: Register, descriptor: i32) {
        /// `BPF_PSEUDO_MAP_VALUE`.
        const VALUE: Register = Register::R2;
        self.resolve(to, VALUE, descriptor);
    }

    /// `to =` what the kernel puts in the place of a descriptor. Its 64 bits take two instructions.
    fn resolve(&mut self, to: Register, kind: Register, descriptor: i32) {
        self.push(code::LD | Size::Double as u8, to, kind, 0, descriptor);
        self.push(0, Register::R0, Register::R0, 0, 0);
    }

    /// Calls a function of the kernel by its number.
    pub(crate) fn call(&mut self, function: super::Helper) {
        self.push(code::JMP | code::CALL, Register::R0, Register::R0, 0, function as i32);
    }

    /// Ends the program with R0.
    pub(crate) fn exit(&mut self) {
        self.push(code::JMP | code::EXIT, Register::R0, Register::R0, 0, 0);
    }

    /// Goes to a label.
    pub(crate) fn goto(&mut self, target: Label) {
        self.jumps.push((self.instructions.len(), target));
        self.push(code::JMP, Register::R0, Register::R0, 0, 0);
    }

    /// Goes to a label if the condition holds, or on.
    pub(crate) fn branch(
        &mut self,
        width: Width,
        left: Register,
        condition: Condition,
        right: impl Into<Operand>,
        target: Label,
    ) {
        let class = match width {
            Width::W32 => code::JMP32,
            Width::W64 => code::JMP,
        };
        self.jumps.push((self.instructions.len(), target));
        self.operate(class | condition as u8, left, right.into());
    }

    fn operate(&mut self, code: u8, to: Register, operand: Operand) {
        match operand {
            Operand::Register(from) => self.push(code | code::SOURCE, to, from, 0, 0),
            Operand::Number(number) => self.push(code, to, Register::R0, 0, number),
        }
    }

    fn push(&mut self, code: u8, to: Register, from: Register, offset: i16, immediate: i32) {
        self.instructions.push(Instruction::new(code, to, from, offset, immediate));
    }

    /// The instructions that can be reached, with the distance of every jump. The verifier refuses a program that
    /// has others.
    ///
    /// # Errors
    ///
    /// Jumps that are too long, or that lead backwards or nowhere.
    pub(crate) fn finish(self) -> Result<Vec<Instruction>, Error> {
        let targets = self.targets()?;
        let reached = self.reached(&targets);
        // How many instructions are left before each.
        let mut before = Vec::with_capacity(reached.len());
        let mut left = 0;
        for is_reached in &reached {
            before.push(left);
            left += usize::from(*is_reached);
        }
        let mut program = Vec::with_capacity(left);
        for ((at, mut instruction), target) in
            self.instructions.into_iter().enumerate().zip(targets)
        {
            if !reached.get(at).is_some_and(|is_reached| *is_reached) {
                continue;
            }
            if let Some(target) = target {
                let place = before.get(target).ok_or(Error::NoTarget)?;
                // Counted from the instruction behind the jump.
                let distance = place.checked_sub(program.len() + 1).ok_or(Error::NoTarget)?;
                instruction.offset = i16::try_from(distance).map_err(|_| Error::TooLong(left))?;
            }
            program.push(instruction);
        }
        Ok(program)
    }

    /// Where each instruction jumps to, if it does.
    fn targets(&self) -> Result<Vec<Option<usize>>, Error> {
        let len = self.instructions.len();
        let mut targets = vec![None; len];
        for (at, Label(label)) in &self.jumps {
            let place = self.places.get(*label).copied().flatten();
            let place = place.filter(|place| *place > *at && *place < len);
            if let Some(target) = targets.get_mut(*at) {
                *target = Some(place.ok_or(Error::NoTarget)?);
            }
        }
        Ok(targets)
    }

    /// Which instructions can be reached from the first one.
    fn reached(&self, targets: &[Option<usize>]) -> Vec<bool> {
        const ALWAYS: u8 = code::JMP;
        const END: u8 = code::JMP | code::EXIT;
        let mut reached = vec![false; self.instructions.len()];
        let mut goes_on = true;
        for (at, (instruction, target)) in self.instructions.iter().zip(targets).enumerate() {
            let Some(this) = reached.get_mut(at) else { continue };
            *this |= goes_on;
            goes_on = *this && !matches!(instruction.code, ALWAYS | END);
            if *this && let Some(there) = target.and_then(|target| reached.get_mut(target)) {
                *there = true;
            }
        }
        reached
    }
}

#[cfg(test)]
mod tests {
    use super::Register::{R0, R1, R2, R6, R10};
    use super::*;

    /// The code, both registers, offset and number of each instruction.
    fn words(assembler: Assembler) -> Vec<(u8, u8, i16, i32)> {
        let instructions = assembler.finish().unwrap();
        instructions.iter().map(|i| (i.code, i.registers, i.offset, i.immediate)).collect()
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn instructions_are_encoded_as_the_standard_says() {
        let mut assembler = Assembler::default();
        assembler.set(R0, -1);
        assembler.compute(Width::W32, Operation::Add, R1, R2);
        assembler.load(Size::Half, R6, R1, -2);
        assembler.store(Size::Double, R10, -8, R6);
        assembler.store(Size::Byte, R10, -1, 7);
        assembler.atomic_add(R1, 16, R2);
        assembler.network_order(R6, 16);
        assembler.map(R1, 5);
        assembler.call(crate::ebpf::Helper::RedirectMap);
        assembler.exit();
        // RFC 9669, sections 3 to 5; the registers are source, then destination.
        let expected = [
            (0xb7, 0x00, 0, -1),
            (0x0c, 0x21, 0, 0),
            (0x69, 0x16, -2, 0),
            (0x7b, 0x6a, -8, 0),
            (0x72, 0x0a, -1, 7),
            (0xdb, 0x21, 16, 0),
            (0xdc, 0x06, 0, 16),
            (0x18, 0x11, 0, 5),
            (0x00, 0x00, 0, 0),
            (0x85, 0x00, 0, 51),
            (0x95, 0x00, 0, 0),
        ];
        assert_eq!(words(assembler), expected);
    }

    #[test]
    fn jumps_count_from_the_instruction_behind_them() {
        let mut assembler = Assembler::default();
        let [near, far] = [(); 2].map(|()| assembler.label());
        assembler.branch(Width::W32, R1, Condition::Equal, 4, far);
        assembler.goto(near);
        assembler.here(near);
        assembler.set(R0, 0);
        assembler.here(far);
        assembler.exit();
        let offsets: Vec<_> = words(assembler).iter().map(|word| word.2).collect();
        assert_eq!(offsets, [2, 0, 0, 0]);
    }

    #[test]
    fn what_cannot_be_reached_is_left_out() {
        let mut assembler = Assembler::default();
        let [over, end] = [(); 2].map(|()| assembler.label());
        assembler.goto(over);
        assembler.map(R1, 5);
        assembler.goto(end);
        assembler.here(over);
        assembler.branch(Width::W64, R1, Condition::Equal, 0, end);
        assembler.exit();
        assembler.set(R0, 7);
        assembler.here(end);
        assembler.exit();
        let words: Vec<_> = words(assembler).iter().map(|word| (word.0, word.2)).collect();
        assert_eq!(words, [(0x05, 0), (0x15, 1), (0x95, 0), (0x95, 0)]);
    }

    #[test]
    fn a_jump_that_leads_nowhere_or_too_far_is_an_error() {
        let mut nowhere = Assembler::default();
        let label = nowhere.label();
        nowhere.goto(label);
        assert_eq!(nowhere.finish(), Err(Error::NoTarget));
        let mut end = Assembler::default();
        let label = end.label();
        end.goto(label);
        end.here(label);
        assert_eq!(end.finish(), Err(Error::NoTarget), "behind the last instruction");
        let mut back = Assembler::default();
        let label = back.label();
        back.here(label);
        back.goto(label);
        back.exit();
        assert_eq!(back.finish(), Err(Error::NoTarget));
        for (between, is_short) in [(32_767, true), (32_768, false)] {
            let mut long = Assembler::default();
            let label = long.label();
            long.branch(Width::W64, R1, Condition::Equal, 0, label);
            (0..between).for_each(|_| long.set(R0, 0));
            long.here(label);
            long.exit();
            assert_eq!(long.finish().is_ok(), is_short);
        }
    }
}
