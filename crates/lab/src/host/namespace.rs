//! Commands on interfaces and in network namespaces, by ip(8).

use std::process::Command;

use anyhow::{Context as _, bail};

/// Sets an interface up, with more settings of ip-link(8), so that frames cross it as they are made and no others do.
pub(crate) fn raise(namespace: &str, name: &str, more: &[&str]) -> anyhow::Result<()> {
    let set = ["-n", namespace, "link", "set", "dev", name, "arp", "off"];
    ip(&[&set[..], more, &["up"]].concat())?;
    // Not every kernel has each of these.
    let off = "for what in tso gso gro sg tx rx txvlan rxvlan; do ethtool -K";
    inside(namespace, &format!("{off} {name} $what off >/dev/null 2>&1 || true; done"))
}

/// Runs ip(8).
pub(crate) fn ip(arguments: &[&str]) -> anyhow::Result<()> {
    let out = Command::new("ip").args(arguments).output();
    let out = out.context("cannot run ip(8), of iproute2, which makes the testbed")?;
    if !out.status.success() {
        let why = String::from_utf8_lossy(&out.stderr).trim().to_owned();
        bail!("the testbed cannot be made: ip {}: {why}", arguments.join(" "));
    }
    Ok(())
}

/// Runs a line of shell in a namespace.
pub(crate) fn inside(namespace: &str, line: &str) -> anyhow::Result<()> {
    ip(&["netns", "exec", namespace, "sh", "-c", line])
}
