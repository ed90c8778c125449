//! A filter bound to one link type: tests with two exits each, as classic BPF has them.

use core::ops::Range;

use super::tree::Operator;

/// Exit of a step: the packet matches.
pub(super) const ACCEPT: u32 = u32::MAX;
/// Exit of a step: the packet does not match.
pub(super) const REJECT: u32 = u32::MAX - 1;
/// Most values that an arithmetic expression may hold at once: classic BPF has 16 scratch words.
pub(super) const MAX_STACK: usize = 16;

/// Tests in the order in which they were written, and where to go after each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Program {
    pub(super) start: u32,
    pub(super) steps: Vec<Step>,
    pub(super) operations: Vec<Operation>,
}

/// One test. Its exits are later steps, [`ACCEPT`] or [`REJECT`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Step {
    pub(super) test: Test,
    pub(super) on_true: u32,
    pub(super) on_false: u32,
}

/// Bytes of the packet, as one number in network byte order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Field {
    pub(super) offset: u32,
    pub(super) size: u8,
    /// Where the IPv4 header begins whose length is added to `offset`.
    pub(super) after_ipv4: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Comparison {
    Equal,
    Greater,
    AtLeast,
    /// Any of these bits is set.
    AnyBit,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Test {
    Constant(bool),
    Field {
        field: Field,
        mask: u32,
        comparison: Comparison,
        value: u32,
    },
    WireLength {
        comparison: Comparison,
        value: u32,
    },
    /// Compares the results of two expressions.
    Arithmetic {
        left: Range<u32>,
        right: Range<u32>,
        comparison: Comparison,
    },
}

/// One operation on a small stack of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Number(u32),
    WireLength,
    Load(Field),
    /// Takes an offset from the stack, and adds it to that of the field.
    LoadIndexed(Field),
    Binary(Operator),
    Negate,
}

/// A load outside the packet, or a division by zero: the whole packet is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Abort;

impl Program {
    /// Runs the program. Steps only go forward, so it ends.
    #[inline]
    pub(super) fn accepts(&self, data: &[u8], wire_len: u32) -> bool {
        let mut at = self.start;
        while let Some(step) = self.steps.get(at as usize) {
            let outcome = match &step.test {
                Test::Field { field, mask, comparison, value } => {
                    field.load(data, 0).map(|loaded| comparison.holds(loaded & mask, *value))
                }
                Test::Constant(outcome) => Ok(*outcome),
                Test::WireLength { comparison, value } => Ok(comparison.holds(wire_len, *value)),
                Test::Arithmetic { left, right, comparison } => self
                    .evaluate(left, data, wire_len)
                    .and_then(|left| Ok((left, self.evaluate(right, data, wire_len)?)))
                    .map(|(left, right)| comparison.holds(left, right)),
            };
            at = match outcome {
                Ok(true) => step.on_true,
                Ok(false) => step.on_false,
                Err(Abort) => return false,
            };
        }
        at == ACCEPT
    }

    fn evaluate(&self, range: &Range<u32>, data: &[u8], wire_len: u32) -> Result<u32, Abort> {
        let mut stack = Stack { values: [0; MAX_STACK], used: 0 };
        let range = range.start as usize..range.end as usize;
        for operation in self.operations.get(range).unwrap_or_default() {
            let value = match *operation {
                Operation::Number(number) => number,
                Operation::WireLength => wire_len,
                Operation::Load(field) => field.load(data, 0)?,
                Operation::LoadIndexed(field) => field.load(data, stack.pop())?,
                Operation::Negate => stack.pop().wrapping_neg(),
                Operation::Binary(operator) => {
                    let right = stack.pop();
                    operator.apply(stack.pop(), right)?
                }
            };
            stack.push(value);
        }
        Ok(stack.pop())
    }
}

/// The binder admits no expression that needs more, so nothing is ever dropped here.
struct Stack {
    values: [u32; MAX_STACK],
    used: usize,
}

impl Stack {
    fn push(&mut self, value: u32) {
        if let Some(slot) = self.values.get_mut(self.used) {
            *slot = value;
            self.used += 1;
        }
    }

    fn pop(&mut self) -> u32 {
        self.used = self.used.saturating_sub(1);
        self.values[self.used]
    }
}

impl Field {
    /// The field `index` bytes further on.
    ///
    /// As in classic BPF, the index and the length of the IPv4 header are added modulo 2^32, so
    /// `tcp[-1]` is the byte before the TCP header; the constant offset is added without wrapping.
    #[inline]
    fn load(self, data: &[u8], index: u32) -> Result<u32, Abort> {
        let mut index = index;
        if let Some(header) = self.after_ipv4 {
            let first = data.get(header as usize).ok_or(Abort)?;
            index = index.wrapping_add(u32::from(first & 0xf) * 4);
        }
        let start = (self.offset as usize).checked_add(index as usize).ok_or(Abort)?;
        let bytes = data.get(start..).ok_or(Abort)?;
        let value = match self.size {
            1 => bytes.first().map(|byte| u32::from(*byte)),
            2 => bytes.first_chunk().map(|bytes| u32::from(u16::from_be_bytes(*bytes))),
            _ => bytes.first_chunk().map(|bytes| u32::from_be_bytes(*bytes)),
        };
        value.ok_or(Abort)
    }
}

impl Comparison {
    #[inline]
    pub(super) const fn holds(self, left: u32, right: u32) -> bool {
        match self {
            Self::Equal => left == right,
            Self::Greater => left > right,
            Self::AtLeast => left >= right,
            Self::AnyBit => left & right != 0,
        }
    }
}

impl Operator {
    /// The result modulo 2^32. Shifts by 32 and more give 0, as in libpcap.
    pub(super) fn apply(self, left: u32, right: u32) -> Result<u32, Abort> {
        Ok(match self {
            Self::Add => left.wrapping_add(right),
            Self::Subtract => left.wrapping_sub(right),
            Self::Multiply => left.wrapping_mul(right),
            Self::Divide => left.checked_div(right).ok_or(Abort)?,
            Self::Modulo => left.checked_rem(right).ok_or(Abort)?,
            Self::And => left & right,
            Self::Or => left | right,
            Self::Xor => left ^ right,
            Self::ShiftLeft => left.checked_shl(right).unwrap_or(0),
            Self::ShiftRight => left.checked_shr(right).unwrap_or(0),
        })
    }
}
