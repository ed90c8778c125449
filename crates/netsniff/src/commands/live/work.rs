//! What the thread of a ring works with, from the arguments.

use netsniff_packet::Packet;

use super::{CaptureArgs, Ring, reopen};
use crate::pipeline::live::{Consumer, Control, IfGone, RingWork, Wanted};

/// Starts the ring and says what its thread is to do.
///
/// # Errors
///
/// Where the kernel refuses the filter.
pub fn work<'w, C: Consumer>(
    capture: &CaptureArgs,
    number: usize,
    ring: Ring,
    control: &'w Control,
    consumer: C,
) -> anyhow::Result<RingWork<'w, C>> {
    let Ring { mut receiver, options, filter, place } = ring;
    let backend = capture.backend()?;
    receiver.start()?;
    let name = capture.interfaces[place.interface].clone();
    let cpus = capture.cpus();
    let wanted = filter.map(|(filter, _)| -> Wanted {
        Box::new(move |packet: &Packet<'_>| filter.matches(packet))
    });
    Ok(RingWork {
        number,
        cpu: (!cpus.is_empty()).then(|| cpus[number % cpus.len()]),
        receiver,
        consumer,
        control,
        wanted,
        window: capture.window(),
        count: capture.count(),
        reopen: (capture.if_gone() == IfGone::Wait).then(|| reopen(name, backend, options)),
    })
}
