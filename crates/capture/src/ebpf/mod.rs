//! Programs of extended BPF (RFC 9669) that the kernel runs on packets: written here instruction by
//! instruction, so that nobody needs a compiler for them.
//!
//! Nothing in here makes a call. `sys/bpf.rs` loads what is assembled here, and the kernel's verifier has the
//! last word on it.

pub(crate) mod assembler;
pub(crate) mod redirect;

/// What an XDP program says of a packet (`enum xdp_action` of <linux/bpf.h>).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// It goes on to the stack.
    Pass = 2,
}

/// Offsets in what an XDP program is called with (`struct xdp_md` of <linux/bpf.h>), words of 32 bits.
pub(crate) mod context {
    /// The queue that the packet came to.
    pub(crate) const QUEUE: i16 = 16;
}

/// Functions of the kernel that a program may call (`enum bpf_func_id` of <linux/bpf.h>): those that ask for
/// no particular licence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Helper {
    /// `bpf_redirect_map(map, key, flags)`: the action that sends a packet to what the map has for the key.
    /// Where it has nothing, the action is the lowest two bits of the flags.
    RedirectMap = 51,
}
