//! pcapng: sections of blocks, each with its type and its length before and after its body.
//!
//! Described in draft-ietf-opsawg-pcapng.

mod beside;
mod losses;
mod options;
mod resync;

use netsniff_packet::{LinkType, Note, PacketRecord, Timestamp};

use self::losses::Losses;
use self::options::{Options, long, text};
use self::resync::{MAX_BLOCK, MIN_BLOCK, SECTION_HEADER, Search, follows, search, section_order};
use crate::classic::link_type;
use crate::error::DamageKind;
use crate::interface::{Clock, Counters, Interface};
use crate::scan::{Scanned, Sink};

const INTERFACE_DESCRIPTION: u32 = 1;
const PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const INTERFACE_STATISTICS: u32 = 5;
const ENHANCED_PACKET: u32 = 6;

/// Interfaces that are kept; a file may describe one in every 20 bytes.
const MAX_INTERFACES: usize = 65_536;
/// Interfaces whose texts are kept.
const MAX_DESCRIBED: usize = 4096;
/// Sections whose texts are kept.
const MAX_SECTIONS: usize = 1024;
/// Comments that are kept of a section; nobody reads more, and a file may hold any number.
const MAX_COMMENTS: usize = 16;

/// What a section says of the machine that captured it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Section {
    /// The hardware (shb_hardware).
    pub hardware: Option<String>,
    /// The operating system (shb_os).
    pub os: Option<String>,
    /// The program that wrote it (shb_userappl).
    pub application: Option<String>,
    /// Comments on it (opt_comment), of a file that is read the first 16.
    pub comments: Vec<String>,
}

/// Finds the packets of a pcapng file.
#[derive(Debug, Default)]
pub(crate) struct Pcapng {
    pub(crate) interfaces: Vec<Interface>,
    pub(crate) sections: Vec<Section>,
    pub(crate) section_count: u64,
    /// Packets of simple packet blocks, which carry no time.
    pub(crate) untimed: u64,
    /// The interfaces of the current section, at their number in it.
    ports: Vec<Port>,
    big_endian: bool,
    /// Whether the last bytes made no sense and a block is searched for.
    lost: bool,
    /// Time of the last packet of the buffers before.
    latest: Timestamp,
}

/// What is needed of an interface for each of its packets.
#[derive(Clone, Copy, Debug)]
struct Port {
    number: u32,
    link_type: LinkType,
    clock: Clock,
    snaplen: u32,
    losses: Losses,
}

/// Notes a block that tells no packets, where somebody wants it.
#[cold]
fn note_block<const BIG_ENDIAN: bool>(block_type: u32, block: &[u8], sink: &mut Sink<'_>) {
    let packets = sink.packets.len() as u32;
    if let Some(notes) = &mut sink.notes
        && let Some(block) = beside::carried::<BIG_ENDIAN>(block_type, block)
    {
        notes.push((packets, Note::Block(block)));
    }
}

/// Notes the comments on the packet that was found last, where somebody wants them.
#[cold]
fn note_comments<const BIG_ENDIAN: bool>(options: &[u8], sink: &mut Sink<'_>) {
    let packet = (sink.packets.len() as u32).saturating_sub(1);
    let Some(notes) = &mut sink.notes else { return };
    for (_, value) in Options::<BIG_ENDIAN>::new(options).filter(|(code, _)| *code == 1) {
        notes.push((packet, Note::Comment(String::from_utf8_lossy(value).into_owned())));
    }
}

/// Where a block goes on.
enum Step {
    /// At this place of the buffer, maybe in another byte order.
    At(usize),
    Done(Scanned),
}

/// Whether the file begins with a section header block. Returns its byte order: `true` is
/// big-endian.
pub(crate) fn begins(head: &[u8]) -> Option<bool> {
    if head.starts_with(&SECTION_HEADER.to_be_bytes()) { section_order(head) } else { None }
}

impl Pcapng {
    /// Finds the whole blocks in `data`.
    pub(crate) fn scan(&mut self, data: &[u8], sink: &mut Sink<'_>) -> Scanned {
        let mut at = 0;
        let scanned = loop {
            let step = match (self.lost, self.big_endian) {
                (true, _) => self.find(data, at, at, sink),
                (false, true) => self.scan_section::<true>(data, at, sink),
                (false, false) => self.scan_section::<false>(data, at, sink),
            };
            match step {
                Step::At(next) => at = next,
                Step::Done(scanned) => break scanned,
            }
        };
        if let Some(packet) = sink.packets.last() {
            self.latest = packet.timestamp;
        }
        scanned
    }

    /// Reads blocks until a section begins or something is wrong.
    fn scan_section<const BIG_ENDIAN: bool>(
        &mut self,
        data: &[u8],
        mut at: usize,
        sink: &mut Sink<'_>,
    ) -> Step {
        loop {
            let rest = data.get(at..).unwrap_or_default();
            let Some(([block_type, length], _)) = split_words::<BIG_ENDIAN, 2>(rest) else {
                return Step::Done(Scanned::more(at, MIN_BLOCK));
            };
            if block_type == SECTION_HEADER {
                return self.section(data, at, sink);
            }
            let length_bytes = length as usize;
            if !(MIN_BLOCK..=MAX_BLOCK).contains(&length_bytes) {
                return self.lose(data, at, sink, DamageKind::BlockLength { block_type, length });
            }
            let Some(block) = rest.get(..length_bytes) else {
                return self.incomplete(data, at, sink, block_type, length);
            };
            let trailing = block.last_chunk().map_or(0, |bytes| number::<BIG_ENDIAN>(*bytes));
            if trailing != length
                && let Some(step) =
                    self.odd_trailer(data, at, sink, [block_type, length, trailing], BIG_ENDIAN)
            {
                return step;
            }
            match block_type {
                ENHANCED_PACKET => self.enhanced_packet::<BIG_ENDIAN>(block, at, sink),
                PACKET => self.packet::<BIG_ENDIAN>(block, at, sink),
                SIMPLE_PACKET => self.simple_packet::<BIG_ENDIAN>(block, at, sink),
                INTERFACE_DESCRIPTION => self.interface::<BIG_ENDIAN>(block, at, sink),
                INTERFACE_STATISTICS => self.statistics::<BIG_ENDIAN>(block, at, sink),
                _ => note_block::<BIG_ENDIAN>(block_type, block, sink),
            }
            at += length_bytes;
        }
    }

    /// Begins a section: its byte order holds from its length on, and its interfaces count from 0.
    fn section(&mut self, data: &[u8], at: usize, sink: &mut Sink<'_>) -> Step {
        let rest = data.get(at..).unwrap_or_default();
        if rest.len() < MIN_BLOCK {
            return Step::Done(Scanned::more(at, MIN_BLOCK));
        }
        let block_type = SECTION_HEADER;
        let Some(big_endian) = section_order(rest) else {
            let length = resync::word_at(rest, 4, self.big_endian).unwrap_or(0);
            return self.lose(data, at, sink, DamageKind::BlockLength { block_type, length });
        };
        let length = resync::word_at(rest, 4, big_endian).unwrap_or(0);
        let length_bytes = length as usize;
        if !(28..=MAX_BLOCK).contains(&length_bytes) {
            return self.lose(data, at, sink, DamageKind::BlockLength { block_type, length });
        }
        let Some(block) = rest.get(..length_bytes) else {
            return self.incomplete(data, at, sink, block_type, length);
        };
        let trailing = resync::word_at(block, length_bytes - 4, big_endian).unwrap_or(0);
        let lengths = [block_type, length, trailing];
        if trailing != length
            && let Some(step) = self.odd_trailer(data, at, sink, lengths, big_endian)
        {
            return step;
        }
        self.big_endian = big_endian;
        self.ports.clear();
        self.section_count += 1;
        let options = block.get(24..length_bytes - 4).unwrap_or_default();
        self.describe_section(options);
        Step::At(at + length_bytes)
    }

    fn describe_section(&mut self, options: &[u8]) {
        if self.sections.len() == MAX_SECTIONS {
            return;
        }
        let mut section = Section::default();
        let mut take = |(code, value): (u16, &[u8])| match code {
            1 if section.comments.len() < MAX_COMMENTS => section.comments.extend(text(value)),
            2 => section.hardware = text(value),
            3 => section.os = text(value),
            4 => section.application = text(value),
            _ => {}
        };
        if self.big_endian {
            Options::<true>::new(options).for_each(&mut take);
        } else {
            Options::<false>::new(options).for_each(&mut take);
        }
        self.sections.push(section);
    }

    /// A block whose end is not in the buffer: it comes with the next bytes, or the file ends within
    /// it, or its length is wrong.
    #[cold]
    fn incomplete(
        &mut self,
        data: &[u8],
        at: usize,
        sink: &mut Sink<'_>,
        block_type: u32,
        length: u32,
    ) -> Step {
        if sink.at_end
            && let Search::Found(_) = search(data, at + 1, self.big_endian, true)
        {
            return self.lose(data, at, sink, DamageKind::BlockLength { block_type, length });
        }
        Step::Done(Scanned::more(at, length as usize))
    }

    /// A block whose lengths differ. The first is right if another block, or the end, follows: then
    /// the block is used. Otherwise the way is lost, and where to go on is returned. `big_endian` is
    /// the order of the block, which may be the first of a section.
    #[cold]
    fn odd_trailer(
        &mut self,
        data: &[u8],
        at: usize,
        sink: &mut Sink<'_>,
        [block_type, leading, trailing]: [u32; 3],
        big_endian: bool,
    ) -> Option<Step> {
        let end = at + leading as usize;
        if data.len() < end + MIN_BLOCK && !sink.at_end {
            return Some(Step::Done(Scanned::more(at, leading as usize + MIN_BLOCK)));
        }
        if follows(data, end, big_endian) {
            sink.damage_at(at, 0, DamageKind::TrailingLength { leading, trailing });
            return None;
        }
        let kind = DamageKind::BlockLength { block_type, length: leading };
        Some(self.lose(data, at, sink, kind))
    }

    /// Notes that what begins at `at` is no block, and looks for one behind.
    #[cold]
    fn lose(&mut self, data: &[u8], at: usize, sink: &mut Sink<'_>, kind: DamageKind) -> Step {
        self.lost = true;
        sink.damage_at(at, 0, kind);
        self.find(data, at, at + 1, sink)
    }

    /// Looks for a block from `from` on. What lies between `at` and the block is not used.
    #[cold]
    fn find(&mut self, data: &[u8], at: usize, from: usize, sink: &mut Sink<'_>) -> Step {
        let (next, step) = match search(data, from, self.big_endian, sink.at_end) {
            Search::Found(next) => {
                self.lost = false;
                (next, Step::At(next))
            }
            Search::Wait { at: next, needed } => (next, Step::Done(Scanned::more(next, needed))),
            Search::None => (data.len(), Step::Done(Scanned::more(data.len(), MIN_BLOCK))),
        };
        sink.damage.skip(next.saturating_sub(at) as u64);
        step
    }

    #[inline]
    fn enhanced_packet<const BIG_ENDIAN: bool>(
        &mut self,
        block: &[u8],
        at: usize,
        sink: &mut Sink<'_>,
    ) {
        let Some(([_, _, interface, high, low, captured, wire], body)) =
            split_words::<BIG_ENDIAN, 7>(block)
        else {
            return sink.damage_at(at, block.len(), DamageKind::BlockBody { block_type: 6 });
        };
        let timed = Some(u64::from(high) << 32 | u64::from(low));
        let found = PacketFields { interface, ticks: timed, captured, wire, at, header: 28 };
        let options = options_behind(body, captured);
        let drops = options.and_then(drops::<BIG_ENDIAN>);
        let (Some(number), Some(options)) = (self.push(&found, drops, body, sink), options) else {
            return;
        };
        if let Some(interface) = self.interfaces.get_mut(number as usize) {
            interface.count_packet::<BIG_ENDIAN>(options);
            interface.count_drops(drops);
        }
        note_comments::<BIG_ENDIAN>(options, sink);
    }

    /// The obsolete packet block: 16 bits each for the interface and the packets lost before.
    #[cold]
    fn packet<const BIG_ENDIAN: bool>(&mut self, block: &[u8], at: usize, sink: &mut Sink<'_>) {
        let Some(([_, _, both, high, low, captured, wire], body)) =
            split_words::<BIG_ENDIAN, 7>(block)
        else {
            return sink.damage_at(at, block.len(), DamageKind::BlockBody { block_type: 2 });
        };
        let (first, second) = (both >> 16, both & 0xffff);
        let (interface, drops) = if BIG_ENDIAN { (first, second) } else { (second, first) };
        let timed = Some(u64::from(high) << 32 | u64::from(low));
        let found = PacketFields { interface, ticks: timed, captured, wire, at, header: 28 };
        // All ones: the writer did not know.
        let drops = (drops != 0xffff).then_some(u64::from(drops));
        let Some(number) = self.push(&found, drops, body, sink) else { return };
        if let Some(interface) = self.interfaces.get_mut(number as usize) {
            interface.count_drops(drops);
            interface.count_packet::<BIG_ENDIAN>(options_behind(body, captured).unwrap_or(&[]));
        }
        note_comments::<BIG_ENDIAN>(options_behind(body, captured).unwrap_or(&[]), sink);
    }

    /// A packet of the section's first interface, without time and without captured length.
    #[cold]
    fn simple_packet<const BIG_ENDIAN: bool>(
        &mut self,
        block: &[u8],
        at: usize,
        sink: &mut Sink<'_>,
    ) {
        let Some(([_, _, wire], body)) = split_words::<BIG_ENDIAN, 3>(block) else {
            return sink.damage_at(at, block.len(), DamageKind::BlockBody { block_type: 3 });
        };
        let snaplen = self.ports.first().map_or(0, |port| port.snaplen);
        let limit = if snaplen == 0 { wire } else { wire.min(snaplen) };
        let captured = limit.min(body.len().saturating_sub(4) as u32);
        let found = PacketFields { interface: 0, ticks: None, captured, wire, at, header: 12 };
        if self.push(&found, None, body, sink).is_some() {
            self.untimed += 1;
        }
    }

    /// Adds a packet, and before it what was lost. Returns the number of its interface in the file.
    #[inline]
    fn push(
        &mut self,
        found: &PacketFields,
        drops: Option<u64>,
        body: &[u8],
        sink: &mut Sink<'_>,
    ) -> Option<u32> {
        let Some(port) = self.ports.get_mut(found.interface as usize) else {
            let kind = DamageKind::UnknownInterface { interface: found.interface };
            sink.damage_at(found.at, found.header + body.len(), kind);
            return None;
        };
        // The body ends with the block's length.
        if found.captured as usize + 4 > body.len() {
            let captured = found.captured;
            let limit = body.len().saturating_sub(4) as u32;
            let kind = DamageKind::PacketLength { captured, limit };
            sink.damage_at(found.at, found.header + body.len(), kind);
            return None;
        }
        let mut wire_len = found.wire;
        if found.captured > wire_len {
            let kind = DamageKind::CapturedExceedsWire { captured: found.captured, wire: wire_len };
            sink.damage_at(found.at, 0, kind);
            wire_len = found.captured;
        }
        let timestamp = match found.ticks {
            Some(ticks) => port.clock.time(ticks),
            // The packet before is the best guess, and keeps the order.
            None => sink.packets.last().map_or(self.latest, |packet| packet.timestamp),
        };
        if let Some(loss) = drops.and_then(|drops| port.losses.before_packet(drops, timestamp)) {
            sink.losses.push((sink.packets.len() as u32, loss));
        }
        port.losses.packets += 1;
        port.losses.latest = Some(timestamp);
        sink.packets.push(PacketRecord {
            timestamp,
            offset: (found.at + found.header) as u32,
            captured_len: found.captured,
            wire_len,
            interface: port.number,
            link_type: port.link_type,
        });
        Some(port.number)
    }

    #[cold]
    fn interface<const BIG_ENDIAN: bool>(&mut self, block: &[u8], at: usize, sink: &mut Sink<'_>) {
        let (Some(([_, _, both, snaplen], body)), true) =
            (split_words::<BIG_ENDIAN, 4>(block), block.len() >= 20)
        else {
            return sink.damage_at(at, block.len(), DamageKind::BlockBody { block_type: 1 });
        };
        if self.interfaces.len() == MAX_INTERFACES {
            return sink.damage_at(at, block.len(), DamageKind::TooManyInterfaces);
        }
        let number = if BIG_ENDIAN { both >> 16 } else { both & 0xffff };
        let mut interface = Interface::new(link_type(number as u16), snaplen);
        interface.section = self.section_count.saturating_sub(1);
        let options = body.get(..body.len() - 4).unwrap_or_default();
        interface.describe::<BIG_ENDIAN>(options, self.interfaces.len() < MAX_DESCRIBED);
        self.ports.push(Port {
            number: self.interfaces.len() as u32,
            link_type: interface.link_type,
            clock: interface.resolution.clock(interface.time_offset),
            snaplen,
            losses: Losses::NONE,
        });
        self.interfaces.push(interface);
    }

    #[cold]
    fn statistics<const BIG_ENDIAN: bool>(&mut self, block: &[u8], at: usize, sink: &mut Sink<'_>) {
        let (Some(([_, _, interface, high, low], body)), true) =
            (split_words::<BIG_ENDIAN, 5>(block), block.len() >= 24)
        else {
            return sink.damage_at(at, block.len(), DamageKind::BlockBody { block_type: 5 });
        };
        let port = self.ports.get_mut(interface as usize);
        let described = port.and_then(|port| {
            let described = self.interfaces.get_mut(port.number as usize)?;
            Some((port, described))
        });
        let Some((port, described)) = described else {
            let kind = DamageKind::UnknownInterface { interface };
            return sink.damage_at(at, block.len(), kind);
        };
        let counters =
            Counters::of_statistics::<BIG_ENDIAN>(body.get(..body.len() - 4).unwrap_or_default());
        described.counters.update(&counters);
        let time = port.clock.time(u64::from(high) << 32 | u64::from(low));
        let place = sink.packets.len() as u32;
        let losses = port.losses.at_statistics(&counters, time);
        sink.losses.extend(losses.map(|loss| (place, loss)));
    }
}

/// The fields of a packet's block.
struct PacketFields {
    interface: u32,
    ticks: Option<u64>,
    captured: u32,
    wire: u32,
    at: usize,
    header: usize,
}

/// The options behind a packet, where there are any. `body` ends with the block's length.
#[inline]
fn options_behind(body: &[u8], captured: u32) -> Option<&[u8]> {
    let start = (captured as usize).checked_next_multiple_of(4)?;
    let end = body.len().checked_sub(4)?;
    if start < end { body.get(start..end) } else { None }
}

/// What an enhanced packet block says was lost before its packet.
#[cold]
fn drops<const BIG_ENDIAN: bool>(options: &[u8]) -> Option<u64> {
    let mut options = Options::<BIG_ENDIAN>::new(options);
    options.find(|(code, _)| *code == 4).and_then(|(_, value)| long::<BIG_ENDIAN>(value))
}

#[inline(always)]
fn number<const BIG_ENDIAN: bool>(bytes: [u8; 4]) -> u32 {
    if BIG_ENDIAN { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
}

/// The first `N` numbers of 32 bits, and what follows them.
#[inline(always)]
fn split_words<const BIG_ENDIAN: bool, const N: usize>(bytes: &[u8]) -> Option<([u32; N], &[u8])> {
    let (head, rest) = bytes.split_at_checked(4 * N)?;
    let mut words = [0; N];
    for (word, bytes) in words.iter_mut().zip(head.as_chunks::<4>().0) {
        *word = number::<BIG_ENDIAN>(*bytes);
    }
    Some((words, rest))
}
