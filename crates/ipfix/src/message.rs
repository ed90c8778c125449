//! The headers of messages, and the sets in them.

use netsniff_packet::Timestamp;

use crate::bytes::Bytes;
use crate::sampling::Sampling;

/// A protocol of flow export.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Protocol {
    /// NetFlow 5.
    Netflow5,
    /// NetFlow 9 (RFC 3954).
    Netflow9,
    /// IPFIX (RFC 7011).
    Ipfix,
}

impl Protocol {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Netflow5, Self::Netflow9, Self::Ipfix];
}

/// Why a message was not read at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Refusal {
    /// It is shorter than a header.
    Short,
    /// It begins with none of the versions 5, 9 and 10.
    Version,
    /// Its length, or its number of records, is not that of its bytes.
    Length,
    /// There is no room for one more exporter.
    Room,
}

impl Refusal {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Short, Self::Version, Self::Length, Self::Room];

    /// The reason in some words.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Short => "shorter than a header",
            Self::Version => "not of version 5, 9 or 10",
            Self::Length => "not as long as they say",
            Self::Room => "from more exporters than there is room for",
        }
    }
}

/// What the header of a message says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Header {
    pub(crate) protocol: Protocol,
    /// Sequence number: of records, or of messages in NetFlow 9.
    pub(crate) sequence: u32,
    /// Observation domain, source id, or type and number of the engine.
    pub(crate) domain: u32,
    pub(crate) clock: Clock,
    /// What NetFlow 5 says of sampling.
    pub(crate) sampling: Sampling,
}

/// What times of a message are relative to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    /// When the message was sent.
    pub(crate) sent: Timestamp,
    /// Milliseconds since the exporter was started.
    pub(crate) uptime: Option<u32>,
}

impl Clock {
    /// The time at which so many milliseconds had passed since the start, which is less than 24 days before or behind the
    /// message: the number wraps after 49 days.
    pub(crate) fn at_uptime(&self, millis: u32) -> Option<Timestamp> {
        let age = self.uptime?.wrapping_sub(millis).cast_signed();
        Some(self.sent.offset(-i64::from(age) * 1_000_000))
    }
}

/// Bytes of a record of NetFlow 5.
pub(crate) const RECORD_5: usize = 48;
const HEADER_5: usize = 24;
const HEADER_9: usize = 20;
const HEADER_IPFIX: usize = 16;

/// Reads the header of a message. What follows it is records of NetFlow 5, or sets.
pub(crate) fn header(message: &[u8]) -> Result<(Header, &[u8]), Refusal> {
    let version = Bytes(message).u16().ok_or(Refusal::Short)?;
    let (protocol, len) = match version {
        5 => (Protocol::Netflow5, HEADER_5),
        9 => (Protocol::Netflow9, HEADER_9),
        10 => (Protocol::Ipfix, HEADER_IPFIX),
        _ => return Err(Refusal::Version),
    };
    let (head, body) = message.split_at_checked(len).ok_or(Refusal::Short)?;
    let mut head = Bytes(head.get(2..).unwrap_or_default());
    match protocol {
        Protocol::Netflow5 => netflow5(&mut head, body),
        Protocol::Netflow9 => netflow9(&mut head).map(|header| (header, body)),
        Protocol::Ipfix => ipfix(&mut head, message.len()).map(|header| (header, body)),
    }
    .ok_or(Refusal::Length)
}

fn netflow5<'a>(head: &mut Bytes<'_>, body: &'a [u8]) -> Option<(Header, &'a [u8])> {
    let count = usize::from(head.u16()?);
    let uptime = head.u32()?;
    let (seconds, nanos) = (head.u32()?, head.u32()?);
    let sequence = head.u32()?;
    let engine = head.u16()?;
    let sampling = head.u16()?;
    let records = body.get(..count * RECORD_5)?;
    // The two bits above tell the way of sampling; without an interval nothing is told, since many leave it out.
    let interval = u64::from(sampling & 0x3fff);
    let header = Header {
        protocol: Protocol::Netflow5,
        sequence,
        domain: engine.into(),
        clock: Clock {
            sent: Timestamp::from_secs_nanos(seconds.into(), nanos.into()),
            uptime: Some(uptime),
        },
        sampling: if interval == 0 { Sampling::Untold } else { Sampling::one_of(interval) },
    };
    Some((header, records))
}

fn netflow9(head: &mut Bytes<'_>) -> Option<Header> {
    // How many records there are is seen from the sets.
    let _count = head.u16()?;
    let uptime = head.u32()?;
    let sent = Timestamp::from_secs_nanos(head.u32()?.into(), 0);
    let (sequence, domain) = (head.u32()?, head.u32()?);
    let clock = Clock { sent, uptime: Some(uptime) };
    let sampling = Sampling::Untold;
    Some(Header { protocol: Protocol::Netflow9, sequence, domain, clock, sampling })
}

fn ipfix(head: &mut Bytes<'_>, len: usize) -> Option<Header> {
    if usize::from(head.u16()?) != len {
        return None;
    }
    let sent = Timestamp::from_secs_nanos(head.u32()?.into(), 0);
    let (sequence, domain) = (head.u32()?, head.u32()?);
    let clock = Clock { sent, uptime: None };
    let sampling = Sampling::Untold;
    Some(Header { protocol: Protocol::Ipfix, sequence, domain, clock, sampling })
}

/// A set of records or templates.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Set<'a> {
    pub(crate) id: u16,
    pub(crate) content: &'a [u8],
}

/// The sets behind a header. One whose length makes no sense is the last, and `None`.
pub(crate) struct Sets<'a>(pub(crate) Bytes<'a>);

impl<'a> Iterator for Sets<'a> {
    type Item = Option<Set<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.0.is_empty() {
            return None;
        }
        let mut set = || {
            let (id, len) = (self.0.u16()?, self.0.u16()?);
            let content = self.0.take(usize::from(len).checked_sub(4)?)?;
            Some(Set { id, content })
        };
        let set = set();
        if set.is_none() {
            self.0 = Bytes(&[]);
        }
        Some(set)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uptimes_wrap() {
        let sent = Timestamp::from_secs_nanos(1000, 0);
        let clock = Clock { sent, uptime: Some(500) };
        assert_eq!(clock.at_uptime(500), Some(sent));
        assert_eq!(clock.at_uptime(0), Some(sent.offset(-500_000_000)));
        assert_eq!(clock.at_uptime(u32::MAX), Some(sent.offset(-501_000_000)), "before the wrap");
        assert_eq!(
            clock.at_uptime(700),
            Some(sent.offset(200_000_000)),
            "behind the header's time"
        );
        assert_eq!(Clock { sent, uptime: None }.at_uptime(0), None);
    }

    #[test]
    fn what_is_no_message_is_refused() {
        let refused = |bytes: &[u8]| header(bytes).err();
        assert_eq!(refused(&[]), Some(Refusal::Short));
        assert_eq!(refused(&[0, 5, 0, 1]), Some(Refusal::Short));
        assert_eq!(refused(&[0, 7, 0, 1]), Some(Refusal::Version));
        let mut five = vec![0; 24 + 48];
        (five[1], five[3]) = (5, 1);
        assert_eq!(refused(&five), None);
        five[3] = 2;
        assert_eq!(refused(&five), Some(Refusal::Length));
        let mut ten = vec![0; 16];
        (ten[1], ten[3]) = (10, 16);
        assert_eq!(refused(&ten), None);
        ten.push(0);
        assert_eq!(refused(&ten), Some(Refusal::Length));
    }

    #[test]
    fn a_set_of_a_senseless_length_is_the_last() {
        let bytes = [1, 0, 0, 6, 7, 8, 1, 1, 0, 3, 1, 0, 0, 4];
        let sets: Vec<_> =
            Sets(Bytes(&bytes)).map(|set| set.map(|it| (it.id, it.content.len()))).collect();
        assert_eq!(sets, [Some((256, 2)), None]);
    }
}
