//! An XDP program that copies each wanted packet into a BPF ring buffer and passes it on to the stack.
//!
//! The program runs in the driver where that can, before GRO merges segments and before the stack takes a VLAN tag
//! out; it sees what comes in, and nothing that this machine sends. The filter is a part of it, so that what the
//! filter refuses is counted. The ring cannot be written by us, and callers may change packets: a batch of
//! packets at a time is copied out of it, and its room given back.
//!
//! Each packet comes with the number of those that had found no room before it. Drops thus lie between two
//! packets, even where nothing was read for long. On several processors a packet that finds room while another
//! processor counts a drop may stand on either side of it: reserving room and counting are two steps of the
//! program, and the kernel has no lock for both. Those behind the last packet are known by the counter.
//!
//! A stamp is read from `CLOCK_TAI` when the packet has been copied, and made time of day by the whole seconds
//! between the two clocks, which the kernel moves together: it is as exact as the stamps of packet sockets.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use netsniff_packet::{Loss, Timestamp};

use super::listing::Description;
use super::losses::ReportedDrops;
use super::receiver::{Base, Entrance, Ring, RingReceiver};
use super::shared_tally::SharedTally;
use super::xdp;
use super::{
    Backend, Gate, Intake as _, Lent, Path, Receiver, RingFacts, RingUnit, StampSource, XdpFacts,
};
use crate::ebpf::copy::{Copying, LONGEST, copy, record};
use crate::error::{Error, Result, Right, refused};
use crate::interface::Interface;
use crate::negotiate::{FreeMemory, Negotiation, negotiate};
use crate::options::{Direction, Options, Stamps, Wait};
use crate::sys::bpf::{XdpLink, XdpMode};
use crate::sys::clock::{realtime, tai_seconds};
use crate::sys::record_ring::{Record, RecordRing};
use crate::sys::socket::Socket;

pub(in crate::backend) const BACKEND: Backend = Backend {
    name: "xdp-copy",
    summary: "an XDP program that copies packets that come in, and passes them on; needs CAP_BPF and CAP_NET_ADMIN",
    path: Path::Both,
    reopens: false,
    open,
};

/// The least ring: the longest packet finds room in it while it is empty.
const LEAST: usize = 1 << 17;

/// The largest ring that the kernel makes, whose length has 32 bits and is a power of two.
const MOST: usize = 1 << 31;

/// Bytes that are copied out of the ring at a time: twice the longest packet, and little enough to stay in a
/// processor's cache until it is analysed.
const BATCH: usize = 1 << 17;

/// What a usual packet takes up of the ring, at most.
const CHARGE: u32 = 2048;

/// The ring, and a batch of packets out of it.
#[derive(Debug)]
struct XdpCopy {
    /// Before all that the program uses, so that it leaves first.
    _link: XdpLink,
    ring: RecordRing,
    tally: Arc<SharedTally>,
    /// Makes the interface promiscuous, where that was asked for.
    _promiscuous: Option<Socket>,
    data: Box<[u8]>,
    descriptions: Vec<Description>,
    told: ReportedDrops,
}

fn open(interface: &Interface, options: &Options) -> Result<Box<dyn Receiver>> {
    check(options)?;
    let filter = xdp::wanted(options)?;
    let (ring, memory) = make_ring(options.ring_bytes)?;
    let tally = Arc::new(SharedTally::make()?);
    let copying = Copying {
        ring: ring.number(),
        tally: tally.tally(),
        wanted: filter.as_ref(),
        snaplen: options.snaplen,
        wakes: options.wait != Wait::Busy,
    };
    let program = xdp::load(copy(&copying))?;
    let promiscuous = xdp::promiscuous(interface, options)?;
    let (link, mode) = xdp::attach(&program, interface)?;
    let facts = facts(interface, options, memory, mode)?;
    let base = Base::new(facts, interface, options, Duration::ZERO);
    let ring = XdpCopy {
        _link: link,
        ring,
        tally,
        _promiscuous: promiscuous,
        data: vec![0; BATCH].into_boxed_slice(),
        descriptions: Vec::new(),
        told: ReportedDrops::default(),
    };
    Ok(Box::new(RingReceiver::new(ring, base, interface)?))
}

/// What an XDP program cannot do is refused.
fn check(options: &Options) -> Result<()> {
    let why = if options.direction == Direction::Out {
        "an XDP program does not see what this machine sends: leave out --direction out"
    } else if options.fanout.is_some() {
        "xdp-copy has one ring for each interface: leave out --workers and --fanout-group"
    } else if options.stamps == Stamps::Hardware {
        "xdp-copy takes the kernel's stamps only: leave out --ts hw"
    } else if options.busy_poll.is_some() {
        "xdp-copy has no socket to poll busily: leave out --busy-poll, or choose --wait busy"
    } else {
        return Ok(());
    };
    Err(Error::Invalid(why.to_owned()))
}

fn make_ring(bytes: usize) -> Result<(RecordRing, Negotiation)> {
    let ask = |bytes: usize| {
        // Of the two powers of two around it, the lower one is not more than was asked for.
        let len = 1_u32 << bytes.clamp(LEAST, MOST).ilog2();
        Ok((RecordRing::create(len)?, len as usize))
    };
    let made = negotiate(bytes, LEAST, FreeMemory::now(), ask);
    made.map_err(|source| refused(source, "make a BPF ring buffer", Right::XDP))
}

fn facts(
    interface: &Interface,
    options: &Options,
    memory: Negotiation,
    mode: XdpMode,
) -> Result<RingFacts> {
    Ok(RingFacts {
        backend: BACKEND.name,
        interface: interface.name.clone(),
        interface_index: interface.index,
        unit: RingUnit::Byte,
        unit_bytes: 1,
        units: memory.granted,
        memory: Some(memory),
        snaplen: options.snaplen.min(LONGEST),
        filter_len: options.filter.len(),
        counts_filtered: true,
        direction: Direction::In,
        fanout_group: None,
        stamps: StampSource::Kernel,
        busy_poll: None,
        xdp: Some(XdpFacts {
            is_native: mode == XdpMode::Native,
            is_zero_copy: None,
            queues: interface.queues()? as usize,
        }),
    })
}

struct Copied<'a> {
    stamp: i64,
    drops: u64,
    wire_len: u32,
    bytes: &'a [u8],
}

impl<'a> Copied<'a> {
    /// `None` where it makes no sense.
    fn parse(record: Record<'a>) -> Option<Self> {
        let Record::Finished(record) = record else { return None };
        let long = |at: usize| Some(u64::from_ne_bytes(*record.get(at..)?.first_chunk()?));
        let word = |at: usize| Some(u32::from_ne_bytes(*record.get(at..)?.first_chunk()?));
        let len = word(record::CAPTURED_LEN)? as usize;
        Some(Self {
            stamp: i64::try_from(long(record::STAMP)?).ok()?,
            drops: long(record::DROPS)?,
            wire_len: word(record::WIRE_LEN)?,
            bytes: record.get(record::HEADER..)?.get(..len)?,
        })
    }
}

/// Copies of records in a batch, one behind the other.
struct Batch<'a> {
    data: &'a mut [u8],
    descriptions: &'a mut Vec<Description>,
    used: usize,
    /// What is added to stamps, in nanoseconds.
    offset: i64,
}

impl Batch<'_> {
    /// Whether a packet of any length still fits.
    fn has_room(&self) -> bool {
        self.data.len() - self.used >= LONGEST as usize
    }

    fn push(&mut self, copied: &Copied<'_>) {
        let end = self.used + copied.bytes.len();
        let Some(place) = self.data.get_mut(self.used..end) else { return };
        place.copy_from_slice(copied.bytes);
        self.descriptions.push(Description {
            timestamp: Timestamp::from_nanos(copied.stamp).offset(self.offset),
            offset: self.used,
            free_from: self.used,
            captured_len: copied.bytes.len() as u32,
            wire_len: copied.wire_len,
            status: 0,
            vlan_tci: 0,
            vlan_tpid: 0,
        });
        self.used = end;
    }
}

impl XdpCopy {
    /// Copies packets out of the ring, no further than to one before which something was lost. Returns what
    /// was lost before the first, and how many records made no sense.
    fn fill(&mut self) -> (u64, u64) {
        let offset = -tai_seconds().saturating_mul(netsniff_packet::time::NANOS_PER_SEC);
        self.descriptions.clear();
        let data = &mut self.data;
        let mut batch = Batch { data, descriptions: &mut self.descriptions, used: 0, offset };
        let (mut lost, mut malformed) = (None, 0);
        while batch.has_room()
            && let Some(record) = self.ring.peek()
        {
            match Copied::parse(record) {
                Some(copied) => {
                    let untold = copied.drops.saturating_sub(self.told.packets);
                    if untold > *lost.get_or_insert(untold) {
                        break;
                    }
                    batch.push(&copied);
                }
                // What a program has given up it has counted as dropped.
                None => malformed += u64::from(record != Record::GivenUp),
            }
            self.ring.advance();
        }
        self.ring.release();
        (lost.unwrap_or_default(), malformed)
    }

    fn note_occupancy(&self, base: &mut Base) {
        let occupancy = &mut base.counters.occupancy;
        occupancy.note(u32::try_from(self.ring.waiting()).unwrap_or(u32::MAX));
    }
}

impl Ring for XdpCopy {
    fn entrance(&mut self) -> &mut dyn Entrance {
        self
    }

    fn gate(&self) -> Gate {
        Gate::new(&self.tally)
    }

    fn look(&mut self, base: &mut Base) -> Result<bool> {
        self.note_occupancy(base);
        Ok(self.ring.peek().is_some())
    }

    fn lend<'a>(&'a mut self, base: &'a mut Base) -> Result<Lent<'a>> {
        let occupancy = base.counters.occupancy;
        let (lost, malformed) = self.fill();
        let (data, descriptions) = (&mut self.data, &self.descriptions);
        base.list(|listing| {
            listing.malformed(malformed);
            for description in descriptions {
                if !listing.push(data, description) {
                    listing.malformed(1);
                }
            }
        });
        let mut loss = None;
        if let (Some(first), Some(last)) = (base.packets.first(), base.packets.last()) {
            loss = self.told.report(lost, first.timestamp, last.timestamp);
        }
        Ok(Lent { data: &mut self.data, packets: &base.packets, goes_on: false, loss, occupancy })
    }

    /// Packets are copied, so that their room was given back when they were lent.
    fn release(&mut self, _: &mut Base) -> Result<u32> {
        let lent = self.descriptions.len() as u32;
        self.descriptions.clear();
        Ok(lent)
    }

    fn read_statistics(&mut self, base: &mut Base) -> Result<()> {
        let counters = &mut base.counters;
        let counted = self.tally.counted()?;
        if counted.dropped > counters.dropped.or(Some(0)) {
            // Whatever is there now, it was full.
            counters.occupancy.high_water = counters.occupancy.capacity;
        }
        counters.set_counted(counted);
        Ok(())
    }

    /// The ring is counted in bytes, what came in packets.
    fn room(&self, base: &Base) -> u32 {
        base.counters.occupancy.room() / CHARGE
    }

    fn rest(&mut self, base: &Base) -> Option<Loss> {
        self.told.rest(base.counters.dropped.unwrap_or_default(), realtime())
    }
}

impl Entrance for XdpCopy {
    fn admit(&mut self) -> Result<()> {
        self.tally.set_open(true);
        Ok(())
    }

    fn poll(&mut self, time: Duration) -> io::Result<libc::c_short> {
        self.ring.poll(time)
    }

    /// The ring knows nothing of the interface.
    fn pending_error(&self) -> io::Result<Option<io::Error>> {
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(captured_len: u32, len: usize) -> Vec<u8> {
        let mut bytes = [5_u64, 9].map(u64::to_ne_bytes).as_flattened().to_vec();
        bytes.extend([1514, captured_len].map(u32::to_ne_bytes).as_flattened());
        bytes.resize(record::HEADER + len, 7);
        bytes
    }

    #[test]
    fn records_are_read_as_the_program_writes_them() {
        let record = bytes(60, 64);
        let copied = Copied::parse(Record::Finished(&record)).unwrap();
        assert_eq!((copied.stamp, copied.drops, copied.wire_len), (5, 9, 1514));
        assert_eq!(copied.bytes, [7; 60]);
    }

    #[test]
    fn records_that_make_no_sense_are_none() {
        assert!(Copied::parse(Record::Finished(&bytes(65, 64))).is_none());
        assert!(Copied::parse(Record::GivenUp).is_none());
        let record = bytes(0, 0);
        for end in 0..record.len() {
            assert!(Copied::parse(Record::Finished(&record[..end])).is_none());
        }
        assert!(Copied::parse(Record::Finished(&record)).is_some());
    }

    #[test]
    fn what_xdp_cannot_do_is_refused() {
        assert!(check(&Options::default()).is_ok());
        let out = Options { direction: Direction::Out, ..Options::default() };
        assert!(check(&out).unwrap_err().to_string().contains("--direction out"));
        let hardware = Options { stamps: Stamps::Hardware, ..Options::default() };
        assert!(check(&hardware).is_err());
    }
}
