//! The packets of a connection as text: layers, and bytes in hexadecimal.

use std::fmt::Write as _;
use std::io::Read;

use netsniff_packet::decode::{Decoded, Layer, Transport, packet};
use netsniff_packet::{Batch, Packet, Progress, Source as _};
use netsniff_pcapfile::Reader;

use crate::watch::tables::cell::time_of_day;

/// Packets that are shown.
const MOST: u64 = 1_000;

/// The packets of a capture as lines.
///
/// # Errors
///
/// What was wrong with the capture.
pub(crate) fn lines(capture: impl Read) -> Result<Vec<String>, String> {
    let mut reader = Reader::new(capture).map_err(|error| error.to_string())?;
    let (mut batch, mut lines, mut number) = (Batch::default(), Vec::new(), 0);
    loop {
        let progress = reader.read_batch(&mut batch).map_err(|error| error.to_string())?;
        for one in batch.iter() {
            number += 1;
            if number > MOST {
                lines.push(format!(
                    "the first {MOST} packets; a file that is extracted has all of them"
                ));
                return Ok(lines);
            }
            show(number, &one, &mut lines);
        }
        if progress == Progress::End {
            return Ok(lines);
        }
    }
}

fn show(number: u64, one: &Packet<'_>, lines: &mut Vec<String>) {
    let decoded = packet(one.link_type, one.data, one.wire_len);
    let time = time_of_day(one.timestamp.nanos(), 6);
    let cut = if one.is_cut() { format!(", {} captured", one.data.len()) } else { String::new() };
    let layers: Vec<_> =
        Layer::ALL.iter().filter(|layer| decoded.layers.contains(**layer)).collect();
    let layers: Vec<_> = layers.into_iter().map(|layer| layer.name()).collect();
    let layers = layers.join(":");
    lines.push(format!("packet {number}  {time}  {} bytes{cut}  {layers}", one.wire_len));
    headers(&decoded, lines);
    for (at, row) in one.data.chunks(16).enumerate() {
        let mut hex = String::new();
        for (place, byte) in row.iter().enumerate() {
            let gap = if place == 8 { " " } else { "" };
            // Writing to a `String` cannot fail.
            let _ = write!(hex, "{gap} {byte:02x}");
        }
        let sign = |byte: &u8| if (0x20..0x7f).contains(byte) { *byte as char } else { '.' };
        let text: String = row.iter().map(sign).collect();
        lines.push(format!("  {:04x} {hex:<50}  {text}", at * 16));
    }
    lines.push(String::new());
}

/// What the innermost headers say.
fn headers(decoded: &Decoded, lines: &mut Vec<String>) {
    if let Some(vlan) = decoded.vlan {
        let inner = decoded.inner_vlan.map(|inner| format!(", inner {inner}")).unwrap_or_default();
        lines.push(format!("  VLAN {vlan}{inner}"));
    }
    if let Some(ip) = &decoded.ip {
        let fragment = ip.fragment.map(|fragment| {
            format!(
                ", fragment at {}{}",
                fragment.offset,
                if fragment.more { ", more follow" } else { "" }
            )
        });
        lines.push(format!(
            "  IP {} > {}  protocol {}, hop limit {}, id {}, {} bytes{}",
            ip.source,
            ip.destination,
            ip.protocol,
            ip.ttl,
            ip.identification,
            ip.total_len,
            fragment.unwrap_or_default()
        ));
    }
    match &decoded.transport {
        Transport::Tcp(tcp) => lines.push(format!(
            "  TCP {} > {}  [{}] seq {} ack {} window {}, {} bytes of payload",
            tcp.source_port,
            tcp.destination_port,
            flags(tcp.flags.0),
            tcp.sequence,
            tcp.acknowledgement,
            tcp.window,
            tcp.payload_len
        )),
        Transport::Udp(udp) => lines.push(format!(
            "  UDP {} > {}  {} bytes of payload",
            udp.source_port, udp.destination_port, udp.payload_len
        )),
        Transport::Icmp(icmp) => lines.push(format!(
            "  ICMP type {} code {}, {} bytes behind",
            icmp.kind, icmp.code, icmp.payload_len
        )),
        _ => {}
    }
    if let Some(stop) = &decoded.stop {
        lines.push(format!("  not understood further: {stop:?}"));
    }
}

/// The flags of TCP by name.
fn flags(bits: u16) -> String {
    const NAMES: [&str; 9] = ["FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR", "AE"];
    let set = NAMES.iter().enumerate().filter(|(bit, _)| bits >> bit & 1 == 1);
    set.map(|(_, name)| *name).collect::<Vec<_>>().join(" ")
}
