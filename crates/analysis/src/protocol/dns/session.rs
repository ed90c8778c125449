//! Which reply belongs to which query, as Zeek's `base/protocols/dns/main.zeek` finds out.

use netsniff_packet::Address;

use super::message::{Header, Message};
use super::transaction::Transaction;
use super::{LENGTH_LEN, MAX_QUESTIONS, NETBIOS, OPCODES, UPDATE, rdata};
use crate::correlator::Content;
use crate::protocol::{Bytes, Context, Datagram, Findings, Progress, ProtocolRecord, Session};
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
    /// Port of the responder.
    port: u16,
}

impl DnsSession {
    /// Nothing waits yet.
    pub(super) const fn new(context: &Context<'_>) -> Self {
        Self {
            queries: Vec::new(),
            replies: Vec::new(),
            max_messages: context.limits.pending_messages,
            max_bytes: context.limits.pending_bytes,
            is_confirmed: false,
            port: context.port,
        }
    }

    /// The counterpart that waits for a message, or else a transaction that begins with it.
    fn transaction(&mut self, datagram: &Datagram<'_>, header: Header) -> Option<Transaction> {
        let begun = Transaction::begun(datagram.time, header, datagram.port == NETBIOS)?;
        let waiting = if header.is_response() { &mut self.queries } else { &mut self.replies };
        let counterpart = waiting.iter().position(|waiting| waiting.id == header.id);
        Some(counterpart.map_or(begun, |at| waiting.remove(at)))
    }

    /// Tells a transaction that is complete; another one waits. Once too many wait, all are told:
    /// their counterparts will hardly come any more.
    fn keep(&mut self, transaction: Transaction, found: &mut Findings) {
        if transaction.is_asked && transaction.is_answered {
            found.records.push(ProtocolRecord::Dns(transaction));
            return;
        }
        let waiting = if transaction.is_asked { &mut self.queries } else { &mut self.replies };
        if waiting.len() >= self.max_messages {
            found.records.extend(waiting.drain(..).map(ProtocolRecord::Dns));
        }
        if waiting.is_empty() {
            // Mostly one query waits for its reply, and that is all of the flow.
            waiting.reserve_exact(1);
        }
        waiting.push(transaction);
        if waiting.iter().map(Transaction::heap_bytes).sum::<usize>() > self.max_bytes {
            found.records.extend(waiting.drain(..).map(ProtocolRecord::Dns));
        }
    }
}

impl DnsSession {
    fn message(&mut self, datagram: &Datagram<'_>, found: &mut Findings) {
        let Some(header) = Header::of(datagram.payload) else {
            found.weirds.add("DNS_truncated_len_lt_hdr_len");
            return;
        };
        if datagram.port != NETBIOS && !OPCODES.contains(&header.opcode()) {
            let opcode = Detail::Number(header.opcode().into());
            found.weirds.add_with("DNS_unknown_opcode", opcode);
            return;
        }
        let mut transaction = self.transaction(datagram, header);
        if let Some(transaction) = &mut transaction {
            transaction.header(header);
        }
        let mut addresses = Vec::new();
        let weirds = &mut found.weirds;
        self.is_confirmed |= read(datagram, header, &mut transaction, &mut addresses, weirds);
        if let Some(transaction) = transaction {
            if header.is_success() && !addresses.is_empty() {
                let resolution = transaction.resolution(datagram, addresses);
                found.records.push(ProtocolRecord::Fact(Content::Resolution(Box::new(resolution))));
            }
            self.keep(transaction, found);
        }
    }
}

impl Session for DnsSession {
    fn datagram(&mut self, datagram: &Datagram<'_>, found: &mut Findings) {
        self.message(datagram, found);
    }

    /// Over TCP each message has its length before it (RFC 1035, 4.2.2).
    fn bytes(&mut self, input: &Bytes<'_>, found: &mut Findings) -> Progress {
        let Some((prefix, rest)) = input.data.split_first_chunk::<LENGTH_LEN>() else {
            return Progress::Need(LENGTH_LEN);
        };
        let len = usize::from(u16::from_be_bytes(*prefix));
        let Some(payload) = rest.get(..len) else { return Progress::Need(LENGTH_LEN + len) };
        let Bytes { time, from, .. } = *input;
        self.message(&Datagram { time, from, port: self.port, payload }, found);
        Progress::Consumed(LENGTH_LEN + len)
    }

    fn end(&mut self, found: &mut Findings) {
        let waiting = self.queries.drain(..).chain(self.replies.drain(..));
        found.records.extend(waiting.map(ProtocolRecord::Dns));
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

/// Reads questions and answers into the transaction, and the addresses that the answers tell, as far
/// as they can be read, and tells whether that was all of them.
fn read(
    datagram: &Datagram<'_>,
    header: Header,
    transaction: &mut Option<Transaction>,
    addresses: &mut Vec<Address>,
    weirds: &mut Weirds,
) -> bool {
    let mut message = Message::new(datagram.payload, datagram.port == NETBIOS, weirds);
    if header.questions > MAX_QUESTIONS {
        message.weird("DNS_Conn_count_too_large");
        return false;
    }
    for _ in 0..header.questions {
        let Some(question) = message.question() else { return false };
        if let Some(transaction) = transaction {
            transaction.question(header, &question);
        }
    }
    if header.opcode() == UPDATE && !message.is_netbios() {
        // What follows the zone are no answers (RFC 2136, section 2).
        return true;
    }
    for _ in 0..header.answers {
        let Some(record) = message.resource() else { return false };
        let told = rdata::read(&mut message, &record);
        addresses.extend(told.address);
        if let (Some(transaction), Some(text)) = (transaction.as_mut(), told.text) {
            transaction.answer(datagram.time, header, &record, text);
        }
        if !told.is_sound {
            return false;
        }
    }
    true
}
