//! Runs a program on one packet, as the kernel would.

use super::opcode::{self as op, ancillary};
use super::{Instruction, Program};

/// What the kernel knows of a packet beside its bytes.
///
/// The default is that of a packet of length 0 whose offsets count from its link-layer header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Metadata {
    /// What `len` is: the bytes from `start` on the wire, however many were captured.
    pub length: u32,
    /// Where in the bytes the offsets of a program begin. A socket filter of `SOCK_RAW` begins at the
    /// link-layer header; a fan-out program begins behind it for packets that were received.
    pub start: usize,
    /// The VLAN tag that was taken out of the bytes.
    pub vlan: Option<VlanTag>,
    /// The EtherType as the kernel told it, behind the VLAN tag.
    pub protocol: u16,
    /// To whom the packet was addressed, `sll_pkttype` of packet(7); 4 is what this host sent.
    pub packet_type: u8,
    /// Number of the interface.
    pub interface_index: u32,
    /// ARPHRD number of the interface.
    pub hardware_type: u16,
}

/// An IEEE 802.1Q or 802.1ad tag beside the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VlanTag {
    /// The EtherType of the tag, 0x8100 or 0x88a8.
    pub tpid: u16,
    /// Priority (3 bits), drop eligibility (1 bit) and number (12 bits).
    pub tci: u16,
}

impl Program {
    /// What the program returns for a packet: for a filter, how many bytes of it are kept, 0 for none.
    ///
    /// `bytes` begin with the link-layer header. A load outside them and a division by 0 end the
    /// program with 0. Offsets from the network header are not known here and load nothing; the
    /// kernel answers more questions than [`Metadata`], and [`Program::new`] refuses these.
    ///
    /// Jumps only go forward, so that it ends.
    #[must_use]
    pub fn run(&self, bytes: &[u8], metadata: &Metadata) -> u32 {
        Machine { a: 0, x: 0, scratch: [0; 16], bytes, metadata }
            .run(self.instructions())
            .unwrap_or(0)
    }
}

struct Machine<'a> {
    a: u32,
    x: u32,
    scratch: [u32; op::SCRATCH_WORDS as usize],
    bytes: &'a [u8],
    metadata: &'a Metadata,
}

impl Machine<'_> {
    /// `None` for a load outside the packet or a division by 0.
    fn run(mut self, instructions: &[Instruction]) -> Option<u32> {
        let mut at = 0_usize;
        loop {
            let instruction = instructions.get(at)?;
            at += 1;
            let Instruction { code, jt, jf, k } = *instruction;
            match code {
                op::RET_K => return Some(k),
                op::RET_A => return Some(self.a),
                op::JA => at = at.checked_add(k as usize)?,
                _ if code & op::CLASS == op::CLASS_JMP => {
                    let skip = if self.compare(code, k)? { jt } else { jf };
                    at += usize::from(skip);
                }
                _ if code & op::CLASS == op::CLASS_ALU => self.a = self.compute(code, k)?,
                _ => self.step(code, k)?,
            }
        }
    }

    fn step(&mut self, code: u16, k: u32) -> Option<()> {
        match code {
            op::LD_IMM => self.a = k,
            op::LD_MEM => self.a = *self.scratch.get(k as usize)?,
            op::LD_LEN => self.a = self.metadata.length,
            op::LDX_IMM => self.x = k,
            op::LDX_MEM => self.x = *self.scratch.get(k as usize)?,
            op::LDX_LEN => self.x = self.metadata.length,
            op::LDX_MSH => self.x = (self.load(k, 1)? & 0xf) * 4,
            op::ST => *self.scratch.get_mut(k as usize)? = self.a,
            op::STX => *self.scratch.get_mut(k as usize)? = self.x,
            op::TAX => self.x = self.a,
            op::TXA => self.a = self.x,
            _ => {
                self.a = match op::unsized_load(code)? {
                    (op::LD_ABS_W, _) if k >= ancillary::FIRST => self.ask(k)?,
                    (op::LD_ABS_W, size) => self.load(k, size)?,
                    (_, size) => self.load(self.x.wrapping_add(k), size)?,
                }
            }
        }
        Some(())
    }

    fn compare(&self, code: u16, k: u32) -> Option<bool> {
        let right = if code & op::WITH_X == 0 { k } else { self.x };
        Some(match code & !op::WITH_X {
            op::JEQ => self.a == right,
            op::JGT => self.a > right,
            op::JGE => self.a >= right,
            op::JSET => self.a & right != 0,
            _ => return None,
        })
    }

    fn compute(&self, code: u16, k: u32) -> Option<u32> {
        let right = if code & op::WITH_X == 0 { k } else { self.x };
        match code & !op::WITH_X {
            op::ADD => Some(self.a.wrapping_add(right)),
            op::SUB => Some(self.a.wrapping_sub(right)),
            op::MUL => Some(self.a.wrapping_mul(right)),
            op::DIV => self.a.checked_div(right),
            op::MOD => self.a.checked_rem(right),
            op::AND => Some(self.a & right),
            op::OR => Some(self.a | right),
            op::XOR => Some(self.a ^ right),
            // The kernel looks at five bits of the number, where libpcap shifts everything out.
            op::LSH => Some(self.a.wrapping_shl(right)),
            op::RSH => Some(self.a.wrapping_shr(right)),
            op::NEG => Some(self.a.wrapping_neg()),
            _ => None,
        }
    }

    /// `size` bytes at an offset as the kernel reads it: one above 2^31 is negative.
    fn load(&self, offset: u32, size: u8) -> Option<u32> {
        let at = match offset {
            0..=0x7fff_ffff => self.metadata.start.checked_add(offset as usize)?,
            op::LINK..op::NETWORK => (offset - op::LINK) as usize,
            _ => return None,
        };
        let bytes = self.bytes.get(at..)?;
        match size {
            1 => bytes.first().map(|byte| u32::from(*byte)),
            2 => bytes.first_chunk().map(|bytes| u32::from(u16::from_be_bytes(*bytes))),
            _ => bytes.first_chunk().map(|bytes| u32::from_be_bytes(*bytes)),
        }
    }

    fn ask(&self, k: u32) -> Option<u32> {
        let Metadata { vlan, .. } = self.metadata;
        Some(match k {
            ancillary::PROTOCOL => self.metadata.protocol.into(),
            ancillary::PACKET_TYPE => self.metadata.packet_type.into(),
            ancillary::INTERFACE_INDEX => self.metadata.interface_index,
            ancillary::HARDWARE_TYPE => self.metadata.hardware_type.into(),
            ancillary::VLAN_TAG_PRESENT => vlan.is_some().into(),
            ancillary::VLAN_TAG => vlan.map_or(0, |tag| tag.tci.into()),
            ancillary::VLAN_TPID => vlan.map_or(0, |tag| tag.tpid.into()),
            _ => return None,
        })
    }
}
