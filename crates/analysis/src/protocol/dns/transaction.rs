//! A question with its answer: a row of the log.

use netsniff_packet::{Address, Timestamp};

use super::message::{Header, Question, Resource};
use super::resolution::Resolution;
use super::{NETBIOS, OPCODES, UPDATE, names, netbios};
use crate::log::Dns;
use crate::protocol::{Connection, Datagram};
use crate::record::{Interval, Port};

/// QTYPE of SRV, which is older than SRV in NetBIOS and asks for the state of a node there
/// (RFC 1002, 4.2.17).
const SRV: u16 = 33;

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
pub struct Transaction {
    /// Time of its first message.
    start: Timestamp,
    /// Identifier of both messages.
    pub(super) id: u16,
    opcode: u8,
    is_netbios: bool,
    /// Whether the query was seen.
    pub(super) is_asked: bool,
    /// Whether the reply was seen.
    pub(super) is_answered: bool,
    rtt: Option<Interval>,
    /// The message that it began with, by its number within the flow.
    pub(super) message: u32,
    query: Option<Box<[u8]>>,
    class_and_kind: Option<[u16; 2]>,
    /// Whether its name, type and class stand in a query, or in a reply that is alone and has nothing
    /// else that tells them.
    is_question_told: bool,
    /// What the first record of an update is about.
    subject: Option<Box<[u8]>>,
    /// Whether a reply told what was changed, where anything did.
    changes_are_of_reply: Option<bool>,
    rcode: Option<u8>,
    /// Z of the query.
    z: u8,
    /// TC and RD of the query.
    asked: [bool; 2],
    /// AA and RA of the reply.
    answered: [bool; 2],
    is_rejected: bool,
    /// Whether a record of a reply was told.
    has_records: bool,
    answers: Vec<Box<[u8]>>,
    ttls: Vec<Interval>,
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
            start,
            message,
            id: header.id,
            opcode: header.opcode(),
            is_netbios,
            is_asked: false,
            is_answered: false,
            rtt: None,
            query: None,
            class_and_kind: None,
            is_question_told: false,
            subject: None,
            changes_are_of_reply: None,
            rcode: None,
            z: 0,
            asked: [false; 2],
            answered: [false; 2],
            is_rejected: false,
            has_records: false,
            answers: Vec::new(),
            ttls: Vec::new(),
        })
    }

    /// Takes the header of one of its messages, seen at `time`.
    pub(super) fn header(&mut self, time: Timestamp, header: Header) {
        self.opcode = header.opcode();
        if header.is_response() {
            self.is_answered = true;
            self.rcode = Some(header.rcode());
            self.is_rejected |= header.rcode() != 0 && header.questions == 0;
            if self.is_update() {
                self.note_rtt(time);
            }
        } else {
            self.is_asked = true;
        }
    }

    const fn is_update(&self) -> bool {
        self.opcode == UPDATE && !self.is_netbios
    }

    fn note_rtt(&mut self, time: Timestamp) {
        if self.rtt.is_none() {
            let rtt = Interval::in_micros(self.start, time);
            self.rtt = (rtt.nanos() > 0).then_some(rtt);
        }
    }

    /// Takes a question of one of its messages.
    pub(super) fn question(&mut self, header: Header, asked: Asked) {
        if header.is_response() {
            self.is_rejected |= header.has_no_records();
            self.is_question_told |= header.questions > 1;
        } else {
            self.asked = [header.is_truncated(), header.wants_recursion()];
            self.z = header.z();
            self.is_question_told = true;
        }
        if !header.is_response() || self.query.is_none() {
            self.class_and_kind = Some([asked.class, asked.kind]);
            self.query = Some(asked.name);
        }
    }

    /// Whether a message with this question may belong to it. Multicast DNS has a bit of its own in
    /// the class.
    pub(super) fn asks(&self, asked: &Asked) -> bool {
        match (&self.query, self.class_and_kind) {
            (Some(name), Some([class, kind])) => {
                *name == asked.name && kind == asked.kind && (class ^ asked.class) & 0x7fff == 0
            }
            _ => true,
        }
    }

    /// The name that is asked about, and the type.
    pub(super) fn asked(&self) -> Option<(&[u8], u16)> {
        Some((self.query.as_deref()?, self.class_and_kind?[1]))
    }

    /// Takes what a message at `time` says that is to be changed about `name`. The reply may repeat
    /// it, and is then not told again.
    pub(super) fn change(&mut self, header: Header, name: &[u8], ttl: u32, text: Vec<u8>) {
        if *self.changes_are_of_reply.get_or_insert(header.is_response()) != header.is_response() {
            return;
        }
        self.subject.get_or_insert_with(|| name.into());
        self.tell(ttl, text);
    }

    fn tell(&mut self, ttl: u32, text: Vec<u8>) {
        self.answers.push(text.into_boxed_slice());
        self.ttls.push(Interval::from_nanos(i64::from(ttl) * 1_000_000_000));
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
        if self.query.is_none() {
            self.query = Some(record.name.as_bytes().into());
        }
        self.answered = [header.is_authoritative(), header.offers_recursion()];
        self.has_records = true;
        self.note_rtt(time);
        if !text.is_empty() {
            self.tell(record.ttl, text);
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
            name: self.query.clone().unwrap_or_default(),
            addresses,
            lifetime: self.ttls.iter().copied().min().unwrap_or_default(),
            rtt: self.rtt,
        }
    }

    /// Whether the row has type and class. As in Zeek it has them not where a reply alone has records
    /// that tell the name, nor for an update, whose question is the zone.
    const fn tells_question(&self) -> bool {
        !self.is_update() && (self.is_question_told || !self.has_records)
    }

    /// Bytes that it holds outside itself.
    pub(super) fn heap_bytes(&self) -> usize {
        let names = [&self.query, &self.subject].into_iter().flatten();
        let texts = self.answers.iter().chain(names).map(|text| text.len()).sum::<usize>();
        texts
            + self.answers.capacity() * size_of::<Box<[u8]>>()
            + self.ttls.capacity() * size_of::<Interval>()
    }

    /// Hands the row of the log to `take`.
    pub fn report<T>(&self, connection: &Connection, take: impl FnOnce(&Dns<'_>) -> T) -> T {
        let [class, kind] = match self.class_and_kind {
            Some([class, kind]) if self.tells_question() => [Some(class), Some(kind)],
            _ => [None; 2],
        };
        let unnamed_class = class.map(|class| format!("qclass-{class}"));
        let unnamed_kind = kind.map(|kind| format!("query-{kind}"));
        let kind_name = match kind {
            Some(SRV) if connection.responder.port == NETBIOS => Some("NBSTAT"),
            kind => kind.and_then(names::query_type),
        };
        take(&Dns {
            ts: self.start,
            uid: connection.uid,
            id_orig_h: connection.originator.address,
            id_orig_p: Port(connection.originator.port),
            id_resp_h: connection.responder.address,
            id_resp_p: Port(connection.responder.port),
            proto: connection.proto,
            trans_id: self.id,
            rtt: self.rtt,
            query: self.subject.as_deref().or(self.query.as_deref()),
            qclass: class,
            qclass_name: class.and_then(names::class).or(unnamed_class.as_deref()),
            qtype: kind,
            qtype_name: kind_name.or(unnamed_kind.as_deref()),
            rcode: self.rcode,
            rcode_name: self.rcode.map(names::response_code),
            aa: self.answered[0],
            tc: self.asked[0],
            rd: self.asked[1],
            ra: self.answered[1],
            z: self.z,
            answers: (!self.answers.is_empty()).then_some(&*self.answers),
            ttls: (!self.ttls.is_empty()).then_some(&*self.ttls),
            rejected: self.is_rejected,
            opcode: self.opcode,
            opcode_name: names::opcode(self.opcode, self.is_netbios),
        })
    }
}
