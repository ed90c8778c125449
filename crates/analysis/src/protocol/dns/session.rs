//! Which reply belongs to which query: as Zeek's `base/protocols/dns/main.zeek` finds out, and by what
//! both ask about (RFC 5452, section 4.2).

use super::allotment::{Part, allot};
use super::framing::Framing;
use super::message::{DnsMessage, Header};
use super::transaction::{Asked, Transaction};
use super::{LENGTH_LEN, NETBIOS, UPDATE, rdata, recognition, update};
use crate::protocol::{
    Bytes, Datagram, DatagramVerdict, Findings, GapAction, MissingBytes, Progress, Session,
    SessionContext,
};
use crate::weird::{Detail, Weirds};

/// The queries and replies of one flow that wait for their counterparts, in order.
#[derive(Debug)]
pub(super) struct DnsSession {
    queries: Vec<Transaction>,
    replies: Vec<Transaction>,
    /// How many of either may wait.
    max_messages: usize,
    /// How many bytes of text either may have.
    max_bytes: usize,
    is_confirmed: bool,
    /// Whether something came that is no DNS: then only what surely is counts.
    is_mixed: bool,
    /// Whether it goes to a group, where identifiers join nothing (RFC 6762, section 18.1).
    is_multicast: bool,
    messages: u32,
    /// Port of the responder.
    port: u16,
    /// Lengths before messages over TCP (RFC 1035, 4.2.2).
    framing: [Framing; 2],
}

impl DnsSession {
    pub(super) const fn new(context: &SessionContext<'_>) -> Self {
        Self {
            queries: Vec::new(),
            replies: Vec::new(),
            max_messages: context.limits.pending_messages,
            max_bytes: context.limits.pending_bytes,
            is_confirmed: false,
            is_mixed: false,
            is_multicast: context.is_multicast,
            messages: 0,
            port: context.port,
            framing: [Framing::new(); 2],
        }
    }

    /// The counterpart that waits for a message with this question.
    fn counterpart(&mut self, header: Header, asked: &Asked) -> Option<Transaction> {
        if self.is_multicast {
            return None;
        }
        let waiting = if header.is_response() { &mut self.queries } else { &mut self.replies };
        let fits = |it: &Transaction| it.id() == header.id && it.asks(asked);
        waiting.iter().position(fits).map(|at| waiting.remove(at))
    }

    /// All that waits for a message without a question: what came in one message.
    fn counterparts(&mut self, header: Header) -> Vec<Part> {
        if self.is_multicast {
            return Vec::new();
        }
        let waiting = if header.is_response() { &mut self.queries } else { &mut self.replies };
        let Some(first) = waiting.iter().find(|it| it.id() == header.id) else { return Vec::new() };
        let message = first.message;
        waiting.extract_if(.., |it| it.message == message).map(Part::from).collect()
    }

    /// Tells a transaction that is complete; another one waits. Once too many wait, all are told:
    /// their counterparts will hardly come any more.
    fn keep(&mut self, transaction: Transaction, found: &mut Findings) {
        if self.is_multicast || (transaction.is_asked && transaction.is_answered) {
            transaction.report(found);
            return;
        }
        let waiting = if transaction.is_asked { &mut self.queries } else { &mut self.replies };
        if waiting.len() >= self.max_messages {
            waiting.drain(..).for_each(|it| it.report(found));
        }
        if waiting.is_empty() {
            // Mostly one query waits for its reply, and that is all of the flow.
            waiting.reserve_exact(1);
        }
        waiting.push(transaction);
        if waiting.iter().map(Transaction::heap_bytes).sum::<usize>() > self.max_bytes {
            waiting.drain(..).for_each(|it| it.report(found));
        }
    }

    /// Zeek waits for more after one that is too short for a header.
    fn message(&mut self, datagram: &Datagram<'_>, found: &mut Findings) -> DatagramVerdict {
        let Some(header) = Header::of(datagram.payload) else {
            found.weirds.add("DNS_truncated_len_lt_hdr_len");
            return DatagramVerdict::Fits;
        };
        let verdict = header.verdict(datagram.port);
        let is_doubtful = self.is_mixed && datagram.port != NETBIOS;
        match verdict {
            DatagramVerdict::Contradicts => {
                if !self.is_mixed {
                    found.weirds.add("DNS_Conn_count_too_large");
                }
                self.is_mixed = true;
            }
            _ if is_doubtful && !is_sure(datagram.payload) => {}
            DatagramVerdict::Unknown => {
                let opcode = Detail::Number(header.opcode().into());
                found.weirds.add_with("DNS_unknown_opcode", opcode);
            }
            DatagramVerdict::Fits => self.transactions(datagram, header, found),
        }
        verdict
    }

    /// Tells the transactions that a message completes, and keeps those that it begins.
    fn transactions(&mut self, datagram: &Datagram<'_>, header: Header, found: &mut Findings) {
        self.messages = self.messages.wrapping_add(1);
        let parts = self.read(datagram, header, &mut found.weirds);
        for Part { transaction, addresses, .. } in parts {
            if header.is_success() && !addresses.is_empty() {
                found.fact(transaction.resolution(datagram, addresses));
            }
            self.keep(transaction, found);
        }
    }

    /// Reads a message into the transactions that it belongs to, as far as it can be read.
    fn read(&mut self, datagram: &Datagram<'_>, header: Header, weirds: &mut Weirds) -> Vec<Part> {
        let is_netbios = datagram.port == NETBIOS;
        let begin = |messages| Transaction::begun(datagram.time, messages, header, is_netbios);
        let mut message = DnsMessage::new(datagram.payload, is_netbios, weirds);
        let mut parts: Vec<Part> = Vec::new();
        let mut is_whole = true;
        for _ in 0..header.questions {
            let Some(question) = message.question() else {
                is_whole = false;
                break;
            };
            let asked = Asked::new(&question, is_netbios);
            let counterpart = self.counterpart(header, &asked);
            let Some(mut transaction) = counterpart.or_else(|| begin(self.messages)) else {
                continue;
            };
            transaction.question(header, asked);
            parts.push(transaction.into());
        }
        if parts.is_empty() {
            parts = self.counterparts(header);
        }
        if parts.is_empty() {
            parts.extend(begin(self.messages).map(Part::from));
        }
        for part in &mut parts {
            part.transaction.header(datagram.time, header);
        }
        let alone = || {
            let mut transaction = begin(self.messages)?;
            transaction.header(datagram.time, header);
            Some(transaction)
        };
        let is_read = is_whole
            && if header.opcode() == UPDATE && !is_netbios {
                update::read(&mut message, header, &mut parts)
            } else {
                answers(&mut message, datagram, header, &mut parts, alone)
            };
        self.is_confirmed |= is_read;
        parts
    }
}

impl Session for DnsSession {
    fn datagram(&mut self, datagram: &Datagram<'_>, found: &mut Findings) -> DatagramVerdict {
        self.message(datagram, found)
    }

    fn bytes(&mut self, input: &Bytes<'_>, found: &mut Findings) -> Progress {
        let Bytes { time, from, data } = *input;
        let payload = match self.framing[from.index()].message(data) {
            Ok(payload) => payload,
            Err(progress) => return progress,
        };
        self.message(&Datagram { time, from, port: self.port, payload }, found);
        Progress::Consumed(LENGTH_LEN + payload.len())
    }

    /// Of one side: the other goes on.
    fn gap(&mut self, gap: &MissingBytes<'_>, _: &mut Findings) -> GapAction {
        self.framing[gap.from.index()].gap(gap.unread, gap.len);
        GapAction::Continue
    }

    fn end(&mut self, found: &mut Findings) {
        let waiting = self.queries.drain(..).chain(self.replies.drain(..));
        waiting.for_each(|it| it.report(found));
    }

    fn is_confirmed(&self) -> bool {
        self.is_confirmed
    }

    fn heap_bytes(&self) -> usize {
        let waiting = self.queries.iter().chain(&self.replies);
        size_of::<Self>()
            + (self.queries.capacity() + self.replies.capacity()) * size_of::<Transaction>()
            + waiting.map(Transaction::heap_bytes).sum::<usize>()
    }
}

/// Whether it is a message for sure, also one that refuses what the server could not read.
fn is_sure(payload: &[u8]) -> bool {
    recognition::is_message(payload) || recognition::is_bare_reply(payload)
}

/// Reads the answers into the transactions, and tells whether that was all of them.
fn answers(
    message: &mut DnsMessage<'_>,
    datagram: &Datagram<'_>,
    header: Header,
    parts: &mut Vec<Part>,
    alone: impl Fn() -> Option<Transaction>,
) -> bool {
    for _ in 0..header.answers {
        let Some(record) = message.resource() else { return false };
        let told = rdata::read(message, &record);
        let is_sound = told.is_sound;
        allot(parts, datagram.time, header, &record, told, &alone);
        if !is_sound {
            return false;
        }
    }
    true
}
