//! Silences and waits after which flows end, as `--timeout` sets them.

use std::time::Duration;

use netsniff_analysis::Limits;
use netsniff_console::quantity::interval;

/// A time-out that users may set.
struct Timeout {
    name: &'static str,
    of: fn(&mut Limits) -> &mut Duration,
}

/// THE list. `docs/timeouts.md` says what each is.
const TIMEOUTS: &[Timeout] = &[
    Timeout { name: "tcp", of: |limits| &mut limits.tcp_inactivity },
    Timeout { name: "tcp-interactive", of: |limits| &mut limits.tcp_interactive_inactivity },
    Timeout { name: "tcp-attempt", of: |limits| &mut limits.tcp_attempt },
    Timeout { name: "tcp-linger", of: |limits| &mut limits.tcp_linger },
    Timeout { name: "tcp-close", of: |limits| &mut limits.tcp_close },
    Timeout { name: "udp", of: |limits| &mut limits.udp_inactivity },
    Timeout { name: "icmp", of: |limits| &mut limits.icmp_inactivity },
    Timeout { name: "other", of: |limits| &mut limits.other_inactivity },
    Timeout { name: "fragments", of: |limits| &mut limits.fragment_timeout },
    Timeout { name: "tunnel", of: |limits| &mut limits.ip_tunnel_inactivity },
];

/// Time-outs that were set, by their places in the list.
#[derive(Clone, Debug, Default)]
pub(crate) struct Timeouts(Vec<(usize, Duration)>);

impl Timeouts {
    /// Limits with these time-outs.
    pub(crate) fn set(&self, mut limits: Limits) -> Limits {
        for &(at, duration) in &self.0 {
            if let Some(timeout) = TIMEOUTS.get(at) {
                *(timeout.of)(&mut limits) = duration;
            }
        }
        limits
    }
}

/// Reads time-outs as `tcp=15min,udp=2min`.
pub(crate) fn parse(text: &str) -> Result<Timeouts, String> {
    let mut timeouts = Vec::new();
    for part in text.split(',') {
        let (name, value) =
            part.split_once('=').ok_or_else(|| format!("{part:?} is no NAME=TIME"))?;
        let (name, value) = (name.trim(), value.trim());
        let at = TIMEOUTS.iter().position(|timeout| timeout.name == name);
        let at = at.ok_or_else(|| {
            let names: Vec<&str> = TIMEOUTS.iter().map(|timeout| timeout.name).collect();
            format!("unknown time-out {name:?}; there are {}", names.join(", "))
        })?;
        timeouts.push((at, interval(value).map_err(|why| format!("{name}: {why}"))?));
    }
    Ok(Timeouts(timeouts))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_sets_its_own() {
        let defaults = Limits::default();
        for (at, timeout) in TIMEOUTS.iter().enumerate() {
            let text = format!("{}=77s", timeout.name);
            let mut set = parse(&text).unwrap().set(defaults);
            assert_eq!(*(timeout.of)(&mut set), Duration::from_secs(77));
            for (_, other) in TIMEOUTS.iter().enumerate().filter(|(other, _)| *other != at) {
                assert_eq!((other.of)(&mut set), (other.of)(&mut { defaults }), "{}", other.name);
            }
        }
        let both = parse("tcp=15min, udp=2min").unwrap().set(defaults);
        assert_eq!(both.tcp_inactivity, Duration::from_secs(900));
        assert_eq!(both.udp_inactivity, Duration::from_secs(120));
    }

    #[test]
    fn what_is_none_is_refused_with_the_reason() {
        for (text, why) in [
            ("tcp", "no NAME=TIME"),
            ("sctp=1s", "there are tcp, "),
            ("udp=0", "udp: 0 is no span of time"),
            ("udp=soon", "udp: "),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    #[test]
    fn the_page_has_each_with_its_default() {
        let page = include_str!("../../../../docs/timeouts.md");
        let mut defaults = Limits::default();
        for timeout in TIMEOUTS {
            let seconds = (timeout.of)(&mut defaults).as_secs();
            let begin = format!("| `{}` | {seconds} s |", timeout.name);
            assert!(page.lines().any(|line| line.starts_with(&begin)), "docs/timeouts.md: {begin}");
        }
    }
}
