//! What waiting costs: with a wake-up for each packet, as fast readers have it that let the kernel wake them,
//! and with naps in between. On a veth pair; needs root, and says so where it is missing.

#[allow(dead_code, reason = "other tests send other frames")]
mod bed;

use std::thread;
use std::time::{Duration, Instant};

use bed::{Bed, numbered};
use netsniff_capture::Interface;
use netsniff_capture::backend::{BACKENDS, Backend, Received};
use netsniff_capture::counters::RingCounters;
use netsniff_capture::options::{Options, Wait};

/// Half a second of 20,000 packets a second.
const PACKETS: usize = 10_000;
const INTERVAL: Duration = Duration::from_micros(50);

const LIMIT: Duration = Duration::from_secs(20);

/// Takes paced traffic and returns what was counted.
fn paced(bed: &Bed, backend: &Backend, wait: Wait) -> RingCounters {
    let options = Options { wait, ring_bytes: 8 << 20, block_bytes: 1 << 17, ..Options::default() };
    let frames = (0..PACKETS as u64).map(|sequence| numbered(64, sequence)).collect();
    bed.receiving(|| {
        let mut receiver = backend.open(&Interface::find("rx0").unwrap(), &options).unwrap();
        receiver.start().unwrap();
        thread::scope(|scope| {
            let sender = scope.spawn(|| bed.send_paced(frames, INTERVAL));
            let begin = Instant::now();
            let mut is_stopped = false;
            loop {
                if sender.is_finished() && !is_stopped {
                    is_stopped = true;
                    receiver.stop().unwrap();
                }
                if let Received::End = receiver.receive(Duration::from_millis(50)).unwrap() {
                    break;
                }
                assert!(begin.elapsed() < LIMIT, "it never ends");
            }
        });
        receiver.counters().unwrap()
    })
}

#[test]
fn adaptive_waiting_does_not_ask_the_kernel_for_every_packet() {
    let Some(bed) = Bed::up("waiting") else { return };
    for backend in BACKENDS {
        let [poll, adaptive] = [Wait::Poll, Wait::Adaptive].map(|wait| paced(&bed, backend, wait));
        println!("{}: {:?} / {:?}", backend.name, poll.waiting, adaptive.waiting);
        for counters in [&poll, &adaptive] {
            assert_eq!((counters.delivered, counters.dropped), (PACKETS as u64, Some(0)));
            assert!(counters.waiting.wakeups <= counters.waiting.polls);
        }
        assert_eq!(poll.waiting.naps, 0);
        let most = PACKETS as u64 / 20;
        assert!(adaptive.waiting.polls < most, "{:?}", adaptive.waiting);
        if backend.name == "af-packet" {
            // Who is woken block by block need not ask often in any way.
            assert!(poll.waiting.polls < most, "{:?}", poll.waiting);
        } else {
            assert!(poll.waiting.polls > 5 * adaptive.waiting.polls, "{:?}", poll.waiting);
            assert!(poll.waiting.wakeups > PACKETS as u64 / 10, "{:?}", poll.waiting);
            assert!(adaptive.waiting.naps > 0, "{:?}", adaptive.waiting);
        }
    }
}
