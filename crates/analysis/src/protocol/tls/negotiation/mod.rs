//! What client and server agree on, message by message, as Zeek's `base/protocols/ssl/main.zeek`
//! finds it out. TLS, DTLS and QUIC share it.

mod chain;

use std::borrow::Cow;

use netsniff_packet::Timestamp;

use super::ciphers;
use super::fingerprint::Carrier;
use super::handshake::HandshakeMessage;
use super::hello::{ClientHello, PRE_SHARED_KEY, SESSION_TICKET, ServerHello, Ssl2ServerHello};
use super::known::TlsCache;
use super::names::{self, DTLS10, DTLS12, SSL2, SSL3, TLS10, TLS11, TLS12, TLS13};
use super::reader::Reader;
use super::ssl_log::Ssl;
use crate::protocol::file_transfer;
use crate::protocol::session::Role;
use crate::protocol::session::findings::Findings;

/// `named_curve`, RFC 8422 section 5.4.
const NAMED_CURVE: u8 = 3;

/// Why a conversation is no TLS, or none that can be read any further: the name of the oddity.
pub(in crate::protocol) type Unreadable = &'static str;

/// A negotiation and what was seen of it.
#[derive(Debug)]
pub(in crate::protocol) struct Negotiation {
    carrier: Carrier,
    /// The flow as a carrier of files, if these are wanted.
    files: Option<file_transfer::Carrier>,
    /// Replies of OCSP that came.
    staples: u64,
    /// The row, which is told once.
    row: Box<Ssl>,
    is_begun: bool,
    is_told: bool,
    is_confirmed: bool,
    /// Whether the client is the responder.
    is_flipped: bool,
    has_unclear_direction: bool,
    /// The identifier of the session that the client offers to resume, in the 32 octets that Zeek
    /// compares.
    session_id: Option<[u8; 32]>,
    has_ticket_without_session: bool,
    has_client_key_exchange: bool,
    offers_psk: bool,
    has_early_data: bool,
    /// The version that was chosen first, and the one that the row tells.
    version: Option<u16>,
    told_version: Option<u16>,
    cipher: Option<u32>,
}

/// Who sent something, and when.
#[derive(Clone, Copy, Debug)]
pub(in crate::protocol) struct Sender {
    pub(in crate::protocol) from: Role,
    /// When it was complete.
    pub(in crate::protocol) time: Timestamp,
}

impl Negotiation {
    /// Nothing was said yet, in a flow that carries files if they are wanted.
    pub(in crate::protocol) fn new(
        carrier: Carrier,
        files: Option<file_transfer::Carrier>,
    ) -> Self {
        Self {
            carrier,
            files,
            staples: 0,
            row: Box::default(),
            is_begun: false,
            is_told: false,
            is_confirmed: false,
            is_flipped: false,
            has_unclear_direction: false,
            session_id: None,
            has_ticket_without_session: false,
            has_client_key_exchange: false,
            offers_psk: false,
            has_early_data: false,
            version: None,
            told_version: None,
            cipher: None,
        }
    }

    /// Whether a hello was seen.
    pub(in crate::protocol) const fn is_confirmed(&self) -> bool {
        self.is_confirmed
    }

    /// Whether its row was told.
    pub(in crate::protocol) const fn is_reported(&self) -> bool {
        self.is_told
    }

    /// The version that the server chose.
    pub(in crate::protocol) const fn version(&self) -> Option<u16> {
        self.version
    }

    /// JA4 of the client.
    pub(in crate::protocol) fn ja4(&self) -> Option<&str> {
        self.row.ja4.as_deref()
    }

    /// Bytes that it holds outside itself.
    pub(in crate::protocol) fn heap_bytes(&self) -> usize {
        size_of::<Ssl>() + self.row.heap_bytes()
    }

    /// Notes that a record was seen, of which the first begins the row.
    pub(in crate::protocol) const fn begin(&mut self, time: Timestamp) {
        if !self.is_begun {
            self.is_begun = true;
            self.row.ts = time;
        }
    }

    /// Takes a handshake message.
    pub(in crate::protocol) fn message(
        &mut self,
        sender: Sender,
        message: HandshakeMessage<'_>,
        found: &mut Findings,
    ) -> Result<(), Unreadable> {
        self.begin(sender.time);
        let mut letter = letter(message.kind).ok_or("SSL_unknown_handshake_message")?;
        if message.body.is_none() {
            found.weirds.add("SSL_handshake_message_too_long");
        }
        let body = message.body.unwrap_or_default();
        match message.kind {
            1 => self.client_hello(sender, body, found)?,
            2 => letter = if self.server_hello(sender, body, found)? { b'j' } else { letter },
            11 => self.certificates(sender, body, found)?,
            12 => self.server_key_exchange(body),
            22 => self.certificate_status(sender, body, found),
            16 => self.has_client_key_exchange |= self.is_client(sender.from),
            _ => {}
        }
        self.letter(sender.from, letter, found);
        Ok(())
    }

    /// Takes the ClientHello of SSL 2, which offers a version.
    pub(super) fn ssl2_client_hello(&mut self, sender: Sender, found: &mut Findings) {
        self.begin(sender.time);
        self.is_confirmed = true;
        self.row.push_letter(b'C', found);
    }

    /// Takes the ServerHello of SSL 2.
    pub(super) fn ssl2_server_hello(
        &mut self,
        sender: Sender,
        hello: &Ssl2ServerHello<'_>,
        found: &mut Findings,
    ) -> Result<(), Unreadable> {
        if hello.version != SSL2 {
            return Err("SSL_invalid_server_hello");
        }
        self.begin(sender.time);
        self.is_confirmed = true;
        self.choose_version(hello.version);
        self.choose_cipher(hello.cipher);
        self.row.push_letter(b's', found);
        self.certificate(sender, hello.certificate, true, found);
        Ok(())
    }

    /// Takes a `ChangeCipherSpec`, behind which records are encrypted.
    pub(in crate::protocol) fn change_cipher_spec(&mut self, sender: Sender, found: &mut Findings) {
        self.begin(sender.time);
        self.letter(sender.from, b'i', found);
        let is_client = self.is_client(sender.from);
        if is_client && self.has_ticket_without_session && !self.has_client_key_exchange {
            self.row.resumed = true;
        }
    }

    /// Takes an alert with this description.
    pub(in crate::protocol) fn alert(
        &mut self,
        sender: Sender,
        description: u16,
        found: &mut Findings,
    ) {
        self.begin(sender.time);
        self.letter(sender.from, b'l', found);
        self.row.last_alert = Some(names::alert(description));
    }

    /// Takes a heartbeat, RFC 6520.
    pub(in crate::protocol) fn heartbeat(&mut self, sender: Sender, found: &mut Findings) {
        self.begin(sender.time);
        self.letter(sender.from, b'b', found);
    }

    /// Takes data of the application that came before the handshake was done.
    pub(in crate::protocol) fn early_data(&mut self, sender: Sender, found: &mut Findings) {
        self.begin(sender.time);
        if self.told_version.is_some() && !self.has_early_data {
            self.has_early_data = true;
            found.weirds.add("ssl_early_application_data");
        }
    }

    /// Learns that both sides have sent something encrypted, with which the row is complete.
    pub(in crate::protocol) fn establish(&mut self, sender: Sender, found: &mut Findings) {
        self.begin(sender.time);
        self.row.established = true;
        self.report(found);
    }

    /// Tells the row, once, if anything was said.
    pub(in crate::protocol) fn report(&mut self, found: &mut Findings) {
        if self.is_begun && !self.is_told {
            self.is_told = true;
            let mut row = core::mem::take(&mut self.row);
            row.version = self.told_version.map(names::version);
            row.report(found);
        }
    }

    /// Whether a side is the client.
    fn is_client(&self, from: Role) -> bool {
        (from == Role::Originator) != self.is_flipped
    }

    /// Adds a letter to the history: in upper case for the client.
    fn letter(&mut self, from: Role, letter: u8, found: &mut Findings) {
        let is_client = self.is_client(from);
        let letter = if is_client { letter.to_ascii_uppercase() } else { letter };
        self.row.push_letter(letter, found);
    }

    /// Notes who the client is, which a hello shows.
    fn direct(&mut self, from: Role, is_client: bool, found: &mut Findings) {
        if self.is_client(from) == is_client {
            return;
        }
        let goes_back = self.is_flipped;
        self.is_flipped = !self.is_flipped;
        self.row.push_letter(b'^', found);
        if goes_back && !self.has_unclear_direction {
            self.has_unclear_direction = true;
            found.weirds.add("SSL_unclear_connection_direction");
        }
    }

    fn client_hello(
        &mut self,
        sender: Sender,
        body: &[u8],
        found: &mut Findings,
    ) -> Result<(), Unreadable> {
        let has_cookie = self.carrier == Carrier::Dtls;
        let hello = ClientHello::of(body, has_cookie).ok_or("SSL_invalid_client_hello")?;
        if !is_known(hello.version) {
            return Err("SSL_unsupported_version");
        }
        self.direct(sender.from, true, found);
        self.is_confirmed = true;
        let extensions = hello.extensions;
        let ticket = extensions.get(SESSION_TICKET);
        self.has_ticket_without_session |= ticket.is_some_and(|ticket| !ticket.is_empty());
        self.offers_psk |= extensions.get(PRE_SHARED_KEY).is_some();
        if let Some((name, count)) = hello.server_name() {
            self.row.server_name = Some(name.into());
            if count > 1 {
                found.weirds.add("SSL_many_server_names");
            }
        }
        let session_id = padded(hello.session_id);
        if session_id != [0; 32] {
            self.session_id = Some(session_id);
            self.has_ticket_without_session = false;
        }
        if self.row.ja3.is_none() {
            let print = found.caches.of::<TlsCache>().client(&hello, self.carrier);
            (self.row.ja3, self.row.ja4) = print.map(|it| (it.ja3, it.ja4)).unzip();
        }
        Ok(())
    }

    /// Takes a ServerHello, and tells whether it asks for another ClientHello.
    fn server_hello(
        &mut self,
        sender: Sender,
        body: &[u8],
        found: &mut Findings,
    ) -> Result<bool, Unreadable> {
        let hello = ServerHello::of(body).ok_or("SSL_invalid_server_hello")?;
        if !is_known(hello.version) {
            return Err("SSL_unsupported_version");
        }
        self.direct(sender.from, false, found);
        self.is_confirmed = true;
        if let Some(version) = hello.selected_version() {
            self.version.get_or_insert(version);
            self.told_version = Some(version);
        }
        if let Some(group) = hello.group() {
            self.row.curve = Some(names::group(group));
        }
        if let Some(protocol) = hello.extensions.protocols().next() {
            self.row.next_protocol = Some(protocol.into());
        }
        self.row.resumed |= self.offers_psk && hello.extensions.get(PRE_SHARED_KEY).is_some();
        self.choose_version(hello.version);
        self.choose_cipher(u32::from(hello.cipher));
        let version = self.told_version.unwrap_or(hello.version);
        // TLS 1.3 repeats the identifier without any meaning (RFC 8446, 4.1.3).
        let is_echo = version == TLS13 || names::is_tls13_draft(version);
        self.row.resumed |= !is_echo && self.session_id == Some(padded(hello.session_id));
        if self.row.ja3s.is_none() {
            self.row.ja3s = found.caches.of::<TlsCache>().server(&hello);
        }
        Ok(hello.is_retry)
    }

    /// Notes the version of a ServerHello, unless an extension has told it.
    fn choose_version(&mut self, version: u16) {
        self.version.get_or_insert(version);
        self.told_version.get_or_insert(version);
    }

    fn choose_cipher(&mut self, cipher: u32) {
        self.cipher = Some(cipher);
        let name = ciphers::name(cipher).map(Cow::Borrowed);
        self.row.cipher = name.or_else(|| Some(Cow::Owned(format!("unknown-{cipher}"))));
    }

    fn server_key_exchange(&mut self, body: &[u8]) {
        let cipher = self.cipher.filter(|cipher| ciphers::names_curve(*cipher));
        let Some(cipher) = cipher else { return };
        let mut reader = Reader::new(body);
        if ciphers::has_psk_hint(cipher) {
            reader.vector16();
        }
        if reader.u8() == Some(NAMED_CURVE)
            && let Some(group) = reader.u16()
        {
            self.row.curve = Some(names::group(group));
        }
    }
}

/// The letter of a handshake message in Zeek's history; `None` for one that TLS does not have.
const fn letter(kind: u8) -> Option<u8> {
    Some(match kind {
        0 => b'h',
        1 => b'c',
        2 => b's',
        3 => b'v',
        4 => b't',
        5 => b'e',
        6 => b'j',
        8 => b'o',
        11 => b'x',
        12 => b'k',
        13 => b'r',
        14 => b'n',
        15 => b'y',
        16 => b'g',
        20 => b'f',
        21 => b'w',
        22 => b'u',
        23 => b'a',
        24 => b'p',
        254 => b'm',
        _ => return None,
    })
}

/// Whether a hello may name this version. That of TLS 1.3 has the one of TLS 1.2.
const fn is_known(version: u16) -> bool {
    matches!(version, SSL2 | SSL3 | TLS10 | TLS11 | TLS12 | TLS13 | DTLS10 | DTLS12)
        || names::is_tls13_draft(version)
}

/// An identifier of a session in 32 octets, and one of more octets as none, as Zeek has it.
fn padded(session_id: &[u8]) -> [u8; 32] {
    let mut padded = [0; 32];
    if let Some(begin) = padded.get_mut(..session_id.len()) {
        begin.copy_from_slice(session_id);
    }
    padded
}
