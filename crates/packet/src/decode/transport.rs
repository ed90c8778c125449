//! Transport headers.

use super::walk::{Extent, Frame};
use super::{Decoded, Icmp, Layer, Layers, Sctp, Stop, Tcp, TcpFlags, TcpOptions, Transport, Udp};
use crate::wire::icmp::IcmpView;
use crate::wire::ipv4::protocol;
use crate::wire::sctp::SctpView;
use crate::wire::tcp::TcpView;
use crate::wire::tcp_option::{TcpOption, TcpOptionIter};
use crate::wire::udp::UdpView;

/// Decodes the header at the start of an IP payload.
///
/// `layers` are those met so far. The set is stored once, as a whole: who reads it soon after would
/// wait long for one that was stored in parts.
#[inline(always)]
pub(super) fn decode(
    decoded: &mut Decoded,
    frame: Frame<'_>,
    layers: Layers,
    number: u8,
    payload: Extent,
) {
    match number {
        protocol::TCP => {
            decoded.layers = layers.with(Layer::Tcp);
            tcp(decoded, frame, payload);
        }
        protocol::UDP => {
            decoded.layers = layers.with(Layer::Udp);
            udp(decoded, frame, payload);
        }
        _ => {
            decoded.layers = layers;
            rest(decoded, frame, number, payload);
        }
    }
}

impl Extent {
    #[inline]
    fn bytes<'a>(&self, frame: Frame<'a>) -> &'a [u8] {
        let rest = frame.from(self.offset);
        rest.get(..self.captured).unwrap_or(rest)
    }

    /// What is above a header of `len` bytes.
    #[inline]
    pub(super) const fn above(&self, len: usize) -> Self {
        Self {
            offset: self.offset + len,
            len: self.len.saturating_sub(len),
            captured: self.captured.saturating_sub(len),
        }
    }

    /// The stop of a header that needs more bytes than there are. As Zeek has it, the name tells
    /// whether the IP header or the capture leaves too little.
    #[cold]
    fn short(&self, layer: Layer, needed: usize) -> Stop {
        let cut = self.len >= needed;
        Stop {
            weird: if cut { "internally_truncated_header" } else { "truncated_header" },
            layer,
            offset: self.offset as u32,
            needed: needed as u32,
            had: self.captured as u32,
            cut,
        }
    }
}

#[inline(always)]
fn tcp(decoded: &mut Decoded, frame: Frame<'_>, payload: Extent) {
    let Some(view) = TcpView::parse(payload.bytes(frame)) else {
        decoded.stop = Some(payload.short(Layer::Tcp, TcpView::LEN));
        return;
    };
    let header_len = view.header_len();
    let Some(options) = view.options() else {
        if payload.len >= header_len && header_len >= TcpView::LEN {
            // The capture ends within the options: what they would have told stays unset.
            let mut tcp = tcp_value(view, payload.above(header_len), None);
            tcp.options.cut = true;
            decoded.transport = Transport::Tcp(tcp);
            return;
        }
        decoded.stop = Some(bad_tcp_header_len(payload, header_len));
        let lost = if header_len < TcpView::LEN { payload.len } else { header_len };
        let mut tcp = tcp_value(view, payload.above(lost), None);
        tcp.options.malformed = true;
        decoded.transport = Transport::Tcp(tcp);
        return;
    };
    whole_tcp(decoded, view, options, payload);
}

/// Takes a header that is there with all of its options, at the begin of an IP payload.
#[inline(always)]
pub(super) fn whole_tcp(decoded: &mut Decoded, view: TcpView<'_>, options: &[u8], payload: Extent) {
    let above = payload.above(TcpView::LEN + options.len());
    // The result is written once, into its place: copying what was just written in smaller pieces
    // would stall on every packet.
    let known = timestamps_only(options);
    decoded.transport = Transport::Tcp(tcp_value(view, above, known));
    if !options.is_empty()
        && known.is_none()
        && let Transport::Tcp(tcp) = &mut decoded.transport
    {
        any_tcp_options(&mut tcp.options, options);
    }
}

#[inline(always)]
fn tcp_value(view: TcpView<'_>, above: Extent, timestamps: Option<(u32, u32)>) -> Tcp {
    Tcp {
        source_port: view.source_port(),
        destination_port: view.destination_port(),
        sequence: view.sequence(),
        acknowledgement: view.acknowledgement(),
        flags: TcpFlags(view.flags() & 0x1ff),
        window: view.window(),
        urgent_pointer: view.urgent_pointer(),
        payload_offset: above.offset as u32,
        payload_len: above.len as u32,
        payload_captured: above.captured as u32,
        options: TcpOptions {
            mss: None,
            window_scale: None,
            sack_permitted: false,
            signed: false,
            timestamps,
            sack_count: 0,
            sack: [(0, 0); 4],
            malformed: false,
            cut: false,
        },
    }
}

/// Most segments carry nothing, or two no-operations and timestamps: the latter.
#[inline(always)]
fn timestamps_only(bytes: &[u8]) -> Option<(u32, u32)> {
    let [1, 1, 8, 10, a, b, c, d, e, f, g, h] = *bytes else { return None };
    Some((u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h])))
}

#[cold]
fn bad_tcp_header_len(payload: Extent, header_len: usize) -> Stop {
    let stop = payload.short(Layer::Tcp, header_len);
    if header_len < TcpView::LEN {
        Stop { weird: "bad_TCP_header_len", needed: 0, cut: false, ..stop }
    } else {
        Stop { weird: "truncated_header", ..stop }
    }
}

/// Takes options in order, up to the end of the list or the first fault. Those of nearly every SYN are read here.
#[inline(never)]
fn any_tcp_options(options: &mut TcpOptions, bytes: &[u8]) {
    let mut rest = bytes;
    loop {
        rest = match rest {
            [] | [0, ..] => return,
            [1, rest @ ..] => rest,
            &[2, 4, a, b, ref rest @ ..] => {
                options.mss = Some(u16::from_be_bytes([a, b]));
                rest
            }
            &[3, 3, shift, ref rest @ ..] => {
                options.window_scale = Some(shift);
                rest
            }
            [4, 2, rest @ ..] => {
                options.sack_permitted = true;
                rest
            }
            &[8, 10, a, b, c, d, e, f, g, h, ref rest @ ..] => {
                let (value, echo) = ([a, b, c, d], [e, f, g, h]);
                options.timestamps = Some((u32::from_be_bytes(value), u32::from_be_bytes(echo)));
                rest
            }
            _ => return other_tcp_options(options, rest),
        };
    }
}

/// As [`any_tcp_options`], whatever they are.
fn other_tcp_options(options: &mut TcpOptions, bytes: &[u8]) {
    for option in TcpOptionIter::new(bytes) {
        match option {
            Ok(TcpOption::MaximumSegmentSize(mss)) => options.mss = Some(mss),
            Ok(TcpOption::WindowScale(shift)) => options.window_scale = Some(shift),
            Ok(TcpOption::SackPermitted) => options.sack_permitted = true,
            Ok(TcpOption::Timestamps(value, echo)) => options.timestamps = Some((value, echo)),
            Ok(TcpOption::Sack(blocks)) => {
                options.sack_count = 0;
                for (slot, block) in options.sack.iter_mut().zip(blocks.iter()) {
                    *slot = block;
                    options.sack_count += 1;
                }
            }
            Ok(TcpOption::Md5(_) | TcpOption::Authentication(_)) => options.signed = true,
            Ok(_) => {}
            Err(_) => options.malformed = true,
        }
    }
}

#[inline(always)]
fn udp(decoded: &mut Decoded, frame: Frame<'_>, payload: Extent) {
    let Some(view) = UdpView::parse(payload.bytes(frame)) else {
        decoded.stop = Some(payload.short(Layer::Udp, UdpView::LEN));
        return;
    };
    decoded.transport = Transport::Udp(udp_value(view, payload));
}

/// The header of UDP at the begin of an IP payload.
#[inline(always)]
pub(super) fn udp_value(view: UdpView<'_>, payload: Extent) -> Udp {
    let above = payload.above(UdpView::LEN);
    Udp {
        source_port: view.source_port(),
        destination_port: view.destination_port(),
        len: match view.datagram_len() {
            0 if payload.len > usize::from(u16::MAX) => payload.len as u32,
            len => u32::from(len),
        },
        checksum: view.checksum(),
        payload_offset: above.offset as u32,
        payload_len: above.len as u32,
        payload_captured: above.captured as u32,
    }
}

#[inline(never)]
fn rest(decoded: &mut Decoded, frame: Frame<'_>, number: u8, payload: Extent) {
    match number {
        protocol::ICMP => icmp(decoded, frame, Layer::Icmp, payload),
        protocol::ICMPV6 => icmp(decoded, frame, Layer::Icmpv6, payload),
        protocol::SCTP => sctp(decoded, frame, payload),
        _ => {
            decoded.layers.insert(match number {
                protocol::GRE => Layer::Gre,
                protocol::IPV4 | protocol::IPV6 => Layer::IpInIp,
                _ => Layer::OtherTransport,
            });
            decoded.transport = Transport::Other;
        }
    }
}

fn icmp(decoded: &mut Decoded, frame: Frame<'_>, layer: Layer, payload: Extent) {
    decoded.layers.insert(layer);
    let Some(view) = IcmpView::parse(payload.bytes(frame)) else {
        decoded.stop = Some(payload.short(layer, IcmpView::LEN));
        return;
    };
    let above = payload.above(IcmpView::LEN);
    let [a, b, c, d] = view.rest();
    decoded.transport = Transport::Icmp(Icmp {
        kind: view.kind(),
        code: view.code(),
        identifier: u16::from_be_bytes([a, b]),
        sequence: u16::from_be_bytes([c, d]),
        payload_offset: above.offset as u32,
        payload_len: above.len as u32,
        payload_captured: above.captured as u32,
    });
}

fn sctp(decoded: &mut Decoded, frame: Frame<'_>, payload: Extent) {
    decoded.layers.insert(Layer::Sctp);
    let Some(view) = SctpView::parse(payload.bytes(frame)) else {
        decoded.stop = Some(payload.short(Layer::Sctp, SctpView::LEN));
        return;
    };
    let above = payload.above(SctpView::LEN);
    decoded.transport = Transport::Sctp(Sctp {
        source_port: view.source_port(),
        destination_port: view.destination_port(),
        verification_tag: view.verification_tag(),
        payload_offset: above.offset as u32,
        payload_len: above.len as u32,
        payload_captured: above.captured as u32,
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::random::cases;

    #[test]
    fn options_read_at_once_are_those_of_the_iterator() {
        cases(|random| {
            // Whole options of all kinds, some with a wrong length, in any order, and cut anywhere.
            let mut bytes = Vec::new();
            while bytes.len() < 32 {
                let kind = [0, 1, 1, 2, 3, 4, 5, 8, 19, 28, 34, 99][random.below(12)];
                let len = match kind {
                    0 | 1 => 1,
                    2 => 4,
                    3 => 3,
                    4 => 2,
                    5 | 8 => 10,
                    _ => 2 + random.below(17),
                };
                let mut option = random.bytes(len);
                option[0] = kind;
                if len > 1 {
                    option[1] = if random.below(16) == 0 { random.below(12) } else { len } as u8;
                }
                bytes.extend(option);
            }
            bytes.truncate(random.below(41));
            let (mut fast, mut whole) = (TcpOptions::default(), TcpOptions::default());
            any_tcp_options(&mut fast, &bytes);
            other_tcp_options(&mut whole, &bytes);
            assert_eq!(fast, whole, "{bytes:?}");
        });
    }
}
