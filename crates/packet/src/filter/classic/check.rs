//! Which programs the kernel takes: the rules of its `bpf_check_classic`.

use core::fmt;

use super::Instruction;
use super::opcode as op;

/// Most instructions of a program, `BPF_MAXINSNS`.
pub const MAX_INSTRUCTIONS: usize = 4096;

/// Why a sequence of instructions is not a program. Instructions are numbered from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Rejection {
    /// There is no instruction.
    Empty,
    /// There are more than [`MAX_INSTRUCTIONS`].
    TooLong {
        /// How many there are.
        instructions: usize,
    },
    /// An operation code that does not exist.
    UnknownOperation {
        /// Number of the instruction.
        at: usize,
    },
    /// A jump behind the last instruction.
    Jump {
        /// Number of the instruction.
        at: usize,
    },
    /// A division by the constant 0, or a shift by a constant of more than 31.
    Operand {
        /// Number of the instruction.
        at: usize,
    },
    /// A word of scratch memory that does not exist, or that holds nothing yet on some way there.
    Scratch {
        /// Number of the instruction.
        at: usize,
    },
    /// A question about the packet that [`Metadata`](super::Metadata) does not answer.
    UnknownLoad {
        /// Number of the instruction.
        at: usize,
    },
    /// The last instruction does not end the program.
    NoEnd,
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("the program is empty"),
            Self::TooLong { instructions } => write!(
                f,
                "the program has {instructions} instructions, and the kernel takes {MAX_INSTRUCTIONS}"
            ),
            Self::UnknownOperation { at } => write!(f, "instruction {at} is unknown"),
            Self::Jump { at } => write!(f, "instruction {at} jumps out of the program"),
            Self::Operand { at } => {
                write!(f, "instruction {at} divides by 0 or shifts by more than 31 bits")
            }
            Self::Scratch { at } => write!(f, "instruction {at} reads or writes no scratch word"),
            Self::UnknownLoad { at } => write!(f, "instruction {at} loads what is not known"),
            Self::NoEnd => f.write_str("the last instruction does not end the program"),
        }
    }
}

impl core::error::Error for Rejection {}

/// Checks that a program ends, stays within its bounds, and reads no scratch word before it wrote it.
pub(super) fn check(instructions: &[Instruction]) -> Result<(), Rejection> {
    let count = instructions.len();
    if count > MAX_INSTRUCTIONS {
        return Err(Rejection::TooLong { instructions: count });
    }
    let last = instructions.last().ok_or(Rejection::Empty)?;
    for (at, instruction) in instructions.iter().enumerate() {
        check_operand(at, *instruction)?;
        // Where jumps may go: to one of the instructions behind.
        let behind = count - at - 1;
        if exits(*instruction).is_some_and(|exits| exits.iter().any(|skip| *skip >= behind)) {
            return Err(Rejection::Jump { at });
        }
    }
    if !matches!(last.code, op::RET_K | op::RET_A) {
        return Err(Rejection::NoEnd);
    }
    check_scratch(instructions)
}

/// How many instructions a jump skips when its condition holds, and when not.
fn exits(instruction: Instruction) -> Option<[usize; 2]> {
    match instruction.code {
        op::JA => Some([instruction.k as usize; 2]),
        code if code & op::CLASS == op::CLASS_JMP => {
            Some([instruction.jt.into(), instruction.jf.into()])
        }
        _ => None,
    }
}

fn check_operand(at: usize, Instruction { code, k, .. }: Instruction) -> Result<(), Rejection> {
    if let Some((load, _)) = op::unsized_load(code) {
        let is_known = load == op::LD_IND_W || k < op::ancillary::FIRST || is_ancillary(k);
        return if is_known { Ok(()) } else { Err(Rejection::UnknownLoad { at }) };
    }
    match code {
        op::DIV | op::MOD if k == 0 => Err(Rejection::Operand { at }),
        op::LSH | op::RSH if k >= 32 => Err(Rejection::Operand { at }),
        op::LD_MEM | op::LDX_MEM | op::ST | op::STX if k >= op::SCRATCH_WORDS => {
            Err(Rejection::Scratch { at })
        }
        op::LD_IMM | op::LD_MEM | op::LD_LEN => Ok(()),
        op::LDX_IMM | op::LDX_MEM | op::LDX_LEN | op::LDX_MSH | op::ST | op::STX => Ok(()),
        op::JA | op::NEG | op::RET_K | op::RET_A | op::TAX | op::TXA => Ok(()),
        _ => match code & !op::WITH_X {
            op::JEQ | op::JGT | op::JGE | op::JSET => Ok(()),
            op::ADD | op::SUB | op::MUL | op::DIV | op::MOD => Ok(()),
            op::AND | op::OR | op::XOR | op::LSH | op::RSH => Ok(()),
            _ => Err(Rejection::UnknownOperation { at }),
        },
    }
}

const fn is_ancillary(k: u32) -> bool {
    use op::ancillary as ad;
    matches!(
        k,
        ad::PROTOCOL
            | ad::PACKET_TYPE
            | ad::INTERFACE_INDEX
            | ad::HARDWARE_TYPE
            | ad::VLAN_TAG
            | ad::VLAN_TAG_PRESENT
            | ad::VLAN_TPID
    )
}

/// Scratch memory is not cleared before a program runs, so a word must have been written on every
/// way to where it is read.
fn check_scratch(instructions: &[Instruction]) -> Result<(), Rejection> {
    // One bit for each word that is written on all ways to an instruction.
    let mut written = vec![u16::MAX; instructions.len()];
    let mut now = 0_u16;
    for (at, instruction) in instructions.iter().enumerate() {
        now &= written.get(at).copied().unwrap_or_default();
        let word = 1_u16.checked_shl(instruction.k).unwrap_or_default();
        match instruction.code {
            op::ST | op::STX => now |= word,
            op::LD_MEM | op::LDX_MEM if now & word == 0 => return Err(Rejection::Scratch { at }),
            _ => {}
        }
        if let Some(exits) = exits(*instruction) {
            for skip in exits {
                if let Some(there) = written.get_mut(at + 1 + skip) {
                    *there &= now;
                }
            }
            // What follows a jump is reached by jumps alone.
            now = u16::MAX;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const END: Instruction = Instruction::new(op::RET_K, 0);

    fn fault(instructions: &[Instruction]) -> Option<Rejection> {
        check(instructions).err()
    }

    fn jump(jt: u8, jf: u8) -> Instruction {
        Instruction { code: op::JEQ, jt, jf, k: 0 }
    }

    #[test]
    fn programs_end_and_stay_within_their_bounds() {
        let plain = Instruction::new;
        assert_eq!(fault(&[END]), None);
        assert_eq!(fault(&[]), Some(Rejection::Empty));
        assert_eq!(fault(&[plain(op::TAX, 0)]), Some(Rejection::NoEnd));
        assert_eq!(fault(&[jump(0, 1), END, END]), None);
        assert_eq!(fault(&[jump(0, 2), END, END]), Some(Rejection::Jump { at: 0 }));
        assert_eq!(fault(&[END, jump(1, 0), END]), Some(Rejection::Jump { at: 1 }));
        assert_eq!(fault(&[plain(op::JA, 1), END, END]), None);
        assert_eq!(fault(&[plain(op::JA, u32::MAX), END]), Some(Rejection::Jump { at: 0 }));
        assert_eq!(fault(&[END; MAX_INSTRUCTIONS]), None);
        let instructions = MAX_INSTRUCTIONS + 1;
        assert_eq!(fault(&[END; MAX_INSTRUCTIONS + 1]), Some(Rejection::TooLong { instructions }));
    }

    #[test]
    fn operands_make_sense() {
        let with = |code, k| fault(&[Instruction::new(code, k), END]);
        for (code, good, bad) in
            [(op::DIV, 1, 0), (op::MOD, 1, 0), (op::LSH, 31, 32), (op::RSH, 0, 33)]
        {
            assert_eq!(with(code, good), None);
            assert_eq!(with(code, bad), Some(Rejection::Operand { at: 0 }));
            assert_eq!(with(code | op::WITH_X, bad), None);
        }
        for code in [0x18, 0x38, 0x98, 0x0d + 0x60, 0xff, 0x0e, op::NEG | op::WITH_X, 0x1000] {
            assert_eq!(with(code, 0), Some(Rejection::UnknownOperation { at: 0 }), "{code:x}");
        }
        assert_eq!(with(op::LD_ABS_W, op::ancillary::VLAN_TAG), None);
        let rxhash = op::ancillary::FIRST + 32;
        assert_eq!(with(op::LD_ABS_W, rxhash), Some(Rejection::UnknownLoad { at: 0 }));
        assert_eq!(with(op::LD_IND_W, rxhash), None);
    }

    #[test]
    fn scratch_words_are_written_before_they_are_read() {
        let (write, read) = (Instruction::new(op::ST, 3), Instruction::new(op::LDX_MEM, 3));
        assert_eq!(fault(&[write, read, END]), None);
        assert_eq!(fault(&[read, write, END]), Some(Rejection::Scratch { at: 0 }));
        // Written on one of two ways only, then on both.
        assert_eq!(fault(&[jump(0, 1), write, read, END]), Some(Rejection::Scratch { at: 2 }));
        let around = Instruction::new(op::JA, 1);
        assert_eq!(fault(&[jump(0, 2), write, around, write, read, END]), None);
        assert_eq!(
            fault(&[Instruction::new(op::STX, 16), END]),
            Some(Rejection::Scratch { at: 0 })
        );
    }
}
