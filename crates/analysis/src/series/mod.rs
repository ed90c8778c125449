//! What passes in each interval of time, by the packets' own stamps: the logs `series` and `series_conn`.
//!
//! Packets are counted where all of them pass in order. What flows show is counted with them. Both hand
//! over their shares of the intervals that end, and a join adds these up.
//!
//! | module | concern |
//! |---|---|
//! | `clock` | which interval a stamp lies in, and when one is over |
//! | `packets` | packets and bytes of all, of interfaces and of hosts |
//! | `flows` | what the flows of a worker show |
//! | `connections` | the busiest connections |
//! | `figures` | what is counted, and how it is added up |
//! | `sketch` | quantiles of times |
//! | `join`, `sum` | shares added up, and their rows |

pub(crate) mod clock;
mod connections;
pub(crate) mod figures;
pub(crate) mod flows;
mod join;
pub(crate) mod packets;
mod sketch;
mod sum;

pub use clock::IntervalEnd;

use core::time::Duration;
use std::sync::Arc;

use crate::correlator::MakeJoin;

/// The joins that make rows of what was counted.
pub const JOINS: &[MakeJoin] = &[join::SeriesJoin::join];

/// What failed of what was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// A query of DNS was answered by an error.
    DnsError,
    /// A query of DNS was not answered.
    DnsUnanswered,
    /// A handshake of TLS was not completed.
    Tls,
}

impl Failure {
    /// How many kinds there are.
    pub(crate) const COUNT: usize = 3;
}

/// How traffic is told interval by interval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeriesOptions {
    /// Length of an interval; a millisecond at least.
    pub interval: Duration,
    /// Hosts of an interval that have rows of their own: those with the most bytes.
    pub hosts: usize,
    /// Connections of an interval that have rows of their own; 0 for no row of any.
    pub connections: usize,
    /// Name of the interface that all packets come from; `None` where packets tell its number.
    pub interface: Option<Arc<str>>,
    /// Whether this is one ring of several. Their times go on apart, so that nobody knows how many flows were open in all of
    /// them at one time.
    pub is_of_ring: bool,
}

impl SeriesOptions {
    /// The shortest interval. Shorter ones would tell more of stamps than of traffic.
    pub const SHORTEST: Duration = Duration::from_millis(1);
    /// Hosts that have rows unless somebody wants another number.
    pub const HOSTS: usize = 20;
}
