//! What ioctl(2) tells of an interface: netdevice(7) and ethtool.

use std::ffi::CString;
use std::io;

use libc::{c_char, c_int, c_ulong};

use super::check;
use super::socket::Socket;

/// `SIOCETHTOOL` of <linux/sockios.h>.
const SIOCETHTOOL: c_ulong = 0x8946;

/// The number of an interface; `None` where there is none of that name.
pub(crate) fn index_of(name: &str) -> Option<u32> {
    let name = CString::new(name).ok()?;
    // SAFETY: a string that ends in 0 and lives during the call.
    let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
    (index != 0).then_some(index)
}

/// `struct ifreq`, laid out by hand: a name, and 24 bytes that depend on the call.
#[repr(C, align(8))]
struct Request {
    name: [c_char; libc::IFNAMSIZ],
    value: [u8; 24],
}

impl Request {
    fn new(name: &str) -> io::Result<Self> {
        let mut request = Self { name: [0; libc::IFNAMSIZ], value: [0; 24] };
        if name.len() >= libc::IFNAMSIZ || name.contains('\0') {
            return Err(io::Error::from_raw_os_error(libc::ENODEV));
        }
        for (to, from) in request.name.iter_mut().zip(name.bytes()) {
            *to = from as c_char;
        }
        Ok(request)
    }

    fn call(&mut self, socket: &Socket, code: c_ulong) -> io::Result<()> {
        // SAFETY: the kernel reads and writes at most a `struct ifreq` (40 bytes), which this is.
        check(unsafe { libc::ioctl(socket.raw(), code as _, std::ptr::from_mut(self)) })?;
        Ok(())
    }

    fn integer(&self) -> c_int {
        c_int::from_ne_bytes([self.value[0], self.value[1], self.value[2], self.value[3]])
    }
}

/// Flags of netdevice(7) (`IFF_UP` …).
pub(crate) fn flags(socket: &Socket, name: &str) -> io::Result<u16> {
    let mut request = Request::new(name)?;
    request.call(socket, libc::SIOCGIFFLAGS)?;
    Ok(u16::from_ne_bytes([request.value[0], request.value[1]]))
}

/// Largest payload of a frame in bytes.
pub(crate) fn mtu(socket: &Socket, name: &str) -> io::Result<u32> {
    let mut request = Request::new(name)?;
    request.call(socket, libc::SIOCGIFMTU)?;
    Ok(request.integer().max(0) as u32)
}

/// Kind of hardware (`ARPHRD_ETHER` …) and address.
pub(crate) fn hardware(socket: &Socket, name: &str) -> io::Result<(u16, [u8; 6])> {
    let mut request = Request::new(name)?;
    request.call(socket, libc::SIOCGIFHWADDR)?;
    let kind = u16::from_ne_bytes([request.value[0], request.value[1]]);
    let mut address = [0; 6];
    address.copy_from_slice(&request.value[2..8]);
    Ok((kind, address))
}

/// Asks ethtool with a command of <linux/ethtool.h> in the first word of `data`, which the answer
/// overwrites. The caller gives as much room as the command may fill.
///
/// # Errors
///
/// `EOPNOTSUPP` where the driver does not know the command.
pub(super) fn ethtool(socket: &Socket, name: &str, data: &mut [u32]) -> io::Result<()> {
    let mut request = Request::new(name)?;
    let pointer = data.as_mut_ptr() as usize;
    request.value[..size_of::<usize>()].copy_from_slice(&pointer.to_ne_bytes());
    request.call(socket, SIOCETHTOOL)
}

/// Whether an offload is on (`ETHTOOL_GRXCSUM`, `ETHTOOL_GTSO`, `ETHTOOL_GGRO` …).
pub(crate) fn offload(socket: &Socket, name: &str, command: u32) -> io::Result<bool> {
    // `struct ethtool_value`: the command and its value.
    let mut data = [command, 0];
    ethtool(socket, name, &mut data)?;
    Ok(data[1] != 0)
}

/// Flags of ethtool (`ETH_FLAG_LRO`, `ETH_FLAG_RXVLAN` …).
pub(crate) fn ethtool_flags(socket: &Socket, name: &str) -> io::Result<u32> {
    let mut data = [0x25, 0];
    ethtool(socket, name, &mut data)?;
    Ok(data[1])
}

/// Queues that packets are received with (`ETHTOOL_GCHANNELS`).
pub(crate) fn receive_queues(socket: &Socket, name: &str) -> io::Result<u32> {
    // `struct ethtool_channels`, 36 bytes: four maxima, then how many receive, send, do something else, and
    // do both.
    let mut data = [0_u32; 9];
    data[0] = 0x3c;
    ethtool(socket, name, &mut data)?;
    Ok(data[5].saturating_add(data[8]))
}

/// Megabits a second; `None` where the interface does not know.
pub(crate) fn speed(socket: &Socket, name: &str) -> io::Result<Option<u32>> {
    // `struct ethtool_cmd` (`ETHTOOL_GSET`), 44 bytes: speed is a half word at 12, its upper half at 28.
    let mut data = [0_u32; 11];
    data[0] = 1;
    ethtool(socket, name, &mut data)?;
    let low = data[3].to_ne_bytes();
    let high = data[7].to_ne_bytes();
    let speed = u32::from(u16::from_ne_bytes([low[0], low[1]]))
        | u32::from(u16::from_ne_bytes([high[0], high[1]])) << 16;
    Ok((speed != 0 && speed != u32::from(u16::MAX) && speed != u32::MAX).then_some(speed))
}

/// Name of the driver.
pub(crate) fn driver(socket: &Socket, name: &str) -> io::Result<String> {
    driver_info(socket, name, 4)
}

/// Version of the driver, which may be empty.
pub(crate) fn driver_version(socket: &Socket, name: &str) -> io::Result<String> {
    driver_info(socket, name, 36)
}

/// A text of 32 bytes of `struct ethtool_drvinfo` (`ETHTOOL_GDRVINFO`), 196 bytes: the driver's name is at 4, its version at
/// 36.
fn driver_info(socket: &Socket, name: &str, at: usize) -> io::Result<String> {
    let mut data = [0_u32; 49];
    data[0] = 3;
    ethtool(socket, name, &mut data)?;
    let bytes = data.iter().flat_map(|word| word.to_ne_bytes()).skip(at).take(32);
    Ok(bytes.take_while(|byte| *byte != 0).map(char::from).collect())
}

/// What an interface can stamp (`SOF_TIMESTAMPING_…`), and for which packets (bits of
/// `HWTSTAMP_FILTER_…`).
pub(crate) fn timestamping(socket: &Socket, name: &str) -> io::Result<(u32, u32)> {
    // `struct ethtool_ts_info` (`ETHTOOL_GET_TS_INFO`), 44 bytes.
    let mut data = [0_u32; 11];
    data[0] = 0x41;
    ethtool(socket, name, &mut data)?;
    Ok((data[1], data[7]))
}
