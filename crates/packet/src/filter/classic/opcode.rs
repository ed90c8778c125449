//! Operation codes of classic BPF, as `linux/bpf_common.h` and `linux/filter.h` number them.

/// `A = packet[k]`, 4 bytes.
pub(super) const LD_ABS_W: u16 = 0x20;
/// `A = packet[X + k]`, 4 bytes.
pub(super) const LD_IND_W: u16 = 0x40;
/// `A = k`.
pub(super) const LD_IMM: u16 = 0x00;
/// `A = M[k]`.
pub(super) const LD_MEM: u16 = 0x60;
/// `A =` length of the packet.
pub(super) const LD_LEN: u16 = 0x80;
/// `X = k`.
pub(super) const LDX_IMM: u16 = 0x01;
/// `X = M[k]`.
pub(super) const LDX_MEM: u16 = 0x61;
/// `X =` length of the packet.
pub(super) const LDX_LEN: u16 = 0x81;
/// `X = 4 * (packet[k] & 0xf)`: the length of an IPv4 header.
pub(super) const LDX_MSH: u16 = 0xb1;
/// `M[k] = A`.
pub(super) const ST: u16 = 0x02;
/// `M[k] = X`.
pub(super) const STX: u16 = 0x03;
/// Jumps `k` instructions ahead.
pub(super) const JA: u16 = 0x05;
/// `A == k`.
pub(super) const JEQ: u16 = 0x15;
/// `A > k`.
pub(super) const JGT: u16 = 0x25;
/// `A >= k`.
pub(super) const JGE: u16 = 0x35;
/// `A & k != 0`.
pub(super) const JSET: u16 = 0x45;
/// `A += k`; the other operations have `k` on their right, too.
pub(super) const ADD: u16 = 0x04;
pub(super) const SUB: u16 = 0x14;
pub(super) const MUL: u16 = 0x24;
pub(super) const DIV: u16 = 0x34;
pub(super) const OR: u16 = 0x44;
pub(super) const AND: u16 = 0x54;
pub(super) const LSH: u16 = 0x64;
pub(super) const RSH: u16 = 0x74;
/// `A = -A`.
pub(super) const NEG: u16 = 0x84;
pub(super) const MOD: u16 = 0x94;
pub(super) const XOR: u16 = 0xa4;
/// Ends with `k`.
pub(super) const RET_K: u16 = 0x06;
/// Ends with `A`.
pub(super) const RET_A: u16 = 0x16;
/// `X = A`.
pub(super) const TAX: u16 = 0x07;
/// `A = X`.
pub(super) const TXA: u16 = 0x87;

/// Added to an arithmetic operation or a comparison: `X` instead of `k`.
pub(super) const WITH_X: u16 = 0x08;

/// The bits that tell the class of an operation.
pub(super) const CLASS: u16 = 0x07;
/// The class of arithmetic.
pub(super) const CLASS_ALU: u16 = 0x04;
/// The class of jumps.
pub(super) const CLASS_JMP: u16 = 0x05;
/// The class of the operations that end a program.
pub(super) const CLASS_RET: u16 = 0x06;

/// Added to a load: 2 bytes.
const SIZE_H: u16 = 0x08;
/// Added to a load: 1 byte.
const SIZE_B: u16 = 0x10;

/// A load of 4 bytes as a load of `size` bytes.
pub(super) const fn sized(load: u16, size: u8) -> u16 {
    match size {
        1 => load | SIZE_B,
        2 => load | SIZE_H,
        _ => load,
    }
}

/// The load of 4 bytes, and the number of bytes, of a load from the packet.
pub(super) const fn unsized_load(code: u16) -> Option<(u16, u8)> {
    let size = match code & (SIZE_B | SIZE_H) {
        SIZE_B => 1,
        SIZE_H => 2,
        0 => 4,
        _ => return None,
    };
    match code & !(SIZE_B | SIZE_H) {
        load @ (LD_ABS_W | LD_IND_W) => Some((load, size)),
        _ => None,
    }
}

/// Words of scratch memory, `M`.
pub(super) const SCRATCH_WORDS: u32 = 16;

/// Offsets that are not positions in the packet but ask what the kernel knows of it.
pub(super) mod ancillary {
    /// The first of them, `SKF_AD_OFF`.
    pub(in crate::filter::classic) const FIRST: u32 = 0xffff_f000;
    /// The EtherType, as the receiving driver told it.
    pub(in crate::filter::classic) const PROTOCOL: u32 = FIRST;
    /// To whom the packet was addressed, `PACKET_HOST` and so on of packet(7).
    pub(in crate::filter::classic) const PACKET_TYPE: u32 = FIRST + 4;
    pub(in crate::filter::classic) const INTERFACE_INDEX: u32 = FIRST + 8;
    /// The ARPHRD number of the interface.
    pub(in crate::filter::classic) const HARDWARE_TYPE: u32 = FIRST + 28;
    /// Priority, drop eligibility and number of the stripped VLAN tag.
    pub(in crate::filter::classic) const VLAN_TAG: u32 = FIRST + 44;
    /// 1 if a VLAN tag was stripped, 0 if not.
    pub(in crate::filter::classic) const VLAN_TAG_PRESENT: u32 = FIRST + 48;
    /// The EtherType of the stripped VLAN tag.
    pub(in crate::filter::classic) const VLAN_TPID: u32 = FIRST + 60;
}

/// Offsets from here to [`ancillary::FIRST`] count from the network header, `SKF_NET_OFF`.
pub(super) const NETWORK: u32 = 0xfff0_0000;
/// Offsets from here to [`NETWORK`] count from the link-layer header, `SKF_LL_OFF`.
pub(super) const LINK: u32 = 0xffe0_0000;
