//! Reads whole captures, pcap and pcapng, from memory: the sources of a mix. Anything odd is a reason to leave one out.

use netsniff_packet::{LinkType, Packet, Timestamp};

type Each<'f> = &'f mut dyn FnMut(&Packet<'_>) -> Result<(), String>;

/// Hands every packet of a capture to `each`.
pub(crate) fn packets(bytes: &[u8], each: Each<'_>) -> Result<(), String> {
    let magic = *bytes.first_chunk::<4>().ok_or("not a capture")?;
    match u32::from_le_bytes(magic) {
        0xa1b2_c3d4 => pcap(bytes, &Order { big: false }, 1000, each),
        0xa1b2_3c4d => pcap(bytes, &Order { big: false }, 1, each),
        0xd4c3_b2a1 => pcap(bytes, &Order { big: true }, 1000, each),
        0x4d3c_b2a1 => pcap(bytes, &Order { big: true }, 1, each),
        0x0a0d_0d0a => pcapng(bytes, each),
        _ => Err("not a capture".into()),
    }
}

struct Order {
    big: bool,
}

impl Order {
    fn u32(&self, bytes: &[u8], at: usize) -> Result<u32, String> {
        let word = *bytes.get(at..).and_then(<[u8]>::first_chunk).ok_or("damaged")?;
        Ok(if self.big { u32::from_be_bytes(word) } else { u32::from_le_bytes(word) })
    }

    fn u16(&self, bytes: &[u8], at: usize) -> Result<u16, String> {
        let word = *bytes.get(at..).and_then(<[u8]>::first_chunk).ok_or("damaged")?;
        Ok(if self.big { u16::from_be_bytes(word) } else { u16::from_le_bytes(word) })
    }
}

fn pcap(bytes: &[u8], order: &Order, unit: i64, each: Each<'_>) -> Result<(), String> {
    let link_type = LinkType(order.u32(bytes, 20)? as u16);
    let mut at = 24;
    while at < bytes.len() {
        let captured = order.u32(bytes, at + 8)? as usize;
        let data = bytes.get(at + 16..).and_then(|rest| rest.get(..captured)).ok_or("damaged")?;
        let seconds = i64::from(order.u32(bytes, at)?);
        let timestamp =
            Timestamp::from_secs_nanos(seconds, i64::from(order.u32(bytes, at + 4)?) * unit);
        let wire_len = order.u32(bytes, at + 12)?;
        each(&Packet { timestamp, data, wire_len, link_type, interface: 0 })?;
        at += 16 + captured;
    }
    Ok(())
}

struct Interface {
    link_type: LinkType,
    /// Units of its stamps in a second.
    per_second: u128,
}

fn pcapng(bytes: &[u8], each: Each<'_>) -> Result<(), String> {
    let (mut order, mut interfaces, mut at) = (Order { big: false }, Vec::<Interface>::new(), 0);
    while at < bytes.len() {
        let kind = order.u32(bytes, at)?;
        if kind == 0x0a0d_0d0a {
            order.big =
                order.u32(bytes, at + 8)? == if order.big { 0x1a2b_3c4d } else { 0x4d3c_2b1a };
            interfaces.clear();
        }
        let len = order.u32(bytes, at + 4)? as usize;
        let block = bytes
            .get(at..)
            .and_then(|rest| rest.get(..len))
            .filter(|_| len >= 12)
            .ok_or("damaged")?;
        match kind {
            1 => interfaces.push(interface(block, &order)?),
            2 | 3 => return Err("an obsolete or simple packet block".into()),
            6 => {
                let number = order.u32(block, 8)?;
                let interface = interfaces.get(number as usize).ok_or("damaged")?;
                let ticks =
                    u128::from(order.u32(block, 12)?) << 32 | u128::from(order.u32(block, 16)?);
                let nanos = i64::try_from(ticks * 1_000_000_000 / interface.per_second)
                    .map_err(|_| "damaged")?;
                let captured = order.u32(block, 20)? as usize;
                let data =
                    block.get(28..).and_then(|rest| rest.get(..captured)).ok_or("damaged")?;
                each(&Packet {
                    timestamp: Timestamp::from_nanos(nanos),
                    data,
                    wire_len: order.u32(block, 24)?,
                    link_type: interface.link_type,
                    interface: number,
                })?;
            }
            _ => {}
        }
        at += len;
    }
    Ok(())
}

fn interface(block: &[u8], order: &Order) -> Result<Interface, String> {
    let mut per_second = 1_000_000;
    let mut at = 16;
    while at + 4 < block.len() {
        let (code, len) = (order.u16(block, at)?, usize::from(order.u16(block, at + 2)?));
        if code == 9 {
            let exponent = *block.get(at + 4).ok_or("damaged")?;
            let base: u128 = if exponent & 0x80 == 0 { 10 } else { 2 };
            per_second = base.checked_pow(u32::from(exponent & 0x7f)).ok_or("damaged")?;
        }
        if code == 0 {
            break;
        }
        at += 4 + len.next_multiple_of(4);
    }
    Ok(Interface { link_type: LinkType(order.u16(block, 8)?), per_second })
}
