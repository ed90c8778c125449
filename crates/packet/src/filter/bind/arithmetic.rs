//! Arithmetic on the bytes of a packet: `proto[offset:size]`, numbers, comparisons.

use super::{Binder, Bound, Id, Refusal};
use crate::filter::program::{Comparison, Field, MAX_STACK, Operation, Test};
use crate::filter::tree::{Operator, Protocol, Relation, Term};

/// What must hold before the bytes of a header mean anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Guard {
    Protocol(Protocol),
    NotLaterFragment,
    /// ICMPv6 right after the IPv6 header.
    NextHeaderIcmp6,
}

/// An operand: operations that leave one number on the stack.
#[derive(Debug, Default)]
struct Operand {
    operations: Vec<Operation>,
    guards: Vec<Guard>,
    /// Most numbers on the stack at once.
    depth: usize,
}

impl Operand {
    fn one(operation: Operation) -> Self {
        Self { operations: vec![operation], guards: Vec::new(), depth: 1 }
    }

    fn constant(&self) -> Option<u32> {
        match self.operations[..] {
            [Operation::Number(number)] => Some(number),
            _ => None,
        }
    }

    fn make_constant(mut self, number: u32) -> Self {
        self.operations = vec![Operation::Number(number)];
        self.depth = 1;
        self
    }
}

impl Binder {
    /// A comparison of two expressions, after the guards of what they load.
    pub(super) fn relation(
        &mut self,
        relation: Relation,
        left: &[Term],
        right: &[Term],
    ) -> Result<Id, Refusal> {
        let left = self.operand(left)?;
        let right = self.operand(right)?;
        let mut guards: Vec<Guard> = Vec::new();
        for guard in left.guards.iter().chain(&right.guards) {
            if !guards.contains(guard) {
                guards.push(*guard);
            }
        }
        let mut guarded = None;
        for guard in guards {
            let guard = self.guard(guard)?;
            guarded = Some(guarded.map_or(guard, |before| self.and(before, guard)));
        }
        let (comparison, negated) = match relation {
            Relation::Equal => (Comparison::Equal, false),
            Relation::NotEqual => (Comparison::Equal, true),
            Relation::Greater => (Comparison::Greater, false),
            Relation::AtMost => (Comparison::Greater, true),
            Relation::AtLeast => (Comparison::AtLeast, false),
            Relation::Less => (Comparison::AtLeast, true),
        };
        let mut holds = self.comparison(&left, &right, comparison);
        if negated {
            holds = self.not(holds);
        }
        Ok(guarded.map_or(holds, |guarded| self.and(guarded, holds)))
    }

    fn comparison(&mut self, left: &Operand, right: &Operand, comparison: Comparison) -> Id {
        // A field, perhaps masked, against a number is by far the most frequent form.
        if let Some(value) = right.constant() {
            match left.operations[..] {
                [Operation::Number(number)] => {
                    return self.constant(comparison.holds(number, value));
                }
                [Operation::WireLength] => return self.wire_length(comparison, value),
                [Operation::Load(field)] => return self.field(field, u32::MAX, comparison, value),
                [
                    Operation::Load(field),
                    Operation::Number(mask),
                    Operation::Binary(Operator::And),
                ] => {
                    return self.field(field, mask, comparison, value);
                }
                _ => {}
            }
        }
        let left = self.emit(&left.operations);
        let right = self.emit(&right.operations);
        self.push(Bound::Test(Test::Arithmetic { left, right, comparison }))
    }

    fn emit(&mut self, operations: &[Operation]) -> core::ops::Range<u32> {
        // The text is too short for this to leave 32 bits.
        let start = self.operations.len() as u32;
        self.operations.extend_from_slice(operations);
        start..self.operations.len() as u32
    }

    /// Binds terms in postfix order, and computes what is constant.
    fn operand(&self, terms: &[Term]) -> Result<Operand, Refusal> {
        let mut stack: Vec<Operand> = Vec::new();
        let broken = || "an operand is missing".to_owned();
        for term in terms {
            let operand = match *term {
                Term::Number(number) => Operand::one(Operation::Number(number)),
                Term::Length => Operand::one(Operation::WireLength),
                Term::Load { protocol, size } => {
                    self.load(protocol, size, stack.pop().ok_or_else(broken)?)?
                }
                Term::Negate => {
                    let mut operand = stack.pop().ok_or_else(broken)?;
                    if let Some(number) = operand.constant() {
                        operand.make_constant(number.wrapping_neg())
                    } else {
                        operand.operations.push(Operation::Negate);
                        operand
                    }
                }
                Term::Binary(operator) => {
                    let right = stack.pop().ok_or_else(broken)?;
                    binary(operator, stack.pop().ok_or_else(broken)?, right)?
                }
            };
            if operand.depth > MAX_STACK {
                return Err(format!("an expression may hold at most {MAX_STACK} values at once"));
            }
            stack.push(operand);
        }
        stack.pop().ok_or_else(broken)
    }

    fn load(&self, protocol: Protocol, size: u8, mut index: Operand) -> Result<Operand, Refusal> {
        use Protocol as P;
        let mut after_ipv4 = None;
        let base = match protocol {
            P::Link => self.layout.link_header()?,
            P::Ip
            | P::Ip6
            | P::Arp
            | P::Rarp
            | P::Atalk
            | P::Decnet
            | P::Sca
            | P::Lat
            | P::Moprc
            | P::Mopdl => {
                index.guards.push(Guard::Protocol(protocol));
                self.layout.network()?
            }
            P::Tcp
            | P::Udp
            | P::Sctp
            | P::Icmp
            | P::Igmp
            | P::Igrp
            | P::Pim
            | P::Vrrp
            | P::Carp => {
                index.guards.insert(0, Guard::Protocol(P::Ip));
                index.guards.extend([Guard::Protocol(protocol), Guard::NotLaterFragment]);
                after_ipv4 = Some(self.layout.network()?);
                self.layout.network()?
            }
            P::Icmp6 => {
                index.guards.extend([Guard::Protocol(P::Ip6), Guard::NextHeaderIcmp6]);
                self.layout.network()?.wrapping_add(40)
            }
            _ => return Err(format!("\"{}[...]\" has no meaning", protocol.name())),
        };
        let offset = index.constant().map_or(base, |number| base.wrapping_add(number));
        let field = Field { offset, size, after_ipv4 };
        if index.constant().is_some() {
            index.operations = vec![Operation::Load(field)];
        } else {
            index.operations.push(Operation::LoadIndexed(field));
        }
        Ok(index)
    }

    fn guard(&mut self, guard: Guard) -> Result<Id, Refusal> {
        match guard {
            Guard::Protocol(protocol) => self.protocol(protocol),
            Guard::NotLaterFragment => self.not_later_fragment(),
            Guard::NextHeaderIcmp6 => Ok(self.equal(self.layout.network()?.wrapping_add(6), 1, 58)),
        }
    }
}

/// Joins two operands.
///
/// libpcap keeps only the guards of the left operand, and does not load what a zero makes
/// irrelevant; both decide which packets match, so both are done here.
fn binary(operator: Operator, mut left: Operand, right: Operand) -> Result<Operand, Refusal> {
    use Operator as O;
    match (left.constant(), right.constant()) {
        (_, Some(0)) if operator == O::Divide => return Err("division by zero".to_owned()),
        (_, Some(0)) if operator == O::Modulo => {
            return Err("remainder of a division by zero".to_owned());
        }
        (_, Some(32..)) if matches!(operator, O::ShiftLeft | O::ShiftRight) => {
            return Err("shift by more than 31 bits".to_owned());
        }
        (Some(one), Some(other)) => {
            let result = operator.apply(one, other).map_err(|_| "division by zero".to_owned())?;
            return Ok(left.make_constant(result));
        }
        (_, Some(0)) if matches!(operator, O::And | O::Multiply) => {
            return Ok(left.make_constant(0));
        }
        (Some(0), _) if !matches!(operator, O::Add | O::Subtract | O::Or | O::Xor) => {
            return Ok(left.make_constant(0));
        }
        _ => {}
    }
    left.depth = left.depth.max(right.depth + 1);
    left.operations.extend(right.operations);
    left.operations.push(Operation::Binary(operator));
    Ok(left)
}
