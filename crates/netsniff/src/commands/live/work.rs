//! What the thread of a ring works with, from the arguments.

use netsniff_packet::Packet;
use netsniff_pipeline::live::{Consumer, Control, Earlier, Moment, RingReport, RingWork, Wanted};

use super::{CaptureArgs, Reopener, Ring};

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
    reopener: Option<&Reopener>,
) -> anyhow::Result<RingWork<'w, C>> {
    let Ring { mut receiver, mut options, filter, place } = ring;
    // A group of our own ends with its interface.
    options.fanout.iter_mut().for_each(|fanout| fanout.group = capture.fanout_group());
    if let Some(memory) = &place.facts.memory {
        // Another time it is not known how much memory is free: the file that tells cannot be opened.
        options.ring_bytes = memory.granted;
    }
    let backend = capture.backend()?;
    receiver.start()?;
    control.put_gate(number, receiver.gate(), Earlier::NONE);
    // What the books have until the thread answers, which a busy machine may let wait.
    let (moment, counters) = Moment::of(|| receiver.counters());
    let report = RingReport { counters: counters?, read: Some(moment), ..RingReport::default() };
    control.report(number, 0, report);
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
        reopen: reopener.map(|reopener| reopener.reopen(name, backend, options)),
    })
}
