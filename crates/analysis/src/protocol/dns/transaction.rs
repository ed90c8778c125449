//! A question with its answer: a row of the log.

use std::borrow::Cow;

use netsniff_packet::{Address, Timestamp};

use super::log::Dns;
use super::message::{Header, Question, Resource};
use super::resolution::Resolution;
use super::{OPCODES, UPDATE, names, netbios};
use crate::protocol::Datagram;
use crate::protocol::Findings;
use crate::record::{Interval, Proto, UnsetIfEmpty};
use crate::series::Failure;

/// What a message asks about.
#[derive(Debug)]
pub(super) struct Asked {
    name: Box<[u8]>,
    kind: u16,
    class: u16,
}

impl Asked {
    /// The question as it is told: NetBIOS names are decoded.
    pub(super) fn new(question: &Question, is_netbios: bool) -> Self {
        let name = question.name.as_bytes();
        let decoded = if is_netbios { netbios::decode(name) } else { None };
        let decoded = decoded.filter(|decoded| !decoded.is_empty());
        let name = decoded.map_or_else(|| name.into(), Vec::into_boxed_slice);
        Self { name, kind: question.kind, class: question.class }
    }
}

/// A query with its reply, or one of them.
#[derive(Debug)]
pub(super) struct Transaction {
    /// The row of the log, as far as it is known.
    row: Dns,
    is_netbios: bool,
    /// Whether the query was seen.
    pub(super) is_asked: bool,
    /// Whether the reply was seen.
    pub(super) is_answered: bool,
    /// The message that it began with, by its number within the flow.
    pub(super) message: u32,
    class_and_kind: Option<[u16; 2]>,
    /// Whether its name, type and class stand in a query, or in a reply that is alone and has nothing
    /// else that tells them.
    is_question_told: bool,
    /// What the first record of an update is about.
    subject: Option<Box<[u8]>>,
    /// Whether a reply told what was changed, where anything did.
    changes_are_of_reply: Option<bool>,
    /// Whether a record of a reply was told.
    has_records: bool,
}

impl Transaction {
    /// A transaction whose first message has this header; `None` for a kind of query that is not
    /// followed.
    pub(super) fn begun(
        start: Timestamp,
        message: u32,
        header: Header,
        is_netbios: bool,
    ) -> Option<Self> {
        OPCODES.contains(&header.opcode()).then(|| Self {
            row: Dns {
                ts: start,
                proto: Proto::Unknown,
                trans_id: header.id,
                rtt: None,
                query: None,
                qclass: None,
                qclass_name: None,
                qtype: None,
                qtype_name: None,
                rcode: None,
                rcode_name: None,
                aa: false,
                tc: false,
                rd: false,
                ra: false,
                z: 0,
                answers: UnsetIfEmpty::default(),
                ttls: UnsetIfEmpty::default(),
                rejected: false,
                opcode: header.opcode(),
                opcode_name: "",
            },
            message,
            is_netbios,
            is_asked: false,
            is_answered: false,
            class_and_kind: None,
            is_question_told: false,
            subject: None,
            changes_are_of_reply: None,
            has_records: false,
        })
    }

    /// Identifier of both messages.
    pub(super) const fn id(&self) -> u16 {
        self.row.trans_id
    }

    /// Takes the header of one of its messages, seen at `time`.
    pub(super) fn header(&mut self, time: Timestamp, header: Header) {
        self.row.opcode = header.opcode();
        if header.is_response() {
            self.is_answered = true;
            self.row.rcode = Some(header.rcode());
            self.row.rejected |= header.rcode() != 0 && header.questions == 0;
            if self.is_update() {
                self.note_rtt(time);
            }
        } else {
            self.is_asked = true;
        }
    }

    const fn is_update(&self) -> bool {
        self.row.opcode == UPDATE && !self.is_netbios
    }

    fn note_rtt(&mut self, time: Timestamp) {
        if self.row.rtt.is_none() {
            let rtt = Interval::in_micros(self.row.ts, time);
            self.row.rtt = (rtt.nanos() > 0).then_some(rtt);
        }
    }

    /// Takes a question of one of its messages.
    pub(super) fn question(&mut self, header: Header, asked: Asked) {
        if header.is_response() {
            self.row.rejected |= header.has_no_records();
            self.is_question_told |= header.questions > 1;
        } else {
            self.row.tc = header.is_truncated();
            self.row.rd = header.wants_recursion();
            self.row.z = header.z();
            self.is_question_told = true;
        }
        if !header.is_response() || self.row.query.is_none() {
            self.class_and_kind = Some([asked.class, asked.kind]);
            self.row.query = Some(asked.name);
        }
    }

    /// Whether a message with this question may belong to it. Multicast DNS has a bit of its own in
    /// the class.
    pub(super) fn asks(&self, asked: &Asked) -> bool {
        match (&self.row.query, self.class_and_kind) {
            (Some(name), Some([class, kind])) => {
                *name == asked.name && kind == asked.kind && (class ^ asked.class) & 0x7fff == 0
            }
            _ => true,
        }
    }

    /// The name that is asked about, and the type.
    pub(super) fn asked(&self) -> Option<(&[u8], u16)> {
        Some((self.row.query.as_deref()?, self.class_and_kind?[1]))
    }

    /// Takes what a message at `time` says that is to be changed about `name`. The reply may repeat
    /// it, and is then not told again.
    pub(super) fn change(&mut self, header: Header, name: &[u8], ttl: u32, text: Vec<u8>) {
        if *self.changes_are_of_reply.get_or_insert(header.is_response()) != header.is_response() {
            return;
        }
        self.subject.get_or_insert_with(|| name.into());
        self.push_answer(ttl, text);
    }

    fn push_answer(&mut self, ttl: u32, text: Vec<u8>) {
        self.row.answers.0.push(text.into_boxed_slice());
        self.row.ttls.0.push(Interval::from_nanos(i64::from(ttl) * 1_000_000_000));
    }

    /// Takes a record of the answer section of a message at `time`. What a query brings along
    /// answers nothing.
    pub(super) fn answer(
        &mut self,
        time: Timestamp,
        header: Header,
        record: &Resource,
        text: Vec<u8>,
    ) {
        if !header.is_response() {
            return;
        }
        if self.row.query.is_none() {
            self.row.query = Some(record.name.as_bytes().into());
        }
        self.row.aa = header.is_authoritative();
        self.row.ra = header.offers_recursion();
        self.has_records = true;
        self.note_rtt(time);
        if !text.is_empty() {
            self.push_answer(record.ttl, text);
        }
    }

    /// What the reply in `datagram` tells of the name that was asked about.
    pub(super) fn resolution(
        &self,
        datagram: &Datagram<'_>,
        addresses: Vec<Address>,
    ) -> Resolution {
        Resolution {
            time: datagram.time,
            client: datagram.from.peer(),
            name: self.row.query.clone().unwrap_or_default(),
            addresses,
            lifetime: self.row.ttls.0.iter().copied().min().unwrap_or_default(),
            rtt: self.row.rtt,
        }
    }

    /// Whether the row has type and class. As in Zeek it has them not where a reply alone has records
    /// that tell the name, nor for an update, whose question is the zone.
    const fn has_question(&self) -> bool {
        !self.is_update() && (self.is_question_told || !self.has_records)
    }

    /// Bytes that it holds outside itself.
    pub(super) fn heap_bytes(&self) -> usize {
        let names = [&self.row.query, &self.subject].into_iter().flatten();
        let texts = self.row.answers.0.iter().chain(names).map(|text| text.len()).sum::<usize>();
        texts
            + self.row.answers.0.capacity() * size_of::<Box<[u8]>>()
            + self.row.ttls.0.capacity() * size_of::<Interval>()
    }

    /// Tells it.
    pub(super) fn report(self, found: &mut Findings) {
        let row = self.into_row();
        match row.rcode {
            Some(0) => {}
            Some(_) => found.failures.push((row.ts, Failure::DnsError)),
            None => found.failures.push((row.ts, Failure::DnsUnanswered)),
        }
        found.row(row);
    }

    /// The row of the log.
    fn into_row(self) -> Dns {
        let has_question = self.has_question();
        let Self { mut row, is_netbios, .. } = self;
        if let Some([class, kind]) = self.class_and_kind
            && has_question
        {
            row.qclass = Some(class);
            row.qclass_name = Some(named(names::class(class), || format!("qclass-{class}")));
            row.qtype = Some(kind);
            row.qtype_name = Some(named(names::query_type(kind), || format!("query-{kind}")));
        }
        row.query = self.subject.or(row.query);
        row.rcode_name = row.rcode.map(names::response_code);
        row.opcode_name = names::opcode(row.opcode, is_netbios);
        row
    }
}

/// A name, or what stands in its place.
fn named(name: Option<&'static str>, unnamed: impl FnOnce() -> String) -> Cow<'static, str> {
    name.map_or_else(|| Cow::Owned(unnamed()), Cow::Borrowed)
}
