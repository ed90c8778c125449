//! A mail from its commands, replies and header fields: a row of the log.

use netsniff_packet::{Address, Timestamp};

use super::address;
use crate::log::Smtp;
use crate::protocol::mime::Field;
use crate::protocol::mime::mail::Parts;
use crate::protocol::sasl::Sasl;
use crate::protocol::{Connection, Findings};
use crate::record::Port;

/// Recipients, addressees of either kind and hosts of the path that are told of one mail, as in
/// Zeek (`SMTP::max_rcptto_addresses` and its kin).
const MAX_ADDRESSES: usize = 1_000;

/// A mail that is being sent.
#[derive(Debug)]
pub struct Transaction {
    start: Timestamp,
    depth: u32,
    helo: Option<Box<[u8]>>,
    mailfrom: Option<Box<[u8]>>,
    rcptto: Vec<Box<[u8]>>,
    has_rcptto: bool,
    fields: Fields,
    last_reply: Option<Box<[u8]>>,
    tls: bool,
    parts: Option<Parts>,
    auth: Option<Sasl>,
    /// Whether the client did what makes it a row.
    pub(super) is_begun: bool,
    /// Whether all of its content was sent, so that only the final reply is missing.
    pub(super) is_sent: bool,
}

/// What the header of the mail tells.
#[derive(Debug, Default)]
struct Fields {
    date: Option<Box<[u8]>>,
    from: Option<Box<[u8]>>,
    to: Option<Vec<Box<[u8]>>>,
    cc: Option<Vec<Box<[u8]>>>,
    reply_to: Option<Box<[u8]>>,
    msg_id: Option<Box<[u8]>>,
    in_reply_to: Option<Box<[u8]>>,
    subject: Option<Box<[u8]>>,
    x_originating_ip: Option<Address>,
    first_received: Option<Box<[u8]>>,
    second_received: Option<Box<[u8]>>,
    /// The hosts that the fields Received tell.
    hosts: Vec<Address>,
    user_agent: Option<Box<[u8]>>,
}

impl Transaction {
    /// The `depth`th mail of a connection, of which nothing is known yet but what the client calls
    /// itself and how it proved that.
    pub(super) fn new(
        start: Timestamp,
        depth: u32,
        helo: Option<&[u8]>,
        auth: Option<&Sasl>,
    ) -> Self {
        Self {
            start,
            depth,
            helo: helo.map(Into::into),
            mailfrom: None,
            rcptto: Vec::new(),
            has_rcptto: false,
            fields: Fields::default(),
            last_reply: None,
            tls: false,
            parts: None,
            auth: auth.cloned(),
            is_begun: false,
            is_sent: false,
        }
    }

    /// Takes what the client calls itself.
    pub(super) fn hello(&mut self, name: &[u8]) {
        self.helo = Some(name.into());
    }

    /// Takes how the client proves who it is.
    pub(super) fn authenticate(&mut self, auth: &Sasl) {
        self.auth = Some(auth.clone());
    }

    /// Takes the argument of MAIL.
    pub(super) fn sender(&mut self, argument: &[u8]) {
        self.is_begun = true;
        if let Some(address) = address::mailboxes(argument).into_iter().next() {
            self.mailfrom = Some(address);
        }
    }

    /// Takes the argument of RCPT.
    pub(super) fn recipient(&mut self, argument: &[u8], found: &mut Findings) {
        (self.is_begun, self.has_rcptto) = (true, true);
        for address in address::mailboxes(argument) {
            add(&mut self.rcptto, address, "smtp_too_many_rcptto_addresses", found);
        }
    }

    /// Takes a reply of the server: its code and its last line.
    pub(super) fn reply(&mut self, code: u16, text: &[u8]) {
        self.last_reply = Some([format!("{code} ").as_bytes(), text].concat().into());
    }

    /// Learns that the connection changes to TLS.
    pub(super) const fn start_tls(&mut self) {
        (self.is_begun, self.tls) = (true, true);
    }

    /// Takes what the mail consisted of.
    pub(super) fn content(&mut self, parts: Parts) {
        // As in Zeek, what a gap parted is one row.
        self.parts.get_or_insert_default().append(parts);
    }

    /// Takes a header field of the mail.
    pub(super) fn header(&mut self, header: &Field<'_>, found: &mut Findings) {
        self.fields.take(header, found);
    }

    /// Hands the row of the log to `take`.
    pub fn report<T>(&self, connection: &Connection, take: impl FnOnce(&Smtp<'_>) -> T) -> T {
        let Fields { date, from, to, cc, reply_to, msg_id, in_reply_to, subject, .. } =
            &self.fields;
        let mut path = vec![connection.responder.address, connection.originator.address];
        for &host in &self.fields.hosts {
            if path.last() != Some(&host) {
                path.push(host);
            }
        }
        let parts = self.parts.as_ref();
        take(&Smtp {
            ts: self.start,
            uid: connection.uid,
            id_orig_h: connection.originator.address,
            id_orig_p: Port(connection.originator.port),
            id_resp_h: connection.responder.address,
            id_resp_p: Port(connection.responder.port),
            trans_depth: self.depth,
            helo: self.helo.as_deref(),
            mailfrom: self.mailfrom.as_deref(),
            rcptto: self.has_rcptto.then_some(&*self.rcptto),
            date: date.as_deref(),
            from: from.as_deref(),
            to: to.as_deref(),
            cc: cc.as_deref(),
            reply_to: reply_to.as_deref(),
            msg_id: msg_id.as_deref(),
            in_reply_to: in_reply_to.as_deref(),
            subject: subject.as_deref(),
            x_originating_ip: self.fields.x_originating_ip,
            first_received: self.fields.first_received.as_deref(),
            second_received: self.fields.second_received.as_deref(),
            last_reply: self.last_reply.as_deref(),
            path: &path,
            user_agent: self.fields.user_agent.as_deref(),
            tls: self.tls,
            fuids: parts.map_or(&[], |parts| &parts.fuids),
            parts: parts.map(|parts| parts.count),
            part_types: parts.map(|parts| &*parts.types),
            part_names: parts.map(|parts| &*parts.names),
            auth_mechanism: self.auth.as_ref().and_then(Sasl::mechanism),
            auth_user: self.auth.as_ref().and_then(Sasl::user),
            auth_success: self.auth.as_ref().and_then(Sasl::is_successful),
        })
    }

    /// Bytes that it takes, itself included.
    pub(super) fn heap_bytes(&self) -> usize {
        let texts = [&self.helo, &self.mailfrom, &self.last_reply].into_iter().flatten();
        let texts = texts.chain(&self.rcptto).map(|text| text.len()).sum::<usize>();
        size_of::<Self>()
            + texts
            + self.rcptto.capacity() * size_of::<Box<[u8]>>()
            + self.fields.heap_bytes()
            + self.parts.as_ref().map_or(0, Parts::heap_bytes)
            + self.auth.as_ref().map_or(0, Sasl::heap_bytes)
    }
}

impl Fields {
    /// Takes a field. Of several with one name the last counts, except where all do.
    fn take(&mut self, header: &Field<'_>, found: &mut Findings) {
        let value = header.value;
        if header.is("to") {
            all(&mut self.to, value, "smtp_too_many_to_addresses", found);
        } else if header.is("cc") {
            all(&mut self.cc, value, "smtp_too_many_cc_addresses", found);
        } else if header.is("received") {
            self.received(value, found);
        } else if header.is("x-originating-ip") {
            self.x_originating_ip = address::first_ip_address(value).or(self.x_originating_ip);
        } else if let Some(slot) = self.slot(header) {
            *slot = Some(value.into());
        }
    }

    /// Where the text of a field goes.
    fn slot(&mut self, header: &Field<'_>) -> Option<&mut Option<Box<[u8]>>> {
        let is = |name| header.is(name);
        Some(if is("message-id") {
            &mut self.msg_id
        } else if is("in-reply-to") {
            &mut self.in_reply_to
        } else if is("subject") {
            &mut self.subject
        } else if is("from") {
            &mut self.from
        } else if is("reply-to") {
            &mut self.reply_to
        } else if is("date") {
            &mut self.date
        } else if is("x-mailer") || is("user-agent") || is("x-user-agent") {
            &mut self.user_agent
        } else {
            return None;
        })
    }

    /// Each host on the way puts its field before those that are there.
    fn received(&mut self, value: &[u8], found: &mut Findings) {
        self.second_received = self.first_received.replace(value.into());
        let Some(host) = address::received_from(value) else { return };
        if self.hosts.len() < MAX_ADDRESSES {
            self.hosts.push(host);
        } else {
            found.weirds.add("smtp_max_path_length_exceeded");
        }
    }

    fn heap_bytes(&self) -> usize {
        let lists = || self.to.iter().chain(&self.cc);
        let texts = [&self.date, &self.from, &self.reply_to, &self.msg_id, &self.in_reply_to]
            .into_iter()
            .chain([&self.subject, &self.first_received, &self.second_received])
            .chain([&self.user_agent])
            .flatten();
        texts.chain(lists().flatten()).map(|text| text.len()).sum::<usize>()
            + lists().map(|list| list.capacity() * size_of::<Box<[u8]>>()).sum::<usize>()
            + self.hosts.capacity() * size_of::<Address>()
    }
}

/// Adds the addressees in a header field.
fn all(
    list: &mut Option<Vec<Box<[u8]>>>,
    value: &[u8],
    too_many: &'static str,
    found: &mut Findings,
) {
    let list = list.get_or_insert_default();
    for addressee in address::addressees(value) {
        add(list, addressee.into(), too_many, found);
    }
}

/// Adds an address to a set.
fn add(
    list: &mut Vec<Box<[u8]>>,
    address: Box<[u8]>,
    too_many: &'static str,
    found: &mut Findings,
) {
    // Sorted, since a search through all would take too long for whoever sends the same again and
    // again.
    let Err(at) = list.binary_search(&address) else { return };
    if list.len() < MAX_ADDRESSES {
        list.insert(at, address);
    } else {
        found.weirds.add(too_many);
    }
}
