//! Filters of classic BPF as a part of a program of extended BPF, for XDP or for a socket.
//!
//! What a filter returns stays the same: how many bytes of the packet are kept, 0 for none. A load outside
//! the packet and a division by 0 refuse it, and so does a load beyond [`LAST_OFFSET`], behind which no program
//! can look.
//!
//! An XDP program runs before the stack takes a VLAN tag out of the packet, so that tags are bytes, and filters
//! hear that none lies beside them. Only where the interface itself takes tags out (`rxvlan` of ethtool), or
//! where they were never put in (a VLAN device over a veth pair), nobody tells an XDP program of them.

use netsniff_packet::filter::classic;

use super::assembler::Condition::{AnyBit, AtLeast, Equal, Greater, NotEqual};
use super::assembler::Operation::{
    Add, And, Divide, Modulo, Move, Multiply, Or, ShiftLeft, ShiftRight, Subtract, Xor,
};
use super::assembler::Width::{W32, W64};
use super::assembler::{Assembler, Condition, Label, Operand, Operation, Register, Size};
use super::{Error, Helper, socket, xdp};

/// Where the context of the program lies: the caller has put it there.
pub(crate) const CONTEXT: Register = Register::R6;

/// Where the number of bytes that are kept lies in the end, and `A` before.
pub(crate) const KEPT: Register = Register::R7;
const A: Register = Register::R7;
const X: Register = Register::R8;

/// Bytes of the stack that a filter uses, from its begin (R10) downwards: room for what is loaded from
/// fragments, and the scratch words.
const ROOM: i16 = -8;
const SCRATCH: i16 = -8 - 4 * libc::BPF_MEMWORDS as i16;

/// The last offset that can be loaded from. The verifier and the helpers of the kernel count offsets in packets
/// with 16 bits, and up to four bytes are loaded.
pub(crate) const LAST_OFFSET: u32 = 0xffff - 4;

/// Where the program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hook {
    /// Before the stack: the context is a `struct xdp_md`.
    Xdp,
    /// Before a packet is put into a socket: the context is a `struct __sk_buff`.
    Socket,
}

/// Where a filter ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exits {
    /// The packet is wanted, and [`KEPT`] has how much of it.
    pub(crate) accept: Label,
    /// Where the program goes on with a packet that it refuses.
    pub(crate) reject: Label,
}

/// Appends a filter. It spoils all registers but [`CONTEXT`] and [`Register::R9`].
///
/// # Errors
///
/// [`Error::Unknown`] where it asks for what the program is not told.
pub(crate) fn append(
    assembler: &mut Assembler,
    program: &classic::Program,
    hook: Hook,
    exits: Exits,
) -> Result<(), Error> {
    let instructions = program.instructions();
    let labels = instructions.iter().map(|_| assembler.label()).collect();
    let mut translator = Translator { assembler, labels, hook, exits };
    for register in [A, X] {
        translator.assembler.set(register, 0);
    }
    for (at, instruction) in instructions.iter().enumerate() {
        translator.place(at);
        translator.translate(at, *instruction)?;
    }
    Ok(())
}

struct Translator<'a> {
    assembler: &'a mut Assembler,
    /// One for each instruction of the filter.
    labels: Vec<Label>,
    hook: Hook,
    exits: Exits,
}

/// The parts of an operation code.
const CLASS: u32 = 0x07;
const SIZE: u32 = 0x18;
const MODE: u32 = 0xe0;
const OPERATION: u32 = 0xf0;

impl Translator<'_> {
    fn place(&mut self, at: usize) {
        if let Some(label) = self.labels.get(at) {
            self.assembler.here(*label);
        }
    }

    /// Where a jump of instruction `at` leads that skips so many; a filter that was checked has no others.
    fn target(&self, at: usize, skip: usize) -> Result<Label, Error> {
        let target = at.checked_add(1).and_then(|next| next.checked_add(skip));
        let label = target.and_then(|target| self.labels.get(target));
        label.copied().ok_or(Error::Instruction(at))
    }

    fn translate(&mut self, at: usize, instruction: classic::Instruction) -> Result<(), Error> {
        let classic::Instruction { code, jt, jf, k } = instruction;
        let code = u32::from(code);
        let with_x = code & libc::BPF_X != 0;
        let right = if with_x { Operand::Register(X) } else { k.into() };
        match code & CLASS {
            libc::BPF_LD => self.load(at, code, k)?,
            libc::BPF_LDX => self.load_x(at, code, k)?,
            libc::BPF_ST => self.assembler.store(Size::Word, Register::R10, scratch(k), A),
            libc::BPF_STX => self.assembler.store(Size::Word, Register::R10, scratch(k), X),
            libc::BPF_ALU if code & OPERATION == libc::BPF_NEG => self.assembler.negate(A),
            libc::BPF_ALU => {
                let operation = operation(code).ok_or(Error::Instruction(at))?;
                self.compute(operation, right);
            }
            libc::BPF_JMP if code & OPERATION == libc::BPF_JA => {
                let target = self.target(at, k as usize)?;
                self.assembler.goto(target);
            }
            libc::BPF_JMP => {
                let condition = condition(code).ok_or(Error::Instruction(at))?;
                let [on_true, on_false] = [jt, jf].map(|skip| self.target(at, skip.into()));
                self.assembler.branch(W32, A, condition, right, on_true?);
                self.assembler.goto(on_false?);
            }
            libc::BPF_RET => self.end(code, k),
            _ if code & libc::BPF_TXA != 0 => self.assembler.compute(W32, Move, A, X),
            _ => self.assembler.compute(W32, Move, X, A),
        }
        Ok(())
    }

    fn end(&mut self, code: u32, k: u32) {
        if code & SIZE == libc::BPF_A {
            self.assembler.branch(W32, A, Equal, 0, self.exits.reject);
        } else if k == 0 {
            return self.assembler.goto(self.exits.reject);
        } else {
            self.assembler.compute(W32, Move, A, k);
        }
        self.assembler.goto(self.exits.accept);
    }

    fn compute(&mut self, operation: Operation, right: Operand) {
        match (operation, right) {
            // Classic BPF refuses the packet, extended BPF goes on with a result.
            (Divide | Modulo, Operand::Register(right)) => {
                self.assembler.branch(W32, right, Equal, 0, self.exits.reject);
                self.assembler.compute(W32, operation, A, right);
            }
            // Only the lowest five bits count, which the standard says of neither.
            (ShiftLeft | ShiftRight, Operand::Register(right)) => {
                self.assembler.compute(W32, Move, Register::R1, right);
                self.assembler.compute(W32, And, Register::R1, 31);
                self.assembler.compute(W32, operation, A, Register::R1);
            }
            _ => self.assembler.compute(W32, operation, A, right),
        }
    }

    fn load(&mut self, at: usize, code: u32, k: u32) -> Result<(), Error> {
        let size = match code & SIZE {
            libc::BPF_B => Size::Byte,
            libc::BPF_H => Size::Half,
            _ => Size::Word,
        };
        match code & MODE {
            libc::BPF_IMM => self.assembler.compute(W32, Move, A, k),
            libc::BPF_MEM => self.assembler.load(Size::Word, A, Register::R10, scratch(k)),
            libc::BPF_LEN => self.length(A),
            libc::BPF_ABS if k >= libc::SKF_AD_OFF.cast_unsigned() => self.ask(k)?,
            libc::BPF_ABS => self.load_at(k, size),
            libc::BPF_IND => self.load_behind_x(k, size),
            _ => return Err(Error::Instruction(at)),
        }
        Ok(())
    }

    fn load_x(&mut self, at: usize, code: u32, k: u32) -> Result<(), Error> {
        match code & MODE {
            libc::BPF_IMM => self.assembler.compute(W32, Move, X, k),
            libc::BPF_MEM => self.assembler.load(Size::Word, X, Register::R10, scratch(k)),
            libc::BPF_LEN => self.length(X),
            libc::BPF_MSH => {
                // The byte goes through `A`, which is kept beside.
                self.assembler.store(Size::Word, Register::R10, KEPT_A, A);
                self.load_at(k, Size::Byte);
                self.assembler.compute(W32, Move, X, A);
                self.assembler.compute(W32, And, X, 0xf);
                self.assembler.compute(W32, ShiftLeft, X, 2);
                self.assembler.load(Size::Word, A, Register::R10, KEPT_A);
            }
            _ => return Err(Error::Instruction(at)),
        }
        Ok(())
    }

    /// The length of the packet.
    fn length(&mut self, to: Register) {
        match self.hook {
            Hook::Socket => self.assembler.load(Size::Word, to, CONTEXT, socket::LENGTH),
            Hook::Xdp => {
                self.assembler.set(Register::R1, CONTEXT);
                self.assembler.call(Helper::XdpLength);
                self.assembler.compute(W32, Move, to, Register::R0);
            }
        }
    }

    /// What the kernel knows beside the bytes.
    fn ask(&mut self, k: u32) -> Result<(), Error> {
        let question = k.wrapping_sub(libc::SKF_AD_OFF.cast_unsigned()).cast_signed();
        match self.hook {
            Hook::Xdp => self.ask_xdp(question),
            Hook::Socket => self.ask_socket(question),
        }
    }

    fn ask_xdp(&mut self, question: i32) -> Result<(), Error> {
        match question {
            libc::SKF_AD_VLAN_TAG | libc::SKF_AD_VLAN_TAG_PRESENT | libc::SKF_AD_VLAN_TPID => {
                self.assembler.set(A, 0);
            }
            libc::SKF_AD_IFINDEX => self.assembler.load(Size::Word, A, CONTEXT, xdp::INTERFACE),
            libc::SKF_AD_PROTOCOL => return Err(Error::Unknown("the protocol")),
            libc::SKF_AD_PKTTYPE => return Err(Error::Unknown("the direction")),
            libc::SKF_AD_HATYPE => return Err(Error::Unknown("the hardware type")),
            _ => return Err(Error::Unknown("what the filter asks for")),
        }
        Ok(())
    }

    fn ask_socket(&mut self, question: i32) -> Result<(), Error> {
        let (at, is_network_order) = match question {
            libc::SKF_AD_VLAN_TAG => (socket::VLAN_TAG, false),
            libc::SKF_AD_VLAN_TAG_PRESENT => (socket::VLAN_PRESENT, false),
            libc::SKF_AD_VLAN_TPID => (socket::VLAN_PROTOCOL, true),
            libc::SKF_AD_IFINDEX => (socket::INTERFACE, false),
            libc::SKF_AD_PROTOCOL => (socket::PROTOCOL, true),
            libc::SKF_AD_PKTTYPE => (socket::PACKET_TYPE, false),
            libc::SKF_AD_HATYPE => return Err(Error::Unknown("the hardware type")),
            _ => return Err(Error::Unknown("what the filter asks for")),
        };
        self.assembler.load(Size::Word, A, CONTEXT, at);
        if is_network_order {
            self.assembler.network_order(A, 16);
        }
        Ok(())
    }

    /// `A =` bytes at an offset.
    fn load_at(&mut self, offset: u32, size: Size) {
        if offset > LAST_OFFSET {
            return self.assembler.goto(self.exits.reject);
        }
        match self.hook {
            Hook::Xdp => self.load_near(offset, size),
            Hook::Socket => {
                self.assembler.compute(W32, Move, Register::R3, offset);
                self.fetch(Register::R3, size);
            }
        }
        self.order(size);
    }

    /// `A =` bytes at an offset: at once where they lie together with the begin of the packet.
    fn load_near(&mut self, offset: u32, size: Size) {
        use Register::{R1, R2, R3, R4};
        let [elsewhere, loaded] = [(); 2].map(|()| self.assembler.label());
        self.assembler.load(Size::Word, R1, CONTEXT, xdp::DATA);
        self.assembler.load(Size::Word, R2, CONTEXT, xdp::DATA_END);
        self.assembler.compute(W64, Add, R1, offset);
        self.assembler.set(R4, R1);
        self.assembler.compute(W64, Add, R4, size.bytes());
        self.assembler.branch(W64, R4, Greater, R2, elsewhere);
        self.assembler.load(size, A, R1, 0);
        self.assembler.goto(loaded);
        self.assembler.here(elsewhere);
        self.assembler.compute(W32, Move, R3, offset);
        self.fetch(R3, size);
        self.assembler.here(loaded);
    }

    /// `A =` bytes at an offset from `X`. The verifier lets nobody without `CAP_PERFMON` add a register to the
    /// address of a packet, and that is a right that a capture does not need otherwise.
    fn load_behind_x(&mut self, offset: u32, size: Size) {
        self.assembler.compute(W32, Move, Register::R3, X);
        self.assembler.compute(W32, Add, Register::R3, offset);
        self.assembler.branch(W32, Register::R3, Greater, LAST_OFFSET, self.exits.reject);
        self.fetch(Register::R3, size);
        self.order(size);
    }

    /// `A =` bytes at the offset in a register, by a call that knows fragments, and where the packet ends.
    fn fetch(&mut self, offset: Register, size: Size) {
        use Register::{R0, R1, R2, R3, R4, R10};
        self.assembler.set(R1, CONTEXT);
        self.assembler.set(R2, offset);
        self.assembler.set(R3, R10);
        self.assembler.compute(W64, Add, R3, i32::from(ROOM));
        self.assembler.set(R4, size.bytes());
        self.assembler.call(match self.hook {
            Hook::Xdp => Helper::XdpLoadBytes,
            Hook::Socket => Helper::SocketLoadBytes,
        });
        self.assembler.branch(W64, R0, NotEqual, 0, self.exits.reject);
        self.assembler.load(size, A, R10, ROOM);
    }

    /// Makes a number of the bytes in `A`.
    fn order(&mut self, size: Size) {
        if size != Size::Byte {
            self.assembler.network_order(A, size.bytes() * 8);
        }
    }
}

/// Where `A` is kept while something else is loaded.
const KEPT_A: i16 = ROOM + 4;

/// Where a scratch word lies on the stack; a filter that was checked has no others than these.
fn scratch(k: u32) -> i16 {
    SCRATCH + 4 * (k.min(libc::BPF_MEMWORDS as u32 - 1) as i16)
}

const fn operation(code: u32) -> Option<Operation> {
    Some(match code & OPERATION {
        libc::BPF_ADD => Add,
        libc::BPF_SUB => Subtract,
        libc::BPF_MUL => Multiply,
        libc::BPF_DIV => Divide,
        libc::BPF_OR => Or,
        libc::BPF_AND => And,
        libc::BPF_LSH => ShiftLeft,
        libc::BPF_RSH => ShiftRight,
        libc::BPF_MOD => Modulo,
        libc::BPF_XOR => Xor,
        _ => return None,
    })
}

const fn condition(code: u32) -> Option<Condition> {
    Some(match code & OPERATION {
        libc::BPF_JEQ => Equal,
        libc::BPF_JGT => Greater,
        libc::BPF_JGE => AtLeast,
        libc::BPF_JSET => AnyBit,
        _ => return None,
    })
}
