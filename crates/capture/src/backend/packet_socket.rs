//! What every kind of packet socket needs: binding, filter, direction, stamps, fan-out.

use netsniff_packet::filter::classic::Instruction;

use crate::error::{Context as _, Error, Result, Right, permitted};
use crate::interface::{Interface, LinkReader};
use crate::options::{Direction, Fanout, Options, Stamps};
use crate::sys::socket::Socket;

/// A filter that refuses everything: `ret #0`.
const REFUSE: [Instruction; 1] = [Instruction { code: 0x06, jt: 0, jf: 0, k: 0 }];

/// `ldb [SKF_AD_OFF + SKF_AD_PKTTYPE]`, and the value of packets that this machine sends.
const LOAD_PACKET_TYPE: Instruction = Instruction { code: 0x30, jt: 0, jf: 0, k: 0xffff_f000 + 4 };
const OUTGOING: u32 = 4;

/// Opens a packet socket that takes nothing yet.
pub(super) fn open() -> Result<Socket> {
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
pub(super) fn bind(socket: &Socket, interface: &Interface, options: &Options) -> Result<()> {
    socket.attach_filter(&REFUSE).trying("attach a filter")?;
    // Packets of the loopback interface come in and go out: once is enough.
    let is_loopback = interface.name == "lo";
    if options.direction == Direction::In || is_loopback && options.direction == Direction::Both {
        socket
            .set(libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, &1)
            .trying("leave out the packets that this machine sends")?;
    }
    if options.promiscuous {
        let member = libc::packet_mreq {
            mr_ifindex: interface.index as i32,
            mr_type: libc::PACKET_MR_PROMISC as u16,
            mr_alen: 0,
            mr_address: [0; 8],
        };
        // It ends with the socket, which restores what was before.
        socket
            .set(libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &member)
            .trying(format!("make {} promiscuous", interface.name))?;
    }
    if let Some(time) = options.busy_poll {
        let micros = i32::try_from(time.as_micros()).unwrap_or(i32::MAX);
        socket
            .set(libc::SOL_SOCKET, libc::SO_BUSY_POLL, &micros)
            .trying("ask for busy polling (SO_BUSY_POLL)")?;
    }
    let bound = socket.bind_packet(interface.index, libc::ETH_P_ALL as u16);
    bound.trying(format!("bind a packet socket to {}", interface.name))?;
    if let Some(fanout) = &options.fanout {
        join(socket, fanout)?;
    }
    Ok(())
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
        _ => Error::Call { what: format!("join the fan-out group {group}"), source },
    })?;
    socket
        .set_program(libc::SOL_PACKET, libc::PACKET_FANOUT_DATA, &fanout.program)
        .trying("set the program that shares packets out")
}

/// Lets the wanted packets in.
pub(super) fn admit(socket: &Socket, options: &Options) -> Result<()> {
    let program = program(options);
    if program.is_empty() {
        return socket.detach_filter().trying("detach the filter");
    }
    socket.attach_filter(&program).map_err(|source| match source.raw_os_error() {
        Some(libc::ENOMEM) => Error::Invalid(format!(
            "the filter of {} instructions exceeds the memory that net.core.optmem_max allows",
            program.len()
        )),
        _ => Error::Call { what: "attach the filter".to_owned(), source },
    })
}

/// Lets nothing in any more.
pub(super) fn refuse(socket: &Socket) -> Result<()> {
    socket.attach_filter(&REFUSE).trying("attach a filter")
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

/// Instructions of the filter that the options ask for.
pub(super) fn filter_len(options: &Options) -> usize {
    program(options).len()
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

/// The longest frame that one packet on the wire can be. A tag and the Ethernet header come on top of the MTU.
pub(super) const fn largest_frame(interface: &Interface) -> u32 {
    interface.mtu.saturating_add(14 + 4)
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
pub(super) fn read_back(socket: &Socket, options: &Options) -> (Option<u16>, Option<u32>) {
    let group = socket.option::<u32>(libc::SOL_PACKET, libc::PACKET_FANOUT).ok();
    let group = group.filter(|_| options.fanout.is_some()).map(|value| value as u16);
    let busy = socket.option::<u32>(libc::SOL_SOCKET, libc::SO_BUSY_POLL).ok();
    (group, busy.filter(|micros| *micros > 0))
}

/// What became of the interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LinkState {
    Up,
    Down,
    Gone,
}

/// Watches the interface of a ring, which tells that it goes down, but not that it is back.
#[derive(Debug)]
pub(super) struct LinkWatch {
    reader: LinkReader,
    name: String,
    state: LinkState,
    /// When it was looked at last, in nanoseconds.
    looked: u64,
}

/// How often to look at an interface of which nothing comes, in nanoseconds.
const LOOK: u64 = 1_000_000_000;

impl LinkWatch {
    pub(super) fn new(interface: &Interface) -> Result<Self> {
        let reader = LinkReader::new(interface.index)?;
        Ok(Self { reader, name: interface.name.clone(), state: LinkState::Up, looked: 0 })
    }

    /// Takes the error that is pending on the socket, and looks at the interface where that is about it.
    pub(super) fn after_error(&mut self, socket: &Socket, now: u64) -> Result<LinkState> {
        let Some(error) = socket.pending_error().trying("read the state of the socket")? else {
            return self.look(now);
        };
        match error.raw_os_error() {
            Some(libc::ENETDOWN | libc::ENODEV | libc::ENXIO) => self.look(now),
            _ => Err(error).trying(format!("capture on {}", self.name)),
        }
    }

    /// The state while nothing comes: looked at now and then, and each time where it was not up.
    pub(super) fn while_idle(&mut self, now: u64) -> Result<LinkState> {
        if self.state == LinkState::Up && now.saturating_sub(self.looked) < LOOK {
            return Ok(LinkState::Up);
        }
        self.look(now)
    }

    fn look(&mut self, now: u64) -> Result<LinkState> {
        self.looked = now;
        // It keeps its number when it is renamed.
        self.state = match self.reader.flags()? {
            None => LinkState::Gone,
            Some(flags) if flags & libc::IFF_UP as u32 == 0 => LinkState::Down,
            Some(_) => LinkState::Up,
        };
        Ok(self.state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_is_made_only_where_one_is_needed() {
        let all = Options::default();
        assert_eq!(filter_len(&all), 0);
        let cut = Options { snaplen: 96, ..all.clone() };
        assert_eq!(program(&cut), [Instruction { code: 6, jt: 0, jf: 0, k: 96 }]);
        let out = Options { direction: Direction::Out, ..all.clone() };
        assert_eq!(program(&out).last().map(|last| last.k), Some(262_144));
        let wanted = Options { direction: Direction::Out, filter: REFUSE.to_vec(), ..all };
        assert_eq!(filter_len(&wanted), 4);
    }
}
