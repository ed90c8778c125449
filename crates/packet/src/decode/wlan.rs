//! IEEE 802.11 data frames, with or without radiotap before them.

use super::link::{Next, bad, cut};
use super::walk::Frame;
use super::{Decoded, Layer, Oddity};

/// Bits of the first byte of the frame control field.
mod control {
    pub(super) const TYPE: u8 = 0x0c;
    pub(super) const DATA: u8 = 0x08;
    pub(super) const NULL: u8 = 0x40;
    pub(super) const QOS: u8 = 0x80;
}

/// Bits of the second byte.
mod flag {
    pub(super) const FOUR_ADDRESSES: u8 = 0x03;
    pub(super) const PROTECTED: u8 = 0x40;
    pub(super) const ORDER: u8 = 0x80;
}

/// Passes a frame's header. Only unencrypted data frames have a payload that can be read; of an
/// aggregate (A-MSDU, IEEE 802.11-2020, 9.3.2.2) the first frame is taken, and others are told of.
pub(super) fn frame(
    decoded: &mut Decoded,
    frame: Frame<'_>,
    offset: usize,
    is_padded: bool,
) -> Next {
    const MIN_LEN: usize = 24;
    decoded.layers.insert(Layer::Wlan);
    let data = frame.from(offset);
    let &[control, flags, ..] = data else {
        return cut(decoded, frame, "truncated_802_11_header", Layer::Wlan, (offset, 2));
    };
    if control & control::TYPE != control::DATA
        || control & control::NULL != 0
        || flags & flag::PROTECTED != 0
    {
        return Next::End;
    }
    let mut len = MIN_LEN;
    if flags & flag::FOUR_ADDRESSES == flag::FOUR_ADDRESSES {
        len += 6;
    }
    let mut is_aggregate = false;
    if control & control::QOS != 0 {
        is_aggregate = data.get(len).is_some_and(|byte| byte & 0x80 != 0);
        len += 2;
        if flags & flag::ORDER != 0 {
            len += 4;
        }
    }
    if is_padded {
        len = len.next_multiple_of(4);
    }
    if data.len() < len {
        return cut(decoded, frame, "truncated_802_11_header", Layer::Wlan, (offset, len));
    }
    if !is_aggregate {
        return Next::Llc(offset + len, usize::MAX);
    }
    if has_second_frame(data.get(len..).unwrap_or_default()) {
        decoded.oddities.insert(Oddity::AggregateRest);
    }
    Next::Llc(offset + len + AGGREGATE_HEADER, usize::MAX)
}

/// Destination, source and length of a frame in an aggregate.
const AGGREGATE_HEADER: usize = 14;

/// Whether there is room for one more header behind the first frame of an aggregate, which is padded
/// to a whole number of words; a frame check sequence is none.
fn has_second_frame(aggregate: &[u8]) -> bool {
    let Some(&[high, low]) = aggregate.get(AGGREGATE_HEADER - 2..AGGREGATE_HEADER) else {
        return false;
    };
    let len = AGGREGATE_HEADER + usize::from(u16::from_be_bytes([high, low]));
    aggregate.len() >= len.next_multiple_of(4) + AGGREGATE_HEADER
}

/// Passes a radiotap header, <https://www.radiotap.org>.
pub(super) fn radiotap(decoded: &mut Decoded, frame: Frame<'_>, offset: usize) -> Next {
    const MIN_LEN: usize = 8;
    const DATA_PAD: u8 = 0x20;
    decoded.layers.insert(Layer::Radiotap);
    let weird = "truncated_radiotap_header";
    let data = frame.from(offset);
    let Some(&[_, _, a, b, ..]) = data.first_chunk::<MIN_LEN>() else {
        return cut(decoded, frame, weird, Layer::Radiotap, (offset, MIN_LEN));
    };
    let len = usize::from(u16::from_le_bytes([a, b]));
    if len < MIN_LEN {
        return bad(decoded, frame, weird, Layer::Radiotap, offset);
    }
    let Some(fields) = data.get(..len) else {
        return cut(decoded, frame, weird, Layer::Radiotap, (offset, len));
    };
    let flags = radiotap_flags_at(fields).and_then(|at| fields.get(at));
    let is_padded = flags.is_some_and(|flags| flags & DATA_PAD != 0);
    Next::Wlan(offset + len, is_padded)
}

/// Where the flags field is; only the time stamp, aligned to 8 bytes, can stand before it.
pub(crate) fn radiotap_flags_at(header: &[u8]) -> Option<usize> {
    const TIME_STAMP: u32 = 1;
    const FLAGS: u32 = 2;
    const MORE: u32 = 1 << 31;
    let mut words = header.get(4..)?.as_chunks::<4>().0.iter().copied().map(u32::from_le_bytes);
    let present = words.next()?;
    let mut at = 8;
    let mut last = present;
    while last & MORE != 0 {
        last = words.next()?;
        at += 4;
    }
    if present & TIME_STAMP != 0 {
        at = usize::next_multiple_of(at, 8) + 8;
    }
    (present & FLAGS != 0).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LinkType;
    use crate::decode;

    /// A QoS data frame with an aggregate of frames of 20 bytes each, and a frame check sequence.
    fn aggregate(frames: usize) -> Vec<u8> {
        let mut data = vec![0; 26];
        data[0] = control::DATA | control::QOS;
        data[24] = 0x80;
        for _ in 0..frames {
            data.extend([2; 12]);
            data.extend([0, 20, 0xaa, 0xaa, 3, 0, 0, 0, 0x12, 0x34]);
            data.extend([0; 12]);
            // 34 bytes, padded to 36.
            data.extend([0; 2]);
        }
        data.extend([9; 4]);
        data
    }

    #[test]
    fn frames_of_an_aggregate_behind_the_first_are_told_of() {
        for frames in 1..4 {
            let data = aggregate(frames);
            let decoded = decode::packet(LinkType::IEEE802_11, &data, data.len() as u32);
            let is_told = decoded.oddities.contains(Oddity::AggregateRest);
            assert_eq!(is_told, frames > 1, "{frames} frames");
            assert!(decoded.layers.contains(Layer::Llc), "the first one is read");
        }
        let two = aggregate(2);
        for len in 0..two.len() {
            let decoded = decode::packet(LinkType::IEEE802_11, &two[..len], two.len() as u32);
            let is_told = decoded.oddities.contains(Oddity::AggregateRest);
            // Header, first frame with its padding, header of the second.
            assert_eq!(is_told, len >= 26 + 36 + 14, "{len} bytes captured");
        }
    }
}
