//! Programs of extended BPF (RFC 9669) that the kernel runs on packets: written here instruction by
//! instruction, so that nobody needs a compiler for them.
//!
//! Nothing in here makes a call. `sys/bpf.rs` loads what is assembled here, and the kernel's verifier has the
//! last word on it.
//!
//! | module | concern |
//! |---|---|
//! | [`assembler`] | instructions and labels |
//! | [`filter`] | classic BPF as extended BPF |
//! | [`tally`] | what programs count, and whether they are to work at all |
//! | [`copy`] | packets into a ring |
//! | [`count`] | filters of sockets that count what they refuse |
//! | [`redirect`] | packets to XDP sockets |

pub(crate) mod assembler;
pub(crate) mod copy;
pub(crate) mod count;
pub(crate) mod filter;
pub(crate) mod redirect;
pub(crate) mod tally;

/// Why there is no program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Error {
    /// A jump is longer than its 16 bits can say.
    #[error("the eBPF program is too long: {0} instructions")]
    TooLong(usize),
    /// A label that a jump leads to was not placed behind it.
    #[error("a jump of the eBPF program leads nowhere")]
    NoTarget,
    /// The filter asks for what is not known where the program runs.
    #[error("{0} of a packet is not known where the program runs")]
    Unknown(&'static str),
    /// An instruction that the checks of classic BPF do not let through.
    #[error("instruction {0} of the filter is unknown")]
    Instruction(usize),
}

/// What an XDP program says of a packet (`enum xdp_action` of <linux/bpf.h>).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// It goes on to the stack.
    Pass = 2,
    /// It goes where a call has said.
    Redirect = 4,
}

/// Offsets in what an XDP program is called with (`struct xdp_md` of <linux/bpf.h>), words of 32 bits.
pub(crate) mod xdp {
    /// The address of the first byte.
    pub(crate) const DATA: i16 = 0;
    /// The address behind the last byte that lies together with the first.
    pub(crate) const DATA_END: i16 = 4;
    /// The number of the interface.
    pub(crate) const INTERFACE: i16 = 12;
    /// The queue that the packet came to.
    pub(crate) const QUEUE: i16 = 16;
}

/// Offsets in what a socket's program is called with (`struct __sk_buff` of <linux/bpf.h>), words of 32 bits.
pub(crate) mod socket {
    /// Bytes of the packet.
    pub(crate) const LENGTH: i16 = 0;
    /// To whom it was addressed, `PACKET_HOST` and so on of packet(7).
    pub(crate) const PACKET_TYPE: i16 = 4;
    /// The EtherType, in the order of the network.
    pub(crate) const PROTOCOL: i16 = 16;
    /// 1 if a VLAN tag lies beside the packet.
    pub(crate) const VLAN_PRESENT: i16 = 20;
    /// Priority, drop eligibility and number of the tag.
    pub(crate) const VLAN_TAG: i16 = 24;
    /// The EtherType of the tag, in the order of the network.
    pub(crate) const VLAN_PROTOCOL: i16 = 28;
    /// The number of the interface.
    pub(crate) const INTERFACE: i16 = 40;
}

/// Functions of the kernel that a program may call (`enum bpf_func_id` of <linux/bpf.h>): those that ask for
/// no particular licence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Helper {
    /// `bpf_get_smp_processor_id()`.
    Processor = 8,
    /// `bpf_skb_load_bytes(context, offset, to, len)`: 0, or an error where the packet does not have them.
    SocketLoadBytes = 26,
    /// `bpf_redirect_map(map, key, flags)`: the action that sends a packet to what the map has for the key.
    /// Where it has nothing, the action is the lowest two bits of the flags.
    RedirectMap = 51,
    /// `bpf_ringbuf_reserve(map, len, flags)`: room in a ring, or 0 where it has none.
    RingReserve = 131,
    /// `bpf_ringbuf_submit(room, flags)`.
    RingSubmit = 132,
    /// `bpf_ringbuf_discard(room, flags)`.
    RingDiscard = 133,
    /// `bpf_xdp_get_buff_len(context)`: bytes of the packet, those of its fragments included.
    XdpLength = 188,
    /// `bpf_xdp_load_bytes(context, offset, to, len)`: 0, or an error where the packet does not have them.
    XdpLoadBytes = 189,
    /// `bpf_ktime_get_tai_ns()`: nanoseconds of `CLOCK_TAI`.
    TimeTai = 208,
}
