//! Packets that the kernel drops before any socket, in the books. Alone in its binary, since it changes a
//! setting of the whole host for a moment. Needs root; says so where it is missing.

mod live_bed;

use live_bed::{Bed, Last, Run, Setting};
use netsniff_testing::{Need, skip};

/// The backlog of a processor overruns: the packets never reach the interface's counter, and the host's
/// tells of them.
#[test]
fn packets_that_the_backlog_drops_are_the_hosts() {
    let Some(bed) = Bed::up("b-backlog") else { return };
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    if processors < 2 {
        skip(Need::Processors, "the backlog of another processor needs two of them");
        return;
    }
    bed.place("rps1");
    let Some(_setting) = Setting::set("net.core.netdev_max_backlog", "0") else {
        skip(Need::Kernel, "net.core.netdev_max_backlog cannot be set here");
        return;
    };
    let run = Run::start(&bed, "b-backlog", &[]);
    // Until some are dropped, which depends on how fast the other processor is.
    let (mut sent, mut dropped) = (0, 0);
    while sent < 400_000 && dropped == 0 {
        sent += 20_000;
        dropped += bed.send_fast(20_000);
    }
    let done = run.end();
    let last = Last::read(&done.logs, "interface");
    last.closes();
    let host = Last::read(&done.logs, "host");
    assert!(dropped > 0, "a backlog of one packet holds everything");
    assert_eq!(last.number("arrived") + dropped, sent, "what the sender's end dropped is missing");
    // The counter is for all interfaces, and somebody else may have lost something, too.
    assert!(host.number("lost_backlog") >= dropped, "{} of {dropped}", host.text("lost_backlog"));
}
