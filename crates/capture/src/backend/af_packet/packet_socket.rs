//! What every kind of packet socket needs: binding, filter, direction, stamps, fan-out, counters.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use netsniff_packet::filter::classic::Instruction;

use super::intake::{NewDrops, PacketIntake, Statistics};
use crate::backend::receiver::Entrance;
use crate::backend::{Gate, RingFacts, RingUnit, StampSource};
use crate::counters::RingCounters;
use crate::error::{CallContext as _, Error, Result, Right, permitted};
use crate::interface::Interface;
use crate::negotiate::Negotiation;
use crate::options::{Direction, Fanout, Options, Stamps};
use crate::sys::slot_ring::{Layout, SlotRing};
use crate::sys::socket::{Plain, Socket};

/// A filter that refuses everything: `ret #0`.
pub(super) const REFUSE: [Instruction; 1] = [Instruction { code: 0x06, jt: 0, jf: 0, k: 0 }];

/// `ldb [SKF_AD_OFF + SKF_AD_PKTTYPE]`, and the value of packets that this machine sends.
const LOAD_PACKET_TYPE: Instruction = Instruction { code: 0x30, jt: 0, jf: 0, k: 0xffff_f000 + 4 };
const OUTGOING: u32 = 4;

/// Asks for the ring to be given back.
const NO_RING: libc::tpacket_req3 = libc::tpacket_req3 {
    tp_block_size: 0,
    tp_block_nr: 0,
    tp_frame_size: 0,
    tp_frame_nr: 0,
    tp_retire_blk_tov: 0,
    tp_sizeof_priv: 0,
    tp_feature_req_word: 0,
};

/// A bound packet socket that has its ring.
#[derive(Debug)]
pub(super) struct PacketSocket {
    pub(super) socket: Arc<Socket>,
    options: Options,
    intake: Arc<PacketIntake>,
    /// Whether the kernel counts how often the ring became full.
    counts_freezes: bool,
}

/// The size of a ring.
#[derive(Debug)]
pub(super) struct Size {
    pub(super) unit: RingUnit,
    pub(super) unit_bytes: usize,
    pub(super) units: usize,
    pub(super) memory: Negotiation,
    /// Bytes of a packet that its memory has room for.
    pub(super) longest: usize,
}

impl PacketSocket {
    /// Binds a socket that takes nothing until it is told to.
    pub(super) fn bind(
        socket: Socket,
        interface: &Interface,
        options: &Options,
        counts_freezes: bool,
    ) -> Result<Self> {
        bind(&socket, interface, options)?;
        let socket = Arc::new(socket);
        let intake = Arc::new(PacketIntake::new(Arc::clone(&socket), options));
        Ok(Self { socket, options: options.clone(), intake, counts_freezes })
    }

    /// What a ring of this socket is.
    pub(super) fn facts(&self, name: &'static str, interface: &Interface, size: Size) -> RingFacts {
        let options = &self.options;
        let (fanout_group, busy_poll) = read_back(&self.socket, options);
        let is_hardware = options.stamps == Stamps::Hardware;
        RingFacts {
            backend: name,
            interface: interface.name.clone(),
            interface_index: interface.index,
            unit: size.unit,
            unit_bytes: size.unit_bytes,
            units: size.units,
            memory: Some(size.memory),
            snaplen: options.snaplen.min(u32::try_from(size.longest).unwrap_or(u32::MAX)),
            filter_len: program(options).len(),
            counts_filtered: self.intake.counting().is_some(),
            direction: options.direction,
            fanout_group,
            stamps: if is_hardware { StampSource::Interface } else { StampSource::Kernel },
            busy_poll,
            xdp: None,
        }
    }

    pub(super) fn gate(&self) -> Gate {
        Gate::new(&self.intake)
    }

    /// Reads the kernel's counters, and returns the drops of which this was not told yet.
    pub(super) fn read_statistics(&self, counters: &mut RingCounters) -> Result<NewDrops> {
        let Statistics { counted, freezes, new_drops } = self.intake.read_for_ring()?;
        counters.set_counted(counted);
        counters.freezes = self.counts_freezes.then_some(freezes);
        Ok(new_drops)
    }

    /// Whether no other thread has read drops that this was not told of, or is reading.
    pub(super) fn has_told_all(&self) -> bool {
        self.intake.has_reported_all()
    }
}

impl Entrance for PacketSocket {
    fn admit(&mut self) -> Result<()> {
        match self.intake.counting() {
            Some(counting) => {
                self.socket.attach_program(counting.program()).trying("attach the filter")
            }
            None => admit(&self.socket, &self.options),
        }
    }

    fn poll(&mut self, time: Duration) -> io::Result<libc::c_short> {
        self.socket.poll(libc::POLLIN, time)
    }

    fn pending_error(&self) -> io::Result<Option<io::Error>> {
        self.socket.pending_error()
    }
}

/// Opens a packet socket that takes nothing yet.
pub(in crate::backend) fn open() -> Result<Socket> {
    let socket = Socket::open(libc::AF_PACKET, libc::SOCK_RAW, 0);
    permitted(socket, "open a packet socket", Right::RAW)
}

/// Chooses how its ring is laid out.
pub(super) fn choose_version(socket: &Socket, version: libc::tpacket_versions) -> Result<()> {
    let chosen = socket.set(libc::SOL_PACKET, libc::PACKET_VERSION, &(version as i32));
    chosen.trying(format!("choose {version:?}"))
}

/// Binds the socket and makes the interface promiscuous, while the filter refuses everything: what comes
/// before [`admit`] never gets in.
fn bind(socket: &Socket, interface: &Interface, options: &Options) -> Result<()> {
    socket.attach_filter(&REFUSE).trying("attach a filter")?;
    // Packets of the loopback interface come in and go out: once is enough.
    let is_loopback = interface.name == "lo";
    if options.direction == Direction::In || is_loopback && options.direction == Direction::Both {
        socket
            .set(libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, &1)
            .trying("leave out the packets that this machine sends")?;
    }
    if options.promiscuous {
        make_promiscuous(socket, interface)?;
    }
    if let Some(time) = options.busy_poll {
        ask_for_busy_polling(socket, time)?;
    }
    let bound = socket.bind_packet(interface.index, libc::ETH_P_ALL as u16);
    bound.trying(format!("bind a packet socket to {}", interface.name))?;
    if let Some(fanout) = &options.fanout {
        join(socket, fanout)?;
    }
    Ok(())
}

/// Makes an interface promiscuous as long as the socket is there; then it is what it was before.
pub(in crate::backend) fn make_promiscuous(socket: &Socket, interface: &Interface) -> Result<()> {
    let member = libc::packet_mreq {
        mr_ifindex: interface.index as i32,
        mr_type: libc::PACKET_MR_PROMISC as u16,
        mr_alen: 0,
        mr_address: [0; 8],
    };
    socket
        .set(libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &member)
        .trying(format!("make {} promiscuous", interface.name))
}

/// Lets calls that wait on any kind of socket ask the driver itself for so long.
pub(in crate::backend) fn ask_for_busy_polling(socket: &Socket, time: Duration) -> Result<()> {
    let micros = i32::try_from(time.as_micros()).unwrap_or(i32::MAX);
    socket
        .set(libc::SOL_SOCKET, libc::SO_BUSY_POLL, &micros)
        .trying("ask for busy polling (SO_BUSY_POLL)")
}

/// Microseconds of busy polling of a socket, as the kernel tells.
pub(in crate::backend) fn busy_polling(socket: &Socket) -> Option<u32> {
    let busy = socket.option::<u32>(libc::SOL_SOCKET, libc::SO_BUSY_POLL).ok();
    busy.filter(|micros| *micros > 0)
}

/// Makes the socket one of a group that shares packets.
fn join(socket: &Socket, fanout: &Fanout) -> Result<()> {
    /// `PACKET_FANOUT_FLAG_UNIQUEID` of <linux/if_packet.h>.
    const UNIQUE: u32 = 0x2000;
    let kind = libc::PACKET_FANOUT_CBPF;
    let (group, kind) = match fanout.group {
        Some(group) => (group, kind),
        None => (0, kind | UNIQUE),
    };
    let value = u32::from(group) | kind << 16;
    let joined = socket.set(libc::SOL_PACKET, libc::PACKET_FANOUT, &value);
    joined.map_err(|source| match source.raw_os_error() {
        Some(libc::EINVAL) if fanout.group.is_some() => Error::Invalid(format!(
            "the fan-out group {group} cannot be joined: it belongs to another interface, or shares \
             packets out in another way"
        )),
        Some(libc::ENOSPC) => Error::Invalid(format!("the fan-out group {group} is full")),
        _ => Error::Call { what: format!("join the fan-out group {group}"), reason: source },
    })?;
    socket
        .set_program(libc::SOL_PACKET, libc::PACKET_FANOUT_DATA, &fanout.program)
        .trying("set the program that shares packets out")
}

/// Gives the socket a ring that lies as `layout` says, and maps it. One that cannot be mapped, as where the process may have
/// no more memory, is given back, so that a smaller one can be asked for.
pub(super) fn make_ring<R: Plain>(
    socket: &Socket,
    request: &R,
    layout: Layout,
) -> io::Result<SlotRing> {
    socket.set(libc::SOL_PACKET, libc::PACKET_RX_RING, request)?;
    SlotRing::map(socket, layout).inspect_err(|_| {
        // Where this fails the next request does, and tells. What older versions know is the begin of it.
        let _ = socket.set(libc::SOL_PACKET, libc::PACKET_RX_RING, &NO_RING);
    })
}

/// Lets the wanted packets in.
fn admit(socket: &Socket, options: &Options) -> Result<()> {
    let program = program(options);
    if program.is_empty() {
        return socket.detach_filter().trying("detach the filter");
    }
    socket.attach_filter(&program).map_err(|source| match source.raw_os_error() {
        Some(libc::ENOMEM) => Error::Invalid(format!(
            "the filter of {} instructions exceeds the memory that net.core.optmem_max allows",
            program.len()
        )),
        _ => Error::Call { what: "attach the filter".to_owned(), reason: source },
    })
}

/// The filter that does what the options ask for; empty where everything is wanted whole.
fn program(options: &Options) -> Vec<Instruction> {
    let mut program = Vec::new();
    if options.direction == Direction::Out {
        program.push(LOAD_PACKET_TYPE);
        // Skips the refusal where it is equal.
        program.push(Instruction { code: 0x15, jt: 1, jf: 0, k: OUTGOING });
        program.extend(REFUSE);
    }
    if options.filter.is_empty() {
        if !program.is_empty() || options.snaplen < Options::default().snaplen {
            program.push(Instruction { k: options.snaplen, ..REFUSE[0] });
        }
    } else {
        program.extend(&options.filter);
    }
    program
}

/// Whether the kernel keeps packets out that the interface has counted.
pub(super) fn refuses(options: &Options) -> bool {
    options.filter.iter().any(|instruction| *instruction == REFUSE[0])
}

/// Chooses who stamps the packets of a mapped ring.
pub(super) fn stamp(socket: &Socket, interface: &Interface, stamps: Stamps) -> Result<()> {
    /// `SOF_TIMESTAMPING_RAW_HARDWARE` of <linux/net_tstamp.h>.
    const RAW_HARDWARE: i32 = 1 << 6;
    if stamps != Stamps::Hardware {
        return Ok(());
    }
    if !interface.has_hardware_stamps() {
        return Err(Error::Invalid(format!(
            "{} does not stamp received packets in hardware; leave out --ts hw",
            interface.name
        )));
    }
    socket
        .set(libc::SOL_PACKET, libc::PACKET_TIMESTAMP, &RAW_HARDWARE)
        .trying("ask for hardware stamps")
}

/// The longest packet of an interface that is worth having room for: where segments are merged, or not cut
/// yet, they come in packets of up to 64 KiB.
pub(super) fn longest_packet(interface: &Interface) -> u32 {
    /// Ethernet header, and two tags.
    const HEADERS: u32 = 14 + 4 + 4;
    let offloads = interface.offloads();
    let merge = [offloads.gro, offloads.lro, offloads.tso, offloads.gso];
    let payload = if merge.contains(&Some(true)) { 1 << 16 } else { 0 };
    interface.mtu.max(payload).saturating_add(HEADERS)
}

/// What the kernel says of the fan-out group, and of busy polling.
fn read_back(socket: &Socket, options: &Options) -> (Option<u16>, Option<u32>) {
    let group = socket.option::<u32>(libc::SOL_PACKET, libc::PACKET_FANOUT).ok();
    let group = group.filter(|_| options.fanout.is_some()).map(|value| value as u16);
    (group, busy_polling(socket))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_is_made_only_where_one_is_needed() {
        let all = Options::default();
        assert_eq!(program(&all).len(), 0);
        let cut = Options { snaplen: 96, ..all.clone() };
        assert_eq!(program(&cut), [Instruction { code: 6, jt: 0, jf: 0, k: 96 }]);
        let out = Options { direction: Direction::Out, ..all.clone() };
        assert_eq!(program(&out).last().map(|last| last.k), Some(262_144));
        let wanted = Options { direction: Direction::Out, filter: REFUSE.to_vec(), ..all };
        assert_eq!(program(&wanted).len(), 4);
    }
}
