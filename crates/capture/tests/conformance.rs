//! What every backend in the list must do, on a veth pair of this machine. Needs root; says so where it is
//! missing.

mod bed;

use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bed::{Bed, numbered, without_bpf};
use netsniff_capture::backend::{BACKENDS, Backend, Path, Received, Receiver};
use netsniff_capture::host::HostReader;
use netsniff_capture::options::{Direction, Fanout, Options, Stamps, Wait};
use netsniff_capture::{Interface, realtime};
use netsniff_packet::filter::classic::Instruction;
use netsniff_packet::{Loss, Timestamp};
use netsniff_traffic::ledger::{Arrivals, Ledger};
use netsniff_traffic::probe;
use netsniff_traffic::stamp::Stamp;

const PATIENCE: Duration = Duration::from_millis(50);

/// No test takes longer, whatever a backend does.
const LIMIT: Duration = Duration::from_secs(20);

/// A ring that is made fast and filled fast.
fn small() -> Options {
    Options { ring_bytes: 1 << 20, block_bytes: 1 << 16, ..Options::default() }
}

fn open(backend: &Backend, options: &Options) -> Box<dyn Receiver> {
    backend.open(&Interface::find("rx0").unwrap(), options).unwrap()
}

/// What came out of a ring.
#[derive(Default)]
struct Taken {
    frames: Vec<(Timestamp, Vec<u8>, u32)>,
    losses: Vec<(usize, Loss)>,
}

impl Taken {
    fn arrivals(&self, sent: u64) -> Arrivals {
        let mut ledger = Ledger::default();
        for (_, frame, _) in &self.frames {
            ledger.note(Stamp::parse(&frame[probe::STAMP_AT..]).unwrap().sequence);
        }
        ledger.close(sent).unwrap()
    }

    fn sequences(&self) -> Vec<u64> {
        let stamps = self.frames.iter().map(|(_, frame, _)| &frame[probe::STAMP_AT..]);
        stamps.map(|stamp| Stamp::parse(stamp).unwrap().sequence).collect()
    }

    /// Takes what one call lends; `false` where it lends nothing.
    fn take(&mut self, receiver: &mut dyn Receiver) -> Option<&'static str> {
        match receiver.receive(PATIENCE).unwrap() {
            Received::Packets(lent) => {
                let at = self.frames.len();
                self.losses.extend(lent.loss.map(|loss| (at, loss)));
                self.frames.extend(lent.packets.iter().map(|packet| {
                    (packet.timestamp, lent.data[packet.range()].to_vec(), packet.wire_len)
                }));
                None
            }
            Received::Nothing(_) => Some("nothing"),
            Received::Down => Some("down"),
            Received::Gone => Some("gone"),
            Received::End => Some("end"),
        }
    }

    /// Stops the ring and takes what is left.
    fn drain(&mut self, receiver: &mut dyn Receiver) {
        receiver.stop().unwrap();
        let begin = Instant::now();
        while self.take(receiver) != Some("end") {
            assert!(begin.elapsed() < LIMIT, "it never ends");
        }
    }
}

/// Runs a test for each backend and each way to wait.
fn each(test: &str, mut run: impl FnMut(&Bed, &Backend, Wait) + Send) {
    let Some(bed) = Bed::up(test) else { return };
    for backend in BACKENDS {
        for wait in [Wait::Poll, Wait::Busy, Wait::Adaptive] {
            println!("{test}: {} {wait:?}", backend.name);
            bed.receiving(|| run(&bed, backend, wait));
        }
    }
}

#[test]
fn every_frame_arrives_once_and_whole() {
    each("whole", |bed, backend, wait| {
        let mut receiver = open(backend, &Options { wait, ..small() });
        receiver.start().unwrap();
        let before = realtime();
        let sizes: Vec<usize> = (0..500).map(|n| [64, 65, 200, 1518][n % 4]).collect();
        bed.send(0, &sizes);
        let mut taken = Taken::default();
        taken.drain(receiver.as_mut());
        assert_eq!(taken.sequences(), (0..500).collect::<Vec<_>>());
        for ((time, frame, wire_len), size) in taken.frames.iter().zip(&sizes) {
            assert_eq!((frame.len(), *wire_len as usize), (size - 4, size - 4));
            assert!(*time >= before && *time <= realtime());
            let expected =
                probe::frame(*size, Stamp::parse(&frame[42..]).unwrap().sequence as u32 % 16);
            assert_eq!(frame[60..], expected.unwrap()[60..]);
        }
        let counters = receiver.counters().unwrap();
        assert_eq!((counters.delivered, counters.dropped), (500, Some(0)));
        assert_eq!(counters.accepted, Some(500));
        assert_eq!(
            counters.delivered_bytes,
            sizes.iter().map(|size| *size as u64 - 4).sum::<u64>()
        );
        assert_eq!((counters.cut, counters.malformed, counters.inversions), (0, 0, 0));
        assert!(taken.losses.is_empty() && receiver.last_loss().is_none());
    });
}

#[test]
fn nothing_comes_from_before_the_start_or_after_the_stop() {
    each("edges", |bed, backend, wait| {
        let mut receiver = open(backend, &Options { wait, ..small() });
        bed.send(0, &[64; 20]);
        receiver.start().unwrap();
        bed.send(20, &[64; 30]);
        receiver.stop().unwrap();
        bed.send(50, &[64; 20]);
        let mut taken = Taken::default();
        taken.drain(receiver.as_mut());
        assert_eq!(taken.sequences(), (20..50).collect::<Vec<_>>());
        assert_eq!(receiver.counters().unwrap().dropped, Some(0));
    });
}

#[test]
fn the_kernel_cuts_and_filters() {
    each("filter", |bed, backend, wait| {
        let options = Options { filter: odd(), snaplen: 70, wait, ..small() };
        let mut receiver = open(backend, &options);
        assert_eq!(receiver.facts().filter_len, 4);
        receiver.start().unwrap();
        bed.send(0, &[512; 40]);
        let mut taken = Taken::default();
        taken.drain(receiver.as_mut());
        assert_eq!(taken.sequences(), (0..40).filter(|n| n % 2 == 1).collect::<Vec<_>>());
        assert!(taken.frames.iter().all(|(_, frame, wire)| (frame.len(), *wire) == (70, 508)));
        let counters = receiver.counters().unwrap();
        assert_eq!((counters.delivered, counters.cut, counters.filtered), (20, 20, Some(20)));
    });
}

/// Refuses packets of an even number.
fn odd() -> Vec<Instruction> {
    // The last byte of the sequence number, and its lowest bit.
    let at = probe::STAMP_AT as u32 + 11;
    vec![
        Instruction { code: 0x30, jt: 0, jf: 0, k: at },
        Instruction { code: 0x45, jt: 0, jf: 1, k: 1 },
        Instruction { code: 0x06, jt: 0, jf: 0, k: 70 },
        Instruction { code: 0x06, jt: 0, jf: 0, k: 0 },
    ]
}

/// What had surely passed the ring when the interface was read, and what it had counted.
fn passed(host: &mut HostReader) -> (u64, u64) {
    let came = host.interfaces().unwrap().of("rx0").unwrap().rx_packets;
    let backlog = host.backlog().unwrap().unwrap_or_default();
    (came.saturating_sub(backlog.waiting + backlog.processors), came)
}

/// Waits a little longer than a packet takes from one counter to the other, while packets are taken.
fn settle(taken: &mut Taken, receiver: &mut dyn Receiver) {
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_millis(5) {
        taken.take(receiver);
    }
}

/// On a wire that never falls silent, what a ring has counted between its start and its gate is what came to the
/// interface meanwhile, as well as the two can be read at one moment. Another thread shuts the gate.
#[test]
fn counters_close_while_traffic_goes_on() {
    each("endless", |bed, backend, wait| {
        let ends = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let sender = scope.spawn(|| bed.send_until(&ends, LIMIT));
            let mut host = HostReader::open().unwrap();
            let mut receiver = open(backend, &Options { wait, filter: odd(), ..small() });
            let mut taken = Taken::default();
            std::thread::sleep(Duration::from_millis(5));
            let (first, _) = passed(&mut host);
            std::thread::sleep(Duration::from_millis(5));
            receiver.start().unwrap();
            settle(&mut taken, receiver.as_mut());
            let (_, started) = passed(&mut host);
            let gate = receiver.gate();
            for _ in 0..20 {
                settle(&mut taken, receiver.as_mut());
                let [read, own] =
                    [gate.counted().unwrap().unwrap(), receiver.counters().unwrap().counted()];
                assert!(read.accepted <= own.accepted && read.filtered <= own.filtered);
                assert!(
                    read.accepted.unwrap() >= taken.frames.len() as u64,
                    "what came out got in"
                );
            }
            let (shutting, _) = passed(&mut host);
            settle(&mut taken, receiver.as_mut());
            scope.spawn(move || gate.shut().unwrap()).join().unwrap();
            std::thread::sleep(Duration::from_millis(5));
            let (_, last) = passed(&mut host);
            taken.drain(receiver.as_mut());
            ends.store(true, Ordering::Relaxed);
            let counters = receiver.counters().unwrap();
            let parts = [counters.accepted, counters.dropped, counters.filtered];
            let sum: u64 = parts.into_iter().map(Option::unwrap).sum();
            let (least, most) = (shutting.saturating_sub(started), last - first);
            assert!((least..=most).contains(&sum), "{least} <= {sum} <= {most}: {counters:?}");
            assert!(sum > 50, "packets came: {counters:?}");
            assert_eq!(Some(counters.delivered), counters.accepted, "all that got in came out");
            assert_eq!(counters.delivered, taken.frames.len() as u64);
            sender.join().unwrap();
        });
    });
}

/// The classic filter decides alike, and nobody knows what it refused.
#[test]
fn without_the_right_to_count_what_is_filtered_is_unknown() {
    each("nobpf", |bed, backend, wait| {
        if !backend.reopens {
            return;
        }
        let options = Options { filter: odd(), snaplen: 70, wait, ..small() };
        let mut receiver = without_bpf(|| open(backend, &options));
        receiver.start().unwrap();
        bed.send(0, &[512; 40]);
        let mut taken = Taken::default();
        taken.drain(receiver.as_mut());
        assert_eq!(taken.sequences(), (0..40).filter(|n| n % 2 == 1).collect::<Vec<_>>());
        let counters = receiver.counters().unwrap();
        assert_eq!((counters.delivered, counters.filtered), (20, None));
    });
}

#[test]
fn what_another_side_sends_is_not_counted_as_filtered() {
    each("onlyout", |bed, backend, wait| {
        let options = Options { direction: Direction::Out, filter: odd(), wait, ..small() };
        let interface = Interface::find("rx0").unwrap();
        let Ok(mut receiver) = backend.open(&interface, &options) else { return };
        receiver.start().unwrap();
        bed.send(0, &[512; 40]);
        let mut taken = Taken::default();
        taken.drain(receiver.as_mut());
        let counters = receiver.counters().unwrap();
        assert_eq!((counters.delivered, counters.filtered), (0, Some(0)));
    });
}

#[test]
fn vlan_tags_are_put_back() {
    each("vlan", |bed, backend, wait| {
        let mut receiver = open(backend, &Options { wait, ..small() });
        receiver.start().unwrap();
        let plain = probe::frame(100, 0).unwrap();
        let tagged = |tags: &[[u8; 4]]| [&plain[..12], tags.as_flattened(), &plain[12..]].concat();
        let frames = vec![
            tagged(&[[0x81, 0, 0x20, 7]]),
            tagged(&[[0x88, 0xa8, 0, 8], [0x81, 0, 0, 9]]),
            plain.clone(),
        ];
        bed.send_frames(frames.clone());
        let mut taken = Taken::default();
        taken.drain(receiver.as_mut());
        let got: Vec<_> = taken.frames.iter().map(|(_, frame, _)| frame.clone()).collect();
        assert_eq!(got, frames);
        assert!(taken.frames.iter().all(|(_, frame, wire)| frame.len() == *wire as usize));
        // XDP sees them where they were.
        let retagged = if receiver.facts().xdp.is_some() { 0 } else { 2 };
        assert_eq!(receiver.counters().unwrap().retagged, retagged);
    });
}

/// Wherever the interface puts packets.
#[test]
fn packets_of_every_queue_arrive() {
    const QUEUES: u32 = 3;
    let Some(bed) = Bed::with_queues("queues", QUEUES) else { return };
    for backend in BACKENDS {
        bed.receiving(|| {
            let mut receiver = open(backend, &small());
            if let Some(xdp) = receiver.facts().xdp {
                assert_eq!((xdp.is_native, xdp.queues), (true, QUEUES as usize));
            }
            receiver.start().unwrap();
            for queue in 0..QUEUES {
                let sequences = u64::from(queue) * 50..u64::from(queue + 1) * 50;
                bed.send_to_queue(queue, sequences.map(|n| numbered(100, n)).collect());
            }
            let mut taken = Taken::default();
            taken.drain(receiver.as_mut());
            let mut sequences = taken.sequences();
            sequences.sort_unstable();
            assert_eq!(sequences, (0..150).collect::<Vec<_>>(), "{}", backend.name);
            let counters = receiver.counters().unwrap();
            assert_eq!((counters.accepted, counters.dropped), (Some(150), Some(0)));
        });
    }
}

/// The loopback interface has no XDP of its own.
#[test]
fn xdp_programs_run_before_the_stack_where_the_driver_cannot() {
    let Some(bed) = Bed::up("generic") else { return };
    bed.receiving(|| {
        bed.ip(&["link", "set", "lo", "mtu", "1500"]);
        for backend in BACKENDS.iter().filter(|backend| backend.path != Path::Tap) {
            let mut receiver = backend.open(&Interface::find("lo").unwrap(), &small()).unwrap();
            assert!(receiver.facts().xdp.is_some_and(|xdp| !xdp.is_native));
            receiver.start().unwrap();
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            for number in 0..20 {
                socket.send_to(&[number; 10], "127.0.0.1:9").unwrap();
            }
            let mut taken = Taken::default();
            taken.drain(receiver.as_mut());
            let udp = taken.frames.iter().filter(|(_, frame, _)| frame.get(23) == Some(&17));
            let numbers: Vec<_> = udp.map(|(_, frame, _)| frame[42]).collect();
            assert_eq!(numbers, (0..20).collect::<Vec<_>>(), "{}", backend.name);
        }
    });
}

#[test]
fn directions_are_told_apart() {
    each("direction", |bed, backend, wait| {
        bed.ip(&["addr", "replace", "10.99.0.1/24", "dev", "rx0"]);
        for (direction, expected) in [
            (Direction::In, vec![0, 1]),
            (Direction::Out, vec![7]),
            (Direction::Both, vec![0, 1, 7]),
        ] {
            let interface = Interface::find("rx0").unwrap();
            let options = Options { direction, wait, ..small() };
            let mut receiver = match backend.open(&interface, &options) {
                Ok(receiver) => receiver,
                Err(error) => {
                    let said = error.to_string();
                    assert!(
                        direction == Direction::Out && said.contains("--direction out"),
                        "{said}"
                    );
                    continue;
                }
            };
            // What is not taken is not promised.
            let only_in = direction == Direction::In || receiver.facts().direction == Direction::In;
            let expected = if only_in { vec![0, 1] } else { expected };
            receiver.start().unwrap();
            bed.send(0, &[64; 2]);
            // One goes the other way, from a socket, since only those go past the taps.
            let stamp = Stamp { run: 1, stream: 0, sequence: 7, sent: 0 };
            let mut payload = [0; 18];
            assert!(stamp.emit(&mut payload));
            let socket = UdpSocket::bind("10.99.0.1:0").unwrap();
            socket.send_to(&payload, "10.99.0.2:9").unwrap();
            let mut taken = Taken::default();
            taken.drain(receiver.as_mut());
            assert_eq!(taken.sequences(), expected, "{direction:?}");
        }
    });
}

#[test]
fn the_stack_gets_what_is_captured_unless_it_is_bypassed() {
    each("stack", |bed, backend, wait| {
        bed.ip(&["addr", "replace", "10.99.0.1/24", "dev", "rx0"]);
        let mut receiver = open(backend, &Options { wait, ..small() });
        receiver.start().unwrap();
        let socket = UdpSocket::bind("10.99.0.1:4099").unwrap();
        let passes_by = backend.path == Path::Bypass;
        let patience = Duration::from_millis(if passes_by { 200 } else { 5000 });
        socket.set_read_timeout(Some(patience)).unwrap();
        // To the interface's own address: the destination of a frame that is made here is another one.
        let own = Interface::find("rx0").unwrap().address.unwrap();
        let mut frame = probe::frame(64, 0).unwrap();
        frame[..6].copy_from_slice(&own);
        frame[30..34].copy_from_slice(&[10, 99, 0, 1]);
        frame[36..38].copy_from_slice(&4099_u16.to_be_bytes());
        renew_checksums(&mut frame);
        bed.send_frames(vec![frame.clone()]);
        let mut payload = [0; 64];
        let got = socket.recv_from(&mut payload).ok().map(|(got, _)| &payload[..got]);
        assert_eq!(got, (!passes_by).then_some(&frame[42..]));
        let mut taken = Taken::default();
        taken.drain(receiver.as_mut());
        assert!(taken.frames.iter().any(|(_, taken, _)| *taken == frame));
    });
}

/// Of an IPv4 header without options; the UDP header goes without.
fn renew_checksums(frame: &mut [u8]) {
    frame[24..26].fill(0);
    frame[40..42].fill(0);
    let words =
        frame[14..34].chunks_exact(2).map(|word| u32::from(word[0]) << 8 | u32::from(word[1]));
    let sum: u32 = words.sum();
    let folded = !((sum & 0xffff) + (sum >> 16)) as u16;
    frame[24..26].copy_from_slice(&folded.to_be_bytes());
}

/// The consumer stalls: what is missing was counted, and lies where the losses say.
#[test]
fn drops_are_counted_and_located() {
    each("drops", |bed, backend, wait| {
        let options =
            Options { ring_bytes: 1 << 16, block_bytes: 1 << 14, wait, ..Options::default() };
        let mut receiver = open(backend, &options);
        receiver.start().unwrap();
        let mut taken = Taken::default();
        for burst in 0..3 {
            bed.send(burst * 2000, &[200; 2000]);
            while taken.take(receiver.as_mut()).is_none() {}
        }
        bed.send(6000, &[64; 1]);
        taken.drain(receiver.as_mut());
        let counters = receiver.counters().unwrap();
        taken.losses.extend(receiver.last_loss().map(|loss| (taken.frames.len(), loss)));
        let arrivals = taken.arrivals(6001);
        assert_eq!(arrivals.received + arrivals.lost, 6001);
        assert!(arrivals.lost > 3000, "{} were lost of a tiny ring", arrivals.lost);
        assert_eq!(
            counters.accepted,
            Some(arrivals.received),
            "the dropped ones are not among them"
        );
        assert_eq!(counters.dropped, Some(arrivals.lost));
        assert_eq!(counters.occupancy.high_water, counters.occupancy.capacity);
        let told: u64 = taken.losses.iter().map(|(_, loss)| loss.packets).sum();
        assert_eq!(told, arrivals.lost, "{:?}", taken.losses);
        assert_eq!(taken.losses.len(), arrivals.missing.len(), "{:?}", taken.losses);
        let sequences = taken.sequences();
        for ((at, loss), (first, end)) in taken.losses.iter().zip(&arrivals.missing) {
            assert_eq!(loss.packets, end - first);
            assert_eq!((sequences[at - 1], sequences[*at]), (first - 1, *end));
            assert_eq!(loss.before, Some(taken.frames[at - 1].0));
            assert_eq!(loss.after, taken.frames[*at].0);
        }
    });
}

/// What is dropped while everything is lent lies behind what was lent, and not somewhere in what comes next.
#[test]
fn drops_of_xdp_sockets_while_packets_are_lent_have_one_place() {
    let Some(bed) = Bed::up("lent") else { return };
    let backend = BACKENDS.iter().find(|backend| backend.name == "af-xdp").unwrap();
    bed.receiving(|| {
        let options = Options { ring_bytes: 1 << 16, ..Options::default() };
        let mut receiver = open(backend, &options);
        let units = receiver.facts().units as u64;
        receiver.start().unwrap();
        let mut taken = Taken::default();
        // As many as there is room for, so that none was dropped before they were lent.
        bed.send(0, &vec![100; units as usize]);
        assert_eq!(taken.take(receiver.as_mut()), None);
        assert_eq!(taken.frames.len() as u64, units);
        bed.send(units, &[100; 50]);
        assert_eq!(taken.take(receiver.as_mut()), Some("nothing"), "that gives them back");
        bed.send(units + 50, &[100; 10]);
        taken.drain(receiver.as_mut());
        let [(at, loss)] = taken.losses[..] else { panic!("{:?}", taken.losses) };
        assert_eq!((at as u64, loss.packets), (units, 50));
        assert_eq!(loss.before, Some(taken.frames[at - 1].0));
    });
}

/// The consumer reads while the ring overflows: every hole lies where the losses say, and those lie as narrowly
/// as the backend promises.
#[test]
fn drops_while_reading_lie_within_their_bounds() {
    each("overflow", |bed, backend, wait| overflow(bed, backend, wait, false));
}

/// The same while another thread reads the counters, which lets the kernel forget what slots were to tell. Drops
/// then lie in a ring's length.
#[test]
fn drops_that_another_thread_reads_lie_within_their_bounds() {
    each("elsewhere", |bed, backend, wait| overflow(bed, backend, wait, true));
}

fn overflow(bed: &Bed, backend: &Backend, wait: Wait, is_read_elsewhere: bool) {
    const COUNT: usize = 6000;
    let options = Options { ring_bytes: 1 << 16, block_bytes: 1 << 14, wait, ..Options::default() };
    let mut receiver = open(backend, &options);
    let units = receiver.facts().units;
    let widest = match (backend.name, is_read_elsewhere) {
        // In frames lent at once, and in packets of two blocks at most.
        ("af-packet-v2", false) => units.min(256) + 64,
        ("af-packet", false) => 2 * (1 << 14) / 200,
        ("af-packet-v2", true) => units + units.min(256) + 64,
        ("af-packet", true) => (units + 2) * (1 << 14) / 200,
        // In as many as may be lent at once.
        ("af-xdp", _) => units.min(256) + 1,
        _ => 1,
    };
    // Packets whose drop each processor may count a moment after it happened.
    let late = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    receiver.start().unwrap();
    let gate = receiver.gate();
    let mut taken = Taken::default();
    // More than the ring holds, and the rest while it is read.
    bed.send(0, &[100; COUNT / 2]);
    std::thread::scope(|scope| {
        let sender = scope.spawn(|| bed.send(COUNT as u64 / 2, &[100; COUNT / 2]));
        while !sender.is_finished() {
            if is_read_elsewhere {
                scope.spawn(|| gate.counted().unwrap().unwrap()).join().unwrap();
            }
            taken.take(receiver.as_mut());
            std::thread::sleep(Duration::from_micros(200));
        }
    });
    taken.drain(receiver.as_mut());
    taken.losses.extend(receiver.last_loss().map(|loss| (taken.frames.len(), loss)));
    let counters = receiver.counters().unwrap();
    let arrivals = taken.arrivals(COUNT as u64);
    assert_eq!(
        (arrivals.received + arrivals.lost, counters.dropped),
        (COUNT as u64, Some(arrivals.lost))
    );
    assert_eq!(gate.counted().unwrap(), Some(counters.counted()), "whoever reads");
    assert!(arrivals.lost > 100, "{} were lost", arrivals.lost);
    let told: u64 = taken.losses.iter().map(|(_, loss)| loss.packets).sum();
    assert_eq!(told, arrivals.lost);
    // Behind how many frames each loss begins and ends.
    let begin = |loss: &Loss| {
        taken.frames.iter().take_while(|(time, ..)| Some(*time) <= loss.before).count()
    };
    let places: Vec<_> =
        taken.losses.iter().map(|(at, loss)| (begin(loss), *at, loss.packets)).collect();
    for (at, sequence) in taken.sequences().into_iter().enumerate() {
        let lost = sequence - at as u64;
        let sum = |is: &dyn Fn(usize, usize) -> bool| -> u64 {
            places.iter().filter(|place| is(place.0, place.1)).map(|place| place.2).sum()
        };
        assert!(sum(&|_, end| end <= at) <= lost, "{lost} before {at}: {places:?}");
        assert!(sum(&|begin, _| begin <= at) + late >= lost, "{lost} before {at}: {places:?}");
    }
    for (begin, end, _) in &places {
        assert!(end + 1 - begin <= widest, "{begin} to {end}: {places:?}");
    }
}

/// The interface takes longer packets than it did when the ring was made: what is there is right, and what is
/// not there is counted.
#[test]
fn packets_longer_than_a_ring_expects_are_whole_or_cut_and_counted() {
    each("longer", |bed, backend, wait| {
        let set_mtu = |mtu: &str| {
            bed.ip(&["link", "set", "rx0", "mtu", mtu]);
            bed.sending(|| {
                let ip = std::process::Command::new("ip")
                    .args(["link", "set", "tx0", "mtu", mtu])
                    .status();
                assert!(ip.unwrap().success());
            });
        };
        let mut receiver = open(backend, &Options { wait, ..small() });
        let kept = receiver.facts().snaplen as usize;
        assert!(kept >= 1518, "{kept}");
        receiver.start().unwrap();
        set_mtu("4000");
        let frame = [&numbered(1518, 0)[..], &[7; 1500]].concat();
        bed.send_frames(vec![numbered(64, 1), frame.clone(), numbered(64, 2)]);
        set_mtu("1500");
        let mut taken = Taken::default();
        taken.drain(receiver.as_mut());
        if backend.name == "af-xdp" {
            // It is in no chunk, and the socket drops it.
            let counters = receiver.counters().unwrap();
            assert_eq!((taken.sequences(), counters.dropped), (vec![1, 2], Some(1)));
            let told = taken.losses.iter().map(|(_, loss)| loss.packets).sum::<u64>()
                + receiver.last_loss().map_or(0, |loss| loss.packets);
            assert_eq!((told, counters.malformed), (1, 0));
            return;
        }
        let [_, (_, got, wire_len), (_, last, _)] = &taken.frames[..] else {
            panic!("{} came", taken.frames.len())
        };
        assert_eq!(
            (*wire_len as usize, &got[..], last.len()),
            (frame.len(), &frame[..got.len()], 60)
        );
        assert!(got.len() >= kept.min(frame.len()), "{} of {kept}", got.len());
        let counters = receiver.counters().unwrap();
        assert_eq!(counters.cut, u64::from(got.len() < frame.len()));
        assert_eq!((counters.super_frames, counters.malformed), (1, 0));
    });
}

#[test]
fn an_interface_may_go_down_come_back_be_renamed_and_vanish() {
    let Some(bed) = Bed::up("states") else { return };
    for backend in BACKENDS {
        bed.receiving(|| {
            let mut receiver = open(backend, &small());
            receiver.start().unwrap();
            let mut taken = Taken::default();
            let wait_for = |taken: &mut Taken, receiver: &mut dyn Receiver, what: &str| {
                let begin = Instant::now();
                while taken.take(receiver) != Some(what) {
                    assert!(begin.elapsed() < LIMIT, "{what} never comes");
                }
            };
            bed.ip(&["link", "set", "rx0", "down"]);
            wait_for(&mut taken, receiver.as_mut(), "down");
            bed.ip(&["link", "set", "rx0", "name", "rx9"]);
            bed.ip(&["link", "set", "rx9", "up"]);
            wait_for(&mut taken, receiver.as_mut(), "nothing");
            bed.send(0, &[64; 10]);
            wait_for(&mut taken, receiver.as_mut(), "nothing");
            assert_eq!(taken.frames.len(), 10, "it goes on after it came back");
            bed.ip(&["link", "set", "rx9", "down"]);
            bed.ip(&["link", "set", "rx9", "name", "rx0"]);
            bed.ip(&["link", "set", "rx0", "up"]);
        });
    }
    for backend in BACKENDS {
        bed.receiving(|| {
            bed.ip(&["link", "add", "gone0", "type", "veth", "peer", "name", "gone1"]);
            bed.ip(&["link", "set", "gone0", "up"]);
            let interface = Interface::find("gone0").unwrap();
            let mut receiver = backend.open(&interface, &small()).unwrap();
            receiver.start().unwrap();
            bed.ip(&["link", "del", "gone0"]);
            let mut taken = Taken::default();
            let begin = Instant::now();
            while taken.take(receiver.as_mut()) != Some("gone") {
                assert!(begin.elapsed() < LIMIT, "it is never gone");
            }
        });
    }
}

#[test]
fn promiscuous_mode_ends_with_the_ring() {
    let Some(bed) = Bed::up("promisc") else { return };
    let is_promiscuous = || bed.ip(&["-d", "link", "show", "rx0"]).contains("promiscuity 1");
    for backend in BACKENDS {
        let receiver = bed.receiving(|| open(backend, &small()));
        assert!(is_promiscuous(), "{}", backend.name);
        drop(receiver);
        assert!(!is_promiscuous(), "{}", backend.name);
        let modest = Options { promiscuous: false, ..small() };
        let receiver = bed.receiving(|| open(backend, &modest));
        assert!(!is_promiscuous());
        drop(receiver);
    }
}

#[test]
fn errors_say_what_is_wrong() {
    let lo = Interface::find("lo").unwrap();
    let odd = Options { block_bytes: 5000, ..small() };
    if let Err(error) = BACKENDS[0].open(&lo, &odd) {
        assert!(error.to_string().contains("multiple of 4096"), "{error}");
    } else {
        panic!("a block of 5000 bytes");
    }
    let long = Interface { mtu: 9000, ..lo.clone() };
    let told = |interface: &Interface, options: Options| {
        let xdp = BACKENDS.iter().find(|backend| backend.name == "af-xdp").unwrap();
        xdp.open(interface, &options).err().map(|error| error.to_string()).unwrap_or_default()
    };
    assert!(told(&long, small()).contains("lower the MTU (ip link set lo mtu 3818)"));
    let usual = Interface { mtu: 1500, ..lo };
    let stamps = Options { stamps: Stamps::Hardware, ..small() };
    assert!(told(&usual, stamps).contains("leave out --ts hw"));
    let fanout = Some(Fanout { group: None, program: Vec::new() });
    assert!(told(&usual, Options { fanout, ..small() }).contains("--workers 1"));
}
