//! Two namespaces joined by a veth pair, for tests that need a kernel; and a sender in one of them.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use netsniff_capture::transmit::WAYS;
use netsniff_capture::{Interface, in_namespace};
use netsniff_testing::{Need, skip};
use netsniff_traffic::probe;
use netsniff_traffic::stamp::Stamp;
use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../benches/live/testbed.sh");

/// The namespaces, which go with this value.
pub(crate) struct Bed {
    name: String,
}

impl Bed {
    /// Makes them; `None`, said loudly, where this machine cannot.
    pub(crate) fn up(test: &str) -> Option<Self> {
        Self::with_queues(test, 1)
    }

    /// [`Self::up`] with so many queues at each end.
    pub(crate) fn with_queues(test: &str, queues: u32) -> Option<Self> {
        let name = format!("nst-{test}-{}", std::process::id());
        let up = Command::new("bash").args([SCRIPT, "up", &name, &queues.to_string()]).output();
        match up {
            Ok(up) if up.status.success() => Some(Self { name }),
            Ok(up) => {
                let why = String::from_utf8_lossy(&up.stderr).trim().to_owned();
                skip(
                    Need::Root,
                    format_args!("{test} needs namespaces, which cannot be made here: {why}"),
                );
                None
            }
            Err(error) => {
                skip(Need::Program("bash"), format_args!("{test} needs bash: {error}"));
                None
            }
        }
    }

    /// Runs something in a thread of the receiving namespace.
    pub(crate) fn receiving<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        in_namespace(&format!("{}-rx", self.name), work).unwrap()
    }

    /// Runs something in a thread of the sending namespace.
    pub(crate) fn sending<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        in_namespace(&format!("{}-tx", self.name), work).unwrap()
    }

    /// Calls ip(8) in the receiving namespace.
    pub(crate) fn ip(&self, arguments: &[&str]) -> String {
        self.ip_of("rx", arguments)
    }

    /// The same in the sending one.
    #[allow(dead_code, reason = "few tests change the sender's end")]
    pub(crate) fn ip_of_sender(&self, arguments: &[&str]) -> String {
        self.ip_of("tx", arguments)
    }

    fn ip_of(&self, end: &str, arguments: &[&str]) -> String {
        let namespace = format!("{}-{end}", self.name);
        let out = Command::new("ip").args(["-n", &namespace]).args(arguments).output().unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8_lossy(&out.stdout).into_owned()
    }

    /// Sends frames of these sizes (RFC 2544), one for each number from `from` on, stamped with it.
    pub(crate) fn send(&self, from: u64, sizes: &[usize]) {
        let frames = (from..).zip(sizes).map(|(sequence, size)| numbered(*size, sequence));
        self.send_frames(frames.collect());
    }

    /// Sends frames as they are.
    pub(crate) fn send_frames(&self, frames: Vec<Vec<u8>>) {
        self.send_paced(frames, Duration::ZERO);
    }

    /// Sends frames as they are, each so long after the one before.
    pub(crate) fn send_paced(&self, frames: Vec<Vec<u8>>, interval: Duration) {
        self.send_by("sendmmsg", 0, frames, interval);
    }

    /// Sends frames as they are through a queue, which one way to send can choose.
    pub(crate) fn send_to_queue(&self, queue: u32, frames: Vec<Vec<u8>>) {
        self.send_by("af-xdp", queue, frames, Duration::ZERO);
    }

    /// Sends 2,000 numbered frames a second until it is told to end, or so long.
    #[allow(dead_code, reason = "few tests need traffic that does not end")]
    pub(crate) fn send_until(&self, ends: &AtomicBool, most: Duration) {
        let begin = Instant::now();
        let mut sequence = 0;
        while !ends.load(Ordering::Relaxed) && begin.elapsed() < most {
            let frames = (sequence..sequence + 40).map(|number| numbered(100, number)).collect();
            self.send_paced(frames, Duration::from_micros(500));
            sequence += 40;
        }
    }

    fn send_by(&self, way: &str, queue: u32, frames: Vec<Vec<u8>>, interval: Duration) {
        self.sending(|| {
            let interface = Interface::find("tx0").unwrap();
            let way = WAYS.iter().find(|of| of.name == way).unwrap();
            let mut transmitter = way.open(&interface, queue).unwrap();
            let mut due = Instant::now();
            for frame in frames {
                while transmitter.room().is_none() {
                    transmitter.flush().unwrap();
                }
                let (_, room) = transmitter.room().unwrap();
                room[..frame.len()].copy_from_slice(&frame);
                transmitter.fill(frame.len());
                if !interval.is_zero() {
                    while Instant::now() < due {
                        std::hint::spin_loop();
                    }
                    due += interval;
                    transmitter.flush().unwrap();
                }
            }
            while transmitter.pending() > 0 {
                transmitter.flush().unwrap();
            }
        });
    }
}

/// A frame of this size with a number in it.
pub(crate) fn numbered(size: usize, sequence: u64) -> Vec<u8> {
    let mut frame = probe::frame(size, sequence as u32 % 16).unwrap();
    let stamp = Stamp { run: 1, stream: 0, sequence, sent: 0 };
    assert!(stamp.emit(&mut frame[probe::STAMP_AT..]));
    frame
}

/// Runs something in this thread without the right to load programs.
pub(crate) fn without_bpf<T>(work: impl FnOnce() -> T) -> T {
    let before = capabilities(None).unwrap();
    let effective = before.effective - CapabilitySet::BPF - CapabilitySet::SYS_ADMIN;
    set_capabilities(None, CapabilitySets { effective, ..before }).unwrap();
    let done = work();
    set_capabilities(None, before).unwrap();
    done
}

impl Drop for Bed {
    fn drop(&mut self) {
        let _ = Command::new("bash").args([SCRIPT, "down", &self.name]).output();
        for end in ["tx", "rx"] {
            let left = Path::new("/run/netns").join(format!("{}-{end}", self.name));
            assert!(!left.exists() || thread::panicking(), "{} is left", left.display());
        }
    }
}
