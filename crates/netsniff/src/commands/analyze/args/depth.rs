//! How deep an analysis goes, as an argument.

use netsniff_analysis::Depth;
use netsniff_console::UsageError;

/// How deep an analysis goes.
#[derive(Clone, Copy, Debug, Default, clap::ValueEnum)]
pub(super) enum DepthArg {
    /// Packets are counted by layer and size; there are no connections
    Packets,
    /// Connections have counters, times, states and histories, but nobody looks for losses
    Flows,
    /// TCP streams have metrics and losses, but nobody looks for protocols: as --protocols none
    Tcp,
    /// All, with the protocols that --protocols names
    #[default]
    Protocols,
}

impl DepthArg {
    const fn plain(self) -> Depth {
        match self {
            Self::Packets => Depth::Packets,
            Self::Flows => Depth::Flows,
            Self::Tcp => Depth::Tcp,
            Self::Protocols => Depth::Protocols,
        }
    }

    /// The depth, unless it leaves nothing for what else is asked for: `sampled` RTT, or `extracted`
    /// files.
    pub(super) fn depth(self, sampled: bool, extracted: bool) -> Result<Depth, UsageError> {
        let depth = self.plain();
        let (flag, needed) = match depth {
            Depth::Packets | Depth::Flows | Depth::Tcp if extracted => {
                ("--extract-files", "protocols")
            }
            Depth::Packets | Depth::Flows if sampled => ("--rtt-interval", "tcp"),
            _ => return Ok(depth),
        };
        Err(UsageError(format!(
            "{flag} needs --depth {needed}: with --depth {} there is nothing to write",
            depth.name()
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_else_is_asked_for_needs_its_depth() {
        assert_eq!(DepthArg::Flows.depth(false, false).unwrap(), Depth::Flows);
        assert_eq!(DepthArg::Tcp.depth(true, false).unwrap(), Depth::Tcp);
        assert_eq!(DepthArg::default().depth(true, true).unwrap(), Depth::Protocols);
        let said =
            |depth: DepthArg, sampled, extracted| depth.depth(sampled, extracted).unwrap_err().0;
        assert!(said(DepthArg::Flows, true, false).contains("--rtt-interval needs --depth tcp"));
        assert!(
            said(DepthArg::Tcp, false, true).contains("--extract-files needs --depth protocols")
        );
    }
}
