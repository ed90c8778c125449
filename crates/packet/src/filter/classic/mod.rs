//! Classic BPF, the language in which a packet socket is told what to take.

/// One instruction, as `struct sock_filter` of <linux/filter.h>.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// What to do.
    pub code: u16,
    /// Instructions to skip where a comparison holds.
    pub jt: u8,
    /// Instructions to skip where it does not.
    pub jf: u8,
    /// The number that it works with.
    pub k: u32,
}
