//! Arithmetic expressions as instructions: the value on top of the stack is `A`, those below it are
//! in scratch memory.

use super::Error;
use super::emit::Emitter;
use super::opcode as op;
use crate::filter::program::Operation;
use crate::filter::tree::Operator;

/// A stack of values whose lowest is the scratch word `base`.
struct Stack {
    base: u32,
    depth: u32,
}

impl Stack {
    /// The scratch word of the value `below` under the top.
    fn word(&self, below: u32) -> Result<u32, Error> {
        let word = (self.base + self.depth).checked_sub(1 + below).ok_or(Error::Scratch)?;
        if word < op::SCRATCH_WORDS { Ok(word) } else { Err(Error::Scratch) }
    }
}

impl Emitter<'_> {
    /// Puts the left operand of a comparison into `A`, and gives the code and the constant of the
    /// comparison with the right one.
    pub(super) fn operands(
        &mut self,
        left: &[Operation],
        right: &[Operation],
        jump: u16,
    ) -> Result<(u16, u32), Error> {
        self.expression(left, 0)?;
        if let [Operation::Number(number)] = right {
            return Ok((jump, *number));
        }
        self.assembler.plain(op::ST, 0);
        self.expression(right, 1)?;
        self.copy_to_x();
        self.assembler.plain(op::LD_MEM, 0);
        Ok((jump | op::WITH_X, 0))
    }

    /// `A =` the value of an expression in postfix order.
    pub(super) fn expression(
        &mut self,
        mut operations: &[Operation],
        base: u32,
    ) -> Result<(), Error> {
        let mut stack = Stack { base, depth: 0 };
        while let [operation, rest @ ..] = operations {
            operations = rest;
            match *operation {
                Operation::Number(number) => {
                    if let [Operation::Binary(operator), rest @ ..] = rest
                        && takes_constant(*operator, number)
                    {
                        self.assembler.plain(code(*operator), number);
                        operations = rest;
                        continue;
                    }
                    self.push(&mut stack)?;
                    self.assembler.plain(op::LD_IMM, number);
                }
                Operation::WireLength => {
                    self.push(&mut stack)?;
                    self.length();
                }
                Operation::Load(field) => {
                    self.push(&mut stack)?;
                    self.field(field)?;
                }
                Operation::LoadIndexed(field) => {
                    if let Some(header) = field.after_ipv4 {
                        self.add_header_length(header, &stack)?;
                    }
                    self.indexed(field.offset, field.size)?;
                }
                Operation::Negate => self.assembler.plain(op::NEG, 0),
                Operation::Binary(operator) => self.binary(operator, &mut stack)?,
            }
        }
        Ok(())
    }

    /// Makes room in `A` for one more value.
    fn push(&mut self, stack: &mut Stack) -> Result<(), Error> {
        if stack.depth > 0 {
            self.assembler.plain(op::ST, stack.word(0)?);
        }
        stack.depth += 1;
        Ok(())
    }

    /// Adds the length of an IPv4 header to `A`.
    fn add_header_length(&mut self, header: u32, stack: &Stack) -> Result<(), Error> {
        match self.view.place(header, 1) {
            Some(at) => self.header_length_to_x(at, header),
            None => {
                let word = stack.word(0)?;
                self.assembler.plain(op::ST, word);
                self.header_length(header)?;
                self.recall_to_x(word);
            }
        }
        self.assembler.plain(op::ADD | op::WITH_X, 0);
        Ok(())
    }

    /// Joins the two values on top: the right one is in `A`.
    fn binary(&mut self, operator: Operator, stack: &mut Stack) -> Result<(), Error> {
        let left = stack.word(1)?;
        stack.depth -= 1;
        let code = code(operator) | op::WITH_X;
        let is_shift = matches!(operator, Operator::ShiftLeft | Operator::ShiftRight);
        let [all, some, done] = [(); 3].map(|()| self.assembler.label());
        if is_shift {
            // The kernel looks at five bits of the number only.
            self.assembler.branch(op::JGE, 32, all, some);
            self.assembler.here(some);
        }
        self.copy_to_x();
        self.assembler.plain(op::LD_MEM, left);
        self.assembler.plain(code, 0);
        if is_shift {
            self.assembler.goto(done);
            self.assembler.here(all);
            self.assembler.plain(op::LD_IMM, 0);
            self.assembler.here(done);
        }
        Ok(())
    }
}

/// Whether the kernel takes `number` as the constant right operand.
const fn takes_constant(operator: Operator, number: u32) -> bool {
    match operator {
        Operator::Divide | Operator::Modulo => number != 0,
        Operator::ShiftLeft | Operator::ShiftRight => number < 32,
        _ => true,
    }
}

const fn code(operator: Operator) -> u16 {
    match operator {
        Operator::Add => op::ADD,
        Operator::Subtract => op::SUB,
        Operator::Multiply => op::MUL,
        Operator::Divide => op::DIV,
        Operator::Modulo => op::MOD,
        Operator::And => op::AND,
        Operator::Or => op::OR,
        Operator::Xor => op::XOR,
        Operator::ShiftLeft => op::LSH,
        Operator::ShiftRight => op::RSH,
    }
}
