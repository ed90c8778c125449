//! Two streams of TLS: which records are in the clear, and when the handshake is done.

use super::fingerprint::Carrier;
use super::handshake::Assembler;
use super::hello::{Ssl2ServerHello, is_ssl2_client_hello};
use super::names::{SSL2, SSL3, TLS10, TLS11, TLS12, TLS13, is_tls13_draft};
use super::negotiation::{Negotiation, Sender, Unreadable};
use super::reader::Reader;
use super::record::{
    ALERT, APPLICATION_DATA, CHANGE_CIPHER_SPEC, HANDSHAKE, HEADER_LEN, HEARTBEAT, Kind, Layer,
};
use crate::protocol::file_transfer;
use crate::protocol::session::findings::Findings;
use crate::protocol::session::{Bytes, GapAction, MissingBytes, Progress, Role, Session};

/// Octets of a record in SSL 2 before its body: length and type, and two that are the body's begin.
const SSL2_PREFIX: usize = 3;

/// Alerts that are read of one record (`max_alerts_per_record`). TLS 1.3 has one (RFC 8446, 5.1).
const MAX_ALERTS: usize = 10;

/// One conversation in TLS.
#[derive(Debug)]
pub(super) struct TlsSession {
    negotiation: Negotiation,
    layer: Layer,
    /// What the sides have begun to say, by [`Role`].
    messages: [Assembler; 2],
    /// Which sides send encrypted records.
    is_encrypted: [bool; 2],
    /// Octets of an encrypted record that are to come. They are not skipped, so that a gap among them
    /// is seen.
    hidden: [usize; 2],
    /// Which sides have said a whole message of the handshake.
    has_spoken: [bool; 2],
    /// Of which sides an empty record was told.
    has_empty_record: [bool; 2],
}

impl TlsSession {
    /// Nothing was said yet, in a flow that carries files if they are wanted.
    pub(super) fn new(files: Option<file_transfer::Carrier>) -> Self {
        Self {
            negotiation: Negotiation::new(Carrier::Tcp, files),
            layer: Layer::default(),
            messages: Default::default(),
            is_encrypted: [false; 2],
            hidden: [0; 2],
            has_spoken: [false; 2],
            has_empty_record: [false; 2],
        }
    }

    /// Whether a record of this type is encrypted. TLS 1.3 does not tell when it begins to encrypt,
    /// but all its application data is.
    fn is_ciphertext(&mut self, from: Role, kind: u8) -> bool {
        const PLAIN_BEFORE: [u16; 5] = [SSL2, SSL3, TLS10, TLS11, TLS12];
        let is_encrypted = &mut self.is_encrypted[from.index()];
        let version = self.negotiation.version();
        if kind == APPLICATION_DATA && !version.is_some_and(|it| PLAIN_BEFORE.contains(&it)) {
            *is_encrypted = true;
        }
        *is_encrypted
    }

    /// Whether the server chose TLS 1.3, or a draft of it.
    fn is_tls13(&self) -> bool {
        self.negotiation.version().is_some_and(|it| it == TLS13 || is_tls13_draft(it))
    }

    /// Takes a record in the clear.
    fn record(
        &mut self,
        sender: Sender,
        kind: u8,
        content: &[u8],
        found: &mut Findings,
    ) -> Result<(), Unreadable> {
        let mut reader = Reader::new(content);
        let side = sender.from.index();
        if content.is_empty() && kind != APPLICATION_DATA && !self.has_empty_record[side] {
            self.has_empty_record[side] = true;
            found.weirds.add("SSL_empty_record");
        }
        match kind {
            CHANGE_CIPHER_SPEC => self.change_cipher_spec(sender, found),
            ALERT => {
                self.negotiation.begin(sender.time);
                let max = if self.is_tls13() { 1 } else { MAX_ALERTS };
                for [_, description] in core::iter::from_fn(|| reader.array()).take(max) {
                    self.negotiation.alert(sender, u16::from(description), found);
                }
                if content.len() > 2 * max {
                    found.weirds.add("SSL_excessive_alerts_in_record");
                }
            }
            HANDSHAKE => {
                self.negotiation.begin(sender.time);
                let (negotiation, mut result) = (&mut self.negotiation, Ok(()));
                let has_spoken = &mut self.has_spoken[side];
                self.messages[side].push(content, |message| {
                    *has_spoken = true;
                    result = negotiation.message(sender, message, found);
                    result.is_ok()
                });
                return result;
            }
            APPLICATION_DATA => self.negotiation.early_data(sender, found),
            HEARTBEAT => self.negotiation.heartbeat(sender, found),
            _ => return Err("SSL_unknown_record"),
        }
        Ok(())
    }

    /// Takes a ChangeCipherSpec. One that comes before its side's hello has nothing to change to:
    /// servers refuse it or drop it. In TLS 1.3 it has no meaning, and a hello in the clear may follow
    /// it (RFC 8446, appendix D.4).
    fn change_cipher_spec(&mut self, sender: Sender, found: &mut Findings) {
        let side = sender.from.index();
        if !self.has_spoken[side] {
            found.weirds.add("SSL_early_change_cipher_spec");
        } else if !self.is_tls13() {
            self.is_encrypted[side] = true;
        }
        self.negotiation.change_cipher_spec(sender, found);
    }

    /// Takes a record of SSL 2.
    fn ssl2_record(
        &mut self,
        sender: Sender,
        kind: u8,
        record: &[u8],
        found: &mut Findings,
    ) -> Result<(), Unreadable> {
        let body = record.get(SSL2_PREFIX..).unwrap_or_default();
        self.has_spoken[sender.from.index()] = true;
        match (kind, sender.from) {
            (0, _) => {
                let error = Reader::new(body).u16().unwrap_or_default();
                self.negotiation.alert(sender, error, found);
            }
            (1, Role::Originator) => {
                // Version, then what the hello has.
                if !body.get(2..).is_some_and(is_ssl2_client_hello) {
                    return Err("SSL_invalid_client_hello");
                }
                self.negotiation.ssl2_client_hello(sender, found);
            }
            (2, Role::Originator) => self.negotiation.establish(sender, found),
            (4, Role::Responder) => {
                let hello = body.get(2..).and_then(Ssl2ServerHello::of);
                let hello = hello.ok_or("SSL_invalid_server_hello")?;
                self.negotiation.ssl2_server_hello(sender, &hello, found)?;
            }
            _ => return Err("SSL_unknown_record"),
        }
        Ok(())
    }

    /// What becomes of a conversation that cannot be read any further: one that was TLS before stays
    /// it, as in Zeek.
    fn give_up(&mut self, reason: Unreadable, found: &mut Findings) -> Progress {
        self.negotiation.report(found);
        if self.negotiation.is_confirmed() {
            found.weirds.add(reason);
            Progress::Done
        } else {
            Progress::Contradicts(reason)
        }
    }
}

impl Session for TlsSession {
    fn bytes(&mut self, bytes: &Bytes<'_>, found: &mut Findings) -> Progress {
        let sender = Sender { from: bytes.from, time: bytes.time };
        let hidden = &mut self.hidden[bytes.from.index()];
        if *hidden > 0 {
            let now = bytes.data.len().min(*hidden);
            *hidden -= now;
            return Progress::Consumed(now);
        }
        let Some(&start) = bytes.data.first_chunk::<HEADER_LEN>() else {
            return Progress::Need(HEADER_LEN);
        };
        let mut layer = self.layer;
        let Some(header) = layer.header(start, bytes.from) else {
            return self.give_up("SSL_invalid_record", found);
        };
        if let Kind::Tls(kind) = header.kind
            && self.is_ciphertext(bytes.from, kind)
        {
            self.layer = layer;
            if self.is_encrypted == [true; 2] {
                self.negotiation.establish(sender, found);
                return Progress::Done;
            }
            self.hidden[bytes.from.index()] = header.len - HEADER_LEN;
            return Progress::Consumed(HEADER_LEN);
        }
        if header.is_too_long() {
            return self.give_up("SSL_record_too_long", found);
        }
        let Some(record) = bytes.data.get(..header.len) else {
            return Progress::Need(header.len);
        };
        self.layer = layer;
        let result = match header.kind {
            Kind::Tls(kind) => {
                self.record(sender, kind, record.get(HEADER_LEN..).unwrap_or_default(), found)
            }
            Kind::Ssl2(kind) => self.ssl2_record(sender, kind, record, found),
        };
        match result {
            Err(reason) => self.give_up(reason, found),
            Ok(()) if self.negotiation.is_reported() => Progress::Done,
            Ok(()) => Progress::Consumed(header.len),
        }
    }

    /// As in Zeek, nothing is read behind a gap: messages would be missing.
    fn gap(&mut self, _: &MissingBytes<'_>, _: &mut Findings) -> GapAction {
        GapAction::Abort
    }

    fn end(&mut self, found: &mut Findings) {
        self.negotiation.report(found);
    }

    fn is_confirmed(&self) -> bool {
        self.negotiation.is_confirmed()
    }

    fn heap_bytes(&self) -> usize {
        size_of::<Self>()
            + self.negotiation.heap_bytes()
            + self.messages.iter().map(Assembler::heap_bytes).sum::<usize>()
    }
}
