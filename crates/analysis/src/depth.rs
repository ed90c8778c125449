//! How deep traffic is analysed, and how many packets were analysed how deep.

crate::words! {
    /// How deep a flow, or a packet, is analysed; the shallowest comes first.
    ///
    /// A flow begins at the depth in force then and never gets a deeper one.
    pub enum Depth {
        /// Packets are counted by layer and size only; there is no connection.
        Packets => "packets",
        /// Up to counters, times, histories and states of connections. Nothing is known of what is
        /// missing in TCP streams.
        Flows => "flows",
        /// Up to the TCP streams, their metrics and losses. What is said in a connection is not
        /// looked at, whatever its transport.
        Tcp => "tcp",
        /// Up to the application protocol.
        Protocols => "protocols",
    }
}

#[expect(
    clippy::derivable_impls,
    reason = "the words of an enum have documentation and nothing else"
)]
impl Default for Depth {
    fn default() -> Self {
        Self::Protocols
    }
}

impl Depth {
    /// The depth whose place in [`Self::ALL`] the two low bits say.
    #[inline]
    const fn of_bits(bits: u8) -> Self {
        match bits & 3 {
            0 => Self::Packets,
            1 => Self::Flows,
            2 => Self::Tcp,
            _ => Self::Protocols,
        }
    }
}

/// The depth at which a flow began, and the one that it has now, which is never deeper. One byte,
/// since every flow has it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct FlowDepth(u8);

impl FlowDepth {
    /// A flow that begins.
    #[must_use]
    pub const fn new(depth: Depth) -> Self {
        Self((depth as u8) << 2 | depth as u8)
    }

    /// The depth at which it began.
    #[must_use]
    #[inline]
    pub const fn begun(self) -> Depth {
        Depth::of_bits(self.0 >> 2)
    }

    /// The depth that it has now.
    #[must_use]
    #[inline]
    pub const fn now(self) -> Depth {
        Depth::of_bits(self.0)
    }

    /// Makes it as shallow as `depth`; a flow never gets deeper.
    pub const fn cut(&mut self, depth: Depth) {
        if (depth as u8) < self.0 & 3 {
            self.0 = self.0 & !3 | depth as u8;
        }
    }
}

impl core::fmt::Debug for FlowDepth {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{} of {}", self.now().name(), self.begun().name())
    }
}

/// Packets by the depth at which they were analysed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketsByDepth([u64; Depth::ALL.len()]);

impl PacketsByDepth {
    /// As many at each depth as `packets` tells.
    #[must_use]
    pub fn from_fn(mut packets: impl FnMut(Depth) -> u64) -> Self {
        let mut by_depth = Self::default();
        Depth::ALL.iter().for_each(|depth| by_depth.add(*depth, packets(*depth)));
        by_depth
    }

    /// Counts `packets` more at a depth.
    #[inline]
    pub(crate) const fn add(&mut self, depth: Depth, packets: u64) {
        self.0[depth as usize] += packets;
    }

    /// Counts so many less, at this depth as far as there are as many, and then at the others.
    pub(crate) fn remove(&mut self, depth: Depth, mut packets: u64) {
        for at in core::iter::once(depth as usize).chain(0..self.0.len()) {
            let Some(count) = self.0.get_mut(at) else { continue };
            let less = packets.min(*count);
            (*count, packets) = (*count - less, packets - less);
        }
    }

    /// How many there were at a depth.
    #[must_use]
    pub const fn of(&self, depth: Depth) -> u64 {
        self.0[depth as usize]
    }

    /// All depths with their packets, the deepest first.
    pub fn iter(&self) -> impl Iterator<Item = (Depth, u64)> {
        Depth::ALL.iter().copied().zip(self.0).rev()
    }

    /// Packets at all depths together.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// These packets but for some of them.
    #[must_use]
    pub fn without(mut self, some: &Self) -> Self {
        for (from, less) in self.0.iter_mut().zip(some.0) {
            *from = from.saturating_sub(less);
        }
        self
    }

    /// These packets and others.
    #[must_use]
    pub fn with(mut self, other: &Self) -> Self {
        for (to, from) in self.0.iter_mut().zip(other.0) {
            *to += from;
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_gets_shallower_and_never_deeper() {
        for &begun in Depth::ALL {
            for &to in Depth::ALL {
                let mut depth = FlowDepth::new(begun);
                assert_eq!((depth.begun(), depth.now()), (begun, begun));
                depth.cut(to);
                assert_eq!((depth.begun(), depth.now()), (begun, begun.min(to)));
                depth.cut(Depth::Protocols);
                assert_eq!(depth.now(), begun.min(to));
            }
        }
    }

    #[test]
    fn packets_add_up_by_depth() {
        let mut packets = PacketsByDepth::default();
        packets.add(Depth::Tcp, 3);
        packets.add(Depth::Packets, 2);
        let sum = packets.with(&packets);
        assert_eq!((sum.of(Depth::Tcp), sum.of(Depth::Flows), sum.total()), (6, 0, 10));
        let names: Vec<_> = sum.iter().map(|(depth, _)| depth.name()).collect();
        assert_eq!(names, ["protocols", "tcp", "flows", "packets"]);
    }
}
