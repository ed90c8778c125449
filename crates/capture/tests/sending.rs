//! What every way to send must do, on a veth pair of this machine. Needs root; says so where it is missing.

#[allow(dead_code, reason = "other tests receive in other ways")]
mod bed;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use bed::{Bed, numbered};
use netsniff_capture::Interface;
use netsniff_capture::backend::{BACKENDS, Received, Receiver};
use netsniff_capture::interface::LinkReader;
use netsniff_capture::options::Options;
use netsniff_capture::transmit::{SendMethod, Transmitter, WAYS};

/// No test takes longer, whatever a way does.
const LIMIT: Duration = Duration::from_secs(20);

/// Runs a test for each way to send.
fn each(test: &str, run: impl Fn(&Bed, &SendMethod)) {
    for way in WAYS {
        let Some(bed) = Bed::up(&format!("{test}-{}", way.name)) else { return };
        println!("{test}: {}", way.name);
        run(&bed, way);
    }
}

fn open(way: &SendMethod) -> Box<dyn Transmitter> {
    way.open(&Interface::find("tx0").unwrap(), 0).unwrap()
}

/// Fills a buffer, and returns how many frames the kernel took before there was one.
fn fill(transmitter: &mut dyn Transmitter, frame: &[u8]) -> usize {
    let (mut taken, begin) = (0, Instant::now());
    while transmitter.room().is_none() {
        taken += transmitter.flush().unwrap();
        assert!(begin.elapsed() < LIMIT, "there is never room");
    }
    transmitter.room().unwrap().1[..frame.len()].copy_from_slice(frame);
    transmitter.fill(frame.len());
    taken
}

/// Hands over what is left, and returns how many frames the kernel took.
fn finish(transmitter: &mut dyn Transmitter) -> usize {
    let (mut taken, begin) = (0, Instant::now());
    while transmitter.pending() > 0 {
        taken += transmitter.flush().unwrap();
        assert!(begin.elapsed() < LIMIT, "frames are left");
    }
    // The kernel may have taken the last ones by itself.
    taken + transmitter.flush().unwrap()
}

/// Everything that a ring takes while something is sent.
fn received(bed: &Bed, send: impl FnOnce() + Send) -> Vec<Vec<u8>> {
    bed.receiving(|| {
        let options = Options { ring_bytes: 64 << 20, ..Options::default() };
        let interface = Interface::find("rx0").unwrap();
        let mut receiver: Box<dyn Receiver> = BACKENDS[0].open(&interface, &options).unwrap();
        receiver.start().unwrap();
        bed.sending(send);
        receiver.stop().unwrap();
        let (mut frames, begin) = (Vec::new(), Instant::now());
        loop {
            assert!(begin.elapsed() < LIMIT, "it never ends");
            match receiver.receive(Duration::from_millis(50)).unwrap() {
                Received::Packets(lent) => {
                    let data = lent.packets.iter().map(|packet| lent.data[packet.range()].to_vec());
                    frames.extend(data);
                }
                Received::End => return frames,
                _ => {}
            }
        }
    })
}

/// More frames than any way has buffers, so that each of these is used several times.
#[test]
fn every_frame_leaves_once_in_order_and_whole() {
    each("whole", |bed, way| {
        let frames: Vec<Vec<u8>> =
            (0..15_000).map(|n| numbered([64, 65, 200, 1518][n as usize % 4], n)).collect();
        let came = received(bed, || {
            let mut reader = LinkReader::new(Interface::find("tx0").unwrap().index).unwrap();
            let before = reader.counters().unwrap().unwrap();
            let mut transmitter = open(way);
            let mut taken = 0;
            for (number, frame) in frames.iter().enumerate() {
                taken += fill(transmitter.as_mut(), frame);
                // Runs of many lengths, one frame among them.
                if number % 37 == 0 || number % 5 == 0 {
                    taken += transmitter.flush().unwrap();
                }
            }
            taken += finish(transmitter.as_mut());
            assert_eq!(taken, frames.len(), "what the kernel is said to have taken");
            let after = reader.counters().unwrap().unwrap();
            assert_eq!(after.tx_packets - before.tx_packets, frames.len() as u64);
            assert_eq!(after.tx_dropped - before.tx_dropped, 0);
        });
        assert_eq!(came.len(), frames.len());
        for (number, (came, sent)) in came.iter().zip(&frames).enumerate() {
            assert!(came == sent, "frame {number} came as another one: {came:x?}");
        }
    });
}

/// Until the kernel is called, there is room for as many frames as there are buffers, each for one of its own.
#[test]
fn what_is_full_has_no_room_until_it_is_flushed() {
    each("full", |bed, way| {
        let mut filled = 0;
        let came = received(bed, || {
            let mut transmitter = open(way);
            let (buffers, mut used) = (transmitter.buffers(), BTreeSet::new());
            while let Some((buffer, room)) = transmitter.room() {
                assert!(used.insert(buffer) && filled < buffers as u64, "{buffer} is used twice");
                room[..60].copy_from_slice(&numbered(64, filled));
                transmitter.fill(60);
                filled += 1;
            }
            assert_eq!((used.len(), transmitter.pending()), (buffers, buffers));
            finish(transmitter.as_mut());
            assert!(transmitter.room().is_some());
        });
        let sent: Vec<_> = (0..filled).map(|number| numbered(64, number)).collect();
        assert!(came == sent, "{} of {filled}", came.len());
    });
}

/// An MTU of more than a page, which some ways have no room for and say so.
#[test]
fn the_longest_frames_pass_where_a_way_has_room() {
    each("longest", |bed, way| {
        bed.ip(&["link", "set", "rx0", "mtu", "9000"]);
        bed.ip_of_sender(&["link", "set", "tx0", "mtu", "9000"]);
        let mut plain = numbered(8_000, 1);
        let mut tagged = [&plain[..12], &[0x81, 0, 0, 5], &plain[12..]].concat();
        let interface = bed.sending(|| Interface::find("tx0").unwrap());
        plain.resize(9_014, 7);
        tagged.resize(9_018, 8);
        assert!(interface.takes(false, 9_014) && !interface.takes(false, 9_015));
        assert!(interface.takes(true, 9_018) && !interface.takes(true, 9_019));
        let longest = bed.sending(|| open(way).longest());
        if longest < tagged.len() {
            assert_eq!((way.name, longest), ("af-xdp", 4096), "a way that could take them");
            return;
        }
        let came = received(bed, || {
            let mut transmitter = open(way);
            fill(transmitter.as_mut(), &plain);
            fill(transmitter.as_mut(), &tagged);
            finish(transmitter.as_mut());
        });
        // The tag may have been taken off; it is no concern of sending.
        assert_eq!((came.len(), &came[0]), (2, &plain));
        assert!(came[1].ends_with(&tagged[16..]));
    });
}

#[test]
fn an_interface_that_goes_down_or_away_is_an_error() {
    for change in [&["link", "set", "tx0", "down"][..], &["link", "del", "tx0"]] {
        each("away", |bed, way| {
            bed.sending(|| {
                let mut transmitter = open(way);
                fill(transmitter.as_mut(), &numbered(64, 0));
                finish(transmitter.as_mut());
                bed.ip_of_sender(change);
                let begin = Instant::now();
                let said = loop {
                    if let Some((_, room)) = transmitter.room() {
                        room[..60].copy_from_slice(&numbered(64, 1));
                        transmitter.fill(60);
                    }
                    match transmitter.flush() {
                        Ok(_) => assert!(begin.elapsed() < LIMIT, "no error: {change:?}"),
                        Err(error) => break error.to_string(),
                    }
                };
                println!("{} {change:?}: {said}", way.name);
                assert!(said.starts_with("cannot send "), "{said}");
            });
        });
    }
}
