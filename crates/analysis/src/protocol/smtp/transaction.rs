//! A mail from its commands, replies and header fields: a row of the log.

use netsniff_packet::{Address, Timestamp};

use super::address;
use super::log::Smtp;
use crate::protocol::Findings;
use crate::protocol::mime::Field;
use crate::protocol::mime::mail::Parts;
use crate::protocol::syntax::sasl::{LogIn, LoggedIn};

/// Recipients, addressees of either kind and hosts of the path that are told of one mail, as in
/// Zeek (`SMTP::max_rcptto_addresses` and its kin).
const MAX_ADDRESSES: usize = 1_000;

/// A mail that is being sent.
#[derive(Debug)]
pub(super) struct Transaction {
    /// The row of the log, as far as it is known.
    row: Smtp,
    parts: Option<Parts>,
    /// How the client proves who it is.
    pub(super) log_in: LogIn,
    /// Whether the client did what makes it a row.
    pub(super) is_begun: bool,
    /// Whether all of its content was sent, so that only the final reply is missing.
    pub(super) is_sent: bool,
    /// Whether that reply may be among those that are missing.
    pub(super) is_given_up: bool,
}

impl Transaction {
    /// The `depth`th mail of a connection, of which nothing is known yet but what the client calls
    /// itself and how it proved that.
    pub(super) fn new(start: Timestamp, depth: u32, helo: Option<&[u8]>, log_in: &LogIn) -> Self {
        let helo = helo.map(Into::into);
        Self {
            row: Smtp { ts: start, trans_depth: depth, helo, ..Smtp::default() },
            parts: None,
            log_in: log_in.clone(),
            is_begun: false,
            is_sent: false,
            is_given_up: false,
        }
    }

    /// Takes what the client calls itself.
    pub(super) fn hello(&mut self, name: &[u8]) {
        self.row.helo = Some(name.into());
    }

    /// Takes the argument of MAIL.
    pub(super) fn sender(&mut self, argument: &[u8]) {
        self.is_begun = true;
        if let Some(address) = address::mailboxes(argument).into_iter().next() {
            self.row.mailfrom = Some(address);
        }
    }

    /// Takes the argument of RCPT.
    pub(super) fn recipient(&mut self, argument: &[u8], found: &mut Findings) {
        self.is_begun = true;
        let recipients = self.row.rcptto.get_or_insert_default();
        for address in address::mailboxes(argument) {
            add(recipients, address, "smtp_too_many_rcptto_addresses", found);
        }
    }

    /// Takes a reply of the server: its code and its last line.
    pub(super) fn reply(&mut self, code: u16, text: &[u8]) {
        // Codes have three digits (RFC 5321, 4.2).
        let [a, b, c] = [code / 100, code / 10 % 10, code % 10].map(|digit| b'0' + digit as u8);
        self.row.last_reply = Some([&[a, b, c, b' '], text].concat().into());
    }

    /// Learns that the connection changes to TLS.
    pub(super) const fn start_tls(&mut self) {
        (self.is_begun, self.row.tls) = (true, true);
    }

    /// Takes what the mail consisted of.
    pub(super) fn content(&mut self, parts: Parts) {
        // As in Zeek, what a gap parted is one row.
        self.parts.get_or_insert_default().append(parts);
    }

    /// Takes a header field of the mail.
    pub(super) fn header(&mut self, header: &Field<'_>, found: &mut Findings) {
        self.row.take(header, found);
    }

    /// The row of the log.
    pub(super) fn into_row(self) -> Smtp {
        let Self { mut row, parts, log_in, .. } = self;
        if let Some(Parts { count, types, names, fuids }) = parts {
            (row.parts, row.fuids) = (Some(count), fuids);
            (row.part_types, row.part_names) = (Some(types), Some(names));
        }
        let LoggedIn { user, mechanism, is_successful, .. } = log_in.logged_in();
        (row.auth_user, row.auth_mechanism, row.auth_success) = (user, mechanism, is_successful);
        row
    }

    /// Bytes that it takes, itself included.
    pub(super) fn heap_bytes(&self) -> usize {
        size_of::<Self>()
            + self.row.heap_bytes()
            + self.parts.as_ref().map_or(0, Parts::heap_bytes)
            + self.log_in.heap_bytes()
    }
}

impl Smtp {
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
        if self.path.len() < MAX_ADDRESSES {
            self.path.push(host);
        } else {
            found.weirds.add("smtp_max_path_length_exceeded");
        }
    }

    fn heap_bytes(&self) -> usize {
        let lists = || self.rcptto.iter().chain(&self.to).chain(&self.cc);
        let texts = [&self.date, &self.from, &self.reply_to, &self.msg_id, &self.in_reply_to]
            .into_iter()
            .chain([&self.subject, &self.first_received, &self.second_received])
            .chain([&self.user_agent, &self.helo, &self.mailfrom, &self.last_reply])
            .flatten();
        texts.chain(lists().flatten()).map(|text| text.len()).sum::<usize>()
            + lists().map(|list| list.capacity() * size_of::<Box<[u8]>>()).sum::<usize>()
            + self.path.capacity() * size_of::<Address>()
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
