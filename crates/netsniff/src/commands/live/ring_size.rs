//! How large a ring is to be: what the user says, or what the traffic of a second asks for (PAPERS D2, D5).

use std::time::Duration;

use netsniff_console::{number, quantity, say};
use netsniff_doctor::arithmetic::{Seen, ring_bytes};
use netsniff_doctor::kernel::Here;
use netsniff_doctor::look::Look;
use netsniff_doctor::stage::StageId;
use netsniff_doctor::watch::{Depth, watch};

/// How long traffic is looked at.
const TIME: Duration = Duration::from_secs(1);

/// Bytes of a ring, or as many as the traffic asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RingSize {
    Bytes(usize),
    Auto,
}

/// Reads a size, or `auto`.
pub(super) fn parse(text: &str) -> Result<RingSize, String> {
    if text == "auto" {
        return Ok(RingSize::Auto);
    }
    quantity::size(text).map(RingSize::Bytes).map_err(|why| format!("{why}, or auto"))
}

impl RingSize {
    /// Bytes for what comes in on these interfaces, looked at as the capture will; `default` where nothing comes.
    pub(super) fn bytes(self, interfaces: &[String], default: usize, promiscuous: bool) -> usize {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Auto => {
                let all = interfaces.iter().map(|name| measured(name, default, promiscuous));
                all.max().unwrap_or(default)
            }
        }
    }
}

/// Looks at an interface, and says what follows.
fn measured(interface: &str, default: usize, promiscuous: bool) -> usize {
    let Some((seen, megabits)) = look(interface, promiscuous) else {
        say(&format!(
            "--ring auto: nothing is known of {interface}: {}",
            number::bytes(default as u64)
        ));
        return default;
    };
    let memory = netsniff_capture::host::available_memory().map(|bytes| bytes as u64);
    let Some(bytes) = ring_bytes(&seen, megabits, memory) else {
        say(&format!(
            "--ring auto: nothing came on {interface}, whose link has no speed: {}",
            number::bytes(default as u64)
        ));
        return default;
    };
    say(&format!(
        "--ring auto: on {interface} came at most {} packets a second, {} in the busiest millisecond, of {} bytes: {}",
        number::exact(seen.peak_rate.into()),
        number::exact(seen.most_in_millisecond.into()),
        seen.mean_bytes,
        number::bytes(bytes)
    ));
    usize::try_from(bytes).unwrap_or(default)
}

fn look(interface: &str, is_promiscuous: bool) -> Option<(Seen, Option<u64>)> {
    let kernel = Here::open().ok()?;
    let look = Look { kernel: &kernel, interface };
    let depth = Depth::Packets { is_promiscuous };
    let watched = watch(&look, TIME, depth, &|| false, &mut |_| {}).ok()?;
    let wire = watched.stages.iter().find(|stage| stage.id == StageId::Wire)?;
    let packets = wire.during("rx_packets")?;
    let mean_bytes = wire.during("rx_bytes")?.checked_div(packets).unwrap_or_default();
    let most_in_millisecond = watched.packets.map_or(0, |packets| packets.most_in_millisecond);
    let peak_rate = watched.peak_rate.or(watched.rate)?;
    Some((Seen { peak_rate, most_in_millisecond, mean_bytes }, look.megabits()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rings_are_sizes_or_auto() {
        assert_eq!(
            (parse("64M"), parse("auto")),
            (Ok(RingSize::Bytes(64 << 20)), Ok(RingSize::Auto))
        );
        assert!(parse("large").unwrap_err().ends_with("or auto"));
        assert_eq!(RingSize::Bytes(5).bytes(&[], 9, true), 5);
        assert_eq!(RingSize::Auto.bytes(&["nowhere0".to_owned()], 9, true), 9);
    }
}
