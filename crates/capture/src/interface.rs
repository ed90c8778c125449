//! Interfaces: what they are, and what they have counted.

use netsniff_packet::LinkType;

use crate::error::{CallContext as _, Error, Result};
use crate::sys::netlink::{Netlink, attribute};
use crate::sys::socket::Socket;
use crate::sys::{interface as call, netlink};

/// An interface of this network namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// The name that the kernel has for it.
    pub name: String,
    /// Its number, which stays when it is renamed.
    pub index: u32,
    /// What the first header of its packets is.
    pub link_type: LinkType,
    /// Its Ethernet address, where it has one.
    pub address: Option<[u8; 6]>,
    /// Largest payload of a frame in bytes.
    pub mtu: u32,
    /// Megabits a second, where it knows.
    pub speed_mbps: Option<u32>,
    /// Name of its driver, where it tells.
    pub driver: Option<String>,
    /// Whether it is up.
    pub is_up: bool,
    /// Whether there is somebody at the other end, as far as its driver can tell.
    pub has_carrier: bool,
}

impl Interface {
    /// Looks an interface up.
    ///
    /// # Errors
    ///
    /// [`Error::NoInterface`], [`Error::LinkType`], and failures of the calls.
    pub fn find(name: &str) -> Result<Self> {
        let index = call::index_of(name).ok_or_else(|| Error::NoInterface(name.to_owned()))?;
        let socket = question_socket()?;
        let about = |what: &str| format!("read the {what} of {name}");
        let (kind, address) = call::hardware(&socket, name).trying(about("hardware type"))?;
        let link_type = link_type_of(kind)
            .ok_or_else(|| Error::LinkType { interface: name.to_owned(), kind })?;
        let flags = call::flags(&socket, name).trying(about("flags"))?;
        Ok(Self {
            name: name.to_owned(),
            index,
            link_type,
            address: (link_type == LinkType::ETHERNET).then_some(address),
            mtu: call::mtu(&socket, name).trying(about("MTU"))?,
            // Not every driver answers ethtool.
            speed_mbps: call::speed(&socket, name).ok().flatten(),
            driver: call::driver(&socket, name).ok(),
            is_up: i32::from(flags) & libc::IFF_UP != 0,
            has_carrier: i32::from(flags) & libc::IFF_RUNNING != 0,
        })
    }

    /// Bytes of the longest frame on it, frame check sequence not counted: the Ethernet header and a VLAN tag come
    /// on top of the MTU.
    #[must_use]
    pub const fn longest_frame(&self) -> u32 {
        self.mtu.saturating_add(14 + 4)
    }

    /// Whether a frame of `len` bytes may be sent on it: one without a VLAN tag has to be that much shorter.
    #[must_use]
    pub const fn takes(&self, is_tagged: bool, len: usize) -> bool {
        len <= self.longest_frame() as usize - if is_tagged { 0 } else { 4 }
    }

    /// The version of its driver, where that tells.
    #[must_use]
    pub fn driver_version(&self) -> Option<String> {
        let version = call::driver_version(&question_socket().ok()?, &self.name).ok()?;
        (!version.is_empty()).then_some(version)
    }

    /// What it does with packets before they reach a capture, or after they left it.
    #[must_use]
    pub fn offloads(&self) -> Offloads {
        let Ok(socket) = question_socket() else { return Offloads::default() };
        let ask = |command| call::offload(&socket, &self.name, command).ok();
        let flags = call::ethtool_flags(&socket, &self.name).ok();
        // Numbers of <linux/ethtool.h>; the flags word has the last two.
        Offloads {
            rx_checksum: ask(0x14),
            tx_checksum: ask(0x16),
            tso: ask(0x1e),
            gso: ask(0x23),
            gro: ask(0x2b),
            lro: flags.map(|flags| flags & (1 << 15) != 0),
            rxvlan: flags.map(|flags| flags & (1 << 8) != 0),
        }
    }

    /// Queues that it receives with.
    ///
    /// # Errors
    ///
    /// Failures of the calls, and [`Error::Gone`].
    pub(crate) fn queues(&self) -> Result<u32> {
        let socket = question_socket()?;
        if let Ok(queues) = call::receive_queues(&socket, &self.name)
            && queues > 0
        {
            return Ok(queues);
        }
        // Drivers whose queues cannot be changed do not tell; then all that there are are used.
        let attributes = LinkReader::new(self.index)?.attributes()?;
        let attributes = attributes.ok_or_else(|| Error::Gone(self.name.clone()))?;
        let queues = attribute(&attributes, libc::IFLA_NUM_RX_QUEUES).and_then(<[u8]>::first_chunk);
        Ok(queues.map_or(1, |queues| u32::from_ne_bytes(*queues)))
    }

    /// Processors that its received packets are steered to (`rps_cpus` of sysfs); empty where they are received
    /// on the processor that the interrupt comes to, or where sysfs does not tell.
    #[must_use]
    pub fn steered_to(&self) -> Vec<usize> {
        let queues = std::fs::read_dir(format!("/sys/class/net/{}/queues", self.name));
        let mut processors = Vec::new();
        for queue in queues.into_iter().flatten().flatten() {
            let Ok(mask) = std::fs::read_to_string(queue.path().join("rps_cpus")) else { continue };
            processors.extend(bits(&mask));
        }
        processors.sort_unstable();
        processors.dedup();
        processors
    }

    /// Whether it can stamp all received packets in hardware.
    #[must_use]
    pub fn has_hardware_stamps(&self) -> bool {
        /// `SOF_TIMESTAMPING_RX_HARDWARE | SOF_TIMESTAMPING_RAW_HARDWARE`, and `HWTSTAMP_FILTER_ALL`.
        const RECEIVE: u32 = 1 << 2 | 1 << 6;
        const ALL: u32 = 1 << 1;
        let asked = question_socket().ok().and_then(|s| call::timestamping(&s, &self.name).ok());
        asked.is_some_and(|(stamps, packets)| stamps & RECEIVE == RECEIVE && packets & ALL != 0)
    }
}

/// Offloads that change what a capture sees; `None` where the driver does not tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offloads {
    /// The interface verifies checksums of received packets.
    pub rx_checksum: Option<bool>,
    /// The interface fills checksums in: own packets are captured without.
    pub tx_checksum: Option<bool>,
    /// The interface cuts TCP segments: own packets are captured larger than the MTU.
    pub tso: Option<bool>,
    /// The stack cuts segments late: the same.
    pub gso: Option<bool>,
    /// The stack merges received segments.
    pub gro: Option<bool>,
    /// The interface merges received segments.
    pub lro: Option<bool>,
    /// The interface takes VLAN tags out of received packets, and keeps them beside.
    pub rxvlan: Option<bool>,
}

/// The numbers of the bits in a mask as sysfs prints it: words of 32 bits in hexadecimal, the highest first,
/// with commas between.
fn bits(mask: &str) -> Vec<usize> {
    let words = mask.trim().rsplit(',').map(|word| u32::from_str_radix(word, 16).unwrap_or(0));
    let of = |(at, word): (usize, u32)| {
        (0..32).filter(move |bit| word >> bit & 1 == 1).map(move |bit| at * 32 + bit)
    };
    words.enumerate().flat_map(of).collect()
}

fn question_socket() -> Result<Socket> {
    Socket::open(libc::AF_INET, libc::SOCK_DGRAM, 0).trying("open a socket for questions")
}

/// `ARPHRD_RAWIP` of <linux/if_arp.h>: modems, and other devices without a header.
const ARPHRD_RAWIP: u16 = 519;

/// The link type of packets from a kind of hardware, as packet sockets of type `SOCK_RAW` give them.
const fn link_type_of(kind: u16) -> Option<LinkType> {
    match kind {
        libc::ARPHRD_ETHER | libc::ARPHRD_LOOPBACK => Some(LinkType::ETHERNET),
        // Tunnels and TUN devices have no header of their own.
        libc::ARPHRD_NONE
        | libc::ARPHRD_TUNNEL
        | libc::ARPHRD_TUNNEL6
        | libc::ARPHRD_SIT
        | libc::ARPHRD_PPP
        | ARPHRD_RAWIP => Some(LinkType::RAW),
        _ => None,
    }
}

/// What an interface has counted since it was made (`struct rtnl_link_stats64`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCounters {
    /// Packets received and handed to the system.
    pub rx_packets: u64,
    /// Bytes of the packets received.
    pub rx_bytes: u64,
    /// Packets that the interface has sent.
    pub tx_packets: u64,
    /// Bytes of the packets sent.
    pub tx_bytes: u64,
    /// Packets that were damaged on the wire.
    pub rx_errors: u64,
    /// Packets that the driver or the stack behind it dropped. What counts here differs from driver to
    /// driver, and packets that nobody wanted may be among them.
    pub rx_dropped: u64,
    /// Packets that the driver could not send.
    pub tx_dropped: u64,
    /// Packets that the hardware had no room for.
    pub rx_missed: u64,
    /// Packets lost as the hardware's queue overran.
    pub rx_fifo: u64,
    /// Packets larger than the ring's buffers.
    pub rx_over: u64,
    /// Packets of protocols that nobody handles: they were offered to captures before.
    pub rx_nohandler: u64,
}

/// Reads the counters of one interface again and again.
#[derive(Debug)]
pub struct LinkReader {
    netlink: Netlink,
    index: u32,
    /// What the kernel tells by itself, for a reader that wants to know of the end.
    told: Option<Netlink>,
    last: Option<LinkCounters>,
}

impl LinkReader {
    /// A reader for the interface of this number.
    ///
    /// # Errors
    ///
    /// Where no socket can be had.
    pub fn new(index: u32) -> Result<Self> {
        let netlink = Netlink::open().trying("open a netlink socket")?;
        Ok(Self { netlink, index, told: None, last: None })
    }

    /// [`Self::new`] that is told what the interface has counted once it is removed, too. It listens to the kernel,
    /// so [`Self::last_counters`] is to be called now and then.
    ///
    /// # Errors
    ///
    /// Where no socket can be had.
    pub fn listening(index: u32) -> Result<Self> {
        let told = Netlink::listen().trying("listen to what becomes of interfaces")?;
        Ok(Self { told: Some(told), ..Self::new(index)? })
    }

    /// What it has counted; `None` once it is gone.
    ///
    /// # Errors
    ///
    /// Failures of the calls.
    pub fn counters(&mut self) -> Result<Option<LinkCounters>> {
        Ok(self.attributes()?.map(|attributes| {
            let stats = attribute(&attributes, libc::IFLA_STATS64).unwrap_or_default();
            LinkCounters::parse(stats)
        }))
    }

    /// What it had counted when it was removed; `None` while it is there, and where the kernel told it before this
    /// reader was made, or with more at once than there was room for.
    pub fn last_counters(&mut self) -> Option<LinkCounters> {
        if let Some(link) = self.told.as_mut().and_then(|told| told.removed(self.index)) {
            let stats = attribute(&link.attributes, libc::IFLA_STATS64).unwrap_or_default();
            self.last = Some(LinkCounters::parse(stats));
        }
        self.last
    }

    /// Its name now; `None` once it is gone.
    ///
    /// # Errors
    ///
    /// Failures of the calls.
    pub fn name(&mut self) -> Result<Option<String>> {
        Ok(self.attributes()?.map(|attributes| {
            let name = attribute(&attributes, libc::IFLA_IFNAME).unwrap_or_default();
            let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
            String::from_utf8_lossy(name).into_owned()
        }))
    }

    /// Its flags (`IFF_UP` …); `None` once it is gone.
    ///
    /// # Errors
    ///
    /// Failures of the calls.
    pub(crate) fn flags(&mut self) -> Result<Option<u32>> {
        Ok(self.link()?.map(|link| link.flags))
    }

    fn attributes(&mut self) -> Result<Option<Vec<u8>>> {
        Ok(self.link()?.map(|link| link.attributes))
    }

    fn link(&mut self) -> Result<Option<netlink::Link>> {
        match self.netlink.link(self.index) {
            Ok(link) => Ok(Some(link)),
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) => Ok(None),
            Err(error) => Err(error).trying("read the counters of the interface"),
        }
    }
}

impl LinkCounters {
    /// Reads `struct rtnl_link_stats64`; what an older kernel lacks is 0.
    fn parse(stats: &[u8]) -> Self {
        let at = |number: usize| netlink::long(stats, number * 8).unwrap_or_default();
        Self {
            rx_packets: at(0),
            tx_packets: at(1),
            rx_bytes: at(2),
            tx_bytes: at(3),
            rx_errors: at(4),
            rx_dropped: at(6),
            tx_dropped: at(7),
            rx_over: at(11),
            rx_fifo: at(14),
            rx_missed: at(15),
            rx_nohandler: at(23),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_interface_is_known() {
        let lo = Interface::find("lo").unwrap();
        assert_eq!((lo.link_type, lo.index > 0), (LinkType::ETHERNET, true));
        let mut reader = LinkReader::new(lo.index).unwrap();
        assert_eq!(reader.name().unwrap().as_deref(), Some("lo"));
        let counters = reader.counters().unwrap().unwrap();
        assert_eq!(counters.rx_packets, counters.tx_packets, "what goes out comes in");
    }

    #[test]
    fn masks_of_sysfs_are_read() {
        assert_eq!(
            (bits("0\n"), bits("3"), bits("00000001,80000000\n")),
            (vec![], vec![0, 1], vec![31, 32])
        );
    }

    #[test]
    fn an_interface_that_is_not_there_is_named() {
        let error = Interface::find("nowhere0").unwrap_err();
        assert_eq!(error.to_string(), "there is no interface nowhere0; `ip link` lists them");
        assert!(Interface::find("a-name-that-is-much-too-long").is_err());
        assert_eq!(LinkReader::new(u32::MAX / 2).unwrap().counters().unwrap(), None);
    }

    #[test]
    fn counters_lie_where_the_kernel_puts_them() {
        let bytes: Vec<u8> = (0..25_u64).flat_map(u64::to_ne_bytes).collect();
        let counters = LinkCounters::parse(&bytes);
        assert_eq!((counters.rx_missed, counters.rx_nohandler, counters.tx_dropped), (15, 23, 7));
        assert_eq!(LinkCounters::parse(&bytes[..64]).rx_missed, 0);
    }
}
