//! What a finding is, and what it says.

use core::fmt::Debug;
use std::borrow::Cow;

use netsniff_packet::{Address, Timestamp};

use super::setting::Setting;
use super::sighting::Sighting;
use super::threshold::Threshold;
use crate::log::{Confidence, Notice};
use crate::record::{Interval, Port};

/// Something that can be found, under one name.
#[derive(Debug)]
pub struct Note {
    /// Its name, Zeek's where Zeek has one.
    pub name: &'static str,
    /// What it is, in sentences.
    pub doc: &'static str,
    /// How sure it is, in sentences.
    pub confidence: &'static str,
    /// What to do, in a sentence.
    pub advice: &'static str,
}

/// A kind of finding: what it reads, and how to make one.
#[derive(Debug)]
pub struct FindingType {
    /// What it can find.
    pub notes: &'static [&'static Note],
    /// Logs, and the columns of each that it reads beside those of the connection.
    pub reads: &'static [(&'static str, &'static [&'static str])],
    /// Its thresholds.
    pub thresholds: &'static [Threshold],
    /// Makes one that has seen nothing.
    pub make: fn(&Setting<'_>) -> Box<dyn Finding>,
}

/// Finds something in records, which come in the order of their keys.
///
/// What it holds is bounded by its [`Setting`].
pub trait Finding: Debug + Send {
    /// Takes a record of a log that it reads, which belongs at engine time `now`.
    fn sighted(&mut self, now: Timestamp, sighting: &Sighting, out: &mut Vec<Found>);

    /// How many entries were given up for lack of room.
    fn given_up(&self) -> u64 {
        0
    }
}

/// Most entries of each table of a finding.
pub const MOST_ENTRIES: usize = 10_000;
/// Most connections that are named as evidence.
pub const MOST_UIDS: usize = 10;

/// Something that was found.
#[derive(Debug)]
pub struct Found {
    /// What makes it the same as another one, so that one row is enough.
    pub identifier: Vec<u8>,
    /// The row, whose time and form are not set yet.
    pub row: Notice,
}

impl Found {
    /// Something that is shown by the connection of `sighting`, if that has one.
    #[must_use]
    pub fn new(
        note: &'static Note,
        confidence: Confidence,
        sighting: &Sighting,
        msg: String,
    ) -> Self {
        let uid = sighting.word("uid").map(str::to_owned);
        let (src, dst) = (sighting.address("id.orig_h"), sighting.address("id.resp_h"));
        let port = sighting.port("id.resp_p").map(Port);
        let row = Notice {
            ts: Timestamp::MIN,
            uids: uid.iter().cloned().collect(),
            uid,
            id_orig_h: src,
            id_orig_p: sighting.port("id.orig_p").map(Port),
            id_resp_h: dst,
            id_resp_p: port,
            fuid: None,
            proto: sighting.word("proto").and_then(known_proto),
            note: Cow::Borrowed(note.name),
            msg,
            sub: None,
            src,
            dst,
            p: port,
            n: None,
            peer_descr: "netsniff",
            actions: vec!["Notice::ACTION_LOG"],
            suppress_for: SUPPRESS_FOR,
            confidence,
            suppressed: None,
            quality: sighting.word("quality").map(str::to_owned),
            advice: Cow::Borrowed(note.advice),
        };
        let identifier = identifier(&[src, dst], row.p);
        Self { identifier, row }
    }

    /// The same, of several connections: `uids` show it, and no single one does, nor the quality of its capture.
    #[must_use]
    pub fn of_many(mut self, uids: Vec<String>) -> Self {
        self.row.uid = None;
        (self.row.id_orig_h, self.row.id_resp_h) = (None, None);
        (self.row.id_orig_p, self.row.id_resp_p) = (None, None);
        self.row.uids = uids;
        self.row.quality = None;
        self
    }

    /// The same, of the capture itself: no host did it.
    #[must_use]
    pub fn of_capture(mut self) -> Self {
        (self.row.src, self.row.dst, self.row.p) = (None, None, None);
        (self.row.proto, self.identifier) = (None, Vec::new());
        self
    }

    /// The same, with what the traffic says.
    #[must_use]
    pub fn saying(mut self, sub: Option<&[u8]>) -> Self {
        self.row.sub = sub.map(Into::into);
        self
    }

    /// The same, with a number.
    #[must_use]
    pub const fn counting(mut self, n: u64) -> Self {
        self.row.n = Some(n);
        self
    }

    /// The same, which is another finding than those with other identifiers.
    #[must_use]
    pub fn told_by(mut self, identifier: Vec<u8>) -> Self {
        self.identifier = identifier;
        self
    }
}

/// Zeek's `Notice::default_suppression_interval`.
pub const SUPPRESS_FOR: Interval = Interval::from_nanos(3600 * 1_000_000_000);

/// What tells findings of these hosts and this port from others.
#[must_use]
pub fn identifier(hosts: &[Option<Address>], port: Option<Port>) -> Vec<u8> {
    let words = hosts.iter().flat_map(|host| host.map_or([0; 2], Address::words));
    let mut bytes: Vec<u8> = words.flat_map(u64::to_be_bytes).collect();
    bytes.extend(port.map_or(0, |port| port.0).to_be_bytes());
    bytes
}

fn known_proto(name: &str) -> Option<&'static str> {
    crate::record::Proto::ALL.iter().map(|proto| proto.name()).find(|known| *known == name)
}
