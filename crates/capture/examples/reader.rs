//! The least that a capture can do: takes packets from a ring, reads 64 bytes of each, and counts.
//!
//! `reader INTERFACE [BACKEND [poll|busy|adaptive [RING_MIB]]]` in a network namespace of its own; SIGINT or
//! the end of standard input ends it. It prints one line of JSON, with the processor's nanoseconds for each
//! packet as the scheduler has counted them.

use std::io::Read as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use netsniff_capture::backend::{BACKENDS, Received, Receiver};
use netsniff_capture::options::{Options, Wait};
use netsniff_capture::{Error, Interface, prefetch};

/// Set when the end of standard input was read.
static ENDS: AtomicBool = AtomicBool::new(false);

/// Packets whose bytes are fetched ahead.
const AHEAD: usize = 8;

/// Reads a word of each 8 bytes of the first 64.
fn touch(data: &[u8]) -> u64 {
    let head = &data[..data.len().min(64)];
    head.chunks_exact(8)
        .fold(0, |sum, word| sum ^ u64::from_ne_bytes(*word.first_chunk().expect("8 bytes")))
}

fn count(receiver: &mut dyn Receiver) -> Result<(u64, u64), Error> {
    let (mut packets, mut sum, mut is_stopping) = (0_u64, 0, false);
    loop {
        if ENDS.load(Ordering::Relaxed) && !is_stopping {
            is_stopping = true;
            receiver.stop()?;
        }
        match receiver.receive(Duration::from_millis(50))? {
            Received::Packets(lent) => {
                for (number, packet) in lent.packets.iter().enumerate() {
                    if let Some(later) = lent.packets.get(number + AHEAD) {
                        prefetch(lent.data, later.offset as usize);
                    }
                    sum ^= touch(lent.data.get(packet.range()).unwrap_or_default());
                }
                packets += lent.packets.len() as u64;
            }
            Received::End | Received::Gone => return Ok((packets, sum)),
            Received::Nothing(_) | Received::Down => {}
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let argument = |at: usize| arguments.get(at).map(String::as_str);
    let interface = Interface::find(argument(0).ok_or("usage: reader INTERFACE …")?)?;
    let name = argument(1).unwrap_or(BACKENDS[0].name);
    let backend = BACKENDS.iter().find(|of| of.name == name).ok_or("no such backend")?;
    let wait = match argument(2) {
        Some("poll") => Wait::Poll,
        Some("busy") => Wait::Busy,
        None | Some("adaptive") => Wait::Adaptive,
        Some(_) => return Err("there are poll, busy and adaptive".into()),
    };
    let ring_mib: usize = argument(3).unwrap_or("64").parse()?;
    let options = Options { wait, ring_bytes: ring_mib << 20, ..Options::default() };
    let mut receiver = backend.open(&interface, &options)?;
    receiver.start()?;
    eprintln!("ready");
    std::thread::spawn(|| {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        ENDS.store(true, Ordering::Relaxed);
    });
    let (packets, sum) = count(receiver.as_mut())?;
    // Of this thread alone: time on the processor in nanoseconds comes first.
    let statistics = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let nanos: u64 = statistics.split(' ').next().unwrap_or_default().parse()?;
    let counters = receiver.counters()?;
    println!(
        "{{\"backend\":\"{name}\",\"wait\":\"{wait:?}\",\"packets\":{packets},\"dropped\":{},\"ns_per_packet\":{:.1},\
         \"groups\":{},\"polls\":{},\"wakeups\":{},\"naps\":{},\"high_water\":{},\"units\":{},\"sum\":{}}}",
        counters.dropped.map_or(-1, |dropped| dropped as i64),
        nanos as f64 / packets.max(1) as f64,
        counters.waiting.groups,
        counters.waiting.polls,
        counters.waiting.wakeups,
        counters.waiting.naps,
        counters.occupancy.high_water,
        counters.occupancy.capacity,
        sum & 1,
    );
    Ok(())
}
