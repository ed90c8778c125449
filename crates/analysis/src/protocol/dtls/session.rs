//! Datagrams of DTLS: records, RFC 6347 section 4.1 and RFC 9147 section 4.

use super::fragments::{Fragment, FragmentedMessage as Fragmented};
use crate::protocol::file_transfer;
use crate::protocol::session::findings::Findings;
use crate::protocol::session::{Datagram, DatagramVerdict, Session};
use crate::protocol::tls::fingerprint::Carrier;
use crate::protocol::tls::handshake::HandshakeMessage;
use crate::protocol::tls::names::{DTLS10, DTLS12, DTLS13};
use crate::protocol::tls::negotiation::{Negotiation, Sender, Unreadable};
use crate::protocol::tls::reader::Reader;
use crate::protocol::tls::record::{
    ALERT, APPLICATION_DATA, CHANGE_CIPHER_SPEC, HANDSHAKE, HEARTBEAT,
};

/// Datagrams of another kind, after which a conversation is none of DTLS (`max_version_errors`).
const MAX_STRAY: u8 = 10;

/// The cookie of STUN (RFC 8489, section 5), which shares ports with DTLS in WebRTC.
const STUN_COOKIE: [u8; 4] = [0x21, 0x12, 0xa4, 0x42];

/// The bits that begin an encrypted record of DTLS 1.3, RFC 9147 section 4.
const UNIFIED: u8 = 0x20;

/// One conversation in DTLS.
#[derive(Debug)]
pub(super) struct DtlsSession {
    negotiation: Negotiation,
    /// The messages that come in fragments, by [`Role`](crate::protocol::session::Role).
    messages: [Fragmented; 2],
    /// Which sides send encrypted records.
    is_encrypted: [bool; 2],
    stray: u8,
    is_over: bool,
}

/// What ends the reading of a datagram.
enum Stop {
    /// It is none of DTLS.
    Stray,
    /// Nor is the conversation, or it cannot be followed.
    Unreadable(Unreadable),
}

impl DtlsSession {
    /// Nothing was said yet.
    pub(super) fn new(files: Option<file_transfer::Carrier>) -> Self {
        Self {
            negotiation: Negotiation::new(Carrier::Dtls, files),
            messages: Default::default(),
            is_encrypted: [false; 2],
            stray: 0,
            is_over: false,
        }
    }

    /// Takes the next record of a datagram.
    fn record(
        &mut self,
        sender: Sender,
        reader: &mut Reader<'_>,
        found: &mut Findings,
    ) -> Result<(), Stop> {
        let kind = reader.u8().ok_or(Stop::Stray)?;
        if kind & 0xe0 == UNIFIED {
            // How long it is only the receiver knows.
            *reader = Reader::new(&[]);
            self.is_encrypted[sender.from.index()] = true;
            self.ciphertext(sender, found);
            return Ok(());
        }
        let version = reader.u16().ok_or(Stop::Stray)?;
        if ![DTLS10, DTLS12, DTLS13].contains(&version) {
            return Err(Stop::Stray);
        }
        let epoch = reader.u16().ok_or(Stop::Stray)?;
        let _number: [u8; 6] = reader.array().ok_or(Stop::Stray)?;
        let content = reader.vector16().ok_or(Stop::Stray)?;
        if epoch > 0 {
            self.ciphertext(sender, found);
            return Ok(());
        }
        self.plaintext(sender, kind, content, found).map_err(Stop::Unreadable)
    }

    /// Takes a record that is encrypted.
    fn ciphertext(&mut self, sender: Sender, found: &mut Findings) {
        if self.is_encrypted == [true; 2] {
            self.negotiation.establish(sender, found);
        }
    }

    fn plaintext(
        &mut self,
        sender: Sender,
        kind: u8,
        content: &[u8],
        found: &mut Findings,
    ) -> Result<(), Unreadable> {
        self.negotiation.begin(sender.time);
        let mut reader = Reader::new(content);
        match kind {
            CHANGE_CIPHER_SPEC => {
                self.is_encrypted[sender.from.index()] = true;
                self.negotiation.change_cipher_spec(sender, found);
            }
            ALERT => {
                while let Some([_, description]) = reader.array() {
                    self.negotiation.alert(sender, u16::from(description), found);
                }
            }
            HANDSHAKE => {
                while !reader.is_empty() {
                    let fragment = Fragment::next(&mut reader).ok_or("DTLS_invalid_fragment")?;
                    self.fragment(sender, &fragment, found)?;
                }
            }
            APPLICATION_DATA => self.negotiation.early_data(sender, found),
            HEARTBEAT => self.negotiation.heartbeat(sender, found),
            _ => return Err("SSL_unknown_record"),
        }
        Ok(())
    }

    fn fragment(
        &mut self,
        sender: Sender,
        fragment: &Fragment<'_>,
        found: &mut Findings,
    ) -> Result<(), Unreadable> {
        let kind = fragment.kind;
        let mut take = |body: &[u8]| {
            self.negotiation.message(sender, HandshakeMessage { kind, body: Some(body) }, found)
        };
        if let Some(body) = fragment.whole() {
            return take(body);
        }
        match self.messages[sender.from.index()].push(fragment) {
            Ok(Some(body)) => take(&body),
            Ok(None) => Ok(()),
            Err(_) => Err("SSL_handshake_message_too_long"),
        }
    }

    /// Reads the records of a datagram.
    fn records(&mut self, datagram: &Datagram<'_>, found: &mut Findings) {
        let payload = datagram.payload;
        let is_stun = payload.len() > 20 && payload.get(4..8) == Some(&STUN_COOKIE);
        if self.is_over || is_stun {
            return;
        }
        let sender = Sender { from: datagram.from, time: datagram.time };
        let mut reader = Reader::new(payload);
        while !reader.is_empty() && !self.is_over {
            match self.record(sender, &mut reader, found) {
                Ok(()) => self.is_over = self.negotiation.is_reported(),
                Err(Stop::Stray) => {
                    self.stray += 1;
                    self.is_over = self.stray >= MAX_STRAY;
                    break;
                }
                Err(Stop::Unreadable(reason)) => {
                    found.weirds.add(reason);
                    self.is_over = true;
                }
            }
        }
        if self.is_over {
            self.negotiation.report(found);
        }
    }
}

impl Session for DtlsSession {
    fn datagram(&mut self, datagram: &Datagram<'_>, found: &mut Findings) -> DatagramVerdict {
        self.records(datagram, found);
        DatagramVerdict::Fits
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
            + self.messages.iter().map(Fragmented::heap_bytes).sum::<usize>()
    }
}
