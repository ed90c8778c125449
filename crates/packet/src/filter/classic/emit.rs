//! A bound filter as instructions: each test becomes loads and one branch.

use super::Error;
use super::assembler::{Assembler, Label};
use super::opcode as op;
use super::view::{Content, LAST_OFFSET, View};
use crate::filter::program::{ACCEPT, Comparison, Field, Operation, Program, REJECT, Test};

/// Where a filter ends.
#[derive(Clone, Copy)]
pub(super) struct Exits {
    pub(super) accept: Label,
    pub(super) reject: Label,
}

/// Appends the instructions of `program`, which was specialised for `view`.
pub(super) fn emit(
    assembler: &mut Assembler,
    program: &Program,
    view: View,
    exits: Exits,
) -> Result<(), Error> {
    let labels: Vec<Label> = program.steps.iter().map(|_| assembler.label()).collect();
    let mut registers: Vec<Option<Registers>> = vec![None; program.steps.len()];
    let target = |step: u32| match step {
        ACCEPT => exits.accept,
        REJECT => exits.reject,
        _ => labels.get(step as usize).copied().unwrap_or(exits.reject),
    };
    if let Some(first) = registers.get_mut(program.start as usize) {
        *first = Some(Registers::default());
    }
    assembler.goto(target(program.start));
    let mut emitter =
        Emitter { assembler, view, reject: exits.reject, registers: Registers::default() };
    for (at, step) in program.steps.iter().enumerate() {
        let Some(before) = registers[at] else {
            continue;
        };
        emitter.registers = before;
        emitter.assembler.here(labels[at]);
        emitter.test(program, &step.test, [step.on_true, step.on_false].map(target))?;
        for exit in [step.on_true, step.on_false] {
            if let Some(there) = registers.get_mut(exit as usize) {
                let after = emitter.registers;
                *there = Some(there.map_or(after, |others| others.common(after)));
            }
        }
    }
    Ok(())
}

/// What the two registers are known to hold, so that it is not loaded again.
#[derive(Clone, Copy, Default)]
struct Registers {
    a: Option<Held>,
    /// Offset of the IPv4 header whose length `X` is.
    x: Option<u32>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Held {
    Field(Field, u32),
    Length,
}

impl Registers {
    fn common(self, other: Self) -> Self {
        Self {
            a: self.a.filter(|a| other.a == Some(*a)),
            x: self.x.filter(|x| other.x == Some(*x)),
        }
    }
}

pub(super) struct Emitter<'a> {
    pub(super) assembler: &'a mut Assembler,
    pub(super) view: View,
    pub(super) reject: Label,
    registers: Registers,
}

impl Emitter<'_> {
    fn test(&mut self, program: &Program, test: &Test, exits: [Label; 2]) -> Result<(), Error> {
        let [on_true, on_false] = exits;
        match test {
            Test::Constant(outcome) => {
                self.assembler.goto(if *outcome { on_true } else { on_false });
            }
            Test::Field { field, mask, comparison, value } => {
                self.field_test(*field, *mask, *comparison, *value, exits)?;
            }
            Test::WireLength { comparison, value } => {
                if self.registers.a != Some(Held::Length) {
                    self.length();
                    self.registers.a = Some(Held::Length);
                }
                self.assembler.branch(jump(*comparison), *value, on_true, on_false);
            }
            Test::Arithmetic { left, right, comparison } => {
                self.registers = Registers::default();
                let [left, right] = [left, right].map(|range| {
                    let range = range.start as usize..range.end as usize;
                    program.operations.get(range).unwrap_or_default()
                });
                self.arithmetic_test(left, right, *comparison, exits)?;
            }
        }
        Ok(())
    }

    fn field_test(
        &mut self,
        field: Field,
        mask: u32,
        comparison: Comparison,
        value: u32,
        [on_true, on_false]: [Label; 2],
    ) -> Result<(), Error> {
        let full = field_mask(field);
        let mask = mask & full;
        // Where the branch can mask by itself, the field stays whole for the next test.
        let (mask, code, k, on_true, on_false) = match comparison {
            Comparison::AnyBit => (full, op::JSET, mask & value, on_true, on_false),
            Comparison::Equal if value == 0 && mask != full => {
                (full, op::JSET, mask, on_false, on_true)
            }
            Comparison::Equal if value == mask && mask.is_power_of_two() => {
                (full, op::JSET, mask, on_true, on_false)
            }
            _ => (mask, jump(comparison), value, on_true, on_false),
        };
        self.masked_field(field, mask)?;
        self.assembler.branch(code, k, on_true, on_false);
        Ok(())
    }

    fn arithmetic_test(
        &mut self,
        left: &[Operation],
        right: &[Operation],
        comparison: Comparison,
        [on_true, on_false]: [Label; 2],
    ) -> Result<(), Error> {
        let [Operation::Number(number)] = left else {
            let (code, k) = self.operands(left, right, jump(comparison))?;
            self.assembler.branch(code, k, on_true, on_false);
            return Ok(());
        };
        // The constant must be on the right.
        let (code, on_true, on_false) = match comparison {
            Comparison::Greater => (op::JGE, on_false, on_true),
            Comparison::AtLeast => (op::JGT, on_false, on_true),
            Comparison::Equal | Comparison::AnyBit => (jump(comparison), on_true, on_false),
        };
        self.expression(right, 0)?;
        self.assembler.branch(code, *number, on_true, on_false);
        Ok(())
    }

    /// `A =` the field under the mask.
    fn masked_field(&mut self, field: Field, mask: u32) -> Result<(), Error> {
        let full = field_mask(field);
        if self.registers.a == Some(Held::Field(field, mask)) {
            return Ok(());
        }
        if self.registers.a != Some(Held::Field(field, full)) {
            self.field(field)?;
        }
        if mask != full {
            self.assembler.plain(op::AND, mask);
        }
        self.registers.a = Some(Held::Field(field, mask));
        Ok(())
    }

    /// `X = A`.
    pub(super) fn copy_to_x(&mut self) {
        self.assembler.plain(op::TAX, 0);
        self.registers.x = None;
    }

    /// `X =` a word of scratch memory.
    pub(super) fn recall_to_x(&mut self, word: u32) {
        self.assembler.plain(op::LDX_MEM, word);
        self.registers.x = None;
    }

    /// `X =` length of the IPv4 header at an offset of the packet.
    pub(super) fn header_length_to_x(&mut self, at: u32, header: u32) {
        self.assembler.plain(op::LDX_MSH, at);
        self.registers.x = Some(header);
    }

    /// `A =` the length of the frame on the wire.
    pub(super) fn length(&mut self) {
        self.assembler.plain(op::LD_LEN, 0);
        if self.view.missing() > 0 {
            self.assembler.plain(op::ADD, self.view.missing());
        }
    }

    /// `A =` the field. The length of an IPv4 header stays in `X` for the next one.
    pub(super) fn field(&mut self, field: Field) -> Result<(), Error> {
        let Some(header) = field.after_ipv4 else {
            return self.fixed(field.offset, field.size);
        };
        if self.registers.x != Some(header) {
            match self.view.place(header, 1) {
                Some(at) => self.header_length_to_x(at, header),
                None => {
                    self.header_length(header)?;
                    self.copy_to_x();
                }
            }
        }
        if field.offset >= self.view.rest() {
            let at = field.offset - self.view.missing();
            self.assembler.plain(op::sized(op::LD_IND_W, field.size), at);
            return Ok(());
        }
        self.assembler.plain(op::TXA, 0);
        self.indexed(field.offset, field.size)
    }

    /// `A =` length of the IPv4 header at an offset, where it is not a byte of the packet.
    pub(super) fn header_length(&mut self, header: u32) -> Result<(), Error> {
        self.fixed(header, 1)?;
        self.assembler.plain(op::AND, 0xf);
        self.assembler.plain(op::LSH, 2);
        Ok(())
    }

    /// `A =` the bytes at an offset of the frame, wherever they are.
    fn fixed(&mut self, offset: u32, size: u8) -> Result<(), Error> {
        if let Some(at) = self.view.place(offset, size.into()) {
            self.assembler.plain(op::sized(op::LD_ABS_W, size), at);
            return Ok(());
        }
        let end = offset + u32::from(size);
        let (mut at, mut is_first) = (offset, true);
        while at < end {
            if !is_first {
                self.copy_to_x();
            }
            let read = self.piece(at, end - at)?;
            at += read;
            if at < end {
                self.assembler.plain(op::LSH, 8 * (end - at));
            }
            if !is_first {
                self.assembler.plain(op::OR | op::WITH_X, 0);
            }
            is_first = false;
        }
        Ok(())
    }

    /// `A =` as many bytes from an offset on as one load gives, at most `wanted`; how many these are.
    fn piece(&mut self, offset: u32, wanted: u32) -> Result<u32, Error> {
        let Some((region, start, missing)) = self.view.region(offset) else {
            let size = largest_load(wanted);
            let at = offset - self.view.missing();
            self.assembler.plain(op::sized(op::LD_ABS_W, size), at);
            return Ok(size.into());
        };
        let end = start + region.len;
        let wanted = wanted.min(end - offset);
        match region.content {
            Content::Bytes => {
                let size = largest_load(wanted);
                self.assembler.plain(op::sized(op::LD_ABS_W, size), offset - missing);
                return Ok(size.into());
            }
            Content::Ancillary(k) => {
                self.assembler.plain(op::sized(op::LD_ABS_W, region.len as u8), k);
                let behind = end - offset - wanted;
                if behind > 0 {
                    self.assembler.plain(op::RSH, 8 * behind);
                }
                if offset > start {
                    self.assembler.plain(op::AND, u32::MAX >> (32 - 8 * wanted));
                }
            }
            Content::Zero => self.assembler.plain(op::LD_IMM, 0),
            Content::Unknown => {
                return Err(Error::HeaderByte { link_type: self.view.link_type, offset });
            }
        }
        Ok(wanted)
    }

    /// `A =` the bytes `A` behind an offset of the frame, where the sum may not wrap.
    pub(super) fn indexed(&mut self, offset: u32, size: u8) -> Result<(), Error> {
        let inside = self.assembler.label();
        // A sum above 2^31 would be a negative offset, and those have meanings of their own.
        self.assembler.branch(op::JGT, LAST_OFFSET - offset, self.reject, inside);
        self.assembler.here(inside);
        if offset >= self.view.rest() {
            self.copy_to_x();
            let at = offset - self.view.missing();
            self.assembler.plain(op::sized(op::LD_IND_W, size), at);
            return Ok(());
        }
        self.assembler.plain(op::ADD, offset);
        self.anywhere(offset, size)
    }

    /// `A =` the bytes at the offset `A` of the frame, which is `least` at least, where some of the
    /// offsets from there on are not in the packet: each of these is a case of its own.
    fn anywhere(&mut self, least: u32, size: u8) -> Result<(), Error> {
        let rest = self.view.rest();
        let (done, behind) = (self.assembler.label(), self.assembler.label());
        let mut next = self.assembler.label();
        self.assembler.branch(op::JGE, rest, behind, next);
        for at in least..rest {
            self.assembler.here(next);
            let found = self.assembler.label();
            next = self.assembler.label();
            self.assembler.branch(op::JEQ, at, found, next);
            self.assembler.here(found);
            self.fixed(at, size)?;
            self.assembler.goto(done);
        }
        self.assembler.here(next);
        self.assembler.goto(self.reject);
        self.assembler.here(behind);
        self.assembler.plain(op::SUB, self.view.missing());
        self.copy_to_x();
        self.assembler.plain(op::sized(op::LD_IND_W, size), 0);
        self.assembler.here(done);
        Ok(())
    }
}

/// The largest load of at most `len` bytes.
const fn largest_load(len: u32) -> u8 {
    match len {
        0 | 1 => 1,
        2 | 3 => 2,
        _ => 4,
    }
}

/// All bits of a field.
const fn field_mask(field: Field) -> u32 {
    match field.size {
        1 => 0xff,
        2 => 0xffff,
        _ => u32::MAX,
    }
}

const fn jump(comparison: Comparison) -> u16 {
    match comparison {
        Comparison::Equal => op::JEQ,
        Comparison::Greater => op::JGT,
        Comparison::AtLeast => op::JGE,
        Comparison::AnyBit => op::JSET,
    }
}
