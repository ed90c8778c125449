//! Two streams of TLS: which records are in the clear, and when the handshake is done.

use super::fingerprint::Carrier;
use super::handshake::Assembler;
use super::hello::{Ssl2ServerHello, is_ssl2_client_hello};
use super::names::{SSL2, SSL3, TLS10, TLS11, TLS12};
use super::negotiation::{Negotiation, Sender, Unreadable};
use super::reader::Reader;
use super::record::{
    ALERT, APPLICATION_DATA, CHANGE_CIPHER_SPEC, HANDSHAKE, HEADER_LEN, HEARTBEAT, Kind, Layer,
};
use crate::protocol::findings::Findings;
use crate::protocol::session::{Bytes, Gap, Onward, Progress, Role, Session};

/// Octets of a record in SSL 2 before its body: length and type, and two that are the body's begin.
const SSL2_PREFIX: usize = 3;

/// One conversation in TLS.
#[derive(Debug)]
pub(super) struct TlsSession {
    negotiation: Negotiation,
    layer: Layer,
    /// What the sides have begun to say, by [`Role`].
    messages: [Assembler; 2],
    /// Which sides send encrypted records.
    is_encrypted: [bool; 2],
}

impl TlsSession {
    /// Nothing was said yet.
    pub(super) fn new() -> Self {
        Self {
            negotiation: Negotiation::new(Carrier::Tcp),
            layer: Layer::default(),
            messages: Default::default(),
            is_encrypted: [false; 2],
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

    /// Takes a record in the clear.
    fn record(
        &mut self,
        sender: Sender,
        kind: u8,
        content: &[u8],
        found: &mut Findings,
    ) -> Result<(), Unreadable> {
        let mut reader = Reader::new(content);
        match kind {
            CHANGE_CIPHER_SPEC => {
                self.is_encrypted[sender.from.index()] = true;
                self.negotiation.change_cipher_spec(sender, found);
            }
            ALERT => {
                self.negotiation.begin(sender.time);
                // Zeek reads as many alerts as there are in a record.
                while let Some([_, description]) = reader.array() {
                    self.negotiation.alert(sender, u16::from(description), found);
                }
            }
            HANDSHAKE => {
                self.negotiation.begin(sender.time);
                let (negotiation, mut result) = (&mut self.negotiation, Ok(()));
                self.messages[sender.from.index()].push(content, |message| {
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

    /// Takes a record of SSL 2.
    fn ssl2_record(
        &mut self,
        sender: Sender,
        kind: u8,
        record: &[u8],
        found: &mut Findings,
    ) -> Result<(), Unreadable> {
        let body = record.get(SSL2_PREFIX..).unwrap_or_default();
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
        self.negotiation.tell(found);
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
            return Progress::Skip(header.len as u64);
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
            Ok(()) if self.negotiation.is_told() => Progress::Done,
            Ok(()) => Progress::Consumed(header.len),
        }
    }

    /// As in Zeek, nothing is read behind a gap: messages would be missing.
    fn gap(&mut self, _: &Gap<'_>, _: &mut Findings) -> Onward {
        Onward::LetGo
    }

    fn end(&mut self, found: &mut Findings) {
        self.negotiation.tell(found);
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
