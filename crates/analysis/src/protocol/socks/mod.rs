//! SOCKS, versions 4 (with 4a) and 5, RFC 1928 and RFC 1929: what a client wants of a proxy, and what it
//! gets. What they then carry is found out as in any connection.
//!
//! | module | concern |
//! |---|---|
//! | [`message`] | messages as they lie in a stream |
//! | [`session`] | whose turn it is, and what it says |
//! | [`log`] | what came of it: the log |
//! | [`proxies`] | the join that finds proxies, whichever protocol goes through them |

mod log;
mod message;
pub(super) mod proxies;
mod session;

use super::{Detection, Heads, Protocol, Session, SessionContext};
use crate::correlator::MakeJoin;
use crate::record::LogType;
use message::{Hello, Parsed};
use proxies::Proxies;
use session::SocksSession;

/// Clients that ask a proxy for connections.
#[derive(Debug)]
pub(super) struct Socks;

/// The port that Zeek knows proxies by (IANA). Here they are known by what is said, on any.
const PORT: u16 = 1080;

impl Protocol for Socks {
    fn name(&self) -> &'static str {
        "socks"
    }

    fn analyzer(&self) -> &'static str {
        "SOCKS"
    }

    fn logs(&self) -> &'static [&'static LogType] {
        &[log::Socks::LOG]
    }

    fn joins(&self) -> &'static [MakeJoin] {
        &[Proxies::join]
    }

    /// The client's first message and the begin of the answer to it tell, on any port. Nothing is told of
    /// connections whose begin is missing.
    fn detect(&self, heads: &Heads<'_>) -> Detection {
        if heads.is_midstream {
            return Detection::No;
        }
        let answer = heads.responder;
        match message::hello(heads.originator) {
            Parsed::Bad => Detection::No,
            Parsed::More(_) => match answer.first() {
                None | Some(0 | 5) => Detection::Undecided,
                Some(_) => Detection::No,
            },
            Parsed::Whole(Hello::Greeting(methods), _) => match *answer {
                [5, method, ..] if message::may_choose(method, methods) => Detection::Yes,
                [] | [5] => Detection::Undecided,
                _ => Detection::No,
            },
            Parsed::Whole(Hello::Request(_), _) => match *answer {
                [0, 0x5a..=0x5d, ..] => Detection::Yes,
                [] | [0] => Detection::Undecided,
                _ => Detection::No,
            },
        }
    }

    fn session(&self, context: &SessionContext<'_>) -> Box<dyn Session> {
        Box::new(SocksSession::new(context.port == PORT))
    }
}

#[cfg(test)]
mod tests;
