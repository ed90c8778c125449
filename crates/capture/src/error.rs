//! What can go wrong with the kernel, in sentences that say what to do.

use std::io;

/// A failure of capture or sending.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No interface has this name.
    #[error("there is no interface {0}; `ip link` lists them")]
    NoInterface(String),
    /// The process lacks a right.
    #[error(
        "no permission to {what}: {capability} is needed. Run as root, or once: \
         sudo setcap {setcap} $(command -v netsniff)"
    )]
    Permission {
        /// What was tried, as a verb with its object.
        what: &'static str,
        /// The capability of capabilities(7).
        capability: &'static str,
        /// The argument of setcap(8) that gives it.
        setcap: &'static str,
    },
    /// The interface is not of a kind that can be read.
    #[error("{interface} is of hardware type {kind}, whose packets netsniff does not know")]
    LinkType {
        /// Name of the interface.
        interface: String,
        /// `ARPHRD_…` of <linux/if_arp.h>.
        kind: u16,
    },
    /// The interface went away while it was in use.
    #[error("the interface {0} is gone")]
    Gone(String),
    /// A value that the kernel cannot take.
    #[error("{0}")]
    Invalid(String),
    /// The kernel refused a call.
    #[error("cannot {what}: {reason}")]
    Call {
        /// What was tried, as a verb with its object.
        what: String,
        /// What the kernel said. It is in the text, so that it is no `source`, which would be told once more.
        reason: io::Error,
    },
}

/// The result of a call that may fail for these reasons.
pub type Result<T> = std::result::Result<T, Error>;

/// Says what was tried where a call fails.
pub(crate) trait CallContext<T> {
    fn trying(self, what: impl Into<String>) -> Result<T>;
}

impl<T> CallContext<T> for io::Result<T> {
    fn trying(self, what: impl Into<String>) -> Result<T> {
        self.map_err(|reason| Error::Call { what: what.into(), reason })
    }
}

/// A right of capabilities(7), with the argument of setcap(8) that gives it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Right {
    capability: &'static str,
    setcap: &'static str,
}

impl Right {
    /// To open sockets for raw packets.
    pub(crate) const RAW: Self = Self { capability: "CAP_NET_RAW", setcap: "cap_net_raw+ep" };
    /// To put an XDP program before an interface, beside such a socket.
    pub(crate) const XDP: Self = Self {
        capability: "CAP_BPF with CAP_NET_ADMIN and CAP_NET_RAW",
        setcap: "cap_net_raw,cap_net_admin,cap_bpf+ep",
    };
}

/// Says which right is missing, where that is why a call failed.
pub(crate) fn permitted<T>(result: io::Result<T>, what: &'static str, right: Right) -> Result<T> {
    result.map_err(|source| refused(source, what, right))
}

/// The error of a call that needs a right.
pub(crate) fn refused(source: io::Error, what: &'static str, right: Right) -> Error {
    let Right { capability, setcap } = right;
    match source.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => Error::Permission { what, capability, setcap },
        _ => Error::Call { what: what.to_owned(), reason: source },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_said_is_told_once() {
        let failed = io::Result::<()>::Err(io::Error::from_raw_os_error(libc::ENOMEM));
        let error: Box<dyn std::error::Error> = failed.trying("map the ring").unwrap_err().into();
        let mut told = error.to_string();
        let mut cause = error.source();
        while let Some(below) = cause {
            told += &format!(": {below}");
            cause = below.source();
        }
        assert_eq!(told.matches("memory").count(), 1, "{told}");
    }
}
