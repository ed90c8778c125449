//! recvmmsg(2): no memory shared with the kernel, but up to 64 packets copied with one call; the reference.
//!
//! The kernel keeps packets in the receive buffer of the socket (`SO_RCVBUF`), and says beside each what a
//! mapped ring says in its header (`PACKET_AUXDATA`), when it came (`SO_TIMESTAMPNS`) and how many packets had
//! been dropped before it was queued (`SO_RXQ_OVFL`). Drops thus lie between two packets, even where nothing
//! was read for long; on several processors a packet that is queued while another drops one may be counted on
//! either side of it. Those behind the last packet are known by `PACKET_STATISTICS`.

use core::time::Duration;
use std::io;

use netsniff_packet::{Loss, Timestamp};

use super::packet_socket;
use super::packet_socket::{PacketSocket, Size};
use crate::backend::listing::{Description, TAG};
use crate::backend::losses::ReportedDrops;
use crate::backend::receiver::{Base, Entrance, Ring, RingReceiver};
use crate::backend::{Backend, Gate, Lent, Path, Receiver, RingUnit};
use crate::error::{CallContext as _, Error, Result};
use crate::interface::Interface;
use crate::negotiate::{FreeMemory, Negotiation, negotiate};
use crate::options::{Options, Stamps};
use crate::sys::clock::realtime;
use crate::sys::message::{ReceiveRoom, receive_packets};
use crate::sys::socket::Socket;

pub(in crate::backend) const BACKEND: Backend = Backend {
    name: "recvmmsg",
    summary: "the socket's buffer, read with recvmmsg(2): no shared memory, the reference",
    path: Path::Tap,
    reopens: true,
    open,
};

/// Packets that one call takes.
const PACKETS: usize = 64;

/// Bytes before each packet, in which a VLAN tag finds room.
const HEADROOM: usize = 16;

/// The least receive buffer; the kernel itself goes no lower.
const LEAST: usize = 4096;

/// What the kernel charges the receive buffer for a packet of an Ethernet, at most.
const CHARGE: u32 = 4096;

/// What one call took, and what of it is lent.
#[derive(Debug)]
struct Messages {
    socket: PacketSocket,
    data: Box<[u8]>,
    slot_len: usize,
    room: ReceiveRoom,
    taken: Vec<PacketFacts>,
    /// Packets of these that were lent and taken back, and that are lent now.
    done: usize,
    lent: usize,
    told: ReportedDrops,
}

/// What the kernel said of a packet.
#[derive(Clone, Copy, Debug)]
struct PacketFacts {
    /// `None` where it makes no sense.
    description: Option<Description>,
    /// Drops before it, which the kernel counts in 32 bits from the start of the socket; `None` where there
    /// were none yet.
    drops: Option<u32>,
}

impl PacketFacts {
    /// Drops of which the packet tells and that were not told yet.
    fn untold(&self, told: &ReportedDrops) -> u64 {
        self.drops.map_or(0, |drops| drops.wrapping_sub(told.packets as u32).into())
    }
}

fn open(interface: &Interface, options: &Options) -> Result<Box<dyn Receiver>> {
    if options.stamps == Stamps::Hardware {
        return Err(Error::Invalid(
            "recvmmsg takes the kernel's stamps only; leave out --ts hw, or choose another backend"
                .to_owned(),
        ));
    }
    let socket = packet_socket::open()?;
    for (level, name, what) in [
        (libc::SOL_PACKET, libc::PACKET_AUXDATA, "ask for auxiliary data (PACKET_AUXDATA)"),
        (libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, "ask for stamps (SO_TIMESTAMPNS)"),
        (libc::SOL_SOCKET, libc::SO_RXQ_OVFL, "ask for counts of drops (SO_RXQ_OVFL)"),
    ] {
        socket.set(level, name, &1).trying(what)?;
    }
    let memory = make_buffer(&socket, options.ring_bytes)?;
    let longest = packet_socket::longest_packet(interface).min(options.snaplen) as usize;
    let slot_len = HEADROOM + longest.max(1);
    let size = Size { unit: RingUnit::Byte, unit_bytes: 1, units: memory.granted, memory, longest };
    let socket = PacketSocket::bind(socket, interface, options, false)?;
    let facts = socket.facts(BACKEND.name, interface, size);
    let base = Base::new(facts, interface, options, Duration::ZERO);
    let messages = Messages {
        socket,
        data: vec![0; slot_len * PACKETS].into_boxed_slice(),
        slot_len,
        room: ReceiveRoom::default(),
        taken: Vec::with_capacity(PACKETS),
        done: 0,
        lent: 0,
        told: ReportedDrops::default(),
    };
    Ok(Box::new(RingReceiver::new(messages, base, interface)?))
}

/// Makes the receive buffer as large as was asked for, or as `net.core.rmem_max` allows where we may not
/// exceed that.
fn make_buffer(socket: &Socket, bytes: usize) -> Result<Negotiation> {
    let ask = |bytes: usize| {
        // The kernel doubles it, and tells the double: what it charges packets with is more than their bytes.
        let value = i32::try_from(bytes / 2).unwrap_or(i32::MAX / 2);
        match socket.set(libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &value) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                socket.set(libc::SOL_SOCKET, libc::SO_RCVBUF, &value)?;
            }
            result => result?,
        }
        let granted: i32 = socket.option(libc::SOL_SOCKET, libc::SO_RCVBUF)?;
        Ok(((), usize::try_from(granted).unwrap_or_default()))
    };
    let (_, memory) = negotiate(bytes, LEAST, FreeMemory::default(), ask)
        .trying(format!("make a receive buffer of {bytes} bytes"))?;
    Ok(memory)
}

impl Messages {
    /// Takes what the socket has, after all of the last call was taken back.
    fn take(&mut self, base: &mut Base) -> Result<()> {
        (self.done, self.lent) = (0, 0);
        self.taken.clear();
        let (socket, room) = (&self.socket.socket, &mut self.room);
        let got = match receive_packets(socket, &mut self.data, self.slot_len, HEADROOM, room) {
            Ok(got) => got,
            // Told by the state of the interface.
            Err(error)
                if matches!(
                    error.raw_os_error(),
                    Some(libc::ENETDOWN | libc::ENODEV | libc::ENXIO)
                ) =>
            {
                0
            }
            Err(error) => return Err(error).trying("receive packets"),
        };
        let slot_len = self.slot_len;
        let messages = self.room.messages().take(got).enumerate();
        self.taken
            .extend(messages.map(|(slot, (len, control))| read(slot * slot_len, len, control)));
        let has_dropped = self.taken.last().is_some_and(|last| last.untold(&self.told) > 0);
        self.note_occupancy(base, has_dropped, got == PACKETS)
    }

    /// Notes what is in the buffer: all of it, where it had no room, and now, if there may be more.
    fn note_occupancy(&self, base: &mut Base, was_full: bool, is_more: bool) -> Result<()> {
        let occupancy = &mut base.counters.occupancy;
        if was_full {
            occupancy.note(occupancy.capacity);
        }
        let mut used = 0;
        if is_more {
            let memory: [u32; 9] = self
                .socket
                .socket
                .option(libc::SOL_SOCKET, libc::SO_MEMINFO)
                .trying("read what the receive buffer holds")?;
            used = memory[0].min(occupancy.capacity);
        }
        occupancy.note(used);
        Ok(())
    }
}

impl Ring for Messages {
    fn entrance(&mut self) -> &mut dyn Entrance {
        &mut self.socket
    }

    fn gate(&self) -> Gate {
        self.socket.gate()
    }

    fn look(&mut self, base: &mut Base) -> Result<bool> {
        if self.done == self.taken.len() {
            self.take(base)?;
        } else {
            self.note_occupancy(base, false, true)?;
        }
        Ok(self.done < self.taken.len())
    }

    fn lend<'a>(&'a mut self, base: &'a mut Base) -> Result<Lent<'a>> {
        let waiting = self.taken.get(self.done..).unwrap_or_default();
        let drops = waiting.first().map_or(0, |first| first.untold(&self.told));
        // No further than to a packet before which something was lost.
        let lent = waiting.iter().take_while(|taken| taken.untold(&self.told) == drops);
        let lent = waiting.get(..lent.count()).unwrap_or_default();
        self.lent = lent.len();
        let data = &mut self.data;
        base.list(|listing| {
            for taken in lent {
                let is_listed = taken.description.is_some_and(|it| listing.push(data, &it));
                if !is_listed {
                    listing.malformed(1);
                }
            }
        });
        let mut loss = None;
        if let (Some(first), Some(last)) = (base.packets.first(), base.packets.last()) {
            loss = self.told.report(drops, first.timestamp, last.timestamp);
        }
        let occupancy = base.counters.occupancy;
        Ok(Lent { data: &mut self.data, packets: &base.packets, goes_on: false, loss, occupancy })
    }

    fn release(&mut self, _: &mut Base) -> Result<u32> {
        let lent = core::mem::take(&mut self.lent);
        self.done += lent;
        Ok(lent as u32)
    }

    fn read_statistics(&mut self, base: &mut Base) -> Result<()> {
        if self.socket.read_statistics(&mut base.counters)?.packets > 0 {
            let occupancy = &mut base.counters.occupancy;
            occupancy.high_water = occupancy.capacity;
        }
        Ok(())
    }

    /// The buffer is counted in bytes, what came in packets.
    fn room(&self, base: &Base) -> u32 {
        base.counters.occupancy.room() / CHARGE
    }

    fn rest(&mut self, base: &Base) -> Option<Loss> {
        self.told.rest(base.counters.dropped.unwrap_or_default(), realtime())
    }
}

/// Reads what the kernel said of a packet of `len` bytes in the slot that begins at `slot`.
fn read(slot: usize, len: u32, control: &[u8]) -> PacketFacts {
    let (mut auxiliary, mut timestamp, mut drops) = (None, None, None);
    for (level, kind, value) in ControlMessages(control) {
        match (level, kind) {
            (libc::SOL_PACKET, libc::PACKET_AUXDATA) => auxiliary = Auxiliary::parse(value),
            (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => timestamp = stamp(value),
            (libc::SOL_SOCKET, libc::SO_RXQ_OVFL) => drops = word(value, 0),
            _ => {}
        }
    }
    let description = auxiliary.zip(timestamp).map(|(auxiliary, timestamp)| Description {
        timestamp,
        offset: slot + HEADROOM,
        free_from: slot + HEADROOM - TAG,
        captured_len: len,
        wire_len: auxiliary.wire_len,
        status: auxiliary.status,
        vlan_tci: auxiliary.vlan_tci,
        vlan_tpid: auxiliary.vlan_tpid,
    });
    PacketFacts { description, drops }
}

/// `struct tpacket_auxdata` of <linux/if_packet.h>.
#[derive(Clone, Copy, Debug)]
struct Auxiliary {
    status: u32,
    wire_len: u32,
    vlan_tci: u16,
    vlan_tpid: u16,
}

impl Auxiliary {
    fn parse(value: &[u8]) -> Option<Self> {
        let half = |at: usize| Some(u16::from_ne_bytes(*value.get(at..)?.first_chunk()?));
        Some(Self {
            status: word(value, 0)?,
            wire_len: word(value, 4)?,
            vlan_tci: half(16)?,
            vlan_tpid: half(18)?,
        })
    }
}

/// A `struct timespec`.
fn stamp(value: &[u8]) -> Option<Timestamp> {
    let (seconds, nanos) = (value.first_chunk()?, value.get(8..)?.first_chunk()?);
    Some(Timestamp::from_secs_nanos(i64::from_ne_bytes(*seconds), i64::from_ne_bytes(*nanos)))
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Control messages, one behind the other: level, kind, value (`struct cmsghdr` of <linux/socket.h>).
struct ControlMessages<'a>(&'a [u8]);

impl<'a> Iterator for ControlMessages<'a> {
    type Item = (i32, i32, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        /// A length as large as a pointer, and two numbers.
        const WORD: usize = size_of::<usize>();
        const HEADER: usize = WORD + 8;
        let len = usize::from_ne_bytes(*self.0.first_chunk::<WORD>()?);
        let (level, kind) = (word(self.0, WORD)?, word(self.0, WORD + 4)?);
        let value = self.0.get(HEADER..len)?;
        self.0 = self.0.get(len.next_multiple_of(WORD)..).unwrap_or_default();
        Some((level as i32, kind as i32, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(level: i32, kind: i32, value: &[u8]) -> Vec<u8> {
        let len = size_of::<usize>() + 8 + value.len();
        let mut bytes = len.to_ne_bytes().to_vec();
        bytes.extend([level, kind].map(i32::to_ne_bytes).as_flattened());
        bytes.extend(value);
        bytes.resize(bytes.len().next_multiple_of(size_of::<usize>()), 0);
        bytes
    }

    #[test]
    fn control_messages_are_read_as_the_kernel_writes_them() {
        let mut auxiliary = [0; 20];
        auxiliary[0] = libc::TP_STATUS_VLAN_VALID as u8;
        auxiliary[4..8].copy_from_slice(&1514_u32.to_ne_bytes());
        auxiliary[16..18].copy_from_slice(&7_u16.to_ne_bytes());
        auxiliary[18..20].copy_from_slice(&0x8100_u16.to_ne_bytes());
        let time: Vec<u8> = [5_i64, 6].into_iter().flat_map(i64::to_ne_bytes).collect();
        let control = [
            message(libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS, &time),
            message(libc::SOL_SOCKET, libc::SO_RXQ_OVFL, &9_u32.to_ne_bytes()),
            message(libc::SOL_PACKET, libc::PACKET_AUXDATA, &auxiliary),
        ]
        .concat();
        let taken = read(1000, 60, &control);
        let description = taken.description.unwrap();
        assert_eq!((description.offset, description.captured_len), (1016, 60));
        assert_eq!((description.wire_len, description.vlan_tci), (1514, 7));
        assert_eq!(description.timestamp, Timestamp::from_secs_nanos(5, 6));
        assert_eq!(taken.drops, Some(9));
        for end in 0..control.len() {
            read(0, 60, &control[..end]);
        }
        assert!(read(0, 60, &control[..32]).description.is_none(), "no auxiliary data");
    }

    #[test]
    fn the_count_of_drops_may_wrap() {
        let time = Timestamp::EPOCH;
        let mut told = ReportedDrops::default();
        assert!(told.report(u64::from(u32::MAX) - 1, time, time).is_some());
        let taken = PacketFacts { description: None, drops: Some(3) };
        assert_eq!(taken.untold(&told), 5);
        assert!(told.report(5, time, time).is_some());
        assert_eq!(taken.untold(&told), 0);
        assert_eq!(PacketFacts { drops: None, ..taken }.untold(&told), 0);
    }
}
