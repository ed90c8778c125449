//! Messages of IPFIX (RFC 7011) that tell of connections.
//!
//! What a record has is told by its template, and a value that is unset is no element of it. So the number of a template is
//! 256 and the sum of the weights of the groups that a record has: it means the same in all sessions.

mod connection;
mod element;
mod encode;

use std::collections::{BTreeMap, BTreeSet};

pub use self::connection::{Connection, RunEnd, Side, Told};
pub use self::element::{ELEMENTS, END, Element, EndElement, Group, Number, Type};

use self::element::Groups;

/// The first number of a template of data (RFC 7011, 3.4.1).
pub const FIRST_TEMPLATE: u16 = 256;
/// The template of the end of a run, beyond those of all groups.
pub const END_TEMPLATE: u16 = 40_960;
/// The most bytes of a message.
pub const LONGEST: usize = 65_535;

const HEADER: usize = 16;
const SET_HEADER: usize = 4;

/// How messages are made.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The enterprise below which the elements of netsniff stand.
    pub enterprise: u32,
    /// Whether times are in nanoseconds, rather than in milliseconds.
    pub is_nanoseconds: bool,
    /// The most bytes of a message; at least [`Settings::LEAST`], at most [`LONGEST`].
    pub longest: usize,
}

impl Settings {
    /// The least for [`Settings::longest`], with room for any template.
    pub const LEAST: usize = 512;
}

/// Why something is told in no record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Untellable {
    /// It needs more bytes than a message has.
    Long,
    /// Its times are before 1970, or, in nanoseconds, after 2036.
    Time,
}

impl Untellable {
    /// The reason in some words.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Long => "it does not fit into a message",
            Self::Time => "IPFIX has no number for its time",
        }
    }
}

/// A message that was made.
#[derive(Debug)]
pub struct Built {
    /// How many records it has, the first ones of those that were to be told; none where it has a template alone.
    pub records: usize,
    domain: u32,
    connections: u64,
    bytes: u64,
    told: Vec<u16>,
    /// Whether it has a template that the collector never saw: one that reads several messages at once may read the next
    /// one before it knows that.
    pub has_news: bool,
}

/// Makes messages for one collector.
#[derive(Debug)]
pub struct Exporter {
    settings: Settings,
    domains: BTreeMap<u32, Domain>,
    /// Of messages that were sent.
    messages: u64,
    bytes: u64,
    connections: u64,
}

/// What a session knows of an observation domain.
#[derive(Debug, Default)]
struct Domain {
    /// Data records that were sent, modulo 2^32 (RFC 7011, 3.1).
    sequence: u32,
    /// Templates that are not told before their next record.
    told: BTreeSet<u16>,
    /// Templates that the collector has seen, or was sent.
    seen: BTreeSet<u16>,
}

impl Exporter {
    /// Nothing was sent yet.
    #[must_use]
    pub const fn new(settings: Settings) -> Self {
        Self { settings, domains: BTreeMap::new(), messages: 0, bytes: 0, connections: 0 }
    }

    /// A new session begins, such as a TCP connection: records are counted anew, and the collector knows no template.
    pub fn begin(&mut self) {
        self.domains.clear();
    }

    /// Each template is told again before its next record, as UDP needs it (RFC 7011, 8.1).
    pub fn tell_templates_again(&mut self) {
        self.domains.values_mut().for_each(|domain| domain.told.clear());
    }

    /// The collector may have been started anew within the session, so that it knows no template.
    pub fn forget_templates(&mut self) {
        self.tell_templates_again();
        self.domains.values_mut().for_each(|domain| domain.seen.clear());
    }

    /// Appends a message with the first of some records, as many as it has room for. `sent` is the time of the
    /// message, in seconds since 1970. What was made counts once [`Exporter::sent`] is told.
    ///
    /// # Errors
    ///
    /// Where the first record cannot be told. Nothing is appended then.
    pub fn build(
        &self,
        domain: u32,
        sent: u32,
        records: &[Told<'_>],
        out: &mut Vec<u8>,
    ) -> Result<Built, Untellable> {
        let begin = out.len();
        let known = self.domains.get(&domain);
        encode::header(sent, known.map_or(0, |of| of.sequence), domain, out);
        let mut message = Message {
            exporter: self,
            domain,
            begin,
            set: None,
            built: Built {
                records: 0,
                domain,
                connections: 0,
                bytes: 0,
                told: Vec::new(),
                has_news: false,
            },
        };
        for record in records {
            match message.add(record, out) {
                Ok(true) => {}
                Ok(false) => break,
                // It is the first of the next message, where it is told.
                Err(_) if message.built.records > 0 => break,
                Err(why) => {
                    out.truncate(begin);
                    return Err(why);
                }
            }
        }
        message.end_set(out);
        encode::patch_length(out, begin, begin + 2);
        message.built.bytes = (out.len() - begin) as u64;
        let is_new = |id: &u16| !known.is_some_and(|of| of.seen.contains(id));
        message.built.has_news = message.built.told.iter().any(is_new);
        Ok(message.built)
    }

    /// A message was sent, the next one of its domain.
    pub fn sent(&mut self, built: &Built) {
        let domain = self.domains.entry(built.domain).or_default();
        domain.sequence = domain.sequence.wrapping_add(built.records as u32);
        domain.told.extend(&built.told);
        domain.seen.extend(&built.told);
        self.messages += 1;
        self.bytes += built.bytes;
        self.connections += built.connections;
    }
}

/// A message that is being made.
struct Message<'e> {
    exporter: &'e Exporter,
    domain: u32,
    /// Where it begins.
    begin: usize,
    /// The set that records are added to: its template, and where it begins.
    set: Option<(u16, usize)>,
    built: Built,
}

impl Message<'_> {
    /// Adds a record; returns whether there was room for it.
    fn add(&mut self, record: &Told<'_>, out: &mut Vec<u8>) -> Result<bool, Untellable> {
        let settings = &self.exporter.settings;
        let mut bytes = Vec::new();
        let (id, groups) = match record {
            Told::Connection(connection) => {
                let groups = Groups::of(connection, settings.is_nanoseconds);
                encode::connection(connection, groups, &mut bytes)?;
                (FIRST_TEMPLATE + groups.0, Some(groups))
            }
            Told::End(end) => {
                encode::end(end, self.domain, self.totals(), &mut bytes);
                (END_TEMPLATE, None)
            }
        };
        let mut template = Vec::new();
        if !self.knows(id) {
            encode::template(id, groups, settings.enterprise, &mut template);
        }
        let head = if self.set.is_some_and(|(of, _)| of == id) { 0 } else { SET_HEADER };
        let used = out.len() - self.begin;
        let is_empty = used == HEADER;
        if used + template.len() + head + bytes.len() <= settings.longest {
            self.tell(id, &template, out);
            self.begin_set(id, out);
            out.extend_from_slice(&bytes);
            self.built.records += 1;
            self.built.connections += u64::from(groups.is_some());
            return Ok(true);
        }
        if HEADER + SET_HEADER + bytes.len() > settings.longest {
            return Err(Untellable::Long);
        }
        // Both fit into a message each.
        if is_empty {
            self.tell(id, &template, out);
        }
        Ok(false)
    }

    fn knows(&self, id: u16) -> bool {
        let known = self.exporter.domains.get(&self.domain);
        self.built.told.contains(&id) || known.is_some_and(|of| of.told.contains(&id))
    }

    /// What was sent before the next record.
    const fn totals(&self) -> [u64; 3] {
        let Exporter { bytes, messages, connections, .. } = self.exporter;
        [*bytes, *messages, *connections + self.built.connections]
    }

    fn tell(&mut self, id: u16, template: &[u8], out: &mut Vec<u8>) {
        if !template.is_empty() {
            self.end_set(out);
            out.extend_from_slice(template);
            self.built.told.push(id);
        }
    }

    fn begin_set(&mut self, id: u16, out: &mut Vec<u8>) {
        if self.set.is_some_and(|(of, _)| of == id) {
            return;
        }
        self.end_set(out);
        self.set = Some((id, out.len()));
        out.extend_from_slice(&id.to_be_bytes());
        out.extend_from_slice(&[0; 2]);
    }

    fn end_set(&mut self, out: &mut [u8]) {
        if let Some((_, begin)) = self.set.take() {
            encode::patch_length(out, begin, begin + 2);
        }
    }
}

#[cfg(test)]
mod tests;
