//! What options are, as quantities with units: for axes and legends of people who do not know the command line.

/// The quantity that an option of a tool, of the sender or of the testbed sets. Sizes have no unit: axes choose one.
const QUANTITIES: [(&str, &str); 20] = [
    ("ring", "capture ring"),
    ("block", "block of the capture ring"),
    ("write-buffer", "buffer before the file"),
    ("memory", "memory that the capture may have"),
    ("snaplen", "bytes kept of each packet"),
    ("zip", "level of zlib compression for each packet"),
    ("workers", "threads that capture"),
    ("flows", "flows that are sent"),
    ("hosts", "hosts in the traffic"),
    ("burst", "frames sent at once"),
    ("quota", "share of a processor for the capture, %"),
    ("processors", "processors that capture"),
    ("queues", "queues of the interface"),
    ("net.core.netdev_max_backlog", "backlog of a processor, packets"),
    ("net.core.netdev_budget", "budget of a NAPI poll, packets"),
    ("net.core.netdev_budget_usecs", "budget of a NAPI poll, \u{b5}s"),
    ("net.core.dev_weight", "packets of a device in a NAPI poll"),
    ("net.core.rmem_max", "largest receive buffer of a socket"),
    ("net.core.rmem_default", "usual receive buffer of a socket"),
    ("net.core.busy_poll", "busy polling of a socket, \u{b5}s"),
];

/// The name of the quantity that an option sets; that of the option, where it is not known.
#[must_use]
pub fn quantity(option: &str) -> &str {
    QUANTITIES.iter().find(|(name, _)| *name == option).map_or(option, |(_, words)| words)
}
