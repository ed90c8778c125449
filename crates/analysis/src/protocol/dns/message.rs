//! The octets of a message, RFC 1035 section 4: header, names, questions, resource records.
//!
//! Whatever is wrong is noted by Zeek's name for it, and what was read before it stands.

use core::ops::Range;

use super::{HEADER_LEN, MAX_QUESTIONS, NETBIOS, OPCODES};
use crate::protocol::DatagramVerdict;
use crate::weird::Weirds;

/// Octets of a name as text, with the dots between its labels. Longer names are cut, as in Zeek.
const MAX_NAME: usize = 512;

/// Length beyond which a name is odd (RFC 1035, 2.3.4).
const LONG_NAME: usize = 255;

/// Length of the longest label (RFC 1035, 2.3.4), except in NetBIOS.
pub(super) const MAX_LABEL: usize = 63;

/// Pointers that may lead from one to the next within one name. Without a bound the work for a
/// message would grow with the square of its length.
pub(super) const MAX_POINTERS: usize = 32;

/// The header, RFC 1035 section 4.1.1.
#[derive(Clone, Copy, Debug)]
pub(super) struct Header {
    /// Identifier that an answer repeats.
    pub(super) id: u16,
    flags: u16,
    /// Entries in the question section.
    pub(super) questions: u16,
    /// Entries in the answer section.
    pub(super) answers: u16,
    /// Entries in the authority section; in an update, what is to be changed (RFC 2136, section 2.2).
    pub(super) authorities: u16,
    additionals: u16,
}

impl Header {
    /// The header at the begin of a message; `None` where it is cut.
    pub(super) fn of(message: &[u8]) -> Option<Self> {
        let bytes: &[u8; HEADER_LEN] = message.first_chunk()?;
        let word = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
        Some(Self {
            id: word(0),
            flags: word(2),
            questions: word(4),
            answers: word(6),
            authorities: word(8),
            additionals: word(10),
        })
    }

    /// Whether it can be the header of a message to or from a server's port.
    pub(super) fn verdict(self, port: u16) -> DatagramVerdict {
        if self.questions > MAX_QUESTIONS {
            DatagramVerdict::Contradicts
        } else if port != NETBIOS && !OPCODES.contains(&self.opcode()) {
            DatagramVerdict::Unknown
        } else {
            DatagramVerdict::Fits
        }
    }

    const fn flag(self, bit: u16) -> bool {
        self.flags & bit != 0
    }

    /// QR: whether it is an answer.
    pub(super) const fn is_response(self) -> bool {
        self.flag(0x8000)
    }

    /// The kind of query.
    pub(super) const fn opcode(self) -> u8 {
        (self.flags >> 11 & 0xf) as u8
    }

    /// AA: the server is an authority.
    pub(super) const fn is_authoritative(self) -> bool {
        self.flag(0x0400)
    }

    /// TC: the message was cut.
    pub(super) const fn is_truncated(self) -> bool {
        self.flag(0x0200)
    }

    /// RD: recursion is wanted.
    pub(super) const fn wants_recursion(self) -> bool {
        self.flag(0x0100)
    }

    /// RA: recursion is offered.
    pub(super) const fn offers_recursion(self) -> bool {
        self.flag(0x0080)
    }

    /// The three bits that RFC 1035 reserves; DNSSEC took two of them (RFC 4035, 3.1.6).
    pub(super) const fn z(self) -> u8 {
        (self.flags >> 4 & 7) as u8
    }

    /// RCODE, without the bits that EDNS adds.
    pub(super) const fn rcode(self) -> u8 {
        (self.flags & 0xf) as u8
    }

    /// Whether it is an answer without an error.
    pub(super) const fn is_success(self) -> bool {
        self.is_response() && self.rcode() == 0
    }

    /// Entries behind the questions.
    pub(super) const fn records(self) -> u32 {
        self.answers as u32 + self.authorities as u32 + self.additionals as u32
    }

    /// Whether nothing follows the questions.
    pub(super) const fn has_no_records(self) -> bool {
        self.records() == 0
    }
}

/// A name as text: labels with dots between.
#[derive(Clone, Copy, Debug)]
pub(super) struct Name {
    bytes: [u8; MAX_NAME],
    len: usize,
}

impl Name {
    /// The text in lower case; empty for the root.
    pub(super) fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }

    /// Adds a label and a dot; `false` where there is no room.
    fn push(&mut self, label: &[u8]) -> bool {
        let end = self.len + label.len();
        if end >= MAX_NAME {
            return false;
        }
        self.bytes[self.len..end].copy_from_slice(label);
        self.bytes[end] = b'.';
        self.len = end + 1;
        true
    }
}

/// A question, RFC 1035 section 4.1.2.
#[derive(Clone, Copy, Debug)]
pub(super) struct Question {
    /// What is asked about.
    pub(super) name: Name,
    /// QTYPE.
    pub(super) kind: u16,
    /// QCLASS.
    pub(super) class: u16,
}

/// A resource record, RFC 1035 section 4.1.3.
#[derive(Debug)]
pub(super) struct Resource {
    /// What it is about.
    pub(super) name: Name,
    /// TYPE.
    pub(super) kind: u16,
    /// CLASS.
    pub(super) class: u16,
    /// Seconds that it may be kept.
    pub(super) ttl: u32,
    /// Where RDATA lies in the message.
    pub(super) data: Range<usize>,
}

/// A message that is being read.
#[derive(Debug)]
pub(super) struct DnsMessage<'a> {
    bytes: &'a [u8],
    at: usize,
    is_netbios: bool,
    weirds: &'a mut Weirds,
}

impl<'a> DnsMessage<'a> {
    /// The message in `bytes`, read up to the end of its header.
    pub(super) const fn new(bytes: &'a [u8], is_netbios: bool, weirds: &'a mut Weirds) -> Self {
        Self { bytes, at: HEADER_LEN, is_netbios, weirds }
    }

    /// Whether it came from or went to the port of NetBIOS names.
    pub(super) const fn is_netbios(&self) -> bool {
        self.is_netbios
    }

    pub(super) fn weird(&mut self, name: &'static str) {
        self.weirds.add(name);
    }

    /// Where reading goes on.
    pub(super) const fn position(&self) -> usize {
        self.at
    }

    /// Reads on at `at`.
    pub(super) const fn seek(&mut self, at: usize) {
        self.at = at;
    }

    /// The octets of a part of the message.
    pub(super) fn part(&self, range: Range<usize>) -> &'a [u8] {
        self.bytes.get(range).unwrap_or_default()
    }

    /// Octets that are left.
    pub(super) const fn remaining(&self) -> usize {
        self.bytes.len().saturating_sub(self.at)
    }

    fn array<const LEN: usize>(&mut self) -> Option<[u8; LEN]> {
        let bytes: [u8; LEN] = *self.bytes.get(self.at..)?.first_chunk()?;
        self.at += LEN;
        Some(bytes)
    }

    /// The next two octets.
    fn short(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    /// The next question; `None` where the message is cut.
    pub(super) fn question(&mut self) -> Option<Question> {
        let name = self.name()?;
        if self.remaining() < 4 {
            self.weird("DNS_truncated_quest_too_short");
            return None;
        }
        Some(Question { name, kind: self.short()?, class: self.short()? })
    }

    /// The next resource record up to its RDATA; `None` where the message is cut.
    pub(super) fn resource(&mut self) -> Option<Resource> {
        let name = self.name()?;
        if self.remaining() < 4 {
            self.weird("DNS_truncated_ans_too_short");
            return None;
        }
        let (kind, class) = (self.short()?, self.short()?);
        let ttl = self.array().map_or(0, u32::from_be_bytes);
        let len = self.short().map_or(0, usize::from);
        if len > self.remaining() {
            self.weird("DNS_truncated_RR_rdlength_lt_len");
            return None;
        }
        Some(Resource { name, kind, class, ttl, data: self.at..self.at + len })
    }

    /// The next name, RFC 1035 sections 3.1 and 4.1.4. A name that breaks off stands as far as it
    /// goes; `None` where too many pointers follow each other.
    pub(super) fn name(&mut self) -> Option<Name> {
        let mut name = Name { bytes: [0; MAX_NAME], len: 0 };
        // Behind the first pointer the message goes on; what a pointer leads to ends before it, so
        // that no name runs in circles.
        let (mut behind, mut pointers) = (None, 0);
        let (mut at, mut end) = (self.at, self.bytes.len());
        while let Some(&len) = self.bytes.get(at).filter(|_| at < end) {
            let begin = at;
            at += 1;
            if len == 0 || at >= end {
                break;
            }
            if len & 0xc0 == 0xc0 {
                let low = self.bytes[at];
                behind.get_or_insert(at + 1);
                let target = usize::from(u16::from_be_bytes([len & 0x3f, low]));
                if target >= begin {
                    self.weird("DNS_label_forward_compress_offset");
                    break;
                }
                pointers += 1;
                if pointers > MAX_POINTERS {
                    self.weird("DNS_too_many_pointers");
                    return None;
                }
                (at, end) = (target, begin);
                continue;
            }
            let len = usize::from(len);
            if let Err(oddity) = self.label(&mut name, at..at + len, end) {
                self.weird(oddity);
                // What is cut takes the rest of the message with it.
                at = if at + len > end { end } else { at };
                break;
            }
            at += len;
        }
        self.at = behind.unwrap_or(at);
        Some(self.finish(name))
    }

    /// Adds a label to a name that must lie before `end`, or tells why that cannot be.
    fn label(&self, name: &mut Name, range: Range<usize>, end: usize) -> Result<(), &'static str> {
        if range.end > end {
            return Err("DNS_label_len_gt_pkt");
        }
        if range.len() > MAX_LABEL && !self.is_netbios {
            return Err("DNS_label_too_long");
        }
        if name.push(self.part(range)) { Ok(()) } else { Err("DNS_label_len_gt_name_len") }
    }

    /// A name without the dot behind its last label, in lower case.
    fn finish(&mut self, mut name: Name) -> Name {
        if name.len >= LONG_NAME {
            self.weird("DNS_NAME_too_long");
        }
        if name.len >= 2 {
            name.len -= 1;
        }
        name.bytes[..name.len].make_ascii_lowercase();
        name
    }
}
