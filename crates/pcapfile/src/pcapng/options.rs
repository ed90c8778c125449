//! Options of pcapng blocks: lists of a 16-bit code, a 16-bit length and a value padded to 32 bits.

use crate::interface::{Counters, Interface, Resolution};

/// Bytes that are kept of a text.
const TEXT_LEN: usize = 1024;

/// The options of one block, until their end or the first that does not fit.
#[derive(Clone, Debug)]
pub(super) struct Options<'a, const BIG_ENDIAN: bool> {
    rest: &'a [u8],
}

impl<'a, const BIG_ENDIAN: bool> Options<'a, BIG_ENDIAN> {
    pub(super) const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }
}

impl<'a, const BIG_ENDIAN: bool> Iterator for Options<'a, BIG_ENDIAN> {
    type Item = (u16, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let ([c0, c1, l0, l1], body) = self.rest.split_first_chunk::<4>()?;
        let short = if BIG_ENDIAN { u16::from_be_bytes } else { u16::from_le_bytes };
        let (code, len) = (short([*c0, *c1]), usize::from(short([*l0, *l1])));
        if code == 0 {
            return None;
        }
        let value = body.get(..len)?;
        self.rest = body.get(len.next_multiple_of(4)..).unwrap_or_default();
        Some((code, value))
    }
}

/// A number of 8 bytes.
pub(super) fn long<const BIG_ENDIAN: bool>(value: &[u8]) -> Option<u64> {
    let bytes = *value.first_chunk::<8>()?;
    Some(if BIG_ENDIAN { u64::from_be_bytes(bytes) } else { u64::from_le_bytes(bytes) })
}

/// A number of 4 bytes.
pub(super) fn word<const BIG_ENDIAN: bool>(value: &[u8]) -> Option<u32> {
    let bytes = *value.first_chunk::<4>()?;
    Some(if BIG_ENDIAN { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) })
}

/// A text, without the zeros that some writers end it with.
pub(super) fn text(value: &[u8]) -> Option<String> {
    let value = value.split(|byte| *byte == 0).next().unwrap_or_default();
    Some(String::from_utf8_lossy(value.get(..TEXT_LEN).unwrap_or(value)).into_owned())
}

impl Counters {
    /// The options of an interface statistics block.
    pub(super) fn of_statistics<const BIG_ENDIAN: bool>(options: &[u8]) -> Self {
        let mut counters = Self::NONE;
        for (code, value) in Options::<BIG_ENDIAN>::new(options) {
            let counter = match code {
                4 => &mut counters.received,
                5 => &mut counters.dropped_by_interface,
                6 => &mut counters.accepted_by_filter,
                7 => &mut counters.dropped_by_os,
                8 => &mut counters.delivered,
                _ => continue,
            };
            *counter = long::<BIG_ENDIAN>(value).or(*counter);
        }
        counters
    }

    /// Takes over the totals of a later statistics block; what it does not tell stays.
    pub(super) fn update(&mut self, later: &Self) {
        self.received = later.received.or(self.received);
        self.dropped_by_interface = later.dropped_by_interface.or(self.dropped_by_interface);
        self.accepted_by_filter = later.accepted_by_filter.or(self.accepted_by_filter);
        self.dropped_by_os = later.dropped_by_os.or(self.dropped_by_os);
        self.delivered = later.delivered.or(self.delivered);
    }
}

impl Interface {
    /// Takes over the options of an interface description block. Texts only where `keep_texts`.
    pub(super) fn describe<const BIG_ENDIAN: bool>(&mut self, options: &[u8], keep_texts: bool) {
        for (code, value) in Options::<BIG_ENDIAN>::new(options) {
            match (code, value) {
                (2, _) if keep_texts => self.name = text(value),
                (3, _) if keep_texts => self.description = text(value),
                (8, _) => self.speed = long::<BIG_ENDIAN>(value),
                (9, [resolution, ..]) => self.resolution = Resolution(*resolution),
                // The first byte says whether the filter is text (0) or a BPF program.
                (11, [0, filter @ ..]) if keep_texts => self.filter = text(filter),
                (12, _) if keep_texts => self.os = text(value),
                (13, [len, ..]) => self.fcs_len = Some(*len),
                (14, _) => {
                    self.time_offset = long::<BIG_ENDIAN>(value).unwrap_or(0).cast_signed();
                }
                (15, _) if keep_texts => self.hardware = text(value),
                _ => {}
            }
        }
    }

    /// Takes over the options of a packet's block, apart from what was lost before it.
    #[cold]
    pub(super) fn count_packet<const BIG_ENDIAN: bool>(&mut self, options: &[u8]) {
        for (code, value) in Options::<BIG_ENDIAN>::new(options) {
            if code == 2 {
                self.count_flags(word::<BIG_ENDIAN>(value).unwrap_or(0));
            }
        }
    }

    /// Adds what was lost before one packet, where the capture knew.
    pub(super) fn count_drops(&mut self, drops: Option<u64>) {
        if let Some(drops) = drops {
            let sum = self.counters.dropped_between_packets.get_or_insert(0);
            *sum = sum.saturating_add(drops);
        }
    }

    /// Counts by epb_flags: the direction in the lowest two bits, link-layer errors in the highest
    /// sixteen.
    fn count_flags(&mut self, flags: u32) {
        let counters = &mut self.counters;
        let direction = match flags & 3 {
            1 => Some(&mut counters.inbound),
            2 => Some(&mut counters.outbound),
            _ => None,
        };
        if let Some(counter) = direction {
            *counter.get_or_insert(0) += 1;
        }
        if flags >> 16 != 0 {
            *counters.link_errors.get_or_insert(0) += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_end_at_their_end_or_at_the_first_broken_one() {
        let listed = |bytes| Options::<false>::new(bytes).collect::<Vec<_>>();
        let name: &[u8] = &[2, 0, 3, 0, b'l', b'o', b'0', 0];
        assert_eq!(listed(name), [(2, &b"lo0"[..])]);
        let unpadded = &name[..7];
        assert_eq!(listed(unpadded), [(2, &b"lo0"[..])]);
        assert_eq!(listed(&name[..6]), []);
        assert_eq!(listed(&[0, 0, 0, 0, 2, 0, 0, 0]), []);
    }

    #[test]
    fn counters_that_are_absent_stay_unknown() {
        let mut interface = Interface::new(netsniff_packet::LinkType::ETHERNET, 0);
        let statistics = [5, 0, 8, 0, 9, 0, 0, 0, 0, 0, 0, 0];
        interface.counters.update(&Counters::of_statistics::<false>(&statistics));
        interface.counters.update(&Counters::NONE);
        assert_eq!(interface.counters.dropped_by_interface, Some(9));
        assert_eq!(interface.counters.dropped_by_os, None);
        interface.count_packet::<true>(&[0, 2, 0, 4, 0, 1, 0, 2]);
        assert_eq!((interface.counters.outbound, interface.counters.inbound), (Some(1), None));
        assert_eq!(interface.counters.link_errors, Some(1));
    }
}
