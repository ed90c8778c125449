//! Capabilities of the calling thread; capabilities(7).

use anyhow::Context as _;
use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};

/// Gives up all capabilities of this thread, and of those that it starts from now on: all but
/// `CAP_NET_RAW` where that is to stay and is there.
///
/// # Errors
///
/// Where the kernel refuses.
pub fn keep_only(net_raw: bool) -> anyhow::Result<()> {
    let had = capabilities(None).context("cannot read the capabilities")?.permitted;
    let kept = had & wanted(net_raw);
    let sets =
        CapabilitySets { effective: kept, permitted: kept, inheritable: CapabilitySet::empty() };
    set_capabilities(None, sets).context("cannot give up capabilities")
}

/// Whether this thread has no capability but, where that is to stay, `CAP_NET_RAW`.
///
/// # Errors
///
/// Where they cannot be read.
pub fn are_only(net_raw: bool) -> anyhow::Result<bool> {
    let sets = capabilities(None).context("cannot read the capabilities")?;
    let all = sets.effective | sets.permitted | sets.inheritable;
    Ok((all - wanted(net_raw)).is_empty())
}

const fn wanted(net_raw: bool) -> CapabilitySet {
    if net_raw { CapabilitySet::NET_RAW } else { CapabilitySet::empty() }
}
