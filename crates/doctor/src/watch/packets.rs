//! What packets themselves tell: how unevenly they come, and whether few flows are most of them.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::Context as _;
use netsniff_capture::backend::{BACKENDS, Received, Receiver};
use netsniff_capture::options::{Direction, Options};
use netsniff_capture::{Interface, set_nice};
use netsniff_packet::decode::{self, Decoded, Transport};
use netsniff_packet::{Address, Timestamp};
use serde::{Deserialize, Serialize};

/// Bytes of each packet that are looked at.
const SNAPLEN: u32 = 128;

/// Flows that are told apart; packets of more count as others.
const FLOWS: usize = 65_536;

/// Steps of the histogram: gaps below 1 µs, 2 µs, 4 µs and so on.
const STEPS: usize = 21;

/// Nanoseconds of the windows of which the busiest one is told.
const WINDOW_NS: i64 = 1_000_000;

/// What was seen of packets.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Packets {
    /// Packets that were looked at.
    pub seen: u64,
    /// Packets that the doctor's own ring had no room for; `None` where the kernel does not tell.
    pub missed: Option<u64>,
    /// Gaps between two packets: how many were shorter than 1 µs, than 2 µs, than 4 µs and so on; the last one has the rest.
    pub gaps: Vec<u64>,
    /// The most packets in a millisecond.
    pub most_in_millisecond: u64,
    /// Packets in the longest row of which each came less than 10 µs after the one before.
    pub longest_burst: u64,
    /// The flow that most packets are of.
    pub elephant: Option<Elephant>,
    /// Flows that were told apart.
    pub flows: u64,
    /// Packets whose stamp is that of the one before.
    pub equal_stamps: u64,
}

/// A flow that is much of all.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Elephant {
    /// Its addresses and ports.
    pub flow: String,
    /// Its share of packets.
    pub share: f64,
}

/// Looks at packets in a thread of its own.
#[derive(Debug)]
pub struct PacketWatch {
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<anyhow::Result<Packets>>,
}

impl PacketWatch {
    /// Begins to look at what an interface receives; with packets for others where it `is_promiscuous`.
    ///
    /// # Errors
    ///
    /// Without the right to capture, or the interface.
    pub fn begin(interface: &str, is_promiscuous: bool) -> anyhow::Result<Self> {
        let interface = Interface::find(interface)?;
        let options = Options {
            snaplen: SNAPLEN,
            ring_bytes: 8 << 20,
            direction: Direction::In,
            promiscuous: is_promiscuous,
            ..Options::default()
        };
        let backend = BACKENDS.first().context("there is no way to capture")?;
        let mut receiver = backend.open(&interface, &options)?;
        receiver.start()?;
        let is_over = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&is_over);
        let thread = thread::Builder::new().name("doctor".to_owned());
        let link_type = interface.link_type;
        let thread = thread.spawn(move || {
            // What loses packets here must not be the one who looks for losses.
            let _ = set_nice(19);
            let mut counts = Counts::default();
            run(receiver.as_mut(), &ends, &mut |time, data, len| {
                counts.add(time, flow_of(&decode::packet(link_type, data, len)));
            })?;
            let missed = receiver.counters().ok().and_then(|counters| counters.dropped);
            Ok(counts.packets(missed))
        })?;
        Ok(Self { is_over, thread })
    }

    /// Ends, and tells what was seen.
    ///
    /// # Errors
    ///
    /// Where packets could not be taken to the end.
    pub fn end(self) -> anyhow::Result<Packets> {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or_else(|_| Err(anyhow::anyhow!("its thread panicked")))
    }
}

/// Hands every packet to `each`, with its time, what was kept of it and its length, until it is over.
fn run(
    receiver: &mut dyn Receiver,
    is_over: &AtomicBool,
    each: &mut dyn FnMut(Timestamp, &[u8], u32),
) -> anyhow::Result<()> {
    let mut is_stopping = false;
    loop {
        if is_over.load(Ordering::Relaxed) && !is_stopping {
            is_stopping = true;
            receiver.stop()?;
        }
        match receiver.receive(Duration::from_millis(20)) {
            Ok(Received::Packets(lent)) => {
                for packet in lent.packets {
                    let data = lent.data.get(packet.range()).unwrap_or_default();
                    each(packet.timestamp, data, packet.wire_len);
                }
            }
            Ok(Received::Nothing(_) | Received::Down) => {}
            Ok(Received::End) => return Ok(()),
            Ok(Received::Gone) => anyhow::bail!("the interface is gone"),
            Err(why) => return Err(why.into()),
        }
    }
}

/// Addresses, ports and protocol: what is one flow.
type Flow = (Address, Address, u16, u16, u8);

fn flow_of(decoded: &Decoded) -> Option<Flow> {
    let ip = decoded.ip?;
    let (from, to) = match decoded.transport {
        Transport::Tcp(tcp) => (tcp.source_port, tcp.destination_port),
        Transport::Udp(udp) => (udp.source_port, udp.destination_port),
        _ => (0, 0),
    };
    Some((ip.source, ip.destination, from, to, ip.protocol))
}

/// What is counted while packets come.
#[derive(Default)]
struct Counts {
    seen: u64,
    gaps: [u64; STEPS],
    last: Option<i64>,
    equal: u64,
    /// The window that is open, and packets in it.
    window: (i64, u64),
    most_in_window: u64,
    burst: u64,
    longest_burst: u64,
    flows: HashMap<Flow, u64>,
}

/// Nanoseconds below which a packet belongs to the burst of the one before.
const BURST_NS: i64 = 10_000;

impl Counts {
    fn add(&mut self, time: Timestamp, flow: Option<Flow>) {
        let now = time.nanos();
        self.seen += 1;
        let gap = self.last.map(|last| now.saturating_sub(last).max(0));
        if let Some(gap) = gap {
            // Less than 1 µs is the first step, and each one is twice as long as that before.
            let step = (u64::BITS - (gap.unsigned_abs() / 1000).leading_zeros()) as usize;
            self.gaps[step.min(STEPS - 1)] += 1;
            self.equal += u64::from(gap == 0);
        }
        self.burst = if gap.is_some_and(|gap| gap < BURST_NS) { self.burst + 1 } else { 1 };
        self.longest_burst = self.longest_burst.max(self.burst);
        let window = now.div_euclid(WINDOW_NS);
        if self.window.0 != window {
            self.window = (window, 0);
        }
        self.window.1 += 1;
        self.most_in_window = self.most_in_window.max(self.window.1);
        self.last = Some(self.last.map_or(now, |last| last.max(now)));
        if let Some(flow) = flow {
            let is_full = self.flows.len() >= FLOWS;
            match self.flows.get_mut(&flow) {
                Some(count) => *count += 1,
                None if is_full => {}
                None => drop(self.flows.insert(flow, 1)),
            }
        }
    }

    fn packets(self, missed: Option<u64>) -> Packets {
        let most = self.flows.iter().max_by_key(|(flow, count)| (**count, **flow));
        let elephant = most.map(|((source, destination, from, to, protocol), count)| Elephant {
            flow: format!("{source}:{from} -> {destination}:{to} (protocol {protocol})"),
            share: *count as f64 / self.seen as f64,
        });
        Packets {
            seen: self.seen,
            missed,
            gaps: self.gaps.to_vec(),
            most_in_millisecond: self.most_in_window,
            longest_burst: self.longest_burst,
            elephant,
            flows: self.flows.len() as u64,
            equal_stamps: self.equal,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bursts_and_elephants_are_counted() {
        let address = |last| Address::from_v4([192, 0, 2, last]);
        let flow = |last| Some((address(1), address(last), 1, 2, 17));
        let mut counts = Counts::default();
        // 20 packets 2 µs apart, then 5 of them a millisecond apart, one of which is of the elephant.
        for number in 0..20 {
            counts.add(Timestamp::from_nanos(number * 2000), flow(9));
        }
        for number in 1..=5 {
            counts.add(
                Timestamp::from_nanos(number * 1_000_000),
                if number == 1 { flow(9) } else { flow(10) },
            );
        }
        counts.add(Timestamp::from_nanos(5_000_000), None);
        let packets = counts.packets(Some(0));
        assert_eq!((packets.seen, packets.flows, packets.equal_stamps), (26, 2, 1));
        assert_eq!((packets.longest_burst, packets.most_in_millisecond), (20, 20));
        assert_eq!((packets.gaps[0], packets.gaps[2], packets.gaps[10]), (1, 19, 5));
        assert_eq!(packets.gaps.iter().sum::<u64>(), 25);
        let elephant = packets.elephant.unwrap();
        assert!((elephant.share - 21.0 / 26.0).abs() < 1e-9, "{elephant:?}");
        assert!(elephant.flow.starts_with("192.0.2.1:1 -> 192.0.2.9:2"), "{elephant:?}");
        let none = Counts::default().packets(None);
        assert_eq!((none.elephant, none.missed), (None, None));
    }

    #[test]
    fn flows_take_memory_with_a_bound() {
        let mut counts = Counts::default();
        for number in 0..FLOWS as u32 + 500 {
            let [_, a, b, c] = number.to_be_bytes();
            let from = Address::from_v4([10, a, b, c]);
            counts.add(Timestamp::EPOCH, Some((from, Address::from_v4([10, 0, 0, 1]), 1, 2, 6)));
        }
        assert_eq!(counts.flows.len(), FLOWS);
    }
}
